//! The messages, as bytes for any transport.
//!
//! | offset | width | part |
//! |---|---|---|
//! | 0 | 1 | version of the messages |
//! | 1 | 1 | 1 for a request, 2 for a reply |
//! | 2 | 4 | CRC-32C over version, kind and fields, little-endian |
//! | 6 | … | the fields |
//!
//! The fields are as bincode 2 writes them with integers of variable length. Texts and chunks are sequences of bytes: a
//! length that was made up then ends the decoding at the first byte that is missing, before memory is taken for it.
//!
//! **Invariant**: a message that uses an id of the server carries its name or follows one that did. Dimensions are
//! always named.

use std::sync::Arc;

use cg_format::{BlockId, ComponentId, ComponentShape, SideKind};
use cg_registry::portable::{NamedBlock, NamedComponent, Names, Used};
use cg_registry::schema::Field;
use cg_registry::{Catalog, ComponentSpec, ListKind, Name};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::MessageError;

/// The version of the messages that this release sends and understands.
pub const SYNC_VERSION: u8 = 2;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const HEAD_LEN_BYTES: usize = 6;

/// What a client's rows begin with. Their frames sum them.
const ROW: [u8; 2] = [1, 0];

/// How long a message from elsewhere may be, by its kind: a server and a cache trust each other with different lengths.
///
/// Decoding takes memory for what the bytes hold, up to a hundred times their length for messages made of empty parts, and
/// at most 4 MiB beyond that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncLimits {
    /// Bytes of a request. A client with more to ask asks in parts.
    pub request_bytes: usize,
    /// Bytes of a reply.
    pub reply_bytes: usize,
}

impl Default for SyncLimits {
    /// 4 MiB for a request, which is a few hundred thousand chunks; 64 MiB for a reply, more than a server puts into one
    /// unless it is told to.
    fn default() -> Self {
        Self { request_bytes: 4 << 20, reply_bytes: 64 << 20 }
    }
}

/// What a client has, and what it wants to know: made by [`SyncClient`](crate::SyncClient), answered by
/// [`SyncServer::answer`](crate::SyncServer::answer).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRequest {
    pub(super) number: u64,
    pub(super) known: Option<KnownServer>,
    /// What the numbers of dimensions below stand for.
    pub(super) dimensions: Vec<Vec<u8>>,
    pub(super) cubes: Vec<AskedCube>,
    pub(super) areas: Vec<AskedArea>,
}

/// The server as the client knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownServer {
    pub(super) uuid: [u8; 16],
    pub(super) incarnation: [u8; 16],
    pub(super) generation: u32,
    pub(super) blocks: u64,
    pub(super) sides: u64,
}

/// Chunks of one 4³ cube that a client asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedCube {
    pub(super) dimension: u16,
    pub(super) cube: [i64; 3],
    /// Every version below was the newest at this commit, or is younger.
    pub(super) as_of: Option<u64>,
    /// The place in the cube, and the version that the client has.
    pub(super) chunks: Vec<(u8, Option<u64>)>,
}

/// A box of chunks of which a client asks what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedArea {
    pub(super) dimension: u16,
    pub(super) min: [i64; 3],
    pub(super) max: [i64; 3],
    pub(super) since: Option<u64>,
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReply {
    pub(super) number: u64,
    pub(super) uuid: [u8; 16],
    pub(super) incarnation: [u8; 16],
    /// The commit up to which the reply certainly knows everything.
    pub(super) commit: u64,
    /// The client knew another incarnation, or none: its versions counted as unknown.
    pub(super) is_restart: bool,
    pub(super) names: NewNames,
    /// As many as were asked about, in the same order.
    pub(super) cubes: Vec<CubeReply>,
    /// As many as were asked about, in the same order.
    pub(super) areas: Vec<AreaReply>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CubeReply {
    /// Everything that was asked about is up to date.
    UpToDate,
    /// One answer for each chunk, in the order asked.
    Chunks(Vec<Answer>),
}

/// What a server says of a chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    UpToDate,
    /// The chunk's canonical bytes in the server's ids, without references to entities.
    Newer {
        version: u64,
        bytes: Vec<u8>,
    },
    /// Not stored: never generated, or deleted.
    Gone,
    /// There is a newer one, and no room in this reply: ask again.
    Later,
    /// The server cannot read it. The client keeps what it has.
    Damaged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AreaReply {
    Changed {
        /// All that is stored is listed, for the client's base is unknown or older than what the server remembers of
        /// deletions: what is not listed is gone.
        is_whole: bool,
        cubes: Vec<ChangedCube>,
        /// 4³ cubes that the server cannot read.
        damaged: Vec<[i64; 3]>,
    },
    /// More changed than the server lists in one reply: ask for smaller boxes.
    TooMany,
}

/// What changed in a 4³ cube: places with their version; without one, the chunk was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangedCube {
    pub(super) cube: [i64; 3],
    pub(super) chunks: Vec<(u8, Option<u64>)>,
}

