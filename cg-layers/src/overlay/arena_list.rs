//! The arenas of a store and their leases. A lease is issued once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::Space;
use cg_format::key::Family;
use cg_format::overlay::ArenaRow;
use cg_store::Error;
use cg_store::engine::{Batch, CommitSeq, Engine, EngineError, Met, scan_skipping_damage};
use cg_store::layer::{Mutex, rank};

use super::arena::{ARENA_PREFIX, Arena, NEXT_LEASE, arena_key, decode_arena, put_arena};
use crate::store::RowEngine;

/// The arenas of a store.
#[derive(Debug)]
pub(super) struct ArenaList {
    pub(super) all: Mutex<BTreeMap<u32, Arc<Arena>>, rank::OverlayArenas>,
    pub(super) damaged: Mutex<DamagedArenas, rank::OverlayDamaged>,
    pub(super) next_lease: AtomicU64,
    /// The first lease that was issued since the store was opened.
    pub(super) given_from: u64,
    /// Counts the leases that expired since the store was opened, and before that once.
    pub(super) expired: AtomicU64,
}

/// Arenas whose rows were damaged when the store was opened. Their leases are unknown.
#[derive(Debug, Default)]
pub(super) struct DamagedArenas {
    pub(super) numbers: BTreeSet<u32>,
    /// Ranges of rows that no scan can read. Each may contain any number of arenas.
    pub(super) gaps: usize,
}

impl DamagedArenas {
    pub(super) fn count(&self) -> usize {
        self.gaps + self.numbers.len()
    }

    pub(super) fn are_any(&self) -> bool {
        self.gaps > 0 || !self.numbers.is_empty()
    }
}

impl ArenaList {
    /// Reads the arenas of an engine, and the next lease.
    ///
    /// # Errors
    /// The errors of the engine. Damage makes no other arena unusable.
    pub(super) fn read(engine: &dyn Engine) -> Result<Self, Error> {
        let (arenas, damaged) = read_arenas(engine)?;
        let next_lease = read_next_lease(engine, &arenas, &damaged)?;
        Ok(Self {
            all: Mutex::new(arenas),
            damaged: Mutex::new(damaged),
            next_lease: AtomicU64::new(next_lease),
            given_from: next_lease,
            expired: AtomicU64::new(1),
        })
    }

    /// Issues a lease to an arena. It is not swept from now on, though it takes effect only when the arena's row is
    /// stored.
    pub(super) fn give_lease(&self, arena: &Arena) -> u64 {
        self.give_lease_among(&self.all.lock(), arena)
    }

    /// As [`give_lease`](Self::give_lease). The caller holds the lock of all arenas, which keeps sweeps out.
    pub(super) fn give_lease_among(&self, _all: &BTreeMap<u32, Arc<Arena>>, arena: &Arena) -> u64 {
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        arena.next.store(lease, Ordering::Release);
        lease
    }

    /// Records that a lease expired: a row that has another one is stored.
    pub(super) fn note_expired(&self) {
        self.expired.fetch_add(1, Ordering::AcqRel);
    }

    /// Adds an arena with a lease of its own. Its row is not stored yet. One key read for each number that is tried.
    pub(super) fn add(&self, rows: &RowEngine, holder: &str, since: u64) -> Result<Arc<Arena>, Error> {
        let mut arenas = self.all.lock();
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        let mut number = arenas.keys().next_back().map_or(0, |last| last + 1);
        // A number whose row is damaged, or may be, is not used.
        loop {
            match rows.engine().get(Space::WorldMeta, arena_key(number).as_bytes()) {
                Ok(None) => break,
                Ok(Some(_)) | Err(EngineError::Corrupt { .. }) => number += 1,
                Err(error) => return Err(error.into()),
            }
        }
        let row = ArenaRow { lease, holder: Some(holder.into()), since };
        let arena = Arc::new(Arena::new(number, row, CommitSeq::default()));
        arenas.insert(number, Arc::clone(&arena));
        Ok(arena)
    }

