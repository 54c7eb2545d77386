//! Content of the cache, whatever the order of loads and commits.

use super::*;
use cg_format::schema::NoComponents;
use cg_format::{BlockId, ChunkPos, Dimension};

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(Dimension::new(0), ChunkPos::new(x, 0, 0).unwrap())
}

fn stored(version: u64) -> Lookup<Stored> {
    let chunk = Chunk::filled(BlockId::new(version), &NoComponents).expect("any block is known");
    let chunk = Arc::new(chunk);
    Lookup::Found(Stored { chunk, version, is_current: true })
}

fn version(cache: &ChunkCache, at: ChunkAt) -> Option<u64> {
    cache.get(at).ok()?.here().map(|stored| stored.version)
}

fn publish(cache: &ChunkCache, at: ChunkAt, entry: Lookup<Stored>) {
    cache.announce([at]).publish(at, entry);
}

#[test]
fn a_slow_loader_does_not_hide_a_commit() {
    let cache = ChunkCache::new(1 << 20);
    let ticket = cache.get(at(1)).unwrap_err();
    publish(&cache, at(1), stored(2));
    let instead = cache.fill(at(1), ticket, &stored(1)).and_then(Lookup::here);
    assert_eq!(instead.map(|stored| stored.version), Some(2));
    assert_eq!(version(&cache, at(1)), Some(2));
}

#[test]
fn a_loader_whose_shard_stood_still_is_believed() {
    let cache = ChunkCache::new(1 << 20);
    let ticket = cache.get(at(1)).unwrap_err();
    cache.fill(at(1), ticket, &stored(1));
    assert_eq!(version(&cache, at(1)), Some(1));
    cache.clear();
    assert!(cache.get(at(1)).is_err());
    cache.fill(at(1), ticket, &stored(1));
    assert!(cache.get(at(1)).is_err(), "the ticket is older than the clearing");
}

#[test]
fn what_a_moment_knew_is_told_until_the_shard_changes() {
    let cache = ChunkCache::new(1 << 20);
    publish(&cache, at(1), stored(1));
    let moment = cache.moment();
    assert_eq!(cache.get_as_of(at(1), &moment).unwrap().here().map(|stored| stored.version), Some(1));
    let absent = ChunkCache::ticket(at(2), &moment);
    publish(&cache, at(1), stored(2));
    publish(&cache, at(2), stored(2));
    assert!(cache.get_as_of(at(1), &moment).is_none(), "it is of a later state");
    cache.fill(at(2), absent, &stored(1));
    assert_eq!(version(&cache, at(2)), Some(2), "what the moment had is older");
}

#[test]
fn nothing_is_kept_while_a_commit_is_under_way() {
    let cache = ChunkCache::new(1 << 20);
    let before = cache.get(at(1)).unwrap_err();
    let announced = cache.announce([at(1)]);
    let meanwhile = cache.get(at(1)).unwrap_err();
    assert!(cache.fill(at(1), before, &stored(1)).is_none());
    assert!(cache.fill(at(1), meanwhile, &stored(1)).is_none());
    assert_eq!(version(&cache, at(1)), None);
    // The commit fails: nothing is published, and later loads are cached.
    drop(announced);
    assert!(cache.fill(at(1), meanwhile, &stored(1)).is_none());
    assert_eq!(version(&cache, at(1)), None);
    let after = cache.get(at(1)).unwrap_err();
    assert!(cache.fill(at(1), after, &stored(1)).is_none());
    assert_eq!(version(&cache, at(1)), Some(1));
}

#[test]
fn a_cube_is_not_learned_with_another_if_a_commit_into_it_began_meanwhile() {
    let cache = ChunkCache::new(64 << 20);
    let saved = at(20);
    let next = cache.cubes_after(at(1)).into_iter();
    let next: Vec<_> = next.map(|cube| (cube, cache.cube_ticket(saved.dimension, cube))).collect();
    assert_eq!(next.len(), 63);
    publish(&cache, saved, stored(1));
    let learned = next.iter().filter(|(cube, ticket)| {
        let first = ChunkAt::new(saved.dimension, cube.min_chunk());
        cache.learn_absence(first, *ticket, Absence::WholeCube)
    });
    // Cubes may share an epoch, by chance.
    assert!((32..63).contains(&learned.count()));
    assert_eq!(version(&cache, saved), Some(1));
    assert!(cache.get(at(21)).is_err(), "its cube is unknown");
    assert!(matches!(cache.get(at(40)), Ok(Lookup::NotFound)));
    assert!(ChunkCache::new(1 << 20).cubes_after(at(1)).is_empty(), "there is no room");
}

