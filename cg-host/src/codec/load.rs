//! A column of a world as a host's.

use std::sync::Arc;

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;
use cg_store::{ErrorKind, World};

use super::ticks::Ticks;
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
        if entities::load(world, binding, &chunks, &mut column)?.is_some() {
            fill(binding, &chunks, &mut column)?;
            column.sort();
            return Ok(Some(column));
        }
    }
    Err(Error::Moving { at })
}

/// Adds the content of chunks, which ascend, to a column.
pub(crate) fn fill(
    binding: &Binding,
    chunks: &[(ChunkAt, Arc<Chunk>)],
    column: &mut Column,
) -> Result<(), Error> {
    column.sections.reserve(chunks.len());
    for (at, chunk) in chunks {
        section::load(binding, *at, chunk, column)?;
    }
    if let Some((at, ticks)) = ticks_of(binding, chunks) {
        let ticks = Ticks::decode(ticks, &column.at);
        let name = crate::binding::TICKS;
        ticks.ok_or(Error::Side { at, name })?.into_column(binding, column);
    }
    for y in column.damaged.clone() {
        let known = binding.known();
        let cells = Cells::uniform(known.placeholder, known.form, 4);
        let section = Section { y, layers: vec![cells], biomes: None, block_light: None, sky_light: None };
        column.sections.push(section);
    }
    if !column.damaged.is_empty() {
        column.sections.sort_unstable_by_key(|section| section.y);
    }
    Ok(())
}

/// The side data of scheduled ticks, which one chunk of a column holds.
pub(crate) fn ticks_of<'c>(
    binding: &Binding,
    chunks: &'c [(ChunkAt, Arc<Chunk>)],
) -> Option<(ChunkAt, &'c [u8])> {
    let kind = binding.names.ticks?;
    chunks.iter().find_map(|(at, chunk)| Some((*at, chunk.side(kind)?)))
}
