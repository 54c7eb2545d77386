//! Arenas and their leases. A lease is issued once, and its rows are swept after it has expired.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

use cg_format::key::{self, Family};
use cg_format::overlay::ArenaRow;
use cg_format::wire::{Reader, Writer};
use cg_format::{Section, Space};
use cg_store::Error;
use cg_store::engine::{Batch, CommitSeq, Engine, EngineError, Level, Met, Readable, scan_skipping_damage};
use cg_store::layer::{Base, MetaRow, Mutex, open_row, rank};

use super::store::{Store, put};

/// The next lease when an arena was last removed; absent before.
const NEXT_LEASE: MetaRow<u64> = MetaRow {
    key: "leases",
    what: "the number of the next lease",
    encode: |lease, out| Writer::new(out).u64(*lease),
    decode: |payload| {
        let mut reader = Reader::new(payload, Section::Overlay);
        let lease = reader.u64("lease")?;
        reader.end("bytes after the number")?;
        Ok(lease)
    },
};
const ARENA_PREFIX: &str = "arena/";

/// One arena of a store. All handles to it share this.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) number: u32,
    /// The lease whose rows are the arena's content.
    pub(super) lease: AtomicU64,
    /// The lease issued last, which may not be in effect yet.
    next: AtomicU64,
    /// Counts the tenancies. A handle of an earlier one is refused.
    pub(super) tenancy: AtomicU64,
    pub(super) row: Mutex<ArenaRow, rank::OverlayRow>,
    /// Held by the running transaction, reset or merge.
    pub(super) writing: Mutex<(), rank::OverlayWriting>,
    /// The thread that holds `writing`.
    pub(super) writer: Mutex<Option<ThreadId>, rank::OverlayWriter>,
    /// The base may contain the values of rows up to this commit: a merge may have ended between writing them and
    /// emptying the arena. 0 if no row is older than the store's opening and none was merged.
    pub(super) merged_until: AtomicU64,
}

/// Arenas whose rows were damaged when the store was opened. Their leases are unknown.
#[derive(Debug, Default)]
pub(super) struct DamagedArenas {
    pub(super) numbers: BTreeSet<u32>,
    /// Ranges of rows that no scan can read. Each may contain any number of arenas.
    pub(super) gaps: usize,
}

impl DamagedArenas {
    pub(super) fn are_any(&self) -> bool {
        self.gaps > 0 || !self.numbers.is_empty()
    }
}

impl<S: Base> Store<S> {
    /// Issues a lease to an arena. It is not swept from now on, though it takes effect only when the arena's row is
    /// stored.
    pub(super) fn give_lease(&self, arena: &Arena) -> u64 {
        self.give_lease_among(&self.arenas.lock(), arena)
    }

    /// As [`give_lease`](Self::give_lease). The caller holds the lock of all arenas, which keeps sweeps out.
    pub(super) fn give_lease_among(&self, _all: &BTreeMap<u32, Arc<Arena>>, arena: &Arena) -> u64 {
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        arena.next.store(lease, Ordering::Release);
        lease
    }

