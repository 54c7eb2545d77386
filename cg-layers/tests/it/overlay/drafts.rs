//! Worlds and pools of earlier drafts: rows of version 1, no ancestors of chunks, and no openings.

use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::key::Family;
use cg_format::overlay::{Origin, OverlayRow};
use cg_format::record::Record;
use cg_format::{RecordId, Space, key};
use cg_layers::{OverlayChoice, OverlayError, OverlayRebased};
use cg_store::engine::{
    ALL_KEYS, Batch, COMMIT_SEQUENCE_KEY, Engine, Level, Readable as _, ReadableExt as _,
};
use cg_store::error::ConflictKey;
use cg_store::layer::with_history;
use cg_store::objects::ObjectKey;
use cg_store::verify::VerifyDepth;

use super::*;
use crate::fixture::{assert_sound, name};
use crate::surviving::{Fuse, Surviving};

/// The first row of the openings.
const OPENINGS: &[u8] = b"lineage/00000000";

/// The lease of the first arena.
const LEASE: u64 = 1;

/// What an engine holds, and which part of it is of an earlier draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// A world without openings.
    World,
    /// A pool without openings, whose rows have version 1 and no ancestors.
    Pool,
    /// A pool with its openings, whose rows have version 1 and no ancestors.
    RowsOfPool,
    /// A pool whose chunks have no ancestors, over a world of today.
    Ancestors,
}

impl Of {
    const fn has_openings(self) -> bool {
        matches!(self, Self::RowsOfPool | Self::Ancestors)
    }
}

/// Copies the rows of an engine into a new one, as an earlier draft wrote them.
fn as_draft(from: &Surviving, to: &dyn Engine, of: Of) {
    for _ in 1..from.last_commit().get() {
        to.commit(Batch::new(), &[], Level::Process).expect("commits");
    }
    let mut batch = Batch::new();
    for family in Family::ALL {
        let copied = from.try_scan(family, ALL_KEYS, |key, row| {
            let is_opening = family == Family::WorldMeta && key.starts_with(b"lineage/");
            let is_ancestor = family == Family::ChunkDelta && of != Of::World;
            if key == COMMIT_SEQUENCE_KEY || is_opening && !of.has_openings() || is_ancestor {
                return Ok::<_, Error>(());
            }
            let after_lease = if family == Family::Record && of != Of::World { 8 } else { 0 };
            let space = Space::of_row(family, &key[after_lease..]).expect("a row of a family");
            let (draft, version) = Draft::of_row(space, key, row).expect("is sound");
            let is_value = match space {
                Space::ChunkL0
                | Space::Entity
                | Space::WorldProperty
                | Space::Object
                | Space::RecordPlace => {
                    matches!(of, Of::Pool | Of::RowsOfPool)
                }
                _ => false,
            };
            let draft = if is_value { without_opening(&draft) } else { draft };
            batch.put(space, key, draft, Stamp::Keep(version.commit));
            Ok(())
        });
        copied.expect("reads");
    }
    if of.has_openings() {
        let (_, lineage) = with_history(Box::new(from.clone())).expect("is sound");
        batch.set_lineage(lineage);
    }
    to.commit(batch, &[], Level::Process).expect("commits");
    assert_eq!(to.last_commit(), from.last_commit());
}

/// A row of an overlay in version 1.
fn without_opening(draft: &Draft) -> Draft {
    let (head, rest) = draft.payload().split_at(11);
    let row = match head {
        [2, head @ ..] => [&[1], head, &rest[8..]].concat(),
        _ => draft.payload().to_vec(),
    };
    assert_eq!((row[0], OverlayRow::decode(&row).expect("is sound").origin.opening), (1, 0));
    Draft::plain(Codec::None, draft.schema_generation(), |out| out.extend(row))
}

/// A world and a pool over it, both of an earlier draft.
struct Drafts {
    ids: Ids,
    world: Surviving,
    pool: Surviving,
    options: WorldOptions,
}

