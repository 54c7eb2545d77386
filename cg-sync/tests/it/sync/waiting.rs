//! A request that waits for a change.

use std::time::{Duration, Instant};

use super::values::{follow, put, server_of};
use super::*;
use cg_sync::{ValueKind, ValueSet};

#[test]
fn who_waits_hears_of_a_change() {
    let world = in_memory();
    let (ids, cache, server) = (Ids::register(&world), client(), server_of(&world));
    let objects = [ValueSet::of(ValueKind::Objects)];
    follow(&server, &cache, &objects, u64::MAX);
    let request = cache.request_values(&objects).expect("asks");
    let begun = Instant::now();
    let reply = server.answer_when_changed(&request, Duration::from_millis(60)).expect("answers");
    assert!(begun.elapsed() >= Duration::from_millis(60), "nothing changed");
    assert_eq!(cache.apply(&request, &reply).expect("applies").values_updated, 0);

    let request = cache.request_values(&objects).expect("asks");
    let waiting = std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.answer_when_changed(&request, Duration::from_secs(60)));
        std::thread::sleep(Duration::from_millis(50));
        // What was not asked about wakes no one for long.
        put(&world, &ids, ValueKind::Entities, 1, Some(1));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!answer.is_finished());
        put(&world, &ids, ValueKind::Objects, 1, Some(1));
        answer.join().expect("no panic")
    });
    assert_eq!(cache.apply(&request, &waiting.expect("answers")).expect("applies").values_updated, 1);
    let request = cache.request_values(&objects).expect("asks");
    let closed = std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.answer_when_changed(&request, Duration::from_secs(60)));
        std::thread::sleep(Duration::from_millis(50));
        world.close().expect("closes");
        answer.join().expect("no panic")
    });
    assert!(matches!(closed, Err(SyncError::World(Error::Closed))), "{closed:?}");
}

#[test]
fn a_look_begins_where_the_one_before_ended() {
    let world = in_memory();
    let cache = client();
    let limits = SyncServerLimits { looked_values: 16, ..SyncServerLimits::default() };
    let server = SyncServer::new(world.clone(), limits);
    server.keep_log().expect("begins");
    let bricks = [ValueSet::of(ValueKind::Objects).with_prefix("bricks/")];
    follow(&server, &cache, &bricks, u64::MAX);
    let request = cache.request_values(&bricks).expect("asks");
    let put = |key: String| {
        world.objects().put(key, *b"1").expect("commits");
    };
    let lights = |turn: u32| (0..12).for_each(|n| put(format!("lights/{turn}/{n}")));
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| server.answer_when_changed(&request, Duration::from_secs(60)));
        for turn in 0..5 {
            lights(turn);
            std::thread::sleep(Duration::from_millis(30));
        }
        // More than is looked at for a request, since the client asked.
        assert!(!answer.is_finished());
        put("bricks/1".into());
        let reply = answer.join().expect("no panic").expect("answers");
        let applied = cache.apply(&request, &reply).expect("applies");
        assert_eq!((applied.values_updated, applied.has_more_values), (1, false));
    });
    assert!(cache.world().objects().get("bricks/1").expect("reads").is_some());
    // The position behind all that was looked at came with the reply.
    assert_eq!(follow(&server, &cache, &bricks, u64::MAX), [0, 0, 1]);
}
