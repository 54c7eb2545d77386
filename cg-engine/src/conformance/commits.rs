//! Numbers, versions, guards and limits of commits.

use cg_format::Space;
use cg_format::frame::{FrameView, LEN_BYTES};

use super::{SPACE, commit, payload, put, put_all, row, version, versions};
use crate::{Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine, EngineError, Fence, Guard, Level, Stamp};

pub(super) fn frames_get_their_version(engine: &dyn Engine) {
    let mut batch = Batch::new();
    batch.put(SPACE, b"new", row(b"1"), Stamp::Commit);
    batch.put(SPACE, b"moved", row(b"2"), Stamp::Keep(40));
    let seq = commit(engine, batch);
    assert_eq!(version(engine, b"new"), Some(seq.get()));
    assert_eq!(version(engine, b"moved"), Some(40));
}

pub(super) fn sequences_rise_by_one_and_are_stored(engine: &dyn Engine) {
    for expected in 1..=3 {
        let mut batch = Batch::new();
        // A batch cannot set the sequence, not even on purpose.
        batch.put(Space::WorldMeta, COMMIT_SEQUENCE_KEY, row(b"x"), Stamp::Keep(99));
        batch.delete_range(Space::WorldMeta, b"a", b"z");
        assert_eq!(commit(engine, batch), CommitSeq::new(expected));
        assert_eq!(engine.last_commit(), CommitSeq::new(expected));
        let stored =
            engine.get(Space::WorldMeta, COMMIT_SEQUENCE_KEY).expect("reads").expect("every commit has it");
        let frame = FrameView::open(Space::WorldMeta, COMMIT_SEQUENCE_KEY, &stored).expect("is sealed");
        assert_eq!((frame.header().version, frame.payload()), (expected, &b""[..]));
    }
    assert_eq!(commit(engine, Batch::new()), CommitSeq::new(4), "an empty batch is a commit too");
}

pub(super) fn a_rearrangement_takes_no_sequence(engine: &dyn Engine) {
    let mut batch = Batch::new();
    put(&mut batch, b"a", b"1");
    commit(engine, batch);
    let batches = engine.batch_count();
    let mut moved = Batch::new();
    moved.put(Space::Object, b"b", row(b"2"), Stamp::Commit);
    moved.put(Space::Object, b"c", row(b"3"), Stamp::Keep(9));
    let seq = engine
        .commit(moved.maintenance(), &[Guard::version(Space::Object, b"a", 1)], Level::Process)
        .expect("commits");
    assert_eq!((seq, engine.last_commit()), (CommitSeq::new(1), CommitSeq::new(1)));
    let keys: [(Space, &[u8]); 3] =
        [(Space::Object, b"b"), (Space::Object, b"c"), (Space::WorldMeta, COMMIT_SEQUENCE_KEY)];
    assert_eq!(versions(engine, &keys), [Some(1), Some(9), Some(1)]);
    assert!(engine.batch_count() > batches, "a reader in between notices");
    let before = engine.get(Space::Object, b"b").expect("reads").expect("was written").to_vec();
    let mut again = Batch::new();
    again.put(Space::Object, b"b", row(b"other"), Stamp::Commit);
    let same = || Guard::same(Space::Object, b"b", &before);
    engine.commit(again.maintenance(), &[same()], Level::Process).expect("it is the row");
    assert_eq!(version(engine, b"b"), Some(1), "of the same version");
    let refused = engine.commit(Batch::new(), &[same()], Level::Process);
    assert!(
        matches!(refused, Err(EngineError::Conflict { expected: Some(1), found: Some(1), .. })),
        "{refused:?}"
    );
    assert_eq!(commit(engine, Batch::new()), CommitSeq::new(2));
}

pub(super) fn a_run_takes_the_numbers_that_it_was_given(engine: &dyn Engine) {
    put_all(engine, &[b"before"]);
    let batches = [b"a", b"b", b"c"].map(|key| {
        let mut batch = Batch::new();
        put(&mut batch, key, b"");
        // The last batch wins.
        put(&mut batch, b"last", key);
        batch
    });
    let last = engine.commit_run(CommitSeq::new(2), batches.into(), Level::Power).expect("commits");
    assert_eq!((last, engine.last_commit()), (CommitSeq::new(4), CommitSeq::new(4)));
    assert_eq!(engine.last_synced(), CommitSeq::new(4));
    let keys: [(Space, &[u8]); 4] = [(SPACE, b"a"), (SPACE, b"b"), (SPACE, b"c"), (SPACE, b"last")];
    assert_eq!(versions(engine, &keys), [Some(2), Some(3), Some(4), Some(4)]);
    assert_eq!(payload(engine, b"last").as_deref(), Some(&b"c"[..]));
}

