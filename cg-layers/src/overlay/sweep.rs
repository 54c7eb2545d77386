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

impl<S: Base> Pool<S> {
    /// Deletes at most `max_rows` rows of expired leases. Returns the number deleted; fewer than `max_rows` if none
    /// are left. While any arena's row is damaged, rows from before the store was opened stay: they may be that
    /// arena's.
    pub(super) fn sweep(&self, max_rows: usize) -> Result<usize, Error> {
        let mut rows = Vec::new();
        let (live, limit) = {
            let arenas = self.arenas.all.lock();
            let leases = arenas.values().flat_map(|arena| [&arena.lease, &arena.next]);
            let live: BTreeSet<u64> = leases.map(|lease| lease.load(Ordering::Acquire)).collect();
            // Leases that are issued from here on are not swept.
            (live, self.arenas.next_lease.load(Ordering::Acquire))
        };
        let first = if self.arenas.damaged.lock().are_any() { self.arenas.given_from } else { 0 };
        // A deletion uses only the family of the space.
        let families = [
            (Family::ChunkL0, Space::ChunkL0),
            (Family::ChunkDelta, Space::ChunkDelta),
            (Family::Entity, Space::Entity),
            (Family::WorldProperties, Space::WorldProperty),
            (Family::Object, Space::Object),
            (Family::Record, Space::Record),
        ];
        for (family, space) in families {
            let mut from = first;
            while rows.len() < max_rows {
                let next = self.first_lease(family, from)?.filter(|lease| *lease < limit);
                let Some(next) = next else { break };
                if !live.contains(&next) {
                    self.rows_of(family, space, next, max_rows, &mut rows)?;
                }
                from = next + 1;
            }
        }
        let mut batch = Batch::new();
        for (space, key) in &rows {
            batch.delete(*space, key);
        }
        if !rows.is_empty() {
            // Deletions that a power cut loses are repeated by a later sweep.
            self.store.rows.commit(batch, Level::Process)?;
            self.store.counts.rows_swept.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok(rows.len())
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
