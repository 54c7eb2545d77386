//! A patch: which of one chunk's 4,096 cells are opaque.
//!
//! | form | offset | width | field |
//! |---|---|---|---|
//! | uniform | 0 | 1 | `uniform`: 0 all transparent, 1 all opaque |
//! | columns | 0 | 512 | `columns`: 256 × u16, column `x·16 + z`, bit y |
//!
//! The length distinguishes the forms. A uniform chunk is written in one byte; its long form is accepted too.

use alloc::vec::Vec;

use crate::chunk::Chunk;
use crate::wire::{Reader, Span, Trace, Writer};
use crate::{DecodeError, LocalPos, Problem, SchemaView, Section};

/// The length of the form with one word per column.
const COLUMNS_LEN_BYTES: usize = 2 * COLUMN_COUNT;
/// The number of columns of a chunk.
const COLUMN_COUNT: usize = 256;

/// The opacity of one chunk. It is newer than the chunk's tile and replaces the chunk's part of it.
///
/// ```
/// use cg_format::opacity::Patch;
/// let mut bytes = Vec::new();
/// Patch::uniform(true).encode(&mut bytes);
/// assert_eq!(bytes, [1]);
/// assert_eq!(Patch::decode(&bytes)?.as_uniform(), Some(true));
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Patch {
    columns: [u16; COLUMN_COUNT],
}

impl Patch {
    /// A chunk that is completely opaque or transparent. A deleted chunk is transparent.
    pub const fn uniform(is_opaque: bool) -> Self {
        Self { columns: [if is_opaque { u16::MAX } else { 0 }; COLUMN_COUNT] }
    }

    /// The opacity of each cell. Calls the function once per cell in storage order.
    pub fn from_fn(mut is_opaque: impl FnMut(LocalPos) -> bool) -> Self {
        let mut patch = Self::uniform(false);
        for cell in LocalPos::all() {
            if is_opaque(cell) {
                *patch.column_mut(cell) |= 1 << cell.y();
            }
        }
        patch
    }

    /// The opacity of a chunk: a cell is opaque if the block of any of its layers is.
    ///
    /// Calls the schema for each kind of block. Costs one unpacking and one pass over the cells.
    pub fn of_chunk(chunk: &Chunk, schema: &(impl SchemaView + ?Sized)) -> Self {
        Self { columns: chunk.columns_of(|block| schema.is_opaque(block)) }
    }

    /// The opacity of a chunk after a change; `None` if the change leaves it as it was. An absent chunk is transparent.
    ///
    /// Costs a comparison of the packed cells if the new chunk is an edit of the old one, and unpacks only the planes
    /// of cells that differ. If the opacity changed, costs as much as [`of_chunk`](Self::of_chunk) in addition.
    ///
    /// ```
    /// use cg_format::chunk::Chunk;
    /// use cg_format::opacity::Patch;
    /// use cg_format::schema::NoComponents;
    /// use cg_format::BlockId;
    /// let stone = Chunk::filled(BlockId::new(1), &NoComponents)?;
    /// let changed = Patch::of_change(None, Some(&stone), &NoComponents);
    /// assert_eq!(changed, Some(Patch::of_chunk(&stone, &NoComponents)));
    /// assert_eq!(Patch::of_change(Some(&stone), Some(&stone), &NoComponents), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_change(
        old: Option<&Chunk>,
        new: Option<&Chunk>,
        schema: &(impl SchemaView + ?Sized),
    ) -> Option<Self> {
        if let (Some(old), Some(new)) = (old, new) {
            let columns = old.columns_changed_in(new, |block| schema.is_opaque(block))?;
            return Some(Self { columns });
        }
        let outline =
            |chunk: Option<&Chunk>| chunk.map_or(Self::uniform(false), |chunk| Self::of_chunk(chunk, schema));
        let new = outline(new);
        (outline(old) != new).then_some(new)
    }

    /// Whether a cell is opaque.
    pub fn is_opaque(&self, cell: LocalPos) -> bool {
        self.column(cell.x(), cell.z()) & (1 << cell.y()) != 0
    }

    /// One column of the chunk: bit y is set where it is opaque. Both coordinates are taken modulo 16.
    pub fn column(&self, x: u8, z: u8) -> u16 {
        let cell = LocalPos::new(x, 0, z);
        *self.columns.get(index(cell)).expect("x and z are below 16")
    }

    /// The opacity that all cells share; `None` if they differ.
    pub fn as_uniform(&self) -> Option<bool> {
        if *self == Self::uniform(false) {
            return Some(false);
        }
        (*self == Self::uniform(true)).then_some(true)
    }

    /// Appends the stored form: 1 byte if uniform, else 512.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        if let Some(is_opaque) = self.as_uniform() {
            return writer.u8(is_opaque.into());
        }
        writer.reserve(COLUMNS_LEN_BYTES);
        for column in self.columns {
            writer.u16(column);
        }
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::OpacityPatch`] for another length, or a single byte above 1.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::OpacityPatch))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<Self, DecodeError>) {
        let trace = Trace::default();
        let result = Self::read(Reader::new(bytes, Section::OpacityPatch).traced(Some(&trace)));
        (trace.into_inner(), result)
    }

    fn read(mut reader: Reader<'_>) -> Result<Self, DecodeError> {
        if reader.left_bytes() == 1 {
            let at = reader.offset_bytes();
            return match reader.u8("uniform")? {
                0 => Ok(Self::uniform(false)),
                1 => Ok(Self::uniform(true)),
                found => {
                    let problem =
                        Problem::OutOfRange { field: "uniform", found: found.into(), allowed: "0 or 1" };
                    Err(DecodeError::new(Section::OpacityPatch, at, problem))
                }
            };
        }
        let stored: [u8; COLUMNS_LEN_BYTES] = reader.array("columns")?;
        reader.end("bytes after the columns")?;
        let (words, _) = stored.as_chunks::<2>();
        let mut patch = Self::uniform(false);
        for (column, word) in patch.columns.iter_mut().zip(words) {
            *column = u16::from_le_bytes(*word);
        }
        Ok(patch)
    }

    fn column_mut(&mut self, cell: LocalPos) -> &mut u16 {
        self.columns.get_mut(index(cell)).expect("x and z are below 16")
    }
}

impl core::fmt::Debug for Patch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.as_uniform() {
            Some(true) => f.write_str("Patch(opaque)"),
            Some(false) => f.write_str("Patch(transparent)"),
            None => {
                let opaque: u32 = self.columns.iter().map(|column| column.count_ones()).sum();
                write!(f, "Patch({opaque} of 4096 opaque)")
            }
        }
    }
}

/// The place of a cell's column: `x·16 + z`.
const fn index(cell: LocalPos) -> usize {
    cell.x() as usize * 16 + cell.z() as usize
}
