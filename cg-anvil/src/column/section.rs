//! Reading one section of a column.

use std::collections::{BTreeSet, HashMap};

use cg_minecraft::game;
use cg_minecraft::palette::{Form, Forms, Met, MetPalette, forms_of};
use cg_minecraft::state::StateError;

use super::decode::{CONTAINERS, compound_of, note_doubled};
use super::{Blocks, CELLS, ColumnProblem, Fault, LIGHT_BYTES, Section, packing};
use crate::nbt::{Compound, Field, List, Tag, Value};

/// Where a section has its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In `block_states`.
    Container,
    /// In `Palette` and `BlockStates`.
    Lists,
}

impl Place {
    /// Where the game of a version looks.
    const fn of(data_version: i32) -> Self {
        if data_version < CONTAINERS { Self::Lists } else { Self::Container }
    }

    /// Where they are read: where the game looks, unless they are only in the other place.
    fn of_section(nbt: Compound<'_>, data_version: i32) -> Self {
        let is_there = |place: Self| place.names().iter().any(|name| nbt.field(name).is_some());
        let usual = Self::of(data_version);
        let other = match usual {
            Self::Container => Self::Lists,
            Self::Lists => Self::Container,
        };
        if !is_there(usual) && is_there(other) { other } else { usual }
    }

    const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Container => &["block_states"],
            Self::Lists => &["Palette", "BlockStates"],
        }
    }

    /// Whether a field of this name is read where blocks are in this place.
    fn is_mapped(self, name: &[u8]) -> bool {
        matches!(name, b"Y" | b"biomes" | b"BlockLight" | b"SkyLight")
            || self.names().iter().any(|own| own.as_bytes() == name)
    }
}

/// Whether a field may stand beside what is written of this section in a column of this version: none of the name of one
/// that is.
pub(crate) fn is_left(field: &Field<'_>, section: &Section, data_version: i32) -> bool {
    match (field.name.0, field.value) {
        (b"BlockLight", Value::ByteArray([])) => section.block_light.is_none(),
        (b"SkyLight", Value::ByteArray([])) => section.sky_light.is_none(),
        (name, _) => !Place::of(data_version).is_mapped(name),
    }
}

/// Palette entries met before, by their bytes: a save repeats a few hundred states endlessly.
#[derive(Debug, Default)]
pub(super) struct States {
    /// By [era](game::era), for that decides which properties an entry leaves out, and whether it is a compound.
    met: HashMap<(usize, bool), ByBytes>,
    count: usize,
}

type ByBytes = HashMap<Box<[u8]>, Met>;

/// Additions of a section to its column.
pub(super) struct Found<'a> {
    pub(super) problems: &'a mut Vec<ColumnProblem>,
    pub(super) not_carried: &'a mut BTreeSet<String>,
}

/// A section, and what of its palette a form may write otherwise.
pub(super) struct Read<'a> {
    pub(super) section: Section,
    /// The forms that write it as it was met; all of them if it has no blocks.
    pub(super) forms: Forms,
    entries: Vec<Met>,
    palette: Option<Field<'a>>,
    indices: Option<Field<'a>>,
}

impl Read<'_> {
    /// The section in a column of this form.
    pub(super) fn of_form(self, form: Form) -> Section {
        let Self { mut section, forms, entries, palette, indices } = self;
        if !forms.has(form) {
            section.met = palette.map(|palette| MetPalette::new(&entries, palette, indices));
        }
        section
    }
}

impl States {
    /// Forgotten when more kinds are held than any real save has, so that no input makes it grow without end.
    const MAX_ENTRIES: usize = 1 << 16;

    fn entry(&mut self, entry: Value<'_>, data_version: i32) -> Result<Met, Fault> {
        let (raw, is_compound) = match entry {
            Value::Compound(entry) => (entry.raw(), true),
            Value::String(text) => (text.0, false),
            other => return Err(StateError::NoState(other.tag()).into()),
        };
        let key = (game::era(data_version), is_compound);
        if let Some(met) = self.met.get(&key).and_then(|met| met.get(raw)) {
            return Ok(met.clone());
        }
        let met = Met::read(entry, data_version)?;
        if self.count >= Self::MAX_ENTRIES {
            *self = Self::default();
        }
        self.count += 1;
        self.met.entry(key).or_default().insert(raw.into(), met.clone());
        Ok(met)
    }
}