/// Names after those that the client knows, or all if the schema generation is another.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct NewNames {
    pub(super) generation: u32,
    pub(super) first_block: u64,
    pub(super) first_side: u64,
    /// Those that the blocks below carry.
    components: Vec<WireComponent>,
    blocks: Vec<WireBlock>,
    sides: Vec<Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WireComponent {
    id: u64,
    name: Vec<u8>,
    width_bytes: Option<u32>,
    default_bytes: Vec<u8>,
    fields: Vec<(Vec<u8>, u32)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct WireBlock {
    name: Vec<u8>,
    opaque: bool,
    components: Vec<u64>,
}

impl SyncRequest {
    /// The bytes of the request.
    pub fn encode(&self) -> Vec<u8> {
        encode(REQUEST, self)
    }

    /// Reads a request from elsewhere.
    ///
    /// # Errors
    /// [`MessageError`] for what is none of this version, is longer than allowed, is not as it was sent, or has bytes after
    /// it.
    pub fn decode(bytes: &[u8], limits: SyncLimits) -> Result<Self, MessageError> {
        decode(REQUEST, bytes, limits.request_bytes)
    }

    /// How many chunks are asked about one by one.
    pub fn chunk_count(&self) -> usize {
        self.cubes.iter().map(|cube| cube.chunks.len()).sum()
    }
}

impl SyncReply {
    /// The bytes of the reply.
    pub fn encode(&self) -> Vec<u8> {
        encode(REPLY, self)
    }

    /// Reads a reply from elsewhere. What chunks hold is checked when it is applied.
    ///
    /// # Errors
    /// As [`SyncRequest::decode`].
    pub fn decode(bytes: &[u8], limits: SyncLimits) -> Result<Self, MessageError> {
        decode(REPLY, bytes, limits.reply_bytes)
    }

    /// Whether the client's versions counted as unknown, because they are of another life of the server's world.
    pub const fn is_restart(&self) -> bool {
        self.is_restart
    }
}

/// The row that a client keeps.
pub(super) fn encode_row<T: Serialize>(row: &T) -> Vec<u8> {
    [&ROW[..], &encode_fields(row)].concat()
}

/// The inverse of [`encode_row`].
pub(super) fn decode_row<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, MessageError> {
    let (head, fields) = bytes.split_first_chunk().ok_or(MessageError::Ends)?;
    check_head(*head, ROW)?;
    decode_fields(fields)
}

fn encode<T: Serialize>(kind: u8, message: &T) -> Vec<u8> {
    let (head, fields) = ([SYNC_VERSION, kind], encode_fields(message));
    [&head[..], &checksum(head, &fields).to_le_bytes(), &fields].concat()
}

fn decode<T: DeserializeOwned>(kind: u8, bytes: &[u8], limit_bytes: usize) -> Result<T, MessageError> {
    let len_bytes = bytes.len();
    if len_bytes > limit_bytes {
        return Err(MessageError::TooLong { len_bytes, limit_bytes });
    }
    let (head, fields) = bytes.split_first_chunk::<HEAD_LEN_BYTES>().ok_or(MessageError::Ends)?;
    let [version, found, stored @ ..] = *head;
    check_head([version, found], [SYNC_VERSION, kind])?;
    let (stored, computed) = (u32::from_le_bytes(stored), checksum([version, found], fields));
    if stored != computed {
        return Err(MessageError::Checksum { stored, computed });
    }
    decode_fields(fields)
}

fn check_head([version, kind]: [u8; 2], expected: [u8; 2]) -> Result<(), MessageError> {
    if version != expected[0] {
        return Err(MessageError::Version { found: version, expected: expected[0] });
    }
    if kind != expected[1] {
        return Err(MessageError::Kind { found: kind, expected: expected[1] });
    }
    Ok(())
}

fn checksum(head: [u8; 2], fields: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head), fields)
}

fn encode_fields<T: Serialize>(fields: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(fields, bincode::config::standard()).expect("plain fields always encode")
}

fn decode_fields<T: DeserializeOwned>(fields: &[u8]) -> Result<T, MessageError> {
    let (message, read) =
        bincode::serde::decode_from_slice(fields, bincode::config::standard()).map_err(|why| match why {
            bincode::error::DecodeError::UnexpectedEnd { .. } => MessageError::Ends,
            other => MessageError::Fields { reason: other.to_string() },
        })?;
    match fields.len() - read {
        0 => Ok(message),
        extra_bytes => Err(MessageError::Behind { extra_bytes }),
    }
}

