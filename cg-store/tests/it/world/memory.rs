//! Memory of a world beside single chunks: columns, what a thread was shown, whole absent cubes, areas that are kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::damage::{corrupt, farm};
use super::*;
use cg_format::{ClusterTier, frame, key};
use cg_store::Peek;
use cg_store::cache::Column;
use cg_store::metrics::Stats;

over_both_engines! {
    a_column_is_its_chunks_until_one_of_them_is_committed
    a_column_over_any_range_ends
    a_chunk_is_shown_as_it_is_committed
    asking_an_empty_area_again_reads_nothing
    what_is_saved_into_an_absent_cube_is_seen
}

/// The work that something takes.
fn work<T>(world: &World, what: impl FnOnce() -> T) -> (T, Stats) {
    let before = world.metrics().stats;
    let done = what();
    (done, world.metrics().stats - before)
}

fn column(world: &World, ids: &Ids, x: i64) -> Column {
    world.column(ids.overworld, x, 0, -4..=3).expect("is sound")
}

#[track_caller]
fn check_column(world: &World, ids: &Ids, column: &Column) {
    for y in -4..=3 {
        let (here, loaded) = (column.chunk(y), world.load(ids.at(0, y, 0)).expect("loads"));
        assert_eq!(here, loaded.as_ref(), "at {y}");
        let same = here.zip(loaded.as_ref()).is_none_or(|(here, loaded)| Arc::ptr_eq(here, loaded));
        assert!(same, "one chunk is shared");
    }
}

