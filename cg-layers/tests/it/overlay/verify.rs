//! Pools of arenas, verified.

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key;
use cg_format::overlay::{ArenaRow, Origin, OverlayRow};
use cg_format::record::Record;
use cg_format::{RecordId, Space};
use cg_store::engine::{Batch, Level};
use cg_store::verify::VerifyDepth;

use super::*;
use crate::fixture::name;
use crate::surviving::{Fuse, Surviving};

/// The lease of the first arena, as the first that is ever given.
const LEASE: u64 = 1;

struct Pool {
    base: World,
    ids: Ids,
    engine: Surviving,
}

/// A pool with one arena, which holds values of each kind.
fn pool() -> Pool {
    let (base, ids) = template();
    let engine = Surviving::new(&Fuse::new());
    let with_deltas = WorldOptions { deltas: true, ..options() };
    let arenas = Arenas::over(engine.clone(), base.clone(), &with_deltas).expect("a base");
    let arena = arenas.lease("ada", GameTick::new(1)).expect("leases");
    let at = |x| ids.at(x, 0, 0);
    let cow = ids.cow_in(at(7));
    let point = EntityPos::new(ids.overworld, at(7).pos.min_block(), [0.5; 3]).expect("a point");
    let record = Record::new(point, "note", 1, b"hello".to_vec()).expect("short");
    let written = arena.transaction(|tx| {
        tx.save(at(7), filled(&base, ids.stone));
        tx.delete(at(2));
        tx.set_block(ids.overworld, at(3).pos.min_block(), ids.glass)?;
        tx.put_entity(uuid(7), cow);
        tx.set_property(Property::Named(name("game:weather")), Some(b"rain".to_vec()));
        tx.put_object("chest", *b"gold")?;
        tx.put_record(RecordId::new(uuid::Uuid::from_u128(9)), record);
        Ok::<_, Error>(())
    });
    written.expect("writes");
    Pool { base, ids, engine }
}

impl Pool {
    fn findings(&self, depth: VerifyDepth) -> Vec<String> {
        let arenas = Arenas::over(self.engine.clone(), self.base.clone(), &options()).expect("opens");
        let report = arenas.verify(depth, |_| {}).expect("the engine works");
        report.findings.into_iter().map(|finding| finding.what).collect()
    }

    /// Puts or deletes rows past the pool.
    fn plant(&self, rows: impl IntoIterator<Item = (Space, Vec<u8>, Option<Draft>)>) {
        let mut batch = Batch::new();
        for (space, key, draft) in rows {
            match draft {
                Some(draft) => batch.put(space, key, draft, Stamp::Commit),
                None => batch.delete(space, key),
            }
        }
        let arenas = Arenas::over(self.engine.clone(), self.base.clone(), &options()).expect("opens");
        arenas.engine().commit(batch, &[], Level::Process).expect("commits");
    }

    #[track_caller]
    fn assert_found(&self, expected: &[&str]) {
        let found = self.findings(VerifyDepth::Full);
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.contains(expected), "{found} is not: {expected}");
        }
    }
}

fn row(value: Option<Vec<u8>>) -> Draft {
    let origin = Origin::ABSENT;
    let value = value.map(|value| move |out: &mut Vec<u8>| out.extend(value));
    Draft::plain(Codec::None, 0, |out| OverlayRow::encode(origin, value, out))
}

#[test]
fn a_sound_pool_is_verified_with_all_its_kinds() {
    let pool = pool();
    let arenas = Arenas::over(pool.engine.clone(), pool.base.clone(), &options()).expect("opens");
    let report = arenas.verify(VerifyDepth::Full, |_| {}).expect("the engine works");
    assert_eq!(report.findings, []);
    let checked = |what| report.checked.get(what).copied().unwrap_or_default();
    assert_eq!(checked("arenas"), 1);
    assert_eq!([checked("chunkl0"), checked("entity"), checked("worldProperties")], [3, 1, 1]);
    assert_eq!([checked("object"), checked("record")], [1, 2]);

    // What an expired lease leaves is never read again.
    let arena = arenas.resume(0).expect("is leased");
    arena.reset().expect("resets");
    drop((arena, arenas));
    pool.engine.overwrite(Space::ChunkL0, key::overlay_chunk(LEASE, pool.ids.at(7, 0, 0)));
    pool.assert_found(&[]);
}

