//! A tile: the opaque runs of 64×64 columns, or of 256×256.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `format version`: 1 |
//! | 8 | 1 | `scale level`: 1 = 64×64 columns, 2 = 256×256 |
//! | 9 | 4 × (columns + 1) | `column offsets`: u32 from the very start, column `x·side + z` |
//! | 16,397 or 262,157 | 8 each | `boundaries`: i64 y, column by column, ascending |
//!
//! The offset after the last column is the length of the value.

use alloc::vec::Vec;

use super::column::ColumnView;
use crate::wire::{Reader, Span, Trace};
use crate::{ClusterTier, DecodeError, Problem, Section};

/// The layout of a tile in memory, and of one that was stored before tiles were packed.
pub(super) const FORMAT_VERSION: u64 = 1;
/// The length of the fields before the offsets.
const FIXED_LEN_BYTES: usize = 8 + 1;
/// The length of one offset.
const OFFSET_LEN_BYTES: usize = 4;
/// The length of one boundary.
pub(super) const BOUNDARY_LEN_BYTES: usize = 8;

/// A tile's stored bytes, checked once. Any column is then found without reading the others.
///
/// Borrows everything: neither the check nor a query allocates. The check reads the whole value once.
#[derive(Debug, Clone, Copy)]
pub struct TileView<'a> {
    scale: ClusterTier,
    offsets: &'a [[u8; OFFSET_LEN_BYTES]],
    boundaries: &'a [[u8; BOUNDARY_LEN_BYTES]],
}

impl<'a> TileView<'a> {
    /// Checks a tile's stored bytes.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::OpacityTile`] for another version or scale, for offsets that do not run from
    /// the first boundary to the end of the value in steps of 8 bytes, and for boundaries that do not ascend.
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::OpacityTile))
    }

    /// Explains a tile's stored bytes: the fields that [`new`](Self::new) reads, up to the first error.
    pub fn trace(bytes: &'a [u8]) -> (Vec<Span>, Result<Self, DecodeError>) {
        let trace = Trace::default();
        // The view borrows the bytes and must not borrow the trace, so a separate pass does the tracing.
        let traced = TileView::read(Reader::new(bytes, Section::OpacityTile).traced(Some(&trace)));
        let result = traced.and_then(|_| Self::new(bytes));
        (trace.into_inner(), result)
    }

    /// The scale: [`ClusterTier::L1`] for 64×64 columns, [`ClusterTier::L2`] for 256×256.
    pub const fn scale(&self) -> ClusterTier {
        self.scale
    }

    /// The columns along one side: 64 or 256.
    pub const fn side_columns(&self) -> u16 {
        self.scale.tier().side_blocks()
    }

    /// The column at a block's x and z, in the world or in the tile: only their remainders in the tile count.
    pub fn column(&self, x: i64, z: i64) -> ColumnView<'a> {
        self.column_at(column_index(self.scale, x, z))
    }

    /// All columns in storage order: x slowest, then z.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = ColumnView<'a>> + use<'a> {
        let tile = *self;
        (0..column_count(self.scale)).map(move |index| tile.column_at(index))
    }

    /// Whether no block of the tile is opaque. Such a tile need not be stored.
    pub const fn is_transparent(&self) -> bool {
        self.boundaries.is_empty()
    }

    /// The boundaries of all columns, one after the other.
    pub(super) const fn boundary_bytes(&self) -> &'a [[u8; BOUNDARY_LEN_BYTES]] {
        self.boundaries
    }

    fn column_at(&self, index: usize) -> ColumnView<'a> {
        let base = header_len_bytes(self.scale);
        let boundary = |offset: &[u8; OFFSET_LEN_BYTES]| {
            (u32::from_le_bytes(*offset) as usize - base) / BOUNDARY_LEN_BYTES
        };
        let column = match self.offsets.get(index..index + 2) {
            Some([from, to]) => self.boundaries.get(boundary(from)..boundary(to)),
            _ => None,
        };
        ColumnView::new(column.expect("offsets ascend within the boundaries: checked when the view was made"))
    }

    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        let scale = read_header(&mut reader)?;
        let offsets_at = reader.offset_bytes();
        let offset_count = column_count(scale) as u64 + 1;
        let offsets = reader.take_items("column offsets", offset_count, OFFSET_LEN_BYTES as u64)?;
        let boundaries_at = reader.offset_bytes();
        let stored = reader.take("boundaries", reader.left_bytes())?;
        let (offsets, _) = offsets.as_chunks();
        let (boundaries, _) = stored.as_chunks();
        check_offsets(offsets, offsets_at, boundaries_at, reader.offset_bytes())?;
        let tile = Self { scale, offsets, boundaries };
        tile.check_boundaries(boundaries_at)?;
        Ok(tile)
    }

    /// Checks that boundaries ascend strictly within each column, so that no run is empty and no two runs touch.
    fn check_boundaries(&self, boundaries_at: u64) -> Result<(), DecodeError> {
        let mut at = boundaries_at;
        for column in self.columns() {
            let mut before = None;
            for found in column.boundaries() {
                if let Some(before) = before.filter(|before| found <= *before) {
                    let problem = Problem::NotAscending { field: "boundaries", found, before };
                    return Err(DecodeError::new(Section::OpacityTile, at, problem));
                }
                before = Some(found);
                at += BOUNDARY_LEN_BYTES as u64;
            }
        }
        Ok(())
    }
}

/// The columns of a tile: 4,096 or 65,536.
pub(super) const fn column_count(scale: ClusterTier) -> usize {
    let side = scale.tier().side_blocks() as usize;
    side * side
}

/// The length of everything before the first boundary.
pub(super) const fn header_len_bytes(scale: ClusterTier) -> usize {
    FIXED_LEN_BYTES + OFFSET_LEN_BYTES * (column_count(scale) + 1)
}

/// A column's place in its tile: `x·side + z`.
const fn column_index(scale: ClusterTier, x: i64, z: i64) -> usize {
    let side = scale.tier().side_blocks() as i64;
    (x.rem_euclid(side) * side + z.rem_euclid(side)) as usize
}

fn read_header(reader: &mut Reader<'_>) -> Result<ClusterTier, DecodeError> {
    reader.version_u64("format version", FORMAT_VERSION)?;
    reader.scale_level()
}

/// Checks that offsets run from the first boundary to the end of the value, in whole boundaries.
fn check_offsets(
    offsets: &[[u8; OFFSET_LEN_BYTES]],
    offsets_at: u64,
    boundaries_at: u64,
    end: u64,
) -> Result<(), DecodeError> {
    let field = "column offsets";
    let mut before = None;
    let mut at = offsets_at;
    for offset in offsets {
        let found = u64::from(u32::from_le_bytes(*offset));
        let problem = match before {
            None if found != boundaries_at => {
                Some(Problem::Disagrees { field, found, expected: boundaries_at })
            }
            Some(before)
                if found < before || found > end || (found - before) % BOUNDARY_LEN_BYTES as u64 != 0 =>
            {
                let allowed = "a multiple of 8 bytes above the offset before it, and not beyond the end";
                Some(Problem::OutOfRange { field, found, allowed })
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(DecodeError::new(Section::OpacityTile, at, problem));
        }
        before = Some(found);
        at += OFFSET_LEN_BYTES as u64;
    }
    match before {
        Some(found) if found != end => {
            let problem = Problem::Disagrees { field, found, expected: end };
            Err(DecodeError::new(Section::OpacityTile, at - OFFSET_LEN_BYTES as u64, problem))
        }
        _ => Ok(()),
    }
}
