//! Chunks moved between tiers by the world itself: nothing is changed, lost or doubled by it.

mod compaction;
mod damage;
mod model;
mod tombstones;
mod trace;

use std::collections::BTreeSet;
use std::time::Duration;

use super::tier::noisy;
use super::*;
use cg_format::{ClusterTier, Space, Tier, frame, key};
use cg_tiering::trace::Event;
use cg_tiering::{GameTick, PlayerAt, TierPolicy};
use proptest::prelude::*;

over_both_engines! {
    a_world_left_alone_grows_warm_then_cold
    who_comes_back_finds_hot_chunks_after_a_while
    a_held_place_stays_hot_and_a_pinned_one_as_it_is
    a_shadowed_cluster_is_written_without_its_shadows
    a_deleted_chunk_stays_deleted_through_every_move
    settling_leaves_the_clock_alone
    a_clock_that_ran_away_is_set_back
    settling_forgets_nobody_who_waits_for_hot_chunks
    a_row_that_no_cluster_can_hold_is_not_moved_again_and_again
    a_fat_cube_keeps_no_other_out_of_the_cold_tier
}

const MINUTE: u64 = 60 * GameTick::PER_SECOND;
const DAY: u64 = 24 * 60 * MINUTE;
const ENOUGH: Duration = Duration::from_secs(600);

pub(super) fn player(n: u128, dimension: Dimension, x: i64, y: i64, z: i64) -> PlayerAt {
    PlayerAt { id: uuid(n), dimension, block: BlockPos::new(x, y, z) }
}

/// Lets time pass with players where they are, until a tick finds nothing to do.
pub(super) fn play(world: &World, until: u64, players: &[PlayerAt]) {
    for _ in 0..2000 {
        let report = world.tick(GameTick::new(until), players, ENOUGH).expect("ticks");
        if report.moves == MoveCounts::default() && !report.work_left {
            return;
        }
    }
    panic!("the moves of one moment do not end");
}

/// Asks for chunks as a host does that has forgotten them: past memory.
fn come(world: &World, chunks: &[ChunkAt]) {
    world.cache().clear();
    for chunk in world.load_many(chunks) {
        assert!(chunk.expect("is sound").is_some());
    }
}

/// How many live chunks lie in each tier.
pub(super) fn tiers(world: &World) -> [u64; 3] {
    let census = world.tiers().census().expect("counts");
    Tier::ALL.map(|tier| census.tier(tier).chunks)
}

fn at_both_ends(ids: &Ids) -> Vec<ChunkAt> {
    let mut all: Vec<_> = (0..40).map(|n| ids.at(n % 9 - 4, n / 9, n % 5)).collect();
    all.extend((0..3).map(|n| ids.at(ChunkPos::MIN + n, ChunkPos::MAX - n, 7)));
    all.extend((0..3).map(|n| ChunkAt::new(ids.nether, ChunkPos::constant(n * 20, 5, -100))));
    all
}

fn a_world_left_alone_grows_warm_then_cold(world: &World) {
    let ids = Ids::register(world);
    let all = at_both_ends(&ids);
    save(world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(world, &ids, seed))));
    let (hash, rows) = (world.content_hash(cg_store::view::Area::World).expect("hashes"), all.len() as u64);
    // Somebody is in each dimension, near nothing and not far either.
    let watchers: Vec<_> = [ids.overworld, ids.nether]
        .into_iter()
        .enumerate()
        .map(|(n, dimension)| player(n as u128, dimension, 300, 300, 300))
        .collect();
    play(world, 1, &watchers);
    assert_eq!(tiers(world)[0], rows, "what was just saved is hot");
    play(world, 5 * MINUTE + 2, &watchers);
    let [hot, warm, cold] = tiers(world);
    assert_eq!((hot, warm + cold), (0, rows), "far ones are cold already");
    assert!(warm >= 30, "{warm} are warm");
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_sound(world);
    play(world, 40 * MINUTE, &watchers);
    assert_eq!(tiers(world), [0, 0, rows]);
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_sound(world);
    for (at, seed) in all.iter().zip(0..) {
        assert_eq!(world.load(*at).expect("loads").as_deref(), Some(&noisy(world, &ids, seed)), "{at}");
    }
    let clusters = |space: Space| {
        let mut count = 0;
        let counted = world.engine().scan(space.family(), engine::ALL_KEYS, |_, _| {
            count += 1;
            std::ops::ControlFlow::<()>::Continue(())
        });
        counted.expect("scans");
        count
    };
    assert_eq!((clusters(Space::ChunkL0), clusters(Space::ClusterL1)), (0, 0), "no row is left behind");
    let heat = world.engine().scan(Family::Index, engine::ALL_KEYS, |key, _| {
        let is_heat = Space::of_row(Family::Index, key) == Some(Space::Heat);
        if is_heat { std::ops::ControlFlow::Break(key.to_vec()) } else { std::ops::ControlFlow::Continue(()) }
    });
    assert_eq!(heat.expect("scans"), None, "a cold world needs no heat");
}

