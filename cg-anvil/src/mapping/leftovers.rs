//! Leftovers of a column, as an object of a world: all that no chunk, entity or column record holds.

use std::collections::{HashMap, VecDeque};

use cg_minecraft::palette::{Form, MetPalette};

use crate::column::{
    BlockEntity, BlocksDigest, Column, Lists, NO_LEVEL, SectionOrder, is_carried, is_left_of_section,
    is_mapped, is_of_column, is_of_other_slots,
};
use crate::nbt::{self, Compound, Field, List, Value};

const FORMAT_VERSION: i64 = 1;

/// Fields of a column that follow from its blocks: wrong as soon as one was changed, and made anew by the game, or by
/// the mod, that finds none.
const FOLLOWS_FROM_BLOCKS: [&[u8]; 13] = [
    b"Heightmaps",
    b"HeightMap",
    b"isLightOn",
    b"LightPopulated",
    b"Lights",
    b"PostProcessing",
    b"block_ticks",
    b"fluid_ticks",
    b"TileTicks",
    b"LiquidTicks",
    b"ToBeTicked",
    b"LiquidsToBeTicked",
    b"starlight.light_version",
];

/// Fields that say of the light that it is there and done: wrong without it.
const FOLLOWS_FROM_LIGHT: [&[u8]; 3] = [b"isLightOn", b"LightPopulated", b"starlight.light_version"];

/// Limits of an object's tree: somewhat more than a slot's, which is inside.
pub(super) const LIMITS: nbt::Limits = nbt::Limits { depth: 512 + 8, elements: (8 << 20) + 4096 };

/// Parts of a column that are kept beside its chunks, its record and its entities.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftovers {
    /// The column's data version: what the fields' layout is of.
    pub data_version: i32,
    /// Digest of the column's blocks when the fields were written; `None` if they were not all readable, so that no
    /// blocks are those.
    blocks: Option<BlocksDigest>,
    /// How many arrays of light there were.
    light_count: i32,
    /// Which lists there were; `None` of a column that an earlier release imported.
    lists: Option<Lists>,
    /// The block entities in stored order, each by what it is known by.
    block_entities: Vec<i32>,
    written: Option<Written>,
    left: Option<Vec<u8>>,
    beside: Option<Vec<u8>>,
    /// [`Column::stated`].
    stated: Option<Vec<u8>>,
    order: Option<SectionOrder>,
    /// By section.
    sections: Vec<(i32, Vec<u8>)>,
    /// The form of its block states; `None` for that of the version.
    form: Option<Form>,
    /// By section, where the form would write its palette otherwise than it was met.
    palettes: Vec<(i32, MetPalette)>,
}

/// When a slot was written, in seconds since 1970, and what it held then. The time goes back with that alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) timestamp: u32,
    pub(crate) sum: u32,
}

/// Facts about a column's leftovers for an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Back {
    /// Whether the column's blocks are those that they belong to.
    pub blocks: Blocks,
    written: Option<Written>,
}

/// Whether the blocks of a column are those that what was kept of it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// Cell for cell.
    Same,
    /// Some are others.
    Changed,
}

impl Written {
    /// Note for a slot that was written at a time and holds this; of one without a time, nothing.
    pub(crate) fn at(timestamp: u32, sum: impl FnOnce() -> u32) -> Option<Self> {
        (timestamp > 0).then(|| Self { timestamp, sum: sum() })
    }

    /// The time of a slot that holds this; zero if it is not what was written then.
    pub(crate) const fn of(written: Option<Self>, sum: u32) -> u32 {
        match written {
            Some(written) if written.sum == sum => written.timestamp,
            _ => 0,
        }
    }

    pub(super) fn encode(self, out: &mut nbt::CompoundWriter<'_>) {
        out.int("timestamp", self.timestamp.cast_signed());
        out.int("sum", self.sum.cast_signed());
    }

    /// Reads it where it is there.
    pub(super) fn decode(root: Compound<'_>) -> Option<Self> {
        let (timestamp, sum) = (root.int("timestamp")?.cast_unsigned(), root.int("sum")?.cast_unsigned());
        Some(Self { timestamp, sum })
    }
}

impl Back {
    /// Facts about a column without leftovers.
    pub(crate) const NOTHING: Self = Self { blocks: Blocks::Changed, written: None };

    /// When the slot was written that holds the column as it is now; zero if it is not what was written then.
    pub(crate) fn timestamp(&self, column: &Column) -> u32 {
        Written::of(self.written, self.written.map_or(0, |_| column.sum_beside_blocks()))
    }
}

