//! Tiers: the number of chunks under one key.
//!
//! | tier | nickname | chunks per key | side in chunks | side in blocks |
//! |---|---|---|---|---|
//! | L0 | hot chunk | 1 | 1 | 16 |
//! | L1 | warm cluster | 64 | 4 | 64 |
//! | L2 | cold cluster | 4,096 | 16 | 256 |
//!
//! Source: "Scaling Chunks" of CherryGrove's "Save the World".

/// The scale at which a chunk is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// Hot: one chunk per key.
    L0,
    /// Warm: 4×4×4 chunks per key.
    L1,
    /// Cold: 16×16×16 chunks per key.
    L2,
}

impl Tier {
    /// All tiers, hottest first: the order in which a chunk is looked up.
    pub const ALL: [Self; 3] = [Self::L0, Self::L1, Self::L2];

    /// The side of one key's cube, in chunks: 1, 4 or 16.
    pub const fn side_chunks(self) -> u8 {
        match self {
            Self::L0 => 1,
            Self::L1 => 4,
            Self::L2 => 16,
        }
    }

    /// The side of one key's cube, in blocks: 16, 64 or 256.
    pub const fn side_blocks(self) -> u16 {
        self.side_chunks() as u16 * 16
    }
}

/// A tier whose keys contain clusters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClusterTier {
    /// Warm: 4×4×4 chunks.
    L1,
    /// Cold: 16×16×16 chunks.
    L2,
}

impl ClusterTier {
    /// The tier of the clusters.
    pub const fn tier(self) -> Tier {
        match self {
            Self::L1 => Tier::L1,
            Self::L2 => Tier::L2,
        }
    }

    /// The byte of the scale in stored values: 1 or 2.
    pub const fn scale_level(self) -> u8 {
        match self {
            Self::L1 => 1,
            Self::L2 => 2,
        }
    }

    /// The tier of a stored scale byte.
    pub const fn from_scale_level(level: u8) -> Option<Self> {
        match level {
            1 => Some(Self::L1),
            2 => Some(Self::L2),
            _ => None,
        }
    }

    /// The side of a cluster, in chunks: 4 or 16.
    pub const fn side_chunks(self) -> u8 {
        self.tier().side_chunks()
    }

    /// The number of slots of a cluster: 64 or 4,096.
    pub const fn slot_count(self) -> usize {
        let side = self.side_chunks() as usize;
        side * side * side
    }

    /// The number of groups of a cluster as it is written: 4 slabs of 1×4×4 chunks, or 128 halves of cubes,
    /// 2×4×4 each.
    pub const fn group_count(self) -> usize {
        match self {
            Self::L1 => 4,
            Self::L2 => 128,
        }
    }

    /// The bits by which a chunk coordinate is shifted for the cluster's: 2 or 4.
    pub const fn shift_chunks(self) -> u32 {
        match self {
            Self::L1 => 2,
            Self::L2 => 4,
        }
    }
}
