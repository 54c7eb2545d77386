//! Decoded chunks in memory, shared by threads and bounded in bytes.
//!
//! **Invariant**: an entry is the committed state. A loader takes a [`Ticket`] before it asks the queue and the engine.
//! Its result is cached only if no commit of the place has begun since. A commit announces its places before the engine
//! or the queue has any of it, and publishes its entries before it returns. So a slow loader can never replace a new
//! chunk by an old one. Damage is never cached. The protocol is in [`epoch`], and is tested in
//! `cg-bench/tests/epochs.rs`.
//!
//! A read takes the read lock of one of [`SHARDS`] parts of a [`quick_cache`], and no other.

mod column;
mod count;
mod epoch;
mod follow;
mod limit;
mod many;
mod miss;
mod pins;
mod primitives;
mod recent;
mod recent_absence;
mod stats;
#[cfg(test)]
mod tests;

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkBox, ClusterPos, Dimension, Lookup};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

pub use column::Column;
pub(crate) use column::ColumnAt;
use column::Columns;
use count::Count;
use epoch::{Change, Epoch, Epochs, Slot};
use limit::Limit;
pub(crate) use many::CubeTicket;
use miss::AbsentCubes;
pub(crate) use miss::{Absence, cube};
pub(crate) use pins::CachePinId;
use pins::PinnedAreas;
use recent::Seen;
pub use stats::CacheStats;

/// A stored chunk, upgraded.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The content, upgraded to the current schema generation.
    pub chunk: Arc<Chunk>,
    /// The commit that last changed it.
    pub version: u64,
    /// Whether its row has the current schema generation, so that a delta may be added to it.
    pub is_current: bool,
}

/// The state of a place before the queue and the engine were asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(Epoch);

/// The state of every place at one moment without a commit in progress.
#[derive(Debug)]
pub(crate) struct Moment(Vec<Epoch>);

/// The cache.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    /// Distinguishes the caches of a process.
    id: u64,
    limit: Limit,
    entries: Cache<ChunkAt, Entry, Weight>,
    absent: AbsentCubes,
    /// Created for the first requested column.
    columns: OnceLock<Columns>,
    kept: PinnedAreas,
    epochs: Epochs,
    hits: Count,
}

/// The cached state of one chunk.
#[derive(Debug, Clone)]
struct Entry {
    found: Lookup<Stored>,
    /// The memory that it takes.
    bytes: u32,
    /// Whether it is in a pinned area.
    is_kept: bool,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<ChunkAt, Entry> for Weight {
    fn weight(&self, _: &ChunkAt, entry: &Entry) -> u64 {
        // The cache does not evict entries without weight.
        if entry.is_kept { 0 } else { u64::from(entry.bytes) }
    }
}

impl Entry {
    fn new(found: Lookup<Stored>, is_kept: bool) -> Self {
        /// The key, the entry and the overhead of the cache.
        const ENTRY_BYTES: usize = 128;
        let chunk_bytes = match &found {
            Lookup::Found(stored) => stored.chunk.memory_bytes(),
            Lookup::Tombstone | Lookup::NotFound => 0,
        };
        Self { found, bytes: u32::try_from(ENTRY_BYTES + chunk_bytes).unwrap_or(u32::MAX), is_kept }
    }
}

/// The maximum number of locks. Fewer are used if there is not enough memory for some chunks per lock.
const SHARDS: usize = 64;
/// The number of epochs. Two places that share one can invalidate each other, which only costs a read from the engine.
const EPOCHS: u32 = 4096;
/// The number of locks for threads that cache a value. Each is held for that short time only.
const KEEPER_LOCKS: u32 = 64;
/// The part of the bound that a thread's own recently used chunks may take.
const RECENT_PART: u64 = 64;

impl ChunkCache {
    /// Creates a cache of at most `max_bytes`. [`set_limit`](Self::set_limit) changes that.
    pub(crate) fn new(max_bytes: u64) -> Self {
        static CACHES: AtomicU64 = AtomicU64::new(0);
        /// The size of a usual decoded chunk.
        const TYPICAL_BYTES: u64 = 2048;
        Self {
            id: CACHES.fetch_add(1, Relaxed),
            limit: Limit::new(max_bytes),
            absent: AbsentCubes::new(max_bytes / 64),
            columns: OnceLock::new(),
            kept: PinnedAreas::default(),
            entries: bounded(SHARDS, max_bytes, TYPICAL_BYTES, Weight),
            epochs: Epochs::new(EPOCHS, KEEPER_LOCKS),
            hits: Count::default(),
        }
    }

