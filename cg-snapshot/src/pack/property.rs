//! The properties of one part, ascending by name.

use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{DecodeError, Problem, Section};
use cg_registry::Name;

/// Some properties of a pack, checked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PropertyPage {
    raw: Vec<u8>,
}

impl PropertyPage {
    /// The properties with their values, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (Name, &[u8])> {
        let mut reader = Reader::new(&self.raw, Section::PackProperties);
        std::iter::from_fn(move || read(&mut reader).ok())
    }

    /// The decompressed bytes of the part.
    pub fn as_bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Checks the bytes of a part. Its first name must be above `before`.
    pub(super) fn decode(
        raw: Vec<u8>,
        before: Option<&[u8]>,
        trace: Option<&Trace>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(&raw, Section::PackProperties).traced(trace);
        let mut last: Option<Name> = None;
        for index in 0_u64.. {
            if index > 0 && reader.left_bytes() == 0 {
                break;
            }
            let here = reader.clone();
            let (name, _) = read(&mut reader)?;
            let last_name = last.as_ref().map(|last| last.as_str().as_bytes());
            if last_name.or(before).is_some_and(|last| last >= name.as_str().as_bytes()) {
                let (field, allowed) = ("property", "one whose name lies above that of the one before");
                return Err(here.error(Problem::OutOfRange { field, found: index, allowed }));
            }
            last = Some(name);
        }
        Ok(Self { raw })
    }
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<(Name, &'a [u8]), DecodeError> {
    let here = reader.clone();
    let name_len_bytes = reader.u16("name len")?;
    let len_bytes = reader.u32("bytes len")?;
    let text = reader.take("name", name_len_bytes.into())?;
    let name = str::from_utf8(text).ok().and_then(|text| Name::new(text).ok());
    let name = name.ok_or_else(|| {
        let (field, found) = ("name len", name_len_bytes.into());
        here.error(Problem::OutOfRange { field, found, allowed: "that of a name `namespace:identifier`" })
    })?;
    let bytes = reader.take("bytes", len_bytes as usize)?;
    Ok((name, bytes))
}

/// Appends a property.
///
/// # Errors
/// If it has 4 GiB or more.
pub(super) fn write(name: &Name, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let text = name.as_str().as_bytes();
    let error = |field, found, allowed| {
        let offset_bytes = out.len() as u64;
        DecodeError::new(Section::PackProperties, offset_bytes, Problem::OutOfRange { field, found, allowed })
    };
    let name_len_bytes =
        u16::try_from(text.len()).map_err(|_| error("name len", text.len() as u64, "up to 65,535"))?;
    let len_bytes =
        u32::try_from(bytes.len()).map_err(|_| error("bytes len", bytes.len() as u64, "below 4 GiB"))?;
    let mut writer = Writer::new(out);
    writer.u16(name_len_bytes);
    writer.u32(len_bytes);
    writer.bytes(text);
    writer.bytes(bytes);
    Ok(())
}
