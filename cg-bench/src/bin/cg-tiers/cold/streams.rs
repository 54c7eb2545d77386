//! The reference: each region file as one Zstandard stream, as the Linear format stores it.

use std::fs;
use std::path::Path;

use cg_anvil::Region;
use cg_anvil::region::{ReadLimits, Slot};

use crate::failure::Failure;

/// The level with which Linear compresses unless it is told another.
const LEVEL: i32 = 6;

/// The files of a save.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Streams {
    /// As they are.
    pub(super) file_bytes: u64,
    /// Each region as one stream, and each other file as one.
    pub(super) compressed_bytes: u64,
}

impl Streams {
    /// Compresses a save: a folder, or one region file.
    pub(super) fn measure(save: &Path) -> Result<Self, Failure> {
        let mut sum = Self::default();
        if save.is_dir() {
            for entry in fs::read_dir(save)? {
                sum.add(&Self::measure(&entry?.path())?);
            }
        } else if save.file_name().is_none_or(|name| name != "session.lock") {
            let is_region = save.extension().is_some_and(|extension| extension == "mca");
            let raw = if is_region { content(save)? } else { fs::read(save)? };
            sum.file_bytes = fs::metadata(save)?.len();
            sum.compressed_bytes = zstd::bulk::compress(&raw, LEVEL)?.len() as u64;
        }
        Ok(sum)
    }

    pub(super) const fn add(&mut self, other: &Self) {
        self.file_bytes += other.file_bytes;
        self.compressed_bytes += other.compressed_bytes;
    }
}

/// The length and time of each slot, then what the slots hold. A slot that cannot be read has no length.
fn content(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut region = Region::open(file)?;
    let (mut head, mut body, mut nbt) = (Vec::new(), Vec::new(), Vec::new());
    for slot in Slot::all() {
        let limits = ReadLimits::default();
        if !matches!(region.read(slot, &limits, &mut nbt), Ok(Some(_))) {
            nbt.clear();
        }
        head.extend((nbt.len() as u32).to_le_bytes());
        head.extend(region.timestamp(slot).to_le_bytes());
        body.extend_from_slice(&nbt);
    }
    head.extend(body);
    Ok(head)
}