    /// Adds an arena with a lease of its own. Its row is not stored yet. One key read for each number that is tried.
    pub(super) fn add_arena(&self, holder: &str, since: u64) -> Result<Arc<Arena>, Error> {
        let mut arenas = self.arenas.lock();
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        let mut number = arenas.keys().next_back().map_or(0, |last| last + 1);
        // A number whose row is damaged, or may be, is not used.
        loop {
            match self.engine.get(Space::WorldMeta, arena_key(number).as_bytes()) {
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
    pub(super) fn check_unknown(&self, number: u32) -> Result<(), Error> {
        let key = arena_key(number);
        let row = self.engine.get(Space::WorldMeta, key.as_bytes())?;
        row.map_or(Ok(()), |row| decode_arena(key.as_bytes(), &row).map(drop))
    }

    /// Replaces the damaged row of an arena by that of a free, empty arena.
    pub(super) fn free_damaged(
        &self,
        all: &mut BTreeMap<u32, Arc<Arena>>,
        number: u32,
        since: u64,
    ) -> Result<(), Error> {
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        let row = ArenaRow { lease, holder: None, since };
        self.put_arena(number, &row)?;
        all.insert(number, Arc::new(Arena::new(number, row, CommitSeq::default())));
        Ok(())
    }

    /// Stores an arena's row: one put.
    pub(super) fn put_arena(&self, number: u32, row: &ArenaRow) -> Result<CommitSeq, Error> {
        let mut batch = Batch::new();
        put(&mut batch, arena_key(number).as_bytes(), |out| row.encode(out));
        Ok(self.commit(batch, self.level)?)
    }

    /// Deletes the rows of arenas, and stores the next lease: theirs are never issued again.
    pub(super) fn remove_arenas(&self, numbers: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        let mut batch = Batch::new();
        for number in numbers {
            batch.delete(Space::WorldMeta, arena_key(number));
        }
        let next = self.next_lease.load(Ordering::Acquire);
        NEXT_LEASE.put(&mut batch, &next);
        self.commit(batch, self.level)?;
        Ok(())
    }

    /// Deletes at most `max_rows` rows of expired leases. Returns the number deleted; fewer than `max_rows` if none
    /// are left. While any arena's row is damaged, rows from before the store was opened stay: they may be that
    /// arena's.
    pub(super) fn sweep(&self, max_rows: usize) -> Result<usize, Error> {
        let mut rows = Vec::new();
        let (live, limit) = {
            let arenas = self.arenas.lock();
            let leases = arenas.values().flat_map(|arena| [&arena.lease, &arena.next]);
            let live: BTreeSet<u64> = leases.map(|lease| lease.load(Ordering::Acquire)).collect();
            // Leases that are issued from here on are not swept.
            (live, self.next_lease.load(Ordering::Acquire))
        };
        let first = if self.damaged.lock().are_any() { self.given_from } else { 0 };
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
            self.commit(batch, Level::Process)?;
            self.counts.rows_swept.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok(rows.len())
    }

    /// The first lease at or after `from` that has rows.
    fn first_lease(&self, family: Family, from: u64) -> Result<Option<u64>, Error> {
        let key = key::lease(from);
        let range = (Bound::Included(key.as_slice()), Bound::Unbounded);
        let lease = scan_skipping_damage(&*self.engine, family, range, |met| match met {
            Met::Row(key, _) => ControlFlow::Break(key::lease_of(key)),
            Met::Gap { error, .. } => self.pass(&error),
        })?;
        Ok(lease.flatten())
    }

    /// Continues a scan after damage.
    fn pass<B>(&self, error: &EngineError) -> ControlFlow<B> {
        tracing::warn!(%error, layer = self.layer, "sweeping went around damage, whose rows stay");
        self.counts.damage_met.fetch_add(1, Ordering::Relaxed);
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
        scan_skipping_damage(&*self.engine, family, range, |met| match met {
            Met::Row(key, _) => {
                rows.push((space, key.to_vec()));
                if rows.len() < max_rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            }
            Met::Gap { error, .. } => self.pass(&error),
        })?;
        Ok(())
    }
}

impl Arena {
    fn new(number: u32, row: ArenaRow, merged_until: CommitSeq) -> Self {
        Self {
            number,
            lease: AtomicU64::new(row.lease),
            next: AtomicU64::new(row.lease),
            tenancy: AtomicU64::default(),
            row: Mutex::new(row),
            writing: Mutex::default(),
            writer: Mutex::default(),
            merged_until: AtomicU64::new(merged_until.get()),
        }
    }
}

/// The first lease that was certainly never issued.
pub(super) fn read_next_lease(
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

/// Whether the row of the next lease is sound, or absent.
///
/// # Errors
/// [`Error::Corrupt`] if it is damaged.
pub(super) fn check_next_lease(view: &dyn Readable) -> Result<(), Error> {
    NEXT_LEASE.get(view).map(drop)
}

fn arena_key(number: u32) -> String {
    format!("{ARENA_PREFIX}{number:08x}")
}

/// The arenas of a store, and those whose rows cannot be read. Damage does not make the other arenas unusable.
pub(super) fn read_arenas(engine: &dyn Engine) -> Result<(BTreeMap<u32, Arc<Arena>>, DamagedArenas), Error> {
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

fn decode_arena(key: &[u8], row: &[u8]) -> Result<ArenaRow, Error> {
    let what = || {
        let digits = key.strip_prefix(ARENA_PREFIX.as_bytes()).unwrap_or(key);
        format!("arena {}", String::from_utf8_lossy(digits))
    };
    open_row(Space::WorldMeta, key, row, what, |frame| ArenaRow::decode(frame.payload()))
}
