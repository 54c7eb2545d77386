//! How a world is opened, and the limits it keeps.

use cg_tiering::{Ahead, GameTick};

use crate::engine::DEFAULT_MEMORY_BYTES;
#[cfg(feature = "rocks")]
use crate::engine::RocksOptions;
use crate::storage::durability::Durability;
use crate::storage::record_shape::RecordShape;
use crate::storage::resources::Resources;

/// The largest batch that any world may allow: what RocksDB takes at once without trouble.
pub(crate) const MAX_BATCH_BYTES: u64 = 1 << 30;
/// The chunks of the highest column that is loaded at once.
pub(crate) const MAX_COLUMN_CHUNKS: u64 = 4096;

/// Choices of a world's host. None of them changes a stored byte.
#[derive(Debug, Clone)]
pub struct WorldOptions {
    /// What a returned commit survives. Default: [`Durability::Safe`].
    pub durability: Durability,
    /// Memory for commits that were accepted and are not written yet. Default 64 MiB. A commit for which there is no room
    /// fails with [`Error::Busy`](crate::Error::Busy); one that is larger than all of it is taken by an empty queue.
    pub queue_bytes: u64,
    /// What is to stay free on the disk: below it commits that put anything fail with
    /// [`Error::LowDiskSpace`](crate::Error::LowDiskSpace), before the engine fails, and ticks neither move chunks nor fold.
    /// [`demote_all`](crate::Tiers::demote_all), which makes a world smaller, goes on down to a quarter of it. Default
    /// `None`: a twentieth of the disk, 1 GiB at most, and 1 GiB where the engine cannot say how large the disk is.
    /// `Some(0)` demands nothing.
    pub min_free_bytes: Option<u64>,
    /// Memory for decoded chunks. Default 128 MiB, and all of it is used. Less memory means more reads from the engine.
    /// Beside it stand the areas of [`pin_in_cache`](crate::WorldCache::pin), a 64th for what is known of absent
    /// cubes, and a 64th for each thread that uses [`with`](crate::World::with_chunk).
    pub cache_bytes: u64,
    /// Memory for the engines of all worlds of the process: block cache and write buffers together. Default 256 MiB.
    ///
    /// The first world that is opened decides; a later one that asks for another amount gets what there is, and that
    /// is logged. A world with [`resources`](Self::resources) of its own does not ask.
    pub engine_bytes: u64,
    /// Memory and threads of its own, shared with the worlds that carry a clone. Default: those of the process.
    pub resources: Option<Resources>,
    /// Whether a commit that changes little of a chunk writes what it changes instead of the chunk: a few blocks without
    /// components, and references to entities. Default off. Loading such a chunk costs a scan of its deltas, at most 16;
    /// saving it as a whole ends them, and so does a tick when it has so many, or when its place was left alone for a
    /// minute. A world with deltas is read whatever this says.
    pub deltas: bool,
    /// Whether the opacity map is kept up to date. Default on. Off saves one small row for each commit that changes a
    /// chunk's outline; the map can be rebuilt later.
    pub opacity: bool,
    /// How the registry meets packs that changed or are gone. Default: keep everything, refuse what would lose data.
    pub packs: cg_registry::Policy,
    /// How to carry component bytes that no rule carries: functions of the host, by component name.
    pub upgrades: std::sync::Arc<cg_registry::UpgradeFunctions>,
    /// After how long, and from how far, chunks move to colder tiers, and what makes them hot again. Moves are done by
    /// [`tick`](crate::World::tick) and by nothing else.
    pub tiers: cg_tiering::TierPolicy,
    /// What [`tick`](crate::World::tick) has brought into memory ahead of moving players. Default: nothing.
    pub prefetch: Option<PrefetchOptions>,
    /// The shape of the tree that records lie in. Default: the world's own; of a world that is created, leaves of 16 blocks
    /// in roots of 128 and tables of 256. A world keeps its shape for ever, and another one is refused at open.
    pub records: Option<RecordShape>,
    /// What the application calls its own layout of the world: a line of at most 256 bytes. A world that is created keeps
    /// it in `world.cg`, readable without opening; a world that has another one, or none, is refused at open. Default:
    /// any world will do.
    pub signature: Option<String>,
    /// Whether to open a world that has [lost commits](crate::engine::EngineError::LostCommits) which were synced. Default:
    /// no. Opened for reading, it shows what is left. Opened for writing, the loss is accepted for good: the world gets a new
    /// incarnation, as the numbers of the lost commits are given out again. Set it for one open, as `cg accept-loss` does.
    pub accept_lost_commits: bool,
    /// Limits of a world that is created with these options. An existing world keeps its own.
    pub limits: StoreLimits,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Safe,
            queue_bytes: 64 << 20,
            min_free_bytes: None,
            cache_bytes: 128 << 20,
            engine_bytes: DEFAULT_MEMORY_BYTES as u64,
            resources: None,
            deltas: false,
            opacity: true,
            packs: cg_registry::Policy::default(),
            upgrades: std::sync::Arc::default(),
            tiers: cg_tiering::TierPolicy::default(),
            prefetch: None,
            records: None,
            signature: None,
            accept_lost_commits: false,
            limits: StoreLimits::default(),
        }
    }
}

