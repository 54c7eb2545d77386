//! The options of an open world, and the limits that it stores.

use std::time::Duration;

use cg_format::frame::Codec;
use cg_tiering::{Ahead, GameTick};

use crate::engine::DEFAULT_MEMORY_BYTES;
use crate::storage::opacity_map::Keep;
use crate::storage::record_shape::RecordShape;
use crate::storage::resources::Resources;
use crate::storage::value_check::ValueCheck;

#[cfg(feature = "rocks")]
use crate::engine::RocksOptions;

/// The upper bound of the batch limit of any world: RocksDB takes batches of this size without problems.
pub const MAX_BATCH_BYTES: u64 = 1 << 30;
/// The number of chunks of the highest column that can be loaded at once.
pub(crate) const MAX_COLUMN_CHUNKS: u64 = 4096;

/// Options that the host of a world chooses. A world does not store them, except `records`, `signature` and `limits`,
/// which are stored when it is created.
#[derive(Debug, Clone)]
pub struct WorldOptions {
    /// The failures that a returned commit survives. Default: [`Durability::Safe`].
    pub durability: Durability,
    /// The longest time after which commits are synced that did not wait for the disk, without the time of the sync
    /// itself. Default one second; at least ten milliseconds. At [`Durability::Fast`] only flushing and closing sync.
    pub sync_every: Duration,
    /// Memory for commits that are accepted and not written yet. Default 64 MiB. A commit that does not fit fails with
    /// [`Error::Busy`](crate::Error::Busy). A commit larger than the whole queue is taken when the queue is empty.
    pub queue_bytes: u64,
    /// The disk space that stays free. Below it commits that put anything fail with
    /// [`Error::LowDiskSpace`](crate::Error::LowDiskSpace), before the engine fails, and ticks neither move chunks nor
    /// fold. [`demote_all`](crate::tiers::Tiers::demote_all), which makes a world smaller, continues down to a quarter of it.
    /// Default `None`: a twentieth of the disk but at most 1 GiB, and 1 GiB if the engine cannot report the size of the
    /// disk. `Some(0)` keeps nothing free.
    pub min_free_bytes: Option<u64>,
    /// Memory for decoded chunks. Default 128 MiB, and all of it is used. Less memory means more reads from the engine.
    /// Not included are the areas of [`WorldCache::pin`](crate::cache::WorldCache::pin), a 64th for known absent cubes, and a
    /// 64th for each thread that uses [`World::with_chunk`](crate::World::with_chunk).
    pub cache_bytes: u64,
    /// Memory for the engines of all worlds of the process: block cache and write buffers together. Default 256 MiB.
    ///
    /// The first world that is opened sets it. A later world that requests another amount shares the existing one, and
    /// a warning is logged. A world with its own [`resources`](Self::resources) does not use this.
    pub engine_bytes: u64,
    /// Memory and threads shared only with worlds that have a clone of this value. Default: those of the process.
    pub resources: Option<Resources>,
    /// Whether a commit that changes little of a chunk writes a delta and not the whole chunk. A delta can hold a few
    /// blocks without components, and references to entities. Default off. Loading such a chunk costs a scan of its
    /// deltas, at most 16. They end when the chunk is saved as a whole. A tick folds them when there are 16, or when
    /// the cube was not accessed for a minute. A world with deltas can be read with either value.
    pub deltas: bool,
    /// Whether rows of hot chunks of 256 bytes or more are compressed, with LZ4. Default on. Off saves the time of it in
    /// commits and loads, and writes more. Chunks that a tick makes hot are compressed anyway, and so are old files of the
    /// engine. A world can be read with either value.
    pub compress_hot_rows: bool,
    /// Whether the world keeps its [opacity map](crate::opacity::OpacityMap). Default [`Keep::AsStored`]: a new world
    /// keeps none. A map costs one small row for each chunk whose outline a commit changes, a third to a half of the
    /// time in which a column of new terrain is committed.
    pub opacity: Keep,
    /// How the registry handles packs that changed or are missing. Default: keep everything, refuse what would lose
    /// data.
    pub packs: cg_registry::Policy,
    /// What a commit does about values that the types of their components do not allow. Default
    /// [`Report`](ValueCheck::Report): they are counted and the first are kept, and no commit is refused for one.
    pub value_check: ValueCheck,
    /// Functions of the host that upgrade component bytes without a rule, by component name.
    pub upgrades: std::sync::Arc<cg_registry::UpgradeFunctions>,
    /// After how long, and from what distance, chunks move to colder tiers, and what makes them hot again. Only
    /// [`tick`](crate::World::tick) moves them.
    pub tiers: cg_tiering::TierPolicy,
    /// Chunks that [`tick`](crate::World::tick) prefetches for moving players. Default: none.
    pub prefetch: Option<PrefetchOptions>,
    /// The shape of the record tree. Default: the stored one; a new world gets leaves of 16 blocks in roots of 128 and
    /// tables of 256. The shape of a world never changes, and another one is refused at open.
    pub records: Option<RecordShape>,
    /// The application's name for its own layout of the world: a line of at most 256 bytes. A new world stores it in
    /// `world.cg`, which can be read without opening the world; a world without a directory in a row. A world with another signature, or none, is refused at
    /// open. Default: every world is accepted.
    pub signature: Option<String>,
    /// Whether to open a world that has [lost commits](crate::engine::EngineError::LostCommits) which were synced.
    /// Default: no. Opened for reading, it shows what is left. Opened for writing, the loss is accepted permanently:
    /// the world gets a new incarnation, because the numbers of the lost commits are used again. Set it for one open,
    /// as `cg accept-loss` does.
    pub accept_lost_commits: bool,
    /// Limits of a world that is created with these options. An existing world keeps its own.
    pub limits: StoreLimits,
}

