//! The objects that imports left in a world, counted.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use cg_store::{Error, World};

use super::kept;
use super::key::{self, COLUMN_PREFIX, ENTITIES_PREFIX, FILE_PREFIX, POI_PREFIX};
use super::leftovers;

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObjectCount {
    /// How many there are.
    pub objects: u64,
    /// The bytes that they hold.
    pub bytes: u64,
}

/// Objects that imports left in a world beside chunks and entities.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportedObjects {
    /// Leftovers of columns, which no chunk holds.
    pub columns: ObjectCount,
    /// Slots of points of interest.
    pub points: ObjectCount,
    /// Leftovers of slots of `entities/`, which are no entities.
    pub entity_slots: ObjectCount,
    /// Slots that are kept as bytes: columns of before 1.13, and slots with an unreadable part.
    pub kept_slots: ObjectCount,
    /// Files of saves that are no regions.
    pub files: ObjectCount,
    /// Columns by their `DataVersion`, those of before 1.13 too; `None` of a kept object that says none.
    pub data_versions: BTreeMap<Option<i32>, u64>,
}

impl ImportedObjects {
    /// Counts the objects of a world. Reads each of them once and decodes those of columns; damaged ones are left out.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn count(world: &World) -> Result<Self, Error> {
        let mut found = Self::default();
        world.objects().for_each(key::PREFIX, |object| {
            if let Ok((key, _, bytes)) = object {
                found.add(key, bytes);
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    fn add(&mut self, key: &[u8], bytes: &[u8]) {
        let is_of = |prefix: &str| key.starts_with(prefix.as_bytes());
        let (count, version) = if is_of(COLUMN_PREFIX) {
            (&mut self.columns, Some(leftovers::data_version(bytes)))
        } else if is_of(kept::REGION_PREFIX) {
            // What could be read of another one is a column too.
            (&mut self.kept_slots, kept::is_of_old_column(bytes).then(|| kept::old_data_version(bytes)))
        } else if is_of(kept::PREFIX) {
            (&mut self.kept_slots, None)
        } else if is_of(POI_PREFIX) {
            (&mut self.points, None)
        } else if is_of(ENTITIES_PREFIX) {
            (&mut self.entity_slots, None)
        } else if is_of(FILE_PREFIX) {
            (&mut self.files, None)
        } else {
            return;
        };
        count.objects += 1;
        count.bytes += bytes.len() as u64;
        if let Some(version) = version {
            *self.data_versions.entry(version).or_default() += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::Column;
    use crate::mapping::Leftovers;
    use crate::mapping::kept::{Bytes, KeptSlot, Mapped};
    use crate::nbt;
    use crate::region::ColumnPos;

    #[test]
    fn each_column_counts_with_its_version() {
        let mut found = ImportedObjects::default();
        let column = |version| Leftovers::take(&mut Column::new(ColumnPos::new(0, 0), version), 0).encode();
        let old = |version: Option<i32>| {
            let slot = nbt::document(|root| {
                if let Some(version) = version {
                    root.int("DataVersion", version);
                }
                root.compound("Level", |level| {
                    level.int("xPos", 0);
                    level.int("zPos", 0);
                });
            });
            let (mapped, reason) = (Mapped::Nothing, String::new());
            KeptSlot { bytes: Bytes::Old(0, slot), mapped, reason }.encode()
        };
        for version in [3955, 2586, 3955] {
            found.add(b"minecraft/column/minecraft:overworld/r.0.0/0/0", &column(version));
        }
        for version in [Some(1343), None] {
            found.add(b"minecraft/slot/minecraft:overworld/r.0.0/0/0", &old(version));
        }
        found.add(b"minecraft/column/minecraft:overworld/r.0.0/0/0", b"spoilt");
        found.add(b"minecraft/file/level.dat", b"12345");
        found.add(b"minecraft/filed", b"the host's own");
        let versions: Vec<_> =
            found.data_versions.iter().map(|(version, count)| (*version, *count)).collect();
        assert_eq!(versions, [(None, 1), (Some(0), 1), (Some(1343), 1), (Some(2586), 1), (Some(3955), 2)]);
        assert_eq!(found.files, ObjectCount { objects: 1, bytes: 5 });
        assert_eq!((found.columns.objects, found.kept_slots.objects), (4, 2));
    }
}
