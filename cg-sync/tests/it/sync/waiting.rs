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
