//! Chunks moved between tiers by the world itself: nothing is changed, lost or doubled by it.

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
    marks_of_deletions_go_when_nobody_needs_them
    settling_leaves_the_clock_alone
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
pub(super) fn play<E: Engine>(world: &World<E>, until: u64, players: &[PlayerAt]) {
    for _ in 0..2000 {
        let report = world.tick(GameTick::new(until), players, ENOUGH).expect("ticks");
        if report.moves == MoveCounts::default() && !report.work_left {
            return;
        }
    }
    panic!("the moves of one moment do not end");
}

/// Asks for chunks as a host does that has forgotten them: past memory.
fn come<E: Engine>(world: &World<E>, chunks: &[ChunkAt]) {
    world.forget_chunks();
    for chunk in world.load_many(chunks) {
        assert!(chunk.expect("is sound").is_some());
    }
}

/// How many live chunks lie in each tier.
pub(super) fn tiers<E: Engine>(world: &World<E>) -> [u64; 3] {
    let census = world.census().expect("counts");
    Tier::ALL.map(|tier| census.tier(tier).chunks)
}

fn at_both_ends(ids: &Ids) -> Vec<ChunkAt> {
    let mut all: Vec<_> = (0..40).map(|n| ids.at(n % 9 - 4, n / 9, n % 5)).collect();
    all.extend((0..3).map(|n| ids.at(ChunkPos::MIN + n, ChunkPos::MAX - n, 7)));
    all.extend((0..3).map(|n| ChunkAt::new(ids.nether, ChunkPos::constant(n * 20, 5, -100))));
    all
}

fn a_world_left_alone_grows_warm_then_cold<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let all = at_both_ends(&ids);
    save(world, all.iter().zip(0..).map(|(at, seed)| (*at, noisy(world, &ids, seed))));
    let (hash, rows) = (world.content_hash().expect("hashes"), all.len() as u64);
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
    assert_eq!(world.content_hash().expect("hashes"), hash);
    assert_sound(world);
    play(world, 40 * MINUTE, &watchers);
    assert_eq!(tiers(world), [0, 0, rows]);
    assert_eq!(world.content_hash().expect("hashes"), hash);
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

fn who_comes_back_finds_hot_chunks_after_a_while<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let near: Vec<_> = (0..64).map(|n| ids.at(n / 16, n / 4 % 4, n % 4)).collect();
    let far: Vec<_> = (0..8).map(|n| ids.at(60 + n, 0, 0)).collect();
    let all: Vec<_> = near.iter().chain(&far).copied().collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    world.settle_tiers(DAY, |_| {}).expect("settles");
    assert_eq!(tiers(world), [0, 0, 72]);
    let hash = world.content_hash().expect("hashes");
    let versions = || -> Vec<_> {
        let version = |at: &ChunkAt| world.view(*at, |stored| Ok(stored.version)).expect("is sound");
        all.iter().map(version).collect()
    };
    let (before, moves) = (versions(), world.stats().moves);
    let here = [player(1, ids.overworld, 20, 20, 20)];
    play(world, DAY, &here);
    come(world, &near);
    play(world, DAY + MINUTE, &here);
    assert_eq!((tiers(world), world.stats().moves), ([0, 0, 72], moves), "who passes by moves nothing");
    play(world, DAY + 3 * MINUTE, &here);
    assert_eq!(tiers(world), [64, 0, 8], "who stays has his surroundings hot");
    assert_eq!(versions(), before);
    assert_eq!(world.content_hash().expect("hashes"), hash);
    assert_sound(world);
    let report = world.explain_tier(near[0]).expect("explains").expect("is stored");
    assert_eq!((report.tier, report.decision.to), (Tier::L0, Tier::L0));
    assert_eq!(report.moved_at, Some(GameTick::new(DAY + 3 * MINUTE)));
    // He goes to bed; an hour later it is all cold again.
    play(world, DAY + 4 * MINUTE, &[]);
    play(world, DAY + 90 * MINUTE, &[]);
    assert_eq!(tiers(world), [0, 0, 72]);
    assert_eq!(world.content_hash().expect("hashes"), hash);
    assert_sound(world);
}

