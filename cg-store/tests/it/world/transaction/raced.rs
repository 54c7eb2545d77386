//! Commits of another thread between a transaction's reads and its commit are a conflict, also where they made the
//! writes impossible: the caller tries again, and finds the world as it is now.

use std::thread;

use super::super::*;
use cg_format::chunk::EditError;
use cg_format::{BlockBox, CellOrder};
use cg_store::error::ConflictKey;
use cg_store::objects::ObjectKey;

over_both_engines! {
    a_block_is_set_while_an_entity_leaves_the_chunk
    a_block_is_set_while_an_entity_of_the_chunk_is_deleted
    a_chunk_is_saved_while_an_entity_leaves_it
    an_entity_is_put_into_a_chunk_that_is_deleted
    an_entity_is_moved_into_a_chunk_that_is_deleted
    a_block_is_set_while_an_entity_comes
    an_entity_is_put_while_it_is_deleted
    a_reference_is_saved_while_its_entity_is_deleted
    a_reference_is_saved_while_its_entity_comes_into_another_chunk
    an_object_is_written_while_its_version_rises
    a_block_is_set_in_a_chunk_that_was_deleted_meanwhile
    a_component_is_set_of_a_block_that_was_replaced_meanwhile
    a_box_is_written_over_a_chunk_that_was_deleted_meanwhile
    an_object_is_looked_at_whose_version_rose_meanwhile
    what_nobody_raced_is_refused_as_what_it_is
}

struct Pasture {
    ids: Ids,
    /// Holds the cow.
    a: ChunkAt,
    b: ChunkAt,
    cow: EntityId,
}

fn pasture(world: &World) -> Pasture {
    let ids = Ids::register(world);
    let (a, b, cow) = (ids.at(0, 0, 0), ids.at(0, 0, 1), uuid(1));
    save(world, [(a, filled(world, ids.stone)), (b, filled(world, ids.stone))]);
    let put = world.transaction(|tx| {
        tx.put_entity(cow, ids.cow_in(a));
        Ok::<_, Error>(())
    });
    put.expect("puts");
    Pasture { ids, a, b, cow }
}

/// Runs `ours`, commits `other` on another thread before `ours` ends, and gives what `ours` came to.
fn race(
    world: &World,
    ours: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>,
    other: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error> + Send,
) -> Error {
    let raced = world.transaction(|tx| {
        ours(tx)?;
        thread::scope(|scope| scope.spawn(|| world.transaction(other)).join().expect("no panic"))
            .expect("nothing hinders the other");
        Ok::<_, Error>(())
    });
    let error = raced.expect_err("was raced");
    assert_sound(world);
    error
}

#[track_caller]
fn is_conflict(error: &Error, expected: ConflictKey) {
    assert!(matches!(error, Error::Conflict { key } if *key == expected), "{error}");
}

fn a_block_is_set_while_an_entity_leaves_the_chunk(world: &World) {
    let Pasture { ids, a, b, cow } = pasture(world);
    let set = |tx: &mut Transaction<'_>| tx.set_block(a.dimension, a.pos.min_block(), ids.air).map(drop);
    let error = race(world, set, |tx| tx.move_entity(cow, Owner::Chunk(b)).map(drop));
    is_conflict(&error, ConflictKey::Chunk(a));
}

fn a_block_is_set_while_an_entity_of_the_chunk_is_deleted(world: &World) {
    let Pasture { ids, a, cow, .. } = pasture(world);
    let set = |tx: &mut Transaction<'_>| tx.set_block(a.dimension, a.pos.min_block(), ids.air).map(drop);
    let error = race(world, set, |tx| {
        tx.delete_entity(cow);
        Ok(())
    });
    is_conflict(&error, ConflictKey::Chunk(a));
}

