//! Objects, spatial records and deltas in overlays: read through, written on top, listed together, given back and merged.

use std::collections::BTreeMap;

use cg_format::RecordId;
use cg_format::key::Family;
use cg_format::record::Record;
use cg_layers::OverlayError;
use cg_store::WorldOptions;
use cg_store::engine::ReadableExt as _;
use cg_store::error::ConflictKey;
use cg_store::objects::ObjectKey;
use cg_store::records::RecordQuery;
use proptest::prelude::*;

use super::*;
use crate::fixture::assert_sound;

fn id(n: u128) -> RecordId {
    RecordId::new(uuid::Uuid::from_u128(n))
}

fn record(ids: &Ids, x: i64, kind: &str) -> Record {
    let position = EntityPos::new(ids.overworld, BlockPos::new(x, 0, 0), [0.5; 3]).expect("a point");
    Record::new(position, kind, x, kind.as_bytes().to_vec()).expect("short")
}

/// All records of the first kilometre.
fn all(ids: &Ids) -> RecordQuery {
    RecordQuery::new(ids.overworld, BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(999, 0, 0)))
}

/// The template with objects `a/0` to `a/4` and records 0 to 4, each in a leaf of its own.
fn furnished() -> (World, Ids) {
    let (base, ids) = template();
    let put = base.transaction(|tx| {
        for n in 0..5_u8 {
            tx.put_object(format!("a/{n}"), [n])?;
            tx.put_record(id(n.into()), record(&ids, 100 * i64::from(n), "sign"));
        }
        Ok::<_, Error>(())
    });
    put.expect("puts");
    (base, ids)
}

fn keys<S: Base>(overlay: &Overlay<S>, prefix: &str, page: usize) -> Vec<String> {
    let (mut found, mut position) = (Vec::new(), None);
    loop {
        let listed = overlay.list_objects(prefix, position.as_ref(), page).expect("lists");
        assert!(listed.entries.len() <= page);
        assert!(listed.next.is_none() || listed.entries.len() == page, "a page that is not the last is full");
        found.extend(listed.entries.iter().map(|entry| entry.key.to_string()));
        match listed.next {
            Some(next) => position = Some(next),
            None => return found,
        }
    }
}

fn ids_in<S: Base>(overlay: &Overlay<S>, query: &RecordQuery) -> Vec<u128> {
    overlay.records_in(query).expect("reads").into_iter().map(|(id, _)| id.get().as_u128()).collect()
}

fn change<S: Base>(overlay: &Overlay<S>, ids: &Ids) {
    let changed = overlay.transaction(|tx| {
        tx.put_object("a/1", *b"new")?;
        tx.delete_object("a/2")?;
        tx.put_object("a/22", *b"added")?;
        tx.put_object("b", *b"another")?;
        tx.put_record(id(1), record(ids, 150, "moved"));
        tx.delete_record(id(2));
        tx.put_record(id(7), record(ids, 250, "added"));
        Ok::<_, Error>(())
    });
    changed.expect("changes");
}

