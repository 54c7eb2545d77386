//! Writes schematics of version 3, block by block.
#![expect(clippy::big_endian_bytes, reason = "NBT is big-endian by its own definition")]

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::varint;
use super::{BlockEntity, MAX_STATES, SchemEntity, SchemError};
use crate::nbt::{self, Compound, Tag};

/// Bytes of indices that are compressed at once.
const BUFFER_BYTES: usize = 64 << 10;

/// The head of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemHead {
    /// The data version of the game that the states, block entities and entities belong to.
    pub data_version: i32,
    /// Blocks along x, y and z.
    pub size: [u16; 3],
    /// The offset from the pasting player to the lowest corner.
    pub offset: [i32; 3],
    /// An NBT compound's bytes, fields and end tag.
    pub metadata: Vec<u8>,
}

impl SchemHead {
    /// A head of this size without metadata, for 1.21.1. It is pasted with its lowest corner at the player.
    pub fn sized(size: [u16; 3]) -> Self {
        let metadata = Compound::EMPTY.raw().to_vec();
        Self { data_version: 3955, size, offset: [0; 3], metadata }
    }
}

/// Writes one file from beginning to end; only a buffer is in memory.
///
/// The order is: [`blocks`](Self::blocks), all [`cells`](Self::cells), [`block_entities`](Self::block_entities); then,
/// if there are biomes, [`biomes`](Self::biomes) and all their `cells`; then [`finish`](Self::finish). Equal calls give
/// equal bytes.
#[derive(Debug)]
pub struct SchemWriter<W: Write> {
    out: GzEncoder<W>,
    size: [u16; 3],
    /// The cells that are left in the current array.
    left_cells: u64,
    left_bytes: u64,
    buffer: Vec<u8>,
    place: Place,
}

/// The part that was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Head,
    BlockCells,
    Blocks,
    BiomeCells,
}