impl WorldOptions {
    /// Every commit is on the disk before it returns: for hosts whose commits must not be lost, and tools.
    pub fn safe() -> Self {
        Self::default()
    }

    /// Commits return when they are accepted and are synced about a second later: recommended for servers.
    pub fn balanced() -> Self {
        Self { durability: Durability::Balanced, ..Self::default() }
    }

    /// Commits return when they are accepted; the disk is forced only by `flush` and `close`.
    pub fn fast() -> Self {
        Self { durability: Durability::Fast, ..Self::default() }
    }

    /// As [`balanced`](Self::balanced), with twice the memory and with deltas: for worlds in which many players change much.
    pub fn active_world() -> Self {
        Self { cache_bytes: 256 << 20, queue_bytes: 128 << 20, deltas: true, ..Self::balanced() }
    }

    /// As [`fast`](Self::fast), with half the memory, with deltas and without an opacity map: for arenas that are thrown away.
    pub fn ephemeral() -> Self {
        Self { cache_bytes: 64 << 20, deltas: true, opacity: false, ..Self::fast() }
    }

    /// Commits survive a killed process at once, a power cut about a second later.
    pub fn process() -> Self {
        Self { durability: Durability::Process, ..Self::default() }
    }

    /// The memory and threads that a world with these options uses.
    pub(crate) fn shared(&self) -> Resources {
        let of_process = || Resources::of_process(usize::try_from(self.engine_bytes).unwrap_or(usize::MAX));
        self.resources.clone().unwrap_or_else(of_process)
    }

    /// How an engine on disk is opened with these options.
    #[cfg(feature = "rocks")]
    pub(crate) fn rocks(&self) -> RocksOptions {
        let resources = self.shared();
        if self.resources.is_none() && resources.budget().memory_bytes() as u64 != self.engine_bytes {
            let (asked, given) = (self.engine_bytes, resources.budget().memory_bytes());
            tracing::warn!(
                asked,
                given,
                "the worlds of this process share memory, and the first one said how much"
            );
        }
        // The world has a limit of its own, which is checked before a batch reaches the engine.
        RocksOptions::new(resources.budget().clone())
            .with_max_batch_bytes(MAX_BATCH_BYTES)
            .with_accept_lost_commits(self.accept_lost_commits)
    }
}

/// What is brought into memory ahead of moving players.
///
/// With the defaults, a player who moves along an axis has some 150 chunks fetched for each chunk of his way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefetchOptions {
    /// How many chunks ahead along each axis. Default 3, which is also the most.
    pub ahead_chunks: u8,
    /// Only what the player reaches within so many ticks. Default 60, three seconds.
    pub lookahead_ticks: u64,
    /// How many chunks around a player the host keeps loaded to either side on x and z, at most 32. Default 8. What comes
    /// into this reach next is fetched; what is in it already is left to the host. 0 fetches the chunks of the way itself.
    pub width_chunks: u8,
    /// The same above and below. Default 4.
    pub height_chunks: u8,
    /// The most chunks that wait to be fetched, for all players together. Default 8,192. Each player has an even
    /// share of it; what has no room is not fetched.
    pub waiting_chunks: usize,
    /// The most chunks that are fetched at once. Default 64. Fewer let go earlier of what a turn made useless.
    pub in_flight_chunks: usize,
}

impl Default for PrefetchOptions {
    fn default() -> Self {
        Self {
            ahead_chunks: Ahead::MAX_CHUNKS,
            lookahead_ticks: 3 * GameTick::PER_SECOND,
            width_chunks: 8,
            height_chunks: 4,
            waiting_chunks: 8192,
            in_flight_chunks: 64,
        }
    }
}

/// The largest values a world takes. Checked from the encoded length when a transaction is accepted.
///
/// They are written into the world when it is created, so that every host of it agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreLimits {
    /// One chunk with its side data. Default 16 MiB.
    pub chunk_bytes: u64,
    /// One entity. Default 1 MiB.
    pub entity_bytes: u64,
    /// One property. Default 16 MiB.
    pub property_bytes: u64,
    /// One object. Default 64 MiB.
    pub object_bytes: u64,
    /// One spatial record. Default 1 MiB.
    pub record_bytes: u64,
    /// One batch of the engine. Default 64 MiB, at most 1 GiB. A transaction that is larger is staged in parts, made to count
    /// by one small commit and then rolled forward: it is written twice, and seen whole or not at all like any other.
    pub batch_bytes: u64,
}

impl StoreLimits {
    /// The higher of each two limits.
    #[must_use]
    pub fn raised(self, to: Self) -> Self {
        Self {
            chunk_bytes: self.chunk_bytes.max(to.chunk_bytes),
            entity_bytes: self.entity_bytes.max(to.entity_bytes),
            property_bytes: self.property_bytes.max(to.property_bytes),
            object_bytes: self.object_bytes.max(to.object_bytes),
            record_bytes: self.record_bytes.max(to.record_bytes),
            batch_bytes: self.batch_bytes.max(to.batch_bytes),
        }
    }
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            chunk_bytes: 16 << 20,
            entity_bytes: 1 << 20,
            property_bytes: 16 << 20,
            object_bytes: 64 << 20,
            record_bytes: 1 << 20,
            batch_bytes: 64 << 20,
        }
    }
}