fn a_held_place_stays_hot_and_a_pinned_one_as_it_is<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let [held, pinned, neither] = [ids.at(0, 0, 0), ids.at(100, 0, 0), ids.at(200, 0, 0)];
    save(world, [held, pinned, neither].map(|at| (at, marked(world, &ids, 1))));
    let ticket = world.hold(ids.overworld, &ChunkBox::new(held.pos, held.pos)).expect("is small");
    let pin = world.pin(ids.overworld, ChunkBox::new(pinned.pos, pinned.pos));
    play(world, DAY, &[]);
    let tier = |at| world.explain_tier(at).expect("explains").expect("is stored").tier;
    assert_eq!([held, pinned, neither].map(tier), [Tier::L0, Tier::L0, Tier::L2]);
    assert!(world.release(ticket) && world.unpin(pin));
    assert!(!world.release(ticket) && !world.unpin(pin));
    play(world, DAY + 1, &[]);
    assert_eq!(tier(pinned), Tier::L2);
    play(world, 2 * DAY, &[]);
    assert_eq!([held, pinned, neither].map(tier), [Tier::L2; 3]);
}

fn a_shadowed_cluster_is_written_without_its_shadows<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let all: Vec<_> = (0..64).map(|n| ids.at(n / 16, n / 4 % 4, n % 4)).collect();
    save(world, all.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    world.settle_tiers(DAY, |_| {}).expect("settles");
    let cluster_len = || {
        let row = key::cluster(ids.overworld, all[0].pos.cluster(ClusterTier::L2));
        world.engine().get(Space::ClusterL2, &row).expect("reads").map_or(0, |row| row.len())
    };
    let before = cluster_len();
    // What is pinned comes and goes only by what is edited.
    world.pin(ids.overworld, ChunkBox::new(all[0].pos, all[63].pos));
    let wait = TierPolicy::default().rewrite_after_ticks;
    let tick = |now: u64| {
        // The count above a cluster is closed by the cube behind it.
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

fn a_deleted_chunk_stays_deleted_through_every_move<E: Engine>(world: &World<E>) {
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
    let hash = world.content_hash_of(ids.overworld, alone).expect("hashes");
    let is_right = |world: &World<E>| {
        assert_eq!(world.load(a).expect("loads"), None);
        let whole = ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(9, 9, 9));
        assert_eq!(world.content_hash_of(ids.overworld, whole).expect("hashes"), hash);
        assert_sound(world);
    };
    world.settle_tiers(DAY, |_| {}).expect("settles");
    delete();
    is_right(world);
    world.settle_tiers(DAY, |_| {}).expect("settles");
    is_right(world);
    play(world, 1, &[player(1, ids.overworld, 20, 20, 20)]);
    come(world, &[b]);
    play(world, 3 * MINUTE, &[player(1, ids.overworld, 20, 20, 20)]);
    assert_eq!(tiers(world), [1, 0, 0]);
    is_right(world);
    world.settle_tiers(6 * MINUTE, |_| {}).expect("settles");
    is_right(world);
    world.settle_tiers(DAY, |_| {}).expect("settles");
    is_right(world);
}

/// The marks of deleted chunks.
fn marks<E: Engine>(world: &World<E>) -> Vec<ChunkAt> {
    let mut marks = Vec::new();
    let shown = world.engine().scan(Family::ChunkL0, engine::ALL_KEYS, |row_key, row| {
        if frame::kind_of(row) == Some(frame::FrameKind::Tombstone) {
            marks.push(key::decode_chunk(row_key).expect("is a chunk's"));
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
    shown.expect("scans");
    marks
}

fn marks_of_deletions_go_when_nobody_needs_them<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let (a, b, c, d) = (ids.at(1, 1, 1), ids.at(1, 1, 2), ids.at(40, 1, 1), ids.at(-40, 1, 1));
    let delete = |at: ChunkAt| {
        let deleted = world.transaction(|tx| {
            tx.delete(at);
            Ok::<_, Error>(())
        });
        deleted.expect("deletes").seq
    };
    save(world, [a, b, c].map(|at| (at, marked(world, &ids, 1))));
    let hash = world.content_hash_of(ids.overworld, ChunkBox::new(b.pos, b.pos)).expect("hashes");
    world.settle_tiers(DAY, |_| {}).expect("settles");
    // What is marked hides a cold copy beside another, a cold cluster of its own, and nothing at all.
    save(world, [(d, marked(world, &ids, 1))]);
    let [_, _, last] = [a, c, d].map(delete);
    let tick = |now: u64| {
        // The count above a cluster is closed by the cube behind it, and what it has lost is seen in the next round.
        for _ in 0..6 {
            world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
        }
        marks(world)
    };
    assert_eq!(tick(1), [d, a, c], "somebody may ask what was deleted");
    assert_eq!(world.forgotten_before(), 0);
    let before = |commit| world.deletions_before(commit).expect("counts");
    assert_eq!([last - 2, last, last + 1, u64::MAX].map(before), [0, 2, 3, 3]);
    assert_eq!(world.forget_before(last).expect("is noted"), last);
    assert_eq!(tick(2), [d, a], "a cluster of which all is shadowed is dropped, and then the mark");
    let next = world.last_commit() + 1;
    assert_eq!(world.forget_before(u64::MAX).expect("is noted"), next, "what is yet to come is not promised");
    assert_eq!(tick(3), [a], "what hides nothing is gone");
    assert_eq!(world.forget_before(5).expect("is known"), world.forgotten_before(), "it never goes back");
    let wait = TierPolicy::default().rewrite_after_ticks;
    assert_eq!(tick(wait), [a], "it hides the copy in the cluster");
    assert_eq!(tick(3 + 2 * wait), [], "the cluster was written without it");
    for at in [a, c, d] {
        assert_eq!(world.load(at).expect("loads"), None);
        world.forget_chunks();
        assert_eq!(world.load(at).expect("loads"), None);
    }
    let whole = ChunkBox::new(ids.at(-50, -50, -50).pos, ids.at(50, 50, 50).pos);
    assert_eq!(world.content_hash_of(ids.overworld, whole).expect("hashes"), hash);
    delete(b);
    assert_eq!(tick(4 + 4 * wait), [b], "what is deleted later is kept");
    assert_sound(world);
}

#[test]
fn what_is_forgotten_is_known_after_reopening() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let a = ids.at(0, 0, 0);
    save(&world, [(a, marked(&world, &ids, 1))]);
    let forgotten = world.forget_before(3).expect("is noted");
    assert_eq!(forgotten, 3);
    drop(world);
    let world = disk.open(&[]);
    assert_eq!(world.forgotten_before(), 3);
    drop(world);
    disk.raw().flip(Family::WorldMeta, b"forgottenBefore", 24);
    let refused = World::open(disk.path(), &[], &options()).expect_err("is refused");
    let Error::Corrupt(damage) = refused else { panic!("{refused}") };
    assert_eq!((damage.space, &damage.key[..]), (Space::WorldMeta, &b"forgottenBefore"[..]));
}

fn settling_leaves_the_clock_alone<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    save(world, (0..5).map(|n| (ids.at(n, 0, 0), marked(world, &ids, 1))));
    world.tick(GameTick::new(1000), &[], ENOUGH).expect("ticks");
    let mut told = 0;
    let counts = world.settle_tiers(DAY, |_| told += 1).expect("settles");
    assert_eq!((counts.cooled, counts.refused, counts.overtaken), (5, 0, 0));
    assert!(told > 0 && counts.bytes_written > 0 && counts.bytes_read > 0);
    assert_eq!(world.clock().now(), GameTick::new(1000));
    assert_eq!(world.settle_tiers(DAY, |_| {}).expect("settles"), MoveCounts::default(), "nothing is left");
}

fn settling_forgets_nobody_who_waits_for_hot_chunks<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let near: Vec<_> = (0..128).map(|n| ids.at(n / 16, n / 4 % 4, n % 4)).collect();
    save(world, near.iter().zip(0..).map(|(at, n)| (*at, marked(world, &ids, n))));
    world.settle_tiers(DAY, |_| {}).expect("settles");
    let here = [player(1, ids.overworld, 20, 20, 20)];
    play(world, DAY, &here);
    come(world, &near);
    let settled = GameTick::new(DAY + 3 * MINUTE);
    let report = world.tick(settled, &here, Duration::ZERO).expect("ticks");
    assert_eq!((report.moves, report.work_left), (MoveCounts::default(), true), "planned, and not done");
    assert_eq!(world.settle_tiers(0, |_| {}).expect("settles"), MoveCounts::default());
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
    assert_eq!(world.clock().now(), GameTick::new(5100));
    let report = world.explain_tier(a).expect("explains").expect("is stored");
    assert_eq!((report.tier, report.last_access), (Tier::L0, Some(GameTick::new(5000))));
}

