//! Transactions: whole or not at all, alone and beside many others.

mod raced;
mod retried;
mod threads;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use super::*;
use cg_store::Peek;
use cg_store::error::ConflictKey;

over_both_engines! {
    a_transaction_sees_its_own_writes_and_others_see_them_after_it
    an_error_of_the_closure_writes_nothing
    a_read_that_was_overtaken_is_a_conflict_with_its_key
    blind_writes_do_not_conflict
    what_was_read_as_absent_is_guarded_too
    a_read_only_transaction_is_checked_too
    a_transaction_inside_another_is_refused
    a_panic_leaves_the_world_usable
    names_are_registered_inside_a_transaction
    equal_writes_write_nothing
    deleting_a_box_deletes_what_is_stored_and_what_was_written
    a_chunk_that_appears_in_a_deleted_box_is_a_conflict
}

fn set(world: &World, property: &Property, bytes: &[u8]) -> CommitSeq {
    let set = world.transaction(|tx| {
        tx.set_property(property.clone(), Some(bytes.to_vec()));
        Ok::<_, Error>(())
    });
    set.expect("sets").seq
}

fn a_transaction_sees_its_own_writes_and_others_see_them_after_it(world: &World) {
    let ids = Ids::register(world);
    let (a, b) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
    save(world, [(b, filled(world, ids.stone))]);
    let committed = world
        .transaction(|tx| {
            assert_eq!(tx.load(a)?, None);
            tx.save(a, filled(world, ids.air));
            let corner = BlockPos::new(0, 0, 0);
            assert_eq!(tx.set_block(ids.overworld, corner, ids.glass)?, ids.air);
            assert_eq!(tx.block(ids.overworld, corner)?, Some(ids.glass));
            tx.delete(b);
            assert_eq!(tx.load(b)?, None);
            assert_eq!(tx.block(ids.overworld, BlockPos::new(16, 0, 0))?, None);
            tx.put_entity(uuid(1), ids.cow_in(a));
            assert_eq!(tx.entity(uuid(1))?, Some(ids.cow_in(a)));
            tx.set_property(Property::Seed, Some(vec![1; 8]));
            assert_eq!(tx.property(&Property::Seed)?, Some(vec![1; 8]));
            // Nobody else sees any of it.
            assert_eq!(world.load(a)?, None);
            assert!(world.load(b)?.is_some());
            assert_eq!(world.entity(uuid(1))?, None);
            assert_eq!(world.property(&Property::Seed)?, None);
            Ok::<_, Error>(7)
        })
        .expect("commits");
    assert_eq!((committed.value, committed.seq), (7, world.last_commit()));
    let (chunk, version) = world.load_versioned(a).expect("loads").expect("is there");
    assert_eq!((chunk.block(LocalPos::new(0, 0, 0)), version), (ids.glass, committed.seq));
    assert_eq!(world.load(b).expect("loads"), None);
    assert!(matches!(world.peek(b), Peek::Absent));
    assert_eq!(world.property(&Property::Seed).expect("reads"), Some(vec![1; 8]));
    assert_sound(world);
}

#[derive(Debug)]
enum HostError {
    Mine(u8),
    World(Error),
}

impl From<Error> for HostError {
    fn from(error: Error) -> Self {
        Self::World(error)
    }
}

fn an_error_of_the_closure_writes_nothing(world: &World) {
    let ids = Ids::register(world);
    let before = rows(world);
    let error = world
        .transaction(|tx| {
            tx.save(ids.at(0, 0, 0), filled(world, ids.stone));
            tx.put_entity(uuid(1), ids.cow_in(ids.at(0, 0, 0)));
            tx.set_property(Property::Time, Some(vec![0; 8]));
            Err::<(), _>(HostError::Mine(3))
        })
        .expect_err("fails");
    assert!(matches!(error, HostError::Mine(3)), "{error:?}");
    assert!(before == rows(world));
    let error = world.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.stone)?;
        Ok::<_, HostError>(())
    });
    assert!(matches!(error, Err(HostError::World(Error::ChunkAbsent { .. }))), "{error:?}");
    assert!(before == rows(world));
}