impl Leftovers {
    /// Takes from a column that was just read, and written at this time, what nothing else holds.
    pub fn take(column: &mut Column, timestamp: u32) -> Self {
        // What could not be read is not stored, and an export has other blocks than the save.
        let blocks = column.problems.is_empty().then(|| column.blocks_digest());
        let light_count = column.light_count() as i32;
        let written = blocks.and_then(|_| Written::at(timestamp, || column.sum_beside_blocks()));
        let block_entities = match column.block_entities.as_slice() {
            [] | [_] => Vec::new(),
            many => many.iter().map(|entity| known_by(&entity.nbt)).collect(),
        };
        let palettes = column.sections.iter_mut();
        let palettes = palettes.filter_map(|section| Some((section.y, section.met.take()?))).collect();
        let sections = column.sections.iter_mut();
        Self {
            data_version: column.data_version,
            blocks,
            light_count,
            lists: Some(column.lists),
            block_entities,
            written,
            left: column.left.take(),
            beside: column.beside.take(),
            stated: column.stated.take(),
            order: column.order.take(),
            sections: sections.filter_map(|section| Some((section.y, section.left.take()?))).collect(),
            form: column.form.take(),
            palettes,
        }
    }

    /// Whether a part of the column could not be read, so that no blocks are those of the save.
    pub const fn is_torn(&self) -> bool {
        self.blocks.is_none()
    }

    /// Puts the fields back where they were taken from.
    ///
    /// Into a column with other blocks only those that do not follow from the blocks, and into one of another layout,
    /// which has other names for them, none.
    pub fn put_back(self, column: &mut Column) -> Back {
        column.lists = self.lists.unwrap_or(column.lists);
        in_order(&mut column.block_entities, &self.block_entities);
        if column.data_version != self.data_version {
            return Back::NOTHING;
        }
        column.order = self.order;
        column.stated = self.stated.filter(|stated| is_of_column(stated, column));
        let is_same = self.blocks.is_some_and(|blocks| column.blocks_digest() == blocks);
        let is_dark = (column.light_count() as i32) < self.light_count;
        let stays = |name: &[u8]| {
            let is_wrong = !is_same && FOLLOWS_FROM_BLOCKS.contains(&name)
                || is_dark && FOLLOWS_FROM_LIGHT.contains(&name);
            !is_wrong
        };
        let data_version = column.data_version;
        let has_level = data_version < NO_LEVEL;
        // Where there is a list of sections, or the version is stated, no such field makes another slot of a column.
        let has_sections = !column.sections.is_empty() || column.lists.sections.is_some();
        let is_versioned = column.stated.is_none();
        let is_harmless = |field: &Field<'_>| {
            has_level || has_sections || is_versioned && field.name.0 == b"Level" || !is_of_other_slots(field)
        };
        let own = |field: &Field<'_>| {
            let name = field.name.0;
            !is_mapped(name, data_version) && !is_carried(name) && is_harmless(field)
        };
        column.left = only(self.left.as_deref(), |field| own(field) && stays(field.name.0));
        column.beside =
            only(self.beside.as_deref(), |field| !matches!(field.name.0, b"DataVersion" | b"Level"));
        column.form = self.form;
        for (y, met) in self.palettes {
            if let Ok(index) = column.sections.binary_search_by_key(&y, |section| section.y)
                && let Some(section) = column.sections.get_mut(index)
            {
                section.met = Some(met);
            }
        }
        for (y, left) in self.sections {
            if let Ok(index) = column.sections.binary_search_by_key(&y, |section| section.y)
                && let Some(section) = column.sections.get_mut(index)
            {
                let kept = only(Some(&left), |field| is_left_of_section(field, section, data_version));
                section.left = kept;
            }
        }
        if !is_same {
            return Back::NOTHING;
        }
        Back { blocks: Blocks::Same, written: self.written }
    }

    /// The object's bytes: a compound.
    pub fn encode(&self) -> Vec<u8> {
        nbt::payload(|out| {
            begin(out);
            out.int("data_version", self.data_version);
            if let Some(blocks) = &self.blocks {
                out.byte_array("blocks", blocks);
            }
            out.int("lights", self.light_count);
            if let Some(lists) = self.lists {
                out.byte_array("lists", &lists.encode());
            }
            if !self.block_entities.is_empty() {
                out.int_array("block_entities", &self.block_entities);
            }
            if let Some(written) = self.written {
                written.encode(out);
            }
            if let Some(order) = &self.order {
                out.byte_array("order", &order.encode());
            }
            for (name, fields) in [("column", &self.left), ("beside", &self.beside), ("stated", &self.stated)]
            {
                if let Some(fields) = fields {
                    out.raw_compound(name, fields);
                }
            }
            let written = out.compounds("sections", self.sections.iter(), |out, (y, left)| {
                out.int("y", *y);
                out.raw_compound("section", left);
                Ok::<_, std::convert::Infallible>(())
            });
            written.unwrap_or_else(|never| match never {});
            if let Some(form) = self.form {
                out.byte("form", form.code());
            }
            if !self.palettes.is_empty() {
                let written = out.compounds("palettes", self.palettes.iter(), |out, (y, met)| {
                    out.int("y", *y);
                    out.raw_compound("blocks", met.raw());
                    Ok::<_, std::convert::Infallible>(())
                });
                written.unwrap_or_else(|never| match never {});
            }
        })
    }

    /// Reads an object; `None` when it is none of this format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let root = parse(bytes)?;
        let blocks = match root.get("blocks") {
            None => None,
            Some(Value::ByteArray(blocks)) => Some(blocks.try_into().ok()?),
            Some(_) => return None,
        };
        let lists = match root.get("lists") {
            None => None,
            Some(Value::ByteArray(lists)) => Some(Lists::decode(lists)?),
            Some(_) => return None,
        };
        let order = match root.get("order") {
            None => None,
            Some(Value::ByteArray(order)) => Some(SectionOrder::decode(order)?),
            Some(_) => return None,
        };
        let block_entities = match root.get("block_entities") {
            None => Vec::new(),
            Some(Value::IntArray(known_by)) => known_by.values().collect(),
            Some(_) => return None,
        };
        let fields = |name| root.compound(name).map(|fields| fields.raw().to_vec());
        let section =
            |section: Compound<'_>| Some((section.int("y")?, section.compound("section")?.raw().to_vec()));
        let form = match root.get("form") {
            None => None,
            Some(form) => Some(Form::from_code(form.as_long()?)?),
        };
        let palettes = root.list("palettes").into_iter().flat_map(List::compounds);
        let palette =
            |met: Compound<'_>| Some((met.int("y")?, MetPalette::from_raw(met.compound("blocks")?.raw())));
        Some(Self {
            data_version: root.int("data_version")?,
            blocks,
            light_count: root.int("lights").unwrap_or_default(),
            lists,
            block_entities,
            written: Written::decode(root),
            left: fields("column"),
            beside: fields("beside"),
            stated: fields("stated"),
            order,
            sections: root.list("sections")?.compounds().map(section).collect::<Option<_>>()?,
            form,
            palettes: palettes.map(palette).collect::<Option<_>>()?,
        })
    }
}

