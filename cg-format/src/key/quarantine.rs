//! Keys of quarantined rows.
#![expect(clippy::big_endian_bytes, reason = "key bytes are big-endian: byte order must be number order")]

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::space::QUARANTINE_TAG;
use super::{Space, whole};
use crate::{DecodeError, Problem};

/// The key under which a commit quarantines a damaged row. A row that is damaged again gets another copy.
pub fn quarantine(space: Space, row: &[u8], commit_seq: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + row.len() + 8);
    out.extend([QUARANTINE_TAG, space.byte()]);
    out.extend_from_slice(row);
    out.extend(commit_seq.to_be_bytes());
    out
}

/// The range of keys of all copies of one row, from the oldest. Copies of longer keys may be in the range, so each key
/// must be [decoded](decode_quarantine) and compared.
pub fn quarantine_copies(space: Space, row: &[u8]) -> RangeInclusive<Vec<u8>> {
    quarantine(space, row, 0)..=quarantine(space, row, u64::MAX)
}

/// The inverse of [`quarantine`].
///
/// # Errors
/// [`DecodeError`] in [`Section::Key`](crate::Section::Key) for another tag, an unknown space or fewer bytes than a commit sequence.
pub fn decode_quarantine(key: &[u8]) -> Result<(Space, &[u8], u64), DecodeError> {
    whole(key, |reader| {
        reader.expect_u8("tag", QUARANTINE_TAG)?;
        let here = reader.clone();
        let byte = reader.u8("space")?;
        let Some(space) = Space::from_byte(byte) else {
            let (field, found) = ("space", byte.into());
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "1 to 17" }));
        };
        let row = reader.take("row key", reader.left_bytes().saturating_sub(8))?;
        Ok((space, row, u64::from_be_bytes(reader.array("commit sequence")?)))
    })
}
