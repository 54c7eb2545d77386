//! Region files: 32 × 32 columns after a header of sectors, read slot by slot.
//!
//! ```text
//! offset   width  field
//! 0        4×1024 per slot: u24 first sector, u8 sector count; 0 = nothing there
//! 4096     4×1024 per slot: u32 seconds since 1970 of the last write
//! 8192            sectors of 4,096 bytes; a slot's first sector begins with
//!                 u32 length of what follows, u8 compression (bit 7: the payload lies in c.X.Z.mcc), payload
//! ```
//!
//! ```
//! use cg_anvil::nbt;
//! use cg_anvil::region::{ColumnPos, ReadLimits, Region, RegionPos, RegionWriter};
//!
//! let dir = tempfile::tempdir()?;
//! let pos = RegionPos::new(-1, 0).expect("inside the game's range");
//! let slot = ColumnPos::new(-32, 5).slot();
//!
//! let mut writer = RegionWriter::create(dir.path(), pos)?;
//! writer.put(slot, &nbt::document(|root| root.int("DataVersion", 3955)), 1_700_000_000)?;
//! let path = writer.finish()?;
//! assert_eq!(path.file_name().unwrap(), "r.-1.0.mca");
//!
//! let mut region = Region::open(&path)?;
//! assert_eq!(region.slots().collect::<Vec<_>>(), [slot]);
//! let mut bytes = Vec::new();
//! region.read(slot, &ReadLimits::default(), &mut bytes)?;
//! assert_eq!(bytes.len(), 3 + 3 + "DataVersion".len() + 4 + 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compression;
mod error;
mod header;
mod lz4;
mod name;
mod pos;
mod raw;
mod reader;
mod rewrite;
mod writer;

#[cfg(test)]
mod tests;

pub use compression::{Compression, compress, compress_as, decompress};
pub use error::SlotError;
pub use name::region_pos;
pub(crate) use name::{number, split_name};
pub use pos::{ColumnPos, RegionPos, Slot};
pub use raw::{Extent, RawSlot};
pub use reader::{ReadLimits, Region};
pub use rewrite::{SlotChange, is_external, rewrite};
pub use writer::{RegionWriter, region_of_file};
