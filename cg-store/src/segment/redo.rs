//! What the root remembers of a promotion that changes several segments, until it is carried out in all of them.
//!
//! The property `:promotion`, of which there is at most one, makes it count:
//!
//! | width | field |
//! |---|---|
//! | 1 | version: 2 |
//! | 16 | the promotion's own UUID |
//! | 4 | schema generation of its chunks |
//! | 4 | segment count; then for each segment |
//! | 32 | its place: dimension u64, x, y, z i64 |
//! | 4 | count of its pieces |
//! | 8 | its last commit when the promotion came to count |
//!
//! The pieces of a segment are the properties `:promotion/S.P`, number of the segment and of the piece as eight
//! hexadecimal digits each, and are there before it counts. Each begins with a byte, 1 in the last of its segment and 0 in
//! the others. What follows it in one piece after the other is the part of that segment:
//!
//! | width | field |
//! |---|---|
//! | 1 | version: 2 |
//! | 16 | the promotion's own UUID |
//! | 4 | schema generation of its chunks |
//! | 4 | segment count |
//! | 32 | the place of this segment; then for each change |
//! | 1 | 0 chunk, 1 entity |
//! | 1 | 0 deleted, 1 here |
//! | 32 or 16 | the chunk's key, or the entity's UUID |
//! | 4 | if it is here: length in bytes |
//! | … | if it is here: the chunk with its side data, or the entity |
//!
//! So the pieces say all that `:promotion` does, but for the commits, and where it is damaged they are read instead.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::wire::{Reader, Writer};
use cg_format::{ChunkAt, DecodeError, EntityId, Problem, Section, Tier, key};
use cg_registry::{Catalog, UpgradeFunctions};
use uuid::Uuid;

use super::pieces::Pieces;
use super::place::{promotion_property, whole};
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};
use crate::chunk::StoredChunk;
use crate::chunk::decode::decode;
use crate::engine::EngineError;
use crate::entity::upgrade;
use crate::error::{DamageCause, Error};
use crate::transaction::Transaction;

const VERSION: u8 = 2;
const CHUNK: u8 = 0;
const ENTITY: u8 = 1;

/// What a promotion changes in one segment; no value is a deletion.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Part {
    pub(super) chunks: Vec<(ChunkAt, Option<Arc<Chunk>>)>,
    pub(super) entities: Vec<(EntityId, Option<Entity>)>,
}

/// A promotion that counts: which segments it changes, and where it says how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redo {
    pub(super) id: Uuid,
    pub(super) generation: u32,
    pub(super) segments: Vec<Kept>,
}

/// A segment of a promotion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    /// By which its pieces are named.
    pub(super) number: u32,
    pub(super) segment: SegmentPos,
    /// How many pieces its part has.
    pub(super) pieces: u32,
    /// Its last commit when the promotion came to count; [`u64::MAX`] if nobody knows. What is newer was written by
    /// somebody who opened the segment alone.
    pub(super) commit: u64,
}

/// What a part begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartHead {
    pub(super) id: Uuid,
    pub(super) generation: u32,
    pub(super) segment_count: u32,
    pub(super) segment: SegmentPos,
}

impl Redo {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.u8(VERSION);
        writer.bytes(self.id.as_bytes());
        writer.u32(self.generation);
        writer.u32(u32::try_from(self.segments.len()).unwrap_or(u32::MAX));
        for Kept { number: _, segment, pieces, commit } in &self.segments {
            segment.encode(&mut bytes);
            let mut writer = Writer::new(&mut bytes);
            writer.u32(*pieces);
            writer.u64(*commit);
        }
        bytes
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_version(reader)?;
        let id = reader.array("promotion uuid").map(Uuid::from_bytes)?;
        let generation = reader.u32("schema generation")?;
        let count = reader.u32("segment count")?;
        let mut segments = Vec::new();
        for number in 0..count {
            let segment = SegmentPos::read(reader)?;
            let (pieces, commit) = (reader.u32("piece count")?, reader.u64("last commit")?);
            segments.push(Kept { number, segment, pieces, commit });
        }
        Ok(Self { id, generation, segments })
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentPos> {
        self.segments.iter().map(|kept| kept.segment)
    }

    fn of_segment(&self, segment: SegmentPos) -> Option<Kept> {
        self.segments.iter().find(|kept| kept.segment == segment).copied()
    }

    /// The last commit of a segment when it came to count.
    pub(super) fn commit_of(&self, segment: SegmentPos) -> u64 {
        self.of_segment(segment).map_or(u64::MAX, |kept| kept.commit)
    }
}

