//! Reads a pack part by part, from front to back.

use std::io::{Cursor, Read};
use std::sync::Arc;

use cg_format::wire::{Reader, Trace};
use cg_format::{DecodeError, Limits, Problem, Section};

use super::object::ObjectPage;
use super::property::PropertyPage;
use super::record::RecordPage;
use super::{Kind, PackInfo, SIGNATURE, VERSION, WITH_VALUES, check_whole};
use crate::error::SnapshotError;
use crate::file::SnapshotFile;
use crate::file::part::{self, Input, read_signature};
use crate::restore::Unverifiable;
use crate::snapshot::Snapshot;

/// A part of a pack.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// The box. Every section was verified, and unused names are removed.
    Region(Arc<Snapshot>),
    /// Some of the records in the box, before all properties and objects.
    Records(RecordPage),
    /// Some of the properties, before all objects.
    Properties(PropertyPage),
    /// Some of the objects.
    Objects(ObjectPage),
}

/// Reads a pack.
pub struct PackReader<'t, R> {
    input: Input<'t, R>,
    limits: Limits,
    version: u64,
    info: PackInfo,
    /// The kind of the last part, with the last key in it.
    last: Option<(Kind, Vec<u8>)>,
    is_over: bool,
}

/// Reads and checks a whole pack. Returns its numbers and its box.
///
/// # Errors
/// As [`PackReader::next_part`].
pub fn check(reader: impl Read, limits: Limits) -> Result<(PackInfo, Option<Arc<Snapshot>>), SnapshotError> {
    let mut pack = PackReader::open(reader, limits)?;
    let mut region = None;
    while let Some(part) = pack.next_part()? {
        if let Part::Region(snapshot) = part {
            region = Some(snapshot);
        }
    }
    Ok((pack.info, region))
}

pub(super) fn explain(bytes: &[u8], limits: Limits, trace: &Trace) -> Result<PackInfo, SnapshotError> {
    let mut pack = PackReader::open_traced(bytes, limits, Some(trace))?;
    while pack.next_part()?.is_some() {}
    Ok(pack.info)
}

impl<R: Read> PackReader<'static, R> {
    /// Opens a pack at its first byte and reads only its signature. Each part may take the memory that `limits` allow.
    ///
    /// # Errors
    /// [`SnapshotError::Decode`] if it is not a pack, or a newer one; [`SnapshotError::Io`].
    pub fn open(reader: R, limits: Limits) -> Result<Self, SnapshotError> {
        Self::open_traced(reader, limits, None)
    }
}

impl<'t, R: Read> PackReader<'t, R> {
    fn open_traced(reader: R, limits: Limits, trace: Option<&'t Trace>) -> Result<Self, SnapshotError> {
        let mut input = Input::new(reader, trace);
        let line = input.read(Section::PackHead, "signature", SIGNATURE.len())?;
        let version = if line == WITH_VALUES { VERSION } else { 1 };
        let signature = if version == VERSION { WITH_VALUES } else { SIGNATURE };
        read_signature(&mut Reader::new(&line, Section::PackHead).traced(trace), signature, VERSION)?;
        Ok(Self { input, limits, version, info: PackInfo::default(), last: None, is_over: false })
    }

    /// The numbers of what was read so far. After the last part they describe the whole pack.
    pub const fn info(&self) -> &PackInfo {
        &self.info
    }

