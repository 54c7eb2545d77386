//! One column of a save: its sections of blocks, block entities and entities.
//!
//! A [`Decoder`] reads every layout from 1.13 on: `Level` with `Palette` and `BlockStates` (until 1.17, entries span
//! words before 20w17a), and `sections` with `block_states` (since 1.18). In the latter the root's fields are the column,
//! and `Level` is one more field. What is damaged inside a column costs what it touches and stands in
//! [`Column::problems`]; the rest of the column arrives.
//!
//! ```
//! use cg_anvil::{Column, ColumnPos, Decoder, Payload, write};
//! use cg_anvil::column::{Blocks, Section};
//!
//! let mut column = Column::new(ColumnPos::new(-3, 7), 3955);
//! column.sections.push(Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(-4) });
//! let bytes = write::column(&column)?;
//! let Payload::Column(read) = Decoder::default().decode(&bytes)? else { panic!("a column was written") };
//! assert_eq!(read, column);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod decode;
mod digest;
mod lists;
mod order;
mod problem;
mod section;
mod stated;
mod sum;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_minecraft::palette::{Form, MetPalette};

pub use cg_minecraft::section::{Blocks, CELLS, cell};
pub use decode::Decoder;
pub(crate) use decode::{
    CONTAINERS, NAMED_STATES, NO_LEVEL, is_carried, is_column, is_mapped, is_mapped_in_entities,
    is_of_other_slots, packing,
};
pub(crate) use digest::BlocksDigest;
pub use lists::Lists;
pub use order::SectionOrder;
pub use problem::{ColumnError, ColumnProblem, Fault};
pub(crate) use section::is_left as is_left_of_section;
pub(crate) use stated::{is_of_column, is_of_entities};
pub(crate) use sum::sum_of_all;

use super::nbt::{self, Compound, Tag};
use super::region::{ColumnPos, RegionPos, Slot};

/// Bytes of one kind of light of a section: four bits a cell.
pub const LIGHT_BYTES: usize = 2048;

/// Contents of a slot.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// Blocks: a slot of `region/`.
    Column(Column),
    /// Entities: a slot of `entities/`.
    Entities(EntityColumn),
    /// Points of interest: a slot of `poi/`, which does not name its column.
    PointsOfInterest,
}

/// One column of sections.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Where it is.
    pub pos: ColumnPos,
    /// The number of the game's version that wrote it. A column that states none, or one that its layout cannot be of,
    /// gets the nearest that its layout can be of.
    pub data_version: i32,
    /// A compound of `DataVersion`, `xPos` and `zPos` as they stand; `None` where they are as the game writes them.
    pub stated: Option<Vec<u8>>,
    /// Ascending by y; also those that hold only light or biomes.
    pub sections: Vec<Section>,
    /// In which order they stood; `None` where that is as here and each `Y` is a byte.
    pub order: Option<SectionOrder>,
    /// In stored order.
    pub block_entities: Vec<BlockEntity>,
    /// Entities in the column itself (until 1.16, and in columns not fully generated): the compounds' bytes.
    pub entities: Vec<Vec<u8>>,
    /// A compound of fields as they stand: generation status, times played and updated, the lowest section, and the
    /// biomes of layouts before 1.18.
    pub carried: Vec<u8>,
    /// Which lists there are.
    pub lists: Lists,
    /// The form in which block states are written; `None` for that of the column's version.
    pub form: Option<Form>,
    /// A compound of all other fields as they stand: height maps, ticks that are due, structures, those of mods.
    pub left: Option<Vec<u8>>,
    /// A compound of the fields that stand beside `Level`, as they stand; `None` in layouts without `Level`.
    pub beside: Option<Vec<u8>>,
    /// Fields that are not as the game writes them: of another kind, or twice in one compound. Also a name of the root, and
    /// bytes after it.
    pub not_carried: BTreeSet<String>,
    /// Losses of this column, with their reasons.
    pub problems: Vec<ColumnProblem>,
}

/// The entities of one column, from `entities/`.
#[derive(Debug, Clone, PartialEq)]
pub struct EntityColumn {
    /// Where it is.
    pub pos: ColumnPos,
    /// The number of the game's version that wrote it.
    pub data_version: i32,
    /// A compound of `DataVersion` and `Position` as they stand; `None` where they are as the game writes them.
    pub stated: Option<Vec<u8>>,
    /// The compounds' bytes, in stored order.
    pub entities: Vec<Vec<u8>>,
    /// The kind of the list of entities, if that holds none; else [`Tag::End`]. `None` where no list is there.
    pub list: Option<Tag>,
    /// A compound of all other fields as they stand.
    pub left: Option<Vec<u8>>,
}

/// 16 × 16 × 16 blocks of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// In sections: blocks y·16 … y·16+15. −128 … 127.
    pub y: i32,
    /// The blocks; `None` for a section that only has light or biomes, which is no stored chunk.
    pub blocks: Option<Blocks>,
    /// The palette as it was met, where the column's form would write it otherwise.
    pub met: Option<MetPalette>,
    /// The bytes of the `biomes` compound (since 1.18).
    pub biomes: Option<Vec<u8>>,
    /// [`LIGHT_BYTES`] in the game's order: cell y·256+z·16+x is the low half of byte cell/2 when even.
    pub block_light: Option<Vec<u8>>,
    /// As [`Section::block_light`].
    pub sky_light: Option<Vec<u8>>,
    /// A compound of all other fields as they stand.
    pub left: Option<Vec<u8>>,
}

