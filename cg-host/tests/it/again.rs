//! Saves of one column that follow each other, alone and in a group.

use cg_format::EntityId;
use cg_host::{Cells, Column, ColumnAt, HostOptions, Saved, Scheduled, Writes};
use cg_store::objects::ObjectKey;
use cg_store::{ErrorKind, World};
use std::time::Duration;

use crate::maker::{AIR, FORM, Made, STONE, WATER, at, cells, known, made, number, over, section, uniform};

/// A host whose groups end by a call alone.
fn slow() -> Made {
    let options = HostOptions { group: Duration::from_secs(600), ..HostOptions::default() };
    over(World::builder().in_memory().expect("memory"), options, known(0))
}

fn ids(column: &Column) -> Vec<u8> {
    column.entities.iter().map(|entity| entity.id.to_bytes()[0]).collect()
}

fn with_cows(made: &Made, at: ColumnAt, cows: &[u8]) -> Column {
    let mut column = uniform(at, &[STONE, STONE]);
    column.entities = cows.iter().map(|id| made.cow(*id)).collect();
    column
}

#[test]
fn a_save_of_fewer_heights_between_two_equal_ones_is_not_forgotten() {
    let made = made();
    let low = ColumnAt { max_y: made.at.min_y, ..made.at };
    let column = uniform(made.at, &[STONE, STONE]);
    made.save(&column);
    made.host.save(&made.binding, uniform(low, &[WATER]), false).expect("it fits");
    assert!(matches!(made.save(&column), Saved::Changed(_)));
    assert_eq!(made.load(), Some(column));
}

#[test]
fn a_binding_in_the_place_of_another_one_is_another_one() {
    let made = made();
    let mut turned = known(0);
    turned.blocks.swap(STONE as usize, WATER as usize);
    let column = uniform(made.at, &[STONE]);
    for round in 0..20 {
        let known = if round % 2 == 0 { known(0) } else { turned.clone() };
        let binding = made.host.bind(known).expect("it fits");
        let saved = made.host.save(&binding, column.clone(), false).expect("it fits");
        assert!(matches!(saved, Saved::Changed(_)), "{round}");
    }
}

#[test]
fn a_pending_column_shows_what_stays() {
    let made = slow();
    let mut column = uniform(made.at, &[STONE]);
    column.sections[0].biomes = Some(Cells::uniform(9, FORM, 4));
    column.sections[0].sky_light = Some(vec![7; 2048].into());
    made.save(&column);
    let mut next = uniform(made.at, &[WATER]);
    made.submit(&next);
    next.sections[0].biomes.clone_from(&column.sections[0].biomes);
    next.sections[0].sky_light.clone_from(&column.sections[0].sky_light);
    assert_eq!(made.load(), Some(next));
}

#[test]
fn an_entity_walks_away_and_back_within_a_group() {
    let made = slow();
    let there = at(made.at.dimension, 4, -5);
    made.submit(&with_cows(&made, made.at, &[1, 2]));
    made.host.flush().expect("written");
    let submit = |column| made.host.submit(&made.binding, column, false).expect("it fits");
    submit(with_cows(&made, made.at, &[2]));
    submit(with_cows(&made, there, &[1]));
    submit(with_cows(&made, there, &[]));
    submit(with_cows(&made, made.at, &[1, 2]));
    // One is missing in a save, and there in the next.
    submit(with_cows(&made, made.at, &[1]));
    submit(with_cows(&made, made.at, &[1, 2]));
    made.host.flush().expect("written");
    assert_eq!(ids(&made.load().expect("stored")), [1, 2]);
    // And one that is missing in the last save has ended.
    submit(with_cows(&made, made.at, &[1, 2, 3]));
    submit(with_cows(&made, made.at, &[1]));
    made.host.flush().expect("written");
    assert_eq!(ids(&made.load().expect("stored")), [1]);
    assert_eq!(made.host.entity(EntityId::from_bytes([3; 16])).expect("sound"), None);
}

#[test]
fn a_part_leaves_entities_of_other_sections() {
    let made = made();
    // The cow is in the second section.
    made.save(&with_cows(&made, made.at, &[1]));
    let part = |y| {
        let mut part = Column::new(made.at);
        part.sections.push(section(y, vec![Cells::uniform(WATER, FORM, 4)]));
        part
    };
    made.host.save(&made.binding, part(-4), true).expect("it fits");
    assert_eq!(ids(&made.load().expect("stored")), [1]);
    made.host.save(&made.binding, part(-3), true).expect("it fits");
    assert_eq!(ids(&made.load().expect("stored")), [0; 0]);
}

#[test]
fn a_part_replaces_the_scheduled_ticks_of_its_sections() {
    let made = made();
    let one = |y, due| Scheduled { at: made.block(1, y, 1), due, block: STONE, priority: 0 };
    let mut column = uniform(made.at, &[STONE, STONE]);
    column.scheduled = vec![one(2, 5), one(18, 6)];
    made.save(&column);
    let mut part = Column::new(made.at);
    part.sections.push(section(-3, vec![Cells::uniform(STONE, FORM, 4)]));
    part.scheduled = vec![one(20, 9)];
    made.host.save(&made.binding, part.clone(), true).expect("it fits");
    assert_eq!(made.load().expect("stored").scheduled, [one(2, 5), one(20, 9)]);
    part.scheduled.clear();
    made.host.save(&made.binding, part, true).expect("it fits");
    assert_eq!(made.load().expect("stored").scheduled, [one(2, 5)]);
}

#[test]
fn what_can_never_be_stored_is_not_accepted() {
    let made = made();
    let limit = made.host.world().limits().object_bytes as usize;
    let mut writes = Writes::new();
    writes.object(ObjectKey::new(b"k").expect("a key"), Some(vec![0; limit + 1].into()));
    let error = made.host.submit_writes(&mut writes).expect_err("too large");
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn unchanged_is_never_said_of_a_column_that_was_changed_meanwhile() {
    let made = made();
    std::thread::scope(|scope| {
        for thread in 0..4_u32 {
            let made = &made;
            scope.spawn(move || {
                for round in 0..200 {
                    let block = [AIR, STONE, WATER][((thread + round) % 3) as usize];
                    if round % 3 == 0 {
                        made.save(&uniform(made.at, &[block]));
                    } else if round % 3 == 1 {
                        made.submit(&uniform(made.at, &[block]));
                    } else {
                        made.load();
                    }
                }
            });
        }
    });
    // Whatever is stored now, a save says the truth of it.
    made.host.flush().expect("written");
    for block in [AIR, STONE, WATER, AIR] {
        let before = number(&made.load().expect("stored").sections[0].layers[0], [0, 0, 0]);
        let saved = made.save(&uniform(made.at, &[block]));
        assert_eq!(saved == Saved::Unchanged, before == block);
        assert_eq!(number(&made.load().expect("stored").sections[0].layers[0], [0, 0, 0]), block);
    }
    let mixed = cells(FORM, 1, |cell| (cell % 2) as u32);
    let mut column = uniform(made.at, &[]);
    column.sections.push(section(0, vec![mixed]));
    assert!(matches!(made.save(&column), Saved::Changed(_)));
}
