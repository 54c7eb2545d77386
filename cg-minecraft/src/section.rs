//! The block states of a section: 16 × 16 × 16 blocks, as a palette and an index for each cell.

use std::sync::Arc;

/// Blocks of a section, and cells of one of our chunks.
pub const CELLS: usize = 4096;

/// The block states of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocks {
    /// State texts with all properties that their blocks have in the column's version, as
    /// [`complete`](crate::game::complete) gives them, in stored order; entries may repeat or be unused.
    pub palette: Vec<Arc<str>>,
    /// For each cell in the game's order y·256+z·16+x an index below the palette's length; `None` when the palette has
    /// one entry and every cell is that.
    pub indices: Option<Box<[u16; CELLS]>>,
}

impl Blocks {
    /// The same state in every cell.
    pub fn uniform(state: &str) -> Self {
        Self { palette: vec![state.into()], indices: None }
    }

    /// The palette index of a cell below [`CELLS`], in the game's order.
    pub fn index(&self, cell: u16) -> u16 {
        self.indices.as_ref().and_then(|indices| indices.get(usize::from(cell)).copied()).unwrap_or(0)
    }

    /// The state of a cell below [`CELLS`], in the game's order.
    pub fn state(&self, cell: u16) -> Option<&Arc<str>> {
        self.palette.get(usize::from(self.index(cell)))
    }

    /// How many cells show each palette entry.
    pub fn counts(&self) -> Vec<u32> {
        let mut counts = vec![0; self.palette.len()];
        match &self.indices {
            None => {
                if let Some(count) = counts.first_mut() {
                    *count = CELLS as u32;
                }
            }
            Some(indices) => {
                for &index in indices.iter() {
                    if let Some(count) = counts.get_mut(usize::from(index)) {
                        *count += 1;
                    }
                }
            }
        }
        counts
    }
}

/// The cell of a block in its section, in the game's order y·256+z·16+x.
pub const fn cell(x: i32, y: i32, z: i32) -> u16 {
    ((y & 15) << 8 | (z & 15) << 4 | x & 15) as u16
}
