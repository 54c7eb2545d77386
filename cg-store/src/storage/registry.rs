//! The world's registry: ids are issued here, committed before anything uses them, and never moved.

use std::sync::Arc;

use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_registry::{Catalog, PackManifest, Plan, Policy, reconcile};

use crate::engine::{Batch, Engine, Level, Stamp};
use crate::rt::lock_order::{RwLock, rank};
use crate::storage::error::{Error, OpenError};
use crate::storage::meta;

/// The current catalog, shared with every reader as it was when they asked.
#[derive(Debug)]
pub(crate) struct Registry {
    current: RwLock<Arc<Catalog>, rank::Catalog>,
}

impl Registry {
    /// The catalog as it is now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.read())
    }

    /// Puts another catalog in place of the current one, which it returns.
    pub(crate) fn replace(&self, catalog: Arc<Catalog>) -> Arc<Catalog> {
        std::mem::replace(&mut *self.current.write(), catalog)
    }

    /// What packs would change in a catalog, if they are accepted.
    pub(crate) fn accept(
        catalog: &Catalog,
        packs: &[PackManifest],
        policy: &Policy,
    ) -> Result<Plan, OpenError> {
        let plan = reconcile(catalog, packs, policy);
        if plan.is_accepted() { Ok(plan) } else { Err(OpenError::NeedsPlan { report: plan.report() }) }
    }

    /// Grows a catalog by what packs offer, in memory.
    ///
    /// No packs at all means that the host brings none to compare; nothing is reconciled then.
    pub(crate) fn grow(catalog: &mut Catalog, packs: &[PackManifest], policy: &Policy) -> Result<(), Error> {
        if !packs.is_empty() {
            Self::accept(catalog, packs, policy)?.apply(catalog)?;
        }
        Ok(())
    }

    /// Begins with a catalog: what is stored of it is folded into whole rows, and what is new is stored.
    pub(crate) fn begin(engine: &dyn Engine, catalog: Catalog) -> Result<Self, Error> {
        let registry = Self { current: RwLock::new(Arc::new(catalog)) };
        if !engine.caps().read_only {
            registry.fold(engine)?;
        }
        Ok(registry)
    }

    /// Folds the rows of names issued since the world was opened into the whole rows.
    pub(crate) fn fold(&self, engine: &dyn Engine) -> Result<(), Error> {
        let batch = folded(engine, &self.catalog())?;
        if !batch.is_empty() {
            engine.commit(batch, &[], Level::Process)?;
        }
        Ok(())
    }
}

/// A batch that leaves exactly the catalog's whole rows; empty if they are there already.
pub(crate) fn folded(engine: &dyn Engine, catalog: &Catalog) -> Result<Batch, Error> {
    let mut stored = meta::registry_rows(engine)?;
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