impl Drafts {
    /// The template of the other tests, and an arena over it that is written by a function.
    fn new(deltas: bool, of: Of, write: impl FnOnce(&Overlay<World>, &Ids)) -> Self {
        let [world, pool] = [(); 2].map(|()| Surviving::new(&Fuse::new()));
        let options = WorldOptions { deltas, ..options() };
        let base = World::builder().options(&options).over(world.clone()).expect("opens");
        let ids = Ids::register(&base);
        save(&base, (0..4).map(|x| (ids.at(x, 0, 0), marked(&base, &ids, x as u16))));
        put_cow(&base, ids.cow_in(ids.at(0, 0, 0)));
        let arenas = Arenas::over(pool.clone(), base.clone(), &options).expect("a base");
        write(&arenas.lease("ada", GameTick::new(1)).expect("leases"), &ids);
        drop(arenas);
        base.close().expect("closes");
        let world = if of == Of::Ancestors { world } else { copy(&world, Of::World) };
        let pool = copy(&pool, of);
        let has_openings = [&world, &pool].map(|engine| {
            let row = engine.get(Space::WorldMeta, OPENINGS).expect("reads");
            row.is_some()
        });
        assert_eq!(has_openings, [of == Of::Ancestors, of.has_openings()]);
        Self { ids, world, pool, options }
    }

    fn open(&self) -> (World, Overlay<World>) {
        let base = World::builder().options(&self.options).over(self.world.clone()).expect("opens");
        let arenas = Arenas::over(self.pool.clone(), base.clone(), &self.options).expect("opens");
        assert_eq!(arenas.verify(VerifyDepth::Full, |_| {}).expect("reads").findings, []);
        (base, arenas.resume(0).expect("is leased"))
    }
}

fn copy(from: &Surviving, of: Of) -> Surviving {
    let to = Surviving::new(&Fuse::new());
    as_draft(from, &to, of);
    to
}

fn pos(x: i64) -> BlockPos {
    BlockPos::new(x, 5, 6)
}

fn set(x: i64, ids: &Ids, block: BlockId) -> impl Fn(&World) {
    let dimension = ids.overworld;
    move |world| drop(world.transaction(|tx| tx.set_block(dimension, pos(x), block)).expect("edits"))
}

fn set_here<S: Base>(overlay: &Overlay<S>, x: i64, ids: &Ids, block: BlockId) {
    overlay.transaction(|tx| tx.set_block(ids.overworld, pos(x), block)).expect("edits");
}

/// The blocks of the first chunk at some places.
fn blocks<const N: usize>(chunk: &Chunk, at: [u8; N]) -> [BlockId; N] {
    at.map(|x| chunk.block(LocalPos::new(x, 5, 6)))
}

fn record_id() -> RecordId {
    RecordId::new(uuid::Uuid::from_u128(9))
}

/// An edit of each kind.
fn write_all_kinds(overlay: &Overlay<World>, ids: &Ids) {
    let at = |x| ids.at(x, 0, 0);
    let point = EntityPos::new(ids.overworld, at(1).pos.min_block(), [0.5; 3]).expect("a point");
    let record = Record::new(point, "note", 1, b"hello".to_vec()).expect("short");
    let written = overlay.transaction(|tx| {
        tx.set_block(ids.overworld, pos(1), ids.glass)?;
        tx.delete(at(2));
        tx.save(at(9), filled(overlay.base(), ids.stone));
        tx.move_entity(uuid(1), Owner::Chunk(at(1)))?;
        tx.set_property(Property::Named(name("game:weather")), Some(b"rain".to_vec()));
        tx.put_object("chest", *b"gold")?;
        tx.put_record(record_id(), record);
        Ok::<_, Error>(())
    });
    written.expect("writes");
}

