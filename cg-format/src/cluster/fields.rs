//! A group of a cold cluster by field: what is alike in its chunks is stored together, so that it compresses better.
//!
//! n is the number of present chunks, P that of the ids in all palettes. Lists follow the order of places.
//!
//! | offset | width | field | meaning |
//! |---|---|---|---|
//! | 0 | 8 | format version | 2; the seed form has 1 there |
//! | 8 | 8 | presence | bit i: the chunk at place i is present |
//! | 16 | 4·n | palette counts | of each chunk |
//! | 16 + 4·n | 4·n | layered block counts | of each chunk |
//! | 16 + 8·n | 4·n | component lengths | from the component offset to the entity offset of each chunk |
//! | 16 + 12·n | 4·n | rest lengths | what follows the block ids of each chunk |
//! | 16 + 16·n | 8·P | palette ids | byte 0 of all ids, then byte 1 of all ids, up to byte 7 |
//! | … | 512·w | block ids | of each chunk an id of w bits for each cell |
//! | … | … | rests | of each chunk all that follows its block ids |
//!
//! A local id of b bits is stored in w bits: the smallest of 0, 1, 2, 4, 8, 16 and 32 that is not below b. The id of a
//! cell is at `y·256 + x·16 + z`: terrain is made of layers.
//!
//! Header, palette and block ids of a chunk follow from this, byte for byte. The rest is not read here.

use alloc::vec::Vec;

use crate::chunk::{self, Header};
use crate::frame::Codec;
use crate::wire::{Reader, Span, Trace, Writer, bits};
use crate::{ClusterTier, DecodeError, LocalPos, Problem, Section};

/// The first field of the form, where the seed form has its own version.
pub(super) const FORMAT_VERSION: u64 = 2;

// The version of a chunk is not stored. Chunks of another version need another form of group.
const _: () = assert!(chunk::FORMAT_VERSION == 1);

const ID_LEN_BYTES: usize = 8;
const LENGTH_LEN_BYTES: u64 = 4;
/// Cells of one chunk.
const CELLS: usize = LocalPos::COUNT;
/// Cells with the same x and y.
const ROW_CELLS: usize = 16;
/// Rows with the same x, or with the same y.
const PLANE_ROWS: usize = 16;

/// Whether compressed groups of a cluster may be in this form.
pub(super) fn is_allowed(tier: ClusterTier, codec: Codec) -> bool {
    tier == ClusterTier::L2 && codec == Codec::Zstd
}

/// Whether decompressed bytes of a group claim to be in this form or a newer one.
pub(super) fn claims_to_be_by_field(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|version| u64::from_le_bytes(*version) >= FORMAT_VERSION)
}

/// Writes chunks, in order of their places, by field. `None` if one of them is no chunk of the layout that is known
/// here: then the group keeps the seed form.
pub(super) fn encode(presence: u64, values: &[&[u8]]) -> Option<Vec<u8>> {
    let chunks = values.iter().map(|value| Split::of(value)).collect::<Option<Vec<_>>>()?;
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.reserve(16 + chunks.iter().map(Split::len_bytes).sum::<usize>());
    writer.u64(FORMAT_VERSION);
    writer.u64(presence);
    let lengths: [fn(&Split<'_>) -> u64; 4] = [
        |chunk| chunk.header.palette_count,
        |chunk| chunk.header.layered_count,
        |chunk| chunk.header.components_len_bytes(),
        |chunk| chunk.rest.len() as u64,
    ];
    for length in lengths {
        for chunk in &chunks {
            writer.u32(u32::try_from(length(chunk)).ok()?);
        }
    }
    for plane in 0..ID_LEN_BYTES {
        let bytes = chunks.iter().flat_map(|chunk| chunk.ids.iter().skip(plane).step_by(ID_LEN_BYTES));
        out.extend(bytes);
    }
    for chunk in &chunks {
        encode_cells(chunk.blocks, chunk.header.width(), &mut out);
    }
    for chunk in &chunks {
        out.extend_from_slice(chunk.rest);
    }
    Some(out)
}

/// A chunk's bytes in parts.
struct Split<'v> {
    header: Header,
    ids: &'v [u8],
    blocks: &'v [u8],
    rest: &'v [u8],
}

impl<'v> Split<'v> {
    fn of(value: &'v [u8]) -> Option<Self> {
        let mut reader = Reader::new(value, Section::ChunkHeader);
        let header = Header::read(&mut reader).ok()?;
        let ids = reader.take_items("palette ids", header.palette_count, ID_LEN_BYTES as u64).ok()?;
        let blocks = reader.take("block ids", header.blocks_len_bytes()).ok()?;
        Some(Self { header, ids, blocks, rest: reader.rest() })
    }

    /// Its length by field.
    fn len_bytes(&self) -> usize {
        4 * LENGTH_LEN_BYTES as usize
            + self.ids.len()
            + cells_len_bytes(self.header.width())
            + self.rest.len()
    }
}

