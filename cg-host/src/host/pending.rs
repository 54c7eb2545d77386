//! Columns and values that were accepted and are not committed.

use std::sync::Arc;

use cg_format::EntityId;

use super::batch::Batch;
use super::state::Inner;
use super::writes::SavedColumn;
use crate::binding::Binding;
use crate::codec::{self, OnDamage};
use crate::column::{Cells, Column};
use crate::error::Error;
use crate::place::ColumnAt;

/// What waits of a column.
pub(super) enum Pending {
    /// It is held, and looks like this.
    Held(Box<Column>),
    /// Nothing: the world has it. With the number of saves until now.
    Not { epoch: u64 },
}

impl Inner {
    /// What the group has of something. The group is committed first, so that only what is held is looked through.
    pub(super) fn pending<T>(&self, find: impl Fn(&Batch) -> Option<T>) -> Option<T> {
        let Err(_held) = self.commit_group() else { return None };
        let state = self.state.lock();
        find(&state.open).or_else(|| state.taken.as_deref().and_then(find))
    }

    /// Whether a column waits, in any heights.
    pub(super) fn is_pending(&self, at: &ColumnAt) -> bool {
        self.newest(at).is_some()
    }

    fn newest(&self, at: &ColumnAt) -> Option<Arc<SavedColumn>> {
        let state = self.state.lock();
        state.open.column(at).or_else(|| state.taken.as_ref()?.column(at)).cloned()
    }

    /// Commits the group if a column waits in it, so that a load sees it with all that stays beside it. One that is held is
    /// put together in memory.
    pub(super) fn pending_column(&self, binding: &Arc<Binding>, at: ColumnAt) -> Result<Pending, Error> {
        let epoch = || self.state.lock().seen.epoch();
        if !self.is_pending(&at) {
            return Ok(Pending::Not { epoch: epoch() });
        }
        let Err(cause) = self.commit_group() else { return Ok(Pending::Not { epoch: epoch() }) };
        let Some(held) = self.newest(&at) else { return Ok(Pending::Not { epoch: epoch() }) };
        if held.column.at != at || !Arc::ptr_eq(&held.binding, binding) || held.is_part {
            return Err(Error::HeldOtherwise { at, cause: Arc::new(cause) });
        }
        let mut column = in_form(binding, &held.column)?;
        if let Some(stored) = codec::load(&self.world, binding, at, OnDamage::Partial)? {
            add_what_stays(&held, stored, &mut column);
        }
        Ok(Pending::Held(Box::new(column)))
    }
}

/// Adds to a column that is held what its commit will leave as it is.
fn add_what_stays(held: &SavedColumn, stored: Column, column: &mut Column) {
    column.kept = stored.kept;
    for old in stored.sections {
        let Ok(place) = column.sections.binary_search_by_key(&old.y, |section| section.y) else { continue };
        let Some(section) = column.sections.get_mut(place) else { continue };
        section.biomes = section.biomes.take().or(old.biomes);
        section.block_light = section.block_light.take().or(old.block_light);
        section.sky_light = section.sky_light.take().or(old.sky_light);
    }
    let is_new = |id: &EntityId| {
        let was_shown = held.shown.entities.binary_search(id).is_ok();
        !was_shown && held.column.entities.binary_search_by_key(id, |entity| entity.id).is_err()
    };
    column.entities.extend(stored.entities.into_iter().filter(|entity| is_new(&entity.id)));
    column.entities.sort_unstable_by_key(|entity| entity.id);
}

/// A column that a host gave, in the form that its binding asks for.
fn in_form(binding: &Binding, column: &Column) -> Result<Column, Error> {
    let form = binding.form();
    let convert = |cells: &Cells| -> Result<Cells, Error> {
        if cells.has_form(form) {
            return Ok(cells.clone());
        }
        // It was checked when it was accepted.
        let unpacked = cells.unpack().map_err(|problem| Error::Invalid(problem.to_string()))?;
        let side_log2 = cells.side_log2;
        let unpacked = match side_log2 {
            4 => unpacked.reordered(cells.order, form.order),
            _ => unpacked.reordered_coarse(cells.order, form.order),
        };
        Ok(Cells::pack(&unpacked, form, side_log2))
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
