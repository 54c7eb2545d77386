//! Keys of an overlay's rows: the number of the lease that wrote them, then the key of the row in a world.
//!
//! All rows of a lease are one range of each family, so the rows of an ended lease are deleted without reading others.
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

use alloc::vec::Vec;

use super::{
    CHUNK_LEN_BYTES, RECORD_PLACE_LEN_BYTES, RecordLeaf, check_object, chunk, decode_record_place,
    read_chunk, record, record_place, whole,
};
use crate::{ChunkAt, DecodeError, EntityId, RecordId};

/// The length of a lease's number, with which each key begins.
pub const LEASE_LEN_BYTES: usize = 8;
/// The length of a chunk's key in an overlay.
pub const OVERLAY_CHUNK_LEN_BYTES: usize = LEASE_LEN_BYTES + CHUNK_LEN_BYTES;
/// The length of an entity's key in an overlay.
pub const OVERLAY_ENTITY_LEN_BYTES: usize = LEASE_LEN_BYTES + EntityId::LEN_BYTES;

/// The length of the key of a record's place in an overlay.
pub const OVERLAY_RECORD_PLACE_LEN_BYTES: usize = LEASE_LEN_BYTES + RECORD_PLACE_LEN_BYTES;

/// The first key of a lease, in every family.
pub fn lease(lease: u64) -> [u8; LEASE_LEN_BYTES] {
    lease.to_be_bytes()
}

/// The lease of a key in an overlay; `None` if the key is shorter than a lease's number.
pub fn lease_of(key: &[u8]) -> Option<u64> {
    key.first_chunk().map(|number| u64::from_be_bytes(*number))
}

/// The key of a chunk that a lease wrote.
pub fn overlay_chunk(number: u64, at: ChunkAt) -> [u8; OVERLAY_CHUNK_LEN_BYTES] {
    leased(number, &chunk(at))
}

/// The inverse of [`overlay_chunk`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another length or a chunk outside the world.
pub fn decode_overlay_chunk(key: &[u8]) -> Result<(u64, ChunkAt), DecodeError> {
    whole(key, |reader| {
        let number = u64::from_be_bytes(reader.array("lease")?);
        Ok((number, read_chunk(reader)?))
    })
}

/// The key of an entity that a lease wrote.
pub fn overlay_entity(number: u64, id: EntityId) -> [u8; OVERLAY_ENTITY_LEN_BYTES] {
    leased(number, &id.to_bytes())
}

/// The inverse of [`overlay_entity`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another length.
pub fn decode_overlay_entity(key: &[u8]) -> Result<(u64, EntityId), DecodeError> {
    whole(key, |reader| {
        let number = u64::from_be_bytes(reader.array("lease")?);
        Ok((number, reader.array("entity uuid").map(EntityId::from_bytes)?))
    })
}

/// The key of an object that a lease wrote.
pub fn overlay_object(number: u64, key: &[u8]) -> Vec<u8> {
    [&lease(number)[..], key].concat()
}

/// The inverse of [`overlay_object`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) if no valid key of an object follows the lease.
pub fn decode_overlay_object(key: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    whole(key, |reader| {
        let number = u64::from_be_bytes(reader.array("lease")?);
        let rest = reader.take("object key", reader.left_bytes())?;
        check_object(rest)?;
        Ok((number, rest))
    })
}

/// The key of a property that a lease wrote: the lease, then the property's key in a world.
pub fn overlay_property(number: u64, key: &[u8]) -> Vec<u8> {
    [&lease(number)[..], key].concat()
}

/// The inverse of [`overlay_property`]. The caller checks that the rest is the key of a property.
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) if the key is shorter than a lease's number.
pub fn decode_overlay_property(key: &[u8]) -> Result<(u64, &[u8]), DecodeError> {
    whole(key, |reader| {
        let number = u64::from_be_bytes(reader.array("lease")?);
        Ok((number, reader.take("property key", reader.left_bytes())?))
    })
}

