//! A pool of arenas: overlays over one base that are leased, released, and leased again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_format::overlay::ArenaRow;
use cg_registry::{Catalog, Registration};
use cg_store::engine::{Engine, Level, MemEngine, Usage};
use cg_store::layer::{Base, MutexGuard};
use cg_store::{Error, WorldOptions};
use cg_tiering::GameTick;

use super::arena::{Arena, put_arena, put_next_lease};
use super::arena_list::ArenaList;
use super::background::{apply_all, try_again};
use super::handle::Overlay;
use super::pool::Pool;
use super::writing::Brief;
use crate::store::{OverlayError, OverlayStats, Store};

/// Arenas over one base, in one engine. Cheap to clone; every clone is the same pool.
///
/// An arena stores only what was written in it; all arenas share the base and its caches. A leased arena stays leased
/// across a crash, until it is [resumed](Self::resume) or [reclaimed](Self::reclaim). [`tick`](Self::tick) ends leases,
/// reclaims and cleans up by itself.
///
/// An overlay uses these of [`WorldOptions`]: `cache_bytes`, `resources`, `engine_bytes`, `limits`, `value_check`, `deltas` and
/// `durability`. With `deltas`, a chunk that differs little from the base's is stored as a delta. Commits and resets
/// are synced at [`Safe`](cg_store::Durability::Safe) and [`SafeBatch`](cg_store::Durability::SafeBatch). At all other
/// levels they survive a killed process.
///
/// ```
/// use cg_store::prelude::*;
/// use cg_layers::Arenas;
/// use cg_tiering::GameTick;
/// let template = World::builder().in_memory()?;
/// let arenas = Arenas::in_memory(template, &WorldOptions::ephemeral())?;
/// let duel = arenas.lease("ada against grace", GameTick::new(100))?;
/// duel.release(GameTick::new(900))?;
/// assert_eq!(arenas.list()[0].holder, None);
/// # Ok::<(), Error>(())
/// ```
pub struct Arenas<S: Base> {
    pool: Arc<Pool<S>>,
}

/// One arena of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArenaInfo {
    /// Its number.
    pub arena: u32,
    /// Its holder; `None` if it is free.
    pub holder: Option<String>,
    /// When it was leased, [renewed](Overlay::renew) or became free, by the host's clock.
    pub since: GameTick,
    /// Whether this process has a handle to it.
    pub is_open: bool,
}

impl<S: Base> Arenas<S> {
    /// Creates a pool in memory.
    ///
    /// # Errors
    /// [`OverlayError::TooDeep`].
    pub fn in_memory(base: S, options: &WorldOptions) -> Result<Self, Error> {
        Self::over(MemEngine::new().with_max_batch_bytes(cg_store::layer::MAX_BATCH_BYTES), base, options)
    }

    /// Opens a pool in an engine that is empty or holds a pool over the same base.
    ///
    /// # Errors
    /// [`OverlayError::WrongBase`], [`OverlayError::BaseReplaced`], [`OverlayError::BaseNames`],
    /// [`OverlayError::BaseGrew`], [`OverlayError::BaseSchema`] if the base is not the one that the arenas were
    /// written over; [`Error::Corrupt`].
    #[doc(hidden)]
    pub fn over(engine: impl Engine, base: S, options: &WorldOptions) -> Result<Self, Error> {
        Ok(Self { pool: Arc::new(Pool::open(Box::new(engine), base, options)?) })
    }

    pub(super) fn pool(&self) -> &Arc<Pool<S>> {
        &self.pool
    }

    fn store(&self) -> &Store<S> {
        &self.pool.store
    }

    /// The layer that the arenas read through to.
    pub fn base(&self) -> &S {
        &self.pool.store.base
    }

