//! What can go wrong with a world, sorted by whose move it is.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cg_format::key::Family;
use cg_format::{
    BlockId, ChunkAt, ComponentId, DecodeError, EntityId, EntityTypeId, RecordId, SideKind, Space, key,
};
use cg_registry::RegistryError;

use crate::engine::EngineError;
use crate::engine::staged::TooLong;
use crate::object::ObjectKey;
use crate::record::RecordShape;

/// Everything a [`World`](crate::World) reports.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A stored row does not say what it should. The place is never overwritten blindly and never taken for absent.
    #[error("{damage}; {advice}", damage = .0, advice = .0.advice())]
    Corrupt(Box<Damage>),
    /// The world's registry rows do not decode.
    #[error("the world's registry is damaged: {0}; restore it from a backup")]
    Registry(#[from] RegistryError),
    /// The world does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Something this transaction read was changed by another one before it committed. Nothing was written.
    #[error("{key} was changed by another transaction since this one read it; run the transaction again")]
    Conflict {
        /// What was changed.
        key: ConflictKey,
    },
    /// A snapshot is to be kept under a name that cannot be one.
    #[error("a snapshot's name has 1 to 255 bytes, none of them zero; this one has {len_bytes}")]
    SnapshotName {
        /// Its length.
        len_bytes: usize,
    },
    /// A snapshot is to be kept under the name of another. Nothing was written.
    #[error("the world keeps a snapshot `{name}` already; delete it first, or choose another name")]
    SnapshotExists {
        /// The name.
        name: String,
    },
    /// A snapshot was deleted, or another kept under its name, after a reader had begun with it.
    #[error("snapshot `{name}` was deleted or kept anew while it was read; read it again")]
    SnapshotReplaced {
        /// The name.
        name: String,
    },
    /// A position outside the world.
    #[error(transparent)]
    Position(#[from] cg_format::OutOfRange),
    /// A point that is no number or outside the world.
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
    /// A chunk that must be there is not: it was never generated, or was deleted. Nothing was written.
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
        /// How many block ids there are.
        issued: u64,
    },
    /// A dimension that the world has not issued.
    #[error("dimension {found} is not registered, the world has {issued}; register its name first")]
    UnknownDimension {
        /// The number used.
        found: u64,
        /// How many dimensions there are.
        issued: u64,
    },
    /// A chunk was built with another schema than the world's, so it could not be read again. Nothing was written.
    #[error(
        "{at} does not fit the world's schema: {why}; build chunks with the schema of the world's catalog"
    )]
    WrongSchema {
        /// The chunk.
        at: ChunkAt,
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
        /// How many kinds there are.
        issued: u64,
    },
    /// An entity is of a type that the world has not issued. Nothing was written.
    #[error("entity {id} is of type {}, and the world has issued {issued}; register the type's name first", kind.get())]
    UnknownEntityType {
        /// The entity.
        id: EntityId,
        /// The type that was never issued.
        kind: EntityTypeId,
        /// How many types there are.
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
    /// An entity's component of fixed size has another length. Nothing was written.
    #[error(
        "entity {id} has {found} bytes of component {:#x}, whose size is {width_bytes}; give it as many",
        component.get()
    )]
    WrongComponentWidth {
        /// The entity.
        id: EntityId,
        /// The component.
        component: ComponentId,
        /// Its size in bytes, by the current schema.
        width_bytes: u32,
        /// How many bytes the entity has of it.
        found: usize,
    },
    /// The disk has less room than the world's host demands. Nothing was written, and nothing failed: reads, deletions
    /// and what is queued go on.
    #[error(
        "{free_bytes} bytes are free on the disk, less than the {min_free_bytes} that are to stay free; make room and try again"
    )]
    NoRoom {
        /// What is free.
        free_bytes: u64,
        /// What [`WorldOptions::min_free_bytes`](crate::WorldOptions::min_free_bytes) demands.
        min_free_bytes: u64,
    },
    /// So much is accepted and not yet written that nothing more is taken. Nothing of the transaction was kept.
    #[error(
        "{queued_bytes} bytes wait to be written, and the queue takes {limit_bytes}; wait for room and try again"
    )]
    Busy {
        /// Memory of what waits.
        queued_bytes: u64,
        /// The world's limit.
        limit_bytes: u64,
    },
    /// A value is over one of the world's limits, or what belongs together is longer than any batch. Nothing was written.
    #[error(
        "{what} takes {len_bytes} bytes, the world's limit is {limit_bytes}; raise the limit or split it"
    )]
    TooLarge {
        /// What was measured.
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
    /// An object was to be written at a version below the one that it has or had. Nothing was written.
    #[error(
        "object `{key}` is at version {stored}, and version {offered} was to be written; versions do not go back"
    )]
    VersionGoesBack {
        /// The object.
        key: ObjectKey,
        /// The version that the store knows.
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
    /// An object is at the last version there is. Nothing was written.
    #[error("object `{key}` is at version 2^63 - 1, and there is none above")]
    VersionsUsedUp {
        /// The object.
        key: ObjectKey,
    },
    /// An edit that the chunk refuses.
    #[error(transparent)]
    Edit(#[from] cg_format::chunk::EditError),
    /// A row carries a schema generation that the world's registry does not have.
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
    /// A stored chunk cannot be carried to the current schema generation. It is kept as it is stored.
    #[error("{at} cannot be upgraded: {why}")]
    NotUpgraded {
        /// The chunk.
        at: ChunkAt,
        /// What is missing.
        why: cg_registry::UpgradeError,
    },
    /// A stored entity cannot be carried to the current schema generation. It is kept as it is stored.
    #[error("entity {id} cannot be upgraded: {why}")]
    EntityNotUpgraded {
        /// The entity.
        id: EntityId,
        /// What is missing.
        why: cg_registry::UpgradeError,
    },
    /// A value is longer than its stored length can say.
    #[error(transparent)]
    TooLong(#[from] cg_format::entity::TooLong),
    /// An opacity tile has more boundaries than its layout can count. Nothing was written.
    #[error(transparent)]
    OpacityTile(#[from] cg_format::opacity::TileTooLarge),
    /// A slice that is not as long as its box has blocks.
    #[error("a slice of {found} values does not fit a box of {expected} blocks")]
    BoxLength {
        /// The slice's length.
        found: u64,
        /// The box's blocks.
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
    /// Loading in the background panicked. Nothing was changed; what memory and disk hold is as it was.
    #[error("loading {at} in the background panicked: {message}; the log of the process says where")]
    LoadPanicked {
        /// One of the chunks that were to be loaded.
        at: ChunkAt,
        /// What the panic said.
        message: String,
    },
    /// An overlay does not go on over its base.
    #[error(transparent)]
    Overlay(#[from] crate::overlay::OverlayError),
    /// A segmented world does not do what it was asked.
    #[error(transparent)]
    Segment(#[from] crate::segment::SegmentError),
    /// [`World::resume`](crate::World::resume) did not make the world writable.
    #[error("the world stays read-only: {0}")]
    NotResumed(#[from] NotResumed),
    /// The storage engine failed.
    #[error(transparent)]
    Engine(EngineError),
}

impl Error {
    /// Whether it says that something stored is damaged, by the store's own sums or by the engine's.
    pub(crate) const fn is_damage(&self) -> bool {
        matches!(self, Self::Corrupt(_) | Self::Engine(EngineError::Corrupt { .. }))
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
            other => Self::Engine(other),
        }
    }
}

/// Why a world stays read-only.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotResumed {
    /// A sync failed. The system may have dropped what it could not write and may call the next sync a success, so
    /// nobody knows what is on the disk.
    #[error(
        "a sync failed, and nobody knows what is on the disk now ({cause}); close the world, check the disk, open the \
         world again and run `cg verify`, or restore a backup"
    )]
    SyncFailed {
        /// What the system said.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Commits are gone that were reported as written. What is left can be read.
    #[error(
        "commits up to {promised} were reported as written, and the newest that was found is {found}; close the world \
         and restore a backup, or open it again and go on without them"
    )]
    LostCommits {
        /// The newest commit that was reported.
        promised: u64,
        /// The newest that was found.
        found: u64,
    },
    /// There are commits that this world has not made.
    #[error(
        "the newest commit that was reported as written is {promised}, and {found} was found, which this process has \
         not made; close the world, find out who else writes to its directory, and open it again"
    )]
    UnknownCommits {
        /// The newest commit that was reported.
        promised: u64,
        /// The newest that was found.
        found: u64,
    },
    /// The files could not be opened for writing. If they can be read, reads go on.
    #[error("its files could not be opened for writing ({cause}); remove the cause and call `resume` again")]
    NotReopened {
        /// What the engine said.
        #[source]
        cause: Arc<EngineError>,
    },
    /// Somebody reads rows all the while, or is in the middle of a long iteration.
    #[error(
        "its engine was in use for all of {} ms; end long iterations and call `resume` again", waited.as_millis()
    )]
    InUse {
        /// How long was waited.
        waited: Duration,
    },
}

