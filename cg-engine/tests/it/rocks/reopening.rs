//! Opening again: no other engine can take the directory between the old engine and the new one.

use super::*;
use cg_engine::Reopened;

fn writable(reopened: Result<Reopened, EngineError>) -> Box<dyn Engine> {
    match reopened.expect("opens") {
        Reopened::Writable(engine) => engine,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_directory_stays_locked_until_it_is_open_again() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    put(&engine, b"a", b"1", Level::Power);
    let reopen = engine.reopening();
    drop(engine);
    let locked = |options: &RocksOptions| {
        let opened = RocksEngine::open(&dir.db(), options);
        let by = Some(std::process::id());
        assert!(
            matches!(&opened, Err(EngineError::Locked { by: holder, .. }) if *holder == by),
            "{opened:?}"
        );
    };
    locked(&options());
    locked(&reading());
    for expected in [false, true] {
        let opened = reopen(&|_| Ok(expected)).expect("opens");
        assert_eq!(matches!(opened, Reopened::Writable(_)), expected, "{opened:?}");
        locked(&options());
        drop(opened);
        locked(&options());
    }
    let engine = writable(reopen(&|found| Ok(found.last_commit == CommitSeq::new(1))));
    drop(reopen);
    locked(&options());
    engine.commit(Batch::new(), &[], Level::Power).expect("commits");
    drop(engine);
    assert_eq!(open(&dir.db()).last_commit(), CommitSeq::new(2));
}

#[test]
fn a_directory_that_another_one_replaced_is_locked_anew() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    put(&engine, b"a", b"1", Level::Power);
    let copy = dir.db().with_file_name("copy");
    engine.checkpoint(&copy).expect("copies");
    let reopen = engine.reopening();
    drop(engine);
    fs::remove_dir_all(dir.db()).expect("removes");
    fs::rename(&copy, dir.db()).expect("renames");
    let other = open(&dir.db());
    let refused = reopen(&|_| Ok(true));
    assert!(matches!(&refused, Err(EngineError::Locked { .. })), "{refused:?}");
    drop(other);
    let unexpected = reopen(&|_| Ok(false));
    assert!(matches!(unexpected, Ok(Reopened::Unexpected(_))), "{unexpected:?}");
    drop(unexpected);
    assert_eq!(writable(reopen(&|_| Ok(true))).last_commit(), CommitSeq::new(1));
}
