//! Replies that are overtaken: by a purge of the log, by another set, by what a cache forgets.

use super::values::*;
use super::*;
use cg_sync::{ValueKind, ValueSet};

over_both_engines! {
    a_purge_within_a_commit_that_is_known_in_part_loses_none_of_it
    what_left_one_set_for_another_stays_though_both_are_listed
    a_reply_that_comes_after_its_area_was_forgotten_says_nothing_of_it
}

fn a_purge_within_a_commit_that_is_known_in_part_loses_none_of_it(world: &World) {
    let (ids, server, cache) = (Ids::register(world), server_of(world), client());
    let sets = [ValueSet::of(ValueKind::Objects)];
    put(world, &ids, ValueKind::Objects, 9, Some(9));
    follow(&server, &cache, &sets, u64::MAX);
    let put = world.transaction(|tx| (0..6).try_for_each(|n| tx.put_object(format!("o/{n}"), [n])));
    put.expect("commits");
    let request = cache.request_values(&sets).expect("asks").with_max_bytes(1);
    let applied = cache.apply(&request, &told(&server, &request)).expect("applies");
    assert!(applied.has_more_values && applied.values_updated < 6, "{applied:?}");
    world.objects().put("later", *b"1").expect("commits");
    world.tiers().purge_tombstones_before(world.last_commit()).expect("purges");
    follow(&server, &cache, &sets, u64::MAX);
    assert_eq!(held(cache.world()), held(world));
}

fn what_left_one_set_for_another_stays_though_both_are_listed(world: &World) {
    let (ids, cache) = (Ids::register(world), client());
    // Without a log each reply lists its sets.
    let server = SyncServer::new(world.clone(), SyncServerLimits::default());
    let dimension = here(&cache, [0, 0, 0]).dimension;
    let at = |x| ChunkPos::new(x, 0, 0).expect("inside the world");
    let around = |x| ValueSet::of(ValueKind::Entities).within(dimension, ChunkBox::new(at(x), at(x)));
    let sets = [around(0), around(8)];
    for x in [8, 0, 8] {
        let moved = world.transaction(|tx| {
            tx.put_entity(uuid(1), cow(&ids, x, b"1"));
            Ok::<_, Error>(())
        });
        moved.expect("commits");
        follow(&server, &cache, &sets, u64::MAX);
        let cached = cache.world().entity(uuid(1)).expect("reads");
        assert_eq!(cached.map(|cow| cow.position.block().chunk()), Some(at(x)));
    }
}

fn a_reply_that_comes_after_its_area_was_forgotten_says_nothing_of_it(world: &World) {
    let (ids, cache) = (Ids::register(world), client());
    save(world, (0..6).map(|x| (ids.at(x, 0, 0), marked(world, &ids, 3))));
    catch_up(world, &cache);
    let overworld = here(&cache, [0, 0, 0]).dimension;
    let request = cache.request_area(overworld, area()).expect("asks");
    save(world, [(ids.at(2, 0, 0), marked(world, &ids, 4))]);
    let reply = answer(world, &request, &SyncServerLimits::default()).expect("answers");
    cache.forget_area(overworld, area()).expect("forgets");
    cache.apply(&request, &reply).expect("applies");
    catch_up(world, &cache);
    is_same(world, &cache);
}
