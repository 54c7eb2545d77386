//! The handle of an overlay.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cg_registry::{Catalog, Registration};
use cg_store::Error;
use cg_store::layer::Base;

use super::arena::Arena;
use super::pool::Pool;
use crate::store::{OverlayError, OverlayStats, Store};

/// A writable layer over a base that is only read. Cheap to clone; every clone is the same overlay.
///
/// ```
/// use cg_store::prelude::*;
/// use cg_layers::Overlay;
/// let template = World::builder().in_memory()?;
/// let dimension = template.registry().register_dimension("game:arena")?;
/// let [air, stone] = template.registry().register_blocks([":air", "game:stone"])?;
/// let at = ChunkAt::new(dimension, ChunkPos::new(0, 0, 0)?);
/// template.transaction(|tx| {
///     tx.save(at, tx.new_chunk(stone)?);
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
///
/// let arena = Overlay::in_memory(template.clone(), &WorldOptions::ephemeral())?;
/// arena.transaction(|tx| tx.set_block(dimension, BlockPos::new(1, 2, 3), air))?;
/// assert_eq!(arena.load(at)?.map(|chunk| chunk.block(LocalPos::new(1, 2, 3))), Some(air));
/// assert_eq!(template.load(at)?.map(|chunk| chunk.block(LocalPos::new(1, 2, 3))), Some(stone));
///
/// arena.reset()?;
/// assert_eq!(arena.load(at)?, template.load(at)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Overlay<S: Base> {
    pub(super) pool: Arc<Pool<S>>,
    pub(super) arena: Arc<Arena>,
    /// The tenancy of the arena that the handle belongs to.
    pub(super) tenancy: u64,
    /// Whether it is the host's. When the last of these is dropped, what was submitted is written.
    is_counted: bool,
}

impl<S: Base> Overlay<S> {
    /// A handle for the host.
    pub(super) fn counted(pool: &Arc<Pool<S>>, arena: &Arc<Arena>, tenancy: u64) -> Self {
        arena.handles.fetch_add(1, Ordering::AcqRel);
        let mut overlay = Self::uncounted(pool, arena, tenancy);
        overlay.is_counted = true;
        overlay
    }

    /// A handle that is none of the host's.
    pub(super) fn uncounted(pool: &Arc<Pool<S>>, arena: &Arc<Arena>, tenancy: u64) -> Self {
        Self { pool: Arc::clone(pool), arena: Arc::clone(arena), tenancy, is_counted: false }
    }

    /// A handle that is none of the host's, of the present tenancy.
    pub(super) fn of_any_tenancy(pool: &Arc<Pool<S>>, arena: &Arc<Arena>) -> Self {
        Self::uncounted(pool, arena, arena.tenancy.load(Ordering::Acquire))
    }

    /// The number of the arena in its store.
    pub fn arena(&self) -> u32 {
        self.arena.number
    }

    /// The layer that the overlay reads through to.
    pub fn base(&self) -> &S {
        &self.pool.store.base
    }

    /// The names of the overlay: those of its base and its own.
    ///
    /// # Errors
    /// [`OverlayError::BaseGrew`] and [`OverlayError::BaseSchema`] if the overlay has names of its own and the base
    /// has changed its names or its schema since.
    pub fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.store().catalog()
    }

    /// Issues ids for names that neither the base nor the overlay has registered. The base gets them with a merge. All
    /// arenas of the store share them, and a reset keeps them.
    ///
    /// While an overlay has names of its own, its base must not register more. If it does, the overlay refuses to
    /// continue.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register), and as [`catalog`](Self::catalog).
    pub fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.check()?;
        let store = self.store();
        store.names.register(&store.rows, &store.base, new)
    }

    pub(super) fn store(&self) -> &Store<S> {
        &self.pool.store
    }

    /// How much work all arenas of the overlay's store did.
    pub fn stats(&self) -> OverlayStats {
        self.store().counts.stats()
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        if self.arena.tenancy.load(Ordering::Acquire) != self.tenancy {
            return Err(OverlayError::Released { arena: self.arena.number }.into());
        }
        self.store().check_base()
    }

    pub(super) fn lease(&self) -> u64 {
        self.arena.lease.load(Ordering::Acquire)
    }

    /// As [`of_one_lease_now`](Self::of_one_lease_now), after what was submitted is written.
    pub(super) fn of_one_lease<T>(&self, show: impl Fn(u64) -> Result<T, Error>) -> Result<T, Error> {
        self.applied()?;
        self.of_one_lease_now(show)
    }

    /// Reads the rows of one lease. Reads again if the overlay was reset meanwhile: the rows may have been swept.
    ///
    /// Checks the arena and its base before and after. In between, the next holder of the arena may have written, and
    /// a base that is an overlay may have been reset.
    pub(super) fn of_one_lease_now<T>(&self, show: impl Fn(u64) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            self.check()?;
            let lease = self.lease();
            let shown = show(lease);
            if self.lease() == lease {
                self.check()?;
                return shown;
            }
        }
    }
}

impl<S: Base> Clone for Overlay<S> {
    fn clone(&self) -> Self {
        Self::counted(&self.pool, &self.arena, self.tenancy)
    }
}

impl<S: Base> Drop for Overlay<S> {
    fn drop(&mut self) {
        if self.is_counted && self.arena.handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.leave();
        }
    }
}

impl<S: Base> fmt::Debug for Overlay<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overlay")
            .field("arena", &self.arena.number)
            .field("layer", &self.store().layer)
            .finish_non_exhaustive()
    }
}
