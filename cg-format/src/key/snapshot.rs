//! Keys of snapshots that are saved in a world.
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

use alloc::vec::Vec;

use super::whole;
use crate::{DecodeError, Problem};

/// The maximum length of the name of a saved snapshot.
pub const SNAPSHOT_NAME_MAX_LEN_BYTES: usize = 255;

/// The key of a part of a saved snapshot; `None` for a name that is empty, too long or contains a zero byte. Part 0
/// describes the others.
pub fn snapshot(name: &str, part: u32) -> Option<Vec<u8>> {
    if name.is_empty() || name.len() > SNAPSHOT_NAME_MAX_LEN_BYTES || name.contains('\0') {
        return None;
    }
    let mut key = Vec::with_capacity(name.len() + 5);
    key.extend_from_slice(name.as_bytes());
    key.push(0);
    key.extend(part.to_be_bytes());
    Some(key)
}

/// The inverse of [`snapshot`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for a key that no name produces.
pub fn decode_snapshot(key: &[u8]) -> Result<(&str, u32), DecodeError> {
    whole(key, |reader| {
        let here = reader.clone();
        let name = reader.take("snapshot name", reader.left_bytes().saturating_sub(5))?;
        let name = core::str::from_utf8(name).map_err(|error| {
            let found = name.get(error.valid_up_to()).copied().unwrap_or_default();
            here.error(Problem::NotUtf8 { field: "snapshot name", found })
        })?;
        reader.expect_u8("end of name", 0)?;
        let part = u32::from_be_bytes(reader.array("part")?);
        if snapshot(name, part).is_none() {
            let (field, found) = ("snapshot name", name.len() as u64);
            return Err(here.error(Problem::OutOfRange {
                field,
                found,
                allowed: "1 to 255 bytes, none zero",
            }));
        }
        Ok((name, part))
    })
}