fn a_clock_that_ran_away_is_set_back(world: &World) {
    let ids = Ids::register(world);
    let all: Vec<_> = (0..8).map(|n| ids.at(4 * n, 0, 0)).collect();
    save(world, all.iter().map(|at| (*at, filled(world, ids.stone))));
    let held = ids.at(4 * 7, 0, 0);
    let kept =
        world.tiers().keep_loaded(held.dimension, &ChunkBox::new(held.pos, held.pos)).expect("is small");
    play(world, 5, &[]);
    world.tick(GameTick::new(u64::MAX), &[], ENOUGH).expect("ticks");
    // Accessed at that moment, and stored so.
    save(world, all.iter().map(|at| (*at, filled(world, ids.glass))));
    world.tick(GameTick::new(u64::MAX), &[], ENOUGH).expect("ticks");
    let stuck = world.tick(GameTick::new(10), &[], ENOUGH).expect("ticks").now;
    assert_eq!((stuck.get(), world.tiers().clock().clamped()), (u64::MAX, 1), "a tick sets nothing back");
    world.tiers().set_clock(GameTick::new(10)).expect("sets it");
    assert_eq!((world.tiers().clock().now().get(), world.tiers().clock().clamped()), (10, 1));
    play(world, 11, &[]);
    assert_eq!(tiers(world), [8, 0, 0], "what was just saved is hot");
    play(world, 40 * MINUTE, &[]);
    assert_eq!(tiers(world), [1, 0, 7], "what is held stays hot, the rest is demoted again");
    drop(kept);
    play(world, 90 * MINUTE, &[]);
    assert_eq!(tiers(world), [0, 0, 8]);
    assert_sound(world);
}

#[test]
fn a_clock_that_is_set_back_stays_so_when_the_world_is_opened_again() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    world.tick(GameTick::new(u64::MAX), &[], ENOUGH).expect("ticks");
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    world.close().expect("closes");
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(world.tiers().clock().now().get(), u64::MAX);
    world.tiers().set_clock(GameTick::new(7)).expect("sets it");
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(world.tiers().clock().now().get(), 7);
    play(&world, 90 * MINUTE, &[]);
    assert_eq!(tiers(&world), [1, 0, 0], "what was accessed in a time that has not come was accessed now");
    play(&world, 180 * MINUTE, &[]);
    assert_eq!(tiers(&world), [0, 0, 1]);
}

fn who_comes_back_finds_hot_chunks_after_a_while(world: &World) {
    let ids = Ids::register(world);
    let near: Vec<_> = (0..64).map(|n| ids.at(n / 16, n / 4 % 4, n % 4)).collect();
    let far: Vec<_> = (0..8).map(|n| ids.at(60 + n, 0, 0)).collect();
    let all: Vec<_> = near.iter().chain(&far).copied().collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    assert_eq!(tiers(world), [0, 0, 72]);
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    let versions = || -> Vec<_> {
        let version = |at: &ChunkAt| {
            world.tiers().with_stored_bytes(*at, |stored| Ok(stored.version)).expect("is sound")
        };
        all.iter().map(version).collect()
    };
    let (before, moves) = (versions(), world.metrics().stats.moves);
    let here = [player(1, ids.overworld, 20, 20, 20)];
    play(world, DAY, &here);
    come(world, &near);
    play(world, DAY + MINUTE, &here);
    assert_eq!(
        (tiers(world), world.metrics().stats.moves),
        ([0, 0, 72], moves),
        "who passes by moves nothing"
    );
    play(world, DAY + 3 * MINUTE, &here);
    assert_eq!(tiers(world), [64, 0, 8], "who stays has his surroundings hot");
    assert_eq!(versions(), before);
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_sound(world);
    let report = world.tiers().explain(near[0]).expect("explains").expect("is stored");
    assert_eq!((report.tier, report.decision.to), (Tier::L0, Tier::L0));
    assert_eq!(report.moved_at, Some(GameTick::new(DAY + 3 * MINUTE)));
    // He goes to bed; an hour later it is all cold again.
    play(world, DAY + 4 * MINUTE, &[]);
    play(world, DAY + 90 * MINUTE, &[]);
    assert_eq!(tiers(world), [0, 0, 72]);
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_sound(world);
}

