//! What of a column goes into its three slots: what it is now, what an import kept of it, or nothing.

use super::column::Built;
use super::listed::Listed;
use crate::column::{Column, EntityColumn};
use crate::mapping::defaults::DATA_VERSION;
use crate::mapping::kept::{self, KeptSlot, Mapped};
use crate::mapping::leftovers::Blocks;
use crate::mapping::{EntitySlot, Points};
use crate::nbt::Tag;
use crate::region::ColumnPos;
use crate::write::{self, WriteError};

/// Entities of a host, which have no NBT.
pub(crate) const NEVER_SAVED: &str = "entities that never were in a save";
/// Entities that no slot can hold.
pub(crate) const HOMELESS: &str =
    "entities of columns that are not stored, which versions before 1.17 have only in columns";
/// Fields that a slot of `entities/` does not get back.
pub(crate) const OTHER_FIELDS: &str = "fields of slots of entities/ of another data version";

/// Blocks that are written where points of interest are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    /// None.
    Nothing,
    /// Those that they came with.
    Same,
    /// Others.
    Others,
}

/// A slot of `entities/` as it is now.
pub(crate) struct EntityChoice {
    pub(crate) column: EntityColumn,
    /// When it was written, in seconds since 1970.
    pub(crate) timestamp: u32,
    /// Fields beside the entities that do not go back.
    pub(crate) lost_fields: u64,
    /// Whether it holds something, or held nothing when it was written.
    pub(crate) is_written: bool,
}

impl Beside {
    /// Whether points of interest that were kept as bytes belong to these blocks.
    pub(crate) fn is_of_kept(self, kept: &KeptSlot) -> bool {
        let is_alone = kept.mapped == Mapped::Points { is_alone: true };
        self == Self::Same || self == Self::Nothing && is_alone
    }

    /// Whether points of interest belong to these blocks.
    pub(crate) fn is_of(self, points: &Points) -> bool {
        self == Self::Same || self == Self::Nothing && points.is_alone
    }
}

impl Built {
    /// Takes the entities that are listed in the column.
    pub(crate) fn take(&mut self, listed: &[Listed]) {
        self.column.entities.extend(listed.iter().map(|listed| listed.nbt.clone()));
    }

    /// The blocks of the column as it is now.
    pub(crate) fn beside(&self) -> Beside {
        if self.back.blocks == Blocks::Same { Beside::Same } else { Beside::Others }
    }

    /// Whether chunks of it cannot be read. If the blocks that it came with are all there, what cannot be read is the
    /// place of no chunk of it.
    pub(crate) fn lacks_chunks(&self) -> bool {
        !self.lost.is_empty() && self.back.blocks != Blocks::Same
    }

    /// The slot of the column, and when it was written.
    pub(crate) fn nbt(&self) -> Result<(Vec<u8>, u32), WriteError> {
        let column: &Column = &self.column;
        Ok((write::column(column)?, self.back.timestamp(column)))
    }
}

/// Whether a slot of `entities/` that was kept as bytes holds these entities and no others.
pub(crate) fn is_of_entities(kept: &KeptSlot, listed: &[Listed]) -> bool {
    let sum = kept::sum_of_entities(listed.iter().map(|listed| listed.nbt.as_slice()));
    kept.mapped == Mapped::Entities(sum)
}

/// The slot of a column in `entities/`, of these entities and what was kept beside them.
pub(crate) fn entities(pos: ColumnPos, listed: Vec<Listed>, left: Option<EntitySlot>) -> EntityChoice {
    let data_version = listed.iter().map(|listed| listed.data_version).max();
    let data_version = data_version.or(left.as_ref().map(|left| left.data_version)).unwrap_or(DATA_VERSION);
    let entities = listed.into_iter().map(|listed| listed.nbt).collect();
    let (stated, list) = (None, Some(Tag::End));
    let mut column = EntityColumn { pos, data_version, stated, entities, list, left: None };
    let had_fields = left.as_ref().is_some_and(EntitySlot::has_fields);
    let was_empty = left.as_ref().is_some_and(EntitySlot::was_empty);
    let timestamp = left.map_or(0, |left| left.put_back(&mut column));
    let is_written = column.left.is_some() || !column.entities.is_empty() || was_empty;
    let lost_fields = u64::from(had_fields && column.left.is_none());
    EntityChoice { column, timestamp, lost_fields, is_written }
}