fn a_row_that_no_cluster_can_hold_is_not_moved_again_and_again<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let all: Vec<_> = (0..3).map(|n| ids.at(n, 0, 0)).collect();
    save(world, all.iter().map(|at| (*at, marked(world, &ids, 1))));
    // A chunk without bytes, which a cluster could not tell from an absent one.
    plant(world, [(Space::ChunkL0, key::chunk(ids.at(3, 0, 0)).to_vec(), Some(plain(b"")))]);
    play(world, DAY, &[]);
    for at in &all {
        assert_eq!(world.view(*at, |stored| Ok(stored.tier)).expect("is sound"), Some(Tier::L2));
    }
    let before = world.stats();
    for later in 1..=50 {
        let report = world.tick(GameTick::new(DAY + later * MINUTE), &[], ENOUGH).expect("ticks");
        assert_eq!(report.moves, MoveCounts::default());
    }
    let work = world.stats() - before;
    assert_eq!((work.moves, work.rows_written), (0, 0));
}

/// Chunks that no codec makes smaller.
fn incompressible<E: Engine>(world: &World<E>, ids: &Ids, len_bytes: usize) -> Chunk {
    let mut state = len_bytes as u64;
    let mut words = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    });
    let mut chunk = filled(world, ids.air);
    chunk.set_side(ids.light, words.by_ref().take(len_bytes / 4).flat_map(u32::to_le_bytes).collect());
    chunk
}

