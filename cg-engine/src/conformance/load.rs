//! Rows that are stored as they are.

use cg_format::key::Family;

use super::{SPACE, commit, payload, put, version};
use crate::{
    ALL_KEYS, Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine, EngineError, Fence, ReadableExt as _, SealedRow,
};

/// All rows of an engine, by family and key.
fn rows_of(engine: &dyn Engine) -> Vec<SealedRow> {
    let mut rows = Vec::new();
    for family in Family::ALL {
        let keep = |key: &[u8], bytes: &[u8]| {
            rows.push(SealedRow { family, key: key.into(), bytes: bytes.into() });
            Ok::<_, EngineError>(())
        };
        engine.try_scan(family, ALL_KEYS, keep).expect("scans");
    }
    rows
}

/// Whether the engine can load rows. One that cannot says so, and stores nothing.
fn loads(engine: &dyn Engine, rows: Vec<SealedRow>) -> bool {
    match engine.load(rows) {
        Ok(()) => true,
        Err(EngineError::Unsupported { what }) => {
            assert_eq!((what, rows_of(engine)), ("load rows", Vec::new()));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

pub(super) fn loaded_rows_are_the_same(engine: &dyn Engine, original: &dyn Engine) {
    for payload in [b"one", b"two"] {
        let mut batch = Batch::new();
        put(&mut batch, payload, payload);
        put(&mut batch, b"both", payload);
        commit(original, batch);
    }
    let (end, rows): (Vec<_>, Vec<_>) =
        rows_of(original).into_iter().partition(|row| *row.key == *COMMIT_SEQUENCE_KEY);
    if !loads(engine, rows.clone()) {
        return;
    }
    assert_eq!((engine.last_commit(), rows_of(engine)), (CommitSeq::NONE, rows.clone()));
    assert!(loads(engine, rows.clone()), "a call may be repeated");
    assert!(loads(engine, end));
    assert_eq!(engine.last_commit(), CommitSeq::new(2));
    assert_eq!(rows_of(engine), rows_of(original));
    let refused = engine.load(rows).expect_err("there are commits");
    assert!(
        matches!(&refused, EngineError::Fenced { why: Fence::Number { given, next } }
            if (given.get(), next.get()) == (1, 3)),
        "{refused}"
    );
    engine.sync().expect("syncs");
    assert_eq!(engine.last_synced(), CommitSeq::new(2));
    let mut batch = Batch::new();
    put(&mut batch, b"both", b"three");
    assert_eq!(commit(engine, batch), CommitSeq::new(3));
    assert_eq!((payload(engine, b"both"), version(engine, b"both")), (Some(b"three".to_vec()), Some(3)));
}

pub(super) fn rows_that_cannot_be_loaded_are_refused(engine: &dyn Engine) {
    let row =
        |family, key: &[u8], len: usize| SealedRow { family, key: key.into(), bytes: vec![0; len].into() };
    let cut = row(Family::WorldMeta, COMMIT_SEQUENCE_KEY, 3);
    let refused = engine.load(vec![row(SPACE.family(), b"a", 40), cut]);
    match refused {
        Err(EngineError::Unsupported { .. }) => {}
        Err(EngineError::Corrupt { message, .. }) => assert_eq!(message, "3 bytes are too few for a frame"),
        other => panic!("expected that it is refused, got {other:?}"),
    }
    assert_eq!(rows_of(engine), Vec::new());
}
