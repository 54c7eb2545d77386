//! Requests of a crowd to a store: explorers that walk into new land, and some that follow them later.
//!
//! Each explorer walks along x in a lane of its own, far from the others'. What comes into its view is loaded, and made
//! if there is none; what leaves it is saved, if it was not since it was changed. Now and then it changes a block. All
//! that is in memory and not saved is saved every five minutes, spread over the ticks after.

use std::collections::{BTreeMap, VecDeque};

use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, EntityId};
use cg_tiering::{GameTick, PlayerAt};

/// Columns around a player to either side that are in memory.
pub(super) const VIEW_COLUMNS: i64 = 4;
/// Chunks of a column.
pub(super) const HEIGHT_CHUNKS: i64 = 24;
const BOTTOM_CHUNK_Y: i64 = -4;
/// Blocks between two lanes, more than a view is wide.
const LANE_BLOCKS: i64 = 1024;
const SIDE_BLOCKS: i64 = 16;
/// Thousandths of a block a tick: 1.6 blocks a second bring 21.6 chunks into view.
const SPEED: i64 = 80;
/// The distance of a follower behind its explorer: what it meets has left the explorer's memory.
const BEHIND_BLOCKS: i64 = 192;
const AUTOSAVE_EVERY_TICKS: u64 = 5 * 60 * GameTick::PER_SECOND;
/// Ten columns: an autosave of fifty players takes ten seconds.
const AUTOSAVED_PER_TICK: usize = 20 * HEIGHT_CHUNKS as usize;

/// Requests in one tick.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Chunks that come into view, of which there are none yet.
    pub(super) new: Vec<ChunkAt>,
    /// Chunks that come into view, which were saved before.
    pub(super) known: Vec<ChunkAt>,
    /// Chunks to be saved, and how often each was changed since it was made.
    pub(super) saves: Vec<(ChunkAt, u64)>,
    /// Where the players are.
    pub(super) players: Vec<PlayerAt>,
}

/// The players, and what the host has in memory for explorers.
#[derive(Debug)]
pub(super) struct Crowd {
    dimension: Dimension,
    explorers: i64,
    followers: i64,
    now: u64,
    loaded: BTreeMap<ChunkAt, Loaded>,
    autosave: VecDeque<ChunkAt>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Loaded {
    changes: u64,
    is_saved: bool,
}

impl Crowd {
    pub(super) fn new(dimension: Dimension, explorers: u32, followers: u32) -> Self {
        Self {
            dimension,
            explorers: explorers.into(),
            followers: followers.min(explorers).into(),
            now: 0,
            loaded: BTreeMap::new(),
            autosave: VecDeque::new(),
        }
    }

    /// The next tick.
    pub(super) fn tick(&mut self) -> Asked {
        let mut asked = Asked::default();
        for lane in 0..self.explorers {
            self.explore(lane, &mut asked);
        }
        for lane in 0..self.followers {
            self.follow(lane, &mut asked);
        }
        if self.now > 0 && self.now.is_multiple_of(AUTOSAVE_EVERY_TICKS) {
            let unsaved = self.loaded.iter().filter(|(_, loaded)| !loaded.is_saved);
            self.autosave = unsaved.map(|(at, _)| *at).collect();
        }
        let batch = self.autosave.len().min(AUTOSAVED_PER_TICK);
        for at in self.autosave.drain(..batch) {
            // It may have left the view meanwhile, and was saved then.
            if let Some(loaded) = self.loaded.get_mut(&at).filter(|loaded| !loaded.is_saved) {
                loaded.is_saved = true;
                asked.saves.push((at, loaded.changes));
            }
        }
        self.now += 1;
        asked
    }

    /// The chunks in memory that were not saved: a host saves them when it stops.
    pub(super) fn stop(self) -> Vec<(ChunkAt, u64)> {
        let unsaved = self.loaded.into_iter().filter(|(_, loaded)| !loaded.is_saved);
        unsaved.map(|(at, loaded)| (at, loaded.changes)).collect()
    }

