//! The root's rows that name segments.
//!
//! The root is a world. The rows are properties in the engine's own, nameless namespace:
//!
//! | property | value |
//! |---|---|
//! | `:segments` | u32: the side of a segment in chunks |
//! | `:segment/D.X.Y.Z` | u8: 0 being created, 1 stored, 2 being deleted |
//! | `:entity/UUID` | the segment that contains the entity, if any does: dimension u64, x, y, z i64 |
//! | `:record/UUID`, `:property/NAME`, `:object/HEX` | the same for a record, a property and an object, whose key is in hexadecimal digits |
//! | `:departure/UUID` | the segment that still has a dead copy of a record which the root has now, see `departures`: as a place |
//! | `:crossing` | entities in transit between segments, see `transfer` |
//! | `:crossed/D.X.Y.Z` | a commit of the segment after its newest transfer, see `history` |
//! | `:promotion/S.P`, `:promotion` | a merge of an earlier version, see `old_merge` |
//!
//! A segment is a world too. Its property `:segment` stores the root (UUID) and the place that it belongs to; `:crossed` a
//! commit of the root, see `history`.

use std::fmt;

use cg_format::wire::Reader;
use cg_format::{DecodeError, EntityId, Problem, RecordId, Section};
use cg_registry::Name;
use cg_store::error::ConflictKey;
use cg_store::objects::ObjectKey;
use cg_store::{Error, Property};

use super::error::{MAX_PROPERTY_NAME_BYTES, SegmentError};
use super::pos::SegmentPos;

/// The smallest side; every side is a multiple of it. It is the side of the coldest tier's clusters, so that no
/// cluster is in two segments.
const SIDE_STEP: u32 = 16;
const MAX_SIDE: u32 = 1 << 20;

/// The state of a segment, as the root stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentState {
    Creating = 0,
    There = 1,
    Deleting = 2,
}

impl SegmentState {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Section::Overlay);
        let here = reader.clone();
        let state = match reader.u8("segment state")? {
            0 => Self::Creating,
            1 => Self::There,
            2 => Self::Deleting,
            found => {
                let (field, found) = ("segment state", found.into());
                return Err(here.error(Problem::OutOfRange { field, found, allowed: "0 to 2" }));
            }
        };
        reader.end("bytes after the state")?;
        Ok(state)
    }

    pub(super) fn encode(self) -> Vec<u8> {
        vec![self as u8]
    }
}

/// Refuses an invalid side.
pub(super) fn check_side(side_chunks: u32) -> Result<(), SegmentError> {
    let fits = side_chunks.is_multiple_of(SIDE_STEP) && (SIDE_STEP..=MAX_SIDE).contains(&side_chunks);
    if fits { Ok(()) } else { Err(SegmentError::Side { side_chunks }) }
}

/// The prefix of the properties that name segments.
pub(super) const SEGMENT_PREFIX: &str = ":segment/";
/// The prefix of the properties that store the segments of entities.
pub(super) const ENTITY_PREFIX: &str = ":entity/";
/// The prefix of those that store the segments of records.
const RECORD_PREFIX: &str = ":record/";
/// The prefix of those that store the segments of properties.
pub(super) const PROPERTY_PREFIX: &str = ":property/";
const _: () = assert!(MAX_PROPERTY_NAME_BYTES == Name::MAX_LEN_BYTES - PROPERTY_PREFIX.len());
/// The prefix of those that store the segments of objects.
const OBJECT_PREFIX: &str = ":object/";
/// The prefixes of all properties that are places.
pub(super) const PLACE_PREFIXES: [&str; 4] = [ENTITY_PREFIX, RECORD_PREFIX, PROPERTY_PREFIX, OBJECT_PREFIX];

/// The prefix of the properties that store which segments have dead copies of records.
pub(super) const DEPARTURE_PREFIX: &str = ":departure/";

/// The prefix of the properties in which earlier versions staged a merge.
pub(super) const OLD_MERGE_PREFIX: &str = ":promotion/";

/// The property of the root with the state of a segment.
pub(super) fn state_property(segment: SegmentPos) -> Result<Property, Error> {
    named(&format!("{SEGMENT_PREFIX}{}", segment.file_name()))
}

pub(super) fn side_property() -> Result<Property, Error> {
    named(":segments")
}

pub(super) fn transfer_property() -> Result<Property, Error> {
    named(":crossing")
}

/// The property of the root with the segment that has a dead copy of a record.
pub(super) fn departure_property(id: RecordId) -> Result<Property, Error> {
    named(&format!("{DEPARTURE_PREFIX}{id}"))
}

/// The property that committed a merge into several segments in earlier versions.
pub(super) fn old_merge_property() -> Result<Property, Error> {
    named(":promotion")
}

/// The property that a segment stores about itself.
pub(super) fn own_property() -> Result<Property, Error> {
    named(":segment")
}

/// The property of the root with a commit of a segment.
pub(super) fn crossed_property(segment: SegmentPos) -> Result<Property, Error> {
    named(&format!(":crossed/{}", segment.file_name()))
}

