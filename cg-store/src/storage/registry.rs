//! The world's registry: it issues ids, which are committed before they are used, and never change.

use std::sync::Arc;

use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_registry::{Catalog, PackManifest, Plan, Policy, reconcile};

use crate::engine::{Batch, Engine, Level, Readable, Stamp};
use crate::rt::lock_order::{RwLock, rank};
use crate::storage::error::{Error, OpenError};
use crate::storage::meta;

/// The current catalog. Readers share it in the state in which they got it.
#[derive(Debug)]
pub(crate) struct Registry {
    current: RwLock<Arc<Catalog>, rank::Catalog>,
}

impl Registry {
    /// The current catalog.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.read())
    }

    /// Replaces the current catalog, and returns the old one.
    pub(crate) fn replace(&self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        std::mem::replace(&mut *self.current.write(), catalog)
    }

    /// The changes that packs would make to a catalog, if they are accepted.
    pub(crate) fn accept(
        catalog: &Catalog,
        packs: &[PackManifest],
        policy: &Policy,
    ) -> Result<Plan, OpenError> {
        let plan = reconcile(catalog, packs, policy);
        if plan.is_accepted() { Ok(plan) } else { Err(OpenError::NeedsPlan { report: plan.report() }) }
    }

    /// Adds to a catalog in memory what packs offer.
    ///
    /// An empty list means that the host has no packs to compare; then nothing is reconciled.
    pub(crate) fn grow(catalog: &mut Catalog, packs: &[PackManifest], policy: &Policy) -> Result<(), Error> {
        if !packs.is_empty() {
            Self::accept(catalog, packs, policy)?.apply(catalog)?;
        }
        Ok(())
    }

    /// Starts with a catalog. Folds its stored rows, which are in `view`, into whole rows, and stores what is new.
    pub(crate) fn begin(engine: &dyn Engine, view: &dyn Readable, catalog: Catalog) -> Result<Self, Error> {
        let registry = Self { current: RwLock::new(Arc::new(catalog)) };
        if !engine.caps().read_only {
            registry.fold_from(engine, view)?;
        }
        Ok(registry)
    }

    /// Folds the rows of names that were issued since the world was opened into the whole rows.
    pub(crate) fn fold(&self, engine: &dyn Engine) -> Result<(), Error> {
        self.fold_from(engine, engine)
    }

    fn fold_from(&self, engine: &dyn Engine, view: &dyn Readable) -> Result<(), Error> {
        let batch = folded(view, &self.catalog())?;
        if !batch.is_empty() {
            engine.commit(batch, &[], Level::Process)?;
        }
        Ok(())
    }
}

/// A batch that leaves exactly the whole rows of the catalog; empty if they are stored already.
pub(crate) fn folded(view: &dyn Readable, catalog: &Catalog) -> Result<Batch, Error> {
    let mut stored = meta::registry_rows(view)?;
    let mut batch = Batch::new();
    for (name, bytes) in catalog.encode_full() {
        if stored.remove(&name).as_ref() != Some(&bytes) {
            put(&mut batch, &name, bytes);
        }
    }
    for tail in stored.keys() {
        batch.delete(Space::WorldMeta, tail);
    }
    Ok(batch)
}

pub(crate) fn put(batch: &mut Batch, name: &str, bytes: Vec<u8>) {
    batch.put(Space::WorldMeta, name, Draft::plain(Codec::None, 0, |out| out.extend(bytes)), Stamp::Commit);
}
