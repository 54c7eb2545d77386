//! Columns and values that were accepted and are not committed.

use std::sync::Arc;

use super::batch::Batch;
use super::state::Inner;
use crate::binding::Binding;
use crate::column::{Cells, Column};
use crate::error::Error;
use crate::place::ColumnAt;

impl Inner {
    /// What the group has of something. The group is committed first, so that only what is held is looked through.
    pub(super) fn pending<T>(&self, find: impl Fn(&Batch) -> Option<T>) -> Option<T> {
        let Err(_held) = self.commit_group() else { return None };
        let state = self.state.lock();
        find(&state.open).or_else(|| state.taken.as_deref().and_then(find))
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
