//! Decides which deltas maintenance folds, and when.
//!
//! A chunk that may get no further delta is folded in the background, so that its next change is a small row again. A
//! chunk whose cube was not accessed for a minute is folded too. It is still hot then, and is demoted as one row.

use std::collections::HashMap;

use cg_format::ChunkAt;
use cg_tiering::{CubeAt, GameTick};

use super::fold::FoldOutcome;
use crate::engine::ErrorKind;
use crate::maintain::state::MaintainState;
use crate::maintain::tiering::{DamageLog, Due};
use crate::read::delta::{MAX_CHUNKS, MAX_DELTAS};
use crate::storage::error::Error;

/// A chunk whose cube was not accessed for this time is folded.
const IDLE_TICKS: u64 = 60 * GameTick::PER_SECOND;
/// The maximum number of chunks that one tick considers.
const CHUNKS_CONSIDERED: usize = 64;

/// Chunks whose deltas could not be folded, because of damage or because no delta is written. Each has the commit of
/// its last delta and the number of its deltas. A new delta, or a quarantined one, changes these, and the chunk is
/// tried again.
#[derive(Debug, Default)]
pub(crate) struct FoldSchedule(HashMap<ChunkAt, (u64, usize)>);

/// Which chunks are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are due, among a few.
    Due,
    /// All chunks with deltas.
    All,
}

impl MaintainState {
    /// Folds the deltas of waiting chunks, and returns the number of folded chunks. Damaged chunks stay as they are,
    /// and are reported.
    ///
    /// Considering a chunk costs two map lookups. Folding costs the reads of a load, and the engine's lock. Exceeds a
    /// deadline by at most one chunk.
    pub(crate) fn fold_waiting(
        &self,
        waiting: &mut FoldSchedule,
        which: Which,
        due: Due,
        damage_log: &mut DamageLog,
    ) -> Result<usize, Error> {
        let (mut folded_chunks, most) = (0, if which == Which::All { usize::MAX } else { CHUNKS_CONSIDERED });
        // A chunk that waits again is considered in a later call.
        for _ in 0..self.read.deltas.len().min(most) {
            if due.is_over() {
                break;
            }
            let Some((at, commits)) = self.read.deltas.next_waiting() else { break };
            let had = (commits.last().copied().unwrap_or(0), commits.len());
            let is_due = match which {
                Which::All => true,
                Which::Due => commits.len() >= MAX_DELTAS || self.is_idle(at, due),
            };
            let folds = is_due && waiting.0.get(&at) != Some(&had);
            let folded = if folds { self.fold_chunk(waiting, at, had, damage_log) } else { Ok(false) };
            // If a new delta was added meanwhile, the chunk waits for the next call.
            self.read.deltas.wait_again(at);
            folded_chunks += usize::from(folded?);
        }
        Ok(folded_chunks)
    }

    /// Folds the deltas of a chunk, or records that they stay. Returns whether they were folded.
    fn fold_chunk(
        &self,
        waiting: &mut FoldSchedule,
        at: ChunkAt,
        had: (u64, usize),
        damage_log: &mut DamageLog,
    ) -> Result<bool, Error> {
        // Checked before the fold, because the index contains a delta before it is written.
        let is_on_its_way =
            self.shared.slot.reached()[0].get() < had.0 || self.read.pending.chunk(at).is_some();
        match self.fold_deltas_of(at) {
            Ok(FoldOutcome::Done) => {
                waiting.0.remove(&at);
                return Ok(true);
            }
            Ok(FoldOutcome::Nothing) if !is_on_its_way => waiting.keep(at, had),
            Ok(FoldOutcome::Nothing | FoldOutcome::Conflict) => {}
            // A missing schema generation also stays missing.
            Err(error) if error.kind() == ErrorKind::Damaged => {
                damage_log.report(&error);
                waiting.keep(at, had);
            }
            Err(error) => return Err(error),
        }
        Ok(false)
    }

    fn is_idle(&self, at: ChunkAt, due: Due) -> bool {
        let last_access = self.activity.tiering.observers(|seen| seen.heat().last_access(CubeAt::of(at)));
        due.at().since(last_access) >= IDLE_TICKS
    }
}

impl FoldSchedule {
    fn keep(&mut self, at: ChunkAt, had: (u64, usize)) {
        if self.0.len() >= MAX_CHUNKS {
            self.0.clear();
        }
        self.0.insert(at, had);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::MemEngine;
    use crate::{Durability, World, WorldOptions};
    use cg_format::chunk::Chunk;
    use cg_format::{BlockPos, ChunkPos, LocalPos};
    use parking_lot::Mutex;
    use std::sync::Arc;
    use std::sync::mpsc::{Receiver, channel};

    /// The index contains a delta before it is written. A fold at that time finds none, and must be tried again.
    #[test]
    fn a_delta_that_is_looked_for_before_it_is_written_is_folded_later() {
        let step = Arc::<Mutex<Option<Receiver<()>>>>::default();
        let engine = MemEngine::new().with_fault({
            let step = Arc::clone(&step);
            move |_| {
                let _written = step.lock().as_ref().map(Receiver::recv);
                None
            }
        });
        let options = WorldOptions { deltas: true, durability: Durability::Fast, ..WorldOptions::default() };
        let world = World::builder().options(&options).over(engine).unwrap();
        let flat = world.registry().register_dimension("game:flat").unwrap();
        let [stone, glass] = world.registry().register_blocks(["game:stone", "game:glass"]).unwrap();
        let at = ChunkAt::new(flat, ChunkPos::constant(0, 0, 0));
        let saved = world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            let mut chunk = Chunk::filled(stone, &schema)?;
            for cell in LocalPos::all().filter(|cell| (cell.x() ^ cell.y() ^ cell.z()) % 2 == 1) {
                chunk.set_block(cell, glass, &schema)?;
            }
            tx.save(at, chunk);
            Ok::<_, Error>(())
        });
        saved.unwrap();
        world.flush().unwrap();

        let rooms = world.rooms();
        let (mut waiting, mut damage_log) = (FoldSchedule::default(), DamageLog::default());
        let mut fold = || {
            let due = Due::when_nobody_comes(GameTick::new(0));
            rooms.maintain.fold_waiting(&mut waiting, Which::All, due, &mut damage_log).unwrap()
        };
        let (sender, receiver) = channel();
        *step.lock() = Some(receiver);
        world.transaction(|tx| tx.set_block(flat, BlockPos::new(1, 0, 0), stone)).unwrap();
        while rooms.read.deltas.commits(at).is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(fold(), 0, "it is not there yet");
        drop(sender);
        world.flush().unwrap();
        assert_eq!(fold(), 1);
        assert!(rooms.read.deltas.commits(at).is_empty());
    }
}
