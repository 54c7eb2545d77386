//! Entities as records: each rider by itself, and every byte of the way back.
//!
//! A save nests riders in their vehicle's `Passengers`. [`split`] gives each its own record, whose NBT is the entity's
//! own bytes without that one field; [`Riders`] remembers the field's place and the riders, in order.
//! [`join`] puts the bytes back exactly.

use uuid::Uuid;

use super::nbt::{self, Compound, Field, NbtError, Tag, Value};

/// How deep riders are taken apart; the game stacks a handful. Deeper ones stay inside their vehicle's NBT.
pub const MAX_RIDER_DEPTH: usize = 64;

const PASSENGERS: &str = "Passengers";
const POS: &str = "Pos";

/// One entity. `Id` is how a rider is named: an index after [`split`], whatever a store uses before [`join`].
#[derive(Debug, Clone, PartialEq)]
pub struct EntityRecord<Id = usize> {
    /// `UUID` (1.16 on) or `UUIDMost` and `UUIDLeast`; `None` when the NBT has neither.
    pub uuid: Option<Uuid>,
    /// The kind, such as `minecraft:cow`; empty when the NBT has none.
    pub kind: String,
    /// The feet, in blocks; `None` when the NBT has no three numbers in `Pos`.
    pub pos: Option<[f64; 3]>,
    /// The compound's bytes, fields and end tag, without the `Passengers` that [`EntityRecord::riders`] stands for.
    pub nbt: Vec<u8>,
    /// The riders that were taken out; `None` when the bytes are whole.
    pub riders: Option<Riders<Id>>,
}

/// The riders of a vehicle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Riders<Id = usize> {
    /// Where `Passengers` stood: bytes from the start of the vehicle's NBT.
    pub offset_bytes: u32,
    /// The riders in seat order.
    pub ids: Vec<Id>,
}

/// Why records give no entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// A rider's record is not there.
    #[error("rider {index} of a vehicle has no record")]
    MissingRider {
        /// The rider's seat, from 0.
        index: usize,
    },
    /// Riders inside riders without end.
    #[error("riders are nested deeper than {MAX_RIDER_DEPTH}")]
    TooDeep,
    /// The place of `Passengers` lies outside the NBT.
    #[error("riders stand at byte {offset_bytes} of an NBT of {len_bytes} bytes")]
    BadOffset {
        /// The recorded place.
        offset_bytes: u32,
        /// The length of the vehicle's NBT.
        len_bytes: usize,
    },
}

/// Takes an entity apart: the vehicle first, then its riders, each before its own riders.
///
/// # Errors
/// The bytes are no compound within the limits.
///
/// ```
/// use cg_anvil::{entity, nbt};
/// let spider = nbt::payload(|spider| {
///     spider.string("id", "minecraft:spider")?;
///     spider.compounds("Passengers", ["minecraft:skeleton"].into_iter(), |rider, id| rider.string("id", id))
/// });
/// let records = entity::split(&spider, &nbt::Limits::default())?;
/// assert_eq!(records[0].kind, "minecraft:spider");
/// assert_eq!(records[0].riders.as_ref().unwrap().ids, [1]);
/// assert_eq!(records[1].kind, "minecraft:skeleton");
/// assert_eq!(entity::join(&records[0], |&id| records.get(id))?, spider);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn split(raw: &[u8], limits: &nbt::Limits) -> Result<Vec<EntityRecord>, NbtError> {
    let mut records = Vec::new();
    split_into(Compound::parse(raw, limits)?, 0, &mut records);
    Ok(records)
}

/// Puts an entity together again, byte for byte as [`split`] was given it.
///
/// # Errors
/// [`JoinError`], when the records do not belong together.
pub fn join<'a, Id: 'a>(
    record: &'a EntityRecord<Id>,
    find: impl Fn(&Id) -> Option<&'a EntityRecord<Id>>,
) -> Result<Vec<u8>, JoinError> {
    let mut out = Vec::with_capacity(record.nbt.len());
    join_into(record, &find, 0, &mut out)?;
    Ok(out)
}

impl<Id> EntityRecord<Id> {
    /// Moves the feet: `Pos` says so afterwards, and every other byte stays.
    ///
    /// A `Pos` that is no list of three doubles is replaced by one, and one that is missing is put after the other
    /// fields. What else an NBT says of places, such as the block that a painting hangs on, is left as it is.
    ///
    /// # Errors
    /// The bytes are no compound within the limits; nothing is changed then.
    pub fn move_to(&mut self, pos: [f64; 3], limits: &nbt::Limits) -> Result<(), NbtError> {
        let mut written = nbt::payload(|fields| fields.doubles(POS, &pos));
        // Only the field, without the end of the compound around it.
        written.pop();
        let (from, to) = match Compound::parse(&self.nbt, limits)?.field(POS) {
            Some(field) => (field.offset_bytes, field.offset_bytes + field.raw.len()),
            None => (self.nbt.len() - 1, self.nbt.len() - 1),
        };
        if let Some(riders) = &mut self.riders
            && riders.offset_bytes as usize >= to
            && to > from
        {
            // It begins after a field that may have another length now.
            let offset_bytes = riders.offset_bytes as usize - (to - from) + written.len();
            riders.offset_bytes = u32::try_from(offset_bytes).expect("a column's NBT is limited below 4 GiB");
        }
        self.nbt.splice(from..to, written);
        self.pos = Some(pos);
        Ok(())
    }

