//! The NBT of one slot: what it holds, and whether it is where it says.

use std::collections::HashSet;

use cg_minecraft::kind;

use super::prepared::PreparedEntities;
use crate::column::{self, Column, ColumnError, EntityColumn};
use crate::mapping::kept::{self, Bytes, Folder, Mapped, MappedColumn, Mask};
use crate::mapping::origin::ListedIn;
use crate::mapping::{EntitySlot, KeptSlot};
use crate::region::{ColumnPos, RawSlot, RegionPos, Slot};
use crate::save::RegionKind;
use crate::{Decoder, EntityRecord, Payload, entity, nbt};

/// Why a slot cannot be read whose first sector or length the file does not have.
const OUTSIDE: &str = "its place or its length is outside of its sectors";

/// Contents of a slot.
#[expect(clippy::large_enum_variant, reason = "sixteen are in memory at once, and most are columns")]
pub(crate) enum Held {
    Payload(Payload),
    /// A column of before 1.13: its place, and its NBT.
    Old(ColumnPos, Vec<u8>),
    /// Points of interest: their column, as far as the file's name tells it, and their NBT.
    Points(Option<ColumnPos>, Vec<u8>),
}

/// Reads the NBT of a slot of a region file, and takes it where it is kept as it is.
pub(crate) fn read(
    region: Option<RegionPos>,
    kind: RegionKind,
    slot: Slot,
    bytes: &mut Vec<u8>,
    decoder: &mut Decoder,
) -> Result<Held, ColumnError> {
    let payload = match decoder.decode(bytes) {
        Ok(payload) => payload,
        Err(error @ ColumnError::TooOld { pos, .. }) => {
            check_folder(kind, RegionKind::Blocks, "a column")?;
            let of_slot = || region.map(|region| region.column(slot));
            let column = pos.or_else(of_slot).ok_or(error)?;
            check_place(column, region, kind, slot)?;
            return Ok(Held::Old(column, std::mem::take(bytes)));
        }
        Err(error) => return Err(error),
    };
    match &payload {
        Payload::Column(_) => check_folder(kind, RegionKind::Blocks, "a column")?,
        Payload::Entities(_) => check_folder(kind, RegionKind::Entities, "entities")?,
        Payload::PointsOfInterest => check_folder(kind, RegionKind::PointsOfInterest, "points of interest")?,
    }
    match payload.position() {
        None => Ok(Held::Points(region.map(|region| region.column(slot)), std::mem::take(bytes))),
        Some(column) => {
            check_place(column, region, kind, slot)?;
            Ok(Held::Payload(payload))
        }
    }
}

/// Checks that a slot is in the folder where the game looks for what it holds.
fn check_folder(kind: RegionKind, of: RegionKind, found: &'static str) -> Result<(), ColumnError> {
    if kind == of || kind == RegionKind::ByContent {
        return Ok(());
    }
    Err(ColumnError::OtherFolder { found })
}

/// Checks that a column may be taken where it says that it is.
fn check_place(
    column: ColumnPos,
    region: Option<RegionPos>,
    kind: RegionKind,
    slot: Slot,
) -> Result<(), ColumnError> {
    match column::check_place(column, region, slot) {
        Ok(()) => {}
        // A file that was renamed: its columns say where they are, and so do their block entities. In a save it may be a
        // copy of another.
        Err(ColumnError::OtherRegion { .. }) if kind == RegionKind::ByContent => {}
        Err(error) => return Err(error),
    }
    if region_of(column).is_none() {
        return Err(ColumnError::NoRegion { column });
    }
    Ok(())
}

fn region_of(column: ColumnPos) -> Option<RegionPos> {
    let pos = column.region();
    RegionPos::new(pos.x(), pos.z())
}

/// Blocks of other namespaces that are seen with a block entity.
pub(crate) fn owners_seen<'a>(columns: impl Iterator<Item = &'a Column>) -> HashSet<String> {
    let mut seen = HashSet::new();
    for column in columns {
        for entity in &column.block_entities {
            let state = entity.pos.and_then(|[x, y, z]| column.state(x, y, z));
            if let Some(state) = state.filter(|state| kind::is_foreign(state)) {
                seen.insert(kind::base(state).to_owned());
            }
        }
    }
    seen
}

/// The entities of a slot of `entities/` that was written at this time.
pub(crate) fn entities_of(mut column: EntityColumn, timestamp: u32) -> PreparedEntities {
    let left = EntitySlot::take(&mut column, timestamp).map(|left| left.encode());
    let EntityColumn { pos, data_version, entities, .. } = column;
    let (place, column) = (ListedIn::EntityFile, pos);
    PreparedEntities { place, column, data_version, groups: groups_of(&entities), left }
}

/// Each entity with its riders, vehicles first.
pub(crate) fn groups_of(entities: &[Vec<u8>]) -> Vec<Vec<EntityRecord>> {
    let limits = nbt::Limits::default();
    let split = |raw: &Vec<u8>| {
        entity::split(raw, &limits).expect("part of an NBT that was checked with the same limits")
    };
    entities.iter().map(split).collect()
}

/// A column of before 1.13 as it was, written at this time.
pub(crate) fn old(nbt: Vec<u8>, timestamp: u32) -> KeptSlot {
    KeptSlot { bytes: Bytes::Old(timestamp, nbt), mapped: Mapped::Nothing, reason: String::new() }
}

/// A column's slot as it was, with what of it is in the world: all but what the mask says.
pub(crate) fn torn(column: Column, raw: RawSlot, mask: &Mask, reason: &str) -> KeptSlot {
    let mapped = Mapped::Column(MappedColumn::masked(column, mask));
    KeptSlot { bytes: Bytes::Raw(raw), mapped, reason: reason.to_owned() }
}

/// A slot that could not be read at all, as it was. Points of interest are `alone` where the save has no column.
pub(crate) fn unread(folder: Folder, raw: RawSlot, reason: String, is_alone: bool) -> KeptSlot {
    let mapped = match folder {
        Folder::Region => Mapped::Nothing,
        Folder::Entities => Mapped::Entities(kept::sum_of_entities(std::iter::empty())),
        Folder::Poi => Mapped::Points { is_alone },
    };
    // What the reader says of such a slot tells the length of the file, which is another one when it comes again.
    let reason = if raw.place.is_some() { OUTSIDE.to_owned() } else { reason };
    KeptSlot { bytes: Bytes::Raw(raw), mapped, reason }
}