    /// The names of the arenas, as [`Overlay::catalog`].
    ///
    /// # Errors
    /// As [`Overlay::catalog`].
    pub fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.store().catalog()
    }

    /// Issues ids for names that all arenas share, as [`Overlay::register`].
    ///
    /// # Errors
    /// As [`Overlay::register`].
    pub fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.store().check_base()?;
        let store = self.store();
        store.names.register(&store.rows, &store.base, new)
    }

    /// Leases an empty arena: a free one, or a new one. One put.
    ///
    /// # Errors
    /// [`OverlayError::HolderTooLong`], and the errors of the engine. After
    /// [`EngineError::SyncFailed`](cg_store::engine::EngineError::SyncFailed) an arena is leased that has no handle.
    pub fn lease(&self, holder: &str, now: GameTick) -> Result<Overlay<S>, Error> {
        let len_bytes = holder.len();
        if len_bytes > ArenaRow::MAX_HOLDER_LEN_BYTES {
            return Err(OverlayError::HolderTooLong { len_bytes }.into());
        }
        self.store().check_base()?;
        if let Some(overlay) = self.take_free(holder, now)? {
            return Ok(overlay);
        }
        loop {
            let arena = self.pool.arenas.add(&self.store().rows, holder, now.get())?;
            let mut row = arena.row.lock();
            if row.holder.is_none() {
                // A tick was faster, and has ended the lease.
                continue;
            }
            let mut is_stored = false;
            let put = put_arena(&self.store().rows, arena.number, &row, || is_stored = true);
            if !is_stored {
                // It is free for the next lease, which stores its row.
                row.holder = None;
            }
            return put.map(|()| self.handle(&arena, &row));
        }
    }

    fn take_free(&self, holder: &str, now: GameTick) -> Result<Option<Overlay<S>>, Error> {
        let all: Vec<_> = self.pool.arenas.all.lock().values().cloned().collect();
        for arena in all {
            let mut row = arena.row.lock();
            if row.holder.is_none() {
                // Its lease was issued when it became free, and nothing was written since.
                let taken = ArenaRow { holder: Some(holder.into()), since: now.get(), ..row.clone() };
                put_arena(&self.store().rows, arena.number, &taken, || *row = taken.clone())?;
                return Ok(Some(self.handle(&arena, &row)));
            }
        }
        Ok(None)
    }

    /// Returns a handle to a leased arena, to continue after a restart.
    ///
    /// # Errors
    /// [`OverlayError::UnknownArena`] and [`OverlayError::NotLeased`]; [`Error::Corrupt`] if its row is damaged.
    pub fn resume(&self, arena: u32) -> Result<Overlay<S>, Error> {
        self.store().check_base()?;
        let known = self.pool.arenas.all.lock().get(&arena).cloned();
        let Some(known) = known else {
            ArenaList::check_unknown(&self.store().rows, arena)?;
            return Err(OverlayError::UnknownArena { arena }.into());
        };
        let row = known.row.lock();
        if row.holder.is_none() {
            return Err(OverlayError::NotLeased { arena }.into());
        }
        Ok(self.handle(&known, &row))
    }

    /// A handle for the holder in a row. The caller has the lock of the row, so the tenancy is this holder's.
    fn handle(&self, arena: &Arc<Arena>, _row: &MutexGuard<'_, ArenaRow>) -> Overlay<S> {
        arena.unheld_since.store(Arena::HELD, Ordering::Release);
        let tenancy = arena.tenancy.load(Ordering::Acquire);
        Overlay::counted(&self.pool, arena, tenancy)
    }

    /// Every arena, ascending by number.
    pub fn list(&self) -> Vec<ArenaInfo> {
        let arenas = self.pool.arenas.all.lock();
        let info = |arena: &Arc<Arena>| {
            let row = arena.row.lock();
            ArenaInfo {
                arena: arena.number,
                holder: row.holder.clone(),
                since: GameTick::new(row.since),
                is_open: Arc::strong_count(arena) > 1,
            }
        };
        arenas.values().map(info).collect()
    }

    /// Frees every leased arena without a handle: its holder crashed, or did not release it. Returns how many. Arenas
    /// whose rows are [damaged](Self::damaged) are among them: their content is discarded. One to which a background thread
    /// writes at this moment is left.
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn reclaim(&self, now: GameTick) -> Result<u32, Error> {
        self.store().check_base()?;
        // Handles are created under this lock, so none is created between the check and the end.
        let mut arenas = self.pool.arenas.all.lock();
        let mut count = 0;
        for arena in arenas.values() {
            // A background thread that is about to write has none yet, and waits for the right.
            let Some(_alone) = Brief::try_take(&self.pool, arena) else { continue };
            if Arc::strong_count(arena) > 1 {
                continue;
            }
            let mut row = arena.row.lock();
            if row.holder.is_some() {
                let lease = self.pool.arenas.give_lease_among(&arenas, arena);
                self.pool.free(arena, &mut row, lease, now)?;
                count += 1;
            }
        }
        let mut damaged = self.pool.arenas.damaged.lock();
        while let Some(number) = damaged.numbers.first().copied() {
            let freed = self.pool.arenas.free_damaged(&self.store().rows, &mut arenas, number, now.get());
            if arenas.contains_key(&number) {
                damaged.numbers.remove(&number);
            }
            freed?;
            count += 1;
        }
        drop((damaged, arenas));
        // What the former holders submitted is refused.
        try_again(&self.pool);
        Ok(count)
    }

    /// The arenas whose rows were damaged when the pool was opened. They cannot be resumed. Until they are
    /// [reclaimed](Self::reclaim), nothing that was written before the pool was opened is [swept](Self::sweep): it may
    /// be theirs. Reads memory only.
    pub fn damaged(&self) -> Vec<u32> {
        self.pool.arenas.damaged.lock().numbers.iter().copied().collect()
    }

    /// Removes the arenas that became free before a tick. Returns how many. [`sweep`](Self::sweep) deletes their rows. An
    /// arena stays until what a former holder submitted to it is refused.
    ///
    /// # Errors
    /// The errors of the engine. Nothing is removed then, but after
    /// [`EngineError::SyncFailed`](cg_store::engine::EngineError::SyncFailed): they are removed, and may be there again after a
    /// power cut.
    pub fn remove_free_since(&self, before: GameTick) -> Result<u32, Error> {
        let mut arenas = self.pool.arenas.all.lock();
        let is_old = |arena: &Arc<Arena>| {
            let row = arena.row.lock();
            let is_free = row.holder.is_none() && arena.submitted.is_empty();
            is_free && row.since < before.get() && Arc::strong_count(arena) == 1
        };
        let old: Vec<u32> = arenas.values().filter(|arena| is_old(arena)).map(|arena| arena.number).collect();
        if old.is_empty() { Ok(0) } else { self.pool.remove(&mut arenas, &old) }
    }

    /// Deletes at most `max_rows` rows of expired leases. Returns how many; fewer than `max_rows` if none are left.
    ///
    /// Costs a seek for each lease that has rows, one delete for each row, and one commit for each 65,536. Call it when there
    /// is time, as in a tick; no call waits for it. Rows that the engine cannot read stay, and are counted in
    /// [`OverlayStats::damage_met`].
    ///
    /// # Errors
    /// The errors of the engine.
    pub fn sweep(&self, max_rows: usize) -> Result<usize, Error> {
        self.pool.sweep(max_rows)
    }

    /// How much work all arenas did since the pool was opened.
    pub fn stats(&self) -> OverlayStats {
        self.store().counts.stats()
    }

    /// The bytes of the pool's engine by family: the rows of all arenas, and none of the base.
    ///
    /// # Errors
    /// The errors of the disk.
    pub fn usage(&self) -> Result<Usage, Error> {
        Ok(self.store().rows.engine().usage()?)
    }

    /// Waits until everything that was written survives a power cut. That includes the base, whose versions the rows
    /// refer to, and what was [submitted](Overlay::submit).
    ///
    /// # Errors
    /// If writing or syncing fails; [`Error::DeferredWrite`] if a batch was refused whose ticket was dropped.
    pub fn flush(&self) -> Result<(), Error> {
        apply_all(&self.pool)?;
        self.store().keep_found(Level::Power)?;
        self.pool.check_refusals()
    }

    /// The engine of the arenas, for tests and tools that read single rows.
    #[doc(hidden)]
    pub fn engine(&self) -> &dyn Engine {
        self.store().rows.engine()
    }
}

