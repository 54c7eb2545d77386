//! Entities that move, wait and end, within groups and across them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cg_format::ChunkAt;
use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_host::{BlockEntity, Cells, Column, ColumnAt, HostOptions, Saved, Writes};
use cg_store::prelude::Property;
use cg_store::settings::WorldSettings;
use cg_store::{ErrorKind, StoreLimits, World, WorldOptions};

use crate::maker::{AIR, CHEST, FORM, STONE, at, known, made, name, over, section, uniform};
use crate::scene::{LONG, cow_id, cows, disk, fill_disk, grouped, mood, stored, with};

#[test]
fn an_entity_that_left_and_came_back_in_one_group_stays() {
    let made = grouped(LONG);
    made.save(&with(&made, made.at, &[1]));
    made.submit(&with(&made, made.at, &[]));
    made.submit(&with(&made, made.at, &[1]));
    assert_eq!(cows(&stored(&made, made.at).expect("sound")), [1]);
}

#[test]
fn an_entity_that_crossed_and_came_back_in_one_group_stays() {
    let made = grouped(LONG);
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    made.host.save(&made.binding, with(&made, there, &[]), false).expect("sound");
    made.submit(&with(&made, made.at, &[]));
    made.host.submit(&made.binding, with(&made, there, &[1]), false).expect("sound");
    made.submit(&with(&made, made.at, &[1]));
    made.host.submit(&made.binding, with(&made, there, &[]), false).expect("sound");
    assert_eq!(cows(&stored(&made, made.at).expect("sound")), [1]);
}

#[test]
fn a_save_after_a_crossing_is_no_repetition() {
    let made = made();
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    made.host.save(&made.binding, with(&made, there, &[1]), false).expect("sound");
    // It went back, and both are saved.
    let saved = made.save(&with(&made, made.at, &[1]));
    made.host.save(&made.binding, with(&made, there, &[]), false).expect("sound");
    assert_eq!((saved == Saved::Unchanged, cows(&made.load().expect("sound"))), (false, vec![1]));
}

#[test]
fn a_save_after_an_entity_was_detached_is_no_repetition() {
    let made = made();
    made.save(&with(&made, made.at, &[1]));
    let mut writes = Writes::new();
    let offline = Owner::Detached(Reason::new("offline").expect("sound"));
    let kind = made.binding.kind(0).expect("sound");
    writes.put_entity(cow_id(1), Entity::new(kind, offline, made.cow(1).position));
    made.host.commit(&mut writes, None).expect("sound");
    assert_eq!(cows(&made.load().expect("sound")), [0; 0]);
    made.host.forget();
    made.save(&with(&made, made.at, &[1]));
    let mut writes = Writes::new();
    let offline = Owner::Detached(Reason::new("offline").expect("sound"));
    writes.put_entity(cow_id(1), Entity::new(kind, offline, made.cow(1).position));
    made.host.commit(&mut writes, None).expect("sound");
    let saved = made.save(&with(&made, made.at, &[1]));
    assert_ne!(saved, Saved::Unchanged, "logged in again");
    assert_eq!(cows(&made.load().expect("sound")), [1]);
}

#[test]
fn a_part_keeps_entities_of_other_sections() {
    let made = made();
    made.save(&with(&made, made.at, &[1])); // in section -3
    made.host.save(&made.binding, uniform(made.at, &[AIR]), true).expect("sound"); // section -4 alone
    assert_eq!(cows(&made.load().expect("sound")), [1]);
}