fn a_fat_cube_keeps_no_other_out_of_the_cold_tier<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    // A cold cluster takes 8 MiB: each of the two fits, but not both.
    let [fattest, fat] = [(ids.at(0, 0, 0), 5 << 20), (ids.at(4, 0, 0), 4 << 20)];
    save(world, [fattest, fat].map(|(at, len_bytes)| (at, incompressible(world, &ids, len_bytes))));
    let others: Vec<_> = (0..8).map(|n| ids.at(8 + n, 0, 0)).collect();
    save(world, others.iter().map(|at| (*at, marked(world, &ids, 1))));
    let hash = world.content_hash().expect("hashes");
    play(world, DAY, &[]);
    let tier = |at| world.view(at, |stored| Ok(stored.tier)).expect("is sound").expect("is stored");
    assert_eq!((tier(fattest.0), tier(fat.0), tiers(world)), (Tier::L0, Tier::L2, [1, 0, 9]));
    assert_eq!(world.content_hash().expect("hashes"), hash);
    assert_sound(world);
    let before = world.stats();
    for later in 1..20 {
        let report = world.tick(GameTick::new(DAY + later * MINUTE), &[], ENOUGH).expect("ticks");
        assert_eq!(report.moves, MoveCounts::default());
    }
    let work = world.stats() - before;
    assert_eq!((work.moves, work.rows_written), (0, 0), "it is not tried again and again");
    // When it is small again it goes where the others are.
    save(world, [(fattest.0, marked(world, &ids, 2))]);
    play(world, 2 * DAY, &[]);
    assert_eq!(tiers(world), [0, 0, 10]);
    assert_sound(world);
}

