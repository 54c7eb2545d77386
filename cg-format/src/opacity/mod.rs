//! Opacity: which parts of each column of blocks hide the blocks behind them.
//!
//! The opacity of a world is a cache: it is derived from the chunks, can be switched off, and can be rebuilt. A
//! [`TileView`] contains the columns of a 64×64 tile as runs of y, because a world is as tall as an `i64`. A commit
//! that changes a chunk's opacity stores one [`Patch`] in addition to the tile; [`fold()`] applies patches to the tile.
//! Chunks that are not stored are transparent. A tile is stored in the form of [`pack()`].
//!
//! ```
//! use cg_format::opacity::{self, Coverage, Patch, TileView};
//! use cg_format::ChunkPos;
//!
//! // A floor: the lower half of the chunk at y 0.
//! let floor = Patch::from_fn(|cell| cell.y() < 8);
//! let bytes = opacity::fold(None, &[(ChunkPos::new(0, 0, 0)?, floor)])?;
//! let tile = TileView::new(&bytes)?;
//! let column = tile.column(3, 5);
//! assert!(column.is_opaque(7) && !column.is_opaque(8));
//! assert_eq!(column.coverage(0..=15), Coverage::Mixed);
//! assert_eq!(column.highest_opaque(), Some(7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Layouts: `docs/format/opacity.md`.

mod column;
mod fold;
mod packed;
mod patch;
mod tile;

pub use column::{ColumnView, Coverage};
pub use fold::{TileTooLarge, fold, transparent};
pub use packed::{pack, trace_stored, unpack};
pub use patch::Patch;
pub use tile::TileView;

#[cfg(test)]
mod tests;
