//! Columns' contents beside their chunks, and when they go.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use cg_anvil::ColumnPos;
use cg_anvil::mapping::{kept, key, place};
use cg_format::{ChunkAt, ChunkPos, Dimension, EntityId};
use cg_minecraft::name;
use cg_registry::ListKind;
use cg_store::World;
use cg_store::objects::ObjectKey;
use cg_store::view::Area;

use super::detached::{DetachedEntity, detached};
use crate::cmd::name_of;
use crate::output::Failure;

/// Contents of columns that go with the chosen chunks.
pub(super) struct Columns {
    /// The dimension's name in a save.
    dimension: String,
    /// How many chunks each column has left.
    chunks: HashMap<ColumnPos, u64>,
    /// The detached entities that go with the last chunk of a column.
    entities: HashMap<ColumnPos, Vec<EntityId>>,
    /// The detached entities that go with no chunk: in their column another one stays, or none was.
    pub(super) alone: Vec<EntityId>,
    /// How many detached entities go.
    pub(super) detached: u64,
    /// How many detached entities stand where chunks go, and stay because of another reason.
    pub(super) left: u64,
}

/// Objects and entities that go with the last chunks of some columns.
#[derive(Debug, Default)]
pub(super) struct Emptied {
    pub(super) objects: Vec<ObjectKey>,
    pub(super) entities: Vec<EntityId>,
}

impl Columns {
    /// Finds what goes with the chosen chunks, and with places that are empty where `goes_empty` says so.
    pub(super) fn of(
        world: &World,
        dimension: Dimension,
        chosen: &[ChunkAt],
        goes_empty: impl Fn(ChunkPos) -> bool,
    ) -> Result<Self, Failure> {
        let mut chunks = HashMap::<_, u64>::new();
        let failed = world.read_view(|view| {
            view.for_each_place(Area::World, |stored| match stored {
                Ok(stored) => {
                    let column = place::column_of(stored.at.pos).filter(|_| stored.at.dimension == dimension);
                    if let Some(column) = column {
                        *chunks.entry(column).or_default() += 1;
                    }
                    ControlFlow::Continue(())
                }
                Err(error) => ControlFlow::Break(error),
            })
        })?;
        failed.map_or(Ok(()), Err)?;
        let emptied = emptied(&chunks, chosen);
        let is_emptied = |pos| place::column_of(pos).is_some_and(|column| emptied.contains(&column));
        let found = detached(world, dimension, |pos| goes_empty(pos) || is_emptied(pos))?;
        let dimension = name::text(&name_of(&world.catalog(), ListKind::Dimensions, dimension.get()));
        let (entities, alone) = (HashMap::new(), Vec::new());
        let mut columns = Self { dimension, chunks, entities, alone, detached: 0, left: 0 };
        for DetachedEntity { id, pos, is_without_chunk } in found {
            if !is_without_chunk {
                columns.left += 1;
                continue;
            }
            columns.detached += 1;
            match place::column_of(pos).filter(|column| emptied.contains(column)) {
                Some(column) => columns.entities.entry(column).or_default().push(id),
                None => columns.alone.push(id),
            }
        }
        Ok(columns)
    }

    /// The kept slots of columns that have no chunk, where a column goes.
    pub(super) fn kept_without_chunks(
        &self,
        world: &World,
        goes: impl Fn(ColumnPos) -> bool,
    ) -> Result<Vec<ObjectKey>, Failure> {
        let mut found = Vec::new();
        for (key, column) in kept::keys_of_dimension(world, &self.dimension)? {
            if !self.chunks.contains_key(&column) && goes(column) {
                found.push(key);
            }
        }
        Ok(found)
    }

    /// Collects the objects and entities that go with the columns whose last chunks these are.
    pub(super) fn emptied_by(&mut self, chunks: &[ChunkAt], world: &World) -> Result<Emptied, Failure> {
        let mut gone = Emptied::default();
        for at in chunks {
            let Some(column) = place::column_of(at.pos) else { continue };
            let Some(left) = self.chunks.get_mut(&column) else { continue };
            *left -= 1;
            if *left > 0 {
                continue;
            }
            gone.entities.extend(self.entities.remove(&column).unwrap_or_default());
            for key in key::keys_of_column(&self.dimension, column)? {
                if world.objects().version(&key)?.is_some() {
                    gone.objects.push(key);
                }
            }
        }
        Ok(gone)
    }
}

/// The columns whose chunks are all chosen.
fn emptied(chunks: &HashMap<ColumnPos, u64>, chosen: &[ChunkAt]) -> HashSet<ColumnPos> {
    let mut going = HashMap::<_, u64>::new();
    for column in chosen.iter().filter_map(|at| place::column_of(at.pos)) {
        *going.entry(column).or_default() += 1;
    }
    going
        .into_iter()
        .filter(|(column, count)| chunks.get(column) == Some(count))
        .map(|(column, _)| column)
        .collect()
}
