//! Keys of the log of changes.
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

use alloc::vec::Vec;

use super::space::CHANGE_LOG_TAG;
use super::{Space, whole};
use crate::{DecodeError, Problem};

/// The fewest bytes of a row's key in the log of changes.
pub const CHANGE_LOG_MIN_LEN_BYTES: usize = 2 + 8 + 1;

/// The key of a row in the log of changes: a commit changed a value. The value is named by the key of its row; a record by
/// that of its place, and each property by its name in `WorldProperty`.
pub fn change_log(space: Space, commit: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + 8 + value.len());
    out.extend([CHANGE_LOG_TAG, space.byte()]);
    out.extend(commit.to_be_bytes());
    out.extend_from_slice(value);
    out
}

/// The inverse of [`change_log`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another tag, a space whose values are not logged, and a
/// value without a name.
pub fn decode_change_log(key: &[u8]) -> Result<(Space, u64, &[u8]), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", CHANGE_LOG_TAG)?;
        let here = reader.clone();
        let byte = reader.u8("space")?;
        let logged = [Space::WorldProperty, Space::Entity, Space::Object, Space::RecordPlace];
        let Some(space) = Space::from_byte(byte).filter(|space| logged.contains(space)) else {
            let (field, found) = ("space", byte.into());
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "2, 6, 10 or 17" }));
        };
        let commit = u64::from_be_bytes(reader.array("commit sequence")?);
        let value = reader.take("value", reader.left_bytes().max(1))?;
        Ok((space, commit, value))
    })
}