#[test]
fn chunks_that_are_cached_together_do_not_hide_commits() {
    let cache = ChunkCache::new(1 << 20);
    let places = [at(1), at(1), at(2), at(3)];
    let tickets = places.map(|at| cache.get(at).unwrap_err());
    publish(&cache, at(2), stored(2));
    let mut found = [Ok(stored(1)), Err("damaged"), Ok(stored(1)), Ok(Lookup::NotFound)];
    cache.fill_all(&places, &tickets, &mut found);
    let versions = found.map(|found| found.map(|found| found.here().map(|stored| stored.version)));
    assert_eq!(versions, [Ok(Some(1)), Err("damaged"), Ok(Some(2)), Ok(None)]);
    assert_eq!([1, 2].map(|x| version(&cache, at(x))), [Some(1), Some(2)]);
    assert!(matches!(cache.get(at(3)), Ok(Lookup::NotFound)));
}

#[test]
fn a_run_of_a_column_is_cached_whole_or_not_at_all() {
    let up = |x, y| ChunkAt::new(at(0).dimension, ChunkPos::constant(x, y, 0));
    let places: Vec<_> = (0..70).map(|y| up(1, y)).chain((0..70).map(|y| up(2, y))).collect();
    let cache = ChunkCache::new(1 << 20);
    let tickets: Vec<_> = places.iter().map(|at| cache.get(*at).unwrap_err()).collect();
    publish(&cache, up(1, 66), stored(2));
    let mut found: Vec<Result<_, &str>> = places.iter().map(|_| Ok(stored(1))).collect();
    cache.fill_all(&places, &tickets, &mut found);
    for (at, found) in places.iter().zip(found) {
        let expected = if *at == up(1, 66) { 2 } else { 1 };
        assert_eq!(found.unwrap().here().unwrap().version, expected, "{at}");
        let is_cached = *at == up(1, 66) || at.pos.x() == 2;
        assert_eq!(cache.get(*at).is_ok(), is_cached, "{at}");
    }
}

#[test]
fn a_walk_over_the_world_does_not_push_out_what_is_used() {
    const BOUND: u64 = 1 << 20;
    let cache = ChunkCache::new(BOUND);
    let bytes = u64::from(Entry::new(stored(1), false).bytes);
    let look = |x| match cache.get(at(x)) {
        Ok(_) => true,
        Err(ticket) => {
            cache.fill(at(x), ticket, &stored(1));
            false
        }
    };
    let used = (BOUND * 3 / 4 / bytes) as i64;
    let walk = (BOUND * 20 / bytes) as i64;
    let (mut hits, mut looks) = (0, 0);
    for step in 0..walk {
        assert!(!look(1_000_000 + step), "a walk meets nothing twice");
        // Ten lookups of used chunks for each step of the walk.
        for nth in 0..10 {
            looks += 1;
            hits += i64::from(look((step * 10 + nth) * 7 % used));
        }
    }
    let cold = looks - hits - used;
    assert!(cold * 50 < looks, "{cold} of {looks} looks found what was used pushed out");
}

#[test]
fn memory_is_bounded() {
    let cache = ChunkCache::new(256 << 10);
    for x in 0..100_000 {
        let ticket = cache.get(at(x)).unwrap_err();
        cache.fill(at(x), ticket, &stored(1));
    }
    let kept = (0..100_000).filter(|x| cache.get(at(*x)).is_ok()).count();
    assert!((100..2048).contains(&kept), "{kept} entries of at least 128 bytes in 256 KiB");
}

/// Loads chunks of 100 bytes and more, and a column of each, into a cache. Returns how many of either it has then.
fn fill_both(cache: &ChunkCache, count: i64) -> [u64; 2] {
    for x in 0..count {
        if let Err(ticket) = cache.get(at(x)) {
            cache.fill(at(x), ticket, &stored(1));
        }
        if let Err(ticket) = cache.column(&column_at(x)) {
            let Lookup::Found(Stored { chunk, .. }) = stored(1) else { unreachable!() };
            cache.keep_column(column_at(x), ticket, Box::new([Some(chunk)]));
        }
    }
    let stats = cache.stats();
    [stats.chunks, stats.columns]
}

fn column_at(x: i64) -> ColumnAt {
    ColumnAt { dimension: at(x).dimension, x, z: 0, lowest: 0, highest: 0 }
}

