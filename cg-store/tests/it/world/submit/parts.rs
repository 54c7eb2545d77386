//! Batches that change a part of what is stored, and keep what others have changed of the rest.

use super::*;
use cg_format::chunk::EditError;
use cg_store::ErrorKind;
use std::time::{Duration, Instant};

const CELL: LocalPos = LocalPos::new(1, 2, 3);

fn power(bytes: Option<&[u8]>) -> Option<u32> {
    bytes.map(|bytes| u32::from_le_bytes(bytes.try_into().expect("four bytes")))
}

/// A world with a machine in a chunk that owns a cow, and a chunk beside it.
fn farm() -> (World, Ids, ChunkAt, ChunkAt) {
    let world = in_memory();
    let ids = Ids::register(&world);
    let (a, b) = (ids.at(0, 0, 0), ids.at(0, 0, 1));
    save(&world, [(a, filled(&world, ids.machine)), (b, filled(&world, ids.stone))]);
    let put = world.transaction(|tx| {
        tx.put_entity(uuid(1), ids.cow_in(a));
        Ok::<_, Error>(())
    });
    put.expect("puts");
    (world, ids, a, b)
}

fn cow(world: &World) -> Entity {
    world.entity(uuid(1)).expect("reads").expect("is there")
}

fn at_block(ids: &Ids, x: i64) -> EntityPos {
    EntityPos::new(ids.overworld, BlockPos::new(x, 0, 0), [0.5; 3]).expect("a position")
}

#[test]
fn steps_of_one_writer_keep_the_purse_of_another() {
    const STEPS: i64 = 300;
    let (world, ids, a, b) = farm();
    thread::scope(|scope| {
        let (world, ids) = (&world, &ids);
        scope.spawn(move || {
            for _ in 0..STEPS {
                let paid = world.transact(|tx| {
                    let mut cow = tx.entity(uuid(1))?.expect("is there");
                    let coins = power(cow.component(ids.power)).unwrap_or(0) + 1;
                    cow.set_component(ids.power, coins.to_le_bytes().to_vec())?;
                    tx.put_entity(uuid(1), cow);
                    Ok::<_, Error>(())
                });
                paid.expect("nothing but conflicts");
            }
        });
        for step in 1..=STEPS {
            let (mut batch, to) = (WriteBatch::new(), at_block(ids, step));
            batch.edit_entity(uuid(1), move |cow| {
                cow.position = to;
                Ok(())
            });
            batch.move_entity(uuid(1), Owner::Chunk(if step % 2 == 0 { a } else { b }));
            drop(world.submit(batch).expect("is taken"));
        }
    });
    world.flush().expect("nothing is refused");
    let cow = cow(&world);
    assert_eq!(power(cow.component(ids.power)), Some(STEPS as u32), "a coin is lost");
    assert_eq!((cow.position, &cow.owner), (at_block(&ids, STEPS), &Owner::Chunk(a)));
    assert_sound(&world);
}

#[test]
fn parts_of_a_chunk_are_changed_as_it_is_by_then() {
    let (world, ids, a, _) = farm();
    let schema = world.catalog().current_schema();
    let (air, stone, light) = (ids.air, ids.stone, ids.light);
    let mut batch = WriteBatch::new();
    batch.set_component(a, CELL.into(), ids.power, 7_u32.to_le_bytes());
    batch.set_side(a, ids.light, Some(vec![1]));
    batch.set_side(a, ids.light, Some(vec![2]));
    batch.edit(a, move |chunk| {
        let is_second = chunk.side(light) == Some(&[2][..]);
        chunk.set_block(LocalPos::new(9, 9, 9), if is_second { air } else { stone }, &schema)?;
        Ok(())
    });
    // Others change the chunk after the batch was made.
    let others = world.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(5, 5, 5), ids.glass)?;
        tx.set_component(a, LocalPos::new(0, 0, 0).into(), ids.power, &3_u32.to_le_bytes())
    });
    others.expect("nobody races it");
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    let chunk = world.load(a).expect("loads").expect("is there");
    let power_at = |cell: LocalPos| power(chunk.component(cell.into(), ids.power));
    assert_eq!((power_at(CELL), power_at(LocalPos::new(0, 0, 0))), (Some(7), Some(3)));
    let blocks = [LocalPos::new(9, 9, 9), LocalPos::new(5, 5, 5)].map(|cell| chunk.block(cell));
    assert_eq!((blocks, chunk.side(ids.light)), ([ids.air, ids.glass], Some(&[2][..])));
    assert_eq!(chunk.entities(), [uuid(1)]);
    // Removed again.
    let mut batch = WriteBatch::new();
    batch.set_side(a, ids.light, None);
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    assert_eq!(world.load(a).expect("loads").expect("is there").side(ids.light), None);
    assert_sound(&world);
}