#[test]
fn a_damaged_row_is_told_once_and_nothing_is_written_for_it() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..9).map(|n| ids.at(n % 3, n / 3, 0)).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    drop(world);
    let damaged = key::chunk(all[4]);
    disk.raw().flip(Family::ChunkL0, damaged, frame::LEN_BYTES + 3);
    let world = disk.open(&[]);
    let mut told = Vec::new();
    for tick in 0..100 {
        told.extend(world.tick(GameTick::new(DAY + tick), &[], ENOUGH).expect("ticks").damaged);
    }
    let places: Vec<_> = told.iter().map(|met| met.place.clone()).collect();
    let row = engine::Place::Row { family: Family::ChunkL0, key: damaged.as_slice().into() };
    assert_eq!((places, tiers(&world)[2]), (vec![row], 8));
    let before = world.stats();
    for later in 1..=50 {
        let report = world.tick(GameTick::new(DAY + later * MINUTE), &[], ENOUGH).expect("ticks");
        assert_eq!((report.moves, report.damaged), (MoveCounts::default(), vec![]));
    }
    let work = world.stats() - before;
    assert_eq!((work.moves, work.rows_written), (0, 0));
    // Once it is set aside and written anew, it goes where the others are.
    assert!(world.set_aside(all[4]).expect("sets aside"));
    save(&world, [(all[4], marked(&world, &ids, 2))]);
    play(&world, 3 * DAY, &[]);
    assert_eq!(tiers(&world), [0, 0, 9]);
    assert_sound(&world);
}

#[test]
fn what_a_killed_process_left_without_heat_grows_cold_too() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    // More cubes of one cold cluster than one tick reads.
    let all: Vec<_> = (0..20).map(|n| ids.at(4 * (n % 4), 4 * (n / 4 % 4), 4 * (n / 16))).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    drop(world);
    for at in &all {
        disk.raw().delete(Family::Index, key::heat(*at));
    }
    let world = disk.open(&[]);
    // All rows are met before any of them is due.
    for tick in 1..=40 {
        world.tick(GameTick::new(tick), &[], ENOUGH).expect("ticks");
    }
    assert_eq!(tiers(&world), [20, 0, 0]);
    for tick in 1..=40 {
        world.tick(GameTick::new(DAY + tick), &[], ENOUGH).expect("ticks");
    }
    assert_eq!(tiers(&world), [0, 0, 20]);
    assert_sound(&world);
}

#[test]
fn damage_stays_where_it_is_and_holds_up_nothing_else() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..3).map(|n| ids.at(n, 0, 0)).collect();
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 1))));
    drop(world);
    disk.raw().flip(Family::ChunkL0, key::chunk(all[1]), frame::LEN_BYTES + 3);
    let world = disk.open(&[]);
    world.settle_tiers(DAY, |_| {}).expect("settles");
    save(&world, [(ids.at(3, 0, 0), marked(&world, &ids, 7))]);
    for (at, is_damaged) in all.iter().zip([false, true, false]) {
        match world.load(*at) {
            Err(Error::Corrupt(damage)) => assert!(is_damaged && damage.space == Space::ChunkL0, "{damage}"),
            chunk => assert!(!is_damaged && chunk.expect("is sound").is_some()),
        }
    }
    assert_eq!(tiers(&world)[2], 2);
    drop(world);
    // A damaged cluster takes no more chunks in, and what is hot above it stays readable.
    let cold = key::cluster(ids.overworld, all[0].pos.cluster(ClusterTier::L2));
    disk.raw().flip(Family::ChunkL2, cold, frame::LEN_BYTES + 3);
    let before = disk.raw().get(Family::ChunkL2, cold);
    let world = disk.open(&[]);
    let counts = world.settle_tiers(DAY, |_| {}).expect("settles");
    assert!(counts.refused > 0 && counts.cooled == 0, "{counts:?}");
    assert!(world.load(ids.at(3, 0, 0)).expect("is sound").is_some());
    drop(world);
    assert!(disk.raw().get(Family::ChunkL2, cold) == before, "it was not overwritten");
}