pub(super) fn a_run_with_a_wrong_number_writes_nothing(engine: &dyn Engine) {
    put_all(engine, &[b"a"]);
    for given in [1, 3].map(CommitSeq::new) {
        let mut batch = Batch::new();
        put(&mut batch, b"b", b"");
        let next = CommitSeq::new(2);
        match engine.commit_run(given, vec![batch], Level::Process) {
            Err(EngineError::Fenced { why }) if why == Fence::Number { given, next } => {}
            other => panic!("expected to be fenced, got {other:?}"),
        }
    }
    assert_eq!((version(engine, b"b"), engine.last_commit()), (None, CommitSeq::new(1)));
}

pub(super) fn a_conflict_writes_nothing(engine: &dyn Engine) {
    put_all(engine, &[b"a"]);
    let mut batch = Batch::new();
    put(&mut batch, b"a", b"changed");
    put(&mut batch, b"b", b"new");
    let guards = [Guard::version(SPACE, b"a", 1), Guard::version(SPACE, b"a", 7)];
    match engine.commit(batch, &guards, Level::Power) {
        Err(EngineError::Conflict { space: SPACE, key, expected: Some(7), found: Some(1) }) => {
            assert_eq!(&*key, b"a");
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
    assert_eq!(payload(engine, b"a").as_deref(), Some(&b""[..]));
    assert_eq!(payload(engine, b"b"), None);
    assert_eq!(engine.last_commit(), CommitSeq::new(1));
    assert_eq!(commit(engine, Batch::new()), CommitSeq::new(2), "a conflict uses up no sequence");
}

pub(super) fn guards_see_versions_and_absence(engine: &dyn Engine) {
    let refused = |guard: Guard| match engine.commit(Batch::new(), &[guard], Level::Process) {
        Err(EngineError::Conflict { expected, found, .. }) => (expected, found),
        other => panic!("expected a conflict, got {other:?}"),
    };
    let accepted = |guard: Guard| {
        engine.commit(Batch::new(), &[guard], Level::Process).expect("the guard holds");
    };
    accepted(Guard::absent(SPACE, b"a"));
    assert_eq!(refused(Guard::version(SPACE, b"a", 1)), (Some(1), None));
    put_all(engine, &[b"a"]);
    accepted(Guard::version(SPACE, b"a", 2));
    assert_eq!(refused(Guard::absent(SPACE, b"a")), (None, Some(2)));
    // A guard checks the stored row and ignores what its own batch writes.
    let mut batch = Batch::new();
    batch.delete(SPACE, b"a");
    engine.commit(batch, &[Guard::version(SPACE, b"a", 2)], Level::Process).expect("the guard holds");
    accepted(Guard::absent(SPACE, b"a"));
}

pub(super) fn a_batch_over_the_limit_writes_nothing(engine: &dyn Engine) {
    let max_bytes = engine.caps().max_batch_bytes;
    let of_len = |len_bytes: u64| {
        let mut batch = Batch::new();
        put(&mut batch, b"key", &vec![7; len_bytes as usize - b"key".len() - LEN_BYTES]);
        assert_eq!(batch.len_bytes(), len_bytes);
        batch
    };
    match engine.commit(of_len(max_bytes + 1), &[], Level::Process) {
        Err(EngineError::TooLarge { len_bytes, max_bytes: limit }) => {
            assert_eq!((len_bytes, limit), (max_bytes + 1, max_bytes));
        }
        other => panic!("expected the batch to be too large, got {other:?}"),
    }
    assert_eq!(payload(engine, b"key"), None);
    assert_eq!(engine.last_commit(), CommitSeq::NONE);
    commit(engine, of_len(max_bytes));
    assert!(payload(engine, b"key").is_some());
}
