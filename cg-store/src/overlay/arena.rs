//! Arenas and their leases: given once, never again, and swept when they are over.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;

use cg_format::frame::FrameView;
use cg_format::key::{self, Family};
use cg_format::overlay::ArenaRow;
use cg_format::wire::{Reader, Writer};
use cg_format::{Section, Space};
use parking_lot::Mutex;

use super::base::Base;
use super::store::{Store, put};
use crate::engine::{Batch, CommitSeq, Engine, Level};
use crate::error::{Damage, Error};

const LEASES_KEY: &[u8] = b"leases";
const ARENA_PREFIX: &str = "arena/";

/// One arena of a store, as all handles to it share it.
#[derive(Debug)]
pub(super) struct Arena {
    pub(super) number: u32,
    /// The lease whose rows are its content.
    pub(super) lease: AtomicU64,
    /// A lease that it is about to get.
    next: AtomicU64,
    /// Counts who had it: a handle of an earlier tenancy is refused.
    pub(super) tenancy: AtomicU64,
    pub(super) row: Mutex<ArenaRow>,
    /// Held by the one transaction, reset or promotion under way.
    pub(super) writing: Mutex<()>,
    /// The thread that holds it.
    pub(super) writer: Mutex<Option<ThreadId>>,
}

impl<S: Base, E: Engine> Store<S, E> {
    /// Gives an arena a lease that is not swept from now on, though it holds nothing before its row is stored.
    pub(super) fn give_lease(&self, arena: &Arena) -> u64 {
        self.give_lease_among(&self.arenas.lock(), arena)
    }

    /// As [`give_lease`](Self::give_lease), by one who keeps others from looking for garbage.
    pub(super) fn give_lease_among(&self, _all: &BTreeMap<u32, Arc<Arena>>, arena: &Arena) -> u64 {
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        arena.next.store(lease, Ordering::Release);
        lease
    }

    /// Adds an arena with a lease of its own; its row is not stored yet.
    pub(super) fn add_arena(&self, holder: &str, since: u64) -> Arc<Arena> {
        let mut arenas = self.arenas.lock();
        let lease = self.next_lease.fetch_add(1, Ordering::AcqRel);
        let number = arenas.keys().next_back().map_or(0, |last| last + 1);
        let arena = Arc::new(Arena::new(number, ArenaRow { lease, holder: Some(holder.into()), since }));
        arenas.insert(number, Arc::clone(&arena));
        arena
    }

    /// Stores an arena's row: one put.
    pub(super) fn put_arena(&self, number: u32, row: &ArenaRow) -> Result<CommitSeq, Error> {
        let mut batch = Batch::new();
        put(&mut batch, arena_key(number).as_bytes(), |out| row.encode(out));
        Ok(self.commit(batch, self.level)?)
    }

    /// Deletes the rows of arenas, and notes that their leases were given.
    pub(super) fn remove_arenas(&self, numbers: impl IntoIterator<Item = u32>) -> Result<(), Error> {
        let mut batch = Batch::new();
        for number in numbers {
            batch.delete(Space::WorldMeta, arena_key(number));
        }
        let next = self.next_lease.load(Ordering::Acquire);
        put(&mut batch, LEASES_KEY, |out| Writer::new(out).u64(next));
        self.commit(batch, self.level)?;
        Ok(())
    }

    /// Deletes up to so many rows of leases that are over; the number deleted, less than asked if none are left.
    pub(super) fn sweep(&self, max_rows: usize) -> Result<usize, Error> {
        let mut rows = Vec::new();
        let (live, limit) = {
            let arenas = self.arenas.lock();
            let leases = arenas.values().flat_map(|arena| [&arena.lease, &arena.next]);
            let live: BTreeSet<u64> = leases.map(|lease| lease.load(Ordering::Acquire)).collect();
            // Whatever is given from here on is none of what is looked at.
            (live, self.next_lease.load(Ordering::Acquire))
        };
        for (family, space) in [(Family::ChunkL0, Space::ChunkL0), (Family::Entity, Space::Entity)] {
            let mut from = 0;
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
            // Lost to a power cut, they are swept again.
            self.commit(batch, Level::Process)?;
            self.counts.rows_swept.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        Ok(rows.len())
    }

    /// The first lease from a number on that has rows.
    fn first_lease(&self, family: Family, from: u64) -> Result<Option<u64>, Error> {
        let key = key::lease(from);
        let range = (Bound::Included(key.as_slice()), Bound::Unbounded);
        let lease = self.engine.scan(family, range, |key, _| ControlFlow::Break(key::lease_of(key)))?;
        Ok(lease.flatten())
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
        self.engine.scan(family, range, |key, _| {
            rows.push((space, key.to_vec()));
            if rows.len() < max_rows { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(())
    }
}

impl Arena {
    fn new(number: u32, row: ArenaRow) -> Self {
        Self {
            number,
            lease: AtomicU64::new(row.lease),
            next: AtomicU64::new(row.lease),
            tenancy: AtomicU64::default(),
            row: Mutex::new(row),
            writing: Mutex::default(),
            writer: Mutex::default(),
        }
    }
}

/// The first lease that was certainly never given.
pub(super) fn read_next_lease<E: Engine>(
    engine: &E,
    arenas: &BTreeMap<u32, Arc<Arena>>,
) -> Result<u64, Error> {
    let given = arenas.values().map(|arena| arena.lease.load(Ordering::Relaxed) + 1).max().unwrap_or(1);
    Ok(given.max(read_number(engine, LEASES_KEY)?.unwrap_or(0)))
}

fn arena_key(number: u32) -> String {
    format!("{ARENA_PREFIX}{number:08x}")
}

fn read_number<E: Engine>(engine: &E, key: &[u8]) -> Result<Option<u64>, Error> {
    let Some(row) = engine.get(Space::WorldMeta, key)? else { return Ok(None) };
    let number = FrameView::open(Space::WorldMeta, key, &row).and_then(|frame| {
        let mut reader = Reader::new(frame.payload(), Section::Overlay);
        let number = reader.u64("lease")?;
        reader.end("bytes behind the number")?;
        Ok(number)
    });
    number
        .map(Some)
        .map_err(|problem| Damage::of_row(Space::WorldMeta, key, "the number of the next lease", problem))
}

pub(super) fn read_arenas<E: Engine>(engine: &E) -> Result<BTreeMap<u32, Arc<Arena>>, Error> {
    let mut arenas = BTreeMap::new();
    let from = (Bound::Included(ARENA_PREFIX.as_bytes()), Bound::Unbounded);
    let failed = engine.scan(Family::WorldMeta, from, |key, row| {
        let Some(digits) = key.strip_prefix(ARENA_PREFIX.as_bytes()) else { return ControlFlow::Break(None) };
        let number = str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let arena =
            FrameView::open(Space::WorldMeta, key, row).and_then(|frame| ArenaRow::decode(frame.payload()));
        match (number, arena) {
            (Some(number), Ok(row)) => {
                arenas.insert(number, Arc::new(Arena::new(number, row)));
                ControlFlow::Continue(())
            }
            (None, Ok(_)) => ControlFlow::Continue(()),
            (_, Err(problem)) => ControlFlow::Break(Some(Damage::of_row(
                Space::WorldMeta,
                key,
                format!("arena {}", String::from_utf8_lossy(digits)),
                problem,
            ))),
        }
    })?;
    failed.flatten().map_or(Ok(arenas), Err)
}