fn a_held_place_stays_hot_and_a_pinned_one_as_it_is(world: &World) {
    let ids = Ids::register(world);
    let [held, pinned, neither] = [ids.at(0, 0, 0), ids.at(100, 0, 0), ids.at(200, 0, 0)];
    save(world, [held, pinned, neither].map(|at| (at, marked(world, &ids, 1))));
    let kept =
        world.tiers().keep_loaded(ids.overworld, &ChunkBox::new(held.pos, held.pos)).expect("is small");
    let pin = world.tiers().pin(ids.overworld, ChunkBox::new(pinned.pos, pinned.pos));
    play(world, DAY, &[]);
    let tier = |at| world.tiers().explain(at).expect("explains").expect("is stored").tier;
    assert_eq!([held, pinned, neither].map(tier), [Tier::L0, Tier::L0, Tier::L2]);
    drop((kept, pin));
    play(world, DAY + 1, &[]);
    assert_eq!(tier(pinned), Tier::L2);
    play(world, 2 * DAY, &[]);
    assert_eq!([held, pinned, neither].map(tier), [Tier::L2; 3]);
}

fn a_shadowed_cluster_is_written_without_its_shadows(world: &World) {
    let ids = Ids::register(world);
    let all: Vec<_> = (0..64).map(|n| ids.at(n / 16, n / 4 % 4, n % 4)).collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    let cluster_len = || {
        let row = key::cluster(ids.overworld, all[0].pos.cluster(ClusterTier::L2));
        world.engine().get(Space::ClusterL2, &row).expect("reads").map_or(0, |row| row.len())
    };
    let before = cluster_len();
    // What is pinned comes and goes only by what is edited.
    let _pinned = world.tiers().pin(ids.overworld, ChunkBox::new(all[0].pos, all[63].pos));
    let wait = TierPolicy::default().rewrite_after_ticks;
    let tick = |now: u64| {
        // The count above a cluster is closed by the cube after it.
        for _ in 0..3 {
            world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
        }
        cluster_len()
    };
    let edit = |range: std::ops::Range<usize>, n: u16| {
        save(world, all[range].iter().map(|at| (*at, marked(world, &ids, n))));
    };
    edit(0..15, 200);
    assert_eq!([tick(1), tick(1 + 2 * wait)], [before; 2], "15 of 64 are less than a quarter");
    edit(15..16, 201);
    let since = 2 + 2 * wait;
    assert_eq!([tick(since), tick(since + wait - 1)], [before; 2], "a quarter waits for more");
    let after = tick(since + wait);
    assert!(0 < after && after < before, "{after} of {before} bytes are left");
    assert_eq!(tiers(world), [16, 0, 48]);
    assert_sound(world);
    edit(0..64, 202);
    assert_eq!(tick(since + wait), 0, "a cluster of nothing but shadows is deleted at once");
    assert_eq!(tiers(world), [64, 0, 0]);
    assert_sound(world);
}

