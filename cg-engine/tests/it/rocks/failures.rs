//! A disk that refuses: the next log of the database is a device that is always full, or that cannot be synced.
#![cfg(target_os = "linux")]

use super::*;

/// An engine whose next writes go to a device instead of a log.
fn with_log_on(dir: &Dir, device: &str) -> RocksEngine {
    let engine = create(&dir.db());
    put(&engine, b"before", b"1", Level::Power);
    // RocksDB numbers its files in sequence, and opens the next log wherever its name leads.
    for number in 0..200 {
        let path = dir.db().join(format!("{number:06}.log"));
        if !path.exists() {
            std::os::unix::fs::symlink(device, path).expect("links");
        }
    }
    engine.flush().expect("flushes, and begins a new log");
    engine
}

/// Opens again with the links gone.
fn reopened(dir: &Dir) -> RocksEngine {
    for entry in fs::read_dir(dir.db()).expect("lists") {
        let path = entry.expect("lists").path();
        if path.is_symlink() {
            fs::remove_file(path).expect("removes");
        }
    }
    open(&dir.db())
}

fn batch(key: &[u8]) -> Batch {
    let mut batch = Batch::new();
    batch.put(Space::Object, key, Draft::plain(Codec::None, 0, |out| out.push(1)), Stamp::Commit);
    batch
}

#[track_caller]
fn check_read_only(engine: &RocksEngine) {
    for result in [
        engine.commit(batch(b"later"), &[], Level::Process).map(drop),
        engine.sync(),
        engine.flush(),
        engine.compact(Family::Object, ALL_KEYS),
    ] {
        assert!(matches!(result, Err(EngineError::ReadOnly { .. })), "{result:?}");
    }
    assert!(engine.get(Space::Object, b"before").expect("reads go on").is_some());
    assert!(engine.get(Space::Object, b"later").expect("reads go on").is_none());
}

#[test]
fn a_full_disk_writes_nothing_and_ends_the_writing() {
    let dir = Dir::new();
    let engine = with_log_on(&dir, "/dev/full");
    let error = engine.commit(batch(b"too much"), &[], Level::Process).expect_err("the disk is full");
    assert!(matches!(error, EngineError::NoSpace { .. }) && error.wrote_nothing(), "{error:?}");
    assert!(engine.get(Space::Object, b"too much").expect("reads").is_none());
    assert_eq!(engine.last_commit(), CommitSeq::new(1));
    check_read_only(&engine);
    assert!(matches!(engine.close(), Err(EngineError::ReadOnly { .. })), "a close cannot hide it");
    drop(engine);

    let engine = reopened(&dir);
    assert_eq!(engine.last_commit(), CommitSeq::new(1));
    assert_eq!(put(&engine, b"after", b"2", Level::Power), CommitSeq::new(2));
}

/// That the sync fails shows also that there is one: a device that holds nothing takes every write.
#[test]
fn a_failed_sync_is_told_once_and_never_tried_again() {
    let dir = Dir::new();
    let engine = with_log_on(&dir, "/dev/null");
    let seq = engine.commit(batch(b"submitted"), &[], Level::Process).expect("is handed to the system");
    assert_eq!(engine.last_synced(), CommitSeq::new(1));
    match engine.commit(batch(b"to be synced"), &[], Level::Power) {
        Err(EngineError::SyncFailed { seq: failed, .. }) => assert_eq!(failed.get(), seq.get() + 1),
        other => panic!("expected a failed sync, got {other:?}"),
    }
    assert!(engine.get(Space::Object, b"to be synced").expect("reads").is_some(), "it is applied and seen");
    assert_eq!(engine.last_synced(), CommitSeq::new(1));
    check_read_only(&engine);
    drop(engine);
    assert_eq!(reopened(&dir).last_commit(), CommitSeq::new(1));
}