    /// Returns the next part, checked; `None` after the last. Then the end part was read and agrees, and nothing
    /// follows it.
    ///
    /// # Errors
    /// [`SnapshotError::Decode`] with its place and cause; [`SnapshotError::InPack`] if a part has a valid checksum and
    /// invalid content; [`SnapshotError::Io`].
    pub fn next_part(&mut self) -> Result<Option<Part>, SnapshotError> {
        if self.is_over {
            return Ok(None);
        }
        let last = self.last.as_ref().map(|(kind, _)| *kind);
        let version = self.version;
        // Each part has the whole limits, because only one is in memory at a time.
        let part = self
            .input
            .part_of(Section::PackPart, &mut self.limits.clone(), |reader| kind(reader, version, last))?;
        let part::Part { kind, raw, checksum, at } = part;
        let in_pack = |error: SnapshotError| SnapshotError::InPack { at, error: Box::new(error) };
        let of_page = |error: DecodeError| in_pack(error.into());
        let before = self.last.take().filter(|(last, _)| *last == kind).map(|(_, key)| key);
        let (before, trace) = (before.as_deref(), self.input.trace());
        let (part, last_key) = match kind {
            Kind::Region => {
                let snapshot = read_region(&raw, self.limits).map_err(in_pack)?;
                self.info.region = Some(snapshot.info().clone());
                (Part::Region(Arc::new(snapshot)), Vec::new())
            }
            Kind::Records => {
                let region = self.info.region.as_ref().map(|info| info.region);
                let region = region.ok_or(SnapshotError::PackOrder)?;
                let page = RecordPage::decode(raw, before, region, trace).map_err(of_page)?;
                let mut last_key = Vec::new();
                for (id, record) in page.iter() {
                    self.info.records.add(record.len_bytes());
                    last_key = id.to_bytes().to_vec();
                }
                (Part::Records(page), last_key)
            }
            Kind::Properties => {
                let page = PropertyPage::decode(raw, before, trace).map_err(of_page)?;
                let mut last_key = Vec::new();
                for (name, bytes) in page.iter() {
                    self.info.properties.add(bytes.len());
                    last_key = name.as_str().into();
                }
                (Part::Properties(page), last_key)
            }
            Kind::Objects => {
                let page = ObjectPage::decode(raw, before, trace).map_err(of_page)?;
                page.iter().for_each(|object| self.info.count_object(&object));
                let last_key = page.iter().last().map(|object| object.key.to_vec());
                (Part::Objects(page), last_key.unwrap_or_default())
            }
            Kind::End => {
                check_end(&raw, &self.info, self.input.trace()).map_err(|error| in_pack(error.into()))?;
                self.check_nothing_follows()?;
                self.info.len_bytes = self.input.offset_bytes();
                self.is_over = true;
                return Ok(None);
            }
        };
        self.last = Some((kind, last_key));
        self.info.count_part(checksum);
        Ok(Some(part))
    }

    fn check_nothing_follows(&mut self) -> Result<(), SnapshotError> {
        let at = self.input.offset_bytes();
        match self.input.read(Section::PackEnd, "end", 1) {
            Ok(byte) => {
                let found = byte.first().copied().unwrap_or_default().into();
                let problem = Problem::NotZero { field: "bytes after the end", found };
                Err(DecodeError::new(Section::PackEnd, at, problem).into())
            }
            Err(SnapshotError::Decode(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn kind(reader: &mut Reader<'_>, version: u64, last: Option<Kind>) -> Result<Kind, DecodeError> {
    let here = reader.clone();
    let found = reader.u8("part")?;
    let kind = match found {
        1 => Some(Kind::Region),
        2 => Some(Kind::Objects),
        3 => Some(Kind::End),
        4 if version > 1 => Some(Kind::Records),
        5 if version > 1 => Some(Kind::Properties),
        _ => None,
    };
    let fits = |kind: &Kind| match kind {
        Kind::Region => last.is_none(),
        Kind::Records => matches!(last, Some(Kind::Region | Kind::Records)),
        kind => last.is_none_or(|last| last.place() <= kind.place()),
    };
    kind.filter(fits).ok_or_else(|| {
        let allowed = match version {
            1 => "1 for the box, in the first place alone, 2 for objects or 3 for the end",
            _ => "1 for the box, in the first place alone, then 4 for its records, 5 for properties, 2 for objects, 3 for the end",
        };
        here.error(Problem::OutOfRange { field: "part", found: found.into(), allowed })
    })
}

fn read_region(raw: &[u8], limits: Limits) -> Result<Snapshot, SnapshotError> {
    let mut snapshot = SnapshotFile::open(Cursor::new(raw), limits)?.load(Unverifiable::Fail)?;
    check_whole(&snapshot)?;
    snapshot.check()?;
    snapshot.forget_unused_names();
    Ok(snapshot)
}

fn check_end(raw: &[u8], info: &PackInfo, trace: Option<&Trace>) -> Result<(), DecodeError> {
    let mut reader = Reader::new(raw, Section::PackEnd).traced(trace);
    let here = reader.clone();
    let disagrees =
        |here: &Reader<'_>, field, found, expected| here.error(Problem::Disagrees { field, found, expected });
    let found = reader.u32("parts")?;
    if found != info.part_count {
        return Err(disagrees(&here, "parts", found.into(), info.part_count.into()));
    }
    let here = reader.clone();
    let found = reader.u64("objects")?;
    if found != info.object_count {
        return Err(disagrees(&here, "objects", found, info.object_count));
    }
    let here = reader.clone();
    let (found, expected) = (reader.u32("pack checksum")?, info.checksum);
    if found != expected {
        return Err(here.error(Problem::Checksum { found, expected }));
    }
    reader.end("bytes after the pack checksum")
}

impl<R> std::fmt::Debug for PackReader<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PackReader").field("info", &self.info).finish_non_exhaustive()
    }
}
