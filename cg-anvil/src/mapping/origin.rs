//! Where an entity stood in its save, and its riders.
//!
//! | offset | width | field | meaning | allowed |
//! |---|---|---|---|---|
//! | 0 | 1 | `format_version` | version of this layout | 1 |
//! | 1 | 1 | `place` | 0 = a file of `entities/`, 1 = its column | 0, 1 |
//! | 2 | 4 | `data_version` | of the column it was read from | any i32 |
//! | 6 | 4 | `column_x` | the column it was listed in | any i32 |
//! | 10 | 4 | `column_z` | the column it was listed in | any i32 |
//! | 14 | 4 | `index` | its place in the column's list; a rider has its vehicle's | any |
//! | 18 | 1 | `links` | bit 0: it rides, bit 1: it has riders, bit 2: it is of a schematic, bit 3: that gave it `id` | 0 … 7, 12 … 15 |
//! | 19 | 16 | `vehicle` | UUID of what it rides, if it rides | any |
//! | … | 4 | `riders_offset` | where `Passengers` stood in its NBT, if it has riders | any |
//! | … | 4 | `rider_count` | riders that follow | 1 or more |
//! | … | 16 each | `rider` | UUIDs in seat order | any |
//! | … | 8 each | `schematic_pos` | x, y, z in the schematic as f64, if it is of one | any |
//! | … | 8 each | `schematic_corner` | x, y, z as i64 of the block where its lowest corner was put, if it is of one | any |
//!
//! UUIDs are those of the world, where one that was met twice has a new one.

use cg_format::wire::{Reader, Writer};
use cg_format::{BlockPos, DecodeError, EntityId, Problem, Section};

use crate::entity::Riders;
use crate::region::ColumnPos;

const FORMAT_VERSION: u8 = 1;
const RIDES: u8 = 1;
const HAS_RIDERS: u8 = 2;
const OF_SCHEMATIC: u8 = 4;
const ID_ADDED: u8 = 8;
const UUID_BYTES: u64 = 16;

/// Where an entity stood in its save, and its riders.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// Which list.
    pub place: ListedIn,
    /// The number of the game's version that wrote the list.
    pub data_version: i32,
    /// The column's position.
    pub column: ColumnPos,
    /// Which of the list, from 0; a rider has its vehicle's.
    pub index: u32,
    /// Entity that it rides.
    pub vehicle: Option<EntityId>,
    /// Its riders.
    pub riders: Option<Riders<EntityId>>,
    /// Where a schematic had it, if it came with one.
    pub schematic: Option<InSchematic>,
}

/// Where an entity stood in a schematic, so that it goes out again exactly as it came.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InSchematic {
    /// From the schematic's lowest corner.
    pub pos: [f64; 3],
    /// Where that corner was put.
    pub corner: BlockPos,
    /// Whether its NBT said no `id` and was given one.
    pub is_id_added: bool,
}

/// The list that an entity stood in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ListedIn {
    /// A file of `entities/`.
    EntityFile,
    /// The column with the blocks.
    Column,
}

impl Origin {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        writer.u8(FORMAT_VERSION);
        writer.u8(u8::from(self.place == ListedIn::Column));
        for number in [self.data_version, self.column.x, self.column.z] {
            writer.u32(number.cast_unsigned());
        }
        writer.u32(self.index);
        let riders = self.riders.as_ref().filter(|riders| !riders.ids.is_empty());
        let upwards = if self.vehicle.is_some() { RIDES } else { 0 };
        let downwards = if riders.is_some() { HAS_RIDERS } else { 0 };
        let schematic = self
            .schematic
            .as_ref()
            .map_or(0, |found| OF_SCHEMATIC | if found.is_id_added { ID_ADDED } else { 0 });
        writer.u8(upwards | downwards | schematic);
        if let Some(vehicle) = self.vehicle {
            writer.bytes(&vehicle.to_bytes());
        }
        if let Some(riders) = riders {
            writer.u32(riders.offset_bytes);
            writer.u32(riders.ids.len() as u32);
            riders.ids.iter().for_each(|id| writer.bytes(&id.to_bytes()));
        }
        if let Some(InSchematic { pos, corner, .. }) = self.schematic {
            for number in pos {
                writer.u64(number.to_bits());
            }
            for number in [corner.x, corner.y, corner.z] {
                writer.i64(number);
            }
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// Which field is wrong, and where.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Section::Components);
        reader.expect_u8("format_version", FORMAT_VERSION)?;
        let place = match flag(&mut reader, "place")? {
            0 => ListedIn::EntityFile,
            _ => ListedIn::Column,
        };
        let data_version = reader.u32("data_version")?.cast_signed();
        let [x, z] = [reader.u32("column_x")?.cast_signed(), reader.u32("column_z")?.cast_signed()];
        let column = ColumnPos::new(x, z);
        let index = reader.u32("index")?;
        let links = links(&mut reader)?;
        let vehicle = if links & RIDES == 0 { None } else { Some(reader.array("vehicle")?) };
        let riders = if links & HAS_RIDERS == 0 {
            None
        } else {
            let offset_bytes = reader.u32("riders_offset")?;
            let before = reader.clone();
            let count = reader.u32("rider_count")?;
            if count == 0 {
                let (field, allowed) = ("rider_count", "1 or more");
                return Err(before.error(Problem::OutOfRange { field, found: 0, allowed }));
            }
            let left = reader.left_bytes() as u64;
            if u64::from(count) * UUID_BYTES > left {
                let (field, width) = ("rider_count", UUID_BYTES);
                return Err(before.error(Problem::CountExceedsInput {
                    field,
                    count: count.into(),
                    width,
                    left,
                }));
            }
            let ids: Result<Vec<_>, _> =
                (0..count).map(|_| reader.array("rider").map(EntityId::from_bytes)).collect();
            Some(Riders { offset_bytes, ids: ids? })
        };
        let schematic = if links & OF_SCHEMATIC == 0 {
            None
        } else {
            let mut pos = [0.0; 3];
            for number in &mut pos {
                *number = f64::from_bits(reader.u64("schematic_pos")?);
            }
            let mut corner = || reader.i64("schematic_corner");
            let corner = BlockPos::new(corner()?, corner()?, corner()?);
            Some(InSchematic { pos, corner, is_id_added: links & ID_ADDED != 0 })
        };
        reader.end("bytes after the origin")?;
        let vehicle = vehicle.map(EntityId::from_bytes);
        Ok(Self { place, data_version, column, index, vehicle, riders, schematic })
    }
}

