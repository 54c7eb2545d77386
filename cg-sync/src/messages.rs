//! The messages as bytes for any transport.
//!
//! | offset | width | part |
//! |---|---|---|
//! | 0 | 1 | version of the messages |
//! | 1 | 1 | 1 for a request, 2 for a reply |
//! | 2 | 4 | CRC-32C over version, kind and fields, little-endian |
//! | 6 | … | the fields |
//!
//! Fields are encoded by bincode 2 with integers of variable length. Texts and chunks are sequences of bytes. So
//! decoding a forged length fails at the first absent byte, before memory is allocated for it. What the parts of lists
//! take in memory is limited. `docs/format/sync.md` has every field.
//!
//! **Invariant**: a message that uses an id of the server contains the id's name, or follows a message that did.
//! Dimensions are always named.

mod names;
mod parts;
mod values;

use cg_registry::Name;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::MessageError;
pub(super) use names::{NewNames, count, count_in, name};
pub(super) use values::{
    AskedBox, AskedValues, NamesOfValues, Position, Told, ValueNames, ValuesReply, kind_byte, kind_of,
};

/// The version of the messages that this release sends and accepts.
pub const SYNC_VERSION: u8 = 5;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const HEAD_LEN_BYTES: usize = 6;

/// The first bytes of a client's rows. The rows have no checksum here, because their frames have one.
const ROW: [u8; 2] = [1, 0];

/// The maximum length of a received message, by its kind. Servers and caches accept different lengths.
///
/// A part of a message may be a byte long and take a hundred in memory. So a message whose parts take more than 16 times the
/// limit of a request (at least 1 MiB), or six times that of a reply (at least 192 MiB), is refused while it is decoded.
/// Up to four times that is allocated: lists have room for more parts than they hold, and texts are beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncLimits {
    /// Bytes of a request. A client that asks about more sends several requests.
    pub request_bytes: usize,
    /// Bytes of a reply.
    pub reply_bytes: usize,
}

impl Default for SyncLimits {
    /// 4 MiB for a request, which is a few hundred thousand chunks. 96 MiB for a reply, which is more than a server sends by
    /// default: 16 MiB, and one object of the largest size that a world takes
    /// ([`StoreLimits::object_bytes`](cg_store::StoreLimits::object_bytes)). A cache of a server that takes larger ones needs
    /// a higher limit.
    fn default() -> Self {
        Self { request_bytes: 4 << 20, reply_bytes: 96 << 20 }
    }
}

/// A client's state and its questions. [`SyncClient`](crate::SyncClient) makes the request, and
/// [`SyncServer::answer`](crate::SyncServer::answer) answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncRequest {
    pub(super) number: u64,
    pub(super) known: Option<KnownServer>,
    /// The dimensions. The numbers below are indexes into them.
    #[serde(deserialize_with = "parts::list")]
    pub(super) dimensions: Vec<AskedDimension>,
    #[serde(deserialize_with = "parts::list")]
    pub(super) cubes: Vec<AskedCube>,
    #[serde(deserialize_with = "parts::list")]
    pub(super) areas: Vec<AskedArea>,
    #[serde(deserialize_with = "parts::list")]
    pub(super) values: Vec<AskedValues>,
    /// The components that the client does not want in chunks.
    #[serde(deserialize_with = "parts::list")]
    pub(super) without: Vec<Vec<u8>>,
    /// The client wants no more bytes of chunks and values in a reply.
    pub(super) max_bytes: Option<u64>,
}

/// A dimension by the name that it has in the cache, and by its other names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedDimension {
    pub(super) name: Vec<u8>,
    #[serde(deserialize_with = "parts::list")]
    pub(super) aliases: Vec<Vec<u8>>,
}

/// The server's state that the client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KnownServer {
    pub(super) uuid: [u8; 16],
    /// The life that the client's versions belong to.
    pub(super) life: [u8; 16],
    /// The opening that made the newest commit that the client knows of.
    pub(super) opening: [u8; 8],
    /// That commit.
    pub(super) commit: u64,
    pub(super) generation: u32,
    pub(super) renames: u64,
    pub(super) blocks: u64,
    pub(super) sides: u64,
}