#[test]
fn what_is_said_of_an_entity_counts_in_order() {
    let (world, ids, a, b) = farm();
    let step = |to: EntityPos| {
        move |cow: &mut Entity| {
            cow.position = to;
            Ok(())
        }
    };
    let mut batch = WriteBatch::new();
    assert!(batch.is_empty());
    // A step before the cow is there, one after it, and a cow that is gone when it is moved.
    batch.edit_entity(uuid(2), step(at_block(&ids, 1)));
    assert!(!batch.is_empty());
    batch.put_entity(uuid(2), ids.cow_in(a));
    batch.move_entity(uuid(2), Owner::Chunk(b));
    batch.edit_entity(uuid(1), step(at_block(&ids, 5)));
    batch.delete_entity(uuid(1));
    batch.move_entity(uuid(1), Owner::Chunk(b));
    batch.edit_entity(uuid(3), step(at_block(&ids, 1)));
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    let entity = |n| world.entity(uuid(n)).expect("reads");
    assert_eq!([entity(1), entity(3)], [None, None]);
    assert_eq!(entity(2), Some(ids.cow_in(a).owned_by(Owner::Chunk(b))));
    assert_sound(&world);
}

#[test]
fn what_cannot_be_changed_refuses_the_batch_as_a_whole() {
    let (world, ids, a, b) = farm();
    let nowhere = ids.at(9, 0, 0);
    let refusal = |say: &dyn Fn(&mut WriteBatch)| {
        let mut batch = WriteBatch::new();
        batch.set_property(Property::Time, Some(vec![1]));
        say(&mut batch);
        let error = world.submit(batch).expect("is taken").wait().expect_err("is refused");
        assert_eq!(world.property(&Property::Time).expect("reads"), None, "nothing of it is stored");
        error
    };
    let absent =
        |error: Error| assert!(matches!(error, Error::ChunkAbsent { at } if at == nowhere), "{error}");
    absent(refusal(&|batch| batch.set_component(nowhere, CELL.into(), ids.power, [0; 4])));
    absent(refusal(&|batch| batch.set_side(nowhere, ids.light, None)));
    absent(refusal(&|batch| batch.edit(nowhere, |_| Ok(()))));
    let error = refusal(&|batch| batch.set_component(b, CELL.into(), ids.power, [0; 4]));
    assert!(matches!(error, Error::Edit(EditError::NoComponent { .. })), "{error}");
    let error = refusal(&|batch| batch.edit(a, |_| Err(Error::Nested)));
    assert!(matches!(error, Error::Nested), "{error}");
    let error = refusal(&|batch| batch.edit_entity(uuid(1), |_| Err(Error::Nested)));
    assert!(matches!(error, Error::Nested), "{error}");
    let error = refusal(&|batch| batch.move_entity(uuid(1), Owner::Chunk(nowhere)));
    assert!(matches!(error, Error::OwnerAbsent { at, .. } if at == nowhere), "{error}");
    let error = refusal(&|batch| batch.edit(a, |_| panic!("a bug of the host")));
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(matches!(&error, Error::EditPanicked { message } if message == "a bug of the host"), "{error}");
    assert_sound(&world);
}

#[test]
fn a_change_that_another_commit_made_impossible_is_tried_on_the_newer_chunk() {
    let (world, ids, a, _) = farm();
    let (other, runs) = (world.clone(), Arc::new(AtomicU64::new(0)));
    let mut batch = WriteBatch::new();
    batch.edit(a, {
        let runs = Arc::clone(&runs);
        move |chunk| {
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                other.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass))?;
            }
            // Of the chunk as it was when the batch was begun.
            if chunk.block(LocalPos::default()) == ids.glass { Ok(()) } else { Err(Error::Nested) }
        }
    });
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

#[test]
fn a_change_that_another_world_refuses_does_not_hold_up_this_one() {
    let (world, _, a, _) = farm();
    let mut batch = WriteBatch::new();
    batch.edit(a, |_| {
        let cause = Arc::new(EngineError::NoSpace { message: "another disk".into() });
        Err(EngineError::ReadOnly { cause }.into())
    });
    let error = world.submit(batch).expect("is taken").wait().expect_err("is refused");
    let Error::Engine(EngineError::ReadOnly { cause }) = &error else { panic!("{error}") };
    assert!(matches!(&**cause, EngineError::NoSpace { message } if message == "another disk"), "{cause}");
    assert!(world.load(a).expect("loads").is_some());
    assert_sound(&world);
}

#[test]
fn a_batch_that_holds_the_last_handle_lets_the_world_go() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, filled(&world, ids.stone))]);
    let mut batch = WriteBatch::new();
    let held = world.clone();
    batch.edit(a, move |chunk| {
        // By then the handle below is gone.
        thread::sleep(Duration::from_millis(50));
        chunk.set_block(CELL, ids.glass, &held.catalog().current_schema())?;
        Ok(())
    });
    drop(world.submit(batch).expect("is taken"));
    drop(world);
    let began = Instant::now();
    let world = loop {
        match World::builder().options(&options()).open(disk.path()) {
            Ok(world) => break world,
            Err(error) if began.elapsed() > Duration::from_secs(20) => panic!("still open: {error}"),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    };
    assert_eq!(world.load(a).expect("loads").expect("is there").block(CELL), ids.glass);
}
