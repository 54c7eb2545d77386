//! Rows of the hottest tier: a chunk or a tombstone each.

use cg_format::chunk::Chunk;
use cg_format::frame::{Codec, Draft, FrameHeader, FrameKind, FrameView};
use cg_format::{ChunkAt, DecodeError, Limits, Lookup, Problem, Section, Space, Tier, key};

use super::StoredChunk;
use crate::engine::CommitSeq;
use crate::storage::error::{Damage, Error};

/// The shortest value that is compressed. Shorter ones are of one kind of block or of few; they would gain some bytes,
/// and cost as much as longer ones. See `docs/decisions/0086-hot-rows-are-compressed.md`.
const COMPRESSED_FROM_BYTES: usize = 256;

/// The row of a chunk. `codec` compresses it if it is long.
pub(crate) fn hot_row(chunk: &Chunk, generation: u32, codec: Codec) -> Draft {
    if chunk.max_len_bytes() < COMPRESSED_FROM_BYTES {
        return Draft::plain(Codec::None, generation, |out| chunk.encode(out));
    }
    hot_row_of(&chunk.to_bytes(), generation, codec)
}

/// The row of a chunk that is encoded already.
///
/// What no reader would decompress is stored as it is: a world's limit of a chunk may be higher.
pub(crate) fn hot_row_of(value: &[u8], generation: u32, codec: Codec) -> Draft {
    let most_bytes = Limits::default().left_bytes();
    let is_compressed = value.len() >= COMPRESSED_FROM_BYTES && value.len() as u64 <= most_bytes;
    let codec = if is_compressed { codec } else { Codec::None };
    Draft::plain(codec, generation, |out| out.extend_from_slice(value))
}

/// A chunk in a row of its own. Its value is as it is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HotChunk<'r> {
    at: ChunkAt,
    frame: FrameView<'r>,
}

impl<'r> HotChunk<'r> {
    /// The chunk's position, and the commit that last changed its row.
    pub(super) const fn place(self) -> (ChunkAt, u64) {
        (self.at, self.frame.header().version)
    }

    /// The chunk, decompressed into a buffer if need be.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it does not decompress.
    pub(crate) fn stored<'b>(self, buffer: &'b mut Vec<u8>) -> Result<StoredChunk<'b>, Error>
    where
        'r: 'b,
    {
        let Self { at, frame } = self;
        let FrameHeader { version, schema_generation, .. } = frame.header();
        let value = frame.raw_payload_in(&mut Limits::default(), buffer);
        let value =
            value.map_err(|problem| Damage::of_chunk(Space::ChunkL0, &key::chunk(at), at, problem))?;
        let version = CommitSeq::new(version);
        Ok(StoredChunk { at, version, schema_generation, tier: Tier::L0, value })
    }
}

/// Opens a row of `chunkl0`: a chunk or a tombstone. The value of a chunk is decompressed into a buffer if need be.
pub(crate) fn hot<'b>(
    at: ChunkAt,
    key: &[u8],
    row: &'b [u8],
    buffer: &'b mut Vec<u8>,
) -> Result<Lookup<StoredChunk<'b>>, Error> {
    match open_hot(at, key, row)? {
        Lookup::Found(chunk) => chunk.stored(buffer).map(Lookup::Found),
        Lookup::Tombstone | Lookup::NotFound => Ok(Lookup::Tombstone),
    }
}

/// As [`hot`], without the value of the chunk.
pub(crate) fn open_hot<'r>(at: ChunkAt, key: &[u8], row: &'r [u8]) -> Result<Lookup<HotChunk<'r>>, Error> {
    let damage = |problem| Damage::of_chunk(Space::ChunkL0, key, at, problem);
    let frame = FrameView::open(Space::ChunkL0, key, row).map_err(damage)?;
    match frame.header().kind {
        FrameKind::Tombstone => Ok(Lookup::Tombstone),
        FrameKind::Plain => Ok(Lookup::Found(HotChunk { at, frame })),
        kind @ (FrameKind::Cluster | FrameKind::Deltas) => {
            let found = kind.byte().into();
            let problem = Problem::OutOfRange { field: "kind", found, allowed: "1 (plain) or 3 (tombstone)" };
            Err(damage(DecodeError::new(Section::Frame, 1, problem)))
        }
    }
}