/// Checks that a layer shows the edit of each kind.
#[track_caller]
fn assert_all_kinds<S: Base>(shown: &S, ids: &Ids) {
    let chunks = shown.find_chunks(&[0, 1, 2, 9].map(|x| ids.at(x, 0, 0)));
    let chunks: Vec<_> = chunks.into_iter().map(|found| found.expect("reads").here()).collect();
    let [Some((edited, _)), Some((entered, _)), None, Some((added, _))] = &chunks[..] else {
        panic!("{chunks:?}")
    };
    assert_eq!(blocks(edited, [1, 2]), [ids.glass, ids.air]);
    assert_eq!((edited.entities(), entered.entities()), (&[][..], &[uuid(1)][..]));
    assert_eq!(blocks(added, [0]), [ids.stone]);
    let cow = shown.find_entity(uuid(1)).expect("reads").here().expect("is there").0;
    assert_eq!(cow.owner, Owner::Chunk(ids.at(1, 0, 0)));
    let weather = shown.find_property(&Property::Named(name("game:weather"))).expect("reads");
    assert_eq!(weather.here().expect("is there").0, b"rain");
    let chest = shown.find_object(&ObjectKey::new("chest").expect("a key")).expect("reads");
    assert_eq!(chest.here().expect("is there").0.bytes.as_deref(), Some(&b"gold"[..]));
    let note = shown.find_record(record_id()).expect("reads").here().expect("is there").0;
    assert_eq!(note.payload, b"hello");
}

#[test]
fn rows_of_version_1_are_read_and_merged_where_the_base_is_unchanged() {
    for deltas in [true, false] {
        for of in [Of::Pool, Of::RowsOfPool] {
            let drafts = Drafts::new(deltas, of, write_all_kinds);
            let (base, overlay) = drafts.open();
            let ids = &drafts.ids;
            assert_all_kinds(&overlay, ids);
            let diff = overlay.diff().expect("compares");
            let at = |x| ids.at(x, 0, 0);
            let expected = [
                (at(0), Difference::Changed),
                (at(1), Difference::Changed),
                (at(2), Difference::Deleted),
                (at(9), Difference::Added),
            ];
            assert_eq!(diff.chunks, expected);
            // A chunk that the overlay has not written is the base's own.
            save(&base, [(at(3), filled(&base, ids.glass))]);
            let asked = overlay.rebase(|key| panic!("{key}")).expect("compares");
            assert_eq!(asked, OverlayRebased::default());
            overlay.merge_into(&base).expect("merges");
            assert_all_kinds(&base, ids);
            assert_all_kinds(&overlay, ids);
            assert!(overlay.diff().expect("compares").is_empty());
            assert_sound(&base);
        }
    }
}

/// Merges, and gives the origin that the overlay wrote over where it is refused about the first chunk.
#[track_caller]
fn refused(overlay: &Overlay<World>, base: &World, ids: &Ids) -> Origin {
    let at = ids.at(0, 0, 0);
    let before = base.load(at).expect("reads");
    let error = overlay.merge_into(base).expect_err("both have changed it");
    assert_eq!(base.load(at).expect("reads"), before);
    match error.layer() {
        Some(OverlayError::BaseChanged { key, expected, found }) if *key == ConflictKey::Chunk(at) => {
            assert_ne!(found.opening, 0, "the base's edit is of this opening");
            *expected
        }
        _ => panic!("{error}"),
    }
}

