//! The part of an import that needs no world: sixteen slots of a region file become chunks.
//!
//! Workers do this beside each other. Blocks have numbers of the job's own, in the order in which the job meets them;
//! the one thread that commits gives them the world's.

use std::path::Path;

use crate::codec::{Builder, Held, LocalState, PreparedColumn, PreparedEntities, slot};
use crate::mapping::kept::Mask;
use crate::mapping::{Ids, KeptSlot, Points};
use crate::region::{ColumnPos, Extent, RawSlot, ReadLimits, Slot};
use crate::save::RegionKind;
use crate::{Decoder, Payload, Region, SlotError};

/// Slots that are read, decoded and registered together: half a row of a region.
///
/// The same whatever runs beside it, so a save gives the same ids every time it is imported.
pub(super) const SLOTS_PER_JOB: u16 = 16;

/// A range of slots of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Job {
    /// Which of the save's files.
    pub(super) file: usize,
    pub(super) from_slot: u16,
    pub(super) end_slot: u16,
}

/// Contents of a job's slots.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    /// The block states by the job's own numbers.
    pub(super) states: Vec<LocalState>,
    /// In slot order.
    pub(super) slots: Vec<(Slot, Content)>,
    /// Why nothing of the file can be read.
    pub(super) broken: Option<String>,
}

/// Contents of a slot.
#[derive(Debug)]
pub(super) enum Content {
    Column(Box<PreparedColumn>),
    Entities(PreparedEntities),
    /// The column at this place, of before 1.13, as an object.
    OldSlot(ColumnPos, Vec<u8>),
    /// Of the column at this place.
    PointsOfInterest(ColumnPos, Points),
    /// A slot of a file whose place nothing tells.
    NoPlace(&'static str),
    Unreadable(Lost),
}

/// A slot that cannot be read at all.
#[derive(Debug)]
pub(super) struct Lost {
    /// Why.
    pub(super) reason: String,
    /// The slot as it stands, unless that cannot be read either.
    pub(super) raw: Option<RawSlot>,
}

/// Contents of a slot, and its time.
struct Read {
    held: Held,
    /// When the slot was written.
    timestamp: u32,
}

/// Reads a job's slots.
pub(super) fn prepare(path: &Path, kind: RegionKind, job: Job, ids: &Ids, decoder: &mut Decoder) -> Prepared {
    let mut region = match Region::open(path) {
        Ok(region) => region,
        Err(error) => return Prepared { broken: Some(error.to_string()), ..Prepared::default() },
    };
    let wanted = job.from_slot..job.end_slot;
    let slots: Vec<_> = region.slots().filter(|slot| wanted.contains(&slot.index())).collect();
    let mut bytes = Vec::new();
    let mut read = |slot| match decode(&mut region, kind, slot, &mut bytes, decoder) {
        Ok(held) => Ok(Read { held, timestamp: region.timestamp(slot) }),
        Err((reason, extent)) => Err(lost(&mut region, slot, reason, extent)),
    };
    let payloads: Vec<_> = slots.into_iter().map(|slot| (slot, read(slot))).collect();
    let columns = payloads.iter().filter_map(|(_, payload)| match payload {
        Ok(Read { held: Held::Payload(Payload::Column(column)), .. }) => Some(column),
        _ => None,
    });
    let mut builder = Builder::new(ids, slot::owners_seen(columns));
    let slots = payloads
        .into_iter()
        .map(|(slot, payload)| {
            let content = match payload {
                Err(lost) => Content::Unreadable(lost),
                Ok(Read { held, timestamp }) => match held {
                    Held::Points(Some(column), slot) => {
                        Content::PointsOfInterest(column, Points { timestamp, slot, is_alone: false })
                    }
                    Held::Points(None, _) | Held::Payload(Payload::PointsOfInterest) => {
                        Content::NoPlace("points of interest in a file without r.X.Z.mca in its name")
                    }
                    Held::Old(column, slot) => Content::OldSlot(column, slot::old(slot, timestamp).encode()),
                    Held::Payload(Payload::Entities(column)) => {
                        Content::Entities(slot::entities_of(column, timestamp))
                    }
                    Held::Payload(Payload::Column(column)) => {
                        let mut column = builder.column(column, timestamp);
                        if let Some(reason) = column.problems.first() {
                            match keep_column(&mut region, slot, decoder, &column.mask, reason) {
                                Ok(kept) => column.kept = Some(kept),
                                Err(why) => column.problems.push(not_kept(&why)),
                            }
                        }
                        Content::Column(Box::new(column))
                    }
                },
            };
            (slot, content)
        })
        .collect();
    Prepared { states: builder.into_states(), slots, broken: None }
}

/// Says of a slot that its bytes are not kept either.
pub(super) fn not_kept(why: &str) -> String {
    format!("the slot is not kept as bytes: {why}")
}

/// A slot that cannot be read at all, with its bytes.
pub(super) fn lost(region: &mut Region, slot: Slot, mut reason: String, extent: Extent) -> Lost {
    let raw = region.raw(slot, extent, &ReadLimits::default());
    if let Err(error) = &raw {
        reason = format!("{reason}; {}", not_kept(&error.to_string()));
    }
    // That it was there is known.
    let raw = raw.unwrap_or_else(|_| Some(RawSlot::without_bytes(region.timestamp(slot))));
    Lost { reason, raw }
}

/// A column's slot as it was, with what of it is in the world: all but what the mask says.
pub(super) fn keep_column(
    region: &mut Region,
    slot: Slot,
    decoder: &mut Decoder,
    mask: &Mask,
    reason: &str,
) -> Result<KeptSlot, String> {
    let mut bytes = Vec::new();
    region.read(slot, &ReadLimits::default(), &mut bytes).map_err(|error| error.to_string())?;
    let raw = region.raw(slot, Extent::Length, &ReadLimits::default()).map_err(|error| error.to_string())?;
    match (decoder.decode(&bytes), raw) {
        (Ok(Payload::Column(column)), Some(raw)) => Ok(slot::torn(column, raw, mask, reason)),
        _ => Err("it changed while it was read".to_owned()),
    }
}

/// Contents of a slot, or why they cannot be read, and how far the slot reaches then.
fn decode(
    region: &mut Region,
    kind: RegionKind,
    slot: Slot,
    bytes: &mut Vec<u8>,
    decoder: &mut Decoder,
) -> Result<Held, (String, Extent)> {
    let sectors = |error: SlotError| (error.to_string(), Extent::Sectors);
    region.read(slot, &ReadLimits::default(), bytes).map_err(sectors)?;
    slot::read(region.pos(), kind, slot, bytes, decoder).map_err(|error| (error.to_string(), Extent::Length))
}

const _: () = assert!(Slot::COUNT.is_multiple_of(SLOTS_PER_JOB), "jobs cover a region");