#[test]
fn a_reader_sees_each_chunk_once_whatever_moves() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..100).map(|n| ids.at(n % 10, n / 10, n % 3)).collect();
    save(&world, all.iter().zip(0..).map(|(at, n)| (*at, marked(&world, &ids, n))));
    let hash = world.content_hash().expect("hashes");
    let done = std::sync::atomic::AtomicBool::new(false);
    let (order, moves) = (std::sync::atomic::Ordering::SeqCst, world.stats().moves);
    let read = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut read = 0;
            while !done.load(order) {
                assert_eq!(world.content_hash().expect("hashes"), hash);
                assert!(all.iter().all(|at| world.view(*at, |_| Ok(())).expect("is sound").is_some()));
                read += 1;
            }
            read
        });
        for round in 1..=8 {
            world.settle_tiers(if round % 2 == 0 { DAY } else { 6 * MINUTE }, |_| {}).expect("settles");
            let here = [player(1, ids.overworld, 60, 60, 20)];
            play(&world, round * DAY, &here);
            come(&world, &all);
            play(&world, round * DAY + 3 * MINUTE, &here);
            play(&world, round * DAY + 3 * MINUTE, &[]);
        }
        done.store(true, order);
        reader.join().expect("no panic")
    });
    assert!(read > 0 && world.stats().moves - moves >= 16, "{read} reads beside the moves");
    assert_sound(&world);
}

#[test]
fn what_a_world_is_asked_is_recorded_and_replayed() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let (a, absent) = (ids.at(0, 0, 0), ids.at(9, 9, 9));
    save(&world, [(a, marked(&world, &ids, 1))]);
    assert_eq!(world.take_trace(), TracePart::default(), "nothing is recorded unasked");
    let here = player(1, ids.overworld, 5, 5, 5);
    let before = world.pin(ids.overworld, ChunkBox::new(a.pos, a.pos));
    world.record_trace(1 << 20);
    world.tick(GameTick::new(7), &[here], ENOUGH).expect("ticks");
    world.forget_chunks();
    for _ in 0..2 {
        assert!(world.load(a).expect("loads").is_some() && world.load(absent).expect("loads").is_none());
    }
    let held = world.hold(ids.overworld, &ChunkBox::new(absent.pos, absent.pos)).expect("is small");
    let huge = world.hold(ids.overworld, &ChunkBox::EVERYTHING);
    assert!(huge.is_err(), "what is refused is not recorded");
    assert!(world.unpin(before));
    let part = world.take_trace();
    assert_eq!(part.lost_events, 0);
    let mut bytes = part.bytes;
    save(&world, [(a, marked(&world, &ids, 2))]);
    let len_bytes = marked(&world, &ids, 2).to_bytes().len() as u32;
    let deleted = world.transaction(|tx| {
        tx.delete(a);
        Ok::<_, Error>(())
    });
    drop(deleted.expect("deletes"));
    assert!(world.release(held) && !world.release(held));
    let pin = world.pin(ids.nether, ChunkBox::EVERYTHING);
    bytes.extend(world.end_trace().bytes);
    save(&world, [(a, marked(&world, &ids, 3))]);
    assert_eq!(world.end_trace(), TracePart::default(), "it was ended before");
    let reader = cg_tiering::trace::TraceReader::new(&bytes).expect("is a trace");
    let events = reader.collect::<Result<Vec<_>, _>>().expect("is sound");
    let first = marked(&world, &ids, 1).to_bytes().len() as u32;
    assert_eq!(
        events,
        [
            Event::Pin { pin: before.get(), dimension: ids.overworld, place: ChunkBox::new(a.pos, a.pos) },
            Event::Tick(GameTick::new(7)),
            Event::Player(here),
            Event::Load { chunk: a, len_bytes: first },
            Event::Load { chunk: absent, len_bytes: 0 },
            Event::Hold {
                hold: held.get(),
                dimension: ids.overworld,
                place: ChunkBox::new(absent.pos, absent.pos)
            },
            Event::Unpin(before.get()),
            Event::Save { chunk: a, len_bytes },
            Event::Save { chunk: a, len_bytes: 0 },
            Event::Release(held.get()),
            Event::Pin { pin: pin.get(), dimension: ids.nether, place: ChunkBox::EVERYTHING },
        ]
    );
    let model = cg_tiering::simulate::StoreModel::default();
    let replayed = cg_tiering::simulate::simulate(events, TierPolicy::default(), model);
    assert_eq!(replayed.expect("the default policy").found_loads(), 1);
}

