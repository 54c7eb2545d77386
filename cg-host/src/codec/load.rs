//! A column of a world as a host's.

use std::sync::Arc;

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;
use cg_store::{ErrorKind, World};

use super::{entities, section};
use crate::binding::Binding;
use crate::column::{Cells, Column, Section};
use crate::error::Error;
use crate::place::ColumnAt;

/// The answer to a damaged chunk in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// The column is not loaded.
    #[default]
    Refuse,
    /// The other sections are loaded; a damaged one shows the placeholder, and is never written.
    Partial,
}

/// How often a column is read again because entities of it were moved meanwhile.
const TRIES: usize = 8;

/// Loads a column; `None` if no chunk of it is stored.
pub(crate) fn load(
    world: &World,
    binding: &Binding,
    at: ColumnAt,
    on_damage: OnDamage,
) -> Result<Option<Column>, Error> {
    let places = at.chunks()?;
    for _ in 0..TRIES {
        let mut damaged = Vec::new();
        let mut chunks = Vec::new();
        for (place, found) in places.iter().zip(world.load_many(&places)) {
            match found {
                Ok(Some(chunk)) => chunks.push((*place, chunk)),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::Damaged && on_damage == OnDamage::Partial => {
                    tracing::warn!(place = %place, %error, "a damaged section is shown as placeholder");
                    damaged.push(i32::try_from(place.pos.y()).unwrap_or_default());
                }
                Err(error) => return Err(Error::of_chunk(*place, error)),
            }
        }
        if chunks.is_empty() && damaged.is_empty() {
            return Ok(None);
        }
        let mut column = Column::new(at);
        column.damaged = damaged;
        let sound = fill(binding, chunks, &mut column, on_damage)?;
        if entities::load(world, binding, &sound, &mut column, on_damage)?.is_some() {
            column.sort();
            return Ok(Some(column));
        }
    }
    Err(Error::Moving { at })
}

/// Adds the content of chunks, which ascend, to a column. Returns those that are sound.
fn fill(
    binding: &Binding,
    chunks: Vec<(ChunkAt, Arc<Chunk>)>,
    column: &mut Column,
    on_damage: OnDamage,
) -> Result<Vec<(ChunkAt, Arc<Chunk>)>, Error> {
    column.sections.reserve(chunks.len());
    let mut sound = Vec::with_capacity(chunks.len());
    for (at, chunk) in chunks {
        let before =
            (column.sections.len(), column.block_entities.len(), column.scheduled.len(), column.kept);
        match section::load(binding, at, &chunk, column) {
            Err(error) if error.kind() == ErrorKind::Damaged && on_damage == OnDamage::Partial => {
                tracing::warn!(place = %at, %error, "a damaged section is shown as placeholder");
                column.sections.truncate(before.0);
                column.block_entities.truncate(before.1);
                column.scheduled.truncate(before.2);
                column.kept = before.3;
                column.damaged.push(i32::try_from(at.pos.y()).unwrap_or_default());
            }
            loaded => {
                loaded?;
                sound.push((at, chunk));
            }
        }
    }
    let known = binding.known();
    for y in &column.damaged {
        let layers = vec![Cells::uniform(known.placeholder, known.form, 4)];
        let section = Section { y: *y, layers, biomes: None, block_light: None, sky_light: None };
        column.sections.push(section);
    }
    column.damaged.sort_unstable();
    column.sections.sort_unstable_by_key(|section| section.y);
    Ok(sound)
}
