//! Every error with its kind.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use cg_format::chunk::{EditError, Mismatch};
use cg_format::entity::{NotAPosition, TooLong};
use cg_format::key::Family;
use cg_format::opacity::TileTooLarge;
use cg_format::{
    BlockId, ChunkAt, ChunkPos, ComponentId, DecodeError, Dimension, EntityId, EntityTypeId, OutOfRange,
    Problem, Section, SideKind, Space,
};
use cg_registry::types::Breach;
use cg_registry::{Name, RegistryError, UpgradeError};
use cg_tiering::PolicyError;
use uuid::Uuid;

use super::*;
use crate::engine::{CommitSeq, EngineError, Fence};
use crate::storage::error::{ConflictKey, Damage, DamageCause};
use crate::storage::object_key::ObjectKey;
use crate::storage::record_shape::RecordShape;
use crate::storage::value_check::{IllegalValue, ValuePlace};

use ErrorKind as K;

fn at() -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0))
}

fn id() -> EntityId {
    EntityId::new(Uuid::from_u128(1))
}

fn damaged() -> DecodeError {
    DecodeError::new(Section::Frame, 0, Problem::Truncated { field: "length", needed: 4, left: 0 })
}

fn boxed(error: Error) -> Box<Error> {
    Box::new(error)
}

const BUSY: Error = Error::Busy { queued_bytes: 2, limit_bytes: 1 };

fn unavailable() -> EngineError {
    EngineError::Unavailable { message: "no route".into() }
}

fn in_doubt() -> EngineError {
    EngineError::WriteFailed { cause: Arc::new(unavailable()) }
}

