//! The objects of one part, ascending by key.

use cg_format::key::OBJECT_MAX_LEN_BYTES;
use cg_format::wire::{Reader, Trace, Writer};
use cg_format::{DecodeError, Problem, Section};

/// An object in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedObject<'a> {
    /// Its key, 1 to 512 bytes.
    pub key: &'a [u8],
    /// Its version in the source world, from 0. Another world counts its own versions.
    pub version: i64,
    /// Its content.
    pub bytes: &'a [u8],
}

/// Some objects of a pack, checked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectPage {
    raw: Vec<u8>,
}

impl ObjectPage {
    /// The objects, ascending by key. Copies nothing.
    pub fn iter(&self) -> impl Iterator<Item = PackedObject<'_>> {
        let mut reader = Reader::new(&self.raw, Section::PackObjects);
        std::iter::from_fn(move || read(&mut reader).ok())
    }

    /// The decompressed bytes of the part.
    pub fn as_bytes(&self) -> &[u8] {
        &self.raw
    }

    /// Checks the bytes of a part. Its first key must be above `before`.
    pub(super) fn decode(
        raw: Vec<u8>,
        before: Option<&[u8]>,
        trace: Option<&Trace>,
    ) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(&raw, Section::PackObjects).traced(trace);
        let mut last = before;
        for index in 0_u64.. {
            if index > 0 && reader.left_bytes() == 0 {
                break;
            }
            let here = reader.clone();
            let object = read(&mut reader)?;
            if last.is_some_and(|last| last >= object.key) {
                let (field, allowed) = ("object", "one whose key lies above that of the one before");
                return Err(here.error(Problem::OutOfRange { field, found: index, allowed }));
            }
            last = Some(object.key);
        }
        Ok(Self { raw })
    }
}

fn read<'a>(reader: &mut Reader<'a>) -> Result<PackedObject<'a>, DecodeError> {
    let here = reader.clone();
    let version = reader.i64("version")?;
    if version < 0 {
        let (field, found) = ("version", version.cast_unsigned());
        return Err(here.error(Problem::OutOfRange { field, found, allowed: "0 to 2^63 - 1" }));
    }
    let here = reader.clone();
    let key_len_bytes = usize::from(reader.u16("key len")?);
    if !(1..=OBJECT_MAX_LEN_BYTES).contains(&key_len_bytes) {
        let (field, found) = ("key len", key_len_bytes as u64);
        return Err(here.error(Problem::OutOfRange { field, found, allowed: "1 to 512" }));
    }
    let len_bytes = reader.u32("bytes len")?;
    let key = reader.take("key", key_len_bytes)?;
    let bytes = reader.take("bytes", len_bytes as usize)?;
    Ok(PackedObject { key, version, bytes })
}

/// Appends an object.
///
/// # Errors
/// If [`ObjectPage::decode`] would refuse it, or if it has 4 GiB or more.
pub(super) fn write(object: &PackedObject<'_>, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let PackedObject { key, version, bytes } = object;
    let error = |field, found, allowed| {
        let offset_bytes = out.len() as u64;
        DecodeError::new(Section::PackObjects, offset_bytes, Problem::OutOfRange { field, found, allowed })
    };
    if *version < 0 {
        return Err(error("version", version.cast_unsigned(), "0 to 2^63 - 1"));
    }
    if !(1..=OBJECT_MAX_LEN_BYTES).contains(&key.len()) {
        return Err(error("key len", key.len() as u64, "1 to 512"));
    }
    let too_long = |_| error("bytes len", bytes.len() as u64, "below 4 GiB");
    let len_bytes = u32::try_from(bytes.len()).map_err(too_long)?;
    let mut writer = Writer::new(out);
    writer.i64(*version);
    writer.u16(key.len() as u16);
    writer.u32(len_bytes);
    writer.bytes(key);
    writer.bytes(bytes);
    Ok(())
}