fn objects_and_records_lie_on_top(overlay: &Overlay<World>, ids: &Ids) {
    let base = overlay.base().clone();
    change(overlay, ids);
    let object =
        |key: &str| overlay.object(key).expect("reads").map(|object| (object.version, object.bytes.to_vec()));
    assert_eq!(object("a/0"), Some((0, vec![0])), "the base's");
    assert_eq!(object("a/1"), Some((1, b"new".to_vec())), "counts on");
    assert_eq!((object("a/2"), object("a/9")), (None, None));
    for page in 1..8 {
        assert_eq!(keys(overlay, "a/", page), ["a/0", "a/1", "a/22", "a/3", "a/4"]);
    }
    assert_eq!(keys(overlay, "", 3).last().map(String::as_str), Some("b"));
    assert_eq!(ids_in(overlay, &all(ids)), [0, 1, 7, 3, 4], "in the order of the tree");
    assert_eq!(ids_in(overlay, &all(ids).of_kind("moved")), [1]);
    assert_eq!(overlay.record(id(1)).expect("reads"), Some(record(ids, 150, "moved")));
    assert_eq!(overlay.record(id(2)).expect("reads"), None);
    assert_eq!(base.records().get(id(2)).expect("reads"), Some(record(ids, 200, "sign")), "is as it was");
    // Written anew after a deletion it counts on too, and a record leaves its leaf.
    let again = overlay.transaction(|tx| {
        tx.put_object("a/2", *b"again")?;
        tx.move_record(id(7), EntityPos::new(ids.overworld, BlockPos::new(900, 0, 0), [0.5; 3])?)
    });
    assert!(again.expect("writes"));
    assert_eq!(object("a/2"), Some((1, b"again".to_vec())));
    assert_eq!(ids_in(overlay, &all(ids)), [0, 1, 3, 4, 7]);
    let diff = overlay.diff().expect("compares");
    let objects: Vec<_> = diff.objects.iter().map(|(key, what)| (key.to_string(), *what)).collect();
    let [added, changed, deleted] = [Difference::Added, Difference::Changed, Difference::Deleted];
    let expected = [("a/1", changed), ("a/2", changed), ("a/22", added), ("b", added)];
    assert_eq!(objects, expected.map(|(key, what)| (key.to_owned(), what)));
    assert_eq!(diff.records, [(id(1), changed), (id(2), deleted), (id(7), added)]);
    overlay.reset().expect("resets");
    assert!(overlay.diff().expect("compares").is_empty());
    assert_eq!(keys(overlay, "a/", 2), ["a/0", "a/1", "a/2", "a/3", "a/4"]);
    assert_eq!(ids_in(overlay, &all(ids)), [0, 1, 2, 3, 4]);
    assert_eq!(overlay.arenas().sweep(1000).expect("sweeps"), 4 + 3 + 2, "objects, places and records");
}

#[test]
fn objects_and_records_lie_on_top_in_memory() {
    let (base, ids) = furnished();
    objects_and_records_lie_on_top(&over(&base), &ids);
}

#[test]
fn objects_and_records_lie_on_top_on_disk() {
    let (base, ids) = furnished();
    let disk = Disk::new();
    objects_and_records_lie_on_top(&on_disk(&disk, &base), &ids);
}

#[test]
fn a_promotion_brings_objects_with_their_versions_and_records() {
    let (base, ids) = furnished();
    let lower = over(&base);
    let upper = over(&lower);
    change(&upper, &ids);
    upper.transaction(|tx| tx.put_object("a/1", *b"newer")).expect("writes");
    assert_eq!(upper.merge_into(&lower).expect("merges").changes, 7);
    assert!(upper.diff().expect("compares").is_empty());
    assert_eq!(lower.merge_into(&base).expect("merges").changes, 7);
    let object = |key: &str| base.objects().get(key).expect("reads");
    assert_eq!(
        object("a/1").map(|object| (object.version, object.bytes.to_vec())),
        Some((2, b"newer".to_vec()))
    );
    assert_eq!(object("a/2"), None);
    assert_eq!(base.records().get(id(1)).expect("reads"), Some(record(&ids, 150, "moved")));
    assert_eq!(base.records().get(id(2)).expect("reads"), None);
    assert_sound(&base);
    // A deletion keeps the count that the arena came to.
    let arena = over(&base);
    arena.transaction(|tx| tx.put_object("a/1", *b"last")).expect("writes");
    arena.transaction(|tx| tx.delete_object("a/1")).expect("writes");
    assert_eq!(arena.merge_into(&base).expect("merges").changes, 1);
    assert_eq!(object("a/1"), None);
    assert_eq!(base.objects().put("a/1", *b"x").expect("writes"), 4);
}

