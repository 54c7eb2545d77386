//! Columns and entities as NBT that the game and its tools read.
//!
//! The layout is that of the column's own data version, because readers choose theirs by it: `Level` until 1.17,
//! `sections` since 1.18, indices that span words before 20w17a. So is the form of block states, unless another was met.

use cg_minecraft::packed::{Packing, bits_for};
use cg_minecraft::palette::{Form, Spelling};
use cg_minecraft::state::StateError;

use super::column::{Blocks, CONTAINERS, Column, EntityColumn, LIGHT_BYTES, NO_LEVEL, Section, packing};
use super::nbt::{self, Compound, CompoundWriter, NbtError, Tag, TooLong};

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
    /// Bytes that are to be written as they stand, and are no compound.
    #[error("{what}: {error}")]
    NotNbt {
        /// Which bytes, such as `block entity` or `carried fields`.
        what: &'static str,
        /// Error in them.
        error: NbtError,
    },
    /// Light that does not cover its section.
    #[error("section {y}: {field} has {found} bytes where 2,048 are needed")]
    Light {
        /// The section.
        y: i32,
        /// `BlockLight` or `SkyLight`.
        field: &'static str,
        /// Bytes that are there.
        found: usize,
    },
}

/// The NBT of a column. Bytes that were kept from another save are checked again: what is written can be read.
///
/// # Errors
/// [`WriteError`].
pub fn column(column: &Column) -> Result<Vec<u8>, WriteError> {
    let stated = column.stated.as_deref().map(|stated| check("version and place", stated)).transpose()?;
    let mut result = Ok(());
    let bytes = nbt::document(|root| {
        state(root, stated, "DataVersion", |root| root.int("DataVersion", column.data_version));
        result = if column.data_version < NO_LEVEL {
            let beside = root.compound("Level", |level| fields(level, column, stated, &OLD));
            beside.and_then(|()| raw(root, "fields beside Level", column.beside.as_deref()))
        } else {
            fields(root, column, stated, &NEW)
        };
    });
    result.map(|()| bytes)
}

/// The NBT of a column's entities, for a file in `entities/`.
///
/// # Errors
/// [`WriteError::NotNbt`].
pub fn entities(column: &EntityColumn) -> Result<Vec<u8>, WriteError> {
    column.entities.iter().try_for_each(|entity| check("entity", entity).map(drop))?;
    let stated = column.stated.as_deref().map(|stated| check("version and place", stated)).transpose()?;
    let mut result = Ok(());
    let bytes = nbt::document(|root| {
        state(root, stated, "DataVersion", |root| root.int("DataVersion", column.data_version));
        state(root, stated, "Position", |root| root.int_array("Position", &[column.pos.x, column.pos.z]));
        list(root, "Entities", column.entities.iter().map(Vec::as_slice), column.list);
        result = raw(root, "fields left over", column.left.as_deref());
    });
    result.map(|()| bytes)
}

struct Names {
    sections: &'static str,
    block_entities: &'static str,
    entities: &'static str,
}

const OLD: Names = Names { sections: "Sections", block_entities: "TileEntities", entities: "Entities" };
const NEW: Names = Names { sections: "sections", block_entities: "block_entities", entities: "entities" };