/// Chunks of one 4³ cube that a client asks about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedCube {
    pub(super) dimension: u16,
    pub(super) cube: [i64; 3],
    /// Every version below was the newest at this commit, or is newer.
    pub(super) as_of: Option<u64>,
    /// Places in the cube, and the versions that the client has.
    #[serde(deserialize_with = "parts::list")]
    pub(super) chunks: Vec<(u8, Option<u64>)>,
}

/// A box of chunks whose changes a client asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct AskedArea {
    pub(super) dimension: u16,
    pub(super) min: [i64; 3],
    pub(super) max: [i64; 3],
    pub(super) since: Option<u64>,
}

/// The answer of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyncReply {
    pub(super) number: u64,
    pub(super) uuid: [u8; 16],
    /// The life that the versions of the reply belong to: that of the request, if the server's history has the commit that the
    /// client knows of.
    pub(super) life: [u8; 16],
    /// The opening that made the commit.
    pub(super) opening: [u8; 8],
    /// The commit up to which the reply is certainly complete.
    pub(super) commit: u64,
    /// Whether the client knew another history or none, so that its versions were treated as unknown.
    pub(super) is_restart: bool,
    pub(super) names: NewNames,
    /// One per cube of the request, in the same order.
    #[serde(deserialize_with = "parts::list")]
    pub(super) cubes: Vec<CubeReply>,
    /// One per area of the request, in the same order.
    #[serde(deserialize_with = "parts::list")]
    pub(super) areas: Vec<AreaReply>,
    /// The names of ids in the values.
    pub(super) value_names: ValueNames,
    /// One per set of values of the request, in the same order.
    #[serde(deserialize_with = "parts::list")]
    pub(super) values: Vec<ValuesReply>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CubeReply {
    /// All chunks of the request are up to date.
    UpToDate,
    /// One answer per chunk of the request, in the same order.
    Chunks(#[serde(deserialize_with = "parts::list")] Vec<Answer>),
}

/// The answer about one chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Answer {
    UpToDate,
    /// The chunk's canonical bytes in the server's ids, without references to entities.
    Newer {
        version: u64,
        bytes: Vec<u8>,
    },
    /// The chunk is not stored: it was never generated, or was deleted.
    Gone,
    /// There is a newer version, but the reply is full. Ask again.
    Later,
    /// The server cannot read the chunk. The client keeps its version.
    Damaged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum AreaReply {
    Changed {
        /// All stored chunks are listed, because the client's base is unknown or older than the server's tombstone
        /// horizon. A chunk that is not listed does not exist.
        is_whole: bool,
        #[serde(deserialize_with = "parts::list")]
        cubes: Vec<ChangedCube>,
        /// 4³ cubes that the server cannot read.
        #[serde(deserialize_with = "parts::list")]
        damaged: Vec<[i64; 3]>,
    },
    /// More chunks changed than the server lists in one reply. Ask about smaller boxes.
    TooMany,
}

/// The changes of a 4³ cube: places with their versions. A chunk without a version was deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ChangedCube {
    pub(super) cube: [i64; 3],
    #[serde(deserialize_with = "parts::list")]
    pub(super) chunks: Vec<(u8, Option<u64>)>,
}

impl SyncRequest {
    /// Encodes the request.
    pub fn encode(&self) -> Vec<u8> {
        encode(REQUEST, self)
    }

    /// Decodes a received request.
    ///
    /// # Errors
    /// [`MessageError`] for a message of another version or kind, and for one that is too long, altered, followed by more bytes,
    /// or of more parts than [`SyncLimits`] allows.
    pub fn decode(bytes: &[u8], limits: SyncLimits) -> Result<Self, MessageError> {
        let parts_bytes = limits.request_bytes.saturating_mul(16).max(1 << 20);
        decode(REQUEST, bytes, limits.request_bytes, parts_bytes)
    }

