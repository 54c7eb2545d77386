//! Values and batches at the limits of a database.

use std::ops::ControlFlow;

use cg_engine::{
    ALL_KEYS, Batch, CommitSeq, Engine as _, EngineError, Family, Level, Readable as _, ReadableExt as _,
    SealedRow, Space, Stamp,
};
use cg_format::frame::{Codec, Draft, LEN_BYTES};
use cg_postgres::{Options, PostgresEngine};

use crate::database::database;

/// The most that a database takes at once.
const GIB: u64 = 1 << 30;

fn draft(len_bytes: usize) -> Draft {
    Draft::plain(Codec::None, 0, |out| out.resize(out.len() + len_bytes, 7))
}

#[test]
fn a_value_of_a_gibibyte_is_refused_before_it_is_sent() {
    let Some(database) = database() else { return };
    let test = database.world();
    drop(test.create());
    for max_batch_bytes in [Options::default().max_batch_bytes, 4 * GIB] {
        let mut options = Options::default();
        options.max_batch_bytes = max_batch_bytes;
        let engine = PostgresEngine::open(&test.address, &options).expect("opens");
        assert_eq!(engine.caps().max_batch_bytes, GIB);
        let mut batch = Batch::new();
        batch.put(Space::Object, b"a", draft(GIB as usize), Stamp::Commit);
        let refused = engine.commit(batch, &[], Level::Process);
        assert!(
            matches!(refused, Err(EngineError::TooLarge { len_bytes, max_bytes: GIB }) if len_bytes > GIB),
            "{refused:?}"
        );
        let row = SealedRow {
            family: Family::Object,
            key: b"a".as_slice().into(),
            bytes: vec![0; GIB as usize].into(),
        };
        let refused = engine.load(vec![row]);
        assert!(
            matches!(refused, Err(EngineError::TooLarge { len_bytes, max_bytes: GIB }) if len_bytes == GIB + 1),
            "{refused:?}"
        );
        // A batch may have it, and a message may not.
        let longest = GIB - (1 << 20);
        let mut batch = Batch::new();
        batch.put(Space::Object, b"a", draft(longest as usize), Stamp::Commit);
        let refused = engine.commit(batch, &[], Level::Process);
        assert!(
            matches!(refused, Err(EngineError::TooLarge { len_bytes, max_bytes }) if len_bytes > longest && max_bytes == longest),
            "{refused:?}"
        );
        assert!(engine.failure().is_none());
        assert!(engine.get(Space::Object, b"a").expect("reads").is_none());
        engine.close().expect("closes");
    }
    let engine = test.open().expect("opens");
    assert_eq!(engine.commit(Batch::new(), &[], Level::Process).expect("commits"), CommitSeq::new(1));
}

/// The longest row that is taken, or 64 MiB.
#[test]
fn a_long_row_is_stored_and_read() {
    let Some(database) = database() else { return };
    let test = database.world();
    drop(test.create());
    let engine = PostgresEngine::open(&test.address, &Options::default()).expect("opens");
    let len_bytes = if is_long() { GIB as usize - (1 << 20) } else { 64 << 20 };
    let mut batch = Batch::new();
    batch.put(Space::Object, b"a", draft(len_bytes - LEN_BYTES), Stamp::Commit);
    engine.commit(batch, &[], Level::Process).expect("commits");
    let is_whole = |row: &[u8]| row.len() == len_bytes && row.ends_with(&[7; 64]);
    assert!(engine.get(Space::Object, b"a").expect("reads").is_some_and(|row| is_whole(&row)));
    let many = engine.get_many(&[(Space::Object, b"absent"), (Space::Object, b"a")]);
    let many: Vec<_> = many.into_iter().map(|row| row.expect("reads").map(|row| is_whole(&row))).collect();
    assert_eq!(many, [None, Some(true)]);
    let mut scanned = Vec::new();
    let scan = engine.scan(Family::Object, ALL_KEYS, |_, row| {
        scanned.push(is_whole(row));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!((scan.expect("scans"), scanned), (None, vec![true]));
}

fn is_long() -> bool {
    std::env::var_os("CG_LONG_TESTS").is_some()
}

#[test]
fn a_batch_of_many_rows_is_stored_and_removed() {
    let Some(database) = database() else { return };
    let test = database.world();
    let engine = test.create();
    let all = if is_long() { 1_000_000 } else { 100_000_u32 };
    // In the order of their numbers.
    let key = |n: u32| n.to_le_bytes().into_iter().rev().collect::<Vec<u8>>();
    let count = || {
        let mut rows = 0_u32;
        let scanned = engine.try_scan(Family::Object, ALL_KEYS, |found, _| {
            assert_eq!(found, key(rows));
            rows += 1;
            Ok::<_, EngineError>(())
        });
        scanned.expect("scans");
        rows
    };
    let mut batch = Batch::new();
    for n in 0..all {
        batch.put(Space::Object, key(n), draft(8), Stamp::Commit);
    }
    assert_eq!(engine.commit(batch, &[], Level::Process).expect("commits"), CommitSeq::new(1));
    assert_eq!(count(), all);
    let mut batch = Batch::new();
    for n in 0..all {
        batch.delete(Space::Object, key(n));
    }
    assert_eq!(engine.commit(batch, &[], Level::Process).expect("commits"), CommitSeq::new(2));
    assert_eq!(count(), 0);
}