/// One thing that a transaction does.
type Step<'s> = &'s (dyn Fn(&mut Transaction<'_>) -> Result<(), Error> + Sync);

fn a_read_that_was_overtaken_is_a_conflict_with_its_key(world: &World) {
    let ids = Ids::register(world);
    let (a, other) = (ids.at(0, 0, 0), ids.at(9, 0, 0));
    let mine = Property::Named(name("game:mine"));
    let chest = Property::Named(name("game:chest"));
    save(world, [(a, filled(world, ids.air)), (other, filled(world, ids.air))]);
    world
        .transaction(|tx| {
            tx.put_entity(uuid(1), ids.cow_in(a));
            Ok::<_, Error>(())
        })
        .expect("puts");
    let cases: [(ConflictKey, Step<'_>, Step<'_>); 3] = [
        (ConflictKey::Chunk(a), &|tx| tx.load(a).map(drop), &|tx| {
            tx.set_block(ids.overworld, BlockPos::new(1, 1, 1), ids.stone).map(drop)
        }),
        (ConflictKey::Entity(uuid(1)), &|tx| tx.entity(uuid(1)).map(drop), &|tx| {
            tx.move_entity(uuid(1), Owner::Chunk(other)).map(drop)
        }),
        (ConflictKey::Property("game:chest".into()), &|tx| tx.property(&chest).map(drop), &|tx| {
            tx.set_property(chest.clone(), Some(vec![9]));
            Ok(())
        }),
    ];
    for (expected, read, write) in cases {
        let conflicts = world.metrics().stats.conflicts;
        let error = world
            .transaction(|tx| {
                read(tx)?;
                thread::scope(|scope| {
                    scope.spawn(|| world.transaction(write).expect("commits")).join().expect("no panic");
                });
                tx.set_property(mine.clone(), Some(vec![1]));
                Ok::<_, Error>(())
            })
            .expect_err("was overtaken");
        assert!(matches!(&error, Error::Conflict { key } if *key == expected), "{error}");
        assert_eq!(world.property(&mine).expect("reads"), None, "nothing was written");
        assert_eq!(world.metrics().stats.conflicts, conflicts + 1);
    }
    assert_sound(world);
}

fn blind_writes_do_not_conflict(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    world
        .transaction(|tx| {
            tx.save(a, filled(world, ids.stone));
            tx.set_property(Property::Time, Some(vec![1]));
            thread::scope(|scope| {
                scope.spawn(|| {
                    save(world, [(a, filled(world, ids.glass))]);
                    set(world, &Property::Time, &[2]);
                });
            });
            Ok::<_, Error>(())
        })
        .expect("the last writer wins");
    assert_eq!(world.load(a).expect("loads").as_deref(), Some(&filled(world, ids.stone)));
    assert_eq!(world.property(&Property::Time).expect("reads"), Some(vec![1]));
}

fn what_was_read_as_absent_is_guarded_too(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    let error = world
        .transaction(|tx| {
            assert_eq!(tx.load(a)?, None);
            thread::scope(|scope| scope.spawn(|| save(world, [(a, filled(world, ids.glass))])).join())
                .expect("no panic");
            tx.save(a, filled(world, ids.stone));
            Ok::<_, Error>(())
        })
        .expect_err("was generated by somebody else meanwhile");
    assert!(matches!(&error, Error::Conflict { key: ConflictKey::Chunk(at) } if *at == a), "{error}");
    assert_eq!(world.load(a).expect("loads").as_deref(), Some(&filled(world, ids.glass)));
}

fn a_read_only_transaction_is_checked_too(world: &World) {
    let (left, right) = (Property::Named(name("game:left")), Property::Named(name("game:right")));
    let both = |value: u8| {
        let set = world.transaction(|tx| {
            tx.set_property(left.clone(), Some(vec![value]));
            tx.set_property(right.clone(), Some(vec![value]));
            Ok::<_, Error>(())
        });
        set.expect("sets")
    };
    both(1);
    let torn = world.transaction(|tx| {
        let first = tx.property(&left)?;
        thread::scope(|scope| drop(scope.spawn(|| both(2)).join().expect("no panic")));
        Ok::<_, Error>((first, tx.property(&right)?))
    });
    let error = torn.expect_err("it read two states");
    assert!(matches!(error, Error::Conflict { .. }), "{error}");
}

fn a_transaction_inside_another_is_refused(world: &World) {
    let ids = Ids::register(world);
    let elsewhere = in_memory();
    world
        .transaction(|tx| {
            let error = world.transaction(|_| Ok::<_, Error>(())).expect_err("nested");
            assert!(matches!(error, Error::Nested), "{error}");
            let clone = world.clone();
            let error = clone.transaction(|_| Ok::<_, Error>(())).expect_err("nested through a clone");
            assert!(matches!(error, Error::Nested), "{error}");
            // Another world is another matter.
            set(&elsewhere, &Property::Time, &[1]);
            tx.save(ids.at(0, 0, 0), filled(world, ids.stone));
            Ok::<_, Error>(())
        })
        .expect("the outer one goes on");
    assert!(world.load(ids.at(0, 0, 0)).expect("loads").is_some());
    set(world, &Property::Time, &[2]);
}

fn a_panic_leaves_the_world_usable(world: &World) {
    let ids = Ids::register(world);
    let before = rows(world);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        world.transaction(|tx| {
            tx.save(ids.at(0, 0, 0), filled(world, ids.stone));
            assert!(tx.load(ids.at(0, 0, 0))?.is_none(), "the host's own");
            Ok::<_, Error>(())
        })
    }));
    assert!(panicked.is_err());
    assert!(before == rows(world));
    save(world, [(ids.at(0, 0, 0), filled(world, ids.glass))]);
    assert_sound(world);
}

