//! Folding: combines a tile and newer patches into a newer tile.

use alloc::vec::Vec;

use super::column::ColumnView;
use super::patch::Patch;
use super::tile::{self, BOUNDARY_LEN_BYTES, FORMAT_VERSION, TileView};
use crate::wire::Writer;
use crate::{ChunkPos, ClusterTier};

/// A tile is too large for its 32-bit offsets.
///
/// That takes more than half a billion boundaries. Such a place should have no opacity cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an opacity tile of {needed_bytes} bytes exceeds the 4294967295 that its offsets can reach")]
pub struct TileTooLarge {
    /// The length of the tile.
    pub needed_bytes: u64,
}

/// Applies patches to a tile and returns the new tile's bytes.
///
/// A patch replaces exactly its chunk's 16×16×16 blocks. Of several patches for one chunk the last counts. Without a
/// tile everything outside the patches is transparent, and the result has 64×64 columns.
///
/// All patches must belong to the tile: only their place in the tile and their y are used. Equal opacity gives equal
/// bytes, independent of the order of changes. Costs one pass over the tile, the result, and a sort of the patches.
///
/// # Errors
/// [`TileTooLarge`] if the result does not fit its 32-bit offsets.
pub fn fold(tile: Option<&TileView<'_>>, patches: &[(ChunkPos, Patch)]) -> Result<Vec<u8>, TileTooLarge> {
    let scale = tile.map_or(ClusterTier::L1, TileView::scale);
    let patches = Placed::sorted(scale, patches);
    let mut columns = ColumnsWriter::new(scale);
    let side = i64::from(scale.tier().side_blocks());
    for x in 0..side {
        for z in 0..side {
            let old = tile.map_or(ColumnView::new(&[]), |tile| tile.column(x, z));
            columns.begin();
            columns.fold_column(old, Placed::over(&patches, place(scale, x >> 4, z >> 4)), [x, z]);
        }
    }
    columns.finish()
}

/// The bytes of a tile without opaque blocks.
pub fn transparent(scale: ClusterTier) -> Vec<u8> {
    let mut columns = ColumnsWriter::new(scale);
    for _ in 0..tile::column_count(scale) {
        columns.begin();
    }
    columns.finish().expect("a header is far below 4 GiB")
}

/// A patch and its place in the tile.
struct Placed<'a> {
    place: usize,
    chunk_y: i64,
    patch: &'a Patch,
}

impl<'a> Placed<'a> {
    /// Sorted by place, then by y; only the last patch of each chunk.
    fn sorted(scale: ClusterTier, patches: &'a [(ChunkPos, Patch)]) -> Vec<Self> {
        let placed = patches.iter().rev().map(|(pos, patch)| Self {
            place: place(scale, pos.x(), pos.z()),
            chunk_y: pos.y(),
            patch,
        });
        let mut placed: Vec<_> = placed.collect();
        // Stable: of equal keys the last one given comes first, and stays.
        placed.sort_by_key(|placed| (placed.place, placed.chunk_y));
        placed.dedup_by_key(|placed| (placed.place, placed.chunk_y));
        placed
    }

    /// The patches at one place, from the lowest up.
    fn over(sorted: &'a [Self], place: usize) -> &'a [Self] {
        let from = sorted.partition_point(|placed| placed.place < place);
        let to = sorted.partition_point(|placed| placed.place <= place);
        sorted.get(from..to).unwrap_or_default()
    }
}

/// A chunk's place in its tile: `x·side + z`, in chunks.
const fn place(scale: ClusterTier, chunk_x: i64, chunk_z: i64) -> usize {
    let side = scale.side_chunks() as i64;
    (chunk_x.rem_euclid(side) * side + chunk_z.rem_euclid(side)) as usize
}

/// Writes columns, each from the lowest y up.
struct ColumnsWriter {
    scale: ClusterTier,
    /// The start of each column so far, in bytes of `boundaries`.
    starts: Vec<usize>,
    boundaries: Vec<u8>,
    /// Whether the column is opaque after its last boundary.
    is_opaque: bool,
}

impl ColumnsWriter {
    fn new(scale: ClusterTier) -> Self {
        let starts = Vec::with_capacity(tile::column_count(scale) + 1);
        Self { scale, starts, boundaries: Vec::new(), is_opaque: false }
    }

    /// Starts the next column at the bottom of the world, transparent.
    fn begin(&mut self) {
        self.starts.push(self.boundaries.len());
        self.is_opaque = false;
    }

    /// Writes a column. Patched ranges are replaced, the rest is copied.
    fn fold_column(&mut self, old: ColumnView<'_>, patches: &[Placed<'_>], [x, z]: [i64; 2]) {
        let mut next = Some(i64::MIN);
        for placed in patches {
            let bottom = placed.chunk_y << 4;
            if let Some(from) = next.filter(|from| *from < bottom) {
                self.copy(old, from, bottom - 1);
            }
            self.put_word(bottom, placed.patch.column((x & 15) as u8, (z & 15) as u8));
            next = bottom.checked_add(16);
        }
        if let Some(from) = next {
            self.copy(old, from, i64::MAX);
        }
    }

    /// Copies the old column from one y to another, both included.
    fn copy(&mut self, old: ColumnView<'_>, from: i64, to: i64) {
        let is_opaque = old.is_opaque(from);
        if is_opaque != self.is_opaque {
            self.boundaries.extend_from_slice(&from.to_le_bytes());
        }
        let copied = old.boundaries_between(from, to);
        self.boundaries.extend_from_slice(copied.as_flattened());
        self.is_opaque = is_opaque ^ (copied.len() % 2 == 1);
    }

    /// Writes 16 blocks. Bit i is set if the block at `bottom + i` is opaque.
    fn put_word(&mut self, bottom: i64, word: u16) {
        let mut flips = word ^ ((word << 1) | u16::from(self.is_opaque));
        while flips != 0 {
            let y = bottom + i64::from(flips.trailing_zeros());
            self.boundaries.extend_from_slice(&y.to_le_bytes());
            flips &= flips - 1;
        }
        self.is_opaque = word >> 15 == 1;
    }

    fn finish(mut self) -> Result<Vec<u8>, TileTooLarge> {
        let header = tile::header_len_bytes(self.scale);
        let needed_bytes = header as u64 + self.boundaries.len() as u64;
        if needed_bytes > u64::from(u32::MAX) {
            return Err(TileTooLarge { needed_bytes });
        }
        debug_assert_eq!(self.boundaries.len() % BOUNDARY_LEN_BYTES, 0);
        self.starts.push(self.boundaries.len());
        let mut out = Vec::with_capacity(header + self.boundaries.len());
        let mut writer = Writer::new(&mut out);
        writer.u64(FORMAT_VERSION);
        writer.u8(self.scale.scale_level());
        for start in self.starts {
            writer.u32((header + start) as u32);
        }
        writer.bytes(&self.boundaries);
        Ok(out)
    }
}
