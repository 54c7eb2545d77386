//! The entities of each column.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use cg_format::entity::{Entity, Owner};
use cg_format::{Dimension, EntityId};
use cg_store::{Error, World};

use super::listed;
use crate::mapping::{Ids, StoredLevel, place, player};
use crate::region::ColumnPos;

/// The entities of each column of a world, by the lists of a save in which they go: as they were when this was read, and
/// with those that were saved by it since. Players are of no column.
///
/// A world knows which entities a chunk owns. An entity without a chunk, and one that is listed in another column than
/// that in which it stands, is found only by reading all of them, so this is read once and used for many columns. One
/// that is older than the world lacks new entities of these kinds; it never makes two of one.
#[derive(Debug, Clone, Default)]
pub struct ColumnEntities {
    /// The version that the `level.dat` of the world says.
    pub(super) level: Option<i32>,
    /// By the column in which they are listed, riders too.
    listed: BTreeMap<(Dimension, ColumnPos), BTreeSet<EntityId>>,
    /// Those without a chunk, by the column in which they stand.
    waiting: BTreeMap<(Dimension, ColumnPos), BTreeSet<EntityId>>,
}

impl ColumnEntities {
    /// Reads every entity of a world once; damaged ones are of no column.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn read(world: &World) -> Result<Self, Error> {
        let (catalog, level) = (world.catalog(), StoredLevel::read(world)?.data_version());
        let ids = Ids::find(&catalog);
        let mut found = Self { level, ..Self::default() };
        world.read_view(|view| {
            view.for_each_entity(|entity| {
                if let Ok((id, entity)) = entity
                    && !player::is_player(&catalog, &ids, &entity)
                {
                    found.add(&ids, id, &entity);
                }
                ControlFlow::<()>::Continue(())
            })
        })?;
        Ok(found)
    }

    /// Those that are listed in a column, riders too.
    pub(super) fn of(&self, place: (Dimension, ColumnPos)) -> impl Iterator<Item = EntityId> {
        self.listed.get(&place).into_iter().flatten().copied()
    }

    /// Those that stand in a column, where no chunk is.
    pub(super) fn waiting(&self, place: (Dimension, ColumnPos)) -> impl Iterator<Item = EntityId> {
        self.waiting.get(&place).into_iter().flatten().copied()
    }

    /// Adds an entity that is put.
    pub(super) fn add(&mut self, ids: &Ids, id: EntityId, entity: &Entity) {
        let dimension = entity.position.dimension();
        self.listed.entry((dimension, listed::column_of(ids, entity))).or_default().insert(id);
        if matches!(entity.owner, Owner::Detached(_))
            && let Some(column) = place::column_of(entity.position.block().chunk())
        {
            self.waiting.entry((dimension, column)).or_default().insert(id);
        }
    }
}