    /// The cached state of a chunk, or the ticket with which a loader may cache its result.
    #[inline]
    pub(crate) fn get(&self, at: ChunkAt) -> Result<Lookup<Stored>, Ticket> {
        match self.entries.get(&at) {
            Some(entry) => Ok(entry.found),
            None => self.get_absent(at),
        }
    }

    /// The known absence of a chunk by its cube.
    fn get_absent(&self, at: ChunkAt) -> Result<Lookup<Stored>, Ticket> {
        let ticket = Ticket(self.epochs.now(column_slot(at)));
        if self.absent.has(at) { Ok(Lookup::NotFound) } else { Err(ticket) }
    }

    /// Calls a closure with a stored chunk that this thread has used recently. Otherwise returns the closure with the
    /// result of [`get`](Self::get).
    #[inline]
    pub(crate) fn show<T, F: FnOnce(&Chunk) -> T>(
        &self,
        at: ChunkAt,
        show: F,
    ) -> Result<T, (F, Result<Lookup<Stored>, Ticket>)> {
        // Before the lookup in the cache: its result is of this epoch or of a later one.
        let seen = Seen { cache: self.id, at, epoch: self.epochs.now(column_slot(at)) };
        let show = match recent::show(seen, show) {
            Ok(shown) => return Ok(shown),
            Err(show) => show,
        };
        let known = self.get(at);
        if let Ok(Lookup::Found(stored)) = &known {
            recent::note(seen, &stored.chunk, self.max_bytes() / RECENT_PART);
        }
        Err((show, known))
    }

    /// Counts a result of [`get`](Self::get) that made a load unnecessary.
    pub(crate) fn count_hit(&self) {
        self.hits.add_one();
    }

    /// The number of counted results.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.sum()
    }

    /// The current state. The caller keeps commits out.
    pub(crate) fn moment(&self) -> Moment {
        Moment((0..self.epochs.slots()).map(|slot| self.epochs.now(Slot(slot))).collect())
    }

    /// The state of a chunk at a moment, if it is still cached.
    pub(crate) fn get_as_of(&self, at: ChunkAt, moment: &Moment) -> Option<Lookup<Stored>> {
        let known = match self.entries.get(&at) {
            Some(entry) => entry.found,
            None if self.absent.has(at) => Lookup::NotFound,
            None => return None,
        };
        // After the lookup: a later commit publishes its entries after it has changed the epoch.
        let is_of_then = self.epochs.now(column_slot(at)) == Self::ticket(at, moment).0;
        is_of_then.then_some(known)
    }

    /// A ticket with which a loader may cache what a snapshot of that moment contains.
    pub(crate) fn ticket(at: ChunkAt, moment: &Moment) -> Ticket {
        Ticket(moment.0[column_slot(at).0 as usize])
    }

    /// Caches the result of a loader, unless a commit of the place has begun since the ticket was taken.
    ///
    /// In that case the cache may already have an entry, which is returned. It may still be from before that commit.
    /// The loader must return it too, because otherwise a later reader could get an older state.
    pub(crate) fn fill(&self, at: ChunkAt, ticket: Ticket, found: &Lookup<Stored>) -> Option<Lookup<Stored>> {
        let keep = || self.insert(at, found.clone());
        if self.epochs.keep_if_unchanged(column_slot(at), ticket.0, keep) {
            return None;
        }
        self.entries.get(&at).map(|entry| entry.found)
    }