#[test]
fn a_chunk_without_an_ancestor_that_both_changed_is_in_conflict_as_a_whole() {
    for deltas in [true, false] {
        for of in [Of::Pool, Of::RowsOfPool, Of::Ancestors] {
            for choice in [OverlayChoice::Ours, OverlayChoice::Theirs] {
                let drafts = Drafts::new(deltas, of, |overlay, ids| set_here(overlay, 1, ids, ids.glass));
                let (base, overlay) = drafts.open();
                let (ids, at) = (&drafts.ids, drafts.ids.at(0, 0, 0));
                set(2, ids, ids.stone)(&base);
                assert_eq!(refused(&overlay, &base, ids).opening != 0, of == Of::Ancestors);
                let asked = overlay.rebase(|_| OverlayChoice::Ask).expect("compares");
                assert_eq!((asked.ours, asked.theirs, asked.open), (0, 0, vec![ConflictKey::Chunk(at)]));
                refused(&overlay, &base, ids);

                let decided = overlay.rebase(|_| choice).expect("rebases");
                assert_eq!((decided.ours + decided.theirs, &decided.open[..]), (1, &[][..]));
                let shown = overlay.load(at).expect("reads").expect("is there");
                let expected = match choice {
                    OverlayChoice::Theirs => [ids.air, ids.stone],
                    // A delta shows what the base has beside it; a whole row does not.
                    _ if deltas => [ids.glass, ids.stone],
                    _ => [ids.glass, ids.air],
                };
                assert_eq!(blocks(&shown, [1, 2]), expected);
                // From here on the ancestor is known.
                set_here(&overlay, 3, ids, ids.glass);
                set(4, ids, ids.stone)(&base);
                overlay.merge_into(&base).expect("merges");
                let merged = base.load(at).expect("reads").expect("is there");
                assert_eq!(blocks(&merged, [1, 2]), expected);
                assert_eq!(blocks(&merged, [3, 4]), [ids.glass, ids.stone]);
                assert_sound(&base);
            }
        }
    }
}

#[test]
fn values_that_both_changed_are_in_conflict_and_decided() {
    let drafts = Drafts::new(true, Of::Pool, write_all_kinds);
    let (base, overlay) = drafts.open();
    let (ids, weather) = (&drafts.ids, Property::Named(name("game:weather")));
    let edited = base.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(ids.at(3, 0, 0)));
        tx.set_property(weather.clone(), Some(b"snow".to_vec()));
        tx.put_object("chest", *b"wood")?;
        tx.put_record(record_id(), Record::new(ids.cow_in(ids.at(3, 0, 0)).position, "note", 1, Vec::new())?);
        Ok::<_, Error>(())
    });
    edited.expect("edits");
    let open = overlay.rebase(|_| OverlayChoice::Ask).expect("compares").open;
    let is_asked = |wanted: &ConflictKey| open.contains(wanted);
    assert!(is_asked(&ConflictKey::Entity(uuid(1))), "{open:?}");
    assert!(is_asked(&ConflictKey::Property("game:weather".into())), "{open:?}");
    assert_eq!(open.iter().filter(|key| matches!(key, ConflictKey::Object(_))).count(), 1, "{open:?}");
    assert_eq!(open.iter().filter(|key| matches!(key, ConflictKey::Record(_))).count(), 1, "{open:?}");
    overlay.merge_into(&base).expect_err("nothing was decided");
    overlay.rebase(|_| OverlayChoice::Ours).expect("rebases");
    overlay.merge_into(&base).expect("merges");
    assert_all_kinds(&base, ids);
    assert_sound(&base);
}

/// Of a version that was made before the list of openings begins, nothing is certain: its chunk is not merged by cells.
#[test]
fn a_version_of_an_earlier_draft_is_no_certain_ancestor() {
    for deltas in [true, false] {
        let drafts = Drafts::new(deltas, Of::Pool, |_, _| {});
        let (base, overlay) = drafts.open();
        let ids = &drafts.ids;
        set_here(&overlay, 1, ids, ids.glass);
        let row_key = key::overlay_chunk(LEASE, ids.at(0, 0, 0));
        assert!(drafts.pool.get(Space::ChunkDelta, &row_key).expect("reads").is_some(), "it has one");
        set(2, ids, ids.stone)(&base);
        assert_eq!(refused(&overlay, &base, ids).opening, 0);
        // The base's own edit is of this opening, and certain.
        overlay.reset().expect("resets");
        set_here(&overlay, 1, ids, ids.glass);
        set(3, ids, ids.stone)(&base);
        overlay.merge_into(&base).expect("merges");
        let merged = base.load(ids.at(0, 0, 0)).expect("reads").expect("is there");
        assert_eq!(blocks(&merged, [1, 2, 3]), [ids.glass, ids.stone, ids.stone]);
    }
}

