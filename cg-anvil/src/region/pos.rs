//! Where a region lies, and a column inside it.

use std::fmt;

/// A region's place: its columns are x·32 … x·32+31, the same for z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionPos {
    x: i32,
    z: i32,
}

/// One of the 1,024 places of a region, in header order: z·32 + x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u16);

impl RegionPos {
    /// A place whose columns all have i32 coordinates, so |x| and |z| are below 2²⁶ (or −2²⁶ itself).
    pub const fn new(x: i32, z: i32) -> Option<Self> {
        const SIDE: i32 = 1 << 26;
        if x < -SIDE || x >= SIDE || z < -SIDE || z >= SIDE { None } else { Some(Self { x, z }) }
    }

    /// The region that holds a column.
    pub const fn of_column(x: i32, z: i32) -> Self {
        Self { x: x >> 5, z: z >> 5 }
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
    pub const fn column(self, slot: Slot) -> (i32, i32) {
        (self.x * 32 + slot.x(), self.z * 32 + slot.z())
    }

    /// The region's own file name.
    pub fn file_name(self) -> String {
        format!("r.{}.{}.mca", self.x, self.z)
    }

    /// The name of the file that holds a column too large for its region file.
    pub fn external_name(self, slot: Slot) -> String {
        let (x, z) = self.column(slot);
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

    /// The slot of a column in its region.
    pub const fn of_column(x: i32, z: i32) -> Self {
        Self(((z & 31) * 32 + (x & 31)) as u16)
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
