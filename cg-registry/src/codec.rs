//! The bytes of a catalog: ten rows, and one more if a component has a type, each with tails until it is folded.
//!
//! A list of names is `u64 count`, then per name `u32 length, UTF-8`. A list of records is `u64 format version = 1`,
//! `u64 count`, then the records as bincode 2 writes them with fixed-width little-endian integers.
//! `docs/format/registry.md` has tables, reasons and an example.

mod fields;
mod rows;

use bincode::error::DecodeError;
use cg_format::wire::{Reader, Span, Trace};
use cg_format::{Problem, Section};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::block::BlockRow;
use crate::catalog::Catalog;
use crate::component::ComponentRow;
use crate::name::NamedError;
use crate::pack::{PackRow, RenameRow};
use crate::types::TypeRow;
use crate::{Name, RegistryError};

use fields::Fields;

pub use rows::{Row, is_registry_row};

/// The version of the record rows that this release writes, and the newest that it reads.
pub const FORMAT_VERSION: u64 = 1;

/// The maximum length of a record. It bounds the allocation that a damaged length can cause.
const MAX_RECORD_BYTES: usize = 1 << 20;

/// The maximum number of names or records in one row.
const MAX_ENTRIES: u64 = 1 << 24;

/// bincode with fixed-width little-endian integers. This function and its two callers are the only uses of bincode in
/// this crate.
const fn config() -> impl bincode::config::Config {
    bincode::config::standard()
        .with_fixed_int_encoding()
        .with_little_endian()
        .with_limit::<MAX_RECORD_BYTES>()
}

fn encode_record<T: Serialize>(record: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(record, config()).expect("records are checked when they are added; all fit")
}

fn decode_record<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, usize), String> {
    bincode::serde::decode_from_slice(bytes, config()).map_err(|error| match error {
        DecodeError::UnexpectedEnd { additional } => format!("{additional} bytes are missing at its end"),
        DecodeError::LimitExceeded => "it is over 1 MiB".into(),
        DecodeError::UnexpectedVariant { found, .. } => format!("{found} is no number of a variant"),
        DecodeError::InvalidBooleanValue(found) => format!("{found} is neither 0 nor 1"),
        DecodeError::Utf8 { .. } => "a text in it is no UTF-8".into(),
        DecodeError::OtherString(text) => text,
        other => other.to_string(),
    })
}

impl Catalog {
    /// The complete rows as (property name, bytes): ten, and one more if a component has a type. A store writes them when it creates a world, and replaces the
    /// tails with them when it opens and closes one.
    pub fn encode_full(&self) -> Vec<(String, Vec<u8>)> {
        let bytes = |row| match row {
            Row::List(list) => encode_names(self.list(list).names()),
            Row::ComponentSchemas => encode_records(self.component_rows.iter()),
            Row::BlockSchemas => encode_records(self.block_rows.iter()),
            Row::Renames => encode_records(&self.renames),
            Row::PackRecords => encode_records(&self.packs),
            Row::ComponentTypes => encode_records(&self.type_rows),
        };
        let is_stored = |row: &Row| !row.is_optional() || self.row_len(*row) > 0;
        Row::ALL.into_iter().filter(is_stored).map(|row| (row.name().into(), bytes(row))).collect()
    }

