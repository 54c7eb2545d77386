//! Errors of a world, sorted by what the caller can do.

mod damage;
mod kind;
mod open;

use cg_format::{BlockId, ChunkAt, ComponentId, EntityId, EntityTypeId, RecordId, SideKind};
use cg_registry::RegistryError;

use crate::engine::{EngineError, ErrorKind};
use crate::storage::object_key::ObjectKey;
use crate::storage::staged::TooLong;
use crate::storage::value_check::IllegalValue;

pub use damage::{Damage, DamageCause};
pub use open::{NotResumed, OpenError};

/// Every error of a [`World`](crate::World). [`kind`](Self::kind) tells what the caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A stored row is damaged. The place is never overwritten blindly and never treated as absent.
    #[error("{damage}; {advice}", damage = .0, advice = .0.advice())]
    Corrupt(Box<Damage>),
    /// The world's registry rows do not decode.
    #[error("the world's registry is damaged: {0}; restore it from a backup")]
    Registry(#[from] RegistryError),
    /// The world cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Another transaction changed something that this transaction read, before it committed. Nothing was written.
    #[error("{key} was changed by another transaction since this one read it; run the transaction again")]
    Conflict {
        /// The changed value.
        key: ConflictKey,
    },
    /// A snapshot was to be saved under a name that is not allowed.
    #[error("a snapshot's name has 1 to 255 bytes, none of them zero; this one has {len_bytes}")]
    SnapshotName {
        /// Its length.
        len_bytes: usize,
    },
    /// A snapshot was to be saved under a name that is in use. Nothing was written.
    #[error("the world keeps a snapshot `{name}` already; delete it first, or choose another name")]
    SnapshotExists {
        /// The name.
        name: String,
    },
    /// A snapshot was deleted or replaced while it was being read.
    #[error("snapshot `{name}` was deleted or kept anew while it was read; read it again")]
    SnapshotReplaced {
        /// The name.
        name: String,
    },
    /// A column was requested between heights that are too far apart.
    #[error(
        "a column of {chunks} chunks was asked for, at most {} are given at once; ask for it in parts",
        crate::storage::options::MAX_COLUMN_CHUNKS
    )]
    ColumnTooHigh {
        /// Chunks between the heights, both included.
        chunks: u64,
    },
    /// A position outside the world.
    #[error(transparent)]
    Position(#[from] cg_format::OutOfRange),
    /// A point that is not a number or is outside the world.
    #[error(transparent)]
    Point(#[from] cg_format::entity::NotAPosition),
    /// A transaction was started inside another one on the same thread.
    #[error("a transaction is already running on this thread; use its handle instead of starting another")]
    Nested,
    /// A reference was added to a chunk while another chunk still holds it. Nothing was written.
    #[error("entity {id} belongs to {owner}; remove it there in the same transaction")]
    EntityOwned {
        /// The entity.
        id: EntityId,
        /// The chunk that holds it.
        owner: ChunkAt,
    },
    /// A chunk refers to an entity that the world does not have. Nothing was written.
    #[error("{at} refers to entity {id}, which the world does not have; put it in the same transaction")]
    EntityUnknown {
        /// The entity.
        id: EntityId,
        /// The chunk with the reference.
        at: ChunkAt,
    },
    /// The chunk that is to own an entity is not stored. Nothing was written.
    #[error("{at} is to own entity {id} and is not stored; save it first, or detach the entity")]
    OwnerAbsent {
        /// The entity.
        id: EntityId,
        /// The missing chunk.
        at: ChunkAt,
    },
    /// A chunk that must exist does not: it was never generated, or was deleted. Nothing was written.
    #[error("{at} is not stored; save it first")]
    ChunkAbsent {
        /// The missing chunk.
        at: ChunkAt,
    },
    /// A chunk uses a block id that the world has not issued. Nothing was written.
    #[error("{at} uses block id {}, and the world has issued {issued}; register the block's name first", id.get())]
    UnknownBlock {
        /// The chunk.
        at: ChunkAt,
        /// The id that was never issued.
        id: BlockId,
        /// The number of block ids.
        issued: u64,
    },
    /// A dimension that the world has not issued.
    #[error("dimension {found} is not registered, the world has {issued}; register its name first")]
    UnknownDimension {
        /// The number used.
        found: u64,
        /// The number of dimensions.
        issued: u64,
    },
    /// A chunk was built with another schema than the world's, so it could not be read again. Nothing was written.
    #[error(
        "{at} does not fit the world's schema at `{name}`: {why}; build chunks with the schema of the world's catalog"
    )]
    WrongSchema {
        /// The chunk.
        at: ChunkAt,
        /// The block or component at which they differ.
        name: String,
        /// Where chunk and schema differ.
        why: cg_format::chunk::Mismatch,
    },
    /// A chunk carries side data of a kind that the world has not issued. Nothing was written.
    #[error("{at} has side data of kind {}, and the world has issued {issued}; register the kind's name first", kind.get())]
    UnknownSide {
        /// The chunk.
        at: ChunkAt,
        /// The kind that was never issued.
        kind: SideKind,
        /// The number of kinds.
        issued: u64,
    },
    /// An entity is of a type that the world has not issued. Nothing was written.
    #[error("entity {id} is of type {}, and the world has issued {issued}; register the type's name first", kind.get())]
    UnknownEntityType {
        /// The entity.
        id: EntityId,
        /// The type that was never issued.
        kind: EntityTypeId,
        /// The number of types.
        issued: u64,
    },
    /// An entity has a component that the world has not issued. Nothing was written.
    #[error("entity {id} has component {:#x}, which the world has not issued; register its name first", component.get())]
    UnknownComponent {
        /// The entity.
        id: EntityId,
        /// The component that was never issued.
        component: ComponentId,
    },
    /// A value that the type of its component does not allow, with [`ValueCheck::Refuse`](crate::verify::ValueCheck). Nothing
    /// was written.
    #[error("{0}")]
    IllegalValue(Box<IllegalValue>),
    /// A component of fixed size in an entity has another length. Nothing was written.
    #[error(
        "entity {id} has {found} bytes of component `{name}`, whose size is {width_bytes}; give it as many"
    )]
    WrongComponentWidth {
        /// The entity.
        id: EntityId,
        /// The component.
        component: ComponentId,
        /// Its name.
        name: String,
        /// Its size in bytes, by the current schema.
        width_bytes: u32,
        /// The number of bytes that the entity has of it.
        found: usize,
    },
    /// Less disk space is free than the host reserves. Nothing was written, and nothing failed: reads, deletions and
    /// queued commits continue.
    #[error(
        "{free_bytes} bytes are free on the disk, less than the {min_free_bytes} that are to stay free; make room, or let less stay free (`min_free_bytes`, `cg --min-free`), and try again"
    )]
    LowDiskSpace {
        /// The free space.
        free_bytes: u64,
        /// The limit in [`WorldOptions::min_free_bytes`](crate::WorldOptions::min_free_bytes).
        min_free_bytes: u64,
    },
    /// The queue of accepted commits is full, or its free room is reserved for callers that [wait for
    /// it](crate::World::wait_for_room). Nothing of the transaction was kept.
    #[error(
        "{queued_bytes} bytes wait to be written, and the queue takes {limit_bytes}; wait for room and try again"
    )]
    Busy {
        /// The memory of the queued commits.
        queued_bytes: u64,
        /// The world's limit.
        limit_bytes: u64,
    },
    /// A batch that was [submitted](crate::World::submit) was refused when it was accepted. Nothing of it was written.
    /// The call that returns this error has done its own work.
    #[error("a batch that was submitted is refused, and nothing of it is stored: {error}{}", and_more(*others))]
    DeferredWrite {
        /// The error that a transaction with the same writes would have got.
        error: Box<Error>,
        /// The number of further refusals since.
        others: u64,
    },
    /// A value exceeds one of the world's limits, or rows that must be in one batch exceed the largest batch. Nothing
    /// was written.
    #[error(
        "{what} takes {len_bytes} bytes, the world's limit is {limit_bytes}; raise the limit or split it"
    )]
    TooLarge {
        /// The measured value.
        what: String,
        /// Its encoded length.
        len_bytes: u64,
        /// The limit.
        limit_bytes: u64,
    },
    /// A key that no object can have.
    #[error("the key of an object has {len_bytes} bytes, allowed are 1 to 512")]
    ObjectKey {
        /// Its length.
        len_bytes: usize,
    },
    /// An object was to be written at a version below its current or last one. Nothing was written.
    #[error(
        "object `{key}` is at version {stored}, and version {offered} was to be written; versions do not go back"
    )]
    VersionGoesBack {
        /// The object.
        key: ObjectKey,
        /// The stored version.
        stored: i64,
        /// The version that was to be written.
        offered: i64,
    },
    /// An object was to be written at a version below 0. Nothing was written.
    #[error("object `{key}` was to be written at version {offered}; versions count from 0")]
    NegativeVersion {
        /// The object.
        key: ObjectKey,
        /// The version that was to be written.
        offered: i64,
    },
    /// An object has reached the highest version. Nothing was written.
    #[error("object `{key}` is at version 2^63 - 1, and there is none above")]
    VersionsUsedUp {
        /// The object.
        key: ObjectKey,
    },
    /// An edit that the chunk refuses.
    #[error(transparent)]
    Edit(#[from] cg_format::chunk::EditError),
    /// A row has a schema generation that the world's registry does not contain.
    #[error(
        "{what} was written with schema generation {found}, the registry has up to {newest}: a registry row is missing"
    )]
    UnknownGeneration {
        /// The row.
        what: String,
        /// The generation found in its frame.
        found: u32,
        /// The newest generation known.
        newest: u32,
    },
    /// A stored chunk cannot be upgraded to the current schema generation. It stays as it is stored.
    #[error("{at} cannot be upgraded: {why}")]
    NotUpgraded {
        /// The chunk.
        at: ChunkAt,
        /// The reason: what is missing.
        why: cg_registry::UpgradeError,
    },
    /// A stored entity cannot be upgraded to the current schema generation. It stays as it is stored.
    #[error("entity {id} cannot be upgraded: {why}")]
    EntityNotUpgraded {
        /// The entity.
        id: EntityId,
        /// The reason: what is missing.
        why: cg_registry::UpgradeError,
    },
    /// A value is too long for its stored length field.
    #[error(transparent)]
    TooLong(#[from] cg_format::entity::TooLong),
    /// An opacity tile has more boundaries than its layout can hold. Nothing was written.
    #[error(transparent)]
    OpacityTile(#[from] cg_format::opacity::TileTooLarge),
    /// The world does not keep what was asked for.
    #[error("the world keeps no {what}: rebuild it, or open the world with `Keep::On`")]
    NotKept {
        /// What is not kept.
        what: &'static str,
    },
    /// A value that a setting of the world cannot have, or a setting that there is not.
    #[error("setting `{name}` cannot be `{found}`: {allowed}")]
    Setting {
        /// The name of the setting.
        name: String,
        /// The value.
        found: String,
        /// The values that it can have, in words.
        allowed: &'static str,
    },
    /// The length of a slice is not the number of blocks of its box.
    #[error("a slice of {found} values does not fit a box of {expected} blocks")]
    BoxLength {
        /// The slice's length.
        found: u64,
        /// The number of blocks of the box.
        expected: u128,
    },
    /// A tier policy whose numbers contradict each other.
    #[error(transparent)]
    Policy(#[from] cg_tiering::PolicyError),
    /// A name that cannot be registered.
    #[error(transparent)]
    Name(#[from] cg_registry::NameError),
    /// The world was closed.
    #[error("the world is closed")]
    Closed,
    /// A function of a [`WriteBatch`](crate::WriteBatch) panicked. Nothing of the batch was written.
    #[error("a function of a batch panicked: {message}; nothing of the batch was written")]
    EditPanicked {
        /// The message of the panic.
        message: String,
    },
    /// A load in the background panicked. Nothing was changed in memory or on disk.
    #[error("loading {at} in the background panicked: {message}; the log of the process says where")]
    LoadPanicked {
        /// One of the chunks that were to be loaded.
        at: ChunkAt,
        /// The message of the panic.
        message: String,
    },
    /// An overlay or a segmented world refused; [`layer`](Self::layer) has the reason.
    #[error("{error}")]
    Layer {
        /// The kind of the error, by the action that the caller can take.
        kind: ErrorKind,
        /// The reason.
        error: Box<dyn std::error::Error + Send + Sync>,
    },
    /// [`World::resume`](crate::World::resume) did not make the world writable.
    #[error("the world stays read-only: {0}")]
    NotResumed(#[from] NotResumed),
    /// The storage engine failed.
    #[error(transparent)]
    Engine(EngineError),
}

impl Error {
    /// The error of a layer over worlds: an `OverlayError` or a
    /// `SegmentError`. `None` if the error is of another type.
    pub fn layer<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Layer { error, .. } => error.downcast_ref(),
            _ => None,
        }
    }
}

impl From<TooLong> for Error {
    fn from(found: TooLong) -> Self {
        let TooLong { space, key, len_bytes, limit_bytes } = found;
        let what = format!("row {} of {}", hex(&key), space.family().name());
        Self::TooLarge { what, len_bytes, limit_bytes }
    }
}

impl From<EngineError> for Error {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Closed => Self::Closed,
            other => match Damage::of_engine(&other) {
                Some(damage) => Self::Corrupt(Box::new(damage)),
                None => Self::Engine(other),
            },
        }
    }
}

/// The key of a value that two transactions can conflict about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum ConflictKey {
    /// A chunk, with its side data and entity references.
    #[error("{0}")]
    Chunk(ChunkAt),
    /// An entity.
    #[error("entity {0}")]
    Entity(EntityId),
    /// A property of the world or of a mod.
    #[error("property `{0}`")]
    Property(String),
    /// An object.
    #[error("object `{0}`")]
    Object(ObjectKey),
    /// A spatial record.
    #[error("record {0}")]
    Record(RecordId),
}

fn and_more(others: u64) -> String {
    if others == 0 { String::new() } else { format!("; so are {others} more, which the log names") }
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
