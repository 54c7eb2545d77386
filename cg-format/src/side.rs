//! Side data: a host's data after the chunk's own bytes, such as light, biomes or the generation stage.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 2 | kind | position of the kind's name in the world's `sides` list |
//! | 2 | 4 | length | bytes of data |
//! | 6 | length | data | the host's own bytes |
//!
//! Entries follow each other up to the end of the value, kinds ascending, each at most once.

use crate::wire::{Reader, Writer};
use crate::{DecodeError, Problem, Section, SideKind};

/// The length of an entry without its data.
pub(crate) const HEAD_LEN_BYTES: usize = 6;

/// The side data after a chunk, checked once and then read in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sides<'a> {
    bytes: &'a [u8],
}

impl<'a> Sides<'a> {
    /// Checks the remaining bytes of a reader as side data.
    ///
    /// # Errors
    /// A [`DecodeError`] if an entry is truncated, or kinds do not ascend.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        reader.enter(Section::SideData);
        let bytes = reader.clone().traced(None).rest();
        let mut last: Option<u16> = None;
        while reader.left_bytes() > 0 {
            let here = reader.clone();
            let kind = reader.u16("side kind")?;
            match last {
                Some(last) if last == kind => {
                    return Err(here.error(Problem::Duplicate { field: "side kind", found: kind.into() }));
                }
                Some(last) if last > kind => {
                    let allowed = "above the kind before it";
                    return Err(here.error(Problem::OutOfRange {
                        field: "side kind",
                        found: kind.into(),
                        allowed,
                    }));
                }
                _ => last = Some(kind),
            }
            let len_bytes = reader.u32("side length")?;
            reader.take("side data", len_bytes as usize)?;
        }
        Ok(Self { bytes })
    }

    /// The data of one kind. Skips the entries before it.
    pub fn get(&self, kind: SideKind) -> Option<&'a [u8]> {
        self.iter().find(|(found, _)| *found == kind).map(|(_, data)| data)
    }

    /// All entries, kinds ascending.
    pub fn iter(&self) -> impl Iterator<Item = (SideKind, &'a [u8])> + use<'a> {
        let mut rest = self.bytes;
        core::iter::from_fn(move || {
            let (kind, after) = rest.split_first_chunk::<2>()?;
            let (len_bytes, after) = after.split_first_chunk::<4>()?;
            let (data, after) = after.split_at_checked(u32::from_le_bytes(*len_bytes) as usize)?;
            rest = after;
            Some((SideKind::new(u16::from_le_bytes(*kind)), data))
        })
    }

    /// The entries as stored.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// The maximum length of one entry's data, in bytes.
pub const MAX_LEN_BYTES: usize = u32::MAX as usize;

/// Appends one entry. The caller must append kinds in ascending order.
pub(crate) fn write_entry(writer: &mut Writer<'_>, kind: SideKind, data: &[u8]) {
    writer.u16(kind.get());
    writer
        .u32(u32::try_from(data.len()).expect("side data is at most MAX_LEN_BYTES: checked when it was set"));
    writer.bytes(data);
}