/// A reader that saw it in the arena at its last version sees no lower one in the base.
#[test]
fn an_object_that_came_and_went_in_an_arena_keeps_its_count() {
    let (base, _) = furnished();
    let lower = over(&base);
    let upper = over(&lower);
    let come_and_go = |arena: &Overlay<Overlay<World>>| {
        for text in ["one", "two", "three"] {
            arena.transaction(|tx| tx.put_object("score", text.as_bytes())).expect("writes");
        }
        arena.transaction(|tx| tx.delete_object("score")).expect("writes");
    };
    come_and_go(&upper);
    assert!(upper.diff().expect("compares").is_empty(), "nobody sees a difference");
    assert_eq!(upper.merge_into(&lower).expect("merges").changes, 1);
    assert!(lower.diff().expect("compares").is_empty());
    assert_eq!(lower.merge_into(&base).expect("merges").changes, 1);
    assert_eq!(lower.merge_into(&base).expect("merges").changes, 0);
    assert_eq!(base.objects().get("score").expect("reads"), None);
    assert_eq!(base.objects().put("score", *b"x").expect("writes"), 3);
    base.objects().delete("score").expect("deletes");

    // What came and went below meanwhile is no conflict, and the higher count stays.
    let lower = over(&base);
    let upper = over(&lower);
    come_and_go(&upper);
    for text in ["4", "5", "6", "7", "8"] {
        base.objects().put("score", text.as_bytes()).expect("writes");
    }
    base.objects().delete("score").expect("deletes");
    assert_eq!(upper.merge_into(&lower).expect("merges").changes, 0);
    assert_eq!(lower.merge_into(&base).expect("merges").changes, 0);
    assert_eq!(base.objects().put("score", *b"x").expect("writes"), 9);
}

#[test]
fn what_the_base_changed_of_objects_and_records_is_not_undone() {
    let (base, ids) = furnished();
    for (key, below) in [
        (ConflictKey::Object(ObjectKey::new("a/1").expect("short")), true),
        (ConflictKey::Record(id(1)), false),
    ] {
        let overlay = over(&base);
        change(&overlay, &ids);
        let changed = base.transaction(|tx| {
            if below {
                tx.put_object("a/1", *b"below")?;
            } else {
                tx.put_record(id(1), record(&ids, 170, "below"));
            }
            Ok::<_, Error>(())
        });
        changed.expect("changes");
        let refused = overlay.merge_into(&base);
        assert!(
            matches!(refused.as_ref().err().and_then(Error::layer), Some(OverlayError::BaseChanged { key: found, .. }) if *found == key),
            "{refused:?}"
        );
        assert_eq!(base.objects().get("a/22").expect("reads"), None, "nothing was merged");
        assert_eq!(
            overlay.object("a/22").expect("reads").map(|object| object.version),
            Some(0),
            "nothing is lost"
        );
    }
}

#[test]
fn what_could_not_be_stored_is_refused() {
    let (base, ids) = furnished();
    let limits =
        cg_store::StoreLimits { object_bytes: 8, record_bytes: 100, ..cg_store::StoreLimits::default() };
    let small = WorldOptions { limits, ..options() };
    let overlay = Overlay::in_memory(base, &small).expect("a base");
    let large = overlay.transaction(|tx| tx.put_object("a/1", [0; 9]));
    assert!(matches!(large, Err(Error::TooLarge { len_bytes: 9, limit_bytes: 8, .. })), "{large:?}");
    let back = overlay.transaction(|tx| {
        tx.put_object_at_version("a/1", 7, *b"seven")?;
        tx.put_object_at_version("a/1", 3, *b"three")
    });
    assert!(matches!(back, Err(Error::VersionGoesBack { stored: 7, offered: 3, .. })), "{back:?}");
    let nowhere = EntityPos::new(Dimension::new(99), BlockPos::new(0, 0, 0), [0.0; 3]).expect("a point");
    let unknown = overlay.transaction(|tx| {
        tx.put_record(id(9), Record::new(nowhere, "sign", 0, Vec::new())?);
        Ok::<_, Error>(())
    });
    assert!(matches!(unknown, Err(Error::UnknownDimension { found: 99, .. })), "{unknown:?}");
    let long = overlay.transaction(|tx| {
        tx.put_record(id(9), record(&ids, 0, &"long".repeat(40)));
        Ok::<_, Error>(())
    });
    assert!(matches!(long, Err(Error::TooLarge { limit_bytes: 100, .. })), "{long:?}");
    assert!(overlay.diff().expect("compares").is_empty());
}