#[test]
fn a_trace_that_nobody_takes_ends_and_says_what_it_lost() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let all: Vec<_> = (0..20).map(|n| ids.at(n, 0, 0)).collect();
    let save_all = |n| save(&world, all.iter().map(|at| (*at, marked(&world, &ids, n))));
    // What memory knows to be absent is not asked of the engine by those who save it.
    assert!(world.load_many(&all).into_iter().all(|found| matches!(found, Ok(None))));
    world.record_trace(100);
    save_all(1);
    let part = world.take_trace();
    // The first line takes 20 bytes, the first place 37 in full, then each save takes 8.
    assert_eq!((part.bytes.len(), part.lost_events), (20 + 37 + 5 * 8, 20 - 6));
    let events = cg_tiering::trace::TraceReader::new(&part.bytes).expect("is a trace");
    let saved = events.map(|event| match event.expect("is whole") {
        Event::Save { chunk, .. } => chunk,
        other => panic!("{other:?} did not happen"),
    });
    assert!(saved.eq(all[..6].iter().copied()), "the first of what happened, without a hole");
    // Room again is no reason to go on: what was lost would be missing in the middle.
    world.tick(GameTick::new(3), &[], ENOUGH).expect("ticks");
    world.pin(ids.overworld, ChunkBox::EVERYTHING);
    assert_eq!(world.take_trace(), TracePart { bytes: Vec::new(), lost_events: 16 });
    assert_eq!(world.end_trace().lost_events, 16);
    world.record_trace(1000);
    save_all(2);
    let part = world.end_trace();
    assert_eq!(part.lost_events, 0, "a new one begins anew");
    let events = cg_tiering::trace::TraceReader::new(&part.bytes).expect("is a trace");
    let events = events.take(2).collect::<Result<Vec<_>, _>>().expect("is sound");
    assert!(matches!(events[..], [Event::Tick(now), Event::Pin { .. }] if now.get() == 3), "{events:?}");
}

/// What may happen to a world that is played.
#[derive(Debug, Clone)]
enum Happening {
    Save { chunk: usize, cell: u16 },
    Delete { chunk: usize },
    Ticks { ticks: u64, at: Option<usize>, micros: u64 },
    Settle { after_ticks: u64 },
    Forget,
    Reopen,
}

fn event() -> impl Strategy<Value = Happening> {
    let ticks = prop::sample::select(vec![1, 20, 600, 2 * MINUTE, 5 * MINUTE, 31 * MINUTE]);
    prop_oneof![
        4 => (0..PLACES, 0..500_u16).prop_map(|(chunk, cell)| Happening::Save { chunk, cell }),
        1 => (0..PLACES).prop_map(|chunk| Happening::Delete { chunk }),
        6 => (ticks, prop::option::of(0..PLACES), prop::sample::select(vec![0, 100, 1_000_000]))
            .prop_map(|(ticks, at, micros)| Happening::Ticks { ticks, at, micros }),
        1 => prop::sample::select(vec![6 * MINUTE, DAY]).prop_map(|after_ticks| Happening::Settle { after_ticks }),
        1 => Just(Happening::Forget),
        1 => Just(Happening::Reopen),
    ]
}

const PLACES: usize = 60;

/// Places in few cubes near each other and at the ends of the world, so that they share clusters or do not.
fn place(ids: &Ids, n: usize) -> ChunkAt {
    let n = n as i64;
    match n % 4 {
        0 => ids.at(n / 4 % 4, n / 16, 0),
        1 => ids.at(4 + n / 4, 0, n / 4 % 3),
        2 => ids.at(ChunkPos::MIN + n / 4, ChunkPos::MAX, 0),
        _ => ChunkAt::new(ids.nether, ChunkPos::constant(n / 4 * 7, -n, 3)),
    }
}