fn a_column_is_its_chunks_until_one_of_them_is_committed(world: &World) {
    let ids = Ids::register(world);
    save(world, [-4, 0, 2].map(|y| (ids.at(0, y, 0), marked(world, &ids, (y + 9) as u16))));
    let first = column(world, &ids, 0);
    check_column(world, &ids, &first);
    assert_eq!(first.chunks().map(|(y, _)| y).collect::<Vec<_>>(), [-4, 0, 2]);
    assert_eq!([-5, 1, 4, i64::MIN, i64::MAX].map(|y| first.chunk(y)), [None; 5]);
    assert!(!first.is_absent() && column(world, &ids, 1).is_absent());
    assert!(column(world, &ids, 1).chunks().next().is_none());
    let (again, cost) = work(world, || column(world, &ids, 0));
    assert_eq!((cost.engine_reads, cost.cache_hits, cost.cache_misses), (0, 1, 0), "one look");
    check_column(world, &ids, &again);

    // A save, a first save and a deletion are each seen by who asks after them, and not by who holds the old column.
    save(world, [(ids.at(0, 0, 0), filled(world, ids.glass))]);
    check_column(world, &ids, &column(world, &ids, 0));
    save(world, [(ids.at(0, 3, 0), filled(world, ids.glass))]);
    check_column(world, &ids, &column(world, &ids, 0));
    let deleted = world.transaction(|tx| {
        tx.delete(ids.at(0, -4, 0));
        Ok::<_, Error>(())
    });
    drop(deleted.expect("deletes"));
    let last = column(world, &ids, 0);
    check_column(world, &ids, &last);
    assert_eq!(last.chunks().map(|(y, _)| y).collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(first.chunks().map(|(y, _)| y).collect::<Vec<_>>(), [-4, 0, 2]);
    assert_eq!(**first.chunk(0).expect("is held"), marked(world, &ids, 9));

    let outside = world.column(ids.overworld, i64::MAX, 0, 0..=3).unwrap_err();
    assert!(matches!(outside, Error::Position(out) if out.axis == 'x'), "{outside}");
    world.close().expect("closes");
    assert!(matches!(world.column(ids.overworld, 0, 0, -4..=3), Err(Error::Closed)));
}

#[test]
fn a_damaged_chunk_fails_its_column_and_is_not_remembered_as_absent() {
    let (disk, ids, a, _) = farm();
    disk.raw().flip(Family::ChunkL0, key::chunk(a), frame::LEN_BYTES + 20);
    let world = disk.open(&[]);
    for _ in 0..2 {
        corrupt(world.column(ids.overworld, 0, 0, 0..=3));
        corrupt(world.with_chunk(a, |_| ()));
        // Its absent neighbours make the cube be asked about: the damaged row is one.
        assert!(world.load_many(&[1, 2, 3].map(|y| ids.at(0, y, 0))).iter().all(|n| matches!(n, Ok(None))));
        corrupt(world.load(a));
    }
}

fn a_column_over_any_range_ends(world: &World) {
    let ids = Ids::register(world);
    let refused = |ys: std::ops::RangeInclusive<i64>| {
        let error = world.column(ids.overworld, 0, 0, ys).expect_err("is too high");
        let Error::ColumnTooHigh { chunks } = error else { panic!("{error}") };
        chunks
    };
    assert_eq!(refused(0..=i64::MAX), 1 << 63);
    assert_eq!(refused(i64::MIN..=i64::MAX), u64::MAX, "it saturates");
    let most = World::MAX_COLUMN_CHUNKS as i64;
    assert_eq!(refused(-1..=most - 1), 4097);
    let error = world.column(ids.overworld, 0, 0, 0..=most).expect_err("is too high");
    assert_eq!(
        error.to_string(),
        "a column of 4097 chunks was asked for, at most 4096 are given at once; ask for it in parts"
    );
    assert!(world.column(ids.overworld, 0, 0, 0..=most - 1).expect("is given").is_absent());
    let none = std::ops::RangeInclusive::new(i64::MAX, i64::MIN);
    assert!(world.column(ids.overworld, 0, 0, none).expect("is given").is_absent());
}

fn a_chunk_is_shown_as_it_is_committed(world: &World) {
    let ids = Ids::register(world);
    let (at, other, absent) = (ids.at(0, 0, 0), ids.at(0, 1, 0), ids.at(0, 9, 0));
    save(world, [(at, filled(world, ids.stone)), (other, filled(world, ids.stone))]);
    let block = |at| world.with_chunk(at, |chunk| chunk.block(LocalPos::new(0, 0, 0))).expect("is sound");
    for _ in 0..3 {
        assert_eq!([at, other, absent].map(block), [Some(ids.stone), Some(ids.stone), None]);
    }
    let (_, cost) = work(world, || [at, other].map(block));
    assert_eq!((cost.engine_reads, cost.cache_hits), (0, 2));
    // The closure may use the world, and look at what is being shown.
    let seen = world.with_chunk(at, |chunk| {
        save(world, [(other, filled(world, ids.glass))]);
        (chunk.block(LocalPos::new(0, 0, 0)), block(at), block(other))
    });
    assert_eq!(seen.expect("is sound"), Some((ids.stone, Some(ids.stone), Some(ids.glass))));
    save(world, [(at, filled(world, ids.glass))]);
    assert_eq!(block(at), Some(ids.glass));
    world.cache().clear();
    let (_, cost) = work(world, || block(at));
    assert_eq!((cost.engine_reads, cost.cache_misses), (1, 1), "nothing is remembered");
    let deleted = world.transaction(|tx| {
        tx.delete(at);
        Ok::<_, Error>(())
    });
    drop(deleted.expect("deletes"));
    assert_eq!(block(at), None);
    // Another world with the same place shows its own.
    let second = in_memory();
    Ids::register(&second);
    assert_eq!(second.with_chunk(other, |_| ()).expect("is sound"), None);
    world.close().expect("closes");
    assert!(matches!(world.with_chunk(other, |_| ()), Err(Error::Closed)));
}

/// 11×11 columns of 24 chunks.
fn area(ids: &Ids) -> Vec<ChunkAt> {
    let columns = (0..121).map(|n| (106 + n / 11, n % 11));
    columns.flat_map(|(x, z)| (-4..20).map(move |y| (x, y, z))).map(|(x, y, z)| ids.at(x, y, z)).collect()
}

fn scan(world: &World, area: &[ChunkAt]) -> usize {
    area.iter().filter(|at| world.load(**at).expect("loads").is_some()).count()
}

fn asking_an_empty_area_again_reads_nothing(world: &World) {
    let ids = Ids::register(world);
    let area = area(&ids);
    save(world, [(ids.at(0, 0, 0), filled(world, ids.stone))]);
    // Two 16³ cubes along x, three along y: each is learnt at its second chunk.
    let (found, first) = work(world, || scan(world, &area));
    assert_eq!(found, 0);
    assert_eq!((first.cache_misses, first.engine_reads), (6 * 2, 6 * (2 * 3 + 3)));
    let (found, second) = work(world, || scan(world, &area));
    assert_eq!((found, second.engine_reads, second.cache_hits), (0, 0, area.len() as u64));
    assert!(area.iter().all(|at| matches!(world.peek(*at), Peek::Absent)));
    assert_eq!(world.cache().stats().cubes, 6 + 1, "and that of the chunk that was saved");
    assert!(world.cache().stats().chunks < 20, "absence is not remembered chunk by chunk");

    // A cube that holds something is learnt by cubes of 4³: 63 of them are empty.
    save(world, [(area[0], filled(world, ids.stone))]);
    world.cache().clear();
    let (found, _) = work(world, || scan(world, &area));
    let (again, second) = work(world, || scan(world, &area));
    assert_eq!((found, again, second.engine_reads), (1, 1, 0));
    assert!(world.cache().stats().chunks < 100, "{:?}", world.cache().stats());

    // Who asks by columns or boxes reads nothing either.
    let ((), columns) = work(world, || {
        for at in area.iter().step_by(24).skip(1) {
            let column = world.column(ids.overworld, at.pos.x(), at.pos.z(), -4..=19).expect("is sound");
            assert!(column.is_absent());
        }
        assert!(world.load_many(&area[24..]).into_iter().all(|found| found.expect("loads").is_none()));
    });
    assert_eq!(columns.engine_reads, 0);
}

#[test]
fn clusters_and_cold_cubes_are_not_taken_for_absent() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let (warm, cold) = (ids.at(5, 0, 0), ids.at(21, 0, 0));
    save(&world, [warm, cold].map(|at| (at, filled(&world, ids.stone))));
    demote(&world, ClusterTier::L1, &[warm], false);
    demote(&world, ClusterTier::L2, &[cold], false);
    world.cache().clear();
    // All around them first.
    let around =
        |at: ChunkAt| (0..16).map(move |x| ids.at(at.pos.x() / 16 * 16 + x, 0, 0)).filter(move |n| *n != at);
    for at in around(warm).chain(around(cold)) {
        assert_eq!(world.load(at).expect("loads"), None);
    }
    for at in [warm, cold] {
        assert_eq!(world.load(at).expect("loads").as_deref(), Some(&filled(&world, ids.stone)));
    }
    let ((), again) = work(&world, || around(warm).chain(around(cold)).for_each(|at| drop(world.load(at))));
    assert_eq!(again.engine_reads, 0);
}

