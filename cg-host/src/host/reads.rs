//! Reads that see what was accepted and is not committed.

use std::sync::Arc;

use cg_format::EntityId;
use cg_format::entity::Entity;
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;

use super::batch::Batch;
use super::{Host, Inner};
use crate::binding::Binding;
use crate::column::{Cells, Column, ColumnAt};
use crate::error::Error;

impl Host {
    /// An entity; `None` if the world does not have it.
    ///
    /// # Errors
    /// What the store says.
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        let pending = |batch: &Batch| batch.entity(id).map(Option::<&Entity>::cloned);
        match self.inner.pending(pending)? {
            Some(pending) => Ok(pending),
            None => Ok(self.world().entity(id)?),
        }
    }

    /// A property; `None` if it is not set.
    ///
    /// # Errors
    /// What the store says.
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        let pending = |batch: &Batch| batch.property(property).map(|bytes| bytes.map(<[u8]>::to_vec));
        match self.inner.pending(pending)? {
            Some(pending) => Ok(pending),
            None => Ok(self.world().property(property)?),
        }
    }

    /// The settings of the world.
    ///
    /// # Errors
    /// What the store says.
    pub fn settings(&self) -> Result<WorldSettings, Error> {
        let collect = |batch: &Batch| {
            let settings: Vec<WorldSettings> = batch.settings().cloned().collect();
            (!settings.is_empty()).then_some(settings)
        };
        let pending = self.inner.pending(collect)?.unwrap_or_default();
        let mut settings = WorldSettings::of(self.world())?;
        for newer in &pending {
            settings.update(newer);
        }
        Ok(settings)
    }

    /// Commits what was accepted, for a read of the world itself.
    ///
    /// # Errors
    /// Why the world takes no commits: a read would not see what was accepted.
    pub fn commit_accepted(&self) -> Result<(), Error> {
        self.inner.commit_group()
    }
}

impl Inner {
    /// What the group has of something. The group is committed first, so that only what is held is looked through.
    fn pending<T>(&self, find: impl Fn(&Batch) -> Option<T>) -> Result<Option<T>, Error> {
        let Err(_held) = self.commit_group() else { return Ok(None) };
        let state = self.state.lock();
        Ok(find(&state.open).or_else(|| state.taken.as_deref().and_then(find)))
    }

    /// A column that was accepted and is not committed, as a binding wants it; otherwise the number of saves until now.
    pub(super) fn pending_column(
        &self,
        binding: &Arc<Binding>,
        at: ColumnAt,
    ) -> Result<Result<Column, u64>, Error> {
        let found = {
            let state = self.state.lock();
            let found = state.open.column(&at).or_else(|| state.taken.as_ref()?.column(&at));
            match found {
                None => return Ok(Err(state.seen.epoch())),
                Some(found) => Arc::clone(found),
            }
        };
        if found.column.at == at && Arc::ptr_eq(&found.binding, binding) && !found.is_part {
            return Ok(Ok(in_form(binding, &found.column)?));
        }
        match self.commit_group() {
            Ok(()) => Ok(Err(self.state.lock().seen.epoch())),
            Err(cause) => Err(Error::HeldOtherwise { at, cause: Arc::new(cause) }),
        }
    }
}

/// A column that a host gave, in the form that its binding asks for.
fn in_form(binding: &Binding, column: &Column) -> Result<Column, Error> {
    let form = binding.form();
    let convert = |cells: &Cells| -> Result<Cells, Error> {
        if cells.has_form(form) || cells.side_log2 != 4 {
            return Ok(cells.clone());
        }
        // It was checked when it was accepted.
        let unpacked = cells.unpack().map_err(|problem| Error::Invalid(problem.to_string()))?;
        Ok(Cells::pack(&unpacked.reordered(cells.order, form.order), form, 4))
    };
    let mut column = column.clone();
    let known = binding.known();
    for section in &mut column.sections {
        if section.layers.is_empty() {
            section.layers.push(Cells::uniform(known.air, form, 4));
        }
        for cells in section.layers.iter_mut().chain(&mut section.biomes) {
            *cells = convert(cells)?;
        }
    }
    Ok(column)
}