/// The key of a record that a lease wrote.
pub fn overlay_record(number: u64, leaf: &RecordLeaf, id: RecordId) -> Vec<u8> {
    [&lease(number)[..], &record(leaf, id)].concat()
}

/// The key of the row with the change that a lease made to a record, and with the record's leaf.
pub fn overlay_record_place(number: u64, id: RecordId) -> [u8; OVERLAY_RECORD_PLACE_LEN_BYTES] {
    leased(number, &record_place(id))
}

/// The inverse of [`overlay_record_place`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another length or tag.
pub fn decode_overlay_record_place(key: &[u8]) -> Result<(u64, RecordId), DecodeError> {
    whole(key, |reader| {
        let number = u64::from_be_bytes(reader.array("lease")?);
        Ok((number, decode_record_place(reader.take("place of a record", reader.left_bytes())?)?))
    })
}

/// The prefix of all keys of [`overlay_record_place`] of a lease, and of no other keys.
pub fn overlay_record_places(number: u64) -> [u8; LEASE_LEN_BYTES + 1] {
    let [first, ..] = record_place(RecordId::from_bytes([0; RecordId::LEN_BYTES]));
    leased(number, &[first])
}

fn leased<const N: usize>(number: u64, rest: &[u8]) -> [u8; N] {
    let mut key = [0; N];
    for (to, from) in key.iter_mut().zip(lease(number).iter().chain(rest)) {
        *to = *from;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkPos, Dimension};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_come_back_and_sort_by_lease_first(
            leases in prop::array::uniform2(any::<u64>()),
            x in -1000_i64..1000,
            id in any::<[u8; 16]>(),
        ) {
            let at = ChunkAt::new(Dimension::new(3), ChunkPos::constant(x, -x, 7));
            let id = EntityId::from_bytes(id);
            let [chunks, entities] =
                [leases.map(|number| overlay_chunk(number, at).to_vec()), leases.map(|number| overlay_entity(number, id).to_vec())];
            for (number, key) in leases.iter().zip(&chunks) {
                prop_assert_eq!(decode_overlay_chunk(key), Ok((*number, at)));
                prop_assert_eq!(lease_of(key), Some(*number));
                prop_assert!(key.as_slice() >= lease(*number).as_slice());
                prop_assert!(decode_overlay_chunk(&key[1..]).is_err());
            }
            for (number, key) in leases.iter().zip(&entities) {
                prop_assert_eq!(decode_overlay_entity(key), Ok((*number, id)));
                prop_assert!(decode_overlay_entity(&key[..23]).is_err());
            }
            for number in leases {
                let object = overlay_object(number, b"a/b");
                prop_assert_eq!(decode_overlay_object(&object), Ok((number, &b"a/b"[..])));
                prop_assert_eq!(lease_of(&object), Some(number));
                prop_assert!(decode_overlay_object(&object[..8]).is_err());
                let property = overlay_property(number, b"game:day");
                prop_assert_eq!(decode_overlay_property(&property), Ok((number, &b"game:day"[..])));
                prop_assert!(decode_overlay_property(&property[..7]).is_err());
                let record = RecordId::from_bytes(id.to_bytes());
                let place = overlay_record_place(number, record);
                prop_assert_eq!(decode_overlay_record_place(&place), Ok((number, record)));
                prop_assert!(place.starts_with(&overlay_record_places(number)));
                prop_assert!(decode_overlay_record_place(&place[..24]).is_err());
                let path = crate::key::RecordPath::EMPTY.child(7).unwrap();
                let leaf = RecordLeaf { dimension: Dimension::new(3), table: [x, 0, -x], path };
                let key = overlay_record(number, &leaf, record);
                prop_assert_eq!(crate::key::decode_record(&key[LEASE_LEN_BYTES..]), Ok((leaf, record)));
                prop_assert!(!key.starts_with(&overlay_record_places(number)));
            }
            prop_assert_eq!(chunks[0].cmp(&chunks[1]), leases[0].cmp(&leases[1]));
            prop_assert_eq!(entities[0].cmp(&entities[1]), leases[0].cmp(&leases[1]));
        }
    }
}
