//! The empty cubes that a thread used recently. It can use them again without writes to shared memory.
//!
//! A lookup in the shared cache of cubes writes to its lock. A host that asks for an area that is not generated yet asks
//! for some thousands of chunks in a few cubes. The cubes here belong to one thread, and the epoch of a cube shows
//! whether they are current.

use std::cell::Cell;

use cg_format::{ChunkAt, ChunkPos, ClusterPos, ClusterTier, Dimension};

use super::epoch::Epoch;
use super::{ChunkCache, ColumnAt, cube_slot, miss};

type CubeOf = (Dimension, ClusterPos);

/// What a thread knows of a 16³ cube.
#[derive(Clone, Copy)]
struct Seen {
    cache: u64,
    cube: CubeOf,
    epoch: Epoch,
    /// Empty groups, by their bits.
    empty: u64,
}

/// The number of places: an area of 2 × 2 cubes of the height of any game, each with a place of its own.
const PLACES: usize = 32;

thread_local! {
    static SEEN: [Cell<Option<Seen>>; PLACES] = const { [const { Cell::new(None) }; PLACES] };
    /// Whether the thread's last column was in empty cubes. Then the next one is looked for here first.
    static WAS_EMPTY: Cell<bool> = const { Cell::new(false) };
}

fn place_of(cube: ClusterPos) -> usize {
    let [x, y, z] =
        [(cube.x(), 1), (cube.y(), 7), (cube.z(), 1)].map(|(along, mask)| (along & mask) as usize);
    x << 4 | z << 3 | y
}

impl ChunkCache {
    /// Whether a chunk is in a group that is known to be empty. Costs a comparison if the thread has used its cube
    /// before, and else a look at the cube.
    pub(crate) fn is_in_empty_group(&self, at: ChunkAt) -> bool {
        self.are_empty(miss::cube(at), miss::bit(at))
    }

    /// Whether all of some chunks are in groups that are known to be empty. Looks once at the cube of each run of chunks
    /// in one 16³ cube.
    pub(crate) fn are_in_empty_groups(&self, at: &[ChunkAt]) -> bool {
        let is_in_run = |one: &ChunkAt, next: &ChunkAt| miss::cube(*one) == miss::cube(*next);
        let groups = |run: &[ChunkAt]| run.iter().fold(0, |bits, at| bits | miss::bit(*at));
        at.chunk_by(is_in_run).all(|run| self.are_empty(miss::cube(run[0]), groups(run)))
    }

    /// Whether all chunks of a column are in groups that are known to be empty, and the thread's last column was so.
    #[inline]
    pub(crate) fn is_empty_column_again(&self, at: &ColumnAt) -> bool {
        WAS_EMPTY.try_with(Cell::get).unwrap_or(false) && self.is_empty_column(at)
    }

    /// Whether all chunks of a column are in groups that are known to be empty. Costs a comparison for each 16³ cube that
    /// the thread has used before, and a look at each other. `false` if an end of the column is outside the world.
    pub(crate) fn is_empty_column(&self, column: &ColumnAt) -> bool {
        const LAST_OF_CUBE: i64 = ClusterTier::L2.side_chunks() as i64 - 1;
        const GROUP_BITS: u32 = ClusterTier::L1.shift_chunks();
        let at = |y| Some(ChunkAt::new(column.dimension, ChunkPos::new(column.x, y, column.z).ok()?));
        let mut next = Some(column.lowest);
        let mut is_empty = at(column.highest).is_some();
        while let Some(lowest) = next.filter(|y| is_empty && *y <= column.highest) {
            let Some(first) = at(lowest) else { return false };
            let highest = (lowest | LAST_OF_CUBE).min(column.highest);
            let groups = (lowest >> GROUP_BITS..=highest >> GROUP_BITS)
                .filter_map(|group| at((group << GROUP_BITS).max(lowest)));
            let groups = groups.fold(0, |bits, at| bits | miss::bit(at));
            is_empty = self.are_empty(miss::cube(first), groups);
            next = (lowest | LAST_OF_CUBE).checked_add(1);
        }
        // A thread that ends does without.
        let _ = WAS_EMPTY.try_with(|was| was.set(is_empty));
        is_empty
    }

    /// Whether some groups of a 16³ cube are known to be empty.
    fn are_empty(&self, cube: CubeOf, groups: u64) -> bool {
        // Before the look at the cube: what it says is of this epoch or of a later one.
        let epoch = self.epochs.now(cube_slot(cube));
        let is_of_now = |seen: &Seen| {
            seen.epoch == epoch && seen.cube == cube && seen.cache == self.id && seen.empty & groups == groups
        };
        let place = place_of(cube.1);
        if SEEN.try_with(|seen| seen[place].get().is_some_and(|seen| is_of_now(&seen))).unwrap_or(false) {
            return true;
        }
        let empty = self.absent.empty_groups(cube);
        if empty != 0 && epoch.is_calm() {
            let now = Seen { cache: self.id, cube, epoch, empty };
            let _ = SEEN.try_with(|seen| seen[place].set(Some(now)));
        }
        empty & groups == groups
    }
}