impl Default for WorldOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Safe,
            sync_every: Duration::from_secs(1),
            queue_bytes: 64 << 20,
            min_free_bytes: None,
            cache_bytes: 128 << 20,
            engine_bytes: DEFAULT_MEMORY_BYTES as u64,
            resources: None,
            deltas: false,
            compress_hot_rows: true,
            opacity: Keep::AsStored,
            packs: cg_registry::Policy::default(),
            value_check: ValueCheck::default(),
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
    /// Every commit is on the disk before it returns. For tools, and for hosts whose commits must not be lost.
    pub fn safe() -> Self {
        Self::default()
    }

    /// As [`safe`](Self::safe), but a commit waits a moment for others that share its sync: for many threads.
    pub fn safe_batch() -> Self {
        Self { durability: Durability::SafeBatch, ..Self::default() }
    }

    /// Commits return when they are accepted and are synced about a second later: recommended for servers.
    pub fn balanced() -> Self {
        Self { durability: Durability::Balanced, ..Self::default() }
    }

    /// Commits return when they are accepted; only `flush` and `close` sync the disk.
    pub fn fast() -> Self {
        Self { durability: Durability::Fast, ..Self::default() }
    }

    /// As [`balanced`](Self::balanced), with twice the memory and with deltas. For worlds in which many players change
    /// much.
    pub fn active_world() -> Self {
        Self { cache_bytes: 256 << 20, queue_bytes: 128 << 20, deltas: true, ..Self::balanced() }
    }

    /// As [`fast`](Self::fast), with four times the memory and without compression of hot rows. For benchmarks and conversions.
    pub fn turbo() -> Self {
        Self { cache_bytes: 512 << 20, compress_hot_rows: false, ..Self::fast() }
    }

    /// As [`turbo`](Self::turbo), with an eighth of its memory and with deltas. For temporary arenas.
    pub fn ephemeral() -> Self {
        Self { cache_bytes: 64 << 20, deltas: true, ..Self::turbo() }
    }

    /// Commits survive a killed process at once, a power cut about a second later.
    pub fn process() -> Self {
        Self { durability: Durability::Process, ..Self::default() }
    }

    /// What compresses the rows of hot chunks that commits write.
    pub(crate) const fn hot_codec(&self) -> Codec {
        if self.compress_hot_rows { Codec::Lz4 } else { Codec::None }
    }

    /// The memory and threads that a world with these options uses.
    pub(crate) fn shared(&self) -> Resources {
        let of_process = || Resources::of_process(usize::try_from(self.engine_bytes).unwrap_or(usize::MAX));
        self.resources.clone().unwrap_or_else(of_process)
    }

    /// The options of an engine on disk.
    #[cfg(feature = "rocks")]
    pub fn rocks(&self) -> RocksOptions {
        let resources = self.shared();
        if self.resources.is_none() && resources.budget().memory_bytes() as u64 != self.engine_bytes {
            let (asked, given) = (self.engine_bytes, resources.budget().memory_bytes());
            tracing::warn!(
                asked,
                given,
                "the worlds of this process share memory, and the first one said how much"
            );
        }
        // The world has its own limit, which is checked before a batch reaches the engine.
        RocksOptions::new(resources.budget().clone())
            .with_max_batch_bytes(MAX_BATCH_BYTES)
            .with_accept_lost_commits(self.accept_lost_commits)
    }
}

