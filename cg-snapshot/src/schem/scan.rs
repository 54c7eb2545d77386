//! The first pass over a file: reads and checks every byte, and holds everything except the indices.

use std::collections::BTreeMap;
use std::io::Read;

use super::cells::Counted;
use super::input::{Input, Walked};
use super::limits::MAX_STATES;
use super::schematic::{Grid, GridShape, Schematic};
use super::things::{self, Things};
use super::{SchemError, SchemLimits};
use crate::nbt::{Compound, NbtProblem, Tag, Text, Value};

/// The maximum number of unknown field names that are stored.
const UNKNOWN: usize = 100;
/// The name under which the others are counted.
const OTHERS: &str = "other unknown fields";
/// The maximum stored length of such a name.
const UNKNOWN_BYTES: usize = 64;

/// The place of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    /// The root: the schematic itself in version 2, only `Schematic` in version 3.
    Root,
    Schematic,
    Blocks,
    Biomes,
}

/// The fields found, for both versions.
#[derive(Default)]
struct Found {
    /// `Version`, `DataVersion`, `Width`, `Height`, `Length`.
    numbers: [Option<i64>; 5],
    offset: Option<Vec<u8>>,
    metadata: Option<Vec<u8>>,
    block_palette: Option<Vec<u8>>,
    block_data: Option<Counted>,
    biome_palette: Option<Vec<u8>>,
    biome_data: Option<Counted>,
    block_entities: Option<Vec<u8>>,
    entities: Option<Vec<u8>>,
    has_biome_columns: bool,
    is_mcedit: bool,
    /// The first field of a wrong kind.
    wrong_kind: Option<SchemError>,
    names: Vec<String>,
    unknown: BTreeMap<String, u64>,
}

const NUMBERS: [&str; 5] = ["Version", "DataVersion", "Width", "Height", "Length"];

impl Schematic {
    /// Reads a file once from beginning to end.
    ///
    /// Costs decompressing it, and the memory of everything except the arrays of indices. The blocks are read
    /// afterwards with [`Grid::open`], as often as needed.
    ///
    /// # Errors
    /// The problem, its place, and what to do. The file's name is not included.
    pub fn read(file: impl Read, limits: &SchemLimits) -> Result<Self, SchemError> {
        let mut input = Input::new(file, limits)?;
        let [tag] = input.array()?;
        if tag != Tag::Compound as u8 {
            let problem = NbtProblem::RootNotCompound(tag);
            return Err(SchemError::Nbt { field: input.field, at_bytes: 0, problem });
        }
        input.name()?;
        let mut found = Found::default();
        found.compound(&mut input, Level::Root, limits)?;
        input.end()?;
        found.check(limits)
    }
}

impl Found {
    fn compound<R: Read>(
        &mut self,
        input: &mut Input<R>,
        level: Level,
        limits: &SchemLimits,
    ) -> Result<(), SchemError> {
        loop {
            input.field = match level {
                Level::Root | Level::Schematic => "Schematic",
                Level::Blocks => "Blocks",
                Level::Biomes => "Biomes",
            };
            let at_bytes = input.at_bytes();
            let tag = input.tag()?;
            if tag == Tag::End {
                return Ok(());
            }
            let name = input.name()?;
            if level == Level::Root && self.names.len() < 10 {
                self.names.push(shown(&name));
            }
            self.field(input, level, (&name, tag, at_bytes), limits)?;
        }
    }

