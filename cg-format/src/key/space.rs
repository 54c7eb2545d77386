//! The kind of a row, and the family that stores it.

use super::{OPACITY_PATCH_LEN_BYTES, OPACITY_TILE_LEN_BYTES, record};
use crate::ClusterTier;

/// The first byte of keys in the `index` family.
pub(super) const HEAT_TAG: u8 = 1;
pub(super) const CHANGE_MARK_TAG: u8 = 2;
pub(super) const QUARANTINE_TAG: u8 = 3;
pub(super) const INTENT_TAG: u8 = 4;
pub(super) const COLD_HEAT_TAG: u8 = 5;
pub(super) const CHANGE_LOG_TAG: u8 = 6;
/// The kind of a row. The number is part of every row's checksum, so it never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Space {
    /// Properties of the world itself, and its registries.
    WorldMeta = 1,
    /// Properties of mods for the whole world.
    WorldProperty = 2,
    /// Hot chunks, one per key.
    ChunkL0 = 3,
    /// Warm clusters of 4³ chunks.
    ClusterL1 = 4,
    /// Cold clusters of 16³ chunks.
    ClusterL2 = 5,
    /// Entities by UUID.
    Entity = 6,
    /// Opacity tiles of 64×64 columns.
    OpacityTile = 7,
    /// One chunk's share of a tile, newer than the tile.
    OpacityPatch = 8,
    /// Changes to a chunk since its last full save.
    ChunkDelta = 9,
    /// Versioned objects by name.
    Object = 10,
    /// Spatial records.
    Record = 11,
    /// Region snapshots saved in the world.
    Snapshot = 12,
    /// The last access of each 4³ cube.
    Heat = 13,
    /// The commit that last changed each cluster cube.
    ChangeMark = 14,
    /// Damaged rows that were quarantined.
    Quarantine = 15,
    /// A commit too large for one batch, to be rolled forward, and its parts. Their keys differ in length.
    Intent = 16,
    /// The leaf of each record.
    RecordPlace = 17,
    /// The last access of a chunk of each cold cluster.
    ColdHeat = 18,
    /// The commits that last changed values other than chunks.
    ChangeLog = 19,
}

impl Space {
    /// Every space.
    pub const ALL: [Self; 19] = [
        Self::WorldMeta,
        Self::WorldProperty,
        Self::ChunkL0,
        Self::ClusterL1,
        Self::ClusterL2,
        Self::Entity,
        Self::OpacityTile,
        Self::OpacityPatch,
        Self::ChunkDelta,
        Self::Object,
        Self::Record,
        Self::Snapshot,
        Self::Heat,
        Self::ChangeMark,
        Self::Quarantine,
        Self::Intent,
        Self::RecordPlace,
        Self::ColdHeat,
        Self::ChangeLog,
    ];