/// Options of the prefetch for moving players.
///
/// With the defaults, a player who moves along an axis causes some 150 fetched chunks for each chunk of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefetchOptions {
    /// The number of chunks ahead along each axis. Default 3, which is also the maximum.
    pub ahead_chunks: u8,
    /// Only chunks that the player reaches within this number of ticks. Default 60, three seconds.
    pub lookahead_ticks: u64,
    /// The number of chunks around a player that the host keeps loaded on each side on x and z, at most 32. Default 8.
    /// Chunks that will enter this area next are fetched; those already inside it are left to the host. 0 fetches only
    /// the chunks on the player's path.
    pub width_chunks: u8,
    /// The same above and below. Default 4.
    pub height_chunks: u8,
    /// The maximum number of chunks that wait to be fetched, for all players together. Default 8,192. Each player has
    /// an equal share; what does not fit is not fetched.
    pub waiting_chunks: usize,
    /// The maximum number of chunks that are fetched at once. Default 64. A smaller number stops useless fetches
    /// earlier after a turn.
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

/// The largest values that a world accepts. They are compared with the encoded length when a transaction is accepted.
///
/// They are stored in the world when it is created, so that all its hosts use the same limits.
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
    /// One batch of the engine. Default 64 MiB, at most 1 GiB. A larger transaction is staged in parts, committed by
    /// one small commit and then rolled forward. It is written twice, and is visible completely or not at all like any
    /// other.
    pub batch_bytes: u64,
}

impl StoreLimits {
    /// The maximum of each limit.
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

/// When a commit returns, and what it survives.
///
/// | mode | returns when | a killed process | a power cut |
/// |---|---|---|---|
/// | [`Fast`](Self::Fast) | it is accepted | may lose the newest commits | may lose what was not [flushed](crate::World::flush) |
/// | [`Balanced`](Self::Balanced) | it is accepted | may lose the newest commits | loses about the last second |
/// | [`Process`](Self::Process) | the system has it | survives | loses about the last second |
/// | [`Safe`](Self::Safe) | the disk has it | survives | survives |
/// | [`SafeBatch`](Self::SafeBatch) | the disk has it | survives | survives |
///
/// In every mode a transaction is visible completely or not at all after a crash, and never without the transactions
/// before it.
///
/// A crash takes nothing of what the disk has. But if bytes of the log that were written in the last second before it are
/// *damaged* afterwards, they are taken for a write that the crash interrupted, and the commits in them are gone with no
/// more than a warning. Before that second damage is an error.
///
/// *Accepted* means: checked, numbered, visible to every reader, with a fixed place in the order. Another thread
/// encodes and writes the commit soon after; see [`WorldOptions::queue_bytes`](crate::WorldOptions::queue_bytes).
///
/// **At the end of `main`** a world is closed, and everything is kept, if its last handle is dropped or
/// [`close`](crate::World::close) was called. A handle in a `static`, or one that another thread holds, is not dropped.
/// Then a normal end is like a killed process: at `Fast` and `Balanced` the newest commits may be lost. In one
/// measurement 714 of 1,000 commits at `Balanced` were stored. The other modes keep all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// When it is accepted. A world that is opened with this mode syncs only when it is flushed or closed.
    Fast,
    /// When it is accepted. The world syncs once a second ([`WorldOptions::sync_every`]) if something was committed. For
    /// servers.
    Balanced,
    /// When the operating system has the bytes. They survive a killed process at once, a power cut about a second
    /// later.
    Process,
    /// When the disk has the bytes, without any delay.
    Safe,
    /// When the disk has the bytes. Waits a moment for other callers, which then share the sync.
    SafeBatch,
}

