//! Decoded chunks in memory, shared by threads and bounded in bytes.
//!
//! **Invariant**: an entry is what the engine holds. A loader takes its shard's [`Ticket`] before it asks the engine,
//! and what it read is kept only if no commit has published in that shard since; a commit publishes its entries
//! before it returns. So a slow loader can never put an old chunk over a new one. Damage is never cached.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, Lookup};
use parking_lot::Mutex;
use quick_cache::Weighter;
use quick_cache::unsync::Cache;

/// A chunk as the world holds it.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    /// The content, upgraded to the current schema generation.
    pub(crate) chunk: Arc<Chunk>,
    /// The commit that last changed it.
    pub(crate) version: u64,
}

/// A shard's state before the engine was asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket(u64);

/// The state of every shard at one moment.
#[derive(Debug)]
pub(crate) struct Moment(Vec<u64>);

/// The cache.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    shards: Vec<Mutex<Shard>>,
}

#[derive(Debug)]
struct Shard {
    epoch: u64,
    entries: Cache<ChunkAt, Lookup<Stored>, Weight>,
}

#[derive(Debug, Clone)]
struct Weight;

impl Weighter<ChunkAt, Lookup<Stored>> for Weight {
    fn weight(&self, _: &ChunkAt, entry: &Lookup<Stored>) -> u64 {
        /// The key, the entry and the cache's own bookkeeping.
        const ENTRY_BYTES: u64 = 128;
        ENTRY_BYTES
            + match entry {
                Lookup::Here(stored) => stored.chunk.memory_bytes() as u64,
                Lookup::Deleted | Lookup::NotHere => 0,
            }
    }
}

const SHARDS: usize = 64;

impl ChunkCache {
    /// A cache of at most so many bytes.
    pub(crate) fn new(max_bytes: u64) -> Self {
        /// A usual decoded chunk; only a hint for the size of the tables.
        const TYPICAL_BYTES: u64 = 2048;
        let per_shard = max_bytes / SHARDS as u64;
        let shard = || {
            let entries = Cache::with_weighter((per_shard / TYPICAL_BYTES) as usize, per_shard, Weight);
            Mutex::new(Shard { epoch: 0, entries })
        };
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }

    /// What is known of a chunk, or the ticket with which a loader may tell what it finds.
    pub(crate) fn get(&self, at: ChunkAt) -> Result<Lookup<Stored>, Ticket> {
        let shard = self.shard(at).lock();
        match shard.entries.get(&at) {
            Some(entry) => Ok(entry.clone()),
            None => Err(Ticket(shard.epoch)),
        }
    }

    /// The state of now. Of one state of the engine only if no commit is under way.
    pub(crate) fn moment(&self) -> Moment {
        Moment(self.shards.iter().map(|shard| shard.lock().epoch).collect())
    }

    /// What was known of a chunk at a moment, if it is known still.
    pub(crate) fn get_as_of(&self, at: ChunkAt, moment: &Moment) -> Option<Lookup<Stored>> {
        let shard = self.shard(at).lock();
        shard.entries.get(&at).filter(|_| shard.epoch == Self::ticket(at, moment).0).cloned()
    }

    /// With it a loader may tell what it finds of a chunk in the engine as it was at a moment.
    pub(crate) fn ticket(at: ChunkAt, moment: &Moment) -> Ticket {
        Ticket(moment.0[Self::shard_index(at)])
    }

    /// Keeps what a loader found, unless a commit has published in the shard since the ticket was taken.
    pub(crate) fn fill(&self, at: ChunkAt, ticket: Ticket, entry: Lookup<Stored>) {
        let mut shard = self.shard(at).lock();
        if shard.epoch == ticket.0 {
            shard.entries.insert(at, entry);
        }
    }

    /// Makes a committed chunk visible.
    pub(crate) fn publish(&self, at: ChunkAt, entry: Lookup<Stored>) {
        let mut shard = self.shard(at).lock();
        shard.epoch += 1;
        shard.entries.insert(at, entry);
    }

    /// Forgets everything, for example when the schema generation changes.
    pub(crate) fn clear(&self) {
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.epoch += 1;
            shard.entries.clear();
        }
    }

    fn shard(&self, at: ChunkAt) -> &Mutex<Shard> {
        &self.shards[Self::shard_index(at)]
    }

    fn shard_index(at: ChunkAt) -> usize {
        /// An odd constant with well spread bits (2^64 divided by the golden ratio).
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = [at.pos.x(), at.pos.y(), at.pos.z()].iter().fold(at.dimension.get(), |all, c| {
            (all.rotate_left(23) ^ c.cast_unsigned()).wrapping_mul(SPREAD)
        });
        (mixed >> 58) as usize
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

    #[test]
    fn a_slow_loader_does_not_hide_a_commit() {
        let cache = ChunkCache::new(1 << 20);
        let ticket = cache.get(at(1)).unwrap_err();
        cache.publish(at(1), stored(2));
        cache.fill(at(1), ticket, stored(1));
        assert_eq!(version(&cache, at(1)), Some(2));
    }

    #[test]
    fn a_loader_whose_shard_stood_still_is_believed() {
        let cache = ChunkCache::new(1 << 20);
        let ticket = cache.get(at(1)).unwrap_err();
        cache.fill(at(1), ticket, stored(1));
        assert_eq!(version(&cache, at(1)), Some(1));
        cache.clear();
        assert!(cache.get(at(1)).is_err());
        cache.fill(at(1), ticket, stored(1));
        assert!(cache.get(at(1)).is_err(), "the ticket is older than the clearing");
    }

    #[test]
    fn what_a_moment_knew_is_told_until_the_shard_changes() {
        let cache = ChunkCache::new(1 << 20);
        cache.publish(at(1), stored(1));
        let moment = cache.moment();
        assert_eq!(cache.get_as_of(at(1), &moment).unwrap().here().map(|stored| stored.version), Some(1));
        let absent = ChunkCache::ticket(at(2), &moment);
        cache.publish(at(1), stored(2));
        cache.publish(at(2), stored(2));
        assert!(cache.get_as_of(at(1), &moment).is_none(), "it is of a later state");
        cache.fill(at(2), absent, stored(1));
        assert_eq!(version(&cache, at(2)), Some(2), "what the moment had is older");
    }

    #[test]
    fn memory_is_bounded() {
        let cache = ChunkCache::new(256 << 10);
        for x in 0..100_000 {
            let ticket = cache.get(at(x)).unwrap_err();
            cache.fill(at(x), ticket, stored(1));
        }
        let kept = (0..100_000).filter(|x| cache.get(at(*x)).is_ok()).count();
        assert!((100..2048).contains(&kept), "{kept} entries of at least 128 bytes in 256 KiB");
    }
}
