//! Columns and values that were accepted and are not committed.

use std::sync::Arc;

use cg_format::EntityId;
use cg_format::entity::Entity;
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;

use super::batch::{Batch, EntityWrite, Newest};
use super::state::{Inner, State};
use super::writes::{SavedColumn, Write};
use crate::binding::Binding;
use crate::codec::{self, OnDamage};
use crate::column::{Cells, Column};
use crate::error::Error;
use crate::place::ColumnAt;

/// What waits of a column.
pub(super) enum Pending {
    /// It looks like this.
    Column(Box<Column>),
    /// Nothing: the world has it. This many saves were made until now.
    Not { epoch: u64 },
}

impl State {
    /// What waits, the newest first.
    fn batches(&self) -> impl Iterator<Item = &Batch> {
        std::iter::once(&self.open).chain(self.taken.as_deref())
    }

    fn newest(&self, at: &ColumnAt) -> Option<Arc<SavedColumn>> {
        self.batches().find_map(|batch| batch.column(at)).cloned()
    }
}

impl Inner {
    /// The newest write of a property that waits.
    pub(super) fn pending_property(&self, property: &Property) -> Option<Newest<Vec<u8>>> {
        self.state.lock().batches().find_map(|batch| batch.property(property))
    }

    /// The settings that wait, oldest first.
    pub(super) fn pending_settings(&self) -> Vec<WorldSettings> {
        let state = self.state.lock();
        let taken = state.taken.as_deref();
        taken.into_iter().chain([&state.open]).flat_map(Batch::settings).cloned().collect()
    }

    /// An entity as it will be when what waits is committed; `None` if nothing of it waits.
    pub(super) fn pending_entity(&self, id: EntityId) -> Result<Option<Newest<Entity>>, Error> {
        let (binding, at, entity, heights) = {
            let state = self.state.lock();
            let Some((batch, write)) = state.batches().find_map(|batch| Some((batch, batch.entity(id)?)))
            else {
                return Ok(None);
            };
            match write {
                EntityWrite::Deleted => return Ok(Some(Newest::Deleted)),
                EntityWrite::Put(list, place) => {
                    return Ok(match batch.write(*list, *place) {
                        Some(Write::Entity(_, entity)) => Some(Newest::Put(Entity::clone(entity))),
                        _ => None,
                    });
                }
                EntityWrite::In(saved) => {
                    let Some(entity) = saved.entity(id) else { return Ok(None) };
                    let heights: Vec<i32> = saved.column.sections.iter().map(|section| section.y).collect();
                    (Arc::clone(&saved.binding), saved.column.at, entity.clone(), heights)
                }
            }
        };
        let stored = self.world.entity(id)?;
        codec::entity(&binding, &at, &entity, stored, &heights).map(|entity| Some(Newest::Put(entity)))
    }

    /// A column that waits, with what stays beside it. One that was asked for in other heights or numbers is committed first,
    /// with its group.
    pub(super) fn pending_column(&self, binding: &Arc<Binding>, at: ColumnAt) -> Result<Pending, Error> {
        let (newest, epoch) = {
            let state = self.state.lock();
            (state.newest(&at), state.seen.epoch())
        };
        let Some(waiting) = newest else { return Ok(Pending::Not { epoch }) };
        if waiting.column.at != at || !Arc::ptr_eq(&waiting.binding, binding) || waiting.is_part {
            self.commit_group().map_err(|cause| Error::HeldOtherwise { at, cause: Arc::new(cause) })?;
            return Ok(Pending::Not { epoch: self.state.lock().seen.epoch() });
        }
        let mut column = in_form(binding, &waiting.column)?;
        if let Some(stored) = codec::load(&self.world, binding, at, OnDamage::Partial)? {
            add_what_stays(&waiting, stored, &mut column);
        }
        Ok(Pending::Column(Box::new(column)))
    }

    /// Removes from a column that was loaded the entities that wait elsewhere, or to be deleted.
    pub(super) fn without_moved(&self, column: &mut Column) {
        let at = column.at;
        let state = self.state.lock();
        column.entities.retain(|entity| match state.batches().find_map(|batch| batch.entity(entity.id)) {
            None => true,
            Some(EntityWrite::In(saved)) => {
                let of = &saved.column.at;
                (of.dimension, of.x, of.z) == (at.dimension, at.x, at.z)
            }
            Some(EntityWrite::Put(..) | EntityWrite::Deleted) => false,
        });
    }
}

/// Adds to a column that waits what its commit will leave as it is.
fn add_what_stays(waiting: &SavedColumn, stored: Column, column: &mut Column) {
    column.kept = stored.kept;
    column.damaged.clone_from(&stored.damaged);
    for old in stored.sections {
        let place = column.sections.binary_search_by_key(&old.y, |section| section.y);
        if stored.damaged.binary_search(&old.y).is_ok() {
            if let Ok(place) = place {
                column.sections.remove(place);
            }
            column.sections.insert(place.unwrap_or_else(|place| place), old);
            continue;
        }
        let Some(section) = place.ok().and_then(|place| column.sections.get_mut(place)) else { continue };
        section.biomes = section.biomes.take().or(old.biomes);
        section.block_light = section.block_light.take().or(old.block_light);
        section.sky_light = section.sky_light.take().or(old.sky_light);
    }
    let is_new =
        |id: &EntityId| waiting.shown.entities.binary_search(id).is_err() && waiting.entity(*id).is_none();
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
        Ok(Cells::pack(unpacked, form, side_log2))
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
