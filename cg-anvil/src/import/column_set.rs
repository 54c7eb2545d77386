//! Columns of one dimension, one bit each.

use serde::{Deserialize, Serialize};

use crate::region::{ColumnPos, Slot};

/// Columns of one dimension, one bit each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ColumnSet(Vec<Region>);

/// The columns of a region, by slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Region {
    x: i32,
    z: i32,
    slots: [u64; Slot::COUNT as usize / 64],
}

impl ColumnSet {
    /// Whether it has no column.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it has this column.
    pub(super) fn contains(&self, column: ColumnPos) -> bool {
        let (region, word, bit) = place(column);
        self.find(region).is_ok_and(|index| self.0[index].slots[word] & bit != 0)
    }

    /// Adds a column.
    pub(super) fn insert(&mut self, column: ColumnPos) {
        let (region, word, bit) = place(column);
        let index = self.find(region).unwrap_or_else(|index| {
            let slots = [0; Slot::COUNT as usize / 64];
            self.0.insert(index, Region { x: region.0, z: region.1, slots });
            index
        });
        self.0[index].slots[word] |= bit;
    }

    /// Adds the columns of another set.
    pub(super) fn add(&mut self, other: &Self) {
        for region in &other.0 {
            match self.find((region.x, region.z)) {
                Ok(index) => {
                    for (all, more) in self.0[index].slots.iter_mut().zip(region.slots) {
                        *all |= more;
                    }
                }
                Err(index) => self.0.insert(index, region.clone()),
            }
        }
    }

    fn find(&self, region: (i32, i32)) -> Result<usize, usize> {
        self.0.binary_search_by_key(&region, |region| (region.x, region.z))
    }
}

/// A column's region, and its word and bit there.
const fn place(column: ColumnPos) -> ((i32, i32), usize, u64) {
    let (region, slot) = (column.region(), column.slot().index() as usize);
    ((region.x(), region.z()), slot / 64, 1 << (slot % 64))
}
