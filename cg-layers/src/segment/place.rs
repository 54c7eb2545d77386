//! The place of a key, as the root stores it.

use cg_format::DecodeError;
use cg_format::wire::{Reader, Writer};
use cg_store::objects::StoredObject;

use super::pos::SegmentPos;

/// The place of a key: the segment that contains it, if any does.
///
/// Bytes: dimension u64, x, y, z i64; then perhaps version i64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: SegmentPos,
    /// The version of an object that was deleted elsewhere before this became its place. It counts on if the segment has
    /// none.
    pub(super) version: Option<i64>,
}

impl Place {
    /// The object that was deleted elsewhere.
    pub(super) fn deleted(self) -> Option<StoredObject> {
        self.version.map(|version| StoredObject { version, bytes: None })
    }

    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.segment.to_bytes();
        if let Some(version) = self.version {
            Writer::new(&mut bytes).i64(version);
        }
        bytes
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let segment = SegmentPos::read(reader)?;
        let version = if reader.left_bytes() > 0 { Some(reader.i64("version")?) } else { None };
        Ok(Self { segment, version })
    }
}
