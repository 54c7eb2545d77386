//! Loading: from memory where it can be, each chunk decoded once, and absence remembered too.

use super::tier::noisy;
use super::*;
use cg_format::{ClusterTier, Space, key};
use cg_store::Peek;

fn with_cache(cache_bytes: u64) -> World {
    World::builder()
        .options(&WorldOptions { cache_bytes, ..options() })
        .in_memory()
        .expect("a world in memory")
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
    let before = world.metrics().stats;
    let first = world.load(a).expect("loads").expect("is there");
    assert_eq!(world.load(absent).expect("loads"), None);
    let work = world.metrics().stats - before;
    assert_eq!((work.engine_reads, work.chunks_decoded, work.cache_misses), (1 + 3, 1, 2));
    for _ in 0..5 {
        let again = world.load(a).expect("loads").expect("is there");
        assert!(std::sync::Arc::ptr_eq(&first, &again), "one chunk is shared");
        assert_eq!(world.load(absent).expect("loads"), None);
    }
    assert!(matches!(world.peek(a), Peek::Here(chunk) if std::sync::Arc::ptr_eq(&chunk, &first)));
    assert!(matches!(world.peek(absent), Peek::Absent));
    let work = world.metrics().stats - before;
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
    let before = world.metrics().stats;
    let loaded = world.load(ids.at(0, 0, 0)).expect("loads").expect("is there");
    assert!(std::sync::Arc::ptr_eq(&loaded, &chunk));
    assert_eq!((world.metrics().stats - before).engine_reads, 0);
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
    let pending = world.load_in_background(&all);
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
    drop(world.load_in_background(&all));
}

/// 4³ chunks from (x, 0, 0) on: two groups of a cold cluster.
fn cube(ids: &Ids, x: i64) -> Vec<ChunkAt> {
    (0..64).map(|n| ids.at(x + n / 16, n / 4 % 4, n % 4)).collect()
}

/// The length of a cold group of chunks of one kind, all of this length. By field a chunk's header takes 16 bytes instead
/// of 40.
pub(super) const fn by_field(chunks: u64, chunk_bytes: u64) -> u64 {
    16 + chunks * (chunk_bytes - 40 + 16)
}

#[test]
fn many_chunks_of_a_cluster_cost_one_read_of_it() {
    let world = with_cache(0);
    let ids = Ids::register(&world);
    let wanted = cube(&ids, 0);
    let all: Vec<_> = wanted.iter().copied().chain(cube(&ids, 4)).collect();
    save(&world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(&world, &ids, seed))));
    demote(&world, ClusterTier::L2, &all, false);
    let chunk_bytes = noisy(&world, &ids, 0).to_bytes().len() as u64;
    let before = world.metrics().stats;
    let found = world.load_many(&wanted);
    let work = world.metrics().stats - before;
    for (found, seed) in found.into_iter().zip(0..) {
        assert_eq!(found.expect("is sound").as_deref(), Some(&noisy(&world, &ids, seed)));
    }
    assert_eq!(work.engine_reads, 64 + 1 + 1, "every hot key, one warm cluster and one cold one");
    assert_eq!(work.chunks_decoded, 64);
    assert_eq!(work.bytes_decompressed, 2 * by_field(32, chunk_bytes), "both halves of the cube");
}

#[test]
fn a_damaged_group_fails_the_chunks_in_it_and_no_others() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    // The first two are in the last group of their cluster, the third in the first one.
    let all = [ids.at(3, 0, 0), ids.at(3, 3, 2), ids.at(0, 0, 0), ids.at(4, 0, 0), ids.at(40, 0, 0)];
    save(&world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(&world, &ids, seed))));
    demote(&world, ClusterTier::L1, &all[..4], false);
    drop(world);
    let row = key::cluster(ids.overworld, all[0].pos.cluster(ClusterTier::L1));
    let len_bytes = disk.raw().get(Space::ClusterL1.family(), row).len();
    disk.raw().flip(Space::ClusterL1.family(), row, len_bytes - 1);
    let world = disk.open(&[]);
    let found = world.load_many(&all);
    for (place, (at, found)) in all.iter().zip(found).enumerate() {
        if place >= 2 {
            assert!(found.expect("is sound").is_some(), "{at}");
            continue;
        }
        let Err(Error::Corrupt(damage)) = found else { panic!("{at} is not seen as damage: {found:?}") };
        assert_eq!((damage.space, &damage.key[..]), (Space::ClusterL1, &row[..]));
        assert_eq!(damage.place, at.to_string());
        let cg_store::error::DamageCause::Bytes(problem) = &damage.problem else { panic!("{damage}") };
        assert!(matches!(problem.problem, cg_format::Problem::Checksum { .. }), "{damage}");
    }
}

#[test]
fn chunks_that_are_alike_are_decoded_once_and_shared() {
    for tier in [None, Some(ClusterTier::L1), Some(ClusterTier::L2)] {
        let world = with_cache(0);
        let ids = Ids::register(&world);
        let places: Vec<_> = (0..6).map(|x| ids.at(x, 0, 0)).collect();
        let blocks = [ids.air, ids.air, ids.stone, ids.stone, ids.air, ids.air];
        let save_one = |(at, block): (&ChunkAt, BlockId)| save(&world, [(*at, filled(&world, block))]);
        let versions: Vec<_> = places.iter().zip(blocks).map(save_one).collect();
        if let Some(tier) = tier {
            demote(&world, tier, &places, false);
        }
        let before = world.metrics().stats;
        let loaded = world.load_many(&places);
        assert_eq!((world.metrics().stats - before).chunks_decoded, 3, "{tier:?}");
        let loaded: Vec<_> =
            loaded.into_iter().map(|chunk| chunk.expect("loads").expect("is there")).collect();
        for (chunk, block) in loaded.iter().zip(blocks) {
            assert_eq!(**chunk, filled(&world, block));
        }
        let shared = loaded.windows(2).map(|pair| std::sync::Arc::ptr_eq(&pair[0], &pair[1]));
        assert_eq!(shared.collect::<Vec<_>>(), [true, false, true, false, true], "{tier:?}");
        for (at, version) in places.iter().zip(&versions) {
            assert_eq!(world.load_versioned(*at).expect("loads").expect("is there").1, *version);
        }
    }
}

#[test]
fn more_chunks_than_one_call_reads_come_in_the_order_asked() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let at = |n: i64| ids.at(n % 40, n / 40, n % 7);
    let block = |n: i64| if n % 3 == 0 { ids.stone } else { ids.glass };
    save(&world, (0..1500).filter(|n| n % 5 > 0).map(|n| (at(n), filled(&world, block(n)))));
    world.cache().clear();
    let asked: Vec<_> = (0..1500).map(|n| n * 7 % 1500).collect();
    let found = world.load_many(&asked.iter().map(|n| at(*n)).collect::<Vec<_>>());
    for (n, found) in asked.iter().zip(found) {
        let stored = (n % 5 > 0).then(|| filled(&world, block(*n)));
        assert_eq!(found.expect("loads").as_deref(), stored.as_ref(), "{n}");
    }
}
