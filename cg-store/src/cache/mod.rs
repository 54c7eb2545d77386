//! Decoded chunks in memory, shared by threads and bounded in bytes.
//!
//! **Invariant**: an entry is what is committed. A loader takes a [`Ticket`] before it asks the queue and the engine,
//! and what it read is kept only if no commit of the place has begun since; a commit announces its places before the
//! engine or the queue has any of it, and shows its entries before it returns. So a slow loader can never put an old
//! chunk over a new one. Damage is never cached. The protocol is that of [`epoch`], and checked in [`model`].
//!
//! Reading takes a lock for reading in one of [`SHARDS`] parts of a [`quick_cache`], and no other.

mod count;
mod epoch;
#[cfg(test)]
mod model;
mod primitives;

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

use count::Count;
use epoch::{Change, Epoch, Epochs, Slot};

/// A chunk as the world holds it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// The content, upgraded to the current schema generation.
    pub(crate) chunk: Arc<Chunk>,
    /// The commit that last changed it.
    pub(crate) version: u64,
}

/// The state of a place before the queue and the engine were asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(Epoch);

/// The state of every place at one moment, at which no commit was under way.
#[derive(Debug)]
pub(crate) struct Moment(Vec<Epoch>);

/// The cache.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    entries: Cache<ChunkAt, Entry, Weight>,
    epochs: Epochs,
    hits: Count,
}

/// What memory knows of one chunk.
#[derive(Debug, Clone)]
struct Entry {
    found: Lookup<Stored>,
    /// The memory that it takes.
    bytes: u32,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<ChunkAt, Entry> for Weight {
    fn weight(&self, _: &ChunkAt, entry: &Entry) -> u64 {
        u64::from(entry.bytes)
    }
}

impl Entry {
    fn new(found: Lookup<Stored>) -> Self {
        /// The key, the entry and the cache's own bookkeeping.
        const ENTRY_BYTES: usize = 128;
        let chunk_bytes = match &found {
            Lookup::Here(stored) => stored.chunk.memory_bytes(),
            Lookup::Deleted | Lookup::NotHere => 0,
        };
        Self { found, bytes: u32::try_from(ENTRY_BYTES + chunk_bytes).unwrap_or(u32::MAX) }
    }
}

/// So many locks, if there is memory for some chunks behind each.
const SHARDS: usize = 64;
/// So many epochs: two places that share one disturb each other, which costs a look into the engine and no more.
const EPOCHS: u32 = 4096;
/// So many locks for those who remember something, which nobody holds for longer than that.
const KEEPER_LOCKS: u32 = 64;

impl ChunkCache {
    /// A cache of at most so many bytes.
    pub(crate) fn new(max_bytes: u64) -> Self {
        /// A usual decoded chunk; only a hint for the size of the tables.
        const TYPICAL_BYTES: u64 = 2048;
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity((max_bytes / TYPICAL_BYTES) as usize)
            .weight_capacity(max_bytes)
            .build()
            .expect("both capacities are given");
        let hashes = DefaultHashBuilder::default();
        Self {
            entries: Cache::with_options(options, Weight, hashes, DefaultLifecycle::default()),
            epochs: Epochs::new(EPOCHS, KEEPER_LOCKS),
            hits: Count::default(),
        }
    }

    /// What is known of a chunk, or the ticket with which a loader may tell what it finds.
    #[inline]
    pub(crate) fn get(&self, at: ChunkAt) -> Result<Lookup<Stored>, Ticket> {
        match self.entries.get(&at) {
            Some(entry) => Ok(entry.found),
            None => Err(Ticket(self.epochs.now(self.slot(at)))),
        }
    }

    /// Counts an answer of [`get`](Self::get) as one that spared a load.
    pub(crate) fn count_hit(&self) {
        self.hits.add_one();
    }

    /// How many answers were counted.
    pub(crate) fn hits(&self) -> u64 {
        self.hits.sum()
    }

    /// The state of now, for a caller that keeps commits out.
    pub(crate) fn moment(&self) -> Moment {
        Moment((0..self.epochs.slots()).map(|slot| self.epochs.now(Slot(slot))).collect())
    }

    /// What was known of a chunk at a moment, if it is known still.
    pub(crate) fn get_as_of(&self, at: ChunkAt, moment: &Moment) -> Option<Lookup<Stored>> {
        let entry = self.entries.get(&at)?;
        // Behind the entry: what a later commit shows, it shows after it has changed the epoch.
        let is_of_then = self.epochs.now(self.slot(at)) == self.ticket(at, moment).0;
        is_of_then.then_some(entry.found)
    }

    /// With it a loader may tell what it finds of a chunk in the engine as it was at a moment.
    pub(crate) fn ticket(&self, at: ChunkAt, moment: &Moment) -> Ticket {
        Ticket(moment.0[self.slot(at).0 as usize])
    }

    /// Keeps what a loader found, unless a commit of the place has begun since the ticket was taken.
    ///
    /// Then memory may know the chunk by now, and may show it as it was before that commit for a moment longer: the
    /// loader must answer what memory says, which is returned, or else it might be ahead of who asks after it.
    pub(crate) fn fill(&self, at: ChunkAt, ticket: Ticket, found: &Lookup<Stored>) -> Option<Lookup<Stored>> {
        let keep = || self.entries.insert(at, Entry::new(found.clone()));
        if self.epochs.keep_if_unchanged(self.slot(at), ticket.0, keep) {
            return None;
        }
        self.entries.get(&at).map(|entry| entry.found)
    }