    /// The byte of the space in checksums and in quarantine keys.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The inverse of [`byte`](Self::byte).
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|space| space.byte() == byte)
    }

    /// The column family that stores the space's rows.
    pub const fn family(self) -> Family {
        match self {
            Self::WorldMeta => Family::WorldMeta,
            Self::WorldProperty => Family::WorldProperties,
            Self::ChunkL0 => Family::ChunkL0,
            Self::ClusterL1 => Family::ChunkL1,
            Self::ClusterL2 => Family::ChunkL2,
            Self::Entity => Family::Entity,
            Self::OpacityTile | Self::OpacityPatch => Family::OpacityMap,
            Self::ChunkDelta => Family::ChunkDelta,
            Self::Object => Family::Object,
            Self::Record | Self::RecordPlace => Family::Record,
            Self::Snapshot => Family::Snapshot,
            Self::Heat
            | Self::ChangeMark
            | Self::Quarantine
            | Self::Intent
            | Self::ColdHeat
            | Self::ChangeLog => Family::Index,
        }
    }

    /// The tag byte that starts the space's keys in the `index` family.
    pub const fn index_tag(self) -> Option<u8> {
        match self {
            Self::Heat => Some(HEAT_TAG),
            Self::ChangeMark => Some(CHANGE_MARK_TAG),
            Self::Quarantine => Some(QUARANTINE_TAG),
            Self::Intent => Some(INTENT_TAG),
            Self::ColdHeat => Some(COLD_HEAT_TAG),
            Self::ChangeLog => Some(CHANGE_LOG_TAG),
            _ => None,
        }
    }

    /// The space of the chunks or clusters of a tier.
    pub const fn of_cluster(tier: ClusterTier) -> Self {
        match tier {
            ClusterTier::L1 => Self::ClusterL1,
            ClusterTier::L2 => Self::ClusterL2,
        }
    }

    /// The space of a row of a family, derived from its key; `None` for a key that this code does not know.
    pub fn of_row(family: Family, key: &[u8]) -> Option<Self> {
        Some(match family {
            Family::WorldMeta => Self::WorldMeta,
            Family::WorldProperties => Self::WorldProperty,
            Family::ChunkL0 => Self::ChunkL0,
            Family::ChunkL1 => Self::ClusterL1,
            Family::ChunkL2 => Self::ClusterL2,
            Family::Entity => Self::Entity,
            Family::OpacityMap if key.len() == OPACITY_TILE_LEN_BYTES => Self::OpacityTile,
            Family::OpacityMap if key.len() == OPACITY_PATCH_LEN_BYTES => Self::OpacityPatch,
            Family::OpacityMap => return None,
            Family::ChunkDelta => Self::ChunkDelta,
            Family::Object => Self::Object,
            Family::Record => match *key.first()? {
                record::RECORD_TAG => Self::Record,
                record::PLACE_TAG => Self::RecordPlace,
                _ => return None,
            },
            Family::Snapshot => Self::Snapshot,
            Family::Index => {
                let tag = *key.first()?;
                return Self::ALL.into_iter().find(|space| space.index_tag() == Some(tag));
            }
        })
    }
}

/// A column family: rows that are stored, tuned and compacted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `worldMeta`
    WorldMeta,
    /// `worldProperties`
    WorldProperties,
    /// `chunkl0`
    ChunkL0,
    /// `chunkl1`
    ChunkL1,
    /// `chunkl2`
    ChunkL2,
    /// `entity`
    Entity,
    /// `opacityMap`
    OpacityMap,
    /// `chunkDelta`
    ChunkDelta,
    /// `object`
    Object,
    /// `record`
    Record,
    /// `snapshot`
    Snapshot,
    /// `index`
    Index,
}

impl Family {
    /// Every family. All are created with the world; none is added later.
    pub const ALL: [Self; 12] = [
        Self::WorldMeta,
        Self::WorldProperties,
        Self::ChunkL0,
        Self::ChunkL1,
        Self::ChunkL2,
        Self::Entity,
        Self::OpacityMap,
        Self::ChunkDelta,
        Self::Object,
        Self::Record,
        Self::Snapshot,
        Self::Index,
    ];

    /// The name on disk.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WorldMeta => "worldMeta",
            Self::WorldProperties => "worldProperties",
            Self::ChunkL0 => "chunkl0",
            Self::ChunkL1 => "chunkl1",
            Self::ChunkL2 => "chunkl2",
            Self::Entity => "entity",
            Self::OpacityMap => "opacityMap",
            Self::ChunkDelta => "chunkDelta",
            Self::Object => "object",
            Self::Record => "record",
            Self::Snapshot => "snapshot",
            Self::Index => "index",
        }
    }

    /// The number that identifies the family where a name would take too much space. The number is stored, so it never
    /// changes.
    pub const fn number(self) -> u8 {
        match self {
            Self::WorldMeta => 0,
            Self::WorldProperties => 1,
            Self::ChunkL0 => 2,
            Self::ChunkL1 => 3,
            Self::ChunkL2 => 4,
            Self::Entity => 5,
            Self::OpacityMap => 6,
            Self::ChunkDelta => 7,
            Self::Object => 8,
            Self::Record => 9,
            Self::Snapshot => 10,
            Self::Index => 11,
        }
    }

    /// The inverse of [`number`](Self::number).
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.number() == number)
    }
}
