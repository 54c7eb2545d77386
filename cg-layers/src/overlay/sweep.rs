//! Deletes the rows of expired leases.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::Space;
use cg_format::key::{self, Family};
use cg_store::Error;
use cg_store::engine::{Batch, EngineError, Level, Met, scan_skipping_damage};
use cg_store::layer::Base;

use super::pool::Pool;
use super::sweeping::{Place, Sweeping};

/// The families with rows of leases, each with a space of it. A deletion uses only the family of the space.
const FAMILIES: [(Family, Space); 6] = [
    (Family::ChunkL0, Space::ChunkL0),
    (Family::ChunkDelta, Space::ChunkDelta),
    (Family::Entity, Space::Entity),
    (Family::WorldProperties, Space::WorldProperty),
    (Family::Object, Space::Object),
    (Family::Record, Space::Record),
];

/// How much one commit of a sweep does.
struct Step {
    max_rows: usize,
    /// Each is a seek.
    max_leases: usize,
}

impl<S: Base> Pool<S> {
    /// Deletes at most `max_rows` rows of expired leases. Returns the number deleted; fewer than `max_rows` if none
    /// are left.
    pub(super) fn sweep(&self, max_rows: usize) -> Result<usize, Error> {
        /// The rows of one commit.
        const AT_ONCE: usize = 1 << 16;
        let (mut rows, mut place) = (0, Place::default());
        while rows < max_rows {
            let step = Step { max_rows: AT_ONCE.min(max_rows - rows), max_leases: usize::MAX };
            let (swept, next) = self.sweep_from(place, &step)?;
            rows += swept;
            let Some(next) = next else { break };
            place = next;
        }
        Ok(rows)
    }

    /// Whether a lease expired since the last pass began that has ended.
    pub(super) fn is_sweep_due(&self, sweeping: &Sweeping) -> bool {
        sweeping.pass.is_some() || sweeping.done != self.arenas.expired.load(Ordering::Acquire)
    }

    /// Does one step of a pass, and begins one if none is under way. Returns the number of rows deleted.
    pub(super) fn sweep_step(&self, sweeping: &mut Sweeping) -> Result<usize, Error> {
        const STEP: Step = Step { max_rows: 256, max_leases: 64 };
        let begin = || (Place::default(), self.arenas.expired.load(Ordering::Acquire));
        let (place, expired) = *sweeping.pass.get_or_insert_with(begin);
        let (rows, next) = self.sweep_from(place, &STEP)?;
        sweeping.pass = next.map(|next| (next, expired));
        if next.is_none() {
            sweeping.done = expired;
        }
        Ok(rows)
    }

    /// Deletes rows of expired leases from a place on. Returns their number, and where to go on; `None` if nothing is
    /// left. While any arena's row is damaged, rows from before the store was opened stay: they may be that arena's.
    fn sweep_from(&self, mut place: Place, step: &Step) -> Result<(usize, Option<Place>), Error> {
        let mut rows = Vec::new();
        let (live, limit) = {
            let arenas = self.arenas.all.lock();
            let leases = arenas.values().flat_map(|arena| [&arena.lease, &arena.next]);
            let live: BTreeSet<u64> = leases.map(|lease| lease.load(Ordering::Acquire)).collect();
            // Leases that are issued from here on are not swept.
            (live, self.arenas.next_lease.load(Ordering::Acquire))
        };
        let first = if self.arenas.damaged.lock().are_any() { self.arenas.given_from } else { 0 };
        let mut leases = 0;
        let next = loop {
            let Some((family, space)) = FAMILIES.get(place.family).copied() else { break None };
            if rows.len() >= step.max_rows || leases >= step.max_leases {
                break Some(place);
            }
            leases += 1;
            place.lease = place.lease.max(first);
            while live.contains(&place.lease) {
                place.lease += 1;
            }
            let found = self.first_lease(family, place.lease)?.filter(|lease| *lease < limit);
            let Some(lease) = found else {
                place = Place { family: place.family + 1, lease: 0 };
                continue;
            };
            if !live.contains(&lease) {
                self.rows_of(family, space, lease, step.max_rows, &mut rows)?;
                if rows.len() >= step.max_rows {
                    // It may have more.
                    place.lease = lease;
                    continue;
                }
            }
            place.lease = lease + 1;
        };
        let mut batch = Batch::new();
        for (space, key) in &rows {
            batch.delete(*space, key);
        }
        if !rows.is_empty() {
            // Deletions that a power cut loses are repeated by a later sweep.
            self.store.rows.commit(batch, Level::Process)?;
            self.store.counts.rows_swept.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok((rows.len(), next))
    }

    /// The first lease at or after `from` that has rows.
    fn first_lease(&self, family: Family, from: u64) -> Result<Option<u64>, Error> {
        let key = key::lease(from);
        let range = (Bound::Included(key.as_slice()), Bound::Unbounded);
        let lease = scan_skipping_damage(self.store.rows.engine(), family, range, |met| match met {
            Met::Row(key, _) => ControlFlow::Break(key::lease_of(key)),
            Met::Gap { error, .. } => self.pass(&error),
        })?;
        Ok(lease.flatten())
    }

    /// Continues a scan after damage.
    fn pass<B>(&self, error: &EngineError) -> ControlFlow<B> {
        tracing::warn!(%error, layer = self.store.layer, "sweeping went around damage, whose rows stay");
        self.store.counts.damage_met.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    }

    fn rows_of(
        &self,
        family: Family,
        space: Space,
        lease: u64,
        max_rows: usize,
        rows: &mut Vec<(Space, Vec<u8>)>,
    ) -> Result<(), Error> {
        let (from, to) = (key::lease(lease), key::lease(lease + 1));
        let range = (Bound::Included(from.as_slice()), Bound::Excluded(to.as_slice()));
        scan_skipping_damage(self.store.rows.engine(), family, range, |met| match met {
            Met::Row(key, _) => {
                rows.push((space, key.to_vec()));
                if rows.len() < max_rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            Met::Gap { error, .. } => self.pass(&error),
        })?;
        Ok(())
    }
}