/// The bits of a stored local id of this width: no id crosses bytes, so that compression sees what repeats.
const fn stored_width(width: u32) -> u32 {
    if width == 0 { 0 } else { width.next_power_of_two() }
}

/// The length of a chunk's stored ids.
const fn cells_len_bytes(width: u32) -> usize {
    CELLS * stored_width(width) as usize / 8
}

fn encode_cells(blocks: &[u8], width: u32, out: &mut Vec<u8>) {
    let stored = stored_width(width);
    if stored == width {
        return transpose(blocks, width, out);
    }
    let mut ids = [0; CELLS];
    bits::unpack(blocks, width, &mut ids);
    let mut wide = Vec::new();
    bits::pack(&ids, stored, &mut wide);
    transpose(&wide, stored, out);
}

/// Appends ids of a stored width with x and y exchanged: from a chunk's order of cells to that of a group, and back.
fn transpose(ids: &[u8], width: u32, out: &mut Vec<u8>) {
    match width {
        1 => transpose_rows::<2>(ids, out),
        2 => transpose_rows::<4>(ids, out),
        4 => transpose_rows::<8>(ids, out),
        8 => transpose_rows::<ROW_CELLS>(ids, out),
        16 => transpose_rows::<32>(ids, out),
        32 => transpose_rows::<64>(ids, out),
        _ => {}
    }
}

/// As [`transpose`], for rows of this many bytes.
fn transpose_rows<const LEN: usize>(ids: &[u8], out: &mut Vec<u8>) {
    let (rows, _) = ids.as_chunks::<LEN>();
    for slow in 0..PLANE_ROWS {
        for row in rows.iter().skip(slow).step_by(PLANE_ROWS).take(PLANE_ROWS) {
            out.extend_from_slice(row);
        }
    }
}

/// Where the chunks of a group are in its bytes by field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) presence: u64,
    ids_at: usize,
    id_count: usize,
    chunks: Vec<Place>,
}

/// Where the parts of one chunk are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    header: Header,
    /// The number of ids in the palettes before.
    ids_before: usize,
    cells_at: usize,
    rest_at: usize,
    rest_len_bytes: usize,
}

impl Fields {
    /// Checks the bytes of a whole group. Allocates only a list of its chunks, 64 at most.
    ///
    /// Exactly the bytes that [`encode`] writes for some chunks are accepted.
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let here = reader.clone();
        let found = reader.version_u64("format version", FORMAT_VERSION)?;
        if found != FORMAT_VERSION {
            let (field, allowed) = ("format version", "2");
            return Err(here.error(Problem::OutOfRange { field, found, allowed }));
        }
        let here = reader.clone();
        let presence = reader.u64("presence")?;
        if presence == 0 {
            let (field, allowed) = ("presence", "at least one present chunk");
            return Err(here.error(Problem::OutOfRange { field, found: 0, allowed }));
        }
        let (mut chunks, all_rests_len_bytes) = parse_lengths(reader, presence.count_ones().into())?;
        let id_count = chunks.iter().map(|chunk| chunk.header.palette_count).sum();
        let ids_at = reader.offset_bytes() as usize;
        reader.take_items("palette ids", id_count, ID_LEN_BYTES as u64)?;
        let mut ids_before = 0;
        for chunk in &mut chunks {
            chunk.ids_before = ids_before;
            ids_before += chunk.header.palette_count as usize;
            chunk.cells_at = reader.offset_bytes() as usize;
            check_cells(reader, chunk.header.width())?;
        }
        let mut rest_at = reader.offset_bytes() as usize;
        reader.take_items("rests", all_rests_len_bytes, 1)?;
        for chunk in &mut chunks {
            chunk.rest_at = rest_at;
            rest_at += chunk.rest_len_bytes;
        }
        reader.end("bytes after the rests")?;
        Ok(Self { presence, ids_at, id_count: id_count as usize, chunks })
    }

    /// The bytes of the chunk at a place of the group, put together from the group's bytes that were parsed; `None` if
    /// it is absent.
    pub(super) fn chunk(&self, bytes: &[u8], place: u8) -> Option<Vec<u8>> {
        let chunk = self.place(place)?;
        let rest = bytes.get(chunk.rest_at..chunk.rest_at + chunk.rest_len_bytes)?;
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.reserve(chunk.len_bytes());
        chunk.header.write(&mut writer);
        let ids = writer.zeroed(chunk.ids_len_bytes());
        for plane in 0..ID_LEN_BYTES {
            let from = bytes.get(self.ids_at + plane * self.id_count + chunk.ids_before..)?;
            for (id, byte) in ids.iter_mut().skip(plane).step_by(ID_LEN_BYTES).zip(from) {
                *id = *byte;
            }
        }
        decode_cells(bytes.get(chunk.cells_at..)?, chunk.header.width(), &mut out);
        out.extend_from_slice(rest);
        Some(out)
    }

    /// The length of the chunk at a place of the group; `None` if it is absent.
    pub(super) fn chunk_len_bytes(&self, place: u8) -> Option<usize> {
        self.place(place).map(Place::len_bytes)
    }

    fn place(&self, place: u8) -> Option<&Place> {
        let bit = 1_u64.checked_shl(place.into()).filter(|bit| self.presence & bit != 0)?;
        self.chunks.get((self.presence & (bit - 1)).count_ones() as usize)
    }
}

