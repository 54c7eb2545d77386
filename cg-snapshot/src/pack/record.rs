//! The spatial records of one part, ascending by UUID.

use cg_format::record::{Record, RecordView};
use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{DecodeError, Problem, RecordId, Section};

use crate::region::Region;

/// Some of the records in the box of a pack, checked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordPage {
    raw: Vec<u8>,
}

impl RecordPage {
    /// The records, ascending by UUID, with positions in the box. Copies nothing.
    pub fn iter(&self) -> impl Iterator<Item = (RecordId, RecordView<'_>)> {
        let mut reader = Reader::new(&self.raw, Section::PackRecords);
        std::iter::from_fn(move || read(&mut reader).ok())
    }

    /// The decompressed bytes of the part.
    pub fn as_bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Checks the bytes of a part. Its first UUID must be above `before`, and all positions in the region.
    pub(super) fn decode(
        raw: Vec<u8>,
        before: Option<&[u8]>,
        region: Region,
        trace: Option<&Trace>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(&raw, Section::PackRecords).traced(trace);
        let mut last: Option<[u8; 16]> = before.and_then(|before| before.try_into().ok());
        for index in 0_u64.. {
            if index > 0 && reader.left_bytes() == 0 {
                break;
            }
            let here = reader.clone();
            let refused =
                |allowed| here.error(Problem::OutOfRange { field: "record", found: index, allowed });
            let (id, record) = read(&mut reader)?;
            if last.is_some_and(|last| last >= id.to_bytes()) {
                return Err(refused("one whose UUID lies above that of the one before"));
            }
            if !is_inside(region, &record) {
                return Err(refused("one in the box of the pack"));
            }
            last = Some(id.to_bytes());
        }
        Ok(Self { raw })
    }
}

fn is_inside(region: Region, record: &RecordView<'_>) -> bool {
    record.position.dimension() == region.dimension() && region.area().contains(record.position.block())
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<(RecordId, RecordView<'a>), DecodeError> {
    let id = RecordId::from_bytes(reader.array("id")?);
    let len_bytes = reader.u32("record len")?;
    let at = reader.offset_bytes();
    let record = RecordView::decode(reader.take("record", len_bytes as usize)?);
    // Its offsets count from its own first byte.
    let record = record.map_err(|error| DecodeError { offset_bytes: at + error.offset_bytes, ..error })?;
    Ok((id, record))
}

/// Appends a record.
///
/// # Errors
/// If [`RecordPage::decode`] would refuse it, or if it has 4 GiB or more.
pub(super) fn write(
    id: RecordId,
    record: &Record,
    region: Region,
    out: &mut Vec<u8>,
) -> Result<(), DecodeError> {
    let error = |field, found, allowed| {
        let offset_bytes = out.len() as u64;
        DecodeError::new(Section::PackRecords, offset_bytes, Problem::OutOfRange { field, found, allowed })
    };
    if !is_inside(region, &record.view()) {
        return Err(error("record", 0, "one in the box of the pack"));
    }
    let too_long = |_| error("record len", record.len_bytes() as u64, "below 4 GiB");
    let len_bytes = u32::try_from(record.len_bytes()).map_err(too_long)?;
    let mut writer = Writer::new(out);
    writer.bytes(&id.to_bytes());
    writer.u32(len_bytes);
    record.encode(out);
    Ok(())
}