/// Runs events against a model; `reopen` closes the world and opens it again where that is possible.
fn against_the_model<E: Engine>(
    mut world: World<E>,
    events: &[Happening],
    mut reopen: impl FnMut(World<E>) -> World<E>,
) {
    let ids = Ids::register(&world);
    let (mut model, mut now) = (BTreeMap::new(), 0);
    for event in events {
        match *event {
            Happening::Save { chunk, cell } => {
                save(&world, [(place(&ids, chunk), marked(&world, &ids, cell))]);
                model.insert(place(&ids, chunk), cell);
            }
            Happening::Delete { chunk } => {
                let deleted = world.transaction(|tx| {
                    tx.delete(place(&ids, chunk));
                    Ok::<_, Error>(())
                });
                drop(deleted.expect("deletes"));
                model.remove(&place(&ids, chunk));
            }
            Happening::Ticks { ticks, at, micros } => {
                now += ticks;
                let players: Vec<_> = at
                    .map(|at| place(&ids, at))
                    .map(|at| PlayerAt { id: uuid(1), dimension: at.dimension, block: at.pos.min_block() })
                    .into_iter()
                    .collect();
                for _ in 0..3 {
                    let report = world.tick(GameTick::new(now), &players, Duration::from_micros(micros));
                    assert_eq!(report.expect("ticks").moves.refused, 0);
                }
            }
            Happening::Settle { after_ticks } => {
                world.settle_tiers(after_ticks, |_| {}).expect("settles");
            }
            Happening::Forget => {
                let before = world.forget_before(u64::MAX).expect("is noted");
                assert_eq!(before, world.forgotten_before());
            }
            Happening::Reopen => world = reopen(world),
        }
        let live: BTreeSet<_> = model.keys().copied().collect();
        let mut seen = BTreeSet::new();
        for chunk in (0..PLACES).map(|n| place(&ids, n)) {
            let stored = world.load(chunk).expect("loads");
            let expected = model.get(&chunk).map(|cell| marked(&world, &ids, *cell));
            assert_eq!(stored.as_deref(), expected.as_ref(), "{chunk} after {event:?}");
            seen.extend(stored.map(|_| chunk));
        }
        assert_eq!(seen, live);
        assert_eq!(tiers(&world).iter().sum::<u64>(), live.len() as u64, "each chunk has one live copy");
    }
    assert_sound(&world);
    let flat = in_memory();
    let ids = Ids::register(&flat);
    save(&flat, model.into_iter().map(|(at, cell)| (at, marked(&flat, &ids, cell))));
    assert_eq!(world.content_hash().expect("hashes"), flat.content_hash().expect("hashes"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_played_world_in_memory_is_the_model(events in prop::collection::vec(event(), 1..40)) {
        against_the_model(in_memory(), &events, |world| world);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn a_played_world_on_disk_is_the_model(events in prop::collection::vec(event(), 1..40)) {
        let disk = Disk::new();
        against_the_model(disk.create(&[]), &events, |world| {
            drop(world);
            disk.open(&[])
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Ticks fold deltas here, and moves carry rows on which there are some.
    #[test]
    fn a_played_world_with_deltas_is_the_model(events in prop::collection::vec(event(), 1..40)) {
        let deltas = WorldOptions { deltas: true, ..options() };
        against_the_model(World::temporary(&[], &deltas).expect("a world in memory"), &events, |world| world);
        let disk = Disk::new();
        let world = World::create(disk.path(), &[], &deltas).expect("is created");
        against_the_model(world, events.get(..8).unwrap_or(&events), |world| {
            drop(world);
            World::open(disk.path(), &[], &deltas).expect("opens")
        });
    }
}

#[test]
fn a_policy_that_contradicts_itself_is_refused() {
    let tiers = TierPolicy { cold_after_ticks: 1, ..TierPolicy::default() };
    let refused = World::temporary(&[], &WorldOptions { tiers, ..options() }).expect_err("is refused");
    assert!(matches!(refused, Error::Policy(_)), "{refused}");
    let disk = Disk::new();
    let refused =
        World::create(disk.path(), &[], &WorldOptions { tiers, ..options() }).expect_err("is refused");
    assert!(matches!(refused, Error::Policy(_)) && !disk.path().exists(), "{refused}");
}
