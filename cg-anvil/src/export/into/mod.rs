//! Columns of a world put back into a save that is there.
//!
//! Whole columns, with their entities and points of interest; every other slot of the save keeps its bytes. A column that
//! the world does not have stays as the save has it. Of one that it has, entities and points of interest that the world
//! does not have beside it go: those of the save belong to what was replaced.
//!
//! Players of the world who are in the boxes are put too (`players.rs`), into their files and, where it has them, into `level.dat`;
//! every other player stays as the save has them.
//!
//! The save is locked as its game locks it. Each region file is replaced whole (`part.rs`), after the old one was kept
//! beside the save (`backup.rs`). So the command may be killed at any moment, and be run again.

mod backup;
mod disk;
mod error;
mod lists;
mod options;
mod part;
mod plan;
mod players;
mod putting;
mod report;
mod run;
mod same;
mod search;
mod target;

pub use self::error::IntoError;
pub use self::options::{IntoOptions, IntoProgress};
pub use self::report::{Elsewhere, IntoReport, LeftPlayer, Listed, NewerColumn, SlotCounts};
pub use self::run::export_into;
