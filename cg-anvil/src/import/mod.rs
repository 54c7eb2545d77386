//! A Java save into a world.
//!
//! The files of a save are read in the order of [`find`](crate::save::find), sixteen slots at a time. Worker threads decode them
//! and build chunks; one thread registers names and commits, in order, so the same save gives the same ids whatever
//! the number of threads. At most a few jobs are in memory at once, however large the save is.
//!
//! Last come the files that are no regions of a dimension, `level.dat` before all. Players come with the column in which
//! they stand, or else with their files.
//!
//! Every transaction also stores how far it came. An import that was killed continues after its last transaction when
//! it is run again, and reports as if it had never stopped. If the save changed meanwhile, the rest is imported as it is
//! now, and the report names the files that were read in part before. The save is only read.
//!
//! ```
//! use cg_anvil::column::{Blocks, Column, Section};
//! use cg_anvil::region::{ColumnPos, RegionWriter};
//! use cg_anvil::write;
//! use cg_anvil::import::{ImportOptions, import};
//! use cg_store::prelude::*;
//!
//! let save = tempfile::tempdir()?;
//! let at = ColumnPos::new(0, 0);
//! let mut column = Column::new(at, 3955);
//! column.sections.push(Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(-4) });
//! let mut region = RegionWriter::create(&save.path().join("region"), at.region())?;
//! region.put(at.slot(), &write::column(&column)?, 0)?;
//! region.finish()?;
//!
//! let world = World::builder().in_memory()?;
//! let report = import(save.path(), &world, &ImportOptions::default(), |_| {})?;
//! assert_eq!((report.imported_columns, report.imported_chunks), (1, 1));
//! let overworld = world.catalog().dimension("minecraft:overworld").expect("the save has it");
//! let chunk = world.load(ChunkAt::new(overworld, ChunkPos::new(0, -4, 0)?))?.expect("a stored chunk");
//! let stone = chunk.block(LocalPos::new(0, 0, 0));
//! assert_eq!(world.catalog().block_name(stone).unwrap().as_str(), "minecraft:stone");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apply;
mod begin;
mod choices;
mod column_set;
mod columns;
mod entities;
mod error;
mod files;
mod kept;
mod layouts;
mod ledger;
mod limits;
mod options;
mod players;
mod prepare;
mod progress;
mod report;
mod run;
mod source;
mod stored;
mod target;
mod unfinished;

pub use crate::mapping::TwoStates;
pub use choices::{Choices, Merge, MergeFiles};
pub use error::ImportError;
pub use options::ImportOptions;
pub(crate) use progress::PROGRESS_PREFIX;
pub use report::{
    ImportReport, Part, Reason, Rekeyed, ReplacedLevel, Stray, TooLarge, Unlisted, Unreadable, Untested,
};
pub use run::{ImportProgress, import};
pub use target::{clear_unfinished, makes_world, of_new_world, open_or_create};
pub use unfinished::{Unfinished, abandon, unfinished};