#[track_caller]
fn check(table: impl IntoIterator<Item = (Error, ErrorKind)>) {
    for (error, kind) in table {
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn what_is_stored_and_its_names() {
    let damage = Damage {
        space: Space::ChunkL0,
        key: Vec::new(),
        place: "a chunk".into(),
        problem: DamageCause::Bytes(damaged()),
    };
    let function_missing = || UpgradeError::FunctionMissing { component: "game:power".into() };
    let (found, newest, issued, component) = (2, 1, 1, ComponentId::new(1));
    let out_of_range = OutOfRange { axis: 'x', unit: "chunks", found: 2, min: 0, max: 1 };
    let why = Mismatch::UnknownBlock { block: BlockId::new(1) };
    let breach = Breach { field: "level".into(), found: "2".into(), allowed: "0 or 1".into() };
    let (place, name, pack) = (ValuePlace::Entity(id()), "a:b".into(), "a".into());
    let illegal = IllegalValue { place, name, pack, breach };
    check([
        (Error::Corrupt(Box::new(damage)), K::Damaged),
        (Error::Registry(RegistryError::Bytes { row: "blocks".into(), error: damaged() }), K::Damaged),
        (Error::UnknownGeneration { what: "a chunk".into(), found, newest }, K::Damaged),
        (Error::NotUpgraded { at: at(), why: function_missing() }, K::Unsupported),
        (Error::EntityNotUpgraded { id: id(), why: function_missing() }, K::Unsupported),
        (Error::UnknownBlock { at: at(), id: BlockId::new(1), issued }, K::Invalid),
        (Error::UnknownDimension { found: 1, issued }, K::Invalid),
        (Error::Setting { name: "a".into(), found: "b".into(), allowed: "c" }, K::Invalid),
        (Error::UnknownSide { at: at(), kind: SideKind::new(1), issued }, K::Invalid),
        (Error::UnknownEntityType { id: id(), kind: EntityTypeId::new(1), issued }, K::Invalid),
        (Error::UnknownComponent { id: id(), component }, K::Invalid),
        (Error::IllegalValue(Box::new(illegal)), K::Invalid),
        (
            Error::WrongComponentWidth { id: id(), component, name: "a".into(), width_bytes: 1, found: 2 },
            K::Invalid,
        ),
        (Error::WrongSchema { at: at(), name: "game:stone".into(), why }, K::Invalid),
        (Error::Edit(EditError::UnknownBlock { block: BlockId::new(1) }), K::Invalid),
        (Error::Name(Name::new("stone").unwrap_err()), K::Invalid),
        (Error::Position(out_of_range), K::Invalid),
        (Error::Point(NotAPosition::Fraction { axis: 'x', found: 2.0 }), K::Invalid),
    ]);
}

#[test]
fn what_a_transaction_is_refused_for() {
    let key = || ObjectKey::new("spawn").unwrap();
    check([
        (Error::Conflict { key: ConflictKey::Entity(id()) }, K::Conflict),
        (BUSY, K::Busy),
        (Error::LowDiskSpace { free_bytes: 1, min_free_bytes: 2 }, K::LowDisk),
        (Error::Nested, K::Invalid),
        (Error::EntityOwned { id: id(), owner: at() }, K::Invalid),
        (Error::EntityUnknown { id: id(), at: at() }, K::NotFound),
        (Error::OwnerAbsent { id: id(), at: at() }, K::NotFound),
        (Error::ChunkAbsent { at: at() }, K::NotFound),
        (Error::ObjectKey { len_bytes: 0 }, K::Invalid),
        (Error::VersionGoesBack { key: key(), stored: 2, offered: 1 }, K::Invalid),
        (Error::NegativeVersion { key: key(), offered: -1 }, K::Invalid),
        (Error::VersionsUsedUp { key: key() }, K::Invalid),
        (Error::TooLarge { what: "a chunk".into(), len_bytes: 2, limit_bytes: 1 }, K::TooLarge),
        (Error::TooLong(TooLong { what: "a component", len_bytes: 2, max_bytes: 1 }), K::TooLarge),
        (Error::OpacityTile(TileTooLarge { needed_bytes: 1 }), K::TooLarge),
        (Error::DeferredWrite { error: boxed(Error::ChunkAbsent { at: at() }), others: 0 }, K::NotFound),
    ]);
}

#[test]
fn what_other_calls_answer() {
    let name = || "spawn".to_owned();
    check([
        (Error::Open(OpenError::NotEmpty { at: std::path::Path::new("world").into() }), K::Invalid),
        (Error::SnapshotName { len_bytes: 0 }, K::Invalid),
        (Error::SnapshotExists { name: name() }, K::Invalid),
        (Error::SnapshotReplaced { name: name() }, K::Conflict),
        (Error::ColumnTooHigh { chunks: 1 << 40 }, K::TooLarge),
        (Error::BoxLength { found: 1, expected: 2 }, K::Invalid),
        (Error::Policy(PolicyError::ColdBeforeWarm { warm_after_ticks: 2, cold_after_ticks: 1 }), K::Invalid),
        (Error::Closed, K::Closed),
        (Error::EditPanicked { message: "bug".into() }, K::Invalid),
        (Error::LoadPanicked { at: at(), message: "bug".into() }, K::Engine),
        (Error::Layer { kind: K::Busy, error: "in use".into() }, K::Busy),
        (Error::NotResumed(NotResumed::InUse { waited: Duration::ZERO }), K::Busy),
        (Error::Engine(unavailable()), K::Unavailable),
        (Error::Engine(EngineError::OpenedReadOnly), K::ReadOnly),
    ]);
}

#[test]
fn why_a_directory_does_not_open() {
    let path = || "world".into();
    let io = |kind: io::ErrorKind| OpenError::Io { action: "read", path: path(), source: kind.into() };
    let shape = RecordShape::default();
    let table = [
        (OpenError::NotAWorld { at: path().into(), why: "empty".into() }, K::NotFound),
        (OpenError::NotEmpty { at: path().into() }, K::Invalid),
        (OpenError::HalfCreated { at: path().into() }, K::Damaged),
        (OpenError::NewerFormat { field: "format", found: 2, newest: 1 }, K::Unsupported),
        (OpenError::DamagedWorldFile { path: path(), what: "cut".into() }, K::Damaged),
        (OpenError::RecordShape { stored: shape, offered: shape }, K::Invalid),
        (OpenError::OtherSignature { at: path().into(), stored: None, offered: "game".into() }, K::Invalid),
        (OpenError::NotASignature { found: String::new() }, K::Invalid),
        (OpenError::NeedsPlan { report: "a pack is gone".into() }, K::Invalid),
        (
            OpenError::Engine { at: path().into(), source: EngineError::Locked { dir: path(), by: None } },
            K::Busy,
        ),
        (OpenError::UnfinishedCommit { commit: CommitSeq::new(1) }, K::ReadOnly),
        (
            OpenError::DamagedCommit { family: Family::Object, key: Box::default(), what: "cut".into() },
            K::Damaged,
        ),
        (OpenError::Threads { source: "none left".into() }, K::Engine),
        (io(io::ErrorKind::PermissionDenied), K::Engine),
        (io(io::ErrorKind::StorageFull), K::LowDisk),
    ];
    for (error, kind) in table {
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn why_a_world_is_not_resumed() {
    let no_space = || Arc::new(EngineError::NoSpace { message: "full".into() });
    let (seq, newer) = (CommitSeq::new(1), CommitSeq::new(2));
    let fenced = EngineError::Fenced { why: Fence::Number { given: seq, next: newer } };
    let table = [
        (NotResumed::SyncFailed { cause: no_space() }, K::InDoubt),
        (NotResumed::LostCommits { promised: newer, found: seq }, K::Damaged),
        (NotResumed::UnknownCommits { promised: seq, found: newer }, K::Fenced),
        (NotResumed::Fenced { cause: Arc::new(fenced), written: seq, sent: seq, accepted: newer }, K::Fenced),
        (NotResumed::NotReopened { cause: no_space() }, K::LowDisk),
        (NotResumed::InUse { waited: Duration::ZERO }, K::Busy),
    ];
    for (error, kind) in table {
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[test]
fn a_call_is_made_again_where_nothing_can_come_of_it_twice() {
    let layer = |kind| Error::Layer { kind, error: "a reason".into() };
    let conflict = || Error::Conflict { key: ConflictKey::Entity(id()) };
    for error in [conflict(), BUSY, unavailable().into(), layer(K::Conflict)] {
        assert!(error.is_retryable(), "{error}");
    }
    let submitted = Error::DeferredWrite { error: boxed(unavailable().into()), others: 0 };
    assert_eq!(submitted.kind(), K::Unavailable);
    let read_only = EngineError::ReadOnly { cause: Arc::new(unavailable()) };
    for error in [in_doubt().into(), layer(K::InDoubt), submitted, read_only.into(), Error::Nested] {
        assert!(!error.is_retryable(), "{error}");
    }
}
