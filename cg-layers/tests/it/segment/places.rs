//! Places in the root of what segments have deleted.

use super::values::{place_count, property, within};
use super::*;

/// A kill may take a deletion back that is not on the disk: the root must find the entity then.
#[test]
fn the_place_of_an_entity_stays_until_its_deletion_cannot_be_lost() {
    let mut options = segments();
    options.world.durability = Durability::Fast;
    let disk = Disk::new();
    let world = SegmentedWorld::create(dir(&disk), &[], &options).expect("an empty directory");
    let ids = register(&world);
    let (at, elsewhere) = (ids.at(0, 0, 0), ids.at(40, 0, 0));
    for at in [at, elsewhere] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    put(&world, 1, ids.cow_in(at));
    world.flush().expect("saves");
    let places = || {
        let mut count = 0;
        let all = world.root().read_view(|view| {
            view.for_each_property("", |_| {
                count += 1;
                std::ops::ControlFlow::<()>::Continue(())
            })
        });
        assert_eq!(all.expect("lists"), None);
        count
    };
    let before = places();
    let delete = |n| {
        world.transaction(at, |tx| {
            tx.delete_entity(uuid(n));
            Ok::<_, Error>(())
        })
    };
    delete(1).expect("deletes");
    assert_eq!(world.entity(uuid(1)).expect("reads"), None);
    assert_eq!(places(), before, "the deletion is not on the disk");
    world.flush().expect("saves");
    assert_eq!(places(), before - 1);
    // A deletion that is on the disk says nothing of a later one.
    put(&world, 1, ids.cow_in(at));
    world.flush().expect("saves");
    delete(1).expect("deletes");
    put(&world, 1, ids.cow_in(at));
    let segment = world.segment_of(at);
    world.segments().with(segment, World::flush).expect("saves");
    delete(1).expect("deletes");
    assert_eq!(places(), before, "the second deletion is not on the disk");
    world.flush().expect("saves");
    assert_eq!(places(), before - 1);
    // Who puts it anew gets the place.
    put(&world, 2, ids.cow_in(at));
    delete(2).expect("deletes");
    put(&world, 2, ids.cow_in(elsewhere));
    world.flush().expect("saves");
    assert_eq!(places(), before, "it is elsewhere");
    assert_eq!(world.entity(uuid(2)).expect("reads").expect("is there").owner, Owner::Chunk(elsewhere));
    assert_sound(world.root());
}

/// A put or a look-up of a value waits for a part of them at most.
#[test]
fn places_of_what_was_deleted_are_deleted_in_parts() {
    let mut options = segments();
    options.world.durability = Durability::Fast;
    let world = SegmentedWorld::in_memory(&[], &options).expect("a world");
    let ids = register(&world);
    let at = ids.at(0, 0, 0);
    let set_all = |bytes: Option<Vec<u8>>| {
        within(&world, at, |tx| {
            for n in 0..300 {
                tx.set_property(property(&format!("game:p{n}")), bytes.clone());
            }
            Ok(())
        })
        .expect("sets");
    };
    set_all(Some(vec![1]));
    set_all(None);
    assert_eq!(place_count(&world), 300, "the deletion is not synced");
    let before = world.root().last_commit();
    world.flush().expect("saves");
    assert_eq!(place_count(&world), 0);
    assert_eq!(world.root().last_commit().get() - before.get(), 5, "64 at once");
}
