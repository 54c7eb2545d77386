//! An entity: its kind, its position, its owner and its components.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `format version`: 1 |
//! | 8 | 8 | `entity type` |
//! | 16 | 1 | `owner kind`: 1 = chunk, 2 = detached |
//! | 17 | 32 | of a chunk: `owner dimension`, `owner x`, `owner y`, `owner z` |
//! | 17 | 2 + n | of a detached one: `reason len` (u16) and `reason` (UTF-8) |
//! | … | 44 | `position dimension`, `block x`, `block y`, `block z`, 3 × f32 `fraction x`… |
//! | … | 4 | `component count` |
//! | … | 12 + n each | `component id` ascending, `component len` (u32), `component bytes` |
//!
//! The entity's UUID is its key and is not stored in its value.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use crate::wire::{Reader, Span, Trace, Writer};
use crate::{ChunkAt, ChunkPos, ComponentId, DecodeError, Dimension, EntityTypeId, Problem, Section};

mod position;

pub use position::{EntityPos, NotAPosition};

/// The layout that this release writes, and the newest that it reads.
const FORMAT_VERSION: u64 = 1;
/// The value of `owner kind` for a chunk.
const OWNER_CHUNK: u8 = 1;
/// The value of `owner kind` for a detached entity.
const OWNER_DETACHED: u8 = 2;
/// The fewest bytes of a stored component: its id and its length.
const COMPONENT_MIN_LEN_BYTES: u64 = 8 + 4;

/// An entity's stored value. Players are entities too.
///
/// ```
/// use cg_format::entity::{Entity, EntityPos, Owner};
/// use cg_format::{BlockPos, ChunkAt, ComponentId, Dimension, EntityTypeId};
///
/// let position = EntityPos::new(Dimension::new(0), BlockPos::new(-1, 64, 20), [0.5, 0.0, 0.25])?;
/// let owner = Owner::Chunk(ChunkAt::new(position.dimension(), position.block().chunk()));
/// let mut cow = Entity::new(EntityTypeId::new(7), owner, position);
/// cow.set_component(ComponentId::variable(3), b"moo".to_vec())?;
///
/// let mut bytes = Vec::new();
/// cow.encode(&mut bytes);
/// assert_eq!(Entity::decode(&bytes)?, cow);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its kind.
    pub kind: EntityTypeId,
    /// The owner, which holds its reference.
    pub owner: Owner,
    /// Its position. It need not be in the owner's chunk: an entity that crosses a border moves first, and the host
    /// moves its reference later.
    pub position: EntityPos,
    components: BTreeMap<ComponentId, Vec<u8>>,
}

/// The owner of an entity: exactly one chunk, or none for a given reason. So no entity is ever orphaned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// The chunk whose entity section refers to it.
    Chunk(ChunkAt),
    /// No chunk: an offline player, cargo, an entity whose chunk is not stored.
    Detached(Reason),
}

/// Why an entity is detached: a short text for people and tools, at most 65,535 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(String);

/// A text or a component is too long for its length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} has {len_bytes} bytes, at most {max_bytes} can be stored")]
pub struct TooLong {
    /// The field that is too long.
    pub what: &'static str,
    /// Its length.
    pub len_bytes: u64,
    /// The maximum.
    pub max_bytes: u64,
}

impl Entity {
    /// An entity without components.
    pub const fn new(kind: EntityTypeId, owner: Owner, position: EntityPos) -> Self {
        Self { kind, owner, position, components: BTreeMap::new() }
    }

    /// The same entity with another owner.
    #[must_use]
    pub fn owned_by(self, owner: Owner) -> Self {
        Self { owner, ..self }
    }

    /// The bytes of a component; `None` if the entity lacks it.
    pub fn component(&self, id: ComponentId) -> Option<&[u8]> {
        self.components.get(&id).map(Vec::as_slice)
    }

    /// All components in ascending order.
    pub fn components(&self) -> impl ExactSizeIterator<Item = (ComponentId, &[u8])> {
        self.components.iter().map(|(id, bytes)| (*id, bytes.as_slice()))
    }

    /// Sets a component of the entity, and returns the old bytes.
    ///
    /// # Errors
    /// [`TooLong`] above 4,294,967,295 bytes; then the entity is unchanged.
    pub fn set_component(&mut self, id: ComponentId, bytes: Vec<u8>) -> Result<Option<Vec<u8>>, TooLong> {
        check_len("a component", bytes.len() as u64, u32::MAX.into())?;
        Ok(self.components.insert(id, bytes))
    }

    /// Removes a component and returns its bytes.
    pub fn remove_component(&mut self, id: ComponentId) -> Option<Vec<u8>> {
        self.components.remove(&id)
    }