    /// The same record with riders named otherwise.
    pub fn map_riders<To>(self, name: impl FnMut(Id) -> To) -> EntityRecord<To> {
        let Self { uuid, kind, pos, nbt, riders } = self;
        let riders = riders.map(|riders| Riders {
            offset_bytes: riders.offset_bytes,
            ids: riders.ids.into_iter().map(name).collect(),
        });
        EntityRecord { uuid, kind, pos, nbt, riders }
    }
}

/// The UUID that an entity's NBT states, in either of its forms.
pub fn uuid(entity: Compound<'_>) -> Option<Uuid> {
    if let Some(Value::IntArray(words)) = entity.get("UUID") {
        let words: [i32; 4] = words.values().collect::<Vec<_>>().try_into().ok()?;
        let value = words.into_iter().fold(0, |value, word| value << 32 | u128::from(word.cast_unsigned()));
        return Some(Uuid::from_u128(value));
    }
    let (most, least) = (entity.long("UUIDMost")?, entity.long("UUIDLeast")?);
    Some(Uuid::from_u64_pair(most.cast_unsigned(), least.cast_unsigned()))
}

fn split_into(entity: Compound<'_>, depth: usize, records: &mut Vec<EntityRecord>) -> usize {
    let index = records.len();
    let raw = entity.raw();
    let passengers = passengers(entity).filter(|_| depth < MAX_RIDER_DEPTH);
    let (nbt, offset_bytes) = match &passengers {
        Some(field) => {
            let after = field.offset_bytes + field.raw.len();
            let parts = [raw.get(..field.offset_bytes), raw.get(after..)];
            (parts.into_iter().flatten().collect::<Vec<_>>().concat(), field.offset_bytes)
        }
        None => (raw.to_vec(), 0),
    };
    records.push(EntityRecord {
        uuid: uuid(entity),
        kind: entity.text("id").map(|id| id.lossy().into_owned()).unwrap_or_default(),
        pos: position(entity),
        nbt,
        riders: None,
    });
    if let Some(list) = passengers.and_then(|field| field.value.as_list()) {
        let ids = list.compounds().map(|rider| split_into(rider, depth + 1, records)).collect();
        let offset_bytes = u32::try_from(offset_bytes).expect("a column's NBT is limited below 4 GiB");
        if let Some(record) = records.get_mut(index) {
            record.riders = Some(Riders { offset_bytes, ids });
        }
    }
    index
}

/// The field that is taken out: riders that are there. An empty list says nothing and stays, for its exact bytes.
fn passengers(entity: Compound<'_>) -> Option<Field<'_>> {
    let field = entity.field(PASSENGERS)?;
    let list = field.value.as_list()?;
    (list.tag() == Tag::Compound && !list.is_empty()).then_some(field)
}

fn position(entity: Compound<'_>) -> Option<[f64; 3]> {
    let numbers: Option<Vec<f64>> = entity.list(POS)?.values().map(Value::as_double).collect();
    numbers?.try_into().ok()
}

fn join_into<'a, Id: 'a>(
    record: &'a EntityRecord<Id>,
    find: &impl Fn(&Id) -> Option<&'a EntityRecord<Id>>,
    depth: usize,
    out: &mut Vec<u8>,
) -> Result<(), JoinError> {
    let Some(Riders { offset_bytes, ids }) = &record.riders else {
        out.extend(&record.nbt);
        return Ok(());
    };
    if depth >= MAX_RIDER_DEPTH {
        return Err(JoinError::TooDeep);
    }
    let Some((before, after)) = record.nbt.split_at_checked(*offset_bytes as usize) else {
        return Err(JoinError::BadOffset { offset_bytes: *offset_bytes, len_bytes: record.nbt.len() });
    };
    out.extend(before);
    nbt::compounds_header(out, PASSENGERS, ids.len());
    for (index, id) in ids.iter().enumerate() {
        join_into(find(id).ok_or(JoinError::MissingRider { index })?, find, depth + 1, out)?;
    }
    out.extend(after);
    Ok(())
}

#[cfg(test)]
mod tests;
