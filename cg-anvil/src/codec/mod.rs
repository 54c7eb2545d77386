//! One column in and out of a world: for hosts [`ColumnCodec`], and below it what imports and exports share with it.
//!
//! | step | here | in `import/` or `export/` alone |
//! |---|---|---|
//! | decode | `slot` says what a slot holds and whether it is where it says, `builder` makes chunks of it | files, and jobs of sixteen slots on threads |
//! | save | `names` registers, `chunks` gives ids and fits schemas, `entity` makes entities and their riders | transactions of several columns, merges, the journal, the limits of a world, a UUID that is met twice |
//! | encode | `column` makes sections of chunks, `listed` lists of entities, `choice` takes what was kept of a slot or what it is now | the survey, the files of a region in their order, columns with lost chunks |
//!
//! An import puts many columns into one transaction and an export writes the files of a region one after the other, so
//! neither is a loop over whole columns: they call the same functions for each slot.
//! `docs/decisions/0099-columns-are-shared-below-the-codec.md` has the reasons.

mod builder;
pub(crate) mod choice;
mod chunks;
mod column;
mod column_codec;
mod decode;
mod encode;
mod entities;
mod entity;
pub(crate) mod listed;
mod missed;
mod names;
mod parts;
mod prepared;
mod save;
pub(crate) mod slot;

pub(crate) use builder::Builder;
pub(crate) use choice::Beside;
pub(crate) use chunks::placed;
pub(crate) use column::{Built, ColumnBuilder};
pub use column_codec::ColumnCodec;
pub use entities::ColumnEntities;
pub(crate) use entity::{List, Member, made, position, without_chunk};
pub(crate) use listed::{Listed, Lists, Whole, whole_entity};
pub(crate) use missed::Missed;
pub(crate) use names::{blocks, register};
pub use parts::{ColumnParts, ColumnReport, DecodedColumn, EncodedColumn, SlotContent};
pub(crate) use prepared::{LocalState, PreparedColumn, PreparedEntities};
pub(crate) use slot::Held;