/// A block entity: its NBT, byte for byte, and what is read from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockEntity {
    /// The block that it states; `None` when x, y or z is missing.
    pub pos: Option<[i32; 3]>,
    /// The kind, such as `minecraft:chest`; empty when there is none.
    pub kind: String,
    /// The compound's bytes, fields and end tag.
    pub nbt: Vec<u8>,
}

/// Where a block entity belongs in its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In a section that has blocks, as the first at its cell.
    Cell {
        /// Which of [`Column::sections`].
        section: usize,
        /// The cell, in the game's order.
        cell: u16,
    },
    /// At a cell where another was met before.
    Doubled {
        /// Which of [`Column::sections`].
        section: usize,
        /// The cell, in the game's order.
        cell: u16,
    },
    /// Inside the column, where no section has blocks.
    NoSection,
    /// Outside the column, or without a position.
    Elsewhere,
}

impl Payload {
    /// The column that the NBT says it is; `None` for points of interest, which do not say.
    pub const fn position(&self) -> Option<ColumnPos> {
        match self {
            Self::Column(Column { pos, .. }) | Self::Entities(EntityColumn { pos, .. }) => Some(*pos),
            Self::PointsOfInterest => None,
        }
    }

    /// Checks that the NBT's own position is that of the slot it was read from.
    ///
    /// Without the region's place only the place inside the region is compared.
    ///
    /// # Errors
    /// [`ColumnError::WrongPlace`] for a slot that shows another slot's column, [`ColumnError::OtherRegion`] for a file
    /// that has another region's name.
    pub fn check_place(&self, region: Option<RegionPos>, slot: Slot) -> Result<(), ColumnError> {
        self.position().map_or(Ok(()), |position| check_place(position, region, slot))
    }
}

/// As [`Payload::check_place`], of a position that a slot's NBT states.
pub(crate) fn check_place(
    column: ColumnPos,
    region: Option<RegionPos>,
    slot: Slot,
) -> Result<(), ColumnError> {
    if column.slot() != slot {
        let in_region = ColumnPos::new(slot.x(), slot.z());
        let slot = region.map_or(in_region, |region| region.column(slot));
        return Err(ColumnError::WrongPlace { column, slot });
    }
    match region {
        Some(region) if region != column.region() => {
            Err(ColumnError::OtherRegion { column, file: region.file_name() })
        }
        _ => Ok(()),
    }
}

impl Column {
    /// A column that holds nothing.
    pub fn new(pos: ColumnPos, data_version: i32) -> Self {
        Self {
            pos,
            data_version,
            stated: None,
            sections: Vec::new(),
            order: None,
            block_entities: Vec::new(),
            entities: Vec::new(),
            carried: Compound::EMPTY.raw().to_vec(),
            lists: Lists::default(),
            form: None,
            left: None,
            beside: None,
            not_carried: BTreeSet::new(),
            problems: Vec::new(),
        }
    }

    /// How far generation came, such as `minecraft:full`; older versions write no namespace.
    pub fn status(&self) -> Option<String> {
        let carried = Compound::parse(&self.carried, &nbt::Limits::default()).ok()?;
        carried.text("Status").map(|status| status.lossy().into_owned())
    }

    /// A whole number that is carried, such as `InhabitedTime`.
    pub fn carried_long(&self, name: &str) -> Option<i64> {
        Compound::parse(&self.carried, &nbt::Limits::default()).ok()?.long(name)
    }

    /// The state of a block of this column, by absolute coordinates; `None` where no section has blocks.
    pub fn state(&self, x: i32, y: i32, z: i32) -> Option<&Arc<str>> {
        if ColumnPos::new(x >> 4, z >> 4) != self.pos {
            return None;
        }
        let section = self.sections.get(self.section_index(y >> 4)?)?;
        section.blocks.as_ref()?.state(cell(x, y, z))
    }

    /// Where each block entity belongs, in the order of [`Column::block_entities`].
    pub fn block_entity_places(&self) -> Vec<Place> {
        let mut met = BTreeSet::new();
        let place = |entity: &BlockEntity| {
            let Some([x, y, z]) = entity.pos else { return Place::Elsewhere };
            if ColumnPos::new(x >> 4, z >> 4) != self.pos {
                return Place::Elsewhere;
            }
            let section = self.section_index(y >> 4);
            let has_blocks =
                |&index: &usize| self.sections.get(index).is_some_and(|found| found.blocks.is_some());
            let Some(section) = section.filter(has_blocks) else { return Place::NoSection };
            let cell = cell(x, y, z);
            if met.insert((section, cell)) {
                Place::Cell { section, cell }
            } else {
                Place::Doubled { section, cell }
            }
        };
        self.block_entities.iter().map(place).collect()
    }

    fn section_index(&self, y: i32) -> Option<usize> {
        self.sections.binary_search_by_key(&y, |section| section.y).ok()
    }
}

impl Section {
    /// A section without anything.
    pub const fn new(y: i32) -> Self {
        Self { y, blocks: None, met: None, biomes: None, block_light: None, sky_light: None, left: None }
    }
}