impl Durability {
    /// The longest time that a sync waits for other callers.
    pub(crate) const GROUP_COMMIT_WAIT: Duration = Duration::from_micros(500);

    /// Whether a commit returns before it is written.
    pub(crate) const fn is_queued(self) -> bool {
        matches!(self, Self::Fast | Self::Balanced)
    }

    /// Whether a commit returns only when it is synced.
    pub const fn is_synced(self) -> bool {
        matches!(self, Self::Safe | Self::SafeBatch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fields that a preset may set. The others are those of the default, which this checks.
    #[derive(Debug, PartialEq)]
    struct Set {
        durability: Durability,
        cache_mib: u64,
        queue_mib: u64,
        deltas: bool,
        compress_hot_rows: bool,
    }

    #[track_caller]
    fn check(preset: &WorldOptions, expected: Set) {
        let WorldOptions {
            durability,
            sync_every,
            queue_bytes,
            min_free_bytes,
            cache_bytes,
            engine_bytes,
            ref resources,
            deltas,
            compress_hot_rows,
            opacity,
            packs: _,
            value_check,
            upgrades: _,
            tiers,
            prefetch,
            records,
            ref signature,
            accept_lost_commits,
            limits,
        } = *preset;
        let found = Set {
            durability,
            cache_mib: cache_bytes >> 20,
            queue_mib: queue_bytes >> 20,
            deltas,
            compress_hot_rows,
        };
        assert_eq!(found, expected);
        let default = WorldOptions::default();
        assert_eq!((sync_every, engine_bytes), (Duration::from_secs(1), 256 << 20));
        assert_eq!((opacity, tiers, prefetch), (Keep::AsStored, default.tiers, None));
        assert_eq!(value_check, ValueCheck::Report);
        assert_eq!((min_free_bytes, records, limits), (None, None, default.limits));
        assert!(resources.is_none() && signature.is_none() && !accept_lost_commits);
    }

    #[test]
    fn each_preset_is_what_it_says() {
        use Durability::{Balanced, Fast, Process, Safe, SafeBatch};
        let plain = |durability| Set {
            durability,
            cache_mib: 128,
            queue_mib: 64,
            deltas: false,
            compress_hot_rows: true,
        };
        check(&WorldOptions::default(), plain(Safe));
        check(&WorldOptions::safe(), plain(Safe));
        check(&WorldOptions::safe_batch(), plain(SafeBatch));
        check(&WorldOptions::process(), plain(Process));
        check(&WorldOptions::balanced(), plain(Balanced));
        check(&WorldOptions::fast(), plain(Fast));
        let turbo = Set { cache_mib: 512, compress_hot_rows: false, ..plain(Fast) };
        check(&WorldOptions::turbo(), turbo);
        let active = Set { cache_mib: 256, queue_mib: 128, deltas: true, ..plain(Balanced) };
        check(&WorldOptions::active_world(), active);
        let ephemeral = Set { cache_mib: 64, deltas: true, compress_hot_rows: false, ..plain(Fast) };
        check(&WorldOptions::ephemeral(), ephemeral);
    }
}
