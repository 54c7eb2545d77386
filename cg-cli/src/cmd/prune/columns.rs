//! What an import kept of columns beside their chunks, and when it goes.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cg_cli::mapping::{leftovers, name, place};
use cg_format::{ChunkAt, Dimension};
use cg_registry::ListKind;
use cg_store::World;
use cg_store::objects::ObjectKey;
use cg_store::view::Area;

use crate::cmd::name_of;
use crate::output::Failure;

/// How many chunks each column has left.
pub(super) struct Columns {
    /// The dimension's name in a save.
    dimension: String,
    chunks: HashMap<(i32, i32), u64>,
}

impl Columns {
    pub(super) fn of(world: &World, dimension: Dimension) -> Result<Self, Failure> {
        let mut chunks = HashMap::new();
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
        let dimension = name::text(&name_of(&world.catalog(), ListKind::Dimensions, dimension.get()));
        Ok(Self { dimension, chunks })
    }

    /// The objects of the columns whose last chunks these are.
    pub(super) fn emptied_by(
        &mut self,
        chunks: &[ChunkAt],
        world: &World,
    ) -> Result<Vec<ObjectKey>, Failure> {
        let mut found = Vec::new();
        for at in chunks {
            let Some(column) = place::column_of(at.pos) else { continue };
            let Some(left) = self.chunks.get_mut(&column) else { continue };
            *left -= 1;
            if *left > 0 {
                continue;
            }
            for key in leftovers::keys_of_column(&self.dimension, column.0, column.1)? {
                if world.objects().version(&key)?.is_some() {
                    found.push(key);
                }
            }
        }
        Ok(found)
    }
}
