//! Slots of a save that are kept as bytes, because something of them could not be read.
//!
//! | object | slot of |
//! |---|---|
//! | `minecraft/slot/<dimension>/r.X.Z/<x>/<z>` | `region/` |
//! | `minecraft/slot-entities/<dimension>/r.X.Z/<x>/<z>` | `entities/` |
//! | `minecraft/slot-poi/<dimension>/r.X.Z/<x>/<z>` | `poi/` |
//!
//! What could be read of such a slot is in the world too. An export writes the slot as it was while the world has that,
//! and only that, at its place.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use cg_store::objects::ObjectKey;
use cg_store::{Error, World};

use super::key::{COLUMN_PREFIX, column_of, dimension_prefix, of_column};
use super::leftovers::{begin, parse};
use crate::Decoder;
use crate::column::{BlocksDigest, Column, ColumnError, Place, sum_of_all};
use crate::nbt::{self, Compound, Value};
use crate::region::{ColumnPos, RawSlot};

/// How the keys of all kept slots begin, and no others.
pub(super) const PREFIX: &str = "minecraft/slot";
/// How the keys of slots of `region/` begin.
pub(crate) const REGION_PREFIX: &str = "minecraft/slot/";
/// How the keys of slots of `entities/` begin.
pub(crate) const ENTITIES_PREFIX: &str = "minecraft/slot-entities/";
/// How the keys of slots of `poi/` begin.
pub(crate) const POI_PREFIX: &str = "minecraft/slot-poi/";
/// Bytes of a reason.
const REASON_BYTES: usize = 200;

/// The folder of region files that a slot is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folder {
    /// `region/`: columns.
    Region,
    /// `entities/`.
    Entities,
    /// `poi/`: points of interest.
    Poi,
}

/// A slot that is kept as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSlot {
    /// Its bytes.
    pub bytes: Bytes,
    /// Part of it that is in the world.
    pub mapped: Mapped,
    /// Why it is kept, in words.
    pub reason: String,
}

/// The bytes of a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bytes {
    /// The NBT of a column of before 1.13, whose blocks have numbers that no world knows, and when the slot was written.
    Old(u32, Vec<u8>),
    /// As they stand in the file.
    Raw(RawSlot),
}

/// Part of a slot that was mapped, by which an export knows whether it was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mapped {
    /// Nothing: the world has nothing at its place.
    Nothing,
    /// A part of a column.
    Column(MappedColumn),
    /// Entities of a slot of `entities/`: the checksum of their NBT.
    Entities(u32),
    /// Nothing of points of interest, which the save had beside a column, or `alone`.
    Points {
        /// Whether the save had no column there.
        is_alone: bool,
    },
}

/// Digest and checksum of a column as the world has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MappedColumn {
    blocks: BlocksDigest,
    sum: u32,
}

/// Parts of a column that could be read and did not come into the world.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mask {
    /// Sections that make no chunk, with the block entities in them.
    pub heights: BTreeSet<i32>,
    /// Whether all that no section holds is missing.
    pub is_bare: bool,
    /// Entities, by their place in the list.
    pub entities: BTreeSet<usize>,
}

/// How much is kept of slots.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeptCount {
    /// Slots.
    pub slots: u64,
    /// Bytes of their objects.
    pub bytes: u64,
    /// Of the slots, those of columns of before 1.13.
    pub old_slots: u64,
}

impl Bytes {
    /// Whether an export can write the slot, or at least its place in the header.
    pub fn are_there(&self) -> bool {
        match self {
            Self::Old(..) => true,
            Self::Raw(raw) => !raw.stored.is_empty() || raw.place.is_some(),
        }
    }
}

impl Folder {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Region, Self::Entities, Self::Poi];

    /// Its name in the folder of a dimension.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Region => "region",
            Self::Entities => "entities",
            Self::Poi => "poi",
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Region => REGION_PREFIX,
            Self::Entities => ENTITIES_PREFIX,
            Self::Poi => POI_PREFIX,
        }
    }
}

impl Mask {
    /// Whether all came.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl MappedColumn {
    /// Digest and checksum of a column: of its blocks, and of all beside them but light.
    pub(crate) fn of(column: &Column) -> Self {
        Self { blocks: column.blocks_digest(), sum: column.sum_beside_light() }
    }

    /// Digest and checksum that a column of a save has in the world, which lacks what the mask says.
    pub(crate) fn masked(mut column: Column, mask: &Mask) -> Self {
        let places = column.block_entity_places();
        let is_there = |place: &Place| match place {
            Place::Cell { section, .. } | Place::Doubled { section, .. } => {
                column.sections.get(*section).is_none_or(|section| !mask.heights.contains(&section.y))
            }
            Place::NoSection | Place::Elsewhere => !mask.is_bare,
        };
        let mut are_there = places.iter().map(is_there).collect::<Vec<_>>().into_iter();
        column.block_entities.retain(|_| are_there.next().unwrap_or(true));
        column.sections.retain(|section| {
            let is_bare = mask.is_bare && section.blocks.is_none();
            !is_bare && !mask.heights.contains(&section.y)
        });
        if mask.is_bare {
            column.carried = Compound::EMPTY.raw().to_vec();
        }
        let mut index = 0..;
        column.entities.retain(|_| index.next().is_some_and(|index| !mask.entities.contains(&index)));
        Self::of(&column)
    }
}

