//! Compaction of what gains by it, slice by slice.

use std::ops::Bound;

use cg_engine::KeyRange;

use super::*;

/// The bytes of a family: of its sorted files, of its blob files, and of their garbage.
fn bytes(engine: &RocksEngine, family: Family) -> [u64; 3] {
    let families = engine.usage().expect("is open").families;
    let held = families.into_iter().find(|usage| usage.family == family).expect("is listed");
    [held.table_bytes, held.blob_bytes, held.garbage_bytes]
}

/// Compacts all slices of a range; returns their last keys.
fn all_slices(engine: &RocksEngine, family: Family, keys: KeyRange<'_>) -> Vec<Vec<u8>> {
    let (mut from, mut ends) = (keys.0.map(<[u8]>::to_vec), Vec::<Vec<u8>>::new());
    while let Some(end) =
        engine.compact_next(family, (from.as_ref().map(|key| &key[..]), keys.1)).expect("compacts")
    {
        ends.push(end.to_vec());
        from = Bound::Excluded(end.into());
    }
    ends
}

#[test]
fn only_files_that_gain_are_rewritten() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    let row = |part: u8, index: u8| [part, index];
    for part in [b'a', b'b'] {
        for index in 0..100 {
            let mut batch = Batch::new();
            let draft = Draft::plain(Codec::None, 0, |out| out.extend([index; 100]));
            batch.put(Space::Entity, row(part, index), draft, Stamp::Commit);
            engine.commit(batch, &[], Level::Process).expect("commits");
        }
        engine.flush().expect("flushes");
        assert_eq!(all_slices(&engine, Family::Entity, ALL_KEYS), [row(part, 99)]);
    }
    let [two, ..] = bytes(&engine, Family::Entity);
    assert_eq!(all_slices(&engine, Family::Entity, ALL_KEYS), Vec::<Vec<u8>>::new());

    let mut batch = Batch::new();
    for index in 0..100 {
        batch.delete(Space::Entity, row(b'a', index));
    }
    engine.commit(batch, &[], Level::Process).expect("commits");
    engine.flush().expect("flushes");
    let only_b: KeyRange<'_> = (Bound::Included(b"b"), Bound::Unbounded);
    assert_eq!(
        all_slices(&engine, Family::Entity, only_b),
        Vec::<Vec<u8>>::new(),
        "it was deleted elsewhere"
    );
    assert_eq!(all_slices(&engine, Family::Entity, ALL_KEYS), [row(b'a', 99)]);
    let [one, ..] = bytes(&engine, Family::Entity);
    assert!((two / 2 - 100..=two / 2 + 100).contains(&one), "{one} of {two}");
}

/// Waits until a file of tombstones was compacted; `false` if it was not for some seconds.
fn is_compacted_by_itself(space: Space, family: Family, seconds: u64) -> bool {
    let dir = Dir::new();
    let engine = create(&dir.db());
    let change = |row: Option<[u8; 100]>| {
        let mut batch = Batch::new();
        for index in 0..200_u8 {
            match row {
                Some(row) => {
                    let draft = Draft::plain(Codec::None, 0, |out| out.extend(row));
                    batch.put(space, [index], draft, Stamp::Commit);
                }
                None => batch.delete(space, [index]),
            }
        }
        engine.commit(batch, &[], Level::Process).expect("commits");
        engine.flush().expect("flushes");
    };
    change(Some([7; 100]));
    all_slices(&engine, family, ALL_KEYS);
    change(None);
    let until = std::time::Instant::now() + std::time::Duration::from_secs(seconds);
    loop {
        let is_empty = bytes(&engine, family)[0] == 0;
        if is_empty || std::time::Instant::now() > until {
            return is_empty;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn files_of_tombstones_are_compacted_by_themselves() {
    for (space, family) in [
        (Space::ChunkL0, Family::ChunkL0),
        (Space::ClusterL1, Family::ChunkL1),
        (Space::ClusterL2, Family::ChunkL2),
    ] {
        assert!(is_compacted_by_itself(space, family, 60), "{}", family.name());
    }
    // A row of the index often replaces another one.
    assert!(!is_compacted_by_itself(Space::ChangeLog, Family::Index, 1));
}

#[test]
fn garbage_of_large_values_is_collected_if_there_is_much() {
    const ROW_BYTES: usize = 80_000;
    let dir = Dir::new();
    let engine = create(&dir.db());
    let rewrite = |rows: std::ops::Range<u8>, round: u8| {
        for index in rows {
            let mut batch = Batch::new();
            let draft = Draft::plain(Codec::None, 0, |out| out.extend(vec![round; ROW_BYTES]));
            batch.put(Space::ClusterL1, [index], draft, Stamp::Commit);
            engine.commit(batch, &[], Level::Process).expect("commits");
        }
        engine.flush().expect("flushes");
        engine.compact_next(Family::ChunkL1, ALL_KEYS).expect("compacts");
    };
    let usage = || {
        let [_, blobs, garbage] = bytes(&engine, Family::ChunkL1);
        (blobs / ROW_BYTES as u64, garbage / ROW_BYTES as u64)
    };
    rewrite(0..40, 0);
    assert_eq!(usage(), (40, 0));
    // A fortieth is left: to collect it would copy all.
    rewrite(0..1, 1);
    assert_eq!(usage(), (41, 1));
    rewrite(1..4, 2);
    assert_eq!(usage(), (44, 4), "found by the compaction that made it garbage");
    assert_eq!(all_slices(&engine, Family::ChunkL1, ALL_KEYS), [[39]]);
    assert_eq!(usage(), (40, 0));
    assert_eq!(all_slices(&engine, Family::ChunkL1, ALL_KEYS), Vec::<Vec<u8>>::new());
}
