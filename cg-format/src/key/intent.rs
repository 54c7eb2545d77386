//! Keys of commits that are too large for one batch: an intent, and the parts that it commits.
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

use super::space::INTENT_TAG;
use super::{tagged, whole};
use crate::DecodeError;

/// The length of an intent's key.
pub const INTENT_LEN_BYTES: usize = 1 + 8;
/// The length of the key of an intent's part.
pub const STAGED_LEN_BYTES: usize = INTENT_LEN_BYTES + 4;

/// The key of an intent. Numbers are issued in ascending order.
pub fn intent(number: u64) -> [u8; INTENT_LEN_BYTES] {
    tagged(INTENT_TAG, &number.to_be_bytes())
}

/// The inverse of [`intent`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another length or tag.
pub fn decode_intent(key: &[u8]) -> Result<u64, DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", INTENT_TAG)?;
        reader.array("number").map(u64::from_be_bytes)
    })
}

/// The key of a part of an intent. It begins with the intent's key, so it sorts after it.
pub fn staged(number: u64, part: u32) -> [u8; STAGED_LEN_BYTES] {
    let mut rest = [0; STAGED_LEN_BYTES - 1];
    let (head, tail) = rest.split_at_mut(8);
    head.copy_from_slice(&number.to_be_bytes());
    tail.copy_from_slice(&part.to_be_bytes());
    tagged(INTENT_TAG, &rest)
}

/// The inverse of [`staged`]: the number of the intent and of the part.
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another length or tag.
pub fn decode_staged(key: &[u8]) -> Result<(u64, u32), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", INTENT_TAG)?;
        let number = reader.array("number").map(u64::from_be_bytes)?;
        Ok((number, reader.array("part").map(u32::from_be_bytes)?))
    })
}