/// The object of a slot.
///
/// # Errors
/// [`Error::ObjectKey`] when the dimension's name is too long for a key.
pub fn slot_key(folder: Folder, dimension: &str, column: ColumnPos) -> Result<ObjectKey, Error> {
    of_column(folder.prefix(), dimension, column)
}

impl KeptSlot {
    /// The object's bytes: a compound.
    pub fn encode(&self) -> Vec<u8> {
        nbt::payload(|out| {
            begin(out);
            match &self.bytes {
                Bytes::Old(timestamp, slot) => {
                    out.int("timestamp", timestamp.cast_signed());
                    out.byte_array("slot", slot);
                }
                Bytes::Raw(RawSlot { timestamp, stored, place, external }) => {
                    out.int("timestamp", timestamp.cast_signed());
                    out.byte_array("stored", stored);
                    if let Some(place) = place {
                        out.int("place", place.cast_signed());
                    }
                    if let Some(external) = external {
                        out.byte_array("external", external);
                    }
                }
            }
            match self.mapped {
                Mapped::Nothing => {}
                Mapped::Column(MappedColumn { blocks, sum }) => {
                    out.byte_array("blocks", &blocks);
                    out.int("sum", sum.cast_signed());
                }
                Mapped::Entities(sum) => out.int("sum", sum.cast_signed()),
                Mapped::Points { is_alone } => out.byte("alone", is_alone.into()),
            }
            if !self.reason.is_empty() {
                let end = (0..=REASON_BYTES).rev().find(|at| self.reason.is_char_boundary(*at)).unwrap_or(0);
                out.string("reason", self.reason.get(..end).unwrap_or_default()).expect("a short text");
            }
        })
    }

    /// Reads an object; `None` when it is none of this format, or of another place.
    pub fn decode(bytes: &[u8], folder: Folder, column: ColumnPos) -> Option<Self> {
        let root = parse(bytes)?;
        let timestamp = root.int("timestamp")?.cast_unsigned();
        let array = |name| match root.get(name) {
            Some(Value::ByteArray(bytes)) => Some(bytes.to_vec()),
            _ => None,
        };
        let bytes = match array("stored") {
            Some(stored) => {
                // A head is the least that a slot of bytes has.
                if !stored.is_empty() && stored.len() < 5 {
                    return None;
                }
                let place = root.int("place").map(i32::cast_unsigned);
                Bytes::Raw(RawSlot { timestamp, stored, place, external: array("external") })
            }
            None => Bytes::Old(timestamp, old_column(array("slot")?, folder, column)?),
        };
        let sum = root.int("sum").map(i32::cast_unsigned);
        let mapped = match folder {
            Folder::Region => match (array("blocks"), sum) {
                (Some(blocks), Some(sum)) => {
                    Mapped::Column(MappedColumn { blocks: blocks.as_slice().try_into().ok()?, sum })
                }
                _ => Mapped::Nothing,
            },
            Folder::Entities => Mapped::Entities(sum?),
            Folder::Poi => Mapped::Points { is_alone: root.int("alone")? != 0 },
        };
        let reason = root.text("reason").map(|reason| reason.lossy().into_owned()).unwrap_or_default();
        Some(Self { bytes, mapped, reason })
    }

    /// Whether a column of a world is what was read of this slot, and nothing else.
    pub(crate) fn is_of(&self, column: &Column) -> bool {
        matches!(self.mapped, Mapped::Column(mapped) if mapped == MappedColumn::of(column))
    }

    /// Whether it is a column of before 1.13.
    pub const fn is_old(&self) -> bool {
        matches!(self.bytes, Bytes::Old(..))
    }
}

/// The NBT of a column of before 1.13, if that is what it is, and of this place.
fn old_column(slot: Vec<u8>, folder: Folder, column: ColumnPos) -> Option<Vec<u8>> {
    if folder != Folder::Region {
        return None;
    }
    match Decoder::default().decode(&slot) {
        Err(ColumnError::TooOld { pos, .. }) if pos.is_none_or(|pos| pos == column) => Some(slot),
        _ => None,
    }
}

/// Whether an object is of a column of before 1.13: its form is another than that of other kept slots. So is one that cannot be
/// parsed.
pub(super) fn is_of_old_column(bytes: &[u8]) -> bool {
    parse(bytes).is_none_or(|root| root.get("slot").is_some())
}

/// The data version of a column of before 1.13, 0 of one of before 1.9; `None` if its object is none.
pub(super) fn old_data_version(bytes: &[u8]) -> Option<i32> {
    let root = parse(bytes)?;
    let Some(Value::ByteArray(slot)) = root.get("slot") else { return None };
    match Decoder::default().decode(slot) {
        Err(ColumnError::TooOld { data_version, .. }) => Some(data_version),
        _ => None,
    }
}

/// The checksum of the entities of a slot of `entities/`.
pub(crate) fn sum_of_entities<'a>(entities: impl Iterator<Item = &'a [u8]>) -> u32 {
    sum_of_all(entities)
}

