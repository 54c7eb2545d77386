//! The store of all overlays over one base.

use std::fmt;
use std::sync::Arc;

use cg_format::overlay::Origin;
use cg_registry::Catalog;
use cg_store::engine::Level;
use cg_store::layer::{Base, ValueGuard};
use cg_store::{Error, StoreLimits, WorldOptions};

use super::cache::RowCache;
use super::engine::RowEngine;
use super::kept::Kept;
use super::stats::Counts;
use super::store_names::StoreNames;

/// The rows of all overlays over one base, and what is needed to read and write them.
pub(crate) struct Store<S> {
    pub(crate) base: S,
    pub(crate) rows: RowEngine,
    pub(crate) names: StoreNames,
    /// How many overlays are stacked, this one included.
    pub(crate) layer: u8,
    pub(crate) limits: StoreLimits,
    /// What commits do about illegal values.
    pub(crate) values: ValueGuard,
    /// Whether chunks may be stored as deltas to the base's.
    pub(super) deltas: bool,
    pub(super) cache: RowCache,
    pub(crate) counts: Counts,
    /// Which of the batches that were submitted survive a power cut.
    pub(crate) kept: Arc<Kept>,
}

impl<S: Base> Store<S> {
    /// Takes what was read from an engine. `layer` is how many overlays are stacked, this one included.
    pub(crate) fn new(
        base: S,
        rows: RowEngine,
        names: StoreNames,
        layer: u8,
        options: &WorldOptions,
    ) -> Self {
        Self {
            base,
            rows,
            names,
            layer,
            limits: options.limits,
            values: ValueGuard::new(options.value_check),
            deltas: options.deltas,
            cache: RowCache::new(options.cache_bytes),
            counts: Counts::default(),
            kept: Arc::default(),
        }
    }

    /// The origin of a value that this layer has, by its version.
    pub(crate) fn origin(&self, version: u64) -> Origin {
        Origin { layer: self.layer, version, opening: self.rows.opening_of(version) }
    }

    /// The names, if the base still fits them.
    pub(crate) fn catalog(&self) -> Result<Arc<Catalog>, Error> {
        self.names.catalog(&self.base)
    }

    /// Refuses a base whose identity is not the stored one.
    pub(crate) fn check_base(&self) -> Result<(), Error> {
        self.names.check(&self.base)
    }

    /// Makes everything that was written as durable as a level: first in the base, then here.
    pub(crate) fn keep_found(&self, level: Level) -> Result<(), Error> {
        let newest = self.kept.newest();
        self.base.keep_found(level)?;
        if level == Level::Power {
            self.rows.sync_if_behind()?;
            self.kept.note_synced(newest);
        }
        Ok(())
    }
}

impl<S> Drop for Store<S> {
    fn drop(&mut self) {
        if let Err(error) = self.rows.engine().close() {
            tracing::error!(%error, layer = self.layer, "closing the overlays failed");
        }
    }
}

impl<S: fmt::Debug> fmt::Debug for Store<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("base", &self.base).field("layer", &self.layer).finish_non_exhaustive()
    }
}