fn flag(reader: &mut Reader<'_>, field: &'static str) -> Result<u8, DecodeError> {
    let before = reader.clone();
    let found = reader.u8(field)?;
    if found > 1 {
        return Err(before.error(Problem::OutOfRange { field, found: found.into(), allowed: "0 or 1" }));
    }
    Ok(found)
}

fn links(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let (before, field) = (reader.clone(), "links");
    let found = reader.u8(field)?;
    let is_of_schematic = found & OF_SCHEMATIC != 0;
    if found > RIDES | HAS_RIDERS | OF_SCHEMATIC | ID_ADDED || found & ID_ADDED != 0 && !is_of_schematic {
        let allowed = "0 to 7 and 12 to 15";
        return Err(before.error(Problem::OutOfRange { field, found: found.into(), allowed }));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn id() -> impl Strategy<Value = EntityId> {
        any::<u128>().prop_map(|id| EntityId::new(Uuid::from_u128(id)))
    }

    fn origin() -> impl Strategy<Value = Origin> {
        let riders = prop::option::of((any::<u32>(), prop::collection::vec(id(), 1..4)))
            .prop_map(|riders| riders.map(|(offset_bytes, ids)| Riders { offset_bytes, ids }));
        let place = prop_oneof![Just(ListedIn::Column), Just(ListedIn::EntityFile)];
        let schematic = (any::<[f32; 3]>(), any::<[i64; 3]>(), any::<bool>()).prop_map(
            |(pos, [x, y, z], is_id_added)| InSchematic {
                pos: pos.map(f64::from),
                corner: BlockPos::new(x, y, z),
                is_id_added,
            },
        );
        let schematic = prop::option::of(schematic);
        (
            place,
            any::<i32>(),
            any::<(i32, i32)>().prop_map(|(x, z)| ColumnPos::new(x, z)),
            any::<u32>(),
            prop::option::of(id()),
            riders,
            schematic,
        )
            .prop_map(|(place, data_version, column, index, vehicle, riders, schematic)| Origin {
                place,
                data_version,
                column,
                index,
                vehicle,
                riders,
                schematic,
            })
    }

    proptest! {
        #[test]
        fn an_origin_comes_back(origin in origin()) {
            prop_assert_eq!(Origin::decode(&origin.encode()), Ok(origin));
        }

        #[test]
        fn what_is_read_is_what_would_be_written(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(origin) = Origin::decode(&bytes) {
                prop_assert_eq!(origin.encode(), bytes);
            }
        }
    }

    #[test]
    fn a_count_is_checked_before_memory_is_taken() {
        let origin = Origin {
            place: ListedIn::Column,
            data_version: 2566,
            column: ColumnPos::new(0, -1),
            index: 3,
            vehicle: None,
            riders: Some(Riders { offset_bytes: 9, ids: vec![EntityId::new(Uuid::nil())] }),
            schematic: None,
        };
        let mut bytes = origin.encode();
        bytes[23..27].copy_from_slice(&u32::MAX.to_le_bytes());
        let error = Origin::decode(&bytes).expect_err("4 billion riders").to_string();
        expect![
            "component section: 4294967295 rider_count of 16 bytes exceed the 16 bytes left (at byte 23)"
        ]
        .assert_eq(&error);
    }
}