#[test]
fn a_row_that_does_not_decode_is_named_with_its_arena() {
    let pool = pool();
    let at = pool.ids.at(7, 0, 0);
    let keys = [
        (Space::ChunkL0, key::overlay_chunk(LEASE, at).to_vec()),
        (Space::Entity, key::overlay_entity(LEASE, uuid(7)).to_vec()),
        (Space::Object, key::overlay_object(LEASE, b"chest")),
        (
            Space::RecordPlace,
            key::overlay_record_place(LEASE, RecordId::new(uuid::Uuid::from_u128(9))).to_vec(),
        ),
    ];
    for (space, key) in keys {
        pool.engine.overwrite(space, key);
    }
    assert_eq!(pool.findings(VerifyDepth::Quick), [""; 0], "the frames are sound");
    pool.assert_found(&[
        &format!("arena 0: {at} is damaged"),
        "arena 0: entity 00000000-0000-0000-0000-000000000007 is damaged",
        "arena 0: object `chest` is damaged",
        "arena 0: record 00000000-0000-0000-0000-000000000009 is damaged",
        "arena 0: no place names record 00000000-0000-0000-0000-000000000009",
    ]);
}

#[test]
fn rows_that_contradict_each_other_are_named() {
    let pool = pool();
    let at = pool.ids.at(7, 0, 0);
    let cow = |owner| {
        let mut bytes = Vec::new();
        pool.ids.cow_in(owner).encode(&mut bytes);
        row(Some(bytes))
    };
    let place = |n| (Space::Entity, key::overlay_entity(LEASE, uuid(n)).to_vec());
    let entity = |n, row| {
        let (space, key) = place(n);
        (space, key, Some(row))
    };
    // The cow of the chunk is deleted, another says that it is there, and one is in a chunk that is deleted.
    pool.plant([entity(7, row(None)), entity(8, cow(at)), entity(9, cow(pool.ids.at(2, 0, 0)))]);
    pool.assert_found(&[
        "arena 0: chunk 7, 0, 0 of dimension 0 lists entity 00000000-0000-0000-0000-000000000007, which is deleted",
        "arena 0: entity 00000000-0000-0000-0000-000000000008 is in chunk 7, 0, 0 of dimension 0, which does not list it",
        "arena 0: entity 00000000-0000-0000-0000-000000000009 is in chunk 2, 0, 0 of dimension 0, which is deleted",
    ]);
    pool.plant([
        entity(7, cow(pool.ids.at(30, 0, 0))),
        (place(8).0, place(8).1, None),
        (place(9).0, place(9).1, None),
    ]);
    pool.assert_found(&["which is in chunk 30, 0, 0 of dimension 0"]);
}

#[test]
fn arenas_that_share_a_lease_and_rows_of_arenas_are_named() {
    let pool = pool();
    let twin = ArenaRow { lease: LEASE, holder: Some("grace".into()), since: 1 };
    let twin = Draft::plain(Codec::None, 0, |out| twin.encode(out));
    pool.plant([(Space::WorldMeta, b"arena/00000001".to_vec(), Some(twin))]);
    pool.assert_found(&["arenas 0 and 1 have the same lease 1"]);
    pool.engine.overwrite(Space::WorldMeta, "arena/00000001");
    pool.engine.overwrite(Space::WorldMeta, "leases");
    pool.assert_found(&[
        "the row of arena 00000001 is damaged; `Arenas::reclaim`",
        "the number of the next lease",
    ]);
}

#[test]
fn a_key_without_a_lease_is_named() {
    let pool = pool();
    pool.plant([(Space::Entity, b"short".to_vec(), Some(row(None)))]);
    pool.assert_found(&["lease needs 8 bytes and 5 are left"]);
}
