//! Makes region files of any shape, byte by byte: the traps that no shared world has.
#![expect(clippy::big_endian_bytes, reason = "region files are big-endian by their own definition")]

use std::io::Read;
use std::path::{Path, PathBuf};

use cg_anvil::column::{BlockEntity, Blocks, CELLS, Column, Section};
use cg_anvil::nbt;
use cg_anvil::region::{ColumnPos, Slot, compress};
use twox_hash::XxHash32;

/// 1.21.1.
pub(crate) const DATA_VERSION: i32 = 3955;

/// The payload of a slot, and the compression byte that it says.
pub(crate) struct Stored {
    pub(crate) slot: Slot,
    pub(crate) compression: u8,
    pub(crate) payload: Vec<u8>,
}

/// Writes a region file without asking the crate's own writer.
pub(crate) fn region(path: &Path, slots: &[Stored]) -> PathBuf {
    let mut header = vec![0; 8192];
    let mut sectors = Vec::new();
    for Stored { slot, compression, payload } in slots {
        let first = 2 + sectors.len() as u32 / 4096;
        let from = sectors.len();
        sectors.extend((payload.len() as u32 + 1).to_be_bytes());
        sectors.push(*compression);
        sectors.extend(payload);
        sectors.resize(from + (sectors.len() - from).next_multiple_of(4096), 0);
        let count = ((sectors.len() - from) / 4096) as u32;
        let at = usize::from(slot.index()) * 4;
        header[at..at + 4].copy_from_slice(&(first << 8 | count).to_be_bytes());
    }
    header.extend(sectors);
    std::fs::write(path, header).expect("written");
    path.to_owned()
}

/// Notes when a slot of a region file was written.
pub(crate) fn stamp(path: &Path, column: (i32, i32), timestamp: u32) {
    let mut bytes = std::fs::read(path).expect("readable");
    let at = 4096 + usize::from(ColumnPos::new(column.0, column.1).slot().index()) * 4;
    bytes[at..at + 4].copy_from_slice(&timestamp.to_be_bytes());
    std::fs::write(path, bytes).expect("written");
}

pub(crate) fn zlib(column: (i32, i32), nbt: &[u8]) -> Stored {
    Stored { slot: ColumnPos::new(column.0, column.1).slot(), compression: 2, payload: compress(nbt) }
}

pub(crate) fn gzip(nbt: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let level = flate2::Compression::default();
    flate2::read::GzEncoder::new(nbt, level).read_to_end(&mut out).expect("memory is read without errors");
    out
}

/// Blocks framed as lz4-java frames them, of so many bytes each.
pub(crate) fn lz4_blocks(nbt: &[u8], block_bytes: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |method: u8, stored: &[u8], raw: &[u8]| {
        out.extend(b"LZ4Block");
        out.push(method | 6);
        out.extend((stored.len() as u32).to_le_bytes());
        out.extend((raw.len() as u32).to_le_bytes());
        let hash = if raw.is_empty() { 0 } else { XxHash32::oneshot(0x9747_B28C, raw) & 0x0FFF_FFFF };
        out.extend(hash.to_le_bytes());
        out.extend(stored);
    };
    for raw in nbt.chunks(block_bytes) {
        let mut stored = vec![0; lz4_flex::block::get_maximum_output_size(raw.len())];
        let stored_len =
            lz4_flex::block::compress_into(raw, &mut stored).expect("the largest output has room");
        stored.truncate(stored_len);
        if stored.len() < raw.len() { put(0x20, &stored, raw) } else { put(0x10, raw, raw) }
    }
    put(0x10, &[], &[]);
    out
}

/// A section with every cell of another state than its neighbour, of so many states.
pub(crate) fn patterned(y: i32, states: u16) -> Section {
    let palette = (0..states).map(|state| format!("test:block[n={state}]").into()).collect();
    let indices: Vec<_> = (0..CELLS as u32).map(|cell| (cell * 7 % u32::from(states)) as u16).collect();
    let indices = (states > 1).then(|| indices.try_into().expect("4,096 cells"));
    Section { blocks: Some(Blocks { palette, indices }), ..Section::new(y) }
}

pub(crate) fn block_entity(kind: &str, pos: [i32; 3]) -> BlockEntity {
    let nbt = nbt::payload(|out| {
        out.string("id", kind).expect("short");
        for (name, value) in ["x", "y", "z"].into_iter().zip(pos) {
            out.int(name, value);
        }
    });
    BlockEntity { pos: Some(pos), kind: kind.to_owned(), nbt }
}

/// An entity's NBT; riders are entities themselves.
pub(crate) fn entity(kind: &str, uuid: [i32; 4], pos: [f64; 3], riders: &[Vec<u8>]) -> Vec<u8> {
    nbt::payload(|out| {
        out.string("id", kind).expect("short");
        if !riders.is_empty() {
            out.raw_compounds("Passengers", riders.iter().map(Vec::as_slice));
        }
        out.int_array("UUID", &uuid);
        out.doubles("Pos", &pos);
    })
}

pub(crate) fn column(x: i32, z: i32, sections: impl IntoIterator<Item = Section>) -> Column {
    let mut column = Column::new(ColumnPos::new(x, z), DATA_VERSION);
    column.sections.extend(sections);
    column
}