fn deltas() -> WorldOptions {
    WorldOptions { deltas: true, cache_bytes: 0, ..options() }
}

/// Bytes of all chunk rows, without anything of the base.
fn chunk_row_bytes<S: Base>(overlay: &Overlay<S>) -> usize {
    let mut bytes = 0;
    let scanned = overlay.arenas().engine().scan(Family::ChunkL0, cg_store::engine::ALL_KEYS, |_, row| {
        bytes += row.len();
        std::ops::ControlFlow::<()>::Continue(())
    });
    scanned.expect("scans");
    bytes
}

/// A chunk that takes kilobytes.
fn noisy(base: &World, ids: &Ids) -> Chunk {
    let mut chunk = filled(base, ids.stone);
    let schema = base.catalog().current_schema();
    for cell in LocalPos::all().filter(|cell| (cell.x() ^ cell.y() ^ cell.z()) % 2 == 1) {
        chunk.set_block(cell, ids.glass, &schema).expect("is registered");
    }
    chunk
}

#[test]
fn a_small_change_of_a_large_chunk_is_a_small_row() {
    let (base, ids) = template();
    let at = ids.at(1, 0, 0);
    save(&base, [(at, noisy(&base, &ids))]);
    let overlay = Overlay::in_memory(base.clone(), &deltas()).expect("a base");
    let set = |x: i64, block| {
        overlay
            .transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(16 + x, 0, 0), block))
            .expect("sets");
    };
    set(0, ids.air);
    let one = chunk_row_bytes(&overlay);
    assert!(one < 100, "{one} bytes");
    set(2, ids.air);
    overlay
        .transaction(|tx| {
            tx.put_entity(uuid(5), ids.cow_in(at));
            Ok::<_, Error>(())
        })
        .expect("puts");
    let chunk = overlay.load(at).expect("loads").expect("is stored");
    let mut expected = noisy(&base, &ids);
    let schema = base.catalog().current_schema();
    for x in [0, 2] {
        expected.set_block(LocalPos::new(x, 0, 0), ids.air, &schema).expect("is registered");
    }
    expected.add_entity(uuid(5));
    assert_eq!(*chunk, expected);
    assert!(chunk_row_bytes(&overlay) < 150);
    // One with components is a whole chunk again, and so is one that the base does not have.
    set(4, ids.machine);
    assert!(chunk_row_bytes(&overlay) > 500);
    assert_eq!(overlay.merge_into(&base).expect("merges").changes, 2);
    assert_eq!(overlay.load(at).expect("loads"), base.load(at).expect("loads"));
    assert_sound(&base);
}

