//! Syncing, flushing, measuring and closing.

use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;

use super::{SPACE, commit, keys, put_all};
use crate::{ALL_KEYS, Batch, CommitSeq, Engine, EngineError, KeyRange, Level, Readable, ReadableExt as _};

pub(super) fn a_sync_covers_what_was_committed(engine: &dyn Engine) {
    commit(engine, Batch::new());
    engine.sync().expect("syncs");
    assert_eq!(engine.last_synced(), CommitSeq::new(1));
    let seq = engine.commit(Batch::new(), &[], Level::Power).expect("commits");
    assert!(engine.last_synced() >= seq);
    engine.sync().expect("nothing is left to sync");
}

pub(super) fn a_commit_is_durable_at_once_where_levels_are_one(engine: &dyn Engine) {
    let seq = commit(engine, Batch::new());
    if !engine.caps().levels_apart {
        assert_eq!(engine.last_synced(), seq);
    }
    assert!(engine.last_synced() <= engine.last_commit());
}

pub(super) fn flushing_and_compacting_change_no_row(engine: &dyn Engine) {
    put_all(engine, &[b"a", b"b", b"c"]);
    engine.flush().expect("flushes");
    let mut batch = Batch::new();
    batch.delete(SPACE, b"b");
    commit(engine, batch);
    for family in Family::ALL {
        engine.compact(family, ALL_KEYS).expect("compacts");
    }
    let backwards: KeyRange<'_> = (Bound::Included(b"c"), Bound::Included(b"a"));
    engine.compact(SPACE.family(), backwards).expect("compacts nothing");
    assert_eq!(engine.compact_next(SPACE.family(), backwards).expect("compacts nothing"), None);
    assert_eq!(
        engine.compact_next(SPACE.family(), ALL_KEYS).expect("finds nothing"),
        None,
        "all is compacted"
    );
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), [b"a", b"c"]);
}

pub(super) fn usage_lists_every_family(engine: &dyn Engine) {
    put_all(engine, &[b"a", b"b"]);
    engine.flush().expect("flushes");
    let usage = engine.usage().expect("is open");
    let families: Vec<_> = usage.families.iter().map(|family| family.family).collect();
    assert_eq!(families, Family::ALL);
    let rows =
        usage.families.iter().find(|family| family.family == SPACE.family()).map(|family| family.row_count);
    // An engine may estimate it.
    assert!(rows.is_some_and(|rows| rows > 0), "{rows:?} rows of two are counted");
}

pub(super) fn a_closed_engine_refuses(engine: &dyn Engine) {
    put_all(engine, &[b"a"]);
    let snapshot = engine.snapshot().expect("is open");
    engine.close().expect("closes");
    engine.close().expect("a second time does nothing");
    let closed = |result: Result<(), EngineError>| {
        assert!(matches!(result, Err(EngineError::Closed)), "expected that it is closed, got {result:?}");
    };
    let visit = |_: &[u8], _: &[u8]| ControlFlow::<()>::Continue(());
    closed(engine.commit(Batch::new(), &[], Level::Process).map(drop));
    closed(engine.get(SPACE, b"a").map(drop));
    closed(engine.get_many(&[(SPACE, b"a")]).remove(0).map(drop));
    closed(engine.scan(SPACE.family(), ALL_KEYS, visit).map(drop));
    closed(engine.sync());
    closed(engine.flush());
    closed(engine.compact(SPACE.family(), ALL_KEYS));
    closed(engine.compact_next(SPACE.family(), ALL_KEYS).map(drop));
    closed(engine.usage().map(drop));
    closed(engine.snapshot().map(drop));
    closed(snapshot.get(SPACE, b"a").map(drop));
    closed(snapshot.scan(SPACE.family(), ALL_KEYS, visit).map(drop));
    assert_eq!(engine.last_commit(), CommitSeq::new(1));
    assert_eq!(engine.last_synced(), CommitSeq::new(1), "closing syncs");
}