/// The data version of the object of a column, without the rest of it; `None` when it is none of this format.
pub(super) fn data_version(bytes: &[u8]) -> Option<i32> {
    parse(bytes)?.int("data_version")
}

/// Checksum that tells a block entity from the others of its column: of its place, or of all of it when it has none.
fn known_by(nbt: &[u8]) -> i32 {
    let at = Compound::parse(nbt, &nbt::Limits::default()).ok();
    let at = at.and_then(|entity| Some([entity.int("x")?, entity.int("y")?, entity.int("z")?]));
    let sum = match at {
        Some(at) => at.iter().fold(0, |sum, number| crc32c::crc32c_append(sum, &number.to_le_bytes())),
        None => crc32c::crc32c(nbt),
    };
    sum.cast_signed()
}

/// Brings block entities into an order; those that it does not have come last.
fn in_order(entities: &mut [BlockEntity], order: &[i32]) {
    if order.is_empty() {
        return;
    }
    let mut places = HashMap::<i32, VecDeque<usize>>::new();
    for (place, known_by) in order.iter().enumerate() {
        places.entry(*known_by).or_default().push_back(place);
    }
    entities.sort_by_cached_key(|entity| {
        places.get_mut(&known_by(&entity.nbt)).and_then(VecDeque::pop_front).unwrap_or(usize::MAX)
    });
}

/// The tree of an object of this format.
pub(super) fn parse(bytes: &[u8]) -> Option<Compound<'_>> {
    let root = Compound::parse(bytes, &LIMITS).ok()?;
    (root.long("format_version") == Some(FORMAT_VERSION)).then_some(root)
}

/// Begins the tree of an object.
pub(super) fn begin(out: &mut nbt::CompoundWriter<'_>) {
    out.byte("format_version", FORMAT_VERSION as i8);
}

/// The fields of a compound that are wanted; `None` when that are none, or they are deeper than a slot's can be.
pub(super) fn only(fields: Option<&[u8]>, is_wanted: impl Fn(&Field<'_>) -> bool) -> Option<Vec<u8>> {
    let fields = Compound::parse(fields?, &nbt::Limits::default()).ok()?;
    let mut wanted = fields.fields().filter(is_wanted).peekable();
    wanted.peek()?;
    Some(nbt::payload(|out| wanted.for_each(|field| out.raw_fields(field.raw))))
}

#[cfg(test)]
mod tests;