/// Content that was not written follows the base, content that was written stays on top; a promotion says that the base
/// changed.
#[test]
fn a_delta_stays_on_top_of_a_base_that_goes_on() {
    let (base, ids) = template();
    let at = ids.at(1, 0, 0);
    save(&base, [(at, noisy(&base, &ids))]);
    for options in [deltas(), WorldOptions { cache_bytes: 1 << 20, ..deltas() }] {
        let overlay = Overlay::in_memory(base.clone(), &options).expect("a base");
        let set_here = |x: i64, block| {
            overlay
                .transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(16 + x, 0, 0), block))
                .expect("sets");
        };
        let set_below = |x: i64, block| {
            drop(
                base.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(16 + x, 0, 0), block))
                    .expect("sets"),
            );
        };
        set_below(6, ids.stone);
        set_here(0, ids.air);
        set_below(6, ids.air);
        let shown = overlay.load(at).expect("loads").expect("is stored");
        assert_eq!([0, 6].map(|x| shown.block(LocalPos::new(x, 0, 0))), [ids.air, ids.air]);
        set_below(0, ids.glass);
        let refused = overlay.merge_into(&base);
        let is_changed = |error: &Error| matches!(error.layer(), Some(OverlayError::BaseChanged { key: ConflictKey::Chunk(found), .. }) if *found == at);
        assert!(refused.as_ref().is_err_and(is_changed), "{refused:?}");
        // Where it cannot stay there, it is said.
        drop(
            base.transaction(|tx| {
                tx.delete(at);
                Ok::<_, Error>(())
            })
            .expect("deletes"),
        );
        let gone = overlay.load(at);
        assert!(gone.as_ref().is_err_and(is_changed), "{gone:?}");
        save(&base, [(at, noisy(&base, &ids))]);
    }
}

/// Objects by their bytes, records by where they are.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model {
    objects: BTreeMap<u8, u8>,
    records: BTreeMap<u8, i64>,
}

#[derive(Debug, Clone)]
enum Step {
    Objects(Vec<(u8, Option<u8>)>),
    Records(Vec<(u8, Option<i64>)>),
    Reset,
    Merge,
    Sweep,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let objects = (0..8_u8, prop::option::weighted(0.7, any::<u8>()));
    let records = (0..8_u8, prop::option::weighted(0.7, 0..200_i64));
    let step = prop_oneof![
        4 => prop::collection::vec(objects, 1..4).prop_map(Step::Objects),
        4 => prop::collection::vec(records, 1..4).prop_map(Step::Records),
        1 => Just(Step::Reset),
        1 => Just(Step::Merge),
        1 => Just(Step::Sweep),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..40)
}