/// Tells threads to end when it is dropped, by a failed assertion too.
struct Ends<'d>(&'d AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn what_is_saved_into_an_absent_cube_is_seen(world: &World) {
    let ids = Ids::register(world);
    let area = area(&ids);
    assert_eq!((scan(world, &area), scan(world, &area)), (0, 0));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // They learn the cubes again and again while chunks are saved into them.
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Acquire) {
                    scan(world, &area);
                    world.cache().clear();
                }
            });
        }
        let _ends = Ends(&done);
        let chunk = Arc::new(filled(world, ids.stone));
        let fast = [Durability::Process, Durability::Fast];
        for (at, durability) in area.iter().step_by(17).zip(fast.iter().cycle()) {
            let saved = world.transaction_at(*durability, |tx| {
                tx.save(*at, Arc::clone(&chunk));
                Ok::<_, Error>(())
            });
            drop(saved.expect("saves"));
            let found = world.load(*at).expect("loads");
            assert!(found.is_some(), "{at} is not seen after its commit");
            let column = world.column(ids.overworld, at.pos.x(), at.pos.z(), -4..=19).expect("is sound");
            assert!(column.chunk(at.pos.y()).is_some(), "{at} is not in its column after its commit");
            assert_eq!(world.with_chunk(*at, |_| ()).expect("is sound"), Some(()));
        }
    });
    assert_eq!(scan(world, &area), area.len().div_ceil(17));
}

#[test]
fn what_is_queued_is_not_taken_for_absent() {
    let world = in_memory();
    let ids = Ids::register(&world);
    for x in 0..200 {
        let at = ids.at(16 * x + 5, 0, 0);
        let saved = world.transaction_at(Durability::Fast, |tx| {
            tx.save(at, filled(&world, ids.stone));
            Ok::<_, Error>(())
        });
        // Memory drops it before it is written, and its neighbours are asked about.
        world.cache().clear();
        assert_eq!(world.load(ids.at(16 * x + 6, 0, 0)).expect("loads"), None);
        assert_eq!(world.load(ids.at(16 * x + 7, 0, 0)).expect("loads"), None);
        assert!(world.load(at).expect("loads").is_some(), "{at}");
        drop(saved.expect("is taken"));
    }
}