#[test]
fn an_overlay_over_an_overlay_of_an_earlier_draft_is_merged_unless_that_changed() {
    for is_changed in [false, true] {
        let above = Surviving::new(&Fuse::new());
        let drafts = Drafts::new(true, Of::Pool, |lower, ids| {
            set_here(lower, 1, ids, ids.glass);
            let arenas = Arenas::over(above.clone(), lower.clone(), &options()).expect("a base");
            set_here(&arenas.lease("ada", GameTick::new(1)).expect("leases"), 2, ids, ids.glass);
        });
        let (ids, (_, lower)) = (&drafts.ids, drafts.open());
        let arenas = Arenas::over(copy(&above, Of::Pool), lower.clone(), &options()).expect("opens");
        let upper = arenas.resume(0).expect("is leased");
        if is_changed {
            set_here(&lower, 3, ids, ids.stone);
            let error = upper.merge_into(&lower).expect_err("it has another edit");
            let Some(OverlayError::BaseChanged { expected, found, .. }) = error.layer() else {
                panic!("{error}")
            };
            assert_eq!((expected.layer, expected.opening, found.layer), (1, 0, 1));
            assert_ne!(found.opening, 0);
            continue;
        }
        upper.merge_into(&lower).expect("merges");
        let merged = lower.load(ids.at(0, 0, 0)).expect("reads").expect("is there");
        assert_eq!(blocks(&merged, [1, 2, 3]), [ids.glass, ids.glass, ids.air]);
    }
}

#[test]
fn a_pool_of_an_earlier_draft_begins_its_openings_with_its_next_commit() {
    let drafts = Drafts::new(true, Of::Pool, write_all_kinds);
    let (ids, disk) = (&drafts.ids, Disk::new());
    let folder = disk.root().join("arenas");
    std::fs::create_dir(&folder).expect("is new");
    let engine = RocksEngine::create(&folder.join("overlay"), &options().rocks()).expect("creates");
    as_draft(&drafts.pool, &engine, Of::Pool);
    engine.close().expect("closes");
    drop(engine);
    let base = World::builder().options(&drafts.options).over(drafts.world.clone()).expect("opens");

    let reader = Arenas::open_read_only(&folder, base.clone(), &options()).expect("opens");
    assert_all_kinds(&reader.resume(0).expect("is leased"), ids);
    drop(reader);
    let idle = Arenas::open(&folder, base.clone(), &options()).expect("opens");
    assert!(idle.engine().get(Space::WorldMeta, OPENINGS).expect("reads").is_none());
    assert_all_kinds(&idle.resume(0).expect("is leased"), ids);
    drop(idle);

    let arenas = Arenas::open(&folder, base.clone(), &options()).expect("opens");
    let (arena, last) = (arenas.resume(0).expect("is leased"), arenas.engine().last_commit().get());
    let at = ids.at(3, 0, 0);
    write(&arena, [(at, Some(filled(&base, ids.glass)))]);
    let row = arenas.engine().get(Space::WorldMeta, OPENINGS).expect("reads").expect("has begun");
    let frame = FrameView::open(Space::WorldMeta, OPENINGS, &row).expect("is sound");
    assert_eq!(frame.header().version, last + 1);
    assert_eq!(frame.payload()[..8], (last + 1).to_le_bytes());
    assert_eq!(arenas.verify(VerifyDepth::Full, |_| {}).expect("reads").findings, []);
    drop(row);
    drop((arena, arenas));
    let arena = Overlay::open(&folder, base.clone(), &options()).expect("opens");
    assert_all_kinds(&arena, ids);
    arena.merge_into(&base).expect("merges");
    assert_all_kinds(&base, ids);
    assert_eq!(base.load(at).expect("reads").as_deref(), Some(&filled(&base, ids.glass)));
    assert_sound(&base);
}