/// Reads a section; `None` when it is lost as a whole. What is lost is noted.
pub(super) fn decode<'a>(
    nbt: Compound<'a>,
    data_version: i32,
    states: &mut States,
    found: &mut Found<'_>,
) -> Option<Read<'a>> {
    let Some(y) = nbt.long("Y").and_then(|y| i8::try_from(y).ok()).map(i32::from) else {
        found.problems.push(ColumnProblem { y: None, fault: Fault::NoY });
        return None;
    };
    let mut section = Section::new(y);
    note_doubled(nbt, "sections.", found.not_carried);
    let place = Place::of_section(nbt, data_version);
    let (mut palette, mut indices, mut has_blocks) = (None, None, false);
    let mut left = Vec::new();
    for field in nbt.fields() {
        match (field.name.0, field.value) {
            (b"Y", _) => {}
            (name, _) if !place.is_mapped(name) => left.push(field.raw),
            (b"block_states", Value::Compound(container)) => {
                has_blocks = true;
                palette = container.field("palette");
                indices = container.field("data");
                note_in_container(container, found.not_carried);
            }
            (b"Palette", Value::List(_)) => {
                has_blocks = true;
                palette = Some(field);
            }
            (b"BlockStates", Value::LongArray(_)) => {
                has_blocks = true;
                indices = Some(field);
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
            _ => {
                found.not_carried.insert(format!("sections.{}", field.name.lossy()));
            }
        }
    }
    section.left = compound_of(left.into_iter());
    let mut read = Read { section, forms: Forms::ALL, entries: Vec::new(), palette, indices };
    if has_blocks {
        if place != Place::of(data_version) {
            found.problems.push(ColumnProblem { y: Some(y), fault: Fault::OtherForm });
        }
        match blocks(&read, data_version, states) {
            Ok((blocks, entries, kind)) => {
                read.forms = forms_of(&entries, kind, || blocks.counts());
                (read.section.blocks, read.entries) = (Some(blocks), entries);
            }
            Err(fault) => {
                found.problems.push(ColumnProblem { y: Some(y), fault });
                return None;
            }
        }
    }
    Some(read)
}

/// Takes note of what is not written again of `block_states`.
fn note_in_container(container: Compound<'_>, not_carried: &mut BTreeSet<String>) {
    const PLACE: &str = "sections.block_states.";
    note_doubled(container, PLACE, not_carried);
    let is_written = |field: &Field<'_>| match (field.name.0, field.value) {
        // One that is no list is a fault of the section.
        (b"palette", _) => true,
        (b"data", Value::LongArray(words)) => !words.is_empty(),
        _ => false,
    };
    let others = container.fields().filter(|field| !is_written(field));
    not_carried.extend(others.map(|field| format!("{PLACE}{}", field.name.lossy())));
}

/// The blocks of a section, its palette's entries, and the kind of their list.
fn blocks(read: &Read<'_>, data_version: i32, states: &mut States) -> Result<(Blocks, Vec<Met>, Tag), Fault> {
    let list = read.palette.and_then(|palette| palette.value.as_list());
    let list = list.filter(|list| !List::is_empty(*list)).ok_or(Fault::NoPalette)?;
    if list.len() > 1 << 16 {
        return Err(Fault::PaletteTooLong(list.len()));
    }
    let entries: Result<Vec<_>, _> = list.values().map(|entry| states.entry(entry, data_version)).collect();
    let entries = entries?;
    if entries.is_empty() {
        return Err(Fault::NoPalette);
    }
    let words = match read.indices.map(|indices| indices.value) {
        Some(Value::LongArray(words)) if !words.is_empty() => Some(words),
        _ => None,
    };
    let indices = match words {
        // One state needs no indices; where they are there all the same, they are checked like any others.
        Some(words) => {
            Some(packing(data_version).unpack(words, entries.len())?).filter(|_| entries.len() > 1)
        }
        None if entries.len() == 1 => None,
        None => return Err(Fault::NoIndices { states: entries.len() }),
    };
    let palette = entries.iter().map(|entry| entry.text.clone()).collect();
    Ok((Blocks { palette, indices }, entries, list.tag()))
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

const _: () = assert!(LIGHT_BYTES * 2 == CELLS, "light has four bits a cell");
