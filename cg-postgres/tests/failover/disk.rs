//! A server whose disk is full.
//!
//! `CG_PG_SMALL` is the address of a server whose data is on a small disk, and its log on another one.
//! `CG_PG_SMALL_BALLAST` is a file on that disk, some megabytes large. The test removes it to make space.

use std::env;

use cg_engine::{Batch, Engine as _, EngineError, Level, Readable as _, Reopened, Space, Stamp};
use cg_format::frame::{Codec, Draft};
use cg_postgres::PostgresEngine;

use crate::database::Database;

const ROW_BYTES: usize = 1 << 20;
/// The small disk has room for fewer rows.
const MAX_ROWS: u64 = 2000;

fn put(engine: &PostgresEngine, number: u64) -> Result<u64, EngineError> {
    let mut batch = Batch::new();
    let draft = Draft::plain(Codec::None, 0, |out| out.resize(out.len() + ROW_BYTES, 7));
    batch.put(Space::Object, number.to_le_bytes(), draft, Stamp::Commit);
    engine.commit(batch, &[], Level::Power).map(cg_engine::CommitSeq::get)
}

#[test]
fn a_full_disk_loses_nothing_and_writing_goes_on_when_there_is_space() {
    let (Ok(url), Ok(ballast)) = (env::var("CG_PG_SMALL"), env::var("CG_PG_SMALL_BALLAST")) else {
        eprintln!("\n*** NOT TESTED: no full disk: set CG_PG_SMALL and CG_PG_SMALL_BALLAST ***\n");
        return;
    };
    let world = Database { url }.world();
    let engine = world.create();
    let mut written = 0;
    let message = loop {
        match put(&engine, written + 1) {
            Ok(seq) => written = seq,
            Err(EngineError::NoSpace { message }) => break message,
            Err(other) => panic!("after {written} commits: expected that the disk is full, got {other:?}"),
        }
        assert!(written < MAX_ROWS, "the disk is not small");
    };
    assert!(message.contains("53100"), "{message}");
    let refused = put(&engine, written + 1);
    assert!(matches!(refused, Err(EngineError::ReadOnly { .. })), "{refused:?}");
    for number in [1, written] {
        assert!(engine.get(Space::Object, &number.to_le_bytes()).expect("reads go on").is_some());
    }
    assert!(engine.get(Space::Object, &(written + 1).to_le_bytes()).expect("reads go on").is_none());
    std::fs::remove_file(ballast).expect("is there");
    let reopen = engine.reopening();
    drop(engine);
    let reopened = reopen(&|found| Ok(found.last_commit.get() == written)).expect("is opened again");
    let Reopened::Writable(engine) = reopened else { panic!("{reopened:?}") };
    let mut batch = Batch::new();
    batch.delete(Space::Object, 1_u64.to_le_bytes());
    assert_eq!(engine.commit(batch, &[], Level::Power).expect("there is space").get(), written + 1);
    println!("a full disk after {written} commits of 1 MiB: {message}; 0 lost, writing went on");
}