/// Those of earlier drafts are not read.
fn read_version(reader: &mut Reader<'_>) -> Result<(), DecodeError> {
    let field = "promotion version";
    let at = reader.offset_bytes();
    let found = reader.version_u8(field, VERSION)?;
    if found == VERSION {
        return Ok(());
    }
    let problem = Problem::OutOfRange { field, found: found.into(), allowed: "2" };
    Err(DecodeError::new(Section::Overlay, at, problem))
}

impl PartHead {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u8(VERSION);
        writer.bytes(self.id.as_bytes());
        writer.u32(self.generation);
        writer.u32(self.segment_count);
        self.segment.encode(out);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_version(reader)?;
        Ok(Self {
            id: reader.array("promotion uuid").map(Uuid::from_bytes)?,
            generation: reader.u32("schema generation")?,
            segment_count: reader.u32("segment count")?,
            segment: SegmentPos::read(reader)?,
        })
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// The promotion that the root says counts and is not carried out everywhere.
    ///
    /// # Errors
    /// What cannot be read of it, if the pieces do not say it either.
    pub(super) fn read_redo(&self) -> Result<Option<Redo>, Error> {
        let read = || {
            let Some(bytes) = self.shared.root.property(&promotion_property()?)? else { return Ok(None) };
            whole("promotion", &bytes, Redo::decode).map(Some)
        };
        match read() {
            Err(damage) if is_damage(&damage) => match self.redo_of_pieces()? {
                (redo, lost) if lost.is_empty() && !redo.segments.is_empty() => {
                    tracing::warn!(error = %damage, "a promotion is read from its pieces");
                    Ok(Some(redo))
                }
                _ => Err(damage),
            },
            read => read,
        }
    }

    /// The promotion as its pieces tell it, and the numbers of the parts of which it cannot be told whose they are.
    ///
    /// # Errors
    /// What the engine says, unless that is damage.
    pub(super) fn redo_of_pieces(&self) -> Result<(Redo, Vec<u32>), Error> {
        let pieces = Pieces::of(&self.shared.root);
        let mut redo = Redo { id: Uuid::nil(), generation: 0, segments: Vec::new() };
        let (mut lost, mut count) = (Vec::new(), pieces.part_count()?);
        let mut number = 0;
        while number < count {
            let read = pieces.read(number, 0).and_then(|piece| {
                let head = part_head(number, &piece)?;
                Ok((head, pieces.count(number)?))
            });
            match read {
                Ok((head, count_of)) => {
                    // Others may be left of one that came to nothing.
                    (redo.id, redo.generation, count) = (head.id, head.generation, head.segment_count);
                    redo.segments.push(Kept {
                        number,
                        segment: head.segment,
                        pieces: count_of,
                        commit: u64::MAX,
                    });
                }
                Err(error) if is_damage(&error) => lost.push(number),
                Err(error) => return Err(error),
            }
            number += 1;
        }
        Ok((redo, lost))
    }

    /// What it changes in one of its segments.
    pub(super) fn read_part(&self, redo: &Redo, segment: SegmentPos) -> Result<Part, Error> {
        let Some(kept) = redo.of_segment(segment) else { return Ok(Part::default()) };
        let pieces = Pieces::of(&self.shared.root);
        let mut bytes = Vec::new();
        for piece in 0..kept.pieces {
            bytes.extend(pieces.read(kept.number, piece)?);
        }
        let catalog = self.catalog();
        let upgrades = &self.shared.root.settled()?.options.upgrades;
        let what = format!("promotion into {segment}");
        Part::decode(&what, &bytes, (redo, segment), &catalog, upgrades)
    }
}

fn part_head(number: u32, piece: &[u8]) -> Result<PartHead, Error> {
    let mut reader = Reader::new(piece, Section::Overlay);
    PartHead::read(&mut reader).map_err(|problem| {
        let what = format!("part {number} of a promotion");
        SegmentError::DamagedRoot { what, problem }.into()
    })
}

/// Whether an error says that what was read is damaged, and not that a newer release wrote it or that the storage fails.
pub(super) fn is_damage(error: &Error) -> bool {
    match error {
        Error::Corrupt(damage) => {
            !matches!(&damage.problem, DamageCause::Bytes(problem) if matches!(problem.problem, Problem::Newer { .. }))
        }
        Error::Segment(SegmentError::DamagedRoot { problem, .. }) => {
            !matches!(problem.problem, Problem::Newer { .. })
        }
        Error::Engine(error) => matches!(error, EngineError::Corrupt { .. }),
        _ => false,
    }
}

