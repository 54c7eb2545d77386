//! The slots of a column as contents of a world.

use super::builder::Builder;
use super::parts::{ColumnParts, DecodedColumn, SlotContent};
use super::slot::{self, Held};
use crate::column::{Column, ColumnError};
use crate::mapping::kept::{Folder, Mask};
use crate::mapping::{Ids, KeptSlot, Points};
use crate::region::{ColumnPos, RawSlot, ReadLimits};
use crate::save::RegionKind;
use crate::{Decoder, Payload};

/// Reads the slots of a column.
pub(super) fn decode(ids: &Ids, pos: ColumnPos, parts: &ColumnParts) -> Result<DecodedColumn, ColumnError> {
    let mut decoder = Decoder::default();
    let mut found = DecodedColumn {
        pos,
        states: Vec::new(),
        column: None,
        entities: None,
        points: None,
        kept: [const { None }; 3],
    };
    let slots =
        [(Folder::Region, &parts.column), (Folder::Entities, &parts.entities), (Folder::Poi, &parts.points)];
    for ((folder, content), kept) in slots.into_iter().zip(0..) {
        let Some(content) = content else { continue };
        let is_alone = parts.column.is_none();
        match read(folder, pos, content, &mut decoder)? {
            Read::Held(Held::Payload(Payload::Column(column)), bytes) => {
                take_column(&mut found, column, ids, (content, &bytes), &mut decoder);
            }
            Read::Held(Held::Payload(Payload::Entities(column)), _) => {
                found.entities = Some(slot::entities_of(column, content.timestamp()));
            }
            Read::Held(Held::Payload(Payload::PointsOfInterest), _) => {}
            Read::Held(Held::Old(_, nbt), _) => found.kept[kept] = Some(slot::old(nbt, content.timestamp())),
            Read::Held(Held::Points(_, slot), _) => {
                found.points = Some(Points { timestamp: content.timestamp(), slot, is_alone });
            }
            Read::Not(raw, reason) => found.kept[kept] = Some(slot::unread(folder, raw, reason, is_alone)),
        }
    }
    Ok(found)
}

/// Result of reading a slot.
enum Read {
    /// What it holds, and its NBT where that was not taken out.
    Held(Held, Vec<u8>),
    /// Not at all: it is kept as it is.
    Not(RawSlot, String),
}

fn read(
    folder: Folder,
    pos: ColumnPos,
    content: &SlotContent,
    decoder: &mut Decoder,
) -> Result<Read, ColumnError> {
    let kind = match folder {
        Folder::Region => RegionKind::Blocks,
        Folder::Entities => RegionKind::Entities,
        Folder::Poi => RegionKind::PointsOfInterest,
    };
    let mut bytes = match content {
        SlotContent::Nbt(nbt, _) => nbt.clone(),
        SlotContent::Raw(raw) => {
            let mut bytes = Vec::new();
            if let Err(error) = raw.read(&ReadLimits::default(), &mut bytes) {
                return Ok(Read::Not(raw.clone(), error.to_string()));
            }
            bytes
        }
    };
    match (slot::read(Some(pos.region()), kind, pos.slot(), &mut bytes, decoder), content) {
        (Ok(held), _) => Ok(Read::Held(held, bytes)),
        (Err(error), SlotContent::Raw(raw)) => Ok(Read::Not(raw.clone(), error.to_string())),
        (Err(error), SlotContent::Nbt(..)) => Err(error),
    }
}

/// Takes a column, and its slot as it was if a part of it cannot be read.
fn take_column(
    found: &mut DecodedColumn,
    column: Column,
    ids: &Ids,
    (content, nbt): (&SlotContent, &[u8]),
    decoder: &mut Decoder,
) {
    let mut builder = Builder::new(ids, slot::owners_seen(std::iter::once(&column)));
    let column = builder.column(column, content.timestamp());
    if let Some(reason) = column.problems.first() {
        let raw = match content {
            SlotContent::Raw(raw) => raw.clone(),
            SlotContent::Nbt(_, timestamp) => RawSlot::compressed(nbt, *timestamp),
        };
        found.kept[0] = torn(decoder, nbt, raw, &column.mask, reason);
    }
    found.states = builder.into_states();
    found.column = Some(column);
}

fn torn(decoder: &mut Decoder, nbt: &[u8], raw: RawSlot, mask: &Mask, reason: &str) -> Option<KeptSlot> {
    match decoder.decode(nbt) {
        Ok(Payload::Column(column)) => Some(slot::torn(column, raw, mask, reason)),
        _ => None,
    }
}
