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