impl Place {
    const fn ids_len_bytes(&self) -> usize {
        ID_LEN_BYTES * self.header.palette_count as usize
    }

    /// The length of the chunk, put together.
    const fn len_bytes(&self) -> usize {
        let fixed_len_bytes = Header::LEN_BYTES as usize + self.ids_len_bytes();
        fixed_len_bytes + self.header.blocks_len_bytes() + self.rest_len_bytes
    }
}

/// Reads the counts and lengths of chunks. Returns the length of all rests, too.
fn parse_lengths(reader: &mut Reader<'_>, chunk_count: u64) -> Result<(Vec<Place>, u64), DecodeError> {
    let at = reader.clone();
    let mut list = |field| reader.take_items(field, chunk_count, LENGTH_LEN_BYTES).map(numbers);
    let palettes = list("palette counts")?;
    let layered = list("layered block counts")?;
    let components = list("component lengths")?;
    let rests = list("rest lengths")?;
    let mut chunks = Vec::with_capacity(chunk_count as usize);
    let mut all_rests_len_bytes = 0;
    let counts = palettes.zip(layered).zip(components).zip(rests);
    for (index, (((palette_count, layered_count), components_len_bytes), rest_len_bytes)) in
        (0_u64..).zip(counts)
    {
        let Some(header) = Header::of_counts(palette_count, layered_count, components_len_bytes) else {
            let (list, field, found, allowed) = if layered_count > Header::MAX_LAYERED {
                (1, "layered block count", layered_count, "at most 1044480")
            } else {
                (0, "palette count", palette_count, "1 to 4096 + layered block count")
            };
            let offset_bytes = at.offset_bytes() + (list * chunk_count + index) * LENGTH_LEN_BYTES;
            let problem = Problem::OutOfRange { field, found, allowed };
            return Err(DecodeError::new(Section::ClusterFields, offset_bytes, problem));
        };
        all_rests_len_bytes += rest_len_bytes;
        let rest_len_bytes = rest_len_bytes as usize;
        chunks.push(Place { header, ids_before: 0, cells_at: 0, rest_at: 0, rest_len_bytes });
    }
    Ok((chunks, all_rests_len_bytes))
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes).into())
}

/// Takes the ids of a chunk, and checks that each has the width that follows from the palette.
fn check_cells(reader: &mut Reader<'_>, width: u32) -> Result<(), DecodeError> {
    let here = reader.clone();
    if width == 0 {
        return Ok(());
    }
    let stored = stored_width(width);
    let cells = reader.take("block ids", cells_len_bytes(width))?;
    let unused = match (stored, width) {
        (4, 3) => 0x88,
        (8, _) => u8::MAX.checked_shl(width).unwrap_or(0),
        _ => 0,
    };
    if stored <= 8 && cells.iter().fold(0, |all, byte| all | byte) & unused == 0 {
        return Ok(());
    }
    let mut ids = [0; CELLS];
    bits::unpack(cells, stored, &mut ids);
    let Some((id, cell)) = ids.iter().zip(0_u64..).find(|(id, _)| **id > bits::max_value(width)) else {
        return Ok(());
    };
    let allowed = "a local id of the width that follows from the palette";
    let problem = Problem::OutOfRange { field: "block ids", found: (*id).into(), allowed };
    let offset_bytes = here.offset_bytes() + cell * u64::from(stored) / 8;
    Err(DecodeError::new(here.section(), offset_bytes, problem))
}

/// Appends the packed block ids of a chunk.
fn decode_cells(cells: &[u8], width: u32, out: &mut Vec<u8>) {
    let stored = stored_width(width);
    let Some(cells) = cells.get(..cells_len_bytes(width)) else { return };
    if stored == width {
        return transpose(cells, width, out);
    }
    let mut wide = Vec::with_capacity(cells.len());
    transpose(cells, stored, &mut wide);
    match stored {
        4 => bits::pack_nibbles(&wide, out),
        8 => bits::pack_bytes(&wide, width, out),
        _ => {
            let mut ids = [0; CELLS];
            bits::unpack(&wide, stored, &mut ids);
            bits::pack(&ids, width, out);
        }
    }
}

/// The fields of a group's bytes by field, up to the first error.
pub(super) fn trace(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
    let trace = Trace::default();
    let answer = Fields::parse(&mut Reader::new(bytes, Section::ClusterFields).traced(Some(&trace)));
    (trace.take(), answer.map(drop))
}