#[test]
fn a_cache_shrinks_and_grows_while_it_is_used() {
    const LIMIT: u64 = 1 << 20;
    let cache = ChunkCache::new(LIMIT);
    // Before there are columns, and after.
    cache.set_limit(LIMIT / 4);
    let full = |cache: &ChunkCache| {
        let counts = fill_both(cache, 20_000);
        let stats = cache.stats();
        assert!(stats.evictable_bytes <= stats.limit_bytes, "{stats:?}");
        assert!(stats.evictable_bytes > stats.limit_bytes / 2, "{stats:?}");
        counts
    };
    let [chunks, columns] = full(&cache);
    assert_eq!(cache.stats().limit_bytes, LIMIT / 4);
    cache.set_limit(LIMIT);
    let more = full(&cache);
    assert!(more[0] > 3 * chunks && more[1] > 3 * columns, "{more:?} and {chunks}, {columns}");
    cache.set_limit(LIMIT / 4);
    let stats = cache.stats();
    assert!((1..=LIMIT / 4).contains(&stats.evictable_bytes), "{stats:?}");
    assert!(stats.chunks > 0 && stats.columns > 0, "{stats:?}");
}

#[test]
fn a_cache_without_memory_has_pinned_chunks_alone() {
    let cache = ChunkCache::new(1 << 20);
    let pinned = cache.keep(at(0).dimension, ChunkBox::around(at(7).pos, 0).unwrap());
    let absent = at(50_000);
    let ticket = cache.cube_ticket(absent.dimension, cube(absent).1);
    assert!(cache.learn_absence(absent, ticket, Absence::WholeCube));
    let before = fill_both(&cache, 1000);
    assert!(before.iter().all(|count| *count > 100), "{before:?}");
    for _ in 0..2 {
        cache.set_limit(0);
        let stats = cache.stats();
        assert_eq!((stats.chunks, stats.columns, stats.cubes), (1, 0, 0), "{stats:?}");
        assert_eq!((stats.limit_bytes, stats.evictable_bytes, stats.pinned_chunks), (0, 0, 1), "{stats:?}");
        assert_eq!(fill_both(&cache, 1000), [1, 0]);
        publish(&cache, at(7), stored(2));
        publish(&cache, at(8), stored(2));
        assert_eq!((version(&cache, at(7)), version(&cache, at(8))), (Some(2), None));
        cache.set_limit(1 << 20);
        let after = fill_both(&cache, 1000);
        assert!(
            before.iter().zip(after).all(|(before, after)| after >= before / 2),
            "{before:?} and {after:?}"
        );
    }
    assert!(cache.unpin_from_cache(pinned));
    let none = ChunkCache::new(0);
    assert_eq!(fill_both(&none, 100), [0, 0]);
    none.set_limit(1 << 20);
    assert!(fill_both(&none, 100).iter().all(|count| *count > 50));
}

#[test]
fn what_many_threads_load_is_within_the_last_limit() {
    const LIMIT: u64 = 256 << 10;
    for round in 0..20 {
        let cache = ChunkCache::new(LIMIT);
        std::thread::scope(|threads| {
            for _ in 0..2 {
                threads.spawn(|| fill_both(&cache, 500));
            }
            threads.spawn(|| [LIMIT / 8, 0, LIMIT, LIMIT / 8, 0].map(|limit| cache.set_limit(limit)));
        });
        let stats = cache.stats();
        assert_eq!((stats.limit_bytes, stats.chunks, stats.columns), (0, 0, 0), "round {round}: {stats:?}");
        cache.set_limit(LIMIT / 4);
        fill_both(&cache, 2000);
        let stats = cache.stats();
        assert!((1..=LIMIT / 4).contains(&stats.evictable_bytes), "round {round}: {stats:?}");
    }
}

#[test]
fn columns_that_are_made_while_the_limit_changes_have_their_part_of_it() {
    const LIMIT: u64 = 1 << 20;
    for round in 0..400 {
        let cache = ChunkCache::new(LIMIT);
        let ready = std::sync::Barrier::new(2);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                ready.wait();
                fill_both(&cache, 1)
            });
            ready.wait();
            cache.set_limit(LIMIT / 8);
        });
        let columns = cache.columns.get().map_or(0, Columns::capacity);
        assert_eq!((cache.entries.capacity(), columns), (LIMIT / 32 * 3, LIMIT / 32), "round {round}");
    }
}