#[test]
fn a_refused_neighbour_does_not_split_a_crossing() {
    let limits = StoreLimits { chunk_bytes: 10_000, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory().expect("sound");
    let made = over(world, HostOptions { group: LONG, ..HostOptions::default() }, known(0));
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    made.host.save(&made.binding, with(&made, there, &[]), false).expect("sound");
    let component = mood(&made, 1);
    let far = at(made.at.dimension, 50, 50);
    let mut bad = uniform(far, &[CHEST]);
    bad.block_entities.push(BlockEntity { at: cg_format::BlockPos::new(800, -64, 800), nbt: vec![0; 9990] });
    made.submit(&with(&made, made.at, &[]));
    made.host.submit(&made.binding, with(&made, there, &[1]), false).expect("sound");
    made.host.submit(&made.binding, bad, false).expect("sound");
    made.host.flush().expect_err("one is too large");
    assert_eq!(made.host.metrics().refused, 1);
    let cow = made.host.entity(cow_id(1)).expect("sound").expect("it crossed");
    assert_eq!(cow.component(component), Some(&[5][..]), "what the host does not know stays");
}

#[test]
fn an_entity_whose_target_is_refused_stays_where_it_was() {
    let limits = StoreLimits { chunk_bytes: 10_000, ..StoreLimits::default() };
    let options = WorldOptions { limits, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory().expect("sound");
    let made = over(world, HostOptions { group: LONG, ..HostOptions::default() }, known(0));
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    let mut bad = with(&made, there, &[1]);
    bad.sections[0] = section(-4, vec![Cells::uniform(CHEST, FORM, 4)]);
    bad.block_entities.push(BlockEntity { at: cg_format::BlockPos::new(64, -64, -80), nbt: vec![0; 9990] });
    made.submit(&with(&made, made.at, &[]));
    made.host.submit(&made.binding, bad, false).expect("sound");
    made.host.flush().expect_err("one is too large");
    assert!(made.host.entity(cow_id(1)).expect("sound").is_some(), "where it was, or where it went");
}

#[test]
fn an_entity_of_a_section_that_goes_keeps_its_components() {
    let made = made();
    made.save(&with(&made, made.at, &[1]));
    let component = mood(&made, 1);
    let mut column = uniform(made.at, &[STONE]);
    column.entities.push(made.cow(1));
    made.save(&column);
    let cow = made.host.entity(cow_id(1)).expect("sound").expect("listed");
    assert_eq!(cow.component(component), Some(&[5][..]));
}

#[test]
fn an_entity_crosses_from_a_section_that_goes() {
    let made = grouped(LONG);
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    let component = mood(&made, 1);
    made.submit(&uniform(made.at, &[STONE]));
    made.host.submit(&made.binding, with(&made, there, &[1]), false).expect("sound");
    made.host.flush().expect("sound");
    let cow = made.host.entity(cow_id(1)).expect("sound").expect("listed");
    assert_eq!(cow.component(component), Some(&[5][..]));
}

#[test]
fn an_entity_that_is_put_after_its_column_stays() {
    let made = made();
    made.save(&with(&made, made.at, &[1]));
    let mut writes = Writes::new();
    writes.column(&made.binding, with(&made, made.at, &[]), false).expect("sound");
    let owner = Owner::Chunk(ChunkAt::new(made.at.dimension, made.block(0, 16, 0).chunk()));
    writes.put_entity(
        cow_id(1),
        Entity::new(made.binding.kind(0).expect("sound"), owner, made.cow(1).position),
    );
    made.host.commit(&mut writes, None).expect("sound");
    assert!(made.host.entity(cow_id(1)).expect("sound").is_some(), "it was put after the column");
}

#[test]
fn an_entity_that_another_binding_was_shown_stays() {
    let made = made();
    made.save(&with(&made, made.at, &[1]));
    let mut without = known(0);
    without.entities = vec![name("game:player")];
    let other = made.host.bind(without).expect("sound");
    let mut column = made.host.load(&other, made.at).expect("sound").expect("sound");
    assert_eq!((column.entities.len(), column.kept), (0, 1));
    made.load(); // the first binding looks at it
    column.sections[0] = section(-4, vec![Cells::uniform(AIR, FORM, 4)]);
    made.host.save(&other, column, false).expect("sound");
    assert_eq!(cows(&made.load().expect("sound")), [1], "a kind that the saver does not know");
}

#[test]
fn a_read_does_not_end_a_group() {
    let made = grouped(LONG);
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    made.submit(&with(&made, made.at, &[]));
    made.host.property(&Property::Named(name("game:x"))).expect("sound");
    assert!(made.host.world().entity(cow_id(1)).expect("sound").is_some(), "a kill here loses it");
    made.host.submit(&made.binding, with(&made, there, &[1]), false).expect("sound");
}

#[test]
fn an_autosave_of_hundreds_of_columns_is_one_commit() {
    let made = grouped(LONG);
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    for x in 0..255 {
        made.host
            .submit(&made.binding, uniform(at(made.at.dimension, 100 + x, 0), &[STONE]), false)
            .expect("sound");
    }
    made.submit(&with(&made, made.at, &[]));
    std::thread::sleep(Duration::from_millis(500));
    assert!(made.host.world().entity(cow_id(1)).expect("sound").is_some(), "a kill here loses it");
    made.host.submit(&made.binding, with(&made, there, &[1]), false).expect("sound");
}

#[test]
fn an_entity_of_a_column_that_waits_is_seen() {
    let (made, room) = disk(256 << 20, Duration::from_millis(10));
    fill_disk(&room);
    made.submit(&with(&made, made.at, &[1]));
    let seen = made.host.entity(cow_id(1)).expect("sound").is_some();
    room.store(u64::MAX, Ordering::SeqCst);
    assert!(seen, "accepted, so every read sees it");
}

#[test]
fn settings_that_wait_are_all_seen() {
    let (made, room) = disk(256 << 20, Duration::from_millis(10));
    fill_disk(&room);
    let submit = |edit: &dyn Fn(&mut WorldSettings)| {
        let mut settings = WorldSettings::default();
        edit(&mut settings);
        let mut writes = Writes::new();
        writes.settings(settings);
        made.host.submit_writes(&mut writes).expect("sound");
    };
    submit(&|settings| settings.name = Some("Grove".into()));
    made.host.flush().expect_err("full");
    submit(&|settings| settings.seed = Some(7));
    let settings = made.host.settings().expect("sound");
    room.store(u64::MAX, Ordering::SeqCst);
    assert_eq!((settings.name.as_deref(), settings.seed), (Some("Grove"), Some(7)));
}

#[test]
fn a_deletion_that_waits_is_seen() {
    let made = grouped(LONG);
    made.submit(&with(&made, made.at, &[1]));
    let mut writes = Writes::new();
    writes.delete_entity(cow_id(1));
    made.host.submit_writes(&mut writes).expect("sound");
    let pending = cows(&made.load().expect("sound"));
    assert_eq!(pending, cows(&stored(&made, made.at).expect("sound")));
}

#[test]
fn a_crossing_that_waits_is_not_shown_twice() {
    let made = grouped(LONG);
    let there = at(made.at.dimension, 4, -5);
    made.submit(&with(&made, made.at, &[1]));
    made.host.submit(&made.binding, with(&made, there, &[1]), false).expect("sound");
    let both =
        [made.at, there].map(|at| cows(&made.host.load(&made.binding, at).expect("sound").expect("sound")));
    made.host.flush().expect("sound");
    let after =
        [made.at, there].map(|at| cows(&made.host.load(&made.binding, at).expect("sound").expect("sound")));
    assert_eq!(both, after);
}

#[test]
fn an_entity_that_was_shown_in_other_heights_ends() {
    let made = made();
    made.save(&with(&made, made.at, &[1]));
    let upper = ColumnAt { min_y: -3, ..made.at };
    let mut column = Column::new(upper);
    column.sections.push(section(-3, vec![Cells::uniform(STONE, FORM, 4)]));
    made.host.save(&made.binding, column, false).expect("sound");
    assert_eq!(cows(&made.load().expect("sound")), [0; 0], "the host was shown it, and has it no longer");
}

#[test]
fn a_list_that_only_the_commit_refuses_stops_no_other() {
    let made = grouped(LONG);
    let there = at(made.at.dimension, 4, -5);
    made.save(&with(&made, made.at, &[1]));
    let component = mood(&made, 1);
    made.submit(&with(&made, made.at, &[]));
    let position = EntityPos::new(made.at.dimension, made.block(0, 0, 0), [0.0; 3]).expect("sound");
    let offline = Owner::Detached(Reason::new("offline").expect("sound"));
    let mut writes = Writes::new();
    writes.put_entity(cow_id(7), Entity::new(cg_format::EntityTypeId::new(999), offline, position));
    made.host.submit_writes(&mut writes).expect("its kind is looked up when it is committed");
    made.host.submit(&made.binding, with(&made, there, &[1]), false).expect("sound");
    let error = made.host.flush().expect_err("the world has no such kind");
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    made.host.flush().expect("it was reported once");
    assert_eq!(made.host.metrics().refused, 1);
    let load = |at| made.host.load(&made.binding, at).expect("sound").expect("stored");
    assert_eq!((cows(&load(made.at)), cows(&load(there))), (vec![], vec![1]));
    let cow = made.host.entity(cow_id(1)).expect("sound").expect("it crossed");
    assert_eq!(cow.component(component), Some(&[5][..]), "it crossed in one commit");
    assert_eq!(made.host.entity(cow_id(7)).expect("sound"), None);
}