#[test]
fn a_kept_area_stays_in_memory_beside_the_bound() {
    let bound = 256 << 10;
    let world = World::builder()
        .options(&WorldOptions { cache_bytes: bound, ..options() })
        .in_memory()
        .expect("a world");
    let ids = Ids::register(&world);
    let big = |n: i64| {
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(ids.light, vec![n as u8; 4000]);
        chunk
    };
    let chunk = |x| ids.at(x, 0, 0);
    let row = |from, to| ChunkBox::new(ChunkPos::constant(from, 0, 0), ChunkPos::constant(to, 0, 0));
    let in_memory =
        |from: i64, to: i64| (from..=to).filter(|x| matches!(world.peek(chunk(*x)), Peek::Here(_))).count();
    save(&world, [(chunk(0), big(0))]);
    let [first, second] = [row(0, 149), row(100, 199)].map(|area| world.cache().pin(ids.overworld, area));
    save(&world, (1..1000).map(|x| (chunk(x), big(x))));
    for x in (0..1000).rev() {
        assert_eq!(world.load(chunk(x)).expect("loads").as_deref(), Some(&big(x)));
    }
    // 200 chunks of more than 4,000 bytes are four times the bound, and the rest has its place beside them.
    let stats = world.cache().stats();
    assert_eq!((in_memory(0, 199), stats.pinned_chunks, stats.limit_bytes), (200, 200, bound));
    assert!((200 * 4128..200 * 5000).contains(&stats.pinned_bytes), "{stats:?}");
    assert!((bound / 2..=bound).contains(&stats.evictable_bytes), "{stats:?}");
    assert!((30..=62).contains(&in_memory(200, 999)), "{}", in_memory(200, 999));
    // Elsewhere it is not kept.
    assert!(world.load(ChunkAt::new(ids.nether, ChunkPos::constant(0, 0, 0))).expect("loads").is_none());
    assert_eq!(world.cache().stats().pinned_chunks, 200);

    drop(first);
    let stats = world.cache().stats();
    assert_eq!((stats.pinned_chunks, in_memory(100, 199)), (100, 100));
    assert!(stats.evictable_bytes <= bound, "{stats:?}");
    assert!(in_memory(0, 99) <= 62);
    drop(second);
    let stats = world.cache().stats();
    assert_eq!((stats.pinned_chunks, stats.pinned_bytes), (0, 0));
    assert!(stats.evictable_bytes <= bound && in_memory(0, 999) <= 62, "{stats:?}");
}

#[test]
fn a_pin_loads_its_area_up_to_a_limit_and_says_how_much() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    let place = |n: i64| ids.at(n % 10, n / 10, 0);
    save(&world, (0..100).map(|n| (place(n), filled(&world, ids.stone))));
    let area = ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(9, 4, 20));
    let pin = world.cache().pin(ids.overworld, area);
    world.cache().clear();
    let in_memory = || (0..100).filter(|n| matches!(world.peek(place(*n)), Peek::Here(_))).count();
    assert_eq!(in_memory(), 0, "a pin alone loads nothing");
    let nothing = pin.load(0).expect("loads");
    assert_eq!((nothing.chunks, nothing.bytes, nothing.is_limited), (0, 0, true));
    let some = pin.load(1).expect("loads");
    assert_eq!(
        (some.chunks, in_memory(), some.is_limited),
        (16, 16, true),
        "a group of them is more than that"
    );
    let all = pin.load(some.bytes * 10).expect("loads");
    assert_eq!((all.chunks, all.damaged, all.is_limited), (50, 0, false), "half of the world is in the box");
    let stats = world.cache().stats();
    assert_eq!((in_memory(), stats.pinned_chunks), (50, 50));
    assert!(all.bytes <= stats.pinned_bytes, "{all:?} {stats:?}");
    let exact = pin.load(all.bytes).expect("loads");
    assert_eq!(exact, all, "what fits exactly is no limit");
    drop(pin);
    let pin = world.cache().pin(ids.overworld, area);
    world.close().expect("closes");
    assert!(matches!(pin.load(1 << 20), Err(Error::Closed)));
}

#[test]
fn columns_and_chunks_together_stay_under_the_bound() {
    let bound = 1 << 20;
    let world = World::builder()
        .options(&WorldOptions { cache_bytes: bound, ..options() })
        .in_memory()
        .expect("a world");
    let ids = Ids::register(&world);
    let mut chunk = filled(&world, ids.air);
    chunk.set_side(ids.light, vec![1; 1000]);
    let chunk = Arc::new(chunk);
    let saved = world.transaction(|tx| {
        for x in 0..200 {
            (-4..=3).for_each(|y| tx.save(ids.at(x, y, 0), Arc::clone(&chunk)));
        }
        Ok::<_, Error>(())
    });
    drop(saved.expect("saves"));
    assert_eq!(world.cache().stats().columns, 0);
    for x in 0..200 {
        assert_eq!(column(&world, &ids, x).chunks().count(), 8);
    }
    let stats = world.cache().stats();
    assert!((5..30).contains(&stats.columns), "{stats:?}");
    assert!((bound / 2..=bound).contains(&stats.evictable_bytes), "{stats:?}");
}