fn is_its_model(open: impl Fn(&World) -> Overlay<World>, reopens: bool, steps: Vec<Step>) {
    let (base, ids) = furnished();
    let mut below = Model {
        objects: (0..5).map(|n| (n, n)).collect(),
        records: (0..5).map(|n| (n, 100 * i64::from(n))).collect(),
    };
    let mut shown = below.clone();
    let mut versions: BTreeMap<u8, i64> = BTreeMap::new();
    let mut overlay = open(&base);
    for step in steps {
        match step {
            Step::Objects(writes) => {
                let written = overlay.transaction(|tx| {
                    for (n, byte) in &writes {
                        match byte {
                            Some(byte) => drop((
                                tx.put_object(format!("a/{n}"), [*byte])?,
                                shown.objects.insert(*n, *byte),
                            )),
                            None => drop((tx.delete_object(format!("a/{n}"))?, shown.objects.remove(n))),
                        }
                    }
                    Ok::<_, Error>(())
                });
                written.expect("writes");
            }
            Step::Records(writes) => {
                let written = overlay.transaction(|tx| {
                    for (n, x) in &writes {
                        match x {
                            Some(x) => drop((
                                tx.put_record(id((*n).into()), record(&ids, *x, "sign")),
                                shown.records.insert(*n, *x),
                            )),
                            None => drop((tx.delete_record(id((*n).into())), shown.records.remove(n))),
                        }
                    }
                    Ok::<_, Error>(())
                });
                written.expect("writes");
            }
            Step::Reset => {
                overlay.reset().expect("resets");
                shown = below.clone();
                versions.clear();
            }
            Step::Merge => {
                overlay.merge_into(&base).expect("nothing was changed below");
                below = shown.clone();
            }
            Step::Sweep => drop(overlay.arenas().sweep(3).expect("sweeps")),
            Step::Reopen if reopens => {
                drop(overlay);
                overlay = open(&base);
            }
            Step::Reopen => {}
        }
        for n in 0..8 {
            let object = overlay.object(format!("a/{n}")).expect("reads");
            assert_eq!(
                object.as_ref().map(|object| object.bytes.to_vec()),
                shown.objects.get(&n).map(|byte| vec![*byte])
            );
            if let Some(object) = object {
                let before = versions.insert(n, object.version);
                assert!(before <= Some(object.version), "versions never go back");
            }
            let of_base = base.objects().get(format!("a/{n}")).expect("reads");
            assert_eq!(
                of_base.map(|object| object.bytes.to_vec()),
                below.objects.get(&n).map(|byte| vec![*byte])
            );
            let found = overlay.record(id(n.into())).expect("reads");
            assert_eq!(found, shown.records.get(&n).map(|x| record(&ids, *x, "sign")));
            let found = base.records().get(id(n.into())).expect("reads");
            assert_eq!(found, below.records.get(&n).map(|x| record(&ids, *x, "sign")));
        }
        for page in [1, 3, 100] {
            let expected: Vec<_> = shown.objects.keys().map(|n| format!("a/{n}")).collect();
            assert_eq!(keys(&overlay, "a/", page), expected);
        }
        // Leaves are 16 wide.
        let area = BlockBox::new(BlockPos::new(32, 0, 0), BlockPos::new(111, 0, 0));
        let mut found = ids_in(&overlay, &RecordQuery::new(ids.overworld, area));
        found.sort_unstable();
        let inside = shown.records.iter().filter(|(_, x)| (32..112).contains(*x));
        assert_eq!(found, inside.map(|(n, _)| u128::from(*n)).collect::<Vec<_>>());
        // Two that overlap, and one beside them: each record once.
        let part = |from, to| BlockBox::new(BlockPos::new(from, 0, 0), BlockPos::new(to, 0, 0));
        let parts = [part(70, 111), part(160, 175), part(32, 80)];
        let found = overlay.records_in(&RecordQuery::in_areas(ids.overworld, parts)).expect("reads");
        let mut found: Vec<_> = found.into_iter().map(|(id, _)| id.get().as_u128()).collect();
        found.sort_unstable();
        let inside = shown.records.iter().filter(|(_, x)| (32..112).contains(*x) || (160..176).contains(*x));
        assert_eq!(found, inside.map(|(n, _)| u128::from(*n)).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn objects_and_records_of_an_overlay_in_memory_are_their_model(steps in steps()) {
        is_its_model(over, false, steps);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn objects_and_records_of_an_overlay_on_disk_are_their_model(steps in steps()) {
        let disk = Disk::new();
        let dir = disk.root().join("arena");
        let open = |base: &World| {
            if dir.exists() {
                Overlay::open(&dir, base.clone(), &options()).expect("opens")
            } else {
                on_disk(&disk, base)
            }
        };
        is_its_model(open, true, steps);
    }
}

/// A deletion in the base is no change for who wrote where nothing was, and it may be forgotten.
#[test]
fn an_object_that_was_deleted_below_is_promoted_when_its_deletion_was_forgotten() {
    for comes_and_goes in [false, true] {
        let (base, _) = furnished();
        base.objects().delete("a/1").expect("deletes");
        let overlay = Overlay::in_memory(base.clone(), &options()).expect("a base");
        overlay.transaction(|tx| tx.put_object("a/1", *b"new")).expect("writes");
        if comes_and_goes {
            base.objects().put("a/1", *b"for a moment").expect("puts");
            base.objects().delete("a/1").expect("deletes");
        } else {
            base.tiers().purge_tombstones_before(base.last_commit().next()).expect("forgets");
        }
        assert_eq!(overlay.merge_into(&base).expect("nothing is there").changes, 1);
        let object = base.objects().get("a/1").expect("reads").expect("is there");
        assert_eq!((object.version, &object.bytes[..]), (if comes_and_goes { 2 } else { 1 }, &b"new"[..]));
    }
}
