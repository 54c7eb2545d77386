//! Refreshing: a world that follows another writer shows the newest state of the shared rows.
//!
//! A world that is opened read-only over shared rows shows one state of them. A refresh takes the newest state, and
//! exchanges at once the rows and what memory knows of them: names, limits, deltas, and cached chunks of cubes that changed.
//! Threads that read meanwhile, and read views that were taken before, keep the old state.
//!
//! **Invariants**.
//! - A reader that borrows the engine and then asks for deltas or names gets those of the same state, or newer names.
//! - The cache has nothing of a cube whose change mark is newer than the state that is shown. While it is looked through,
//!   nothing is cached.
//! - States are shown in the order of their commits, and are of one history.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cg_format::frame::FrameView;
use cg_format::{ClusterPos, Dimension, Space, key};
use foldhash::{HashSet, HashSetExt as _};

use crate::commit::state::CommitState;
use crate::engine::{CommitSeq, Engine as _, EngineError, Readable};
use crate::read::delta::DeltaIndex;
use crate::rt::stats::Counters;
use crate::storage::change_log::{BEGINNING, KeptLog};
use crate::storage::error::{Error, NotResumed, OpenError};
use crate::storage::meta::{IDENTITY, WorldRows};
use crate::storage::opacity_map::{KeptMap, WHOLE};
use crate::storage::reading::ReadingEngine;
use crate::storage::recovery;

/// How long the exchange waits for threads that borrow the engine at this moment. They keep a state of their own, so they
/// hold the place no longer than a few instructions.
const PATIENCE: Duration = Duration::from_secs(10);

/// What memory is to know of a newer state.
struct Known {
    rows: WorldRows,
    deltas: DeltaIndex,
    map: KeptMap,
    cubes: Cubes,
}

/// The 16³ cubes of which memory had something before the exchange.
struct Cubes {
    all: HashSet<(Dimension, ClusterPos)>,
    /// Those that changed since the state that is shown.
    changed: HashSet<(Dimension, ClusterPos)>,
}

impl CommitState {
    /// See [`World::refresh`](crate::World::refresh).
    pub(crate) fn refresh(&self) -> Result<CommitSeq, Error> {
        self.shared.check_open()?;
        let Some(followed) = self.shared.followed.get() else {
            return Err(EngineError::Unsupported { what: "be followed" }.into());
        };
        let _one_at_a_time = self.shared.refreshing.lock();
        let shown = CommitSeq::new(self.log.published());
        let newest = ReadingEngine::newest(followed)?;
        let found = newest.last_commit();
        if newest.is_at(shown, &self.shared.lineage()) {
            self.exchange(newest, None)?;
        } else if recovery::is_left(&newest)? {
            // The writer is applying a commit in parts.
            return Ok(shown);
        } else {
            let known = self.learn_newest(&newest, shown)?;
            self.exchange(newest, Some(known))?;
        }
        Ok(found)
    }

    /// Reads what memory is to know of a newer state.
    ///
    /// # Errors
    /// [`OpenError::OtherHistory`] if the rows do not continue those that are shown.
    fn learn_newest(&self, newest: &ReadingEngine, shown: CommitSeq) -> Result<Known, Error> {
        let rows = WorldRows::read(newest)?;
        let found = newest.last_commit();
        let identity = IDENTITY.get(&rows.view)?.map(|file| file.identity());
        let point = self.shared.lineage().at(shown.get());
        let is_continued = found > shown
            && identity == Some(self.shared.file.identity())
            && (point.opening == 0 || rows.lineage.has(point));
        if !is_continued {
            let at = self.shared.location.clone();
            return Err(OpenError::OtherHistory { at, shown, found }.into());
        }
        let map = KeptMap::at_open(WHOLE.get(&rows.view), &rows.catalog, &self.shared.options)?;
        let all = self.read.cache.cubes();
        let changed = self.changed_since(newest, &all, shown.get())?;
        Ok(Known { rows, deltas: DeltaIndex::read(newest)?, map, cubes: Cubes { all, changed } })
    }

    /// Shows another state. Without something new to know, its chunks are those of the old one in other rows.
    fn exchange(&self, newest: ReadingEngine, known: Option<Known>) -> Result<(), Error> {
        let found = newest.last_commit();
        // No view is taken meanwhile.
        let mut committing = self.log.commit();
        self.shared.check_open()?;
        let Some(known) = known else {
            let vacant = self.shared.slot.vacate(PATIENCE).ok_or(NotResumed::InUse { waited: PATIENCE })?;
            vacant.fill(Box::new(newest));
            return Ok(());
        };
        let announced = self.read.cache.announce_anywhere();
        let Known { rows, deltas, map, cubes: Cubes { all, mut changed } } = known;
        let WorldRows { mut catalog, limits, tombstone_horizon, lineage, view, .. } = rows;
        // Of cubes that came meanwhile it is not known whether they changed.
        changed.extend(self.read.cache.cubes().difference(&all));
        let vacant = self.shared.slot.vacate(PATIENCE).ok_or(NotResumed::InUse { waited: PATIENCE })?;
        self.read.deltas.replace(deltas);
        // An overlay over this world registers names beside them.
        catalog.keep_declared(&self.shared.registry.catalog());
        self.shared.registry.replace(Arc::new(catalog));
        if let Some(limits) = limits {
            *self.shared.limits.write() = limits;
        }
        *self.shared.lineage.write() = Arc::new(lineage);
        self.shared.tombstone_horizon.store(tombstone_horizon, Ordering::Relaxed);
        self.shared.map.replace(map);
        self.shared.change_log.replace(&KeptLog::at_open(BEGINNING.get(&view)));
        announced.forget(&changed);
        committing.publish(found.get(), []);
        // Which chunks changed is not known.
        committing.forget_recent();
        vacant.fill(Box::new(newest));
        drop(announced);
        self.observer.reopened();
        Ok(())
    }

    /// Those of some 16³ cubes whose change marks are newer than a commit, or damaged. One read.
    fn changed_since(
        &self,
        rows: &dyn Readable,
        cubes: &HashSet<(Dimension, ClusterPos)>,
        since: u64,
    ) -> Result<HashSet<(Dimension, ClusterPos)>, Error> {
        let keys: Vec<_> =
            cubes.iter().map(|(dimension, cube)| key::change_mark(*dimension, *cube)).collect();
        let asked: Vec<_> = keys.iter().map(|key| (Space::ChangeMark, &key[..])).collect();
        Counters::add(&self.shared.counters.engine_reads, asked.len() as u64);
        let mut changed = HashSet::new();
        for ((cube, key), row) in cubes.iter().zip(&keys).zip(rows.get_many(&asked)) {
            let is_newer = |row: &[u8]| {
                FrameView::open(Space::ChangeMark, key, row)
                    .map_or(true, |frame| frame.header().version > since)
            };
            match row {
                Ok(row) if row.as_deref().is_none_or(|row| !is_newer(row)) => {}
                Ok(_) | Err(EngineError::Corrupt { .. }) => drop(changed.insert(*cube)),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(changed)
    }
}
