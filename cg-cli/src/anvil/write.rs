//! Columns and entities as NBT that the game and its tools read.
//!
//! The layout is that of the column's own data version, because readers choose theirs by it: `Level` until 1.17,
//! `sections` since 1.18, indices that span words before 20w17a.

use super::column::{Blocks, Column, EntityColumn, Packing, Section, bits_for, packing};
use super::nbt::{self, CompoundWriter, TooLong};
use super::state::{self, StateError};

/// The first version whose sections hold `block_states` (21w37a).
const CONTAINERS: i32 = 2834;
/// The first version without `Level` (21w43a).
const NO_LEVEL: i32 = 2844;

/// Why a column cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A section outside what a save can say.
    #[error("section {0} lies outside the -128 to 127 that a save can hold")]
    SectionY(i32),
    /// A section whose palette is empty or shorter than its indices say.
    #[error("section {y}: its palette has {states} states, too few for its blocks")]
    Palette {
        /// The section.
        y: i32,
        /// Entries of the palette.
        states: usize,
    },
    /// A block that is no state of the game's form.
    #[error(transparent)]
    State(#[from] StateError),
    /// A name or value that NBT cannot hold.
    #[error(transparent)]
    TooLong(#[from] TooLong),
}

/// The NBT of a column. [`Column::status`] is written only where [`Column::carried`] does not say it already.
///
/// # Errors
/// [`WriteError`].
pub fn column(column: &Column) -> Result<Vec<u8>, WriteError> {
    let mut result = Ok(());
    let bytes = nbt::document(|root| {
        root.int("DataVersion", column.data_version);
        result = if column.data_version < NO_LEVEL {
            root.compound("Level", |level| fields(level, column, &OLD))
        } else {
            fields(root, column, &NEW)
        };
    });
    result.map(|()| bytes)
}

/// The NBT of a column's entities, for a file in `entities/`.
pub fn entities(column: &EntityColumn) -> Vec<u8> {
    nbt::document(|root| {
        root.int("DataVersion", column.data_version);
        root.int_array("Position", &[column.x, column.z]);
        root.raw_compounds("Entities", column.entities.iter().map(Vec::as_slice));
    })
}

struct Names {
    sections: &'static str,
    block_entities: &'static str,
    entities: &'static str,
}

const OLD: Names = Names { sections: "Sections", block_entities: "TileEntities", entities: "Entities" };
const NEW: Names = Names { sections: "sections", block_entities: "block_entities", entities: "entities" };

fn fields(out: &mut CompoundWriter<'_>, column: &Column, names: &Names) -> Result<(), WriteError> {
    out.int("xPos", column.x);
    out.int("zPos", column.z);
    out.raw_fields(&column.carried);
    out.compounds(names.sections, column.sections.iter(), |out, section| {
        write_section(out, section, column.data_version)
    })?;
    let block_entities = column.block_entities.iter().map(|entity| entity.nbt.as_slice());
    out.raw_compounds(names.block_entities, block_entities);
    if !column.entities.is_empty() {
        out.raw_compounds(names.entities, column.entities.iter().map(Vec::as_slice));
    }
    Ok(())
}

fn write_section(
    out: &mut CompoundWriter<'_>,
    section: &Section,
    data_version: i32,
) -> Result<(), WriteError> {
    out.byte("Y", i8::try_from(section.y).map_err(|_| WriteError::SectionY(section.y))?);
    if let Some(blocks) = &section.blocks {
        if data_version < CONTAINERS {
            write_palette(out, "Palette", blocks)?;
            out.long_array("BlockStates", &indices(blocks, section.y, packing(data_version))?);
        } else {
            out.compound("block_states", |out| {
                write_palette(out, "palette", blocks)?;
                let words = indices(blocks, section.y, Packing::Padded)?;
                if blocks.indices.is_some() {
                    out.long_array("data", &words);
                }
                Ok::<_, WriteError>(())
            })?;
        }
    }
    if let Some(biomes) = &section.biomes {
        out.raw_compound("biomes", biomes);
    }
    if let Some(light) = &section.block_light {
        out.byte_array("BlockLight", light);
    }
    if let Some(light) = &section.sky_light {
        out.byte_array("SkyLight", light);
    }
    Ok(())
}

fn write_palette(
    out: &mut CompoundWriter<'_>,
    name: &'static str,
    blocks: &Blocks,
) -> Result<(), WriteError> {
    out.compounds(name, blocks.palette.iter(), |entry, text| {
        let (name, properties) = state::parse(text)?;
        entry.string("Name", name)?;
        if !properties.is_empty() {
            entry.compound("Properties", |out| {
                properties.iter().try_for_each(|(key, value)| out.named_string(key, value))
            })?;
        }
        Ok(())
    })
}

/// The packed indices, checked against the palette.
fn indices(blocks: &Blocks, y: i32, packing: Packing) -> Result<Vec<i64>, WriteError> {
    let states = blocks.palette.len();
    let highest = blocks.indices.as_ref().and_then(|indices| indices.iter().max().copied()).unwrap_or(0);
    if usize::from(highest) >= states {
        return Err(WriteError::Palette { y, states });
    }
    let bits = bits_for(states);
    Ok(match &blocks.indices {
        Some(indices) => packing.pack(indices, bits),
        None => vec![0; packing.words(bits)],
    })
}