    /// Asks for at most this many bytes of chunks and values in the reply, beside the server's own limit. The last one may
    /// exceed it.
    #[must_use]
    pub const fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = Some(max_bytes);
        self
    }

    /// Asks for chunks in which each block has the default of a component, not its own value: what is in a chest need not reach
    /// a client. May be called for several. A chunk that is cached already stays as it is until it changes. For entities there
    /// is [`ValueSet::without`](crate::ValueSet::without).
    #[must_use]
    pub fn without(mut self, component: &Name) -> Self {
        self.without.push(component.as_str().into());
        self
    }

    /// Asks from where a reply ended that has no news.
    pub(super) fn go_on_behind(&mut self, reply: &SyncReply) {
        for (asked, told) in self.areas.iter_mut().zip(&reply.areas) {
            // What is damaged is told again: the last reply is the one that is sent.
            if let AreaReply::Changed { damaged, .. } = told
                && damaged.is_empty()
                && asked.since.is_some()
            {
                asked.since = Some(reply.commit);
            }
        }
        for (asked, told) in self.values.iter_mut().zip(&reply.values) {
            asked.known.clone_from(&told.next);
        }
    }

    /// The number of chunks that the request asks about, without areas.
    pub fn chunk_count(&self) -> usize {
        self.cubes.iter().map(|cube| cube.chunks.len()).sum()
    }
}

impl SyncReply {
    /// Encodes the reply.
    pub fn encode(&self) -> Vec<u8> {
        encode(REPLY, self)
    }

    /// Decodes a received reply. [`SyncClient::apply`](crate::SyncClient::apply) checks the content of chunks.
    ///
    /// # Errors
    /// As [`SyncRequest::decode`].
    pub fn decode(bytes: &[u8], limits: SyncLimits) -> Result<Self, MessageError> {
        let parts_bytes = limits.reply_bytes.saturating_mul(6).max(192 << 20);
        decode(REPLY, bytes, limits.reply_bytes, parts_bytes)
    }

    /// Whether the client's versions were treated as unknown, because they belong to another history of the server's
    /// world: it was put back from a copy, or lost commits.
    pub const fn is_restart(&self) -> bool {
        self.is_restart
    }

    /// Whether it has more than that everything asked about is as the client knows it.
    pub(super) fn has_news(&self, request: &SyncRequest) -> bool {
        let is_new = |((_, known), answer): (&(u8, Option<u64>), &Answer)| match answer {
            Answer::UpToDate => false,
            Answer::Gone | Answer::Damaged => known.is_some(),
            Answer::Newer { .. } | Answer::Later => true,
        };
        let of_cube = |(asked, reply): (&AskedCube, &CubeReply)| match reply {
            CubeReply::UpToDate => false,
            CubeReply::Chunks(answers) => asked.chunks.iter().zip(answers).any(is_new),
        };
        let of_area = |(asked, reply): (&AskedArea, &AreaReply)| match reply {
            AreaReply::Changed { is_whole, cubes, .. } => {
                !cubes.is_empty() || *is_whole && asked.since.is_some()
            }
            AreaReply::TooMany => true,
        };
        let of_values = |reply: &ValuesReply| reply.listed.is_some() || !reply.values.is_empty();
        request.known.is_some() && self.is_restart
            || request.cubes.iter().zip(&self.cubes).any(of_cube)
            || request.areas.iter().zip(&self.areas).any(of_area)
            || self.values.iter().any(of_values)
    }
}

/// Encodes a row of a client.
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

fn decode<T: DeserializeOwned>(
    kind: u8,
    bytes: &[u8],
    limit_bytes: usize,
    parts_bytes: usize,
) -> Result<T, MessageError> {
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
    parts::within(parts_bytes, || decode_fields(fields))
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
            bincode::error::DecodeError::OtherString(reason) => MessageError::Fields { reason },
            other => MessageError::Fields { reason: other.to_string() },
        })?;
    match fields.len() - read {
        0 => Ok(message),
        extra_bytes => Err(MessageError::Behind { extra_bytes }),
    }
}