fn names_are_registered_inside_a_transaction(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    world
        .transaction(|tx| {
            tx.save(a, filled(world, ids.air));
            let [copper] = world.registry().register_blocks(["game:copper"])?;
            tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), copper)?;
            assert_eq!(tx.catalog().block_id("game:copper"), None, "the catalog is the one it began with");
            Ok::<_, Error>(())
        })
        .expect("a name that is new since the transaction began can be used in it");
    let copper = world.catalog().block_id("game:copper").expect("registered");
    let chunk = world.load(a).expect("loads").expect("is there");
    assert_eq!(chunk.block(LocalPos::new(0, 0, 0)), copper);
    assert_sound(world);
}

fn equal_writes_write_nothing(world: &World) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    let whole = || {
        let mut chunk = marked(world, &ids, 5);
        let schema = world.catalog().current_schema();
        chunk.set_block(LocalPos::new(1, 2, 3), ids.machine, &schema).expect("is registered");
        chunk.set_side(ids.light, vec![1, 2, 3]);
        chunk.add_entity(uuid(1));
        chunk
    };
    let write = || {
        let written = world.transaction(|tx| {
            tx.save(a, whole());
            tx.put_entity(uuid(1), ids.cow_in(a));
            tx.delete(ids.at(7, 7, 7));
            tx.delete_entity(uuid(99));
            Ok::<_, Error>(())
        });
        written.expect("commits").seq
    };
    let first = write();
    let (before, stats) = (rows(world), world.metrics().stats);
    assert_eq!(write(), first, "the answer is the commit that made it so");
    assert!(before == rows(world));
    let work = world.metrics().stats - stats;
    assert_eq!((work.commits, work.rows_written), (0, 0));
    assert_eq!(world.last_commit(), world.engine().last_commit(), "not even the sequence moves");
    // There and back in one transaction is no change either.
    world
        .transaction(|tx| {
            let cell = BlockPos::new(0, 0, 0);
            let old = tx.set_block(ids.overworld, cell, ids.glass)?;
            tx.set_block(ids.overworld, cell, old)
        })
        .expect("commits");
    assert!(before == rows(world));
}