    fn field<R: Read>(
        &mut self,
        input: &mut Input<R>,
        level: Level,
        (name, tag, at_bytes): (&[u8], Tag, u64),
        limits: &SchemLimits,
    ) -> Result<(), SchemError> {
        let is_top = matches!(level, Level::Root | Level::Schematic);
        let depth = if level == Level::Root { 1 } else { 2 };
        match (level, name) {
            (Level::Root, b"Schematic") if tag == Tag::Compound => {
                return self.compound(input, Level::Schematic, limits);
            }
            (Level::Root | Level::Schematic, b"Blocks") if tag == Tag::Compound => {
                return self.compound(input, Level::Blocks, limits);
            }
            (Level::Root | Level::Schematic, b"Biomes") if tag == Tag::Compound => {
                return self.compound(input, Level::Biomes, limits);
            }
            (Level::Root | Level::Schematic, b"Materials") => self.is_mcedit = true,
            (Level::Root | Level::Schematic, b"PaletteMax" | b"BiomePaletteMax") => {
                return input.walk(tag, depth, &mut Walked::Skipped);
            }
            _ => {}
        }
        if let Some((field, slot)) =
            NUMBERS.into_iter().zip(&mut self.numbers).find(|(field, _)| is_top && field.as_bytes() == name)
        {
            input.field = field;
            let number = input.whole_number(tag)?;
            if number.is_none() {
                input.walk(tag, depth, &mut Walked::Skipped)?;
                let needed = "a whole number";
                self.wrong_kind.get_or_insert(SchemError::Kind { field, found: tag, needed, at_bytes });
            } else if slot.is_some() {
                return Err(SchemError::Twice { field, at_bytes });
            }
            *slot = number;
            return Ok(());
        }
        let (field, slot, needed) = match (level, name) {
            (Level::Root | Level::Schematic, b"Offset") => ("Offset", &mut self.offset, Tag::IntArray),
            (Level::Root | Level::Schematic, b"Metadata") => ("Metadata", &mut self.metadata, Tag::Compound),
            (Level::Root | Level::Schematic, b"Palette") => {
                ("Palette", &mut self.block_palette, Tag::Compound)
            }
            (Level::Blocks, b"Palette") => ("Blocks.Palette", &mut self.block_palette, Tag::Compound),
            (Level::Root | Level::Schematic, b"BiomePalette") => {
                ("BiomePalette", &mut self.biome_palette, Tag::Compound)
            }
            (Level::Biomes, b"Palette") => ("Biomes.Palette", &mut self.biome_palette, Tag::Compound),
            (Level::Root | Level::Schematic, b"BlockEntities" | b"TileEntities") => {
                ("BlockEntities", &mut self.block_entities, Tag::List)
            }
            (Level::Blocks, b"BlockEntities") => {
                ("Blocks.BlockEntities", &mut self.block_entities, Tag::List)
            }
            (Level::Root | Level::Schematic, b"Entities") => ("Entities", &mut self.entities, Tag::List),
            (Level::Root | Level::Schematic, b"BlockData") => {
                return self.indices(input, ("BlockData", tag, at_bytes), limits);
            }
            (Level::Blocks, b"Data") => {
                return self.indices(input, ("Blocks.Data", tag, at_bytes), limits);
            }
            (Level::Root | Level::Schematic, b"BiomeData") => {
                self.has_biome_columns = true;
                return self.indices(input, ("BiomeData", tag, at_bytes), limits);
            }
            (Level::Biomes, b"Data") => {
                return self.indices(input, ("Biomes.Data", tag, at_bytes), limits);
            }
            _ => {
                let inside = match level {
                    Level::Root | Level::Schematic => "",
                    Level::Blocks => "Blocks.",
                    Level::Biomes => "Biomes.",
                };
                note_unknown(&mut self.unknown, format!("{inside}{}", shown(name)));
                input.field = "unknown fields";
                return input.walk(tag, depth, &mut Walked::Skipped);
            }
        };
        input.field = field;
        // A list of ints means the same as an int array, and some tools write it so.
        if tag != needed && !(needed == Tag::IntArray && tag == Tag::List) {
            let needed = match needed {
                Tag::IntArray => "an array of ints",
                Tag::Compound => "a compound",
                _ => "a list",
            };
            self.wrong_kind.get_or_insert(SchemError::Kind { field, found: tag, needed, at_bytes });
            return input.walk(tag, depth, &mut Walked::Skipped);
        }
        let mut held = Vec::new();
        input.walk(tag, depth, &mut Walked::Held(&mut held))?;
        if needed == Tag::IntArray {
            // The kind is stored to distinguish the forms when the field is checked.
            held.insert(0, tag as u8);
        }
        if slot.is_some() {
            return Err(SchemError::Twice { field, at_bytes });
        }
        *slot = Some(held);
        Ok(())
    }