fn a_chunk_is_saved_while_an_entity_leaves_it(world: &World) {
    let Pasture { ids, a, b, cow } = pasture(world);
    let schema = world.catalog().current_schema();
    let save = |tx: &mut Transaction<'_>| {
        let mut chunk = Chunk::clone(&*tx.load(a)?.expect("is stored"));
        chunk.set_block(LocalPos::new(0, 0, 0), ids.air, &schema).expect("is registered");
        tx.save(a, chunk);
        Ok(())
    };
    let error = race(world, save, |tx| tx.move_entity(cow, Owner::Chunk(b)).map(drop));
    is_conflict(&error, ConflictKey::Chunk(a));
}

fn an_entity_is_put_into_a_chunk_that_is_deleted(world: &World) {
    let Pasture { ids, b, .. } = pasture(world);
    let put = |tx: &mut Transaction<'_>| {
        tx.load(b)?;
        tx.put_entity(uuid(2), ids.cow_in(b));
        Ok(())
    };
    let delete = |tx: &mut Transaction<'_>| {
        tx.delete(b);
        Ok(())
    };
    is_conflict(&race(world, put, delete), ConflictKey::Chunk(b));
}

fn an_entity_is_moved_into_a_chunk_that_is_deleted(world: &World) {
    let Pasture { b, cow, .. } = pasture(world);
    let delete = |tx: &mut Transaction<'_>| {
        tx.delete(b);
        Ok(())
    };
    let error = race(world, |tx| tx.move_entity(cow, Owner::Chunk(b)).map(drop), delete);
    is_conflict(&error, ConflictKey::Chunk(b));
}

fn a_block_is_set_while_an_entity_comes(world: &World) {
    let Pasture { ids, b, cow, .. } = pasture(world);
    let set = |tx: &mut Transaction<'_>| tx.set_block(b.dimension, b.pos.min_block(), ids.air).map(drop);
    let error = race(world, set, |tx| tx.move_entity(cow, Owner::Chunk(b)).map(drop));
    is_conflict(&error, ConflictKey::Chunk(b));
}

fn an_entity_is_put_while_it_is_deleted(world: &World) {
    let Pasture { a, cow, .. } = pasture(world);
    let put = |tx: &mut Transaction<'_>| {
        let entity = tx.entity(cow)?.expect("is stored");
        tx.put_entity(cow, entity.owned_by(Owner::Chunk(a)));
        Ok(())
    };
    let error = race(world, put, |tx| {
        tx.delete_entity(cow);
        Ok(())
    });
    is_conflict(&error, ConflictKey::Entity(cow));
}

/// A chunk of stone that refers to an entity, saved without a look at what is stored.
fn save_reference(tx: &mut Transaction<'_>, ids: &Ids, at: ChunkAt, id: EntityId) -> Result<(), Error> {
    let mut chunk = Chunk::filled(ids.stone, &tx.catalog().current_schema())?;
    chunk.add_entity(id);
    tx.save(at, chunk);
    Ok(())
}

fn a_reference_is_saved_while_its_entity_is_deleted(world: &World) {
    let Pasture { ids, a, cow, .. } = pasture(world);
    let error = race(
        world,
        |tx| save_reference(tx, &ids, a, cow),
        |tx| {
            tx.delete_entity(cow);
            Ok(())
        },
    );
    is_conflict(&error, ConflictKey::Entity(cow));
}

fn a_reference_is_saved_while_its_entity_comes_into_another_chunk(world: &World) {
    let Pasture { ids, a, b, cow } = pasture(world);
    let error = race(
        world,
        |tx| save_reference(tx, &ids, a, cow),
        |tx| tx.move_entity(cow, Owner::Chunk(b)).map(drop),
    );
    is_conflict(&error, ConflictKey::Entity(cow));
}

fn an_object_is_written_while_its_version_rises(world: &World) {
    let put =
        |version: i64| move |tx: &mut Transaction<'_>| tx.put_object_at_version("spawn", version, *b"north");
    let error = race(world, put(5), put(7));
    is_conflict(&error, ConflictKey::Object(ObjectKey::new("spawn").expect("a key")));
}

