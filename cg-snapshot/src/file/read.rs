//! Reads a file: head, names, index and entities when it is opened, sections when they are needed.

use std::io::{Read, Seek};
use std::ops::Range;

use cg_format::codec::decompress;
use cg_format::entity::Entity;
use cg_format::wire::{Reader, Trace};
use cg_format::{DecodeError, EntityId, Limits, Problem, Section};
use cg_registry::portable::Names;

use super::index::{Group, Index, Kept};
use super::part::{Input, Kind};
use super::{head, names};
use crate::capture::is_captured;
use crate::error::SnapshotError;
use crate::kept::{KeptSection, KeptWriter};
use crate::places::{LOST, Places};
use crate::restore::Unverifiable;
use crate::snapshot::{Snapshot, SnapshotInfo};

/// The fewest bytes of a stored entity: UUID, length, and an entity that a chunk owns, without components.
const ENTITY_MIN_LEN_BYTES: u64 = 16 + 4 + 97;

/// An open snapshot file. A section is read and decompressed when it is requested, with its whole group.
pub struct SnapshotFile<'t, R> {
    input: Input<'t, R>,
    limits: Limits,
    info: SnapshotInfo,
    names: Names,
    index: Index,
    entities: Vec<(EntityId, Entity)>,
    /// The first section of each group, and where the group starts in the file.
    starts: Vec<(usize, u64)>,
    /// Where the last group ends.
    end: u64,
    /// The group that was read last, decompressed.
    last: Option<(usize, Vec<u8>)>,
}

/// A group in the file.
struct Start {
    at: u64,
    /// The numbers of its sections.
    sections: Range<usize>,
}

impl<R: Read + Seek> SnapshotFile<'static, R> {
    /// Opens a file at its first byte and reads everything except the sections.
    ///
    /// # Errors
    /// [`SnapshotError::Decode`] gives the place and the cause. A truncated file is an error as soon as a missing byte
    /// is needed.
    pub fn open(reader: R, limits: Limits) -> Result<Self, SnapshotError> {
        Self::open_traced(reader, limits, None)
    }
}

impl<'t, R: Read + Seek> SnapshotFile<'t, R> {
    pub(super) fn open_traced(
        reader: R,
        mut limits: Limits,
        trace: Option<&'t Trace>,
    ) -> Result<Self, SnapshotError> {
        let mut input = Input::new(reader, trace);
        let (info, version) = head::read(&mut input)?;
        let raw = input.part(Kind::Names, &mut limits)?;
        let names = names::decode(&raw, version, &mut limits, trace)?;
        let raw = input.part(Kind::Index, &mut limits)?;
        let index = Index::decode(&raw, &info, trace)?;
        let raw = input.part(Kind::Entities, &mut limits)?;
        let entities = decode_entities(&raw, &info, &names, &mut limits, trace)?;
        let mut behind = (0, input.offset_bytes());
        let starts = index.groups.iter().map(|group| {
            let (section, at) = behind;
            let next = (section + group.section_count as usize, at + u64::from(group.stored_len_bytes));
            std::mem::replace(&mut behind, next)
        });
        let starts = starts.collect();
        Ok(Self { input, limits, info, names, index, entities, starts, end: behind.1, last: None })
    }

    /// The head of the snapshot.
    pub const fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// The names of its ids.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The reader, at its current position.
    pub fn into_inner(self) -> R {
        self.input.into_inner()
    }

