//! The fields of a record, for a tool that explains its bytes.
//!
//! bincode decodes records and does not report fields. These readers follow its layout only to explain bytes. Tests
//! compare them with the tables in `docs/format/registry.md` and check that they explain every byte of the golden rows.

use cg_format::wire::Reader;
use cg_format::{DecodeError, Problem};

use crate::block::BlockRow;
use crate::component::ComponentRow;
use crate::pack::{PackRow, RenameRow};
use crate::types::TypeRow;

/// A record whose fields can be explained.
pub(super) trait Fields {
    /// Reads the record's fields in order, up to the first invalid one.
    fn take(reader: &mut Reader<'_>) -> Result<(), DecodeError>;
}

impl Fields for ComponentRow {
    fn take(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        reader.u32("generation")?;
        reader.u64("component")?;
        reader.u32("width")?;
        bytes(reader, "default length", "default")?;
        for _ in 0..reader.u64("field count")? {
            bytes(reader, "field name length", "field name")?;
            reader.u32("field width")?;
        }
        if flag(reader, "replaces")? {
            reader.u64("replaced component")?;
            reader.u32("conversion")?;
        }
        Ok(())
    }
}

impl Fields for BlockRow {
    fn take(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        reader.u32("generation")?;
        reader.u64("block")?;
        flag(reader, "opaque")?;
        let count = reader.u64("component count")?;
        reader.take_items("components", count, 8).map(drop)
    }
}

impl Fields for RenameRow {
    fn take(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        reader.u32("list")?;
        reader.u64("entry")?;
        bytes(reader, "name length", "name")
    }
}

impl Fields for PackRow {
    fn take(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        bytes(reader, "pack length", "pack")?;
        bytes(reader, "version length", "version")?;
        for _ in 0..reader.u64("namespace count")? {
            bytes(reader, "namespace length", "namespace")?;
        }
        flag(reader, "present").map(drop)
    }
}

impl Fields for TypeRow {
    fn take(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        reader.u64("component")?;
        match reader.u32("content")? {
            0 => typed_fields(reader),
            1 | 2 => reader.u64("maximum length").map(drop),
            _ => {
                reader.u64("maximum items")?;
                typed_fields(reader)
            }
        }
    }
}

fn typed_fields(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    for _ in 0..reader.u64("field count")? {
        bytes(reader, "field name length", "field name")?;
        reader.u32("field width")?;
        match reader.u32("type")? {
            1 | 2 => {
                reader.u64("minimum")?;
                reader.u64("maximum")?;
            }
            5 => {
                for _ in 0..reader.u64("value count")? {
                    bytes(reader, "value name length", "value name")?;
                }
            }
            _ => {}
        }
        reader.u32("item count")?;
    }
    Ok(())
}

/// A count of bytes and the bytes.
fn bytes(reader: &mut Reader<'_>, length: &'static str, field: &'static str) -> Result<(), DecodeError> {
    let count = reader.u64(length)?;
    reader.take_items(field, count, 1).map(drop)
}

/// A byte that is 0 or 1.
fn flag(reader: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    let before = reader.clone();
    match reader.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        found => Err(before.error(Problem::OutOfRange { field, found: found.into(), allowed: "0 or 1" })),
    }
}