/// As [`race`], where the other commits before `ours` looks.
fn race_ahead(
    world: &World,
    ours: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error>,
    other: impl FnOnce(&mut Transaction<'_>) -> Result<(), Error> + Send,
) -> Error {
    let mut told = None;
    let raced = world.transaction(|tx| {
        thread::scope(|scope| scope.spawn(|| world.transaction(other)).join().expect("no panic"))
            .expect("nothing hinders the other");
        let refused = ours(tx);
        told = refused.as_ref().err().map(ToString::to_string);
        refused
    });
    let error = raced.expect_err("was raced");
    assert_eq!(told, Some(error.to_string()), "the call itself was refused");
    assert_sound(world);
    error
}

fn a_block_is_set_in_a_chunk_that_was_deleted_meanwhile(world: &World) {
    let Pasture { ids, b, .. } = pasture(world);
    let set = |tx: &mut Transaction<'_>| tx.set_block(b.dimension, b.pos.min_block(), ids.air).map(drop);
    let error = race_ahead(world, set, |tx| {
        tx.delete(b);
        Ok(())
    });
    is_conflict(&error, ConflictKey::Chunk(b));
    let error = world.transaction(set).expect_err("is still not there");
    assert!(matches!(error, Error::ChunkAbsent { at } if at == b), "{error}");
}

fn a_component_is_set_of_a_block_that_was_replaced_meanwhile(world: &World) {
    let Pasture { ids, b, .. } = pasture(world);
    save(world, [(b, filled(world, ids.machine))]);
    let cell = LocalPos::new(0, 0, 0).into();
    let set = |tx: &mut Transaction<'_>| tx.set_component(b, cell, ids.power, &[0; 4]);
    let error = race_ahead(world, set, |tx| tx.set_block(b.dimension, b.pos.min_block(), ids.air).map(drop));
    is_conflict(&error, ConflictKey::Chunk(b));
    let error = world.transaction(set).expect_err("air has no power");
    assert!(matches!(error, Error::Edit(EditError::NoComponent { .. })), "{error}");
}

fn a_box_is_written_over_a_chunk_that_was_deleted_meanwhile(world: &World) {
    let Pasture { ids, b, .. } = pasture(world);
    let cell = b.pos.min_block();
    let area = BlockBox::new(cell, cell);
    let write = |tx: &mut Transaction<'_>| {
        tx.write_box(b.dimension, area, CellOrder::Yzx, &[ids.air], ids.air, |block| Some(*block))
    };
    let error = race_ahead(world, write, |tx| {
        tx.delete(b);
        Ok(())
    });
    is_conflict(&error, ConflictKey::Chunk(b));
}

fn an_object_is_looked_at_whose_version_rose_meanwhile(world: &World) {
    let look = |tx: &mut Transaction<'_>| {
        tx.put_object_at_version("spawn", 5, *b"north")?;
        tx.object("spawn").map(drop)
    };
    let error = race_ahead(world, look, |tx| tx.put_object_at_version("spawn", 7, *b"south"));
    is_conflict(&error, ConflictKey::Object(ObjectKey::new("spawn").expect("a key")));
}

fn what_nobody_raced_is_refused_as_what_it_is(world: &World) {
    let Pasture { ids, a, .. } = pasture(world);
    let nowhere = ids.at(9, 0, 0);
    // Something else changes meanwhile, of which nothing was read.
    let put = |tx: &mut Transaction<'_>| {
        tx.put_entity(uuid(2), ids.cow_in(nowhere));
        Ok(())
    };
    let error = race(world, put, |tx| tx.set_block(a.dimension, a.pos.min_block(), ids.air).map(drop));
    assert!(matches!(error, Error::OwnerAbsent { at, .. } if at == nowhere), "{error}");
}
