//! Where a region lies, and a column inside it.

use std::fmt;

use cg_format::{ChunkAt, ChunkPos, Dimension};
use serde::Serialize;

/// A column's place: its chunks have this x and this z.
///
/// ```
/// use cg_anvil::region::{ColumnPos, RegionPos};
///
/// let column = ColumnPos::new(-1, 33);
/// assert_eq!(Some(column.region()), RegionPos::new(-1, 1));
/// assert_eq!(column.region().column(column.slot()), column);
/// assert_eq!(column.to_string(), "(-1, 33)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(into = "(i32, i32)")]
pub struct ColumnPos {
    /// In columns, west to east.
    pub x: i32,
    /// In columns, north to south.
    pub z: i32,
}

/// A region's place: its columns are x·32 … x·32+31, the same for z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionPos {
    x: i32,
    z: i32,
}

/// One of the 1,024 places of a region, in header order: z·32 + x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u16);

impl ColumnPos {
    /// The column with this x and this z.
    pub const fn new(x: i32, z: i32) -> Self {
        Self { x, z }
    }

    /// The region that holds it.
    pub const fn region(self) -> RegionPos {
        RegionPos { x: self.x >> 5, z: self.z >> 5 }
    }

    /// Its slot in its region.
    pub const fn slot(self) -> Slot {
        Slot(((self.z & 31) * 32 + (self.x & 31)) as u16)
    }

    /// Its chunk that holds a section.
    pub fn chunk_at(self, dimension: Dimension, y: i32) -> ChunkAt {
        let pos = ChunkPos::new(self.x.into(), y.into(), self.z.into());
        ChunkAt::new(dimension, pos.expect("an i32 lies inside the world"))
    }
}

impl fmt::Display for ColumnPos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "({}, {})", self.x, self.z)
    }
}

impl From<ColumnPos> for (i32, i32) {
    fn from(column: ColumnPos) -> Self {
        (column.x, column.z)
    }
}

impl RegionPos {
    /// A place whose columns all have i32 coordinates, so |x| and |z| are below 2²⁶ (or −2²⁶ itself).
    pub const fn new(x: i32, z: i32) -> Option<Self> {
        const SIDE: i32 = 1 << 26;
        if x < -SIDE || x >= SIDE || z < -SIDE || z >= SIDE { None } else { Some(Self { x, z }) }
    }

    /// West to east.
    pub const fn x(self) -> i32 {
        self.x
    }

    /// North to south.
    pub const fn z(self) -> i32 {
        self.z
    }

    /// The column in a slot.
    pub const fn column(self, slot: Slot) -> ColumnPos {
        ColumnPos { x: self.x * 32 + slot.x(), z: self.z * 32 + slot.z() }
    }

    /// The region's own file name.
    pub fn file_name(self) -> String {
        format!("r.{}.{}.mca", self.x, self.z)
    }

    /// The name of the file that holds a column too large for its region file.
    pub fn external_name(self, slot: Slot) -> String {
        let ColumnPos { x, z } = self.column(slot);
        format!("c.{x}.{z}.mcc")
    }
}

impl Slot {
    /// How many slots a region has.
    pub const COUNT: u16 = 1024;

    /// The slot of this index, below [`Slot::COUNT`].
    pub const fn new(index: u16) -> Option<Self> {
        if index < Self::COUNT { Some(Self(index)) } else { None }
    }

    /// The index in the header.
    pub const fn index(self) -> u16 {
        self.0
    }

    /// 0 … 31, west to east.
    pub const fn x(self) -> i32 {
        (self.0 % 32) as i32
    }

    /// 0 … 31, north to south.
    pub const fn z(self) -> i32 {
        (self.0 / 32) as i32
    }

    /// All slots in header order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} (x {}, z {})", self.0, self.x(), self.z())
    }
}
