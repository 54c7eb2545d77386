//! Prefetched chunks that were not requested yet: at most the newest few thousand of one minute.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};

use cg_format::{ChunkAt, EntityId};
use cg_tiering::GameTick;

use crate::rt::lock_order::{Mutex, rank};

/// A chunk that was not used within this time counts as wasted.
const USEFUL_TICKS: u64 = 60 * GameTick::PER_SECOND;
const MAX_CHUNKS: usize = 4096;
/// Four places for each chunk, so that one lookup excludes most of the chunks that were not prefetched.
const PLACES: usize = 4 * MAX_CHUNKS;

/// **Invariant**: a place counts the chunks of the map that hash to it. It changes under the map's lock and is read
/// without it. So a load may miss a chunk that is being added at the same time.
#[derive(Debug)]
pub(super) struct Unused {
    places: Box<[AtomicU16]>,
    state: Mutex<State, rank::PrefetchUnused>,
}

#[derive(Debug, Default)]
struct State {
    chunks: HashMap<ChunkAt, Mark>,
    /// The same chunks in the order in which they were added.
    order: BTreeMap<u64, ChunkAt>,
    next: u64,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    order: u64,
    player: EntityId,
    since: GameTick,
}

impl Unused {
    pub(super) fn new() -> Self {
        Self { places: (0..PLACES).map(|_| AtomicU16::new(0)).collect(), state: Mutex::default() }
    }

    /// Adds a fetched chunk. Returns the number of older chunks that were removed for it.
    pub(super) fn put(&self, at: ChunkAt, player: EntityId, since: GameTick) -> usize {
        let mut state = self.state.lock();
        let again = usize::from(self.remove(&mut state, at));
        let oldest =
            if state.chunks.len() < MAX_CHUNKS { None } else { state.order.values().next().copied() };
        let pushed_out = oldest.is_some_and(|at| self.remove(&mut state, at));
        let order = state.next;
        state.next += 1;
        state.chunks.insert(at, Mark { order, player, since });
        state.order.insert(order, at);
        self.place(at).fetch_add(1, Relaxed);
        again + usize::from(pushed_out)
    }

    /// Removes a chunk, and returns whether it was here. Costs one lookup of a place for most chunks that are not.
    #[inline]
    pub(super) fn take(&self, at: ChunkAt) -> bool {
        self.place(at).load(Relaxed) > 0 && self.remove(&mut self.state.lock(), at)
    }

    /// Removes chunks that were fetched too long ago, and returns their number.
    pub(super) fn expire(&self, now: GameTick) -> usize {
        let mut state = self.state.lock();
        let mut expired = 0;
        while let Some(at) = state.order.values().next().copied() {
            if state.chunks.get(&at).is_some_and(|mark| now.since(mark.since) < USEFUL_TICKS) {
                break;
            }
            self.remove(&mut state, at);
            expired += 1;
        }
        expired
    }

    /// Removes the chunks that were fetched for a player, and returns their number. Visits all chunks.
    pub(super) fn forget_player(&self, player: EntityId) -> usize {
        let mut state = self.state.lock();
        let his = state.chunks.iter().filter(|(_, mark)| mark.player == player);
        let his: Vec<_> = his.map(|(at, _)| *at).collect();
        his.iter().filter(|at| self.remove(&mut state, **at)).count()
    }

    fn remove(&self, state: &mut State, at: ChunkAt) -> bool {
        let Some(mark) = state.chunks.remove(&at) else { return false };
        state.order.remove(&mark.order);
        self.place(at).fetch_sub(1, Relaxed);
        true
    }

    #[inline]
    fn place(&self, at: ChunkAt) -> &AtomicU16 {
        /// An odd constant with well distributed bits (2^64 divided by the golden ratio).
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = [at.pos.x(), at.pos.y(), at.pos.z()].iter().fold(at.dimension.get(), |all, c| {
            (all.rotate_left(23) ^ c.cast_unsigned()).wrapping_mul(SPREAD)
        });
        &self.places[(mixed >> 32) as usize % PLACES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    fn at(x: i64) -> ChunkAt {
        ChunkAt::new(Dimension::new(0), ChunkPos::new(x, 0, 0).unwrap())
    }

    fn player(id: u8) -> EntityId {
        EntityId::from_bytes([id; 16])
    }

    #[track_caller]
    fn assert_empty(unused: &Unused) {
        let state = unused.state.lock();
        assert!(state.chunks.is_empty() && state.order.is_empty());
        assert!(unused.places.iter().all(|place| place.load(Relaxed) == 0));
    }

    #[test]
    fn a_chunk_is_used_once() {
        let unused = Unused::new();
        assert_eq!(unused.put(at(1), player(1), GameTick::new(0)), 0);
        assert_eq!((unused.take(at(1)), unused.take(at(1)), unused.take(at(2))), (true, false, false));
        assert_empty(&unused);
    }

    #[test]
    fn the_oldest_make_room() {
        let unused = Unused::new();
        let forgotten: usize = (0..6000).map(|x| unused.put(at(x), player(1), GameTick::new(0))).sum();
        assert_eq!(forgotten, 6000 - MAX_CHUNKS);
        assert_eq!((0..6000).map(|x| usize::from(unused.take(at(x)))).sum::<usize>(), MAX_CHUNKS);
        assert_empty(&unused);
    }

    #[test]
    fn what_is_old_or_was_for_somebody_who_is_gone_is_forgotten() {
        let unused = Unused::new();
        for x in 0..10 {
            unused.put(at(x), player((x % 2) as u8), GameTick::new(x as u64));
        }
        assert_eq!(unused.put(at(3), player(1), GameTick::new(99)), 1, "it was fetched in vain before");
        assert_eq!(unused.expire(GameTick::new(USEFUL_TICKS + 5)), 5, "0, 1, 2, 4 and 5");
        assert_eq!(unused.forget_player(player(1)), 3, "3, 7 and 9");
        assert_eq!(unused.forget_player(player(0)), 2);
        assert_empty(&unused);
    }
}
