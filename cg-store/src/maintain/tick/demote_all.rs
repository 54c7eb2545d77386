//! Demoting a whole world: every chunk moves to the tier in which it would be after some time without players.

use std::ops::Bound;

use cg_format::key::{self, Family};
use cg_tiering::GameTick;

use crate::engine::ALL_KEYS;
use crate::maintain::delta::Which;
use crate::maintain::move_tier::hot_keys;
use crate::maintain::state::MaintainState;
use crate::maintain::tiering::{Due, Gathered, MoveCounts, NextCubes, STEPS_AHEAD, Work};
use crate::storage::error::Error;

/// The key of a hot row.
type HotKey = [u8; key::CHUNK_LEN_BYTES];

/// The families from which and into which chunks are moved.
const MOVED_FAMILIES: [Family; 5] =
    [Family::ChunkL0, Family::ChunkL1, Family::ChunkL2, Family::Index, Family::ChunkDelta];

/// The families of other values. A move deletes or folds some of their rows, and keeps all others.
const SETTLED_FAMILIES: [Family; 6] = [
    Family::OpacityMap,
    Family::Entity,
    Family::Object,
    Family::Record,
    Family::WorldProperties,
    Family::WorldMeta,
];

impl MaintainState {
    /// Takes all steps, which end at a hot key. If the disk has too little space, the ranges that were moved away are
    /// compacted, and the remaining steps are taken then. `given_back` is the number of moved chunks at the last
    /// compaction.
    ///
    /// # Errors
    /// [`Error::LowDiskSpace`] if compaction frees too little.
    fn work_with_room(
        &self,
        work: &mut Work,
        up_to: Option<HotKey>,
        due: Due,
        counts: &mut MoveCounts,
        given_back: &mut u64,
    ) -> Result<(), Error> {
        loop {
            self.work(work, due, counts)?;
            match work.skipped_low_disk.take() {
                None => return Ok(()),
                Some(error) if counts.moved() == *given_back => return Err(error),
                Some(_) => self.give_room_back(up_to)?,
            }
            *given_back = counts.moved();
        }
    }

    /// Compacts the range of the hot rows up to a key, where almost none are left; `None`: all hot rows.
    fn give_room_back(&self, up_to: Option<HotKey>) -> Result<(), Error> {
        let last = up_to.as_ref().map_or(Bound::Unbounded, |key| Bound::Included(&key[..]));
        let engine = self.shared.engine()?;
        // The log takes space, too.
        engine.flush()?;
        engine.compact(Family::ChunkL0, (Bound::Unbounded, last))?;
        self.commit.disk_guard.ask_again();
        Ok(())
    }

    /// Compacts what was moved away, because it still takes space in the engine's files, and what is not compressed as
    /// small as it gets, because it was written lately. If nothing was moved, only the latter, as to compact is to write
    /// everything again.
    fn compact_demoted(&self, has_moved: bool) -> Result<(), Error> {
        if self.shared.engine()?.caps().read_only {
            return Ok(());
        }
        self.commit.disk_guard.ask_again();
        if self.commit.check_room().is_ok() {
            // Otherwise they would be written when the world is closed.
            self.commit.fold_names()?;
        }
        let engine = self.shared.engine()?;
        // The log, too, still holds what was moved.
        engine.flush()?;
        let usage = engine.usage()?;
        let has_new_files =
            |family| usage.families.iter().any(|held| held.family == family && held.upper_file_count > 0);
        for family in MOVED_FAMILIES.into_iter().filter(|_| has_moved) {
            self.compact_with_room(family)?;
        }
        for family in SETTLED_FAMILIES.into_iter().filter(|family| has_moved || has_new_files(*family)) {
            self.compact_with_room(family)?;
        }
        Ok(())
    }

    /// Compacts a family, if there is room.
    fn compact_with_room(&self, family: Family) -> Result<(), Error> {
        if self.has_room_to_compact(family)? {
            self.shared.engine()?.compact(family, ALL_KEYS)?;
        }
        Ok(())
    }

    /// Whether a family can be compacted. If commits are refused for low disk space, only if it fits twice into the free
    /// space.
    pub(super) fn has_room_to_compact(&self, family: Family) -> Result<bool, Error> {
        self.commit.disk_guard.ask_again();
        if self.commit.check_room().is_err() {
            let engine = self.shared.engine()?;
            let families = engine.usage()?.families;
            let held = families.iter().find(|held| held.family == family);
            let bytes = held.map_or(0, |held| held.table_bytes + held.blob_bytes + held.buffered_bytes);
            if engine.free_bytes().is_some_and(|free| bytes > free / 2) {
                tracing::warn!(family = family.name(), bytes, "too little room to compact");
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Repeats rounds until one moves nothing. Cubes with conflicts until then are in use.
    fn run_rounds(
        &self,
        work: &mut Work,
        due: Due,
        progress: &mut impl FnMut(&MoveCounts),
    ) -> Result<MoveCounts, Error> {
        let (mut counts, mut given_back) = (MoveCounts::default(), 0);
        self.collect_jobs(work, 0, due, &mut counts)?;
        loop {
            let before = counts.moved();
            self.run_round(work, due, &mut counts, &mut given_back)?;
            self.update_heat(work, due)?;
            progress(&counts);
            if counts.moved() == before {
                return Ok(counts);
            }
        }
    }

    /// Considers all cubes with rows in the order of their keys, and takes the steps that are due.
    fn run_round(
        &self,
        work: &mut Work,
        due: Due,
        counts: &mut MoveCounts,
        given_back: &mut u64,
    ) -> Result<(), Error> {
        // The round reads the rows that were put until now.
        work.note_written(&self.activity.tiering);
        let promotions = work.begin_again();
        self.activity.tiering.observers(|seen| promotions.into_iter().for_each(|cube| seen.again(cube)));
        let (mut next_cubes, mut up_to) = (NextCubes::default(), None);
        while let Some(cluster) = self.select_next_cluster(work, &mut next_cubes, due)? {
            // Clusters may come again after others.
            up_to = up_to.max(Some(hot_keys(cluster)[1]));
            if work.plan.left().steps >= STEPS_AHEAD {
                self.work_with_room(work, up_to, due, counts, given_back)?;
            }
        }
        self.work_with_room(work, None, due, counts, given_back)
    }
}

impl MaintainState {
    /// See [`Tiers::demote_all`](crate::tiers::Tiers::demote_all).
    pub(crate) fn demote_all(
        &self,
        after_ticks: u64,
        mut progress: impl FnMut(&MoveCounts),
    ) -> Result<MoveCounts, Error> {
        self.shared.check_open()?;
        let mut state = self.maintenance.state.lock();
        let at = GameTick::new(self.activity.tiering.now().get().saturating_add(after_ticks));
        let due = Due::when_nobody_comes(at);
        let state = &mut *state;
        self.commit.check_room_to_shrink()?;
        let folded = self.fold_waiting(&mut state.folding, Which::All, due, &mut state.work.damage_log)?;
        let counts = self.run_rounds(&mut state.work, due, &mut progress);
        state.work.gathered = Gathered::default();
        let counts = counts?;
        self.compact_demoted(counts.moved() > 0 || folded > 0)?;
        Ok(counts)
    }
}
