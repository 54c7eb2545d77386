//! Reading one section of a column.

use std::collections::BTreeSet;
use std::collections::HashMap;
use std::sync::Arc;

use super::decode::compound_of;
use super::{Blocks, CELLS, ColumnProblem, Fault, LIGHT_BYTES, Packing, Section};
use crate::anvil::nbt::{Compound, Field, List, Longs, Value};
use crate::anvil::state;

/// Fields that are read.
const MAPPED: [&[u8]; 7] =
    [b"Y", b"block_states", b"Palette", b"BlockStates", b"biomes", b"BlockLight", b"SkyLight"];

/// Whether a field may stand beside what is written of this section: none of the name of one that is.
pub(crate) fn is_left(field: &Field<'_>, section: &Section) -> bool {
    match (field.name.0, field.value) {
        (b"BlockLight", Value::ByteArray([])) => section.block_light.is_none(),
        (b"SkyLight", Value::ByteArray([])) => section.sky_light.is_none(),
        (name, _) => !MAPPED.contains(&name),
    }
}

/// Texts of palette entries met before, by the entry's bytes: a save repeats a few hundred states endlessly.
#[derive(Debug, Default)]
pub(super) struct States {
    texts: HashMap<Box<[u8]>, Arc<str>>,
}

/// What a section adds to its column.
pub(super) struct Found<'a> {
    pub(super) problems: &'a mut Vec<ColumnProblem>,
    pub(super) not_carried: &'a mut BTreeSet<String>,
}

impl States {
    /// Forgotten when more kinds are held than any real save has, so that no input makes it grow without end.
    const MAX_TEXTS: usize = 1 << 16;

    fn text(&mut self, entry: Compound<'_>) -> Result<Arc<str>, Fault> {
        if let Some(text) = self.texts.get(entry.raw()) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = state::from_nbt(entry)?.into();
        if self.texts.len() >= Self::MAX_TEXTS {
            self.texts.clear();
        }
        self.texts.insert(entry.raw().into(), Arc::clone(&text));
        Ok(text)
    }
}

/// Reads a section; `None` when it is lost as a whole. What is lost is noted.
pub(super) fn decode(
    nbt: Compound<'_>,
    packing: Packing,
    states: &mut States,
    found: &mut Found<'_>,
) -> Option<Section> {
    let Some(y) = nbt.long("Y").and_then(|y| i8::try_from(y).ok()).map(i32::from) else {
        found.problems.push(ColumnProblem { y: None, fault: Fault::NoY });
        return None;
    };
    let mut section = Section::new(y);
    let (mut palette, mut indices, mut has_blocks) = (None, None, false);
    let mut left = Vec::new();
    for field in nbt.fields() {
        match (field.name.0, field.value) {
            (b"Y", _) => {}
            (b"block_states", Value::Compound(container)) => {
                has_blocks = true;
                palette = container.list("palette");
                indices = container.get("data").and_then(longs);
            }
            (b"Palette", Value::List(list)) => {
                has_blocks = true;
                palette = Some(list);
            }
            (b"BlockStates", Value::LongArray(words)) => {
                has_blocks = true;
                indices = Some(words);
            }
            (b"biomes", Value::Compound(biomes)) => section.biomes = Some(biomes.raw().to_vec()),
            // No light at all, which some writers say so.
            (b"BlockLight" | b"SkyLight", Value::ByteArray([])) => left.push(field.raw),
            (b"BlockLight", Value::ByteArray(bytes)) => {
                section.block_light = light("BlockLight", bytes, y, found.problems);
            }
            (b"SkyLight", Value::ByteArray(bytes)) => {
                section.sky_light = light("SkyLight", bytes, y, found.problems);
            }
            (name, _) if !MAPPED.contains(&name) => left.push(field.raw),
            (_, value) => {
                if !value.is_empty() {
                    found.not_carried.insert(format!("sections.{}", field.name.lossy()));
                }
            }
        }
    }
    section.left = compound_of(left.into_iter());
    if has_blocks {
        match blocks(palette, indices, packing, states) {
            Ok(blocks) => section.blocks = Some(blocks),
            Err(fault) => {
                found.problems.push(ColumnProblem { y: Some(y), fault });
                return None;
            }
        }
    }
    Some(section)
}

fn blocks(
    palette: Option<List<'_>>,
    indices: Option<Longs<'_>>,
    packing: Packing,
    states: &mut States,
) -> Result<Blocks, Fault> {
    let entries = palette.filter(|palette| !palette.is_empty()).ok_or(Fault::NoPalette)?;
    if entries.len() > 1 << 16 {
        return Err(Fault::PaletteTooLong(entries.len()));
    }
    let palette: Result<Vec<_>, _> = entries.compounds().map(|entry| states.text(entry)).collect();
    let palette = palette?;
    if palette.is_empty() {
        return Err(Fault::NoPalette);
    }
    let indices = match indices.filter(|words| !words.is_empty()) {
        // One state needs no indices; where they are there all the same, they are checked like any others.
        Some(words) => Some(packing.unpack(words, palette.len())?).filter(|_| palette.len() > 1),
        None if palette.len() == 1 => None,
        None => return Err(Fault::NoIndices { states: palette.len() }),
    };
    Ok(Blocks { palette, indices })
}

fn light(field: &'static str, bytes: &[u8], y: i32, problems: &mut Vec<ColumnProblem>) -> Option<Vec<u8>> {
    if bytes.len() == LIGHT_BYTES {
        return Some(bytes.to_vec());
    }
    if !bytes.is_empty() {
        let fault = Fault::LightLength { field, found: bytes.len() };
        problems.push(ColumnProblem { y: Some(y), fault });
    }
    None
}

fn longs(value: Value<'_>) -> Option<Longs<'_>> {
    if let Value::LongArray(words) = value { Some(words) } else { None }
}

const _: () = assert!(LIGHT_BYTES * 2 == CELLS, "light has four bits a cell");
