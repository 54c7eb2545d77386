//! Folding of deltas into the rows of their chunks: which, when, and how.
//!
//! A chunk that may get no further delta is folded in the background, so that its next change is a small row again. A
//! chunk whose cube was not accessed for a minute is folded too. It is still hot then, and is demoted as one row.

use std::collections::HashMap;
use std::ops::{Bound, ControlFlow};

use cg_format::frame::Stamp;
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, Lookup, Space};
use cg_tiering::{CubeAt, GameTick};

use crate::engine::{Batch, ErrorKind, Guard, Readable as _, ReadableExt as _};
use crate::maintain::state::{MaintainState, commit_guarded};
use crate::maintain::tiering::{DamageLog, Due};
use crate::read::chunk::{Rows, find, hot_row};
use crate::read::delta::{Deltas, MAX_CHUNKS, MAX_DELTAS, fold};
use crate::rt::stats::Counters;
use crate::storage::error::Error;
use crate::storage::recent_puts::RecentPuts;

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

/// The result of folding a chunk's deltas.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FoldOutcome {
    /// The row contains all changes now.
    Done,
    /// A commit changed the row meanwhile; nothing was written.
    Conflict,
    /// The chunk has no written delta.
    Nothing,
}

/// A row with the content of a chunk's row and deltas at the time of reading.
struct PendingFold {
    at: ChunkAt,
    batch: Batch,
    guard: Guard,
    /// The last delta that the row contains.
    last: u64,
}

impl MaintainState {
    /// Writes a chunk with its deltas as one hot row and deletes the deltas. The version and the schema generation stay
    /// the same.
    ///
    /// Only the row is guarded. A delta that is committed meanwhile is newer than the folded ones, so it applies to the
    /// new row as it would have to the old one. Every other deletion of deltas also replaces the row. If the chunk is
    /// in a cluster, the guard requires that no hot row was put. The cluster may move to another tier, because that
    /// does not change the content.
    pub(super) fn fold_deltas_of(&self, at: ChunkAt) -> Result<FoldOutcome, Error> {
        self.pending_fold(at)?.map_or(Ok(FoldOutcome::Nothing), |pending| self.fold_as_read(pending))
    }

    /// Reads what is to be written. Returns `None` if there is no delta.
    fn pending_fold(&self, at: ChunkAt) -> Result<Option<PendingFold>, Error> {
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        let row_key = key::chunk(at);
        let guard = match view.get(Space::ChunkL0, &row_key)? {
            Some(row) => Guard::same(Space::ChunkL0, row_key, &row),
            None => Guard::absent(Space::ChunkL0, row_key),
        };
        let catalog = self.shared.registry.catalog();
        let found = find(Rows::View(&view), &self.shared.counters, at, |stored| {
            let (chunk, version) = fold(&catalog, stored, &Deltas::Stored, &view)?;
            Ok((chunk, version, stored.version.get(), stored.schema_generation))
        })?;
        let (mut batch, mut last) = (Batch::new(), None);
        let (from, to) = (key::delta(at, 0), key::delta(at, u64::MAX));
        let range = (Bound::Included(&from[..]), Bound::Included(&to[..]));
        view.scan(Family::ChunkDelta, range, |delta, _| {
            last = key::decode_delta(delta).ok().map(|(_, seq)| seq);
            batch.delete(Space::ChunkDelta, delta);
            ControlFlow::<()>::Continue(())
        })?;
        match found {
            Lookup::Found((chunk, version, of_row, generation)) if version > of_row => {
                let row = hot_row(&chunk, generation, self.shared.options.hot_codec());
                batch.put(Space::ChunkL0, row_key, row, Stamp::Keep(version));
            }
            // Deltas that are older than the row have no effect.
            Lookup::Found(_) | Lookup::Tombstone => {}
            Lookup::NotFound => return Ok(None),
        }
        Ok(last.map(|last| PendingFold { at, batch, guard, last }))
    }