    /// Announces that chunks are about to be committed. Waits for what is announced already; what is loaded of the
    /// places before the answer is dropped is not kept.
    pub(crate) fn announce(&self, at: impl IntoIterator<Item = ChunkAt>) -> Announced<'_> {
        let slots = at.into_iter().map(|at| self.slot(at)).collect();
        Announced { cache: self, _change: self.epochs.begin_change(slots) }
    }

    /// Forgets everything, for example when the schema generation changes.
    pub(crate) fn clear(&self) {
        let _everywhere = self.epochs.begin_change((0..self.epochs.slots()).map(Slot).collect());
        self.entries.clear();
    }

    /// The chunks of a column share a slot.
    fn slot(&self, at: ChunkAt) -> Slot {
        slot(&[at.dimension.get(), at.pos.x().cast_unsigned(), at.pos.z().cast_unsigned()])
    }
}

/// The epoch of a place that is told by some words.
fn slot(words: &[u64]) -> Slot {
    /// An odd constant with well spread bits (2^64 divided by the golden ratio).
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = words.iter().fold(0_u64, |all, word| (all.rotate_left(23) ^ word).wrapping_mul(SPREAD));
    Slot((mixed >> (u64::BITS - EPOCHS.ilog2())) as u32)
}

/// Commits under way of some chunks; dropped when they are seen, or have failed.
#[derive(Debug)]
pub(crate) struct Announced<'c> {
    cache: &'c ChunkCache,
    _change: Change<'c>,
}

impl Announced<'_> {
    /// Makes a committed chunk visible. It must have been announced.
    pub(crate) fn publish(&self, at: ChunkAt, entry: Lookup<Stored>) {
        self.cache.entries.insert(at, Entry::new(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::schema::NoComponents;
    use cg_format::{BlockId, ChunkPos, Dimension};

    fn at(x: i64) -> ChunkAt {
        ChunkAt::new(Dimension::new(0), ChunkPos::new(x, 0, 0).unwrap())
    }

    fn stored(version: u64) -> Lookup<Stored> {
        let chunk = Chunk::filled(BlockId::new(version), &NoComponents).expect("any block is known");
        let chunk = Arc::new(chunk);
        Lookup::Here(Stored { chunk, version })
    }

    fn version(cache: &ChunkCache, at: ChunkAt) -> Option<u64> {
        cache.get(at).ok()?.here().map(|stored| stored.version)
    }

    fn publish(cache: &ChunkCache, at: ChunkAt, entry: Lookup<Stored>) {
        cache.announce([at]).publish(at, entry);
    }

    #[test]
    fn a_slow_loader_does_not_hide_a_commit() {
        let cache = ChunkCache::new(1 << 20);
        let ticket = cache.get(at(1)).unwrap_err();
        publish(&cache, at(1), stored(2));
        let instead = cache.fill(at(1), ticket, &stored(1)).and_then(Lookup::here);
        assert_eq!(instead.map(|stored| stored.version), Some(2));
        assert_eq!(version(&cache, at(1)), Some(2));
    }

    #[test]
    fn a_loader_whose_shard_stood_still_is_believed() {
        let cache = ChunkCache::new(1 << 20);
        let ticket = cache.get(at(1)).unwrap_err();
        cache.fill(at(1), ticket, &stored(1));
        assert_eq!(version(&cache, at(1)), Some(1));
        cache.clear();
        assert!(cache.get(at(1)).is_err());
        cache.fill(at(1), ticket, &stored(1));
        assert!(cache.get(at(1)).is_err(), "the ticket is older than the clearing");
    }

    #[test]
    fn what_a_moment_knew_is_told_until_the_shard_changes() {
        let cache = ChunkCache::new(1 << 20);
        publish(&cache, at(1), stored(1));
        let moment = cache.moment();
        assert_eq!(cache.get_as_of(at(1), &moment).unwrap().here().map(|stored| stored.version), Some(1));
        let absent = cache.ticket(at(2), &moment);
        publish(&cache, at(1), stored(2));
        publish(&cache, at(2), stored(2));
        assert!(cache.get_as_of(at(1), &moment).is_none(), "it is of a later state");
        cache.fill(at(2), absent, &stored(1));
        assert_eq!(version(&cache, at(2)), Some(2), "what the moment had is older");
    }

    #[test]
    fn nothing_is_kept_while_a_commit_is_under_way() {
        let cache = ChunkCache::new(1 << 20);
        let before = cache.get(at(1)).unwrap_err();
        let announced = cache.announce([at(1)]);
        let meanwhile = cache.get(at(1)).unwrap_err();
        assert!(cache.fill(at(1), before, &stored(1)).is_none());
        assert!(cache.fill(at(1), meanwhile, &stored(1)).is_none());
        assert_eq!(version(&cache, at(1)), None);
        // The commit fails: nothing is shown, and what is loaded from now on is kept.
        drop(announced);
        assert!(cache.fill(at(1), meanwhile, &stored(1)).is_none());
        assert_eq!(version(&cache, at(1)), None);
        let after = cache.get(at(1)).unwrap_err();
        assert!(cache.fill(at(1), after, &stored(1)).is_none());
        assert_eq!(version(&cache, at(1)), Some(1));
    }

    #[test]
    fn memory_is_bounded() {
        let cache = ChunkCache::new(256 << 10);
        for x in 0..100_000 {
            let ticket = cache.get(at(x)).unwrap_err();
            cache.fill(at(x), ticket, &stored(1));
        }
        let kept = (0..100_000).filter(|x| cache.get(at(*x)).is_ok()).count();
        assert!((100..2048).contains(&kept), "{kept} entries of at least 128 bytes in 256 KiB");
    }
}