    /// Appends the stored form. Equal entities give equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u64(FORMAT_VERSION);
        writer.u64(self.kind.get());
        self.owner.write(&mut writer);
        self.position.write(&mut writer);
        writer.u32(self.components.len() as u32);
        for (id, bytes) in &self.components {
            writer.u64(id.get());
            writer.u32(bytes.len() as u32);
            writer.bytes(bytes);
        }
    }

    /// Reads the stored form. Allocates at most a small multiple of its length.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Entity`], or in [`Section::Components`] for an invalid component.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Entity))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<Self, DecodeError>) {
        let trace = Trace::default();
        let result = Self::read(Reader::new(bytes, Section::Entity).traced(Some(&trace)));
        (trace.into_inner(), result)
    }

    fn read(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        reader.version_u64("format version", FORMAT_VERSION)?;
        let kind = EntityTypeId::new(reader.u64("entity type")?);
        let owner = Owner::read(&mut reader)?;
        let position = EntityPos::read(&mut reader)?;
        let components = read_components(&mut reader)?;
        reader.end("bytes after the components")?;
        Ok(Self { kind, owner, position, components })
    }
}

impl Owner {
    fn write(&self, writer: &mut Writer<'_>) {
        match self {
            Self::Chunk(at) => {
                writer.u8(OWNER_CHUNK);
                writer.u64(at.dimension.get());
                writer.i64(at.pos.x());
                writer.i64(at.pos.y());
                writer.i64(at.pos.z());
            }
            Self::Detached(reason) => {
                writer.u8(OWNER_DETACHED);
                writer.u16(reason.0.len() as u16);
                writer.bytes(reason.0.as_bytes());
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.offset_bytes();
        match reader.u8("owner kind")? {
            OWNER_CHUNK => {
                let dimension = Dimension::new(reader.u64("owner dimension")?);
                let x = read_chunk_coordinate(reader, "owner x")?;
                let y = read_chunk_coordinate(reader, "owner y")?;
                let z = read_chunk_coordinate(reader, "owner z")?;
                let pos = ChunkPos::new(x, y, z).expect("each coordinate was checked");
                Ok(Self::Chunk(ChunkAt { dimension, pos }))
            }
            OWNER_DETACHED => {
                let len_bytes = reader.u16("reason len")?;
                let at = reader.offset_bytes();
                let text = reader.take("reason", len_bytes.into())?;
                match core::str::from_utf8(text) {
                    Ok(text) => Ok(Self::Detached(Reason(text.into()))),
                    Err(error) => {
                        let valid = error.valid_up_to();
                        let found = text.get(valid).copied().unwrap_or_default();
                        let problem = Problem::NotUtf8 { field: "reason", found };
                        Err(DecodeError::new(Section::Entity, at + valid as u64, problem))
                    }
                }
            }
            found => {
                let allowed = "1 for a chunk or 2 for none";
                let problem = Problem::OutOfRange { field: "owner kind", found: found.into(), allowed };
                Err(DecodeError::new(Section::Entity, at, problem))
            }
        }
    }
}

impl Reason {
    /// A reason from its text, which may be empty.
    ///
    /// # Errors
    /// [`TooLong`] above 65,535 bytes.
    pub fn new(text: impl Into<String>) -> Result<Self, TooLong> {
        let text = text.into();
        check_len("the reason of a detached entity", text.len() as u64, u16::MAX.into())?;
        Ok(Self(text))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) const fn check_len(what: &'static str, len_bytes: u64, max_bytes: u64) -> Result<(), TooLong> {
    if len_bytes > max_bytes { Err(TooLong { what, len_bytes, max_bytes }) } else { Ok(()) }
}

fn read_chunk_coordinate(reader: &mut Reader<'_>, field: &'static str) -> Result<i64, DecodeError> {
    let at = reader.offset_bytes();
    let found = reader.i64(field)?;
    if (ChunkPos::MIN..=ChunkPos::MAX).contains(&found) {
        return Ok(found);
    }
    let (min, max) = (ChunkPos::MIN, ChunkPos::MAX);
    Err(DecodeError::new(Section::Entity, at, Problem::OutsideWorld { field, found, min, max }))
}

fn read_components(reader: &mut Reader<'_>) -> Result<BTreeMap<ComponentId, Vec<u8>>, DecodeError> {
    let at = reader.offset_bytes();
    let count = u64::from(reader.u32("component count")?);
    let left = reader.left_bytes() as u64;
    if count * COMPONENT_MIN_LEN_BYTES > left {
        let width = COMPONENT_MIN_LEN_BYTES;
        let problem = Problem::CountExceedsInput { field: "components", count, width, left };
        return Err(DecodeError::new(Section::Entity, at, problem));
    }
    reader.enter(Section::Components);
    let mut components = BTreeMap::new();
    for _ in 0..count {
        let at = reader.offset_bytes();
        let id = ComponentId::new(reader.u64("component id")?);
        if let Some((last, _)) = components.last_key_value().filter(|(last, _)| **last >= id) {
            let (field, found) = ("component id", id.get());
            let problem = if *last == id {
                Problem::Duplicate { field, found }
            } else {
                Problem::OutOfRange { field, found, allowed: "an id above the one before it" }
            };
            return Err(DecodeError::new(Section::Components, at, problem));
        }
        let len_bytes = reader.u32("component len")?;
        let bytes = reader.take("component bytes", len_bytes as usize)?;
        components.insert(id, bytes.to_vec());
    }
    Ok(components)
}

#[cfg(test)]
mod tests;