    /// Reads complete rows and tails, in any order. Other rows are skipped, so a store may pass its whole `worldMeta`.
    ///
    /// A tail must continue the entries before it. Where it overlaps them, it must agree.
    ///
    /// # Errors
    /// A [`RegistryError`] with the row, the byte and the value found. A world whose registry does not decode must not
    /// be written to, because its ids would get other meanings.
    pub fn decode<'a>(rows: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<Self, RegistryError> {
        let mut parts = rows::sort(rows)?;
        let mut catalog = Self::empty();
        for row in Row::ALL {
            let parts = std::mem::take(&mut parts[row.place()]);
            match row {
                Row::List(list) => load(
                    &mut catalog,
                    row,
                    parts,
                    |part, bytes| decode_names(part, bytes, None),
                    |catalog, index| catalog.list(list).name(index).cloned(),
                    |catalog, name| catalog.add_name(list, name).map(drop),
                )?,
                Row::ComponentSchemas => load(
                    &mut catalog,
                    row,
                    parts,
                    |part, bytes| decode_records(part, bytes, None),
                    |catalog, index| catalog.component_rows.get(index).cloned(),
                    Self::add_component_row,
                )?,
                Row::BlockSchemas => load(
                    &mut catalog,
                    row,
                    parts,
                    |part, bytes| decode_records(part, bytes, None),
                    |catalog, index| catalog.block_rows.get(index).cloned(),
                    Self::add_block_row,
                )?,
                Row::Renames => load(
                    &mut catalog,
                    row,
                    parts,
                    |part, bytes| decode_records(part, bytes, None),
                    |catalog, index| catalog.renames.get(index as usize).cloned(),
                    Self::add_rename,
                )?,
                Row::PackRecords => load(
                    &mut catalog,
                    row,
                    parts,
                    |part, bytes| decode_records(part, bytes, None),
                    |catalog, index| catalog.packs.get(index as usize).cloned(),
                    |catalog, pack| {
                        catalog.add_pack(pack);
                        Ok(())
                    },
                )?,
                Row::ComponentTypes => load(
                    &mut catalog,
                    row,
                    parts,
                    |part, bytes| decode_records(part, bytes, None),
                    |catalog, index| catalog.type_rows.get(index as usize).cloned(),
                    Self::add_type_row,
                )?,
            }
        }
        catalog.check_complete()?;
        Ok(catalog)
    }
}

/// An entry of a row and the byte at which it starts.
type Located<T> = (u64, T);

fn load<T: PartialEq + std::fmt::Debug>(
    catalog: &mut Catalog,
    row: Row,
    parts: Vec<rows::Part<'_>>,
    decode: impl Fn(&str, &[u8]) -> Result<Vec<Located<T>>, RegistryError>,
    known: impl Fn(&Catalog, u64) -> Option<T>,
    add: impl Fn(&mut Catalog, T) -> Result<(), RegistryError>,
) -> Result<(), RegistryError> {
    for part in parts {
        let expected = catalog.row_len(row);
        if part.first > expected {
            return Err(RegistryError::Gap { row: part.name.into(), expected, found: part.first });
        }
        for (at, (offset_bytes, entry)) in decode(part.name, part.bytes)?.into_iter().enumerate() {
            let index = part.first + at as u64;
            match known(catalog, index) {
                None => add(catalog, entry).map_err(|error| RegistryError::Record {
                    row: part.name.into(),
                    index: at as u64,
                    offset_bytes,
                    reason: match error {
                        RegistryError::Inconsistent { reason, .. } => reason,
                        error => error.to_string(),
                    },
                })?,
                Some(folded) if folded == entry => {}
                Some(folded) => {
                    let (row, folded, tail) = (part.name.into(), format!("{folded:?}"), format!("{entry:?}"));
                    return Err(RegistryError::Disagrees { row, index, folded, tail });
                }
            }
        }
    }
    Ok(())
}

/// Explains the bytes of one row, field by field, as far as they decode.
pub fn trace(row_name: &str, bytes: &[u8]) -> (Vec<Span>, Result<(), RegistryError>) {
    let trace = Trace::default();
    let result = rows::parse_name(row_name).and_then(|found| match found {
        None => Err(RegistryError::RowName { row: row_name.into() }),
        Some((Row::List(_), _)) => decode_names(row_name, bytes, Some(&trace)).map(drop),
        Some((Row::ComponentSchemas, _)) => {
            decode_records::<ComponentRow>(row_name, bytes, Some(&trace)).map(drop)
        }
        Some((Row::BlockSchemas, _)) => decode_records::<BlockRow>(row_name, bytes, Some(&trace)).map(drop),
        Some((Row::Renames, _)) => decode_records::<RenameRow>(row_name, bytes, Some(&trace)).map(drop),
        Some((Row::PackRecords, _)) => decode_records::<PackRow>(row_name, bytes, Some(&trace)).map(drop),
        Some((Row::ComponentTypes, _)) => decode_records::<TypeRow>(row_name, bytes, Some(&trace)).map(drop),
    });
    (trace.into_inner(), result)
}

pub(crate) fn encode_names(names: &[Name]) -> Vec<u8> {
    let len_bytes: usize = names.iter().map(|name| 4 + name.as_str().len()).sum();
    let mut out = Vec::with_capacity(8 + len_bytes);
    out.extend((names.len() as u64).to_le_bytes());
    for name in names {
        out.extend((name.as_str().len() as u32).to_le_bytes());
        out.extend(name.as_str().as_bytes());
    }
    out
}

