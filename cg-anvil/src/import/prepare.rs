//! The part of an import that needs no world: sixteen slots of a region file become chunks.
//!
//! Workers do this beside each other. Blocks have numbers of the job's own, in the order in which the job meets them;
//! the one thread that commits gives them the world's.

use std::collections::HashSet;
use std::path::Path;

use cg_format::chunk::Chunk;
use cg_minecraft::kind;
use cg_registry::Name;

use super::builder::Builder;
use crate::column::{self, ColumnError, EntityColumn};
use crate::mapping::kept::{Bytes, Mapped, MappedColumn, Mask};
use crate::mapping::origin::ListedIn;
use crate::mapping::{EntitySlot, Ids, KeptSlot, Points};
use crate::region::{ColumnPos, Extent, RawSlot, ReadLimits, RegionPos, Slot};
use crate::save::RegionKind;
use crate::{Decoder, EntityRecord, Payload, Region, SlotError, entity, nbt};

/// Slots that are read, decoded and registered together: half a row of a region.
///
/// The same whatever runs beside it, so a save gives the same ids every time it is imported.
pub(super) const SLOTS_PER_JOB: u16 = 16;

/// Bytes of an entity besides its NBT; an upper bound.
const ENTITY_BYTES: usize = 512;

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

/// A block state that a job met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalState {
    pub(super) name: Name,
    pub(super) is_opaque: bool,
    /// Whether the job took it to own block entities.
    pub(super) owns: bool,
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

/// A column on its way into the world.
#[derive(Debug)]
pub(super) struct PreparedColumn {
    pub(super) pos: ColumnPos,
    /// Ascending by y; blocks by the job's own numbers.
    pub(super) chunks: Vec<(i32, Chunk)>,
    /// Record of the column, beside its chunks.
    pub(super) rest: Vec<u8>,
    /// The object of what has no place anywhere else.
    pub(super) left: Vec<u8>,
    pub(super) entities: PreparedEntities,
    /// Losses, in words.
    pub(super) problems: Vec<String>,
    /// Whether blocks are among that.
    pub(super) is_torn: bool,
    /// Parts of that which were read and make no part of a world.
    pub(super) mask: Mask,
    /// The slot as it was, if anything is lost.
    pub(super) kept: Option<KeptSlot>,
    /// About how many bytes all this takes.
    pub(super) len_bytes: usize,
}

/// The entities of a column.
#[derive(Debug)]
pub(super) struct PreparedEntities {
    pub(super) place: ListedIn,
    pub(super) column: ColumnPos,
    pub(super) data_version: i32,
    /// Each with its riders, vehicles first.
    pub(super) groups: Vec<Vec<EntityRecord>>,
    /// The object of what in a slot of `entities/` is no entity.
    pub(super) left: Option<Vec<u8>>,
}

impl PreparedEntities {
    /// About how many bytes the entities take, and what is kept beside them.
    pub(super) fn len_bytes(&self) -> usize {
        let entities = self.groups.iter().flatten().map(|record| record.nbt.len() + ENTITY_BYTES);
        entities.sum::<usize>() + self.left.as_ref().map_or(0, Vec::len)
    }
}

/// Contents of a slot, and its time.
struct Read {
    held: Held,
    /// When the slot was written.
    timestamp: u32,
}

/// Contents of a slot.
#[expect(clippy::large_enum_variant, reason = "sixteen are in memory at once, and most are columns")]
enum Held {
    Payload(Payload),
    /// A column of before 1.13: its place, and its NBT.
    Old(ColumnPos, Vec<u8>),
    /// Points of interest: their column, as far as the file's name tells it, and their NBT.
    Points(Option<ColumnPos>, Vec<u8>),
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
    let mut builder = Builder::new(ids, owners_seen(&payloads));
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
                    Held::Old(column, slot) => {
                        let (bytes, mapped) = (Bytes::Old(timestamp, slot), Mapped::Nothing);
                        Content::OldSlot(column, KeptSlot { bytes, mapped, reason: String::new() }.encode())
                    }
                    Held::Payload(Payload::Entities(column)) => {
                        Content::Entities(entities_of(column, timestamp))
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
        (Ok(Payload::Column(column)), Some(raw)) => {
            let mapped = Mapped::Column(MappedColumn::masked(column, mask));
            Ok(KeptSlot { bytes: Bytes::Raw(raw), mapped, reason: reason.to_owned() })
        }
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
    decode_read(region.pos(), kind, slot, bytes, decoder).map_err(|error| (error.to_string(), Extent::Length))
}

fn decode_read(
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
fn owners_seen(payloads: &[(Slot, Result<Read, Lost>)]) -> HashSet<String> {
    let mut seen = HashSet::new();
    for (_, payload) in payloads {
        let Ok(Read { held: Held::Payload(Payload::Column(column)), .. }) = payload else { continue };
        for entity in &column.block_entities {
            let state = entity.pos.and_then(|[x, y, z]| column.state(x, y, z));
            if let Some(state) = state.filter(|state| kind::is_foreign(state)) {
                seen.insert(kind::base(state).to_owned());
            }
        }
    }
    seen
}

fn entities_of(mut column: EntityColumn, timestamp: u32) -> PreparedEntities {
    let left = EntitySlot::take(&mut column, timestamp).map(|left| left.encode());
    let EntityColumn { pos, data_version, entities, .. } = column;
    let (place, column) = (ListedIn::EntityFile, pos);
    PreparedEntities { place, column, data_version, groups: groups_of(&entities), left }
}

/// Each entity with its riders, vehicles first.
pub(super) fn groups_of(entities: &[Vec<u8>]) -> Vec<Vec<EntityRecord>> {
    let limits = nbt::Limits::default();
    let split = |raw: &Vec<u8>| {
        entity::split(raw, &limits).expect("part of an NBT that was checked with the same limits")
    };
    entities.iter().map(split).collect()
}

const _: () = assert!(Slot::COUNT.is_multiple_of(SLOTS_PER_JOB), "jobs cover a region");