/// Counts the kept slots of a world. Reads each once.
///
/// # Errors
/// If the engine fails; a damaged one is not counted.
pub fn count(world: &World) -> Result<KeptCount, Error> {
    let mut count = KeptCount::default();
    world.objects().for_each(PREFIX, |object| {
        if let Ok((_, _, bytes)) = object {
            count.slots += 1;
            count.bytes += bytes.len() as u64;
            count.old_slots += u64::from(parse(bytes).is_some_and(|root| root.get("slot").is_some()));
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(count)
}

/// The key of a kept slot, and the column that it is of.
pub type KeyOfColumn = (ObjectKey, ColumnPos);

/// The kept slots of a dimension, by the name that it has in a save, with their columns.
///
/// # Errors
/// If the engine fails; a damaged one is left out.
pub fn keys_of_dimension(world: &World, dimension: &str) -> Result<Vec<KeyOfColumn>, Error> {
    let mut keys = Vec::new();
    for folder in Folder::ALL {
        let prefix = dimension_prefix(folder.prefix(), dimension);
        world.objects().for_each(&prefix, |object| {
            if let Ok((key, ..)) = object
                && let Some(column) = column_of(key, &prefix)
            {
                keys.extend(slot_key(folder, dimension, column).map(|key| (key, column)));
            }
            ControlFlow::<()>::Continue(())
        })?;
    }
    Ok(keys)
}

/// Counts a world's columns that had an unreadable part when they were imported: those with kept slots, and those of
/// earlier releases, which kept none. Reads every kept slot, and what is left of every column.
///
/// # Errors
/// As [`count`].
pub fn torn_columns(world: &World) -> Result<u64, Error> {
    let mut torn = BTreeSet::new();
    let mut add = |key: &[u8], prefix: &str| {
        torn.extend(key.strip_prefix(prefix.as_bytes()).map(<[u8]>::to_vec));
    };
    for folder in Folder::ALL {
        world.objects().for_each(folder.prefix(), |object| {
            match object {
                Ok((key, _, bytes)) if parse(bytes).is_none_or(|root| root.get("slot").is_none()) => {
                    add(key, folder.prefix());
                }
                _ => {}
            }
            ControlFlow::<()>::Continue(())
        })?;
    }
    world.objects().for_each(COLUMN_PREFIX, |object| {
        match object {
            Ok((key, _, bytes)) if parse(bytes).is_some_and(|root| root.get("blocks").is_none()) => {
                add(key, COLUMN_PREFIX);
            }
            _ => {}
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(torn.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw() -> RawSlot {
        RawSlot { timestamp: u32::MAX, stored: vec![0, 0, 0, 2, 9, 7], place: None, external: None }
    }

    #[test]
    fn a_slot_comes_back_from_its_object() {
        let column = MappedColumn { blocks: [7; 16], sum: u32::MAX };
        let place = Some(u32::MAX);
        let slots = [
            (Folder::Region, Mapped::Nothing, raw()),
            (Folder::Region, Mapped::Column(column), RawSlot { external: Some(vec![1; 9]), ..raw() }),
            (Folder::Entities, Mapped::Entities(3), RawSlot { place, ..raw() }),
            (Folder::Poi, Mapped::Points { is_alone: true }, RawSlot { stored: vec![], place, ..raw() }),
        ];
        for (folder, mapped, raw) in slots {
            let kept = KeptSlot { bytes: Bytes::Raw(raw), mapped, reason: "no palette".into() };
            assert_eq!(KeptSlot::decode(&kept.encode(), folder, ColumnPos::new(1, 2)), Some(kept));
        }
    }

    #[test]
    fn what_is_no_slot_is_none() {
        let kept = |stored: &[u8]| KeptSlot {
            bytes: Bytes::Raw(RawSlot { stored: stored.to_vec(), ..raw() }),
            mapped: Mapped::Nothing,
            reason: "é".repeat(REASON_BYTES),
        };
        let bytes = kept(&[0; 5]).encode();
        let found = KeptSlot::decode(&bytes, Folder::Region, ColumnPos::default()).expect("an object");
        assert_eq!(found.reason, "é".repeat(REASON_BYTES / 2));
        // A slot has a head, those of entities/ a checksum, those of poi/ whether they are alone.
        assert_eq!(KeptSlot::decode(&kept(&[0; 4]).encode(), Folder::Region, ColumnPos::default()), None);
        assert_eq!(KeptSlot::decode(&bytes, Folder::Entities, ColumnPos::default()), None);
        assert_eq!(KeptSlot::decode(&bytes, Folder::Poi, ColumnPos::default()), None);
        assert_eq!(KeptSlot::decode(&bytes[1..], Folder::Region, ColumnPos::default()), None);
        let today = nbt::document(|root| ["xPos", "zPos"].map(|name| root.int(name, 0)));
        let old = KeptSlot { bytes: Bytes::Old(7, today), ..kept(&[]) };
        assert_eq!(KeptSlot::decode(&old.encode(), Folder::Region, ColumnPos::default()), None);
    }
}