impl<W: Write> SchemWriter<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// A side that is zero, metadata that is not a compound, or an I/O error.
    pub fn new(out: W, head: &SchemHead) -> Result<Self, SchemError> {
        let [width, height, length] = head.size;
        for (field, side) in [("Width", width), ("Height", height), ("Length", length)] {
            if side == 0 {
                return Err(SchemError::Range { field, found: 0, allowed: "1 to 65535" });
            }
        }
        check("Metadata", &head.metadata)?;
        let mut bytes = vec![Tag::Compound as u8, 0, 0];
        bytes.extend(fields(|root| {
            root.compound("Schematic", |out| {
                out.int("Version", 3);
                out.int("DataVersion", head.data_version);
                out.raw_compound("Metadata", &head.metadata);
                for (name, side) in [("Width", width), ("Height", height), ("Length", length)] {
                    out.short(name, side.cast_signed());
                }
                out.int_array("Offset", &head.offset);
            });
        }));
        // The schematic's compound stays open.
        bytes.pop();
        let mut writer = Self {
            out: GzEncoder::new(out, Compression::default()),
            size: head.size,
            left_cells: 0,
            left_bytes: 0,
            buffer: Vec::new(),
            place: Place::Head,
        };
        writer.put(&bytes)?;
        Ok(writer)
    }

    /// Begins the blocks: the states by index, and the number of cells of each.
    ///
    /// # Errors
    /// More states or bytes than the format allows, or an I/O error.
    ///
    /// # Panics
    /// If the call is out of order, or the counts do not match the size.
    pub fn blocks<S: AsRef<str>>(&mut self, states: &[S], counts: &[u64]) -> Result<(), SchemError> {
        assert_eq!(self.place, Place::Head, "blocks come first");
        self.place = Place::BlockCells;
        self.grid("Blocks", states, counts)
    }

    /// Begins the biomes, as [`blocks`](Self::blocks) does the blocks.
    ///
    /// # Errors
    /// As [`blocks`](Self::blocks).
    ///
    /// # Panics
    /// As [`blocks`](Self::blocks).
    pub fn biomes<S: AsRef<str>>(&mut self, biomes: &[S], counts: &[u64]) -> Result<(), SchemError> {
        assert_eq!(self.place, Place::Blocks, "biomes come after the block entities");
        self.place = Place::BiomeCells;
        self.grid("Biomes", biomes, counts)
    }

    /// Writes indices: x first, then z, then y.
    ///
    /// # Errors
    /// An I/O error.
    ///
    /// # Panics
    /// If there are more than announced.
    pub fn cells(&mut self, indices: &[u16]) -> Result<(), SchemError> {
        for part in indices.chunks(BUFFER_BYTES / 4) {
            self.buffer.clear();
            for index in part {
                varint::put(&mut self.buffer, *index);
            }
            let bytes = std::mem::take(&mut self.buffer);
            let left = self.left_bytes.checked_sub(bytes.len() as u64);
            self.left_bytes = left.expect("no more indices than were announced");
            self.left_cells = self.left_cells.saturating_sub(part.len() as u64);
            self.put(&bytes)?;
            self.buffer = bytes;
        }
        Ok(())
    }

    /// Writes the block entities and ends the blocks.
    ///
    /// # Errors
    /// Data that is not a compound, text that is too long, or an I/O error.
    ///
    /// # Panics
    /// If cells are missing.
    pub fn block_entities(&mut self, entities: &[BlockEntity]) -> Result<(), SchemError> {
        self.end_of_cells(Place::BlockCells);
        self.place = Place::Blocks;
        let mut head = Vec::new();
        nbt::compounds_header(&mut head, "BlockEntities", len("block entities", entities.len())?);
        self.put(&head)?;
        for entity in entities {
            check("a block entity", &entity.data)?;
            let mut result = Ok(());
            let bytes = nbt::payload(|out| {
                result = out.string("Id", &entity.id);
                out.int_array("Pos", &entity.pos);
                out.raw_compound("Data", &entity.data);
            });
            result?;
            self.put(&bytes)?;
        }
        self.put(&[Tag::End as u8])
    }

    /// Writes the entities and ends the file. Returns the output, not flushed.
    ///
    /// # Errors
    /// As [`block_entities`](Self::block_entities).
    ///
    /// # Panics
    /// If cells are missing.
    pub fn finish(mut self, entities: &[SchemEntity]) -> Result<W, SchemError> {
        if self.place == Place::BiomeCells {
            self.end_of_cells(Place::BiomeCells);
            self.put(&[Tag::End as u8])?;
        } else {
            assert_eq!(self.place, Place::Blocks, "the blocks are whole");
        }
        let mut head = Vec::new();
        nbt::compounds_header(&mut head, "Entities", len("entities", entities.len())?);
        self.put(&head)?;
        for entity in entities {
            check("an entity", &entity.data)?;
            let mut result = Ok(());
            let bytes = nbt::payload(|out| {
                result = out.string("Id", &entity.id);
                out.doubles("Pos", &entity.pos);
                out.raw_compound("Data", &entity.data);
            });
            result?;
            self.put(&bytes)?;
        }
        // Ends the schematic and the root.
        self.put(&[Tag::End as u8; 2])?;
        self.out.finish().map_err(SchemError::Io)
    }

    fn grid<S: AsRef<str>>(
        &mut self,
        name: &'static str,
        states: &[S],
        counts: &[u64],
    ) -> Result<(), SchemError> {
        if states.len() > MAX_STATES {
            let (found, limit) = (states.len() as u64, MAX_STATES as u64);
            return Err(SchemError::DoesNotFit { what: "the number of states", found, limit });
        }
        assert_eq!(states.len(), counts.len(), "a count for each state");
        let cells: u64 = counts.iter().sum();
        assert_eq!(cells, self.size.map(u64::from).iter().product::<u64>(), "a state for each cell");
        let found = (0..=u16::MAX).zip(counts).map(|(index, count)| varint::len_bytes(index) * count).sum();
        let limit = i32::MAX as u64;
        if found > limit {
            return Err(SchemError::DoesNotFit {
                what: "the number of bytes that the blocks take",
                found,
                limit,
            });
        }
        let mut result = Ok(());
        let mut bytes = fields(|out| {
            out.compound(name, |out| {
                out.compound("Palette", |out| {
                    let mut entries = (0..).zip(states);
                    result = entries.try_for_each(|(index, state)| out.named_int(state.as_ref(), index));
                });
                out.byte_array("Data", &[]);
            });
        });
        result?;
        // The compound stays open, and the count is that of all elements.
        bytes.truncate(bytes.len() - 5);
        bytes.extend((found as u32).to_be_bytes());
        (self.left_cells, self.left_bytes) = (cells, found);
        self.put(&bytes)
    }

    fn end_of_cells(&self, place: Place) {
        assert_eq!(self.place, place, "cells come after their palette");
        assert_eq!((self.left_cells, self.left_bytes), (0, 0), "as many cells as were announced");
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), SchemError> {
        self.out.write_all(bytes).map_err(SchemError::Io)
    }
}

impl From<io::Error> for SchemError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn check(what: &'static str, raw: &[u8]) -> Result<(), SchemError> {
    let limits = nbt::Limits::default();
    Compound::parse(raw, &limits).map(drop).map_err(|error| SchemError::NotNbt { what, error })
}

fn len(what: &'static str, found: usize) -> Result<usize, SchemError> {
    let limit = i32::MAX as usize;
    if found <= limit {
        return Ok(found);
    }
    Err(SchemError::DoesNotFit { what, found: found as u64, limit: limit as u64 })
}

/// Fields without the end of the compound around them.
fn fields(write: impl FnOnce(&mut nbt::CompoundWriter<'_>)) -> Vec<u8> {
    let mut bytes = nbt::payload(write);
    bytes.pop();
    bytes
}
