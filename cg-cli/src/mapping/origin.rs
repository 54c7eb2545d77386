//! Where an entity stood in its save, and who rides whom.
//!
//! | offset | width | field | meaning | allowed |
//! |---|---|---|---|---|
//! | 0 | 1 | `format_version` | version of this layout | 1 |
//! | 1 | 1 | `place` | 0 = a file of `entities/`, 1 = its column | 0, 1 |
//! | 2 | 4 | `data_version` | of the column it was read from | any i32 |
//! | 6 | 4 | `column_x` | the column it was listed in | any i32 |
//! | 10 | 4 | `column_z` | the column it was listed in | any i32 |
//! | 14 | 4 | `index` | its place in the column's list; a rider has its vehicle's | any |
//! | 18 | 1 | `links` | bit 0: it rides, bit 1: it has riders | 0 … 3 |
//! | 19 | 16 | `vehicle` | UUID of what it rides, if it rides | any |
//! | … | 4 | `riders_offset` | where `Passengers` stood in its NBT, if it has riders | any |
//! | … | 4 | `rider_count` | riders that follow | 1 or more |
//! | … | 16 each | `rider` | UUIDs in seat order | any |
//!
//! UUIDs are those of the world, where one that was met twice has a new one.

use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, EntityId, Problem, Section};

use crate::anvil::entity::Riders;

const FORMAT_VERSION: u8 = 1;
const RIDES: u8 = 1;
const HAS_RIDERS: u8 = 2;
const UUID_BYTES: u64 = 16;

/// Where an entity stood in its save, and who rides whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// Which list.
    pub place: ListedIn,
    /// The number of the game's version that wrote the list.
    pub data_version: i32,
    /// The column's position.
    pub column: (i32, i32),
    /// Which of the list, from 0; a rider has its vehicle's.
    pub index: u32,
    /// What it rides.
    pub vehicle: Option<EntityId>,
    /// Who rides it.
    pub riders: Option<Riders<EntityId>>,
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
        for number in [self.data_version, self.column.0, self.column.1] {
            writer.u32(number.cast_unsigned());
        }
        writer.u32(self.index);
        let riders = self.riders.as_ref().filter(|riders| !riders.ids.is_empty());
        let upwards = if self.vehicle.is_some() { RIDES } else { 0 };
        let downwards = if riders.is_some() { HAS_RIDERS } else { 0 };
        writer.u8(upwards | downwards);
        if let Some(vehicle) = self.vehicle {
            writer.bytes(&vehicle.to_bytes());
        }
        if let Some(riders) = riders {
            writer.u32(riders.offset_bytes);
            writer.u32(riders.ids.len() as u32);
            riders.ids.iter().for_each(|id| writer.bytes(&id.to_bytes()));
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
        let place = match flag(&mut reader, "place", 1)? {
            0 => ListedIn::EntityFile,
            _ => ListedIn::Column,
        };
        let data_version = reader.u32("data_version")?.cast_signed();
        let column = (reader.u32("column_x")?.cast_signed(), reader.u32("column_z")?.cast_signed());
        let index = reader.u32("index")?;
        let links = flag(&mut reader, "links", RIDES | HAS_RIDERS)?;
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
        reader.end("bytes behind the riders")?;
        let vehicle = vehicle.map(EntityId::from_bytes);
        Ok(Self { place, data_version, column, index, vehicle, riders })
    }
}

fn flag(reader: &mut Reader<'_>, field: &'static str, max: u8) -> Result<u8, DecodeError> {
    let before = reader.clone();
    let found = reader.u8(field)?;
    if found > max {
        let allowed = if max == 1 { "0 or 1" } else { "0 to 3" };
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
        (place, any::<i32>(), any::<(i32, i32)>(), any::<u32>(), prop::option::of(id()), riders).prop_map(
            |(place, data_version, column, index, vehicle, riders)| Origin {
                place,
                data_version,
                column,
                index,
                vehicle,
                riders,
            },
        )
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
            column: (0, -1),
            index: 3,
            vehicle: None,
            riders: Some(Riders { offset_bytes: 9, ids: vec![EntityId::new(Uuid::nil())] }),
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