/// The property of a segment with a commit of the root.
pub(super) fn own_crossed_property() -> Result<Property, Error> {
    named(":crossed")
}

pub(super) fn entity_property(id: EntityId) -> Result<Property, Error> {
    named(&format!("{ENTITY_PREFIX}{id}"))
}

/// Whether a key is no property with too long a name for a place. Only the root has such a property.
pub(super) fn may_have_place(key: &ConflictKey) -> bool {
    !matches!(key, ConflictKey::Property(name) if name.len() > MAX_PROPERTY_NAME_BYTES)
}

/// The property of the root with the segment of a key. A chunk has none: its segment follows from its position.
///
/// # Errors
/// [`SegmentError::LongPropertyName`] for a key that [may have no place](may_have_place).
pub(super) fn place_property(key: &ConflictKey) -> Result<Property, Error> {
    match key {
        ConflictKey::Entity(id) => entity_property(*id),
        ConflictKey::Record(id) => named(&format!("{RECORD_PREFIX}{id}")),
        ConflictKey::Property(name) if !may_have_place(key) => {
            Err(SegmentError::LongPropertyName { name: name.clone() }.into())
        }
        ConflictKey::Property(name) => named(&format!("{PROPERTY_PREFIX}{name}")),
        ConflictKey::Object(key) => named(&object_places(key.as_bytes())),
        key => named(&format!(":place/{key}")),
    }
}

/// The beginning of the names of the places of objects whose keys begin with these bytes. In the order of these names the
/// objects are in the order of their keys.
pub(super) fn object_places(prefix: &[u8]) -> String {
    prefix.iter().fold(OBJECT_PREFIX.to_owned(), |mut name, byte| {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
        name.extend([digit(byte >> 4), digit(byte & 15)]);
        name
    })
}

/// The key whose segment a property of the root stores; `None` if it is no place.
pub(super) fn placed_key(name: &str) -> Option<ConflictKey> {
    let after = |prefix| name.strip_prefix(prefix);
    if let Some(id) = after(ENTITY_PREFIX) {
        return Some(ConflictKey::Entity(EntityId::new(id.parse().ok()?)));
    }
    if let Some(id) = after(RECORD_PREFIX) {
        return Some(ConflictKey::Record(RecordId::new(id.parse().ok()?)));
    }
    if let Some(name) = after(PROPERTY_PREFIX) {
        return Some(ConflictKey::Property(name.to_owned()));
    }
    let digits = after(OBJECT_PREFIX)?.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    let key = digits.chunks(2).map(byte).collect::<Option<Vec<_>>>()?;
    // Each key has one name.
    if object_places(&key) != name {
        return None;
    }
    Some(ConflictKey::Object(ObjectKey::new(key).ok()?))
}

/// Whether a property is one of the world as a whole: the root stores it.
pub(super) fn is_of_the_world(property: &Property) -> bool {
    !matches!(property, Property::Named(name) if name.namespace() != "cg")
}

fn named(text: &str) -> Result<Property, Error> {
    Ok(Property::Named(Name::new(text)?))
}

/// Decodes a whole value of the root.
pub(super) fn whole<T>(
    what: impl fmt::Display,
    bytes: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, Error> {
    let mut reader = Reader::new(bytes, Section::Overlay);
    let value = read(&mut reader).and_then(|value| {
        reader.end("bytes after the value")?;
        Ok(value)
    });
    value.map_err(|problem| SegmentError::DamagedRoot { what: what.to_string(), problem }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::Dimension;

    #[test]
    fn names_of_rows_are_names_of_properties() {
        let pos = SegmentPos { dimension: Dimension::new(3), x: -7, y: 0, z: i64::MAX };
        assert!(state_property(pos).is_ok() && crossed_property(pos).is_ok());
    }

    #[test]
    fn places_are_named_by_their_keys_and_ordered_like_them() {
        let object = |key: &[u8]| ConflictKey::Object(ObjectKey::new(key).unwrap());
        let longest = vec![0xff; 512];
        let keys = [
            ConflictKey::Entity(EntityId::from_bytes([0xfe; 16])),
            ConflictKey::Record(RecordId::from_bytes([7; 16])),
            ConflictKey::Property("game:log[axis=y]".into()),
            object(b"block/1"),
            object(b"block/1\0"),
            object(b"block/10"),
            object(&longest),
        ];
        let names: Vec<_> = keys.iter().map(|key| place_property(key).unwrap().to_string()).collect();
        assert!(names[3..].is_sorted(), "{names:?}");
        assert!(names[4].starts_with(&object_places(b"block/1")) && names[4].starts_with(":object/626c6f"));
        for (key, name) in keys.iter().zip(&names) {
            assert_eq!(placed_key(name).as_ref(), Some(key));
        }
        assert_eq!(
            [":object/6", ":object/", ":object/x0", ":segment/0.0.0.0"].map(placed_key),
            [None; 4].map(|_: Option<()>| None)
        );
        assert!(
            is_of_the_world(&Property::Seed) && !is_of_the_world(&Property::of_key(b"game:rain").unwrap())
        );
    }
}