impl<S: Base> Overlay<S> {
    /// Creates an overlay in memory. It is gone when its last handle is dropped.
    ///
    /// # Errors
    /// [`OverlayError::TooDeep`].
    pub fn in_memory(base: S, options: &WorldOptions) -> Result<Self, Error> {
        Arenas::in_memory(base, options)?.lease("", GameTick::new(0))
    }

    /// All arenas of the overlay's store.
    pub fn arenas(&self) -> Arenas<S> {
        Arenas { pool: Arc::clone(&self.pool) }
    }

    /// Renews the lease: for [`Arenas::tick`] it counts from now on. One put; none if it counts from this moment or a later
    /// one already, so game time that goes back shortens no lease.
    ///
    /// # Errors
    /// [`OverlayError::Released`], and the errors of the engine. The lease is then as it was, but after
    /// [`EngineError::SyncFailed`](cg_store::engine::EngineError::SyncFailed): it is renewed and may not survive a power cut.
    pub fn renew(&self, now: GameTick) -> Result<(), Error> {
        let mut row = self.arena.row.lock();
        self.check()?;
        if row.since < now.get() {
            let renewed = ArenaRow { since: now.get(), ..row.clone() };
            put_arena(&self.store().rows, self.arena.number, &renewed, || *row = renewed.clone())?;
        }
        Ok(())
    }