/// Writes a field that states the version or the place: as it stands among those that were kept, if some were.
fn state(
    out: &mut CompoundWriter<'_>,
    stated: Option<Compound<'_>>,
    name: &str,
    usual: impl FnOnce(&mut CompoundWriter<'_>),
) {
    let Some(stated) = stated else { return usual(out) };
    if let Some(field) = stated.field(name) {
        out.raw_fields(field.raw);
    }
}

fn fields(
    out: &mut CompoundWriter<'_>,
    column: &Column,
    stated: Option<Compound<'_>>,
    names: &Names,
) -> Result<(), WriteError> {
    state(out, stated, "xPos", |out| out.int("xPos", column.pos.x));
    state(out, stated, "zPos", |out| out.int("zPos", column.pos.z));
    raw(out, "carried fields", Some(&column.carried))?;
    raw(out, "fields left over", column.left.as_deref())?;
    if !column.sections.is_empty() {
        let form = column.form.unwrap_or(Form::of(column.data_version));
        out.compounds(names.sections, in_order(column).into_iter(), |out, (section, kind)| {
            write_section(out, section, kind, form, column.data_version)
        })?;
    } else if let Some(kind) = column.lists.sections {
        out.empty_list(names.sections, kind);
    }
    column.block_entities.iter().try_for_each(|entity| check("block entity", &entity.nbt).map(drop))?;
    column.entities.iter().try_for_each(|entity| check("entity", entity).map(drop))?;
    let block_entities = column.block_entities.iter().map(|entity| entity.nbt.as_slice());
    let entities = column.entities.iter().map(Vec::as_slice);
    list(out, names.block_entities, block_entities, column.lists.block_entities);
    list(out, names.entities, entities, column.lists.entities);
    Ok(())
}

/// The sections in the order in which they stood, each with the kind of its `Y`.
fn in_order(column: &Column) -> Vec<(&Section, Tag)> {
    let place =
        |section: &Section| column.order.as_ref().map_or((0, Tag::Byte), |order| order.place(section.y));
    let mut sections: Vec<_> = column.sections.iter().map(|section| (section, place(section))).collect();
    // Stable: sections that were not there ascend.
    sections.sort_by_key(|(_, (place, _))| *place);
    sections.into_iter().map(|(section, (_, kind))| (section, kind)).collect()
}

/// A list of compounds; one of this kind where there are none.
fn list<'a>(
    out: &mut CompoundWriter<'_>,
    name: &'static str,
    items: impl ExactSizeIterator<Item = &'a [u8]>,
    empty: Option<Tag>,
) {
    if items.len() > 0 {
        out.raw_compounds(name, items);
    } else if let Some(kind) = empty {
        out.empty_list(name, kind);
    }
}

fn write_section(
    out: &mut CompoundWriter<'_>,
    section: &Section,
    kind: Tag,
    form: Form,
    data_version: i32,
) -> Result<(), WriteError> {
    let y = i8::try_from(section.y).map_err(|_| WriteError::SectionY(section.y))?;
    match kind {
        Tag::Short => out.short("Y", y.into()),
        Tag::Int => out.int("Y", y.into()),
        Tag::Long => out.long("Y", y.into()),
        _ => out.byte("Y", y),
    }
    if let Some(blocks) = &section.blocks {
        if data_version < CONTAINERS {
            let names = ("Palette", "BlockStates");
            let (_, words) = write_palette(out, names, (section, blocks), form, data_version)?;
            out.long_array(names.1, &words);
        } else {
            out.compound("block_states", |out| {
                let names = ("palette", "data");
                let (states, words) = write_palette(out, names, (section, blocks), form, data_version)?;
                if states > 1 {
                    out.long_array(names.1, &words);
                }
                Ok::<_, WriteError>(())
            })?;
        }
    }
    if let Some(biomes) = &section.biomes {
        out.raw_compound("biomes", check("biomes", biomes)?.raw());
    }
    for (field, light) in [("BlockLight", &section.block_light), ("SkyLight", &section.sky_light)] {
        let Some(light) = light else { continue };
        if light.len() != LIGHT_BYTES {
            return Err(WriteError::Light { y: section.y, field, found: light.len() });
        }
        out.byte_array(field, light);
    }
    raw(out, "fields left over in a section", section.left.as_deref())
}

/// The fields of a compound that was kept.
fn raw(out: &mut CompoundWriter<'_>, what: &'static str, kept: Option<&[u8]>) -> Result<(), WriteError> {
    if let Some(kept) = kept {
        check(what, kept)?.fields().for_each(|field| out.raw_fields(field.raw));
    }
    Ok(())
}