/// A row that is not what its key says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} is damaged ({space:?} row {}): {problem}", hex(key))]
pub struct Damage {
    /// The kind of row.
    pub space: Space,
    /// Its key.
    pub key: Vec<u8>,
    /// What the row is, in words.
    pub place: String,
    /// What is wrong, and at which byte of the row.
    pub problem: DecodeError,
}

impl Damage {
    /// What a host or a person does about it.
    const fn advice(&self) -> &'static str {
        match self.space {
            Space::ChunkL0 | Space::Entity if self.is_of_overlay() => {
                "reset the overlay, or restore it from a copy; its base is not touched"
            }
            Space::ChunkL0
            | Space::ClusterL1
            | Space::ClusterL2
            | Space::Entity
            | Space::Object
            | Space::Record
            | Space::RecordPlace => {
                "run `cg verify`, then restore it from a checkpoint or set it aside with `cg quarantine`"
            }
            Space::OpacityTile | Space::OpacityPatch => "`World::rebuild_opacity` draws the map anew",
            _ => "restore it from a checkpoint",
        }
    }

    /// Whether the row's key begins with a lease.
    const fn is_of_overlay(&self) -> bool {
        matches!(self.key.len(), key::OVERLAY_CHUNK_LEN_BYTES | key::OVERLAY_ENTITY_LEN_BYTES)
    }

    /// Damage in the row of a chunk or cluster, met while looking for a chunk.
    pub(crate) fn of_chunk(space: Space, key: &[u8], at: ChunkAt, problem: DecodeError) -> Error {
        Error::Corrupt(Box::new(Self { space, key: key.into(), place: at.to_string(), problem }))
    }

    /// Damage in another row.
    pub(crate) fn of_row(space: Space, key: &[u8], place: impl Into<String>, problem: DecodeError) -> Error {
        Error::Corrupt(Box::new(Self { space, key: key.into(), place: place.into(), problem }))
    }
}

