//! What the root remembers of a promotion that changes several segments, until it is carried out in all of them.
//!
//! The property `:promotion`, of which there is at most one:
//!
//! | width | field |
//! |---|---|
//! | 1 | version: 1 |
//! | 16 | the promotion's own UUID |
//! | 4 | schema generation of its chunks |
//! | 4 | segment count; then for each segment |
//! | 32 | its place: dimension u64, x, y, z i64 |
//! | 4 | count of its pieces |
//!
//! The pieces of a segment are the properties `:promotion/S.P`, number of the segment and of the piece as eight
//! hexadecimal digits each. One behind the other they are the changes of that segment:
//!
//! | width | field |
//! |---|---|
//! | 1 | 0 chunk, 1 entity |
//! | 1 | 0 deleted, 1 here |
//! | 32 or 16 | the chunk's key, or the entity's UUID |
//! | 4 | if it is here: length in bytes |
//! | … | if it is here: the chunk with its side data, or the entity |

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::wire::{Reader, Writer};
use cg_format::{ChunkAt, DecodeError, EntityId, Problem, Section, Tier, key};
use cg_registry::{Catalog, UpgradeFunctions};
use uuid::Uuid;

use super::place::{promotion_piece_property, promotion_property, whole};
use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};
use crate::chunk::StoredChunk;
use crate::chunk::decode::decode;
use crate::engine::Engine;
use crate::entity::upgrade;
use crate::error::Error;
use crate::property::Property;
use crate::transaction::Transaction;

const VERSION: u8 = 1;
const CHUNK: u8 = 0;
const ENTITY: u8 = 1;

/// A property and its value.
type PropertyRow = (Property, Vec<u8>);

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
    generation: u32,
    /// Each with the number of its pieces.
    segments: Vec<(SegmentPos, u32)>,
}

impl Redo {
    /// The properties that say all of it, in pieces of so many bytes, and what they are told by.
    pub(super) fn encode(
        id: Uuid,
        generation: u32,
        parts: &BTreeMap<SegmentPos, Part>,
        piece_bytes: usize,
    ) -> Result<(Self, Vec<PropertyRow>), Error> {
        let mut redo = Self { id, generation, segments: Vec::with_capacity(parts.len()) };
        let mut rows = Vec::new();
        for (number, (segment, part)) in (0..).zip(parts) {
            let bytes = part.encode();
            let mut count = 0;
            for piece in bytes.chunks(piece_bytes.max(1)) {
                rows.push((promotion_piece_property(number, count)?, piece.to_vec()));
                count += 1;
            }
            redo.segments.push((*segment, count));
        }
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.u8(VERSION);
        writer.bytes(id.as_bytes());
        writer.u32(generation);
        writer.u32(u32::try_from(redo.segments.len()).unwrap_or(u32::MAX));
        for (segment, count) in &redo.segments {
            segment.encode(&mut bytes);
            Writer::new(&mut bytes).u32(*count);
        }
        rows.push((promotion_property()?, bytes));
        Ok((redo, rows))
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.version_u8("promotion version", VERSION)?;
        let id = reader.array("promotion uuid").map(Uuid::from_bytes)?;
        let generation = reader.u32("schema generation")?;
        let count = reader.u32("segment count")?;
        let mut segments = Vec::new();
        for _ in 0..count {
            segments.push((SegmentPos::read(reader)?, reader.u32("piece count")?));
        }
        Ok(Self { id, generation, segments })
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = SegmentPos> {
        self.segments.iter().map(|(segment, _)| *segment)
    }

    /// Every property of it.
    pub(super) fn properties(&self) -> Result<Vec<Property>, Error> {
        let mut all = vec![promotion_property()?];
        for (number, (_, count)) in (0..).zip(&self.segments) {
            for piece in 0..*count {
                all.push(promotion_piece_property(number, piece)?);
            }
        }
        Ok(all)
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// The promotion that the root says counts and is not carried out everywhere.
    pub(super) fn read_redo(&self) -> Result<Option<Redo>, Error> {
        let Some(bytes) = self.shared.root.property(&promotion_property()?)? else { return Ok(None) };
        whole("promotion", &bytes, Redo::decode).map(Some)
    }

    /// What it changes in one of its segments.
    pub(super) fn read_part(&self, redo: &Redo, segment: SegmentPos) -> Result<Part, Error> {
        let of_segment = (0..).zip(&redo.segments).find(|(_, (other, _))| *other == segment);
        let Some((number, (_, count))) = of_segment else { return Ok(Part::default()) };
        let mut bytes = Vec::new();
        for piece in 0..*count {
            let property = promotion_piece_property(number, piece)?;
            let Some(piece) = self.shared.root.property(&property)? else {
                let problem = Reader::new(&[], Section::Overlay).take("piece of a promotion", 1);
                let problem = problem.expect_err("nothing holds no byte");
                return Err(SegmentError::DamagedRoot { what: property.to_string(), problem }.into());
            };
            bytes.extend(piece);
        }
        let catalog = self.catalog();
        let upgrades = &self.shared.root.settled()?.options.upgrades;
        let what = format!("promotion into {segment}");
        Part::decode(&what, &bytes, redo.generation, &catalog, upgrades)
    }
}

impl Part {
    /// Puts and deletes all of it.
    pub(super) fn fill<E: Engine>(&self, tx: &mut Transaction<'_, E>) {
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

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (at, chunk) in &self.chunks {
            let value = chunk.as_deref().map(|chunk| |out: &mut Vec<u8>| chunk.encode(out));
            encode(CHUNK, &key::chunk(*at), value, &mut bytes);
        }
        for (id, entity) in &self.entities {
            let value = entity.as_ref().map(|entity| |out: &mut Vec<u8>| entity.encode(out));
            encode(ENTITY, &id.to_bytes(), value, &mut bytes);
        }
        bytes
    }

    fn decode(
        what: &str,
        bytes: &[u8],
        generation: u32,
        catalog: &Catalog,
        upgrades: &UpgradeFunctions,
    ) -> Result<Self, Error> {
        let damaged = |problem| SegmentError::DamagedRoot { what: what.into(), problem };
        let (mut part, mut reader) = (Self::default(), Reader::new(bytes, Section::Overlay));
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