fn check<'a>(what: &'static str, raw: &'a [u8]) -> Result<Compound<'a>, WriteError> {
    Compound::parse(raw, &nbt::Limits::default()).map_err(|error| WriteError::NotNbt { what, error })
}

/// Writes a section's palette, as it was met if it still is that; returns its length and the packed indices.
fn write_palette(
    out: &mut CompoundWriter<'_>,
    names: (&'static str, &'static str),
    (section, blocks): (&Section, &Blocks),
    form: Form,
    data_version: i32,
) -> Result<(usize, Vec<i64>), WriteError> {
    let packing = if data_version < CONTAINERS { packing(data_version) } else { Packing::Padded };
    let met = section.met.as_ref();
    if let Some((palette, states, words)) =
        met.and_then(|met| met.of_blocks(blocks, names, (data_version, packing)))
    {
        out.raw_fields(palette);
        return Ok((states, words));
    }
    let words = indices(blocks, section.y, packing)?;
    let states = blocks.palette.iter().map(|state| form.spell(state, data_version));
    let states: Vec<Spelling<'_>> = states.collect::<Result<_, _>>()?;
    if states.iter().any(|state| matches!(state, Spelling::Compound(..))) {
        out.compounds(names.0, states.iter(), |out, state| match state {
            Spelling::Text(name) => out.string("", name),
            Spelling::Compound(name, properties) => {
                let (name_field, properties_field) = form.fields();
                out.string(name_field, name)?;
                if properties.is_empty() && form != Form::Padded {
                    return Ok(());
                }
                out.compound(properties_field, |out| {
                    properties.iter().try_for_each(|(key, value)| out.named_string(key, value))
                })
            }
        })?;
    } else {
        let mut texts = Vec::with_capacity(states.len());
        for state in &states {
            let (Spelling::Text(name) | Spelling::Compound(name, _)) = state;
            texts.push(*name);
        }
        out.strings(names.0, texts.into_iter())?;
    }
    Ok((states.len(), words))
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

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::column::{BlockEntity, CELLS};
    use crate::region::ColumnPos;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Column, &mut Section), expected: Expect) {
        let (mut changed, mut section) = (Column::new(ColumnPos::new(0, 0), 3955), Section::new(3));
        change(&mut changed, &mut section);
        changed.sections.push(section);
        expected.assert_eq(&column(&changed).expect_err("it cannot be written").to_string());
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        check(
            |_, section| section.y = -129,
            expect!["section -129 lies outside the -128 to 127 that a save can hold"],
        );
        check(
            |_, section| section.blocks = Some(Blocks::uniform("stone]")),
            expect![[r#""stone]" is no block state of the form name[key=value,…]"#]],
        );
        check(
            |_, section| {
                let indices = Some(Box::new([1; CELLS]));
                section.blocks = Some(Blocks { indices, ..Blocks::uniform("stone") });
            },
            expect!["section 3: its palette has 1 states, too few for its blocks"],
        );
        check(
            |_, section| section.sky_light = Some(vec![0; 5]),
            expect!["section 3: SkyLight has 5 bytes where 2,048 are needed"],
        );
        check(
            |_, section| section.biomes = Some(vec![]),
            expect!["biomes: NBT: 1 bytes are needed and 0 are left (at byte 0)"],
        );
        check(
            |column, _| column.carried = vec![0, 0],
            expect!["carried fields: NBT: 1 bytes follow the compound (at byte 1)"],
        );
        check(
            |column, _| column.entities.push(vec![13]),
            expect!["entity: NBT: tag 13 does not exist (at byte 0)"],
        );
        check(
            |column, _| {
                column.block_entities.push(BlockEntity { pos: None, kind: String::new(), nbt: vec![1] });
            },
            expect!["block entity: NBT: 2 bytes are needed and 0 are left (at byte 1)"],
        );
        let name = format!("a:{}", "b".repeat(70_000));
        check(
            |_, section| section.blocks = Some(Blocks::uniform(&name)),
            expect!["a string of 70002 bytes is longer than the 65,535 that NBT can hold"],
        );
    }
}