impl Part {
    /// Puts and deletes all of it.
    pub(super) fn fill(&self, tx: &mut Transaction<'_>) {
        for (at, chunk) in &self.chunks {
            match chunk {
                Some(chunk) => tx.save(*at, Arc::clone(chunk)),
                None => tx.delete(*at),
            }
        }
        for (id, entity) in &self.entities {
            match entity {
                Some(entity) => tx.put_entity(*id, entity.clone()),
                None => tx.delete_entity(*id),
            }
        }
    }

    /// Its bytes, given away a change at a time: who takes them leaves what he likes for later.
    pub(super) fn encode(
        &self,
        head: &PartHead,
        mut take: impl FnMut(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut bytes = Vec::new();
        head.encode(&mut bytes);
        for (at, chunk) in &self.chunks {
            let value = chunk.as_deref().map(|chunk| |out: &mut Vec<u8>| chunk.encode(out));
            encode(CHUNK, &key::chunk(*at), value, &mut bytes);
            take(&mut bytes)?;
        }
        for (id, entity) in &self.entities {
            let value = entity.as_ref().map(|entity| |out: &mut Vec<u8>| entity.encode(out));
            encode(ENTITY, &id.to_bytes(), value, &mut bytes);
            take(&mut bytes)?;
        }
        take(&mut bytes)
    }

    fn decode(
        what: &str,
        bytes: &[u8],
        (redo, segment): (&Redo, SegmentPos),
        catalog: &Catalog,
        upgrades: &UpgradeFunctions,
    ) -> Result<Self, Error> {
        let Redo { id, generation, .. } = *redo;
        let damaged = |problem| SegmentError::DamagedRoot { what: what.into(), problem };
        let (mut part, mut reader) = (Self::default(), Reader::new(bytes, Section::Overlay));
        let here = reader.clone();
        let head = PartHead::read(&mut reader).map_err(damaged)?;
        if head != (PartHead { id, generation, segment, ..head }) {
            let (field, found, allowed) = ("part of a promotion", 0, "of the one that counts");
            return Err(damaged(here.error(Problem::OutOfRange { field, found, allowed })).into());
        }
        while reader.left_bytes() > 0 {
            match Change::read(&mut reader).map_err(damaged)? {
                Change::Chunk(at, value) => {
                    let stored = |value| StoredChunk {
                        at,
                        version: 0,
                        schema_generation: generation,
                        tier: Tier::L0,
                        value,
                    };
                    let chunk = value.map(|value| decode(catalog, upgrades, stored(value)).map(Arc::new));
                    part.chunks.push((at, chunk.transpose()?));
                }
                Change::Entity(id, value) => {
                    let read = |value| {
                        let entity = Entity::decode(value).map_err(damaged)?;
                        upgrade(catalog, upgrades, id, entity)
                    };
                    part.entities.push((id, value.map(read).transpose()?));
                }
            }
        }
        Ok(part)
    }
}

/// One change as it is stored.
enum Change<'a> {
    Chunk(ChunkAt, Option<&'a [u8]>),
    Entity(EntityId, Option<&'a [u8]>),
}

impl<'a> Change<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let here = reader.clone();
        let (what, state) = (reader.u8("what is changed")?, reader.u8("state")?);
        let out_of_range = |field, found: u8| {
            here.error(Problem::OutOfRange { field, found: found.into(), allowed: "0 or 1" })
        };
        let value = |reader: &mut Reader<'a>| match state {
            0 => Ok(None),
            1 => {
                let len_bytes = reader.u32("length")?;
                reader.take("value", len_bytes as usize).map(Some)
            }
            found => Err(out_of_range("state", found)),
        };
        match what {
            CHUNK => {
                let at = key::decode_chunk(reader.take("chunk key", key::CHUNK_LEN_BYTES)?)?;
                Ok(Self::Chunk(at, value(reader)?))
            }
            ENTITY => {
                let id = reader.array("entity uuid").map(EntityId::from_bytes)?;
                Ok(Self::Entity(id, value(reader)?))
            }
            found => Err(out_of_range("what is changed", found)),
        }
    }
}

fn encode(what: u8, key: &[u8], value: Option<impl FnOnce(&mut Vec<u8>)>, out: &mut Vec<u8>) {
    let mut writer = Writer::new(out);
    writer.u8(what);
    writer.u8(value.is_some().into());
    writer.bytes(key);
    if let Some(value) = value {
        let mut bytes = Vec::new();
        value(&mut bytes);
        let mut writer = Writer::new(out);
        writer.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        writer.bytes(&bytes);
    }
}