    /// Empties the arena and frees it for the next lease. One put. Other handles to it are refused from then on.
    ///
    /// # Errors
    /// [`Error::Nested`], [`OverlayError::Released`], and the errors of the engine. The arena is then still leased, but after
    /// [`EngineError::SyncFailed`](cg_store::engine::EngineError::SyncFailed): it is free, and may be leased again after a
    /// power cut.
    pub fn release(self, now: GameTick) -> Result<(), Error> {
        let _alone = self.write()?;
        let lease = self.pool.arenas.give_lease(&self.arena);
        self.pool.free(&self.arena, &mut self.arena.row.lock(), lease, now)
    }
}

impl<S: Base> Pool<S> {
    /// Removes free arenas, in one commit.
    pub(super) fn remove(&self, all: &mut BTreeMap<u32, Arc<Arena>>, numbers: &[u32]) -> Result<u32, Error> {
        self.arenas.remove(&self.store.rows, numbers.iter().copied(), || {
            all.retain(|number, _| !numbers.contains(number));
        })?;
        Ok(numbers.len() as u32)
    }

    /// Ends an arena's tenancy: it gets a new, empty lease and no holder.
    pub(super) fn free(
        &self,
        arena: &Arena,
        row: &mut ArenaRow,
        lease: u64,
        now: GameTick,
    ) -> Result<(), Error> {
        let free = ArenaRow { lease, holder: None, since: now.get() };
        put_next_lease(&self.store.rows, arena.number, &free, row.lease, || {
            // The tenancy first: a reader that sees the new lease is then refused.
            arena.tenancy.fetch_add(1, Ordering::AcqRel);
            arena.lease.store(lease, Ordering::Release);
            arena.merged_until.store(0, Ordering::Release);
            *row = free.clone();
            self.arenas.note_expired();
            self.store.counts.resets.fetch_add(1, Ordering::Relaxed);
        })
    }
}

impl<S: Base> Clone for Arenas<S> {
    fn clone(&self) -> Self {
        Self { pool: Arc::clone(&self.pool) }
    }
}

impl<S: Base> fmt::Debug for Arenas<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arenas").field("arenas", &self.list().len()).finish_non_exhaustive()
    }
}