    /// Announces that chunks are about to be committed. Waits for earlier announcements. Until the returned value is
    /// dropped, no load of these places is cached.
    pub(crate) fn announce(&self, at: impl IntoIterator<Item = ChunkAt>) -> Announced<'_> {
        let at: Vec<_> = at.into_iter().collect();
        let slots = at.iter().flat_map(|at| [column_slot(*at), cube_slot(miss::cube(*at))]).collect();
        let change = self.epochs.begin_change(slots);
        self.absent.forget(&at);
        Announced { cache: self, _change: change }
    }

    /// A column, or the ticket with which a loader may cache its result.
    #[inline]
    pub(crate) fn column(&self, at: &ColumnAt) -> Result<Column, ColumnTicket> {
        let now = self.epochs.now(slot(at.dimension, at.x, at.z));
        match self.columns.get().and_then(|columns| columns.get(at)) {
            Some(column) if column.epoch() == Some(now) => Ok(column),
            _ => Err(ColumnTicket(now)),
        }
    }

    /// Creates a column of the loaded chunks, and caches it unless a commit into it has begun since the ticket was
    /// taken.
    pub(crate) fn keep_column(
        &self,
        at: ColumnAt,
        ticket: ColumnTicket,
        chunks: Box<[Option<Arc<Chunk>>]>,
    ) -> Column {
        let column = Column::read(at.lowest, chunks, ticket.0);
        if self.max_bytes() > 0 {
            let columns = self.columns_or_new();
            let keep = || {
                columns.insert(at, column.clone());
                // The limit may have become 0 before the insertion.
                if self.max_bytes() == 0 {
                    columns.remove(&at);
                }
            };
            self.epochs.keep_if_unchanged(slot(at.dimension, at.x, at.z), ticket.0, keep);
        }
        column
    }

    /// Pins the current and future entries of an area.
    pub(crate) fn keep(&self, dimension: Dimension, area: ChunkBox) -> CachePinId {
        let id = self.kept.add(dimension, area);
        self.weigh_again();
        id
    }

    /// Unpins an area. Returns whether it was pinned.
    pub(crate) fn unpin_from_cache(&self, id: CachePinId) -> bool {
        let was_kept = self.kept.remove(id);
        self.weigh_again();
        was_kept
    }

    /// Sets the weight of every entry according to the current areas.
    fn weigh_again(&self) {
        // No commit publishes entries meanwhile, and later calls that cache a value know the areas. So the entries are
        // current, and can be inserted again.
        let _no_commit = self.epochs.begin_change(Vec::new());
        self.epochs.wait_for_keepers();
        for (at, entry) in self.entries.iter() {
            if self.kept.has(at) != entry.is_kept {
                self.insert(at, entry.found);
            }
        }
    }

    fn insert(&self, at: ChunkAt, found: Lookup<Stored>) {
        let is_kept = self.kept.has(at);
        if is_kept || self.max_bytes() > 0 {
            self.entries.insert(at, Entry::new(found, is_kept));
            // The limit may have become 0 before the insertion.
            if is_kept || self.max_bytes() > 0 {
                return;
            }
        }
        // Without memory every insertion is evicted at once, at several times the cost of this removal. An entry of an
        // unpinned area must not stay.
        self.entries.remove(&at);
    }

    /// Removes everything, for example when the schema generation changes.
    pub(crate) fn clear(&self) {
        let _everywhere = self.epochs.begin_change((0..self.epochs.slots()).map(Slot).collect());
        self.entries.clear();
        self.absent.clear();
        if let Some(columns) = self.columns.get() {
            columns.clear();
        }
    }
}

/// A cache of at most `max_bytes`. The size of a usual entry is only a hint for the size of the tables.
fn bounded<K: Eq + Hash, T: Clone, W: Weighter<K, T> + Clone>(
    shards: usize,
    max_bytes: u64,
    typical_bytes: u64,
    weight: W,
) -> Cache<K, T, W> {
    let options = OptionsBuilder::new()
        .shards(shards)
        .estimated_items_capacity((max_bytes / typical_bytes) as usize)
        .weight_capacity(max_bytes)
        .build()
        .expect("both capacities are given");
    Cache::with_options(options, weight, DefaultHashBuilder::default(), DefaultLifecycle::default())
}

/// The epoch of a column, which all its chunks share.
#[inline]
fn slot(dimension: Dimension, x: i64, z: i64) -> Slot {
    /// An odd constant with well distributed bits (2^64 divided by the golden ratio).
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let words = [x.cast_unsigned(), z.cast_unsigned()];
    let mixed =
        words.iter().fold(dimension.get(), |all, word| (all.rotate_left(23) ^ word).wrapping_mul(SPREAD));
    Slot((mixed >> (u64::BITS - EPOCHS.ilog2())) as u32)
}

#[inline]
fn column_slot(at: ChunkAt) -> Slot {
    slot(at.dimension, at.pos.x(), at.pos.z())
}

/// The epoch of a 16³ cube.
fn cube_slot((dimension, cube): (Dimension, ClusterPos)) -> Slot {
    // Mapped away from the columns of small coordinates.
    slot(dimension, cube.x().rotate_left(40) ^ cube.y(), cube.z().rotate_left(40) ^ 1)
}

/// The state of a column before its chunks were read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnTicket(Epoch);

/// The commit in progress of some chunks; dropped when they are published, or the commit has failed.
#[derive(Debug)]
pub(crate) struct Announced<'c> {
    cache: &'c ChunkCache,
    _change: Change<'c>,
}

impl Announced<'_> {
    /// Caches a committed chunk. It must have been announced.
    pub(crate) fn publish(&self, at: ChunkAt, entry: Lookup<Stored>) {
        self.cache.insert(at, entry);
    }

    /// Removes a committed chunk, so that its next load reads it. It must have been announced.
    pub(crate) fn forget(&self, at: ChunkAt) {
        self.cache.entries.remove(&at);
    }
}