impl NewNames {
    /// The names that a client lacks, by how many of each list it knows.
    pub(super) fn behind(catalog: &Catalog, known: Option<&KnownServer>) -> Self {
        let generation = catalog.current_generation();
        let len = |list| catalog.list(list).len() as u64;
        let known = known.filter(|known| known.generation == generation);
        let first_block = known.map_or(0, |known| known.blocks.min(len(ListKind::Blocks)));
        let first_side = known.map_or(0, |known| known.sides.min(len(ListKind::Sides)));
        let used = Used {
            blocks: (first_block..len(ListKind::Blocks)).map(BlockId::new).collect(),
            sides: (first_side..len(ListKind::Sides)).map(|id| SideKind::new(id as u16)).collect(),
            ..Used::default()
        };
        let names = Names::of(catalog, &used).expect("the lists' own ids");
        let component = |(id, component): (&ComponentId, &Arc<NamedComponent>)| {
            let NamedComponent { name, spec } = &**component;
            WireComponent {
                id: id.get(),
                name: name.as_str().into(),
                width_bytes: match spec.shape {
                    ComponentShape::Fixed { width_bytes } => Some(width_bytes),
                    ComponentShape::Variable => None,
                },
                default_bytes: spec.default_bytes.clone(),
                fields: spec
                    .fields
                    .iter()
                    .map(|field| (field.name.clone().into(), field.width_bytes))
                    .collect(),
            }
        };
        let block = |block: &Arc<NamedBlock>| WireBlock {
            name: block.name.as_str().into(),
            opaque: block.opaque,
            components: block.components.iter().map(|id| id.get()).collect(),
        };
        Self {
            generation,
            first_block,
            first_side,
            components: names.components.iter().map(component).collect(),
            blocks: names.blocks.values().map(block).collect(),
            sides: names.sides.values().map(|name| name.as_str().into()).collect(),
        }
    }

    /// How many names there are.
    pub(super) const fn count(&self) -> usize {
        self.components.len() + self.blocks.len() + self.sides.len()
    }

    /// Adds them to those that are known. Says whether that is more or other than before; nothing is added if not.
    pub(super) fn fold_into(&self, names: &mut Names, generation: &mut u32) -> Result<bool, MessageError> {
        let is_other = self.generation != *generation;
        if is_other && self.first_block == 0 {
            names.blocks.clear();
            names.components.clear();
            *generation = self.generation;
        } else if is_other {
            return Err(MessageError::NamesMissing);
        }
        let (blocks, sides) = (names.blocks.len() as u64, names.sides.len() as u64);
        if self.first_block > blocks || self.first_side > sides {
            return Err(MessageError::NamesMissing);
        }
        let known = names.components.iter().map(|(id, component)| (*id, Arc::clone(component)));
        let known: Vec<_> = known.collect();
        let new = self.components.iter().map(WireComponent::named);
        names.components = known.into_iter().map(Ok).chain(new).collect::<Result<_, _>>()?;
        for (id, block) in (self.first_block..).zip(&self.blocks) {
            let components: Vec<_> = block.components.iter().map(|id| ComponentId::new(*id)).collect();
            let is_sound = components.is_sorted_by(|a, b| a < b)
                && components.iter().all(|id| names.components.contains_key(id));
            if !is_sound {
                return Err(MessageError::Fields {
                    reason: format!("block {id} has components without a name"),
                });
            }
            let (name, opaque) = (name(&block.name)?, block.opaque);
            names.blocks.insert(BlockId::new(id), Arc::new(NamedBlock { name, opaque, components }));
        }
        for (id, side) in (self.first_side..).zip(&self.sides) {
            let id = u16::try_from(id)
                .map_err(|_| MessageError::Fields { reason: format!("{id} is no kind of side data") })?;
            names.sides.insert(SideKind::new(id), name(side)?);
        }
        Ok(is_other || names.blocks.len() as u64 > blocks || names.sides.len() as u64 > sides)
    }
}

impl WireComponent {
    fn named(&self) -> Result<(ComponentId, Arc<NamedComponent>), MessageError> {
        let id = ComponentId::new(self.id);
        let unsound =
            || MessageError::Fields { reason: format!("component {:#x} has no such shape", self.id) };
        if id.is_variable() != self.width_bytes.is_none() {
            return Err(unsound());
        }
        let field = |(name, width_bytes): &(Vec<u8>, u32)| {
            Ok::<_, MessageError>(Field { name: text(name)?.to_owned(), width_bytes: *width_bytes })
        };
        let spec = ComponentSpec {
            shape: match self.width_bytes {
                Some(width_bytes) => ComponentShape::Fixed { width_bytes },
                None => ComponentShape::Variable,
            },
            default_bytes: self.default_bytes.clone(),
            fields: self.fields.iter().map(field).collect::<Result<_, _>>()?,
        };
        spec.check().map_err(|_| unsound())?;
        Ok((id, Arc::new(NamedComponent { name: name(&self.name)?, spec })))
    }
}

fn text(bytes: &[u8]) -> Result<&str, MessageError> {
    std::str::from_utf8(bytes).map_err(|_| MessageError::Fields { reason: "a text is no UTF-8".into() })
}

/// A name from elsewhere.
pub(super) fn name(bytes: &[u8]) -> Result<Name, MessageError> {
    let text = text(bytes)?;
    Name::new(text)
        .map_err(|why| MessageError::Fields { reason: format!("`{}`: {why}", text.escape_debug()) })
}