/// What two transactions can disagree about.
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

/// Why a directory does not open as a world. No byte of it was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory is not a world.
    #[error("{} is not a world: {why}", path.display())]
    NotAWorld {
        /// The directory.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// A world is to be created where something already is.
    #[error("{} already holds files; a world is created in an empty or missing directory", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// Its creation was interrupted: it holds nothing of value.
    #[error("{} was never finished being created; delete the directory and create the world again", path.display())]
    HalfCreated {
        /// The directory.
        path: PathBuf,
    },
    /// A newer release wrote it.
    #[error(
        "{field} is {found}, and this release knows {newest}; open the world with the release that wrote it"
    )]
    NewerFormat {
        /// The version field.
        field: &'static str,
        /// What was found.
        found: u32,
        /// What this release knows.
        newest: u32,
    },
    /// `world.cg` is damaged.
    #[error("{} is damaged: {what}; restore it from a backup or a checkpoint of this world", path.display())]
    DamagedWorldFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The world's records lie in a tree of another shape than the one asked for.
    #[error(
        "the world's records lie in a tree of shape ({}), and ({}) was asked for; a world keeps its shape for ever",
        stored.settings(),
        offered.settings()
    )]
    RecordShape {
        /// The world's.
        stored: RecordShape,
        /// The one asked for.
        offered: RecordShape,
    },
    /// The world was made for another application, or for another layout of one.
    #[error(
        "{} has {}, and `{offered}` was asked for",
        path.display(),
        stored.as_ref().map_or("no signature".into(), |stored| format!("the signature `{stored}`"))
    )]
    OtherSignature {
        /// The directory.
        path: PathBuf,
        /// The world's signature.
        stored: Option<String>,
        /// The one asked for.
        offered: String,
    },
    /// A signature that does not fit into a line.
    #[error("`{}` is no signature; it is 1 to 256 bytes without control characters", found.escape_debug())]
    NotASignature {
        /// What was given.
        found: String,
    },
    /// The offered packs do not fit the stored registry as they are.
    #[error("the packs need decisions before the world opens:\n{report}")]
    NeedsPlan {
        /// The dry run, as text for a person.
        report: String,
    },
    /// The engine's directory does not open: locked by another process, a family missing, damaged files.
    #[error("{}: {source}", path.display())]
    Engine {
        /// The world directory.
        path: PathBuf,
        /// What the engine said.
        source: EngineError,
    },
    /// A commit that was too large for one batch is not in its rows yet, and the world is opened for reading only.
    #[error(
        "commit {commit} is not carried out to its end, and nothing may be written; open the world for writing once"
    )]
    UnfinishedCommit {
        /// Its number.
        commit: u64,
    },
    /// A commit that was too large for one batch is not in its rows yet, and what is to be carried out is damaged.
    #[error(
        "a commit is to be carried out, and row {} of {} is damaged: {what}; restore a checkpoint",
        hex(key),
        family.name()
    )]
    DamagedCommit {
        /// The row's family.
        family: Family,
        /// Its key.
        key: Box<[u8]>,
        /// What is wrong with it.
        what: String,
    },
    /// The system gave no threads.
    #[error("cannot start the world's threads: {source}")]
    Threads {
        /// What the system said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }
}

/// Bytes as a person compares them.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