fn decode_names(row: &str, bytes: &[u8], trace: Option<&Trace>) -> Result<Vec<Located<Name>>, RegistryError> {
    let bad = |error| RegistryError::Bytes { row: row.into(), error };
    let mut reader = Reader::new(bytes, Section::NameList).traced(trace);
    let count = read_count(&mut reader, "name count", "names", 4).map_err(bad)?;
    let mut out = Vec::with_capacity(count as usize);
    for index in 0..count {
        let before = reader.clone();
        let len_bytes = reader.u32("name length").map_err(bad)?;
        if len_bytes as usize > Name::MAX_LEN_BYTES {
            let (field, found, allowed) = ("name length", len_bytes.into(), "at most 65535");
            return Err(bad(before.error(Problem::OutOfRange { field, found, allowed })));
        }
        let offset_bytes = reader.offset_bytes();
        let text = reader.take("name", len_bytes as usize).map_err(bad)?;
        let text = std::str::from_utf8(text).map_err(|error| {
            let (good, row) = (error.valid_up_to(), row.into());
            let found = text.get(good).copied().unwrap_or_default();
            RegistryError::Utf8 { row, index, offset_bytes: offset_bytes + good as u64, found }
        })?;
        let name = Name::from_stored(text).map_err(|error| {
            let error = NamedError { text: text.into(), error };
            RegistryError::StoredName { row: row.into(), index, offset_bytes, error }
        })?;
        out.push((offset_bytes, name));
    }
    reader.end("bytes after the last name").map_err(bad)?;
    Ok(out)
}

pub(crate) fn encode_records<'a, T: Serialize + 'a>(
    records: impl IntoIterator<Item = &'a T, IntoIter: Clone>,
) -> Vec<u8> {
    let records = records.into_iter();
    let mut out = FORMAT_VERSION.to_le_bytes().to_vec();
    out.extend((records.clone().count() as u64).to_le_bytes());
    for record in records {
        out.extend(encode_record(record));
    }
    out
}

fn decode_records<T: DeserializeOwned + Fields>(
    row: &str,
    bytes: &[u8],
    trace: Option<&Trace>,
) -> Result<Vec<Located<T>>, RegistryError> {
    let bad = |error| RegistryError::Bytes { row: row.into(), error };
    let mut reader = Reader::new(bytes, Section::Records).traced(trace);
    reader.version_u64("format version", FORMAT_VERSION).map_err(bad)?;
    // The shortest record, a type without fields, has 20 bytes.
    let count = read_count(&mut reader, "record count", "records", 20).map_err(bad)?;
    let mut out = Vec::new();
    for index in 0..count {
        let offset_bytes = reader.offset_bytes();
        let rest = reader.clone().rest();
        if trace.is_some() {
            // Only records the fields. An error in a record comes from its decoder.
            let mut fields = Reader::at_offset(rest, offset_bytes, Section::Record).traced(trace);
            let _ = T::take(&mut fields);
        }
        let (record, len_bytes) = decode_record(rest).map_err(|reason| RegistryError::Record {
            row: row.into(),
            index,
            offset_bytes,
            reason,
        })?;
        reader = reader.traced(None);
        reader.take("record", len_bytes).map_err(bad)?;
        out.push((offset_bytes, record));
    }
    reader.end("bytes after the last record").map_err(bad)?;
    Ok(out)
}

/// Reads a count and checks that the remaining bytes can hold that many entries of at least `width_bytes`.
fn read_count(
    reader: &mut Reader<'_>,
    field: &'static str,
    items: &'static str,
    width_bytes: u64,
) -> Result<u64, cg_format::DecodeError> {
    let before = reader.clone();
    let count = reader.u64(field)?;
    if count > MAX_ENTRIES {
        return Err(before.error(Problem::OutOfRange { field, found: count, allowed: "at most 16777216" }));
    }
    let left = reader.left_bytes() as u64;
    if count * width_bytes > left {
        return Err(before.error(Problem::CountExceedsInput {
            field: items,
            count,
            width: width_bytes,
            left,
        }));
    }
    Ok(count)
}

#[cfg(test)]
mod tests;