    /// Returns a section by its place in the order of [`Region::sections`](crate::Region::sections); `None` if there
    /// was no chunk. Reads and decompresses the section's group, unless it is the last one read.
    ///
    /// # Errors
    /// [`SnapshotError::Decode`] if the group is damaged or truncated, or the section's checksum does not match.
    pub fn section(&mut self, index: usize) -> Result<Option<KeptSection<'_>>, SnapshotError> {
        let place = self.index.places.get(index).copied().unwrap_or(0);
        let Some(wanted) = (place as usize).checked_sub(1) else { return Ok(None) };
        let behind = self.starts.partition_point(|(first, _)| *first <= wanted);
        let Some(number) = behind.checked_sub(1) else { return Ok(None) };
        let Some(Start { at, sections }) = self.start(number) else { return Ok(None) };
        let first = sections.start;
        self.read_group(number)?;
        let raw = self.last.as_ref().map_or(&[][..], |(_, raw)| raw);
        sections_of(raw, self.index.kept.get(sections).unwrap_or_default(), at)
            .nth(wanted - first)
            .transpose()
    }

    /// Loads everything into memory. If the checksum of a group or section does not match, [`Unverifiable::Skip`] makes
    /// its sections [lost](crate::Place::Lost) and loads the rest; [`Unverifiable::Fail`] returns the first error.
    ///
    /// All sections are charged to the limits, because they are in memory at once.
    ///
    /// # Errors
    /// As [`section`](Self::section), and if bytes follow the last group.
    pub fn load(&mut self, unverifiable: Unverifiable) -> Result<Snapshot, SnapshotError> {
        let all_bytes = self.info.unique_bytes;
        let at = self.starts.first().map_or(self.end, |(_, at)| *at);
        self.limits.clone().spend(Section::SnapshotIndex, at, "all sections", all_bytes)?;
        // By stored section: its new number, which counts only the readable ones, or lost.
        let mut numbers = Vec::with_capacity(self.index.kept.len());
        let mut kept = KeptWriter::default();
        for number in 0..self.index.groups.len() {
            let Some(Start { at, sections }) = self.start(number) else { break };
            let count = sections.len();
            let read = self.read_group(number);
            let of_group = self.index.kept.get(sections).unwrap_or_default();
            let sections: Vec<_> = match read {
                Ok(()) => {
                    let raw = self.last.as_ref().map_or(&[][..], |(_, raw)| raw);
                    sections_of(raw, of_group, at).collect()
                }
                Err(error) => {
                    // The first section of an unreadable group makes the whole group lost.
                    std::iter::once(Err(error)).collect()
                }
            };
            let behind = count - sections.len();
            for section in sections {
                match section {
                    Ok(section) => {
                        kept.push(section.bytes(), section.checksum());
                        numbers.push(kept.len() as u32);
                    }
                    Err(error) if unverifiable == Unverifiable::Fail => return Err(error),
                    Err(_) => numbers.push(LOST),
                }
            }
            numbers.extend(std::iter::repeat_n(LOST, behind));
        }
        self.check_end(unverifiable)?;
        let renumbered = |place: &u32| match (*place as usize).checked_sub(1) {
            None => 0,
            Some(index) => numbers.get(index).copied().unwrap_or(LOST),
        };
        let places: Vec<u32> = self.index.places.iter().map(renumbered).collect();
        let (info, names) = (self.info.clone(), self.names.clone());
        Ok(Snapshot::new(info, names, Places::new(&places), kept.finish(), self.entities.clone()))
    }

    /// Where a group starts, and its sections.
    fn start(&self, number: usize) -> Option<Start> {
        let (first, at) = *self.starts.get(number)?;
        let count = self.index.groups.get(number)?.section_count as usize;
        Some(Start { at, sections: first..first + count })
    }

    fn read_group(&mut self, number: usize) -> Result<(), SnapshotError> {
        if self.last.as_ref().is_some_and(|(last, _)| *last == number) {
            return Ok(());
        }
        let Some(group) = self.index.groups.get(number).copied() else { return Ok(()) };
        let Some(Start { at, sections }) = self.start(number) else { return Ok(()) };
        let kept = self.index.kept.get(sections).unwrap_or_default();
        let raw_len_bytes: u64 = kept.iter().map(|kept| u64::from(kept.len_bytes)).sum();
        self.input.seek(at)?;
        let raw = read_group(&mut self.input, group, at, raw_len_bytes, self.limits)?;
        self.last = Some((number, raw));
        Ok(())
    }

    fn check_end(&mut self, unverifiable: Unverifiable) -> Result<(), SnapshotError> {
        let end = self.end;
        self.input.seek(end)?;
        match self.input.read(Section::SnapshotGroup, "end", 1) {
            Ok(byte) if unverifiable == Unverifiable::Fail => {
                let found = byte.first().copied().unwrap_or_default().into();
                let problem = Problem::NotZero { field: "bytes after the last group", found };
                Err(DecodeError::new(Section::SnapshotGroup, end, problem).into())
            }
            Ok(_) | Err(SnapshotError::Decode(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn read_group(
    input: &mut Input<'_, impl Read>,
    group: Group,
    at: u64,
    raw_len_bytes: u64,
    mut limits: Limits,
) -> Result<Vec<u8>, SnapshotError> {
    limits.spend(Section::SnapshotGroup, at, "a group", raw_len_bytes)?;
    let stored = input.read(Section::SnapshotGroup, "group", group.stored_len_bytes as usize)?;
    let (found, expected) = (group.checksum, crc32c::crc32c(&stored));
    let error = |problem| DecodeError::new(Section::SnapshotGroup, at, problem);
    if found != expected {
        return Err(error(Problem::Checksum { found, expected }).into());
    }
    let mut raw = Vec::new();
    decompress(group.codec, &stored, raw_len_bytes as usize, &mut raw).map_err(error)?;
    Ok(raw)
}

/// The sections of a group, each verified.
fn sections_of<'r>(
    raw: &'r [u8],
    kept: &'r [Kept],
    at: u64,
) -> impl Iterator<Item = Result<KeptSection<'r>, SnapshotError>> + use<'r> {
    let mut reader = Reader::at_offset(raw, at, Section::SnapshotGroup);
    kept.iter().map(move |kept| {
        let here = reader.clone();
        let bytes = reader.take("section", kept.len_bytes as usize)?;
        let (found, expected) = (kept.checksum, crc32c::crc32c(bytes));
        if found != expected {
            return Err(here.error(Problem::Checksum { found, expected }).into());
        }
        Ok(KeptSection::new(bytes, kept.checksum))
    })
}

fn decode_entities(
    raw: &[u8],
    info: &SnapshotInfo,
    names: &Names,
    limits: &mut Limits,
    trace: Option<&Trace>,
) -> Result<Vec<(EntityId, Entity)>, DecodeError> {
    let mut reader = Reader::new(raw, Section::SnapshotEntities).traced(trace);
    let (count, width, left) = (info.entity_count, ENTITY_MIN_LEN_BYTES, raw.len() as u64);
    if count.checked_mul(width).is_none_or(|needed| needed > left) {
        return Err(reader.error(Problem::CountExceedsInput { field: "entities", count, width, left }));
    }
    // An entity takes more in memory than in the part.
    let needed = count * size_of::<(EntityId, Entity)>() as u64;
    limits.spend(Section::SnapshotEntities, reader.offset_bytes(), "entities", needed)?;
    let mut entities: Vec<(EntityId, Entity)> = Vec::with_capacity(count as usize);
    for index in 0..count {
        let here = reader.clone();
        let id = EntityId::from_bytes(reader.array("uuid")?);
        if entities.last().is_some_and(|(last, _)| *last >= id) {
            let allowed = "entities ascending by UUID";
            return Err(here.error(Problem::OutOfRange { field: "uuid", found: index, allowed }));
        }
        let len_bytes = reader.u32("entity len")?;
        let here = reader.clone();
        let entity = Entity::decode(reader.take("entity", len_bytes as usize)?);
        let entity = entity.map_err(|error| DecodeError {
            offset_bytes: here.offset_bytes() + error.offset_bytes,
            ..error
        })?;
        if !is_captured(&entity, info.region) {
            let allowed = "an entity that stands in the box and belongs to one of its chunks";
            return Err(here.error(Problem::OutOfRange { field: "entity", found: index, allowed }));
        }
        if !names.entities.contains_key(&entity.kind) {
            let (field, found) = ("entity kind", entity.kind.get());
            return Err(here.error(Problem::OutOfRange { field, found, allowed: "a kind that has a name" }));
        }
        let mut components = entity.components().map(|(component, _)| component);
        if let Some(component) = components.find(|it| !names.components.contains_key(it)) {
            let (field, found) = ("entity component", component.get());
            return Err(here.error(Problem::OutOfRange {
                field,
                found,
                allowed: "a component that has a name",
            }));
        }
        drop(components);
        entities.push((id, entity));
    }
    reader.end("bytes after the entities")?;
    Ok(entities)
}

impl<R> std::fmt::Debug for SnapshotFile<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotFile").field("info", &self.info).finish_non_exhaustive()
    }
}
