//! Sponge schematics into a world and out of it.
//!
//! The files are read and written by [`cg_snapshot::schem`]; what their blocks, block entities, entities and biomes
//! become in a world is decided here, with the same names as for Java saves ([`crate::mapping`]), so that a world does
//! not show which of the two something came from. `docs/format/schematic.md` describes it for people.
//!
//! ```
//! use cg_anvil::schem::{ExportOptions, SchemFile, export, import};
//! use cg_snapshot::schem::{SchemHead, SchemWriter};
//! use cg_store::prelude::*;
//!
//! let dir = tempfile::tempdir()?;
//! let mut writer = SchemWriter::new(Vec::new(), &SchemHead::sized([2, 1, 1]))?;
//! writer.blocks(&["minecraft:stone", "minecraft:oak_log[axis=y]"], &[1, 1])?;
//! writer.cells(&[0, 1])?;
//! writer.block_entities(&[])?;
//! std::fs::write(dir.path().join("two.schem"), writer.finish(&[])?)?;
//!
//! let world = World::builder().in_memory()?;
//! let overworld = world.registry().register_dimension("minecraft:overworld")?;
//! let file = SchemFile::read(&dir.path().join("two.schem"))?;
//! let corner = BlockPos::new(-1, 64, 7);
//! let report = import(&file, &world, overworld, corner, |_| {})?;
//! assert_eq!((report.blocks, report.chunks, report.transactions), (2, 2, 1));
//!
//! let area = BlockBox::new(corner, BlockPos::new(0, 64, 7));
//! let out = dir.path().join("again.schem");
//! export(&world, overworld, area, &out, &ExportOptions::default(), |_| {})?;
//! let again = SchemFile::read(&out)?;
//! let states: Vec<_> = again.schematic.blocks().unwrap().states().map(|(_, state, _)| state.to_owned()).collect();
//! assert_eq!(states, ["minecraft:stone", "minecraft:oak_log[axis=y]"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod biomes;
mod block_entity;
mod entity;
mod export;
mod file;
mod import;
mod paste;
mod register;
mod slab;
mod standing;
mod state;
mod survey;

pub use export::{ExportError, ExportOptions, ExportReport, export};
pub use file::{SchemFile, SchemFileError};
pub use import::{ImportError, ImportReport, check_place, import};