fn deleting_a_box_deletes_what_is_stored_and_what_was_written(world: &World) {
    let ids = Ids::register(world);
    // Cubes of 16 chunks meet between -1 and 0 and between 15 and 16.
    let spots = [-17, -16, -1, 0, 1, 15, 16, 17];
    let mut all = BTreeSet::new();
    for x in spots {
        for y in [-1, 0] {
            for z in [-16, 15, 16] {
                all.insert(ids.at(x, y, z));
            }
        }
    }
    save(world, all.iter().map(|at| (*at, filled(world, ids.stone))));
    let elsewhere = ChunkAt::new(ids.nether, ChunkPos::constant(0, 0, 15));
    save(world, [(elsewhere, filled(world, ids.stone))]);
    let area = ChunkBox::new(ChunkPos::constant(16, 5, 15), ChunkPos::constant(-1, 0, -16));
    let inside: BTreeSet<_> = all.iter().copied().filter(|at| area.contains(at.pos)).collect();
    assert_eq!(inside.len(), 5 * 2);
    let (deleted, new) = (*inside.first().expect("some"), ids.at(3, 3, 3));
    let committed = world
        .transaction(|tx| {
            tx.delete(deleted);
            tx.save(new, filled(world, ids.glass));
            tx.delete_box(ids.overworld, area)
        })
        .expect("deletes");
    assert_eq!(committed.value, inside.len() as u64 - 1 + 1, "one was deleted already, one was new");
    for at in all.iter().chain([&new, &elsewhere]) {
        let stays = *at == elsewhere || (all.contains(at) && !inside.contains(at));
        assert_eq!(world.load(*at).expect("loads").is_some(), stays, "{at}");
    }
    // The whole world, corner to corner.
    let [min, max] = [ChunkPos::MIN, ChunkPos::MAX].map(|end| ChunkPos::constant(end, end, end));
    let ends = [min, max].map(|pos| ChunkAt::new(ids.overworld, pos));
    save(world, ends.map(|at| (at, filled(world, ids.stone))));
    let all_of_it =
        world.transaction(|tx| tx.delete_box(ids.overworld, ChunkBox::new(min, max))).expect("deletes");
    assert_eq!(all_of_it.value, (all.len() - inside.len() + 2) as u64);
    assert!(world.load(elsewhere).expect("loads").is_some(), "another dimension is another world");
    assert_sound(world);
}

/// Does something on another thread and waits for it.
fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(act).join().expect("no panic"))
}

fn a_chunk_that_appears_in_a_deleted_box_is_a_conflict(world: &World) {
    let ids = Ids::register(world);
    let (old, new, outside) = (ids.at(0, 0, 0), ids.at(1, 2, 3), ids.at(9, 0, 0));
    let area = ChunkBox::new(ChunkPos::constant(-2, -2, -2), ChunkPos::constant(5, 5, 5));
    let stone = || filled(world, ids.stone);
    save(world, [(old, stone()), (outside, stone())]);
    let before = world.metrics().stats;
    let refused = world.transaction(|tx| {
        assert_eq!(tx.delete_box(ids.overworld, area)?, 1);
        elsewhere(|| save(world, [(new, stone())]));
        Ok::<_, Error>(())
    });
    assert!(
        matches!(&refused, Err(Error::Conflict { key: cg_store::error::ConflictKey::Chunk(at) }) if *at == new),
        "{refused:?}"
    );
    assert_eq!((world.metrics().stats - before).conflicts, 1);
    assert!(world.load(old).expect("loads").is_some(), "nothing was written");
    // Even a transaction that found nothing to delete says so.
    let empty = ChunkBox::new(ChunkPos::constant(50, 0, 0), ChunkPos::constant(60, 0, 0));
    let refused = world.transaction(|tx| {
        assert_eq!(tx.delete_box(ids.overworld, empty)?, 0);
        elsewhere(|| save(world, [(ids.at(55, 0, 0), stone())]));
        Ok::<_, Error>(())
    });
    assert!(matches!(refused, Err(Error::Conflict { .. })), "{refused:?}");

    // What lies outside, what was there before the listing, and what is deleted or saved anyway, is no conflict.
    let (early, mine) = (ids.at(4, 4, 4), ids.at(5, 5, 5));
    let nether = ChunkAt::new(ids.nether, ids.at(2, 2, 2).pos);
    let cow = ids.cow_in(old);
    let committed = world.transaction(|tx| {
        assert!(tx.load(nether)?.is_none());
        elsewhere(|| save(world, [(early, stone())]));
        assert_eq!(tx.delete_box(ids.overworld, area)?, 3);
        tx.save(mine, filled(world, ids.glass));
        elsewhere(|| {
            save(
                world,
                [(outside, filled(world, ids.glass)), (old, marked(world, &ids, 5)), (mine, stone())],
            );
            let put = world.transaction(|tx| {
                tx.put_entity(uuid(1), cow);
                Ok::<_, Error>(())
            });
            put.expect("puts");
        });
        Ok::<_, Error>(())
    });
    committed.expect("commits");
    for (at, block) in
        [(old, None), (new, None), (early, None), (mine, Some(ids.glass)), (outside, Some(ids.glass))]
    {
        let stored = world.load(at).expect("loads");
        assert_eq!(stored.as_deref().map(|chunk| chunk.block(LocalPos::new(0, 0, 0))), block, "{at}");
    }
    assert_eq!(world.entity(uuid(1)).expect("reads"), None, "it went with its chunk");
    assert_sound(world);
}