    fn explore(&mut self, lane: i64, asked: &mut Asked) {
        let x = walked(lane, self.now);
        asked.players.push(self.player(lane, lane, x));
        let column = x.div_euclid(SIDE_BLOCKS);
        match self.now {
            0 => {
                for column in column - VIEW_COLUMNS..=column + VIEW_COLUMNS {
                    self.meet(lane, column, asked);
                }
            }
            now if walked(lane, now - 1).div_euclid(SIDE_BLOCKS) < column => {
                self.leave(lane, column - VIEW_COLUMNS - 1, asked);
                self.meet(lane, column + VIEW_COLUMNS, asked);
            }
            _ => {}
        }
        // Once a second a block is changed in the middle of what is seen.
        if self.now % GameTick::PER_SECOND == lane as u64 % GameTick::PER_SECOND {
            let height = HEIGHT_CHUNKS as usize;
            let middle =
                self.slice(lane, column).nth(VIEW_COLUMNS as usize * height + self.now as usize % height);
            if let Some(loaded) = middle.and_then(|at| self.loaded.get_mut(&at)) {
                *loaded = Loaded { changes: loaded.changes + 1, is_saved: false };
            }
        }
    }

    fn meet(&mut self, lane: i64, column: i64, asked: &mut Asked) {
        for at in self.slice(lane, column) {
            self.loaded.insert(at, Loaded::default());
            asked.new.push(at);
        }
    }

    fn leave(&mut self, lane: i64, column: i64, asked: &mut Asked) {
        for at in self.slice(lane, column) {
            if let Some(loaded) = self.loaded.remove(&at).filter(|loaded| !loaded.is_saved) {
                asked.saves.push((at, loaded.changes));
            }
        }
    }

    fn follow(&self, lane: i64, asked: &mut Asked) {
        let x = |now| walked(lane, now) - BEHIND_BLOCKS;
        // It begins where the other began to see something.
        if self.now == 0 || x(self.now - 1) <= walked(lane, 0) {
            return;
        }
        asked.players.push(self.player(self.explorers + lane, lane, x(self.now)));
        let column = x(self.now).div_euclid(SIDE_BLOCKS);
        if x(self.now - 1).div_euclid(SIDE_BLOCKS) < column {
            asked.known.extend(self.slice(lane, column + VIEW_COLUMNS));
        }
    }

    /// The chunks across a lane, of one column along it.
    fn slice(&self, lane: i64, column: i64) -> impl Iterator<Item = ChunkAt> + use<> {
        let (middle, dimension) = (lane_chunk(lane), self.dimension);
        let across = middle - VIEW_COLUMNS..=middle + VIEW_COLUMNS;
        let heights = BOTTOM_CHUNK_Y..BOTTOM_CHUNK_Y + HEIGHT_CHUNKS;
        let places = across.flat_map(move |z| heights.clone().map(move |y| ChunkPos::constant(column, y, z)));
        places.map(move |pos| ChunkAt::new(dimension, pos))
    }

    fn player(&self, id: i64, lane: i64, x: i64) -> PlayerAt {
        let middle_y = (BOTTOM_CHUNK_Y + HEIGHT_CHUNKS / 2) * SIDE_BLOCKS;
        PlayerAt {
            id: EntityId::new(uuid::Uuid::from_u128(id as u128 + 1)),
            dimension: self.dimension,
            block: BlockPos::new(x, middle_y, lane * LANE_BLOCKS),
        }
    }
}

/// Where along its lane an explorer is; they do not cross into new chunks together.
fn walked(lane: i64, now: u64) -> i64 {
    (lane * 7 * 1000 % (SIDE_BLOCKS * 1000) + now as i64 * SPEED) / 1000
}

fn lane_chunk(lane: i64) -> i64 {
    lane * LANE_BLOCKS / SIDE_BLOCKS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_chunk_is_met_once_saved_and_known_when_it_is_met_again() {
        let mut crowd = Crowd::new(Dimension::new(0), 2, 1);
        let (mut made, mut saved) = (BTreeSet::new(), BTreeSet::new());
        let (mut known, minutes) = (0, 6);
        for _ in 0..minutes * 60 * GameTick::PER_SECOND {
            let asked = crowd.tick();
            for at in &asked.known {
                assert!(saved.contains(at), "{at} was never saved");
            }
            known += asked.known.len();
            for at in asked.new {
                assert!(made.insert(at), "{at} came twice");
            }
            saved.extend(asked.saves.into_iter().map(|(at, _)| at));
        }
        assert!(known > 1000, "{known}");
        let view = (2 * VIEW_COLUMNS + 1).pow(2) * HEIGHT_CHUNKS;
        let per_second = (made.len() as i64 - 2 * view) / 2 / (minutes as i64 * 60);
        assert!((20..=23).contains(&per_second), "{per_second}");
        saved.extend(crowd.stop().into_iter().map(|(at, _)| at));
        assert_eq!(made, saved);
    }
}
