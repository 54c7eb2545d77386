//! A world as region files that other tools open.
//!
//! What an import brought goes back as it came: water of layer 1 into the states, block entities, biomes, light,
//! entities, fields that no chunk holds and files that are no regions byte for byte, each column in the layout of the
//! version that it was read from. What follows from the blocks of a column, such as its height maps, goes back only
//! where none was changed. A world that never was a save is written as one of 1.21.1. What region files cannot hold is
//! counted in the report.
//!
//! ```
//! use cg_anvil::export::{ExportOptions, export};
//! use cg_store::prelude::*;
//!
//! let world = World::builder().in_memory()?;
//! let overworld = world.registry().register_dimension("minecraft:overworld")?;
//! let [stone] = world.registry().register_blocks(["minecraft:stone"])?;
//! world.transaction(|tx| {
//!     let schema = tx.catalog().current_schema();
//!     tx.save(ChunkAt::new(overworld, ChunkPos::new(-1, 4, 0)?), Chunk::filled(stone, &schema)?);
//!     Ok::<_, Box<dyn std::error::Error>>(())
//! })?;
//! let dir = tempfile::tempdir()?;
//! let report = export(&world, dir.path(), &ExportOptions::default(), |_| {})?;
//! assert_eq!((report.files, report.columns, report.chunks), (1, 1, 1));
//! assert!(dir.path().join("region/r.-1.0.mca").is_file());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod damaged;
mod error;
mod files;
pub mod into;
mod journal;
mod kept;
mod layout;
mod options;
mod players;
mod region;
mod report;
mod run;
mod scope;
mod slots;
mod survey;

pub use self::error::ExportError;
pub use self::journal::UNFINISHED;
pub use self::layout::{LayoutChoice, Layouts, Placed};
pub use self::options::{Damaged, ExportOptions};
pub use self::report::{DamagedColumn, DroppedSlot, ExportReport};
pub use self::run::{ExportProgress, export};