    /// Returns the damage of the row of an unknown arena, if there is such a row.
    pub(super) fn check_unknown(rows: &RowEngine, number: u32) -> Result<(), Error> {
        let key = arena_key(number);
        let row = rows.engine().get(Space::WorldMeta, key.as_bytes())?;
        row.map_or(Ok(()), |row| decode_arena(key.as_bytes(), &row).map(drop))
    }

    /// Replaces the damaged row of an arena by that of a free, empty arena.
    pub(super) fn free_damaged(
        &self,
        rows: &RowEngine,
        all: &mut BTreeMap<u32, Arc<Arena>>,
        number: u32,
        since: u64,
    ) -> Result<(), Error> {
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        let row = ArenaRow { lease, holder: None, since };
        put_arena(rows, number, &row, || {
            all.insert(number, Arc::new(Arena::new(number, row.clone(), CommitSeq::default())));
            self.note_expired();
        })
    }

    /// Deletes the rows of arenas, and stores the next lease: theirs are never issued again. Calls `applied` as
    /// [`put_arena`] does.
    pub(super) fn remove(
        &self,
        rows: &RowEngine,
        numbers: impl IntoIterator<Item = u32>,
        applied: impl FnOnce(),
    ) -> Result<(), Error> {
        let mut batch = Batch::new();
        for number in numbers {
            batch.delete(Space::WorldMeta, arena_key(number));
        }
        let next = self.next_lease.load(Ordering::Acquire);
        NEXT_LEASE.put(&mut batch, &next);
        let (_, synced) = rows.apply(batch, rows.level())?;
        applied();
        Ok(synced?)
    }
}

/// The first lease that was certainly never issued.
fn read_next_lease(
    engine: &dyn Engine,
    arenas: &BTreeMap<u32, Arc<Arena>>,
    damaged: &DamagedArenas,
) -> Result<u64, Error> {
    /// More leases than an arena was issued since the others got theirs: a thousand resets a second for thirty years.
    const UNKNOWN_LEASES: u64 = 1 << 40;
    let given = arenas.values().map(|arena| arena.lease.load(Ordering::Relaxed) + 1).max().unwrap_or(1);
    let (stored, is_unknown) = match NEXT_LEASE.get(engine) {
        Err(error @ Error::Corrupt(_)) => {
            tracing::warn!(%error, "leases are given far behind all that are known");
            (0, true)
        }
        stored => (stored?.unwrap_or(0), damaged.are_any()),
    };
    let next = given.max(stored);
    Ok(if is_unknown { next + UNKNOWN_LEASES } else { next })
}

/// The arenas of a store, and those whose rows cannot be read. Damage does not make the other arenas unusable.
fn read_arenas(engine: &dyn Engine) -> Result<(BTreeMap<u32, Arc<Arena>>, DamagedArenas), Error> {
    let (mut arenas, mut damaged) = (BTreeMap::new(), DamagedArenas::default());
    let from = (Bound::Included(ARENA_PREFIX.as_bytes()), Bound::Unbounded);
    scan_skipping_damage(engine, Family::WorldMeta, from, |met| {
        let (key, row) = match met {
            Met::Row(key, row) => (key, row),
            Met::Gap { error, .. } => {
                tracing::warn!(%error, "it is unknown which arenas there are");
                damaged.gaps += 1;
                return ControlFlow::Continue(());
            }
        };
        let Some(digits) = key.strip_prefix(ARENA_PREFIX.as_bytes()) else { return ControlFlow::Break(()) };
        let number = str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match (number, decode_arena(key, row)) {
            (Some(number), Ok(row)) => {
                arenas.insert(number, Arc::new(Arena::new(number, row, engine.last_commit())));
            }
            (None, Ok(_)) => {}
            (Some(number), Err(error)) => {
                tracing::warn!(%error, "an arena cannot be used before it is reclaimed");
                damaged.numbers.insert(number);
            }
            (None, Err(error)) => tracing::warn!(%error, "a row of no arena is damaged"),
        }
        ControlFlow::Continue(())
    })?;
    Ok((arenas, damaged))
}
