//! The rows of one part, ascending by family and key.

use alloc::vec::Vec;

use crate::key::Family;
use crate::wire::{Reader, Trace, Writer};
use crate::{DecodeError, Problem, Section};

/// Some rows of an archive, checked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowPage {
    raw: Vec<u8>,
    at: u64,
}

/// A family, a key and a row with its frame.
pub(super) type Row<'a> = (Family, &'a [u8], &'a [u8]);

impl RowPage {
    /// The rows, ascending: family, key, and row with its frame. Copies nothing.
    pub fn iter(&self) -> impl Iterator<Item = (Family, &[u8], &[u8])> {
        let mut reader = Reader::new(&self.raw, Section::ArchiveRows);
        core::iter::from_fn(move || read(&mut reader).ok())
    }

    /// Where the part begins in the archive.
    pub const fn offset_bytes(&self) -> u64 {
        self.at
    }

    /// Checks the bytes of a part. Its first row must be above `before`.
    pub(super) fn decode(
        raw: Vec<u8>,
        at: u64,
        before: Option<(Family, &[u8])>,
        trace: Option<&Trace>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(&raw, Section::ArchiveRows).traced(trace);
        let mut last = before.map(|(family, key)| (family.number(), key));
        for index in 0_u64.. {
            if index > 0 && reader.left_bytes() == 0 {
                break;
            }
            let here = reader.clone();
            let (family, key, _) = read(&mut reader)?;
            let place = (family.number(), key);
            if last.is_some_and(|last| last >= place) {
                let (field, allowed) = ("row", "one whose family and key lie above those of the row before");
                return Err(here.error(Problem::OutOfRange { field, found: index, allowed }));
            }
            last = Some(place);
        }
        Ok(Self { raw, at })
    }
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<Row<'a>, DecodeError> {
    let here = reader.clone();
    let number = reader.u8("family")?;
    let family = Family::from_number(number).ok_or_else(|| {
        let (field, allowed) = ("family", "the number of a family");
        here.error(Problem::OutOfRange { field, found: number.into(), allowed })
    })?;
    let here = reader.clone();
    let key_len_bytes = reader.u32("key len")?;
    if key_len_bytes == 0 {
        let (field, allowed) = ("key len", "1 and up");
        return Err(here.error(Problem::OutOfRange { field, found: 0, allowed }));
    }
    let len_bytes = reader.u32("row len")?;
    let key = reader.take("key", key_len_bytes as usize)?;
    let row = reader.take("row", len_bytes as usize)?;
    Ok((family, key, row))
}

/// Appends a row whose lengths were checked.
pub(super) fn write((family, key, row): Row<'_>, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.u8(family.number());
    writer.u32(key.len() as u32);
    writer.u32(row.len() as u32);
    writer.bytes(key);
    writer.bytes(row);
}