    fn fold_as_read(&self, pending: PendingFold) -> Result<FoldOutcome, Error> {
        let PendingFold { at, batch, guard, last } = pending;
        let (rows, bytes, put) = (batch.op_count() as u64, batch.len_bytes(), RecentPuts::of(&batch));
        if !commit_guarded(&*self.shared.engine()?, batch, &[guard])? {
            return Ok(FoldOutcome::Conflict);
        }
        self.activity.tiering.wrote(put);
        self.read.deltas.forget_up_to(at, last);
        Counters::add(&self.shared.counters.chunks_folded, 1);
        Counters::add(&self.shared.counters.rows_written, rows);
        Counters::add(&self.shared.counters.bytes_written, bytes);
        Ok(FoldOutcome::Done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{CommitSeq, MemEngine};
    use crate::{Durability, World, WorldOptions};
    use cg_format::chunk::Chunk;
    use cg_format::{BlockId, BlockPos, ChunkPos, Dimension, LocalPos};
    use cg_tiering::CubeAt;
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

    /// A world with a chunk of stone and one delta on it.
    fn world() -> (World, ChunkAt, [BlockId; 2]) {
        let options = WorldOptions { deltas: true, ..WorldOptions::default() };
        let world = World::builder().options(&options).in_memory().unwrap();
        let flat = world.registry().register_dimension("game:flat").unwrap();
        let [stone, glass] = world.registry().register_blocks(["game:stone", "game:glass"]).unwrap();
        let at = ChunkAt::new(flat, ChunkPos::constant(0, 0, 0));
        save(&world, at, stone, glass);
        set(&world, at.dimension, 1, stone);
        (world, at, [stone, glass])
    }

    fn save(world: &World, at: ChunkAt, fill: BlockId, dots: BlockId) {
        let saved = world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            let mut chunk = Chunk::filled(fill, &schema)?;
            for cell in cg_format::LocalPos::all().filter(|cell| (cell.x() ^ cell.y() ^ cell.z()) % 2 == 1) {
                chunk.set_block(cell, dots, &schema)?;
            }
            tx.save(at, chunk);
            Ok::<_, Error>(())
        });
        drop(saved.unwrap());
    }

    fn set(world: &World, dimension: Dimension, x: i64, block: BlockId) {
        drop(world.transaction(|tx| tx.set_block(dimension, BlockPos::new(x, 0, 0), block)).unwrap());
    }

    /// The stored bytes, read without the cache.
    fn stored(world: &World, at: ChunkAt) -> Option<(Vec<u8>, CommitSeq)> {
        world.tiers().with_stored_bytes(at, |stored| Ok((stored.value.to_vec(), stored.version))).unwrap()
    }

    #[test]
    fn a_save_in_between_makes_folding_give_up() {
        let (world, at, [stone, glass]) = world();
        let rooms = world.rooms();
        let saved = rooms.maintain.pending_fold(at).unwrap().unwrap();
        save(&world, at, glass, stone);
        set(&world, at.dimension, 2, stone);
        let before = stored(&world, at);
        assert_eq!(rooms.maintain.fold_as_read(saved).unwrap(), FoldOutcome::Conflict);
        assert_eq!((stored(&world, at), rooms.read.deltas.commits(at).len()), (before, 1));
        let deleted = rooms.maintain.pending_fold(at).unwrap().unwrap();
        let delete = world.transaction(|tx| {
            tx.delete(at);
            Ok::<_, Error>(())
        });
        drop(delete.unwrap());
        assert_eq!(rooms.maintain.fold_as_read(deleted).unwrap(), FoldOutcome::Conflict);
        assert_eq!(
            (stored(&world, at), rooms.maintain.fold_deltas_of(at).unwrap()),
            (None, FoldOutcome::Nothing)
        );
    }

    #[test]
    fn a_delta_in_between_goes_on_the_new_row() {
        let (world, at, [stone, _]) = world();
        let rooms = world.rooms();
        let pending = rooms.maintain.pending_fold(at).unwrap().unwrap();
        set(&world, at.dimension, 3, stone);
        let before = stored(&world, at);
        assert_eq!(rooms.maintain.fold_as_read(pending).unwrap(), FoldOutcome::Done);
        assert_eq!((stored(&world, at), rooms.read.deltas.commits(at).len()), (before.clone(), 1));
        assert_eq!(rooms.maintain.fold_deltas_of(at).unwrap(), FoldOutcome::Done);
        assert_eq!((stored(&world, at), rooms.read.deltas.commits(at).len()), (before, 0));
        assert_eq!(rooms.maintain.fold_deltas_of(at).unwrap(), FoldOutcome::Nothing);
    }

    #[test]
    fn a_move_in_between_is_no_change() {
        let (world, at, _) = world();
        let rooms = world.rooms();
        let before = stored(&world, at);
        let warm = |world: &World| {
            let heat = cg_tiering::Heat { last_access: cg_tiering::GameTick::new(0), moved_at: None };
            let rooms = world.rooms();
            crate::maintain::move_tier::demote_warm(
                &*rooms.shared.engine().unwrap(),
                &rooms.shared.counters,
                CubeAt::of(at),
                heat,
            )
            .unwrap()
        };
        let of_hot = rooms.maintain.pending_fold(at).unwrap().unwrap();
        warm(&world);
        assert_eq!(rooms.maintain.fold_as_read(of_hot).unwrap(), FoldOutcome::Conflict, "its row is gone");
        assert_eq!(stored(&world, at), before);
        assert_eq!(rooms.maintain.fold_deltas_of(at).unwrap(), FoldOutcome::Done, "out of the cluster");
        assert_eq!(stored(&world, at), before);
        warm(&world);
        assert_eq!(stored(&world, at), before);
    }
}