fn a_deleted_chunk_stays_deleted_through_every_move(world: &World) {
    let ids = Ids::register(world);
    let (a, b) = (ids.at(1, 1, 1), ids.at(1, 1, 2));
    let delete = || {
        let deleted = world.transaction(|tx| {
            tx.delete(a);
            Ok::<_, Error>(())
        });
        drop(deleted.expect("deletes"));
    };
    save(world, [a, b].map(|at| (at, marked(world, &ids, 1))));
    let alone = ChunkBox::new(b.pos, b.pos);
    let hash = world.content_hash(cg_store::view::Area::Box(ids.overworld, alone)).expect("hashes");
    let is_right = |world: &World| {
        assert_eq!(world.load(a).expect("loads"), None);
        let whole = ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(9, 9, 9));
        assert_eq!(
            world.content_hash(cg_store::view::Area::Box(ids.overworld, whole)).expect("hashes"),
            hash
        );
        assert_sound(world);
    };
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    delete();
    is_right(world);
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    is_right(world);
    play(world, 1, &[player(1, ids.overworld, 20, 20, 20)]);
    come(world, &[b]);
    play(world, 3 * MINUTE, &[player(1, ids.overworld, 20, 20, 20)]);
    assert_eq!(tiers(world), [1, 0, 0]);
    is_right(world);
    world.tiers().demote_all(6 * MINUTE, |_| {}).expect("settles");
    is_right(world);
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    is_right(world);
}

fn settling_leaves_the_clock_alone(world: &World) {
    let ids = Ids::register(world);
    save(world, (0..5).map(|n| (ids.at(n, 0, 0), marked(world, &ids, 1))));
    world.tick(GameTick::new(1000), &[], ENOUGH).expect("ticks");
    let mut told = 0;
    let counts = world.tiers().demote_all(DAY, |_| told += 1).expect("settles");
    assert_eq!((counts.cooled, counts.refused, counts.conflicts), (5, 0, 0));
    assert!(told > 0 && counts.bytes_written > 0 && counts.bytes_read > 0);
    assert_eq!(world.tiers().clock().now(), GameTick::new(1000));
    assert_eq!(
        world.tiers().demote_all(DAY, |_| {}).expect("settles"),
        MoveCounts::default(),
        "nothing is left"
    );
}

fn settling_forgets_nobody_who_waits_for_hot_chunks(world: &World) {
    let ids = Ids::register(world);
    let near: Vec<_> = (0..128).map(|n| ids.at(n / 16, n / 4 % 4, n % 4)).collect();
    save(world, near.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    let here = [player(1, ids.overworld, 20, 20, 20)];
    play(world, DAY, &here);
    come(world, &near);
    let settled = GameTick::new(DAY + 3 * MINUTE);
    let report = world.tick(settled, &here, Duration::ZERO).expect("ticks");
    assert_eq!((report.moves, report.work_left), (MoveCounts::default(), true), "planned, and not done");
    assert_eq!(world.tiers().demote_all(0, |_| {}).expect("settles"), MoveCounts::default());
    play(world, settled.get(), &here);
    assert_eq!(tiers(world), [128, 0, 0]);
}

#[test]
fn heat_and_clock_survive_reopening() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    world.tick(GameTick::new(5000), &[], ENOUGH).expect("ticks");
    save(&world, [(a, marked(&world, &ids, 1))]);
    world.tick(GameTick::new(5100), &[], ENOUGH).expect("ticks");
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(world.tiers().clock().now(), GameTick::new(5100));
    let report = world.tiers().explain(a).expect("explains").expect("is stored");
    assert_eq!((report.tier, report.last_access), (Tier::L0, Some(GameTick::new(5000))));
}

fn a_row_that_no_cluster_can_hold_is_not_moved_again_and_again(world: &World) {
    let ids = Ids::register(world);
    let all: Vec<_> = (0..3).map(|n| ids.at(n, 0, 0)).collect();
    save(world, all.iter().map(|at| (*at, marked(world, &ids, 1))));
    // A chunk without bytes, which a cluster could not tell from an absent one.
    plant(world, [(Space::ChunkL0, key::chunk(ids.at(3, 0, 0)).to_vec(), Some(plain(b"")))]);
    play(world, DAY, &[]);
    for at in &all {
        assert_eq!(
            world.tiers().with_stored_bytes(*at, |stored| Ok(stored.tier)).expect("is sound"),
            Some(Tier::L2)
        );
    }
    let before = world.metrics().stats;
    for later in 1..=50 {
        let report = world.tick(GameTick::new(DAY + later * MINUTE), &[], ENOUGH).expect("ticks");
        assert_eq!(report.moves, MoveCounts::default());
    }
    let work = world.metrics().stats - before;
    assert_eq!((work.moves, work.rows_written), (0, 0));
}

