//! Registration of names: the registry grows in commits of its own.

use std::sync::Arc;

use cg_registry::{Catalog, Changes, RegistryError};

use crate::commit::commit_log::Committing;
use crate::commit::state::CommitState;
use crate::engine::Batch;
use crate::storage::error::Error;
use crate::storage::registry::{folded, put};

impl CommitState {
    /// Commits what `grow` adds to the catalog.
    pub(crate) fn grow_names(
        &self,
        grow: impl FnOnce(&mut Catalog) -> Result<Changes, RegistryError>,
    ) -> Result<Arc<Catalog>, Error> {
        self.shared.check_open()?;
        let committing = self.commit_alone()?;
        let before = self.shared.registry.catalog();
        let mut grown = Catalog::clone(&before);
        let changes = grow(&mut grown)?;
        if changes.is_empty() {
            return Ok(before);
        }
        let mut batch = Batch::new();
        for (name, bytes) in changes.encode_tail() {
            put(&mut batch, &name, bytes);
        }
        let grown = Arc::new(grown);
        self.commit_names(committing, batch, &grown)?;
        Ok(grown)
    }

    /// Adopts the catalog of a world that also issues the names of this one. It contains at least the names of this
    /// world.
    pub(crate) fn adopt_names(&self, names: &Arc<Catalog>) -> Result<(), Error> {
        self.shared.check_open()?;
        let committing = self.commit_alone()?;
        let batch = folded(&*self.shared.engine()?, names)?;
        if batch.is_empty() {
            return Ok(());
        }
        self.commit_names(committing, batch, names)
    }

    /// Replaces the rows of names that were issued since the world was opened by whole rows, as closing does.
    pub(crate) fn fold_names(&self) -> Result<(), Error> {
        let committing = self.commit_alone()?;
        let names = self.shared.registry.catalog();
        let batch = folded(&*self.shared.engine()?, &names)?;
        if batch.is_empty() {
            return Ok(());
        }
        self.commit_names(committing, batch, &names)
    }

    /// Commits rows of the registry. `names` is the catalog from then on.
    fn commit_names(
        &self,
        mut committing: Committing<'_>,
        batch: Batch,
        names: &Arc<Catalog>,
    ) -> Result<(), Error> {
        let seq = self.commit_past_queue(batch, [])?;
        let before = self.shared.registry.replace(Arc::clone(names));
        if names.current_generation() != before.current_generation() {
            self.read.cache.clear();
        }
        if names.opacity_changed_since(before.current_generation()) {
            self.shared.map.outdate();
        }
        committing.publish(seq, []);
        Ok(())
    }
}
