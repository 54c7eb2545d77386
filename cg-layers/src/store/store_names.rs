//! The names of a store of overlays, and its head, which says how many of them are the base's.

use std::sync::Arc;

use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_registry::{Catalog, Registration};
use cg_store::Error;
use cg_store::engine::{Batch, Engine, Stamp};
use cg_store::layer::{Base, RwLock, rank, read_catalog, registry_rows};
use uuid::Uuid;

use super::engine::RowEngine;
use super::head::{HEAD, Head};
use super::names::Names;

/// The names that the overlays of a store share, as they are stored.
#[derive(Debug)]
pub(crate) struct StoreNames {
    /// As it was when the store was opened: how many names are shared changes with `names`.
    head: Head,
    names: RwLock<Names, rank::OverlayNames>,
}

impl StoreNames {
    /// Reads the head and the names of an engine that is empty or holds arenas over this base. Writes nothing.
    ///
    /// # Errors
    /// [`OverlayError`](super::OverlayError) if the base is not the one that the arenas were written over.
    pub(crate) fn read(engine: &dyn Engine, base: &impl Base, catalog: &Catalog) -> Result<Self, Error> {
        let (mut head, names) = match HEAD.get(engine)? {
            None => {
                let names = Names::of_base(catalog);
                let shared = names.shared;
                (Head { uuid: Uuid::new_v4(), base: base.identity(), shared }, names)
            }
            Some(head) => {
                head.check(base.identity())?;
                let names = Names::stored(read_catalog(engine)?, head.shared, catalog)?;
                (head, names)
            }
        };
        head.shared = names.shared;
        Ok(Self { head, names: RwLock::new(names) })
    }

    /// The store's identity, and its base's.
    pub(crate) const fn head(&self) -> &Head {
        &self.head
    }

    /// Refuses a base whose identity is not the stored one. Waits for nothing.
    pub(crate) fn check(&self, base: &impl Base) -> Result<(), Error> {
        Ok(self.head.check(base.identity())?)
    }

    /// The catalog, if the base still fits it.
    pub(crate) fn catalog(&self, base: &impl Base) -> Result<Arc<Catalog>, Error> {
        Ok(self.names.read().catalog(base.catalog())?)
    }

    /// The catalog, for callers that cannot return an error if the base no longer fits it.
    pub(crate) fn unchecked(&self, base: &impl Base) -> Arc<Catalog> {
        self.names.read().unchecked(base.catalog())
    }

    pub(crate) fn register(
        &self,
        rows: &RowEngine,
        base: &impl Base,
        new: &Registration,
    ) -> Result<Arc<Catalog>, Error> {
        let mut names = self.names.write();
        let catalog = base.catalog();
        if let Some(grown) = names.grown(Arc::clone(&catalog), new)? {
            self.put(rows, &grown, catalog)?;
            *names = grown;
        }
        Ok(names.catalog(base.catalog())?)
    }

    /// The names that the base must register to have the overlays' own.
    pub(crate) fn own(&self) -> Option<Registration> {
        self.names.read().own_names()
    }

    /// Drops the overlays' own names: the base has registered them under the same ids.
    pub(crate) fn adopted(&self, rows: &RowEngine, base: &impl Base) -> Result<(), Error> {
        let mut names = self.names.write();
        let catalog = base.catalog();
        let adopted = names.adopted(&catalog)?;
        self.put(rows, &adopted, catalog)?;
        *names = adopted;
        Ok(())
    }

    /// Stores the names that the base has issued since, before rows use them. A base that lost its newest names in a
    /// crash may issue their ids for others. It must not pass for the base of these rows.
    pub(crate) fn remember(&self, rows: &RowEngine, base: &impl Base) -> Result<(), Error> {
        if self.names.read().has_all(&base.catalog()) {
            return Ok(());
        }
        let mut names = self.names.write();
        let catalog = base.catalog();
        if !names.has_all(&catalog) {
            let grown = Names::of_base(&catalog);
            self.put(rows, &grown, catalog)?;
            *names = grown;
        }
        Ok(())
    }

    /// Stores the head and the names as they were read, unless they are stored already.
    pub(crate) fn store(&self, rows: &RowEngine, base: Arc<Catalog>) -> Result<(), Error> {
        self.put(rows, &self.names.read(), base)
    }

    /// The caller has the lock of the names, so others put none meanwhile.
    fn put(&self, rows: &RowEngine, names: &Names, base: Arc<Catalog>) -> Result<(), Error> {
        let catalog = names.unchecked(base);
        let mut stored = registry_rows(rows.engine())?;
        let mut batch = Batch::new();
        for (name, bytes) in catalog.encode_full() {
            if stored.remove(&name).as_ref() != Some(&bytes) {
                let row = Draft::plain(Codec::None, 0, |out| out.extend(bytes));
                batch.put(Space::WorldMeta, name.as_bytes(), row, Stamp::Commit);
            }
        }
        for row in stored.keys() {
            batch.delete(Space::WorldMeta, row);
        }
        let now = Head { shared: names.shared, ..self.head };
        if !batch.is_empty() || HEAD.get(rows.engine())? != Some(now) {
            HEAD.put(&mut batch, &now);
            rows.commit(batch, rows.level())?;
        }
        Ok(())
    }
}
