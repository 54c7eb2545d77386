//! The kind of every error, and the code of every kind.

use std::collections::HashSet;
use std::sync::Arc;

use cg_format::Space;
use cg_format::key::Family;

use super::*;
use crate::{CommitSeq, Fence, Place};

fn io(kind: io::ErrorKind) -> EngineError {
    EngineError::Io { path: "CURRENT".into(), source: kind.into() }
}

fn no_space() -> EngineError {
    EngineError::NoSpace { message: "full".into() }
}

fn fenced() -> EngineError {
    EngineError::Fenced { why: Fence::Number { given: CommitSeq::new(1), next: CommitSeq::new(2) } }
}

fn read_only(cause: EngineError) -> EngineError {
    EngineError::ReadOnly { cause: Arc::new(cause) }
}

fn write_failed(cause: EngineError) -> EngineError {
    EngineError::WriteFailed { cause: Arc::new(cause) }
}

fn not_reopened(cause: EngineError) -> EngineError {
    EngineError::NotReopened { cause: Arc::new(cause) }
}

#[test]
fn every_error_has_the_kind_of_what_the_caller_can_do() {
    use ErrorKind as K;
    let (dir, seq) = (|| "world".into(), CommitSeq::new(1));
    let key = Box::from(&b"key"[..]);
    let table = [
        (EngineError::Conflict { space: Space::Object, key, expected: None, found: Some(1) }, K::Conflict),
        (EngineError::TooLarge { len_bytes: 2, max_bytes: 1 }, K::TooLarge),
        (no_space(), K::LowDisk),
        (write_failed(no_space()), K::InDoubt),
        (write_failed(fenced()), K::InDoubt),
        (EngineError::SyncFailed { seq, cause: Arc::new(no_space()) }, K::InDoubt),
        (read_only(no_space()), K::ReadOnly),
        (read_only(write_failed(no_space())), K::ReadOnly),
        (read_only(fenced()), K::Fenced),
        (read_only(write_failed(fenced())), K::Fenced),
        (not_reopened(no_space()), K::ReadOnly),
        (not_reopened(fenced()), K::Fenced),
        (fenced(), K::Fenced),
        (EngineError::Unavailable { message: "no route".into() }, K::Unavailable),
        (EngineError::SnapshotGone { seq }, K::Unavailable),
        (EngineError::Panicked { operation: "writing", message: "bug".into() }, K::InDoubt),
        (EngineError::OpenedReadOnly, K::ReadOnly),
        (EngineError::Closed, K::Closed),
        (EngineError::Locked { dir: dir(), by: None }, K::Busy),
        (EngineError::InUse { place: "postgres://".into(), owner: "process 1".into() }, K::Busy),
        (EngineError::MissingFamily { dir: dir(), family: Family::Object }, K::Damaged),
        (EngineError::UnknownFamily { dir: dir(), name: "moods".into() }, K::Unsupported),
        (EngineError::NotAnEngineDir { dir: dir(), reason: "no CURRENT".into() }, K::NotFound),
        (EngineError::AlreadyExists { dir: dir() }, K::Invalid),
        (EngineError::Corrupt { place: Place::Unknown, message: "bad".into() }, K::Damaged),
        (EngineError::LostCommits { floor: CommitSeq::new(2), found: seq }, K::Damaged),
        (
            EngineError::OtherHistory { file: "000012.log".into(), commit: seq, found: 1, expected: 2 },
            K::Damaged,
        ),
        (EngineError::Unsupported { what: "fly" }, K::Unsupported),
        (EngineError::ProcessLimit { what: "files".into(), source: io::ErrorKind::Other.into() }, K::Engine),
        (io(io::ErrorKind::PermissionDenied), K::Engine),
        (io(io::ErrorKind::StorageFull), K::LowDisk),
        (io(io::ErrorKind::QuotaExceeded), K::LowDisk),
        (EngineError::Other { operation: "reading", source: "bug".into() }, K::Engine),
    ];
    for (error, expected) in table {
        assert_eq!(error.kind(), expected, "{error}");
    }
}

#[test]
fn every_kind_has_a_code_of_its_own_and_stands_in_the_table() {
    use ErrorKind as K;
    let kinds = [
        (K::Damaged, "damaged"),
        (K::Conflict, "conflict"),
        (K::Busy, "busy"),
        (K::LowDisk, "low_disk"),
        (K::ReadOnly, "read_only"),
        (K::Fenced, "fenced"),
        (K::Unavailable, "unavailable"),
        (K::InDoubt, "in_doubt"),
        (K::NotFound, "not_found"),
        (K::TooLarge, "too_large"),
        (K::Invalid, "invalid"),
        (K::Closed, "closed"),
        (K::Unsupported, "unsupported"),
        (K::Engine, "engine"),
    ];
    assert_eq!(kinds.map(|(_, code)| code).into_iter().collect::<HashSet<_>>().len(), kinds.len());
    let rows: Vec<_> =
        include_str!("../kind.rs").lines().filter(|line| line.starts_with("/// | `")).collect();
    assert_eq!(rows.len(), kinds.len());
    for ((kind, code), row) in kinds.into_iter().zip(rows) {
        assert_eq!(kind.as_str(), code);
        assert!(row.starts_with(&format!("/// | `{kind:?}` | `{code}` |")), "{row}");
    }
}
