//! Loading: from memory where it can be, each chunk decoded once, and absence remembered too.

use super::*;
use cg_store::Peek;

fn with_cache(cache_bytes: u64) -> World<MemEngine> {
    World::temporary(&[], &WorldOptions { cache_bytes, ..options() }).expect("a world in memory")
}

#[test]
fn a_chunk_is_read_and_decoded_once() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let (a, absent) = (ids.at(0, 0, 0), ids.at(1, 0, 0));
    save(&world, [(a, filled(&world, ids.stone))]);
    drop(world);
    let world = disk.open(&[]);
    assert!(matches!(world.peek(a), Peek::NotLoaded) && matches!(world.peek(absent), Peek::NotLoaded));
    let before = world.stats();
    let first = world.load(a).expect("loads").expect("is there");
    assert_eq!(world.load(absent).expect("loads"), None);
    let work = world.stats() - before;
    assert_eq!((work.engine_reads, work.chunks_decoded, work.cache_misses), (1 + 3, 1, 2));
    for _ in 0..5 {
        let again = world.load(a).expect("loads").expect("is there");
        assert!(std::sync::Arc::ptr_eq(&first, &again), "one chunk is shared");
        assert_eq!(world.load(absent).expect("loads"), None);
    }
    assert!(matches!(world.peek(a), Peek::Here(chunk) if std::sync::Arc::ptr_eq(&chunk, &first)));
    assert!(matches!(world.peek(absent), Peek::Absent));
    let work = world.stats() - before;
    assert_eq!((work.engine_reads, work.chunks_decoded, work.cache_hits), (4, 1, 10));
}

#[test]
fn a_saved_chunk_is_in_memory_and_shared() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let chunk = std::sync::Arc::new(filled(&world, ids.stone));
    let shared = std::sync::Arc::clone(&chunk);
    let saved = world.transaction(|tx| {
        tx.save(ids.at(0, 0, 0), shared);
        Ok::<_, Error>(())
    });
    drop(saved.expect("saves"));
    let before = world.stats();
    let loaded = world.load(ids.at(0, 0, 0)).expect("loads").expect("is there");
    assert!(std::sync::Arc::ptr_eq(&loaded, &chunk));
    assert_eq!((world.stats() - before).engine_reads, 0);
    // An edit touches a copy: who holds the old chunk keeps it as it was.
    world.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)).expect("edits");
    assert_eq!(chunk.block(LocalPos::new(0, 0, 0)), ids.stone);
    let loaded = world.load(ids.at(0, 0, 0)).expect("loads").expect("is there");
    assert_eq!(loaded.block(LocalPos::new(0, 0, 0)), ids.glass);
}

#[test]
fn a_world_without_memory_works() {
    let world = with_cache(0);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..50).map(|n| ids.at(n, 0, 0)).collect();
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, marked(&world, &ids, n))));
    for (at, n) in all.iter().zip(0..) {
        assert_eq!(world.load(*at).expect("loads").as_deref(), Some(&marked(&world, &ids, n)));
        assert!(matches!(world.peek(*at), Peek::NotLoaded));
    }
    world.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass)).expect("edits");
    assert_sound(&world);
}

#[test]
fn memory_stays_within_its_bytes() {
    let world = with_cache(256 << 10);
    let ids = Ids::register(&world);
    let big = |n: u8| {
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(ids.light, vec![n; 4000]);
        chunk
    };
    let all: Vec<_> = (0..200).map(|n| ids.at(n, 0, 0)).collect();
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, big(n))));
    let kept = all.iter().filter(|at| matches!(world.peek(**at), Peek::Here(_))).count();
    assert!(kept <= 64, "{kept} chunks of 4 kB in 256 KiB");
    for (at, n) in all.iter().zip(0..) {
        assert_eq!(world.load(*at).expect("loads").as_deref(), Some(&big(n)));
    }
}

#[test]
fn requested_chunks_arrive_in_memory() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..30).map(|n| ids.at(n, 0, 0)).collect();
    save(&world, all[..20].iter().zip(0..).map(|(at, n)| (*at, marked(&world, &ids, n))));
    drop(world);
    let world = disk.open(&[]);
    let pending = world.request(&all);
    let found = loop {
        if let Some(found) = pending.poll() {
            break found;
        }
        std::thread::yield_now();
    };
    for (n, (found, at)) in found.into_iter().zip(&all).enumerate() {
        let expected = (n < 20).then(|| marked(&world, &ids, n as u16));
        assert_eq!(found.expect("loads").as_deref(), expected.as_ref(), "{at}");
        assert!(!matches!(world.peek(*at), Peek::NotLoaded), "{at}");
    }
    assert!(pending.poll().is_none(), "they are given away once");
    assert!(matches!(pending.wait(), Err(Error::Closed)));
    // Nobody has to wait.
    drop(world.request(&all));
}
