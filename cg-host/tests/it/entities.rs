//! Entities of columns: where they go, and which of them end.

use cg_format::entity::{Entity, EntityPos, Owner, Reason};
use cg_format::{ChunkAt, EntityId};
use cg_host::{Column, Writes};

use crate::maker::{Made, STONE, at, made, uniform};

fn column_of(made: &Made, cows: &[u8]) -> Column {
    let mut column = uniform(made.at, &[STONE, STONE]);
    column.entities = cows.iter().map(|id| made.cow(*id)).collect();
    column
}

fn cows(column: &Column) -> Vec<u8> {
    column.entities.iter().map(|entity| entity.id.to_bytes()[0]).collect()
}

#[test]
fn entities_come_back_and_one_that_is_no_longer_listed_ends() {
    let made = made();
    made.save(&column_of(&made, &[1, 2, 3]));
    let loaded = made.load().expect("stored");
    assert_eq!(loaded, column_of(&made, &[1, 2, 3]));
    made.save(&column_of(&made, &[1, 3]));
    assert_eq!(cows(&made.load().expect("stored")), [1, 3]);
    assert_eq!(made.host.entity(EntityId::from_bytes([2; 16])).expect("sound"), None);
}

#[test]
fn an_entity_that_the_host_was_not_shown_stays() {
    let made = made();
    made.save(&column_of(&made, &[1]));
    // Another writer puts one there after the host has loaded the column.
    let world = made.host.world();
    let kind = world.catalog().entity_type("game:cow").expect("registered");
    let place = ChunkAt::new(made.at.dimension, made.block(0, 0, 0).chunk());
    let position = EntityPos::new(made.at.dimension, made.block(0, 0, 0), [0.0; 3]).expect("fractions");
    let hidden = EntityId::from_bytes([9; 16]);
    let put = world.transaction(|tx| {
        tx.put_entity(hidden, Entity::new(kind, Owner::Chunk(place), position));
        Ok::<_, cg_store::Error>(())
    });
    put.expect("it fits");
    made.host.forget();
    made.save(&column_of(&made, &[]));
    assert_eq!(cows(&made.load().expect("stored")), [9], "the one that was shown has ended");
    // It was shown by now, and ends.
    made.save(&column_of(&made, &[]));
    assert_eq!(cows(&made.load().expect("stored")), [0; 0]);
}

#[test]
fn an_entity_that_was_not_shown_survives_the_end_of_its_section() {
    let made = made();
    made.save(&column_of(&made, &[]));
    let world = made.host.world();
    let kind = world.catalog().entity_type("game:cow").expect("registered");
    let upper = made.block(0, 16, 0);
    let position = EntityPos::new(made.at.dimension, upper, [0.0; 3]).expect("fractions");
    let owner = Owner::Chunk(ChunkAt::new(made.at.dimension, upper.chunk()));
    let put = world.transaction(|tx| {
        tx.put_entity(EntityId::from_bytes([9; 16]), Entity::new(kind, owner.clone(), position));
        Ok::<_, cg_store::Error>(())
    });
    put.expect("it fits");
    made.host.forget();
    made.save(&uniform(made.at, &[STONE]));
    assert_eq!(cows(&made.load().expect("stored")), [9]);
    made.host.forget();
    made.host.save(&made.binding, uniform(made.at, &[STONE]), false).expect("it fits");
}

#[test]
fn an_entity_that_crosses_a_border_in_one_group_is_moved() {
    let made = made();
    let there = at(made.at.dimension, 4, -5);
    let (mut one, mut other) = (column_of(&made, &[1, 2]), uniform(there, &[STONE]));
    made.submit(&one);
    made.submit(&other);
    made.host.flush().expect("written");
    one.entities.remove(0);
    other.entities.push(made.cow(1));
    // In either order: the column that lost it comes first, then last.
    made.submit(&one);
    made.submit(&other);
    made.host.flush().expect("written");
    let load = |at| made.host.load(&made.binding, at).expect("sound").expect("stored");
    assert_eq!((cows(&load(made.at)), cows(&load(there))), (vec![2], vec![1]));
    other.entities.clear();
    one.entities.push(made.cow(1));
    made.submit(&one);
    made.submit(&other);
    made.host.flush().expect("written");
    assert_eq!((cows(&load(made.at)), cows(&load(there))), (vec![2, 1].into_iter().rev().collect(), vec![]));
}

#[test]
fn a_component_that_the_host_does_not_know_stays_with_its_entity() {
    let made = made();
    made.save(&column_of(&made, &[1]));
    let component = made
        .host
        .world()
        .registry()
        .register_component(cg_registry::ComponentOffer::variable(crate::maker::name("mod:mood")))
        .expect("new");
    let id = EntityId::from_bytes([1; 16]);
    let mut writes = Writes::new();
    writes.set_entity_component(id, component, Some(vec![5]));
    made.host.commit(&mut writes, None).expect("it fits");
    let mut column = column_of(&made, &[1]);
    column.entities[0].nbt = vec![8];
    made.save(&column);
    let stored = made.host.entity(id).expect("sound").expect("stored");
    assert_eq!(stored.component(component), Some(&[5][..]));
    assert_eq!(made.load().expect("stored").entities[0].nbt, [8]);
}

#[test]
fn an_entity_that_fell_out_of_the_world_belongs_to_the_nearest_section() {
    let made = made();
    let mut column = column_of(&made, &[1]);
    let deep = made.block(0, -9000, 0);
    column.entities[0].position = EntityPos::new(made.at.dimension, deep, [0.0; 3]).expect("fractions");
    made.save(&column);
    assert_eq!(made.load(), Some(column));
}

#[test]
fn players_belong_to_no_chunk_and_are_read_while_they_wait() {
    let made = made();
    let player = EntityId::from_bytes([7; 16]);
    let kind = made.binding.kind(1).expect("registered");
    let position = EntityPos::new(made.at.dimension, made.block(0, 0, 0), [0.0; 3]).expect("fractions");
    let offline = Owner::Detached(Reason::new("offline").expect("short"));
    let mut writes = Writes::new();
    writes.put_entity(player, Entity::new(kind, offline, position));
    made.host.submit_writes(&mut writes).expect("it fits");
    assert!(made.host.entity(player).expect("sound").is_some());
    made.submit(&column_of(&made, &[]));
    assert_eq!(cows(&made.load().expect("pending")), [0; 0]);
}