/// Chunks that no codec makes smaller.
fn incompressible(world: &World, ids: &Ids, len_bytes: usize) -> Chunk {
    let mut state = len_bytes as u64;
    let mut words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    });
    let mut chunk = filled(world, ids.air);
    chunk.set_side(ids.light, words.by_ref().take(len_bytes / 4).flat_map(u32::to_le_bytes).collect());
    chunk
}

fn a_fat_cube_keeps_no_other_out_of_the_cold_tier(world: &World) {
    let ids = Ids::register(world);
    // A cold cluster takes 8 MiB: each of the two fits, but not both.
    let [fattest, fat] = [(ids.at(0, 0, 0), 5 << 20), (ids.at(4, 0, 0), 4 << 20)];
    save(world, [fattest, fat].map(|(at, len_bytes)| (at, incompressible(world, &ids, len_bytes))));
    let others: Vec<_> = (0..8).map(|n| ids.at(8 + n, 0, 0)).collect();
    save(world, others.iter().map(|at| (*at, marked(world, &ids, 1))));
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    play(world, DAY, &[]);
    let tier = |at| {
        world.tiers().with_stored_bytes(at, |stored| Ok(stored.tier)).expect("is sound").expect("is stored")
    };
    assert_eq!((tier(fattest.0), tier(fat.0), tiers(world)), (Tier::L0, Tier::L2, [1, 0, 9]));
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
    assert_sound(world);
    let before = world.metrics().stats;
    for later in 1..20 {
        let report = world.tick(GameTick::new(DAY + later * MINUTE), &[], ENOUGH).expect("ticks");
        assert_eq!(report.moves, MoveCounts::default());
    }
    let work = world.metrics().stats - before;
    assert_eq!((work.moves, work.rows_written), (0, 0), "it is not tried again and again");
    // When it is small again it goes where the others are.
    save(world, [(fattest.0, marked(world, &ids, 2))]);
    play(world, 2 * DAY, &[]);
    assert_eq!(tiers(world), [0, 0, 10]);
    assert_sound(world);
}

#[test]
fn a_reader_sees_each_chunk_once_whatever_moves() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..100).map(|n| ids.at(n % 10, n / 10, n % 3)).collect();
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, marked(&world, &ids, n))));
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");
    let done = std::sync::atomic::AtomicBool::new(false);
    let (order, moves) = (std::sync::atomic::Ordering::SeqCst, world.metrics().stats.moves);
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0;
            while !done.load(order) {
                assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
                assert!(all.iter().all(|at| {
                    world.tiers().with_stored_bytes(*at, |_| Ok(())).expect("is sound").is_some()
                }));
                read += 1;
            }
            read
        });
        for round in 1..=8 {
            world.tiers().demote_all(if round % 2 == 0 { DAY } else { 6 * MINUTE }, |_| {}).expect("settles");
            let here = [player(1, ids.overworld, 60, 60, 20)];
            play(&world, round * DAY, &here);
            come(&world, &all);
            play(&world, round * DAY + 3 * MINUTE, &here);
            play(&world, round * DAY + 3 * MINUTE, &[]);
        }
        done.store(true, order);
        reader.join().expect("no panic")
    });
    assert!(read > 0 && world.metrics().stats.moves - moves >= 16, "{read} reads beside the moves");
    assert_sound(&world);
}

#[test]
fn a_policy_that_contradicts_itself_is_refused() {
    let tiers = TierPolicy { cold_after_ticks: 1, ..TierPolicy::default() };
    let refused =
        World::builder().options(&WorldOptions { tiers, ..options() }).in_memory().expect_err("is refused");
    assert!(matches!(refused, Error::Policy(_)), "{refused}");
    let disk = Disk::new();
    let refused = World::builder()
        .options(&WorldOptions { tiers, ..options() })
        .create(disk.path())
        .expect_err("is refused");
    assert!(matches!(refused, Error::Policy(_)) && !disk.path().exists(), "{refused}");
}