    fn indices<R: Read>(
        &mut self,
        input: &mut Input<R>,
        (field, tag, at_bytes): (&'static str, Tag, u64),
        limits: &SchemLimits,
    ) -> Result<(), SchemError> {
        input.field = field;
        if tag != Tag::ByteArray {
            let needed = "an array of bytes";
            self.wrong_kind.get_or_insert(SchemError::Kind { field, found: tag, needed, at_bytes });
            return input.walk(tag, 3, &mut Walked::Skipped);
        }
        let slot = if field.starts_with("Bio") { &mut self.biome_data } else { &mut self.block_data };
        if slot.is_some() {
            return Err(SchemError::Twice { field, at_bytes });
        }
        *slot = Some(Counted::read(input, limits)?);
        Ok(())
    }

    fn check(self, limits: &SchemLimits) -> Result<Schematic, SchemError> {
        let [version, data_version, width, height, length] = self.numbers;
        let version = match version {
            Some(version @ (2 | 3)) => version as u8,
            Some(1) => return Err(SchemError::Version1),
            Some(other) => return Err(SchemError::Version(other)),
            None if matches!(self.wrong_kind, Some(SchemError::Kind { field: "Version", .. })) => 0,
            None if self.is_mcedit => return Err(SchemError::McEdit),
            None => return Err(SchemError::NotASchematic { fields: self.names }),
        };
        if let Some(error) = self.wrong_kind {
            return Err(error);
        }
        let data_version = data_version.ok_or(SchemError::Missing("DataVersion"))?;
        let data_version = i32::try_from(data_version).map_err(|_| SchemError::Range {
            field: "DataVersion",
            found: data_version,
            allowed: "a number of 32 bits",
        })?;
        let size = [side("Width", width)?, side("Height", height)?, side("Length", length)?];
        let [width, height, length] = size;
        let found: u64 = size.map(u64::from).iter().product();
        if found > limits.cells {
            return Err(SchemError::TooLarge { width, height, length, found, limit: limits.cells });
        }
        let fields = match version {
            2 => ["Palette", "BlockData", "BiomePalette", "BiomeData", "BlockEntities"],
            _ => ["Blocks.Palette", "Blocks.Data", "Biomes.Palette", "Biomes.Data", "Blocks.BlockEntities"],
        };
        let [palette, data, biome_palette, biome_data, block_entities] = fields;
        let blocks = (self.block_palette, self.block_data);
        let blocks = grid([palette, data], blocks, GridShape::Cells, size, limits)?;
        if version == 2 && blocks.is_none() {
            return Err(SchemError::Missing(data));
        }
        let shape = if self.has_biome_columns { GridShape::Columns } else { GridShape::Cells };
        let biomes = (self.biome_palette, self.biome_data);
        let biomes = grid([biome_palette, biome_data], biomes, shape, size, limits)?;
        let things = |field, raw: Option<Vec<u8>>, is_pos: fn(Compound<'_>) -> bool| {
            raw.map_or(Ok(Things::default()), |raw| Things::new(field, raw, &limits.nbt, is_pos))
        };
        let block_entities =
            things(block_entities, self.block_entities, |thing| things::cell(thing).is_some())?;
        let entities = things("Entities", self.entities, |thing| things::point(thing).is_some())?;
        let mut unknown = self.unknown;
        for (list, things) in [("BlockEntities", &block_entities), ("Entities", &entities)] {
            things.each_beside_data(version, |name| {
                note_unknown(&mut unknown, format!("{list}.{}", shown(name.0)));
            });
        }
        Ok(Schematic {
            version,
            data_version,
            size,
            offset: offset(self.offset, limits)?,
            metadata: self.metadata.unwrap_or_else(|| Compound::EMPTY.raw().to_vec()),
            blocks,
            biomes,
            block_entities,
            entities,
            unknown,
        })
    }
}

fn side(field: &'static str, found: Option<i64>) -> Result<u16, SchemError> {
    let found = found.ok_or(SchemError::Missing(field))?;
    match u16::try_from(found) {
        Ok(side) if side > 0 => Ok(side),
        _ => Err(SchemError::Range { field, found, allowed: "1 to 65535" }),
    }
}

fn offset(raw: Option<Vec<u8>>, limits: &SchemLimits) -> Result<[i32; 3], SchemError> {
    let Some(raw) = raw else { return Ok([0; 3]) };
    // As the only field of a compound, so that one reader handles both forms.
    let (tag, value) = raw.split_first().unwrap_or((&0, &[]));
    let compound = [&[*tag, 0, 3][..], b"Pos", value, &[0]].concat();
    let found = Compound::parse(&compound, &limits.nbt).ok().and_then(things::cell);
    found.ok_or(SchemError::Range {
        field: "Offset",
        found: raw.len() as i64,
        allowed: "an array of three ints",
    })
}

/// A palette and its array of indices.
fn grid(
    [palette_field, field]: [&'static str; 2],
    (palette, counted): (Option<Vec<u8>>, Option<Counted>),
    shape: GridShape,
    size @ [width, height, length]: [u16; 3],
    limits: &SchemLimits,
) -> Result<Option<Grid>, SchemError> {
    let (palette, counted) = match (palette, counted) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(SchemError::Missing(palette_field)),
        (Some(_), None) => return Err(SchemError::Missing(field)),
        (Some(palette), Some(counted)) => (palette, counted),
    };
    let (palette, entries) = self::palette(palette_field, &palette, limits)?;
    let unknown = (0..=u16::MAX).zip(&counted.kinds).find(|(index, (count, _))| {
        *count > 0 && palette.get(usize::from(*index)).is_none_or(Option::is_none)
    });
    if let Some((index, (_, first))) = unknown {
        let [width, _, length] = size.map(u64::from);
        let at = [first % width, first / (width * length), first / width % length];
        return Err(SchemError::Index { field, index, at, states: entries });
    }
    let height = if shape == GridShape::Columns { 1 } else { height };
    let expected = u64::from(width) * u64::from(height) * u64::from(length);
    if counted.cells != expected {
        return Err(SchemError::Count { field, found: counted.cells, width, height, length, expected });
    }
    Ok(Some(Grid { field, shape, palette, counted, limits: *limits }))
}

/// The entries of a palette by index, and their number.
#[expect(clippy::type_complexity, reason = "a pair that is taken apart at once")]
fn palette(
    field: &'static str,
    raw: &[u8],
    limits: &SchemLimits,
) -> Result<(Vec<Option<Box<str>>>, usize), SchemError> {
    let compound = Compound::parse(raw, &limits.nbt).map_err(|error| SchemError::Nbt {
        field,
        at_bytes: error.at_bytes as u64,
        problem: error.problem,
    })?;
    let mut states: Vec<Option<Box<str>>> = Vec::new();
    let mut entries = 0;
    for entry in compound.fields() {
        let Some(state) = entry.name.decode() else {
            return Err(SchemError::Text8 { field, lossy: shown(entry.name.0) });
        };
        let wrong = |found| SchemError::PaletteIndex { field, state: shown(entry.name.0), found };
        let index = match entry.value {
            Value::Byte(_) | Value::Short(_) | Value::Int(_) | Value::Long(_) => {
                let found = entry.value.as_long().unwrap_or_default();
                usize::try_from(found)
                    .ok()
                    .filter(|index| *index < MAX_STATES)
                    .ok_or_else(|| wrong(found.to_string()))?
            }
            _ => return Err(wrong("of a kind that is no number".to_owned())),
        };
        if index >= states.len() {
            states.resize(index + 1, None);
        }
        let Some(slot) = states.get_mut(index) else { continue };
        if let Some(first) = slot {
            let (first, second) = (first.to_string(), state.into_owned());
            return Err(SchemError::PaletteTwice { field, index: index as u16, first, second });
        }
        *slot = Some(state.into());
        entries += 1;
    }
    Ok((states, entries))
}

fn note_unknown(unknown: &mut BTreeMap<String, u64>, name: String) {
    let name = if unknown.len() < UNKNOWN || unknown.contains_key(&name) { name } else { OTHERS.to_owned() };
    *unknown.entry(name).or_default() += 1;
}

fn shown(name: &[u8]) -> String {
    let cut = name.get(..UNKNOWN_BYTES.min(name.len())).unwrap_or_default();
    Text(cut).lossy().into_owned()
}
