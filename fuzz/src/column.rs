//! Laws for any bytes that are taken for a slot's NBT: what is read of a column, of entities or of neither is sound,
//! and is read again as it is written.

use std::collections::BTreeSet;

use cg_anvil::column::{Blocks, CELLS, Column, LIGHT_BYTES, Place, Section};
use cg_anvil::nbt::{Compound, Limits};
use cg_anvil::{Decoder, Payload, entity, write};
use cg_minecraft::{state, water};

/// Reads bytes and says whether something was read.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::default();
    let answer = decoder.decode(bytes);
    assert!(decoder.decode(bytes) == answer, "what a decoder remembers changes nothing");
    let payload = match answer {
        Ok(payload) => payload,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    if let Some(column) = payload.position() {
        let (region, slot) = (column.region(), column.slot());
        assert_eq!(region.column(slot), column);
        assert_eq!(payload.check_place(Some(region), slot), Ok(()));
    }
    let again = match payload {
        Payload::PointsOfInterest => return true,
        Payload::Entities(column) => {
            riders(&column.entities);
            let bytes = write::entities(&column).expect("what is read can be written");
            (bytes, Payload::Entities(column))
        }
        Payload::Column(column) => {
            sound(&column);
            riders(&column.entities);
            let bytes = write::column(&column).expect("what is read can be written");
            let rest = Column { not_carried: BTreeSet::new(), problems: Vec::new(), ..column };
            (bytes, Payload::Column(rest))
        }
    };
    let (bytes, payload) = again;
    assert!(decoder.decode(&bytes) == Ok(payload), "what is written is read");
    true
}

fn sound(column: &Column) {
    let heights: Vec<i32> = column.sections.iter().map(|section| section.y).collect();
    assert!(heights.is_sorted_by(|low, high| low < high));
    assert!(heights.iter().all(|y| (-128..=127).contains(y)));
    for Section { blocks, biomes, block_light, sky_light, .. } in &column.sections {
        blocks.as_ref().into_iter().for_each(states);
        if let Some(biomes) = biomes {
            assert!(Compound::parse(biomes, &Limits::default()).is_ok());
        }
        assert!([block_light, sky_light].into_iter().flatten().all(|light| light.len() == LIGHT_BYTES));
    }
    assert!(Compound::parse(&column.carried, &Limits::default()).is_ok());
    assert!(column.problems.iter().all(|problem| !problem.to_string().is_empty()));
    let places = column.block_entity_places();
    assert_eq!(places.len(), column.block_entities.len());
    for (entity, place) in column.block_entities.iter().zip(places) {
        let state = entity.pos.and_then(|[x, y, z]| column.state(x, y, z));
        assert_eq!(state.is_some(), matches!(place, Place::Cell { .. } | Place::Doubled { .. }));
    }
}

fn states(blocks: &Blocks) {
    let counts = blocks.counts();
    assert_eq!(counts.len(), blocks.palette.len());
    assert_eq!(counts.iter().sum::<u32>(), CELLS as u32, "every cell shows an entry of the palette");
    for text in &blocks.palette {
        assert!(state::parse(text).is_ok(), "{text:?}");
        if let Some(dry) = water::split(text) {
            assert_eq!(water::split(&dry), None);
            assert_eq!(water::join(&dry, water::WATER).as_deref(), Some(&**text));
        }
    }
}

fn riders(entities: &[Vec<u8>]) {
    for raw in entities {
        let records = entity::split(raw, &Limits::default()).expect("part of an NBT that was checked");
        let joined = entity::join(&records[0], |&index| records.get(index));
        assert!(joined.as_ref() == Ok(raw), "riders go back where they were");
    }
}
