//! The memory for decoded chunks, which the open segments divide.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cg_registry::Catalog;
use cg_store::error::Location;
use parking_lot::Mutex;

use super::*;

const MEMORY: u64 = 1 << 20;

/// Segments in memory. Their worlds can be looked at when they are closed, and they refuse to be opened on request.
#[derive(Clone, Default)]
struct Shown {
    worlds: Arc<Mutex<BTreeMap<SegmentPos, World>>>,
    refuses: Arc<AtomicBool>,
}

impl SegmentHome for Shown {
    fn location(&self, segment: SegmentPos) -> Location {
        Location::Address(segment.to_string())
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        Ok(self.worlds.lock().contains_key(&segment))
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        assert!(options.cache_bytes <= MEMORY / 2, "a part of them for each that may be open");
        let world = World::builder().options(options).in_memory()?;
        cg_store::layer::adopt_names(&world, &names)?;
        self.worlds.lock().insert(segment, world.clone());
        Ok(world)
    }

    fn open(
        &self,
        segment: SegmentPos,
        _: Arc<Catalog>,
        _: &dyn Fn(&Catalog) -> Result<(), Error>,
        _: &WorldOptions,
    ) -> Result<World, Error> {
        if self.refuses.load(Ordering::Relaxed) {
            return Err(SegmentError::NotASegment { segment, why: "it refuses" }.into());
        }
        Ok(self.worlds.lock().get(&segment).cloned().expect("was asked for"))
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        self.worlds.lock().remove(&segment);
        Ok(())
    }

    fn close(&self, _: World) -> Result<(), Error> {
        Ok(())
    }
}

impl Shown {
    fn begin(&self, max_open: usize, cache_bytes: u64) -> (SegmentedWorld<Self>, Ids) {
        let world = WorldOptions { cache_bytes, ..options() };
        let root = World::builder().options(&world).in_memory().expect("a root");
        let options = SegmentOptions { max_open, world, ..segments() };
        let world = SegmentedWorld::begin(self.clone(), root, Some(16), &options).expect("begins");
        let ids = register(&world);
        (world, ids)
    }

    /// The limit of each segment, open or closed, in the order of their places.
    fn limits(&self) -> Vec<u64> {
        self.worlds.lock().values().map(|world| world.cache().stats().limit_bytes).collect()
    }

    /// The size of what is cached of each.
    fn sizes(&self) -> Vec<u64> {
        self.worlds.lock().values().map(|world| world.cache().stats().evictable_bytes).collect()
    }
}

/// Saves a layer of chunks in a segment, more than all memory takes.
fn fill(world: &SegmentedWorld<Shown>, ids: &Ids, segment: i64) {
    let chunk = filled(world.root(), ids.stone);
    let saved = world.transaction(ids.at(16 * segment, 0, 0), |tx| {
        for place in 0..4096 {
            tx.save(ids.at(16 * segment + place % 16, place / 256, place / 16 % 16), chunk.clone());
        }
        Ok::<_, Error>(())
    });
    saved.expect("saves");
}

#[test]
fn one_open_segment_has_all_memory_and_a_second_one_half_of_it() {
    let home = Shown::default();
    let (world, ids) = home.begin(2, MEMORY);
    fill(&world, &ids, 0);
    assert_eq!(home.limits(), [MEMORY]);
    assert!(home.sizes()[0] > MEMORY / 4 * 3, "{:?}", home.sizes());
    fill(&world, &ids, 1);
    assert_eq!(home.limits(), [MEMORY / 2, MEMORY / 2]);
    assert!(
        home.sizes().iter().all(|size| (MEMORY / 8 * 3..=MEMORY / 2).contains(size)),
        "{:?}",
        home.sizes()
    );
    // A third one: the first is closed for it, and has nothing any more.
    fill(&world, &ids, 2);
    assert_eq!(home.limits(), [0, MEMORY / 2, MEMORY / 2]);
    assert_eq!(home.sizes()[0], 0);
    world.segments().delete(segment(&ids, 1)).expect("deletes");
    assert_eq!(home.limits(), [0, MEMORY]);
    assert_eq!(block(&world, ids.at(0, 0, 0)), Some(ids.stone));
    assert_eq!(home.limits(), [MEMORY / 2, MEMORY / 2]);
}

#[test]
fn a_segment_that_was_not_used_for_the_longest_time_loses_its_memory() {
    let home = Shown::default();
    let (world, ids) = home.begin(2, MEMORY);
    let at = [0, 1, 2].map(|x| ids.at(16 * x, 0, 0));
    save(&world, at[0], filled(world.root(), ids.stone));
    save(&world, at[1], filled(world.root(), ids.stone));
    assert_eq!(block(&world, at[0]), Some(ids.stone));
    save(&world, at[2], filled(world.root(), ids.stone));
    assert_eq!(home.limits(), [MEMORY / 2, 0, MEMORY / 2]);
}

#[test]
fn more_open_segments_than_allowed_divide_memory_too() {
    let home = Shown::default();
    let (world, ids) = home.begin(2, MEMORY);
    for x in [0, 1, 2] {
        save(&world, ids.at(16 * x, 0, 0), filled(world.root(), ids.stone));
    }
    let in_use = |x, show: &dyn Fn()| {
        let shown = world.segments().with(segment(&ids, x), |_| {
            show();
            Ok(())
        });
        shown.expect("opens");
    };
    in_use(0, &|| in_use(1, &|| in_use(2, &|| assert_eq!(home.limits(), [MEMORY / 3; 3]))));
    in_use(0, &|| assert_eq!(home.limits(), [MEMORY / 3; 3], "all are still open"));
    // Two are closed for the fourth.
    save(&world, ids.at(48, 0, 0), filled(world.root(), ids.stone));
    assert_eq!(home.limits().iter().filter(|limit| **limit == MEMORY / 2).count(), 2, "{:?}", home.limits());
    assert_eq!(home.limits().iter().sum::<u64>(), MEMORY);
}

#[test]
fn an_opening_that_fails_takes_no_memory() {
    let home = Shown::default();
    let (world, ids) = home.begin(2, MEMORY);
    for x in [0, 1, 2] {
        save(&world, ids.at(16 * x, 0, 0), filled(world.root(), ids.stone));
    }
    assert_eq!(home.limits(), [0, MEMORY / 2, MEMORY / 2]);
    home.refuses.store(true, Ordering::Relaxed);
    let refused = world.load(ids.at(0, 0, 0));
    let expected = SegmentError::NotASegment { segment: segment(&ids, 0), why: "it refuses" };
    assert_eq!(refused.as_ref().err().and_then(Error::layer), Some(&expected), "{refused:?}");
    assert_eq!(home.limits(), [0, 0, MEMORY], "one was closed for it");
    assert_eq!(block(&world, ids.at(900, 0, 0)), None);
    let deleted = world.segments().delete(segment(&ids, 7));
    let expected = SegmentError::Missing { segment: segment(&ids, 7) };
    assert_eq!(deleted.as_ref().err().and_then(Error::layer), Some(&expected), "{deleted:?}");
    assert_eq!(home.limits(), [0, 0, MEMORY]);
}

#[test]
fn segments_that_many_threads_open_and_close_have_no_more_than_all_memory() {
    let home = Shown::default();
    let (world, ids) = home.begin(3, MEMORY);
    for x in 0..8 {
        save(&world, ids.at(16 * x, 0, 0), filled(world.root(), ids.stone));
    }
    // Short rounds: only the last openings and closings of each are looked at.
    for round in 0..200 {
        thread::scope(|threads| {
            for thread in 0..4 {
                let (world, ids) = (&world, &ids);
                threads.spawn(move || {
                    for step in 0..4 {
                        let x = (step * (2 * thread + 1) + round) % 8;
                        match (step + thread + round) % 4 {
                            // Another thread may have deleted it.
                            0 => drop(world.segments().delete(segment(ids, x))),
                            1 => save(world, ids.at(16 * x, 0, 0), filled(world.root(), ids.stone)),
                            _ => drop(block(world, ids.at(16 * x, 0, 0))),
                        }
                    }
                });
            }
        });
        let limits = home.limits();
        let open = world.segments().open_count();
        let parts: Vec<_> = limits.iter().copied().filter(|limit| *limit > 0).collect();
        assert_eq!(parts, vec![MEMORY / open.max(1) as u64; open], "round {round}: {limits:?}");
    }
}

#[test]
fn a_world_without_memory_works() {
    let home = Shown::default();
    let (world, ids) = home.begin(2, 0);
    chunks_lie_in_their_segments(&world, &ids);
    fill(&world, &ids, 0);
    let many = world.load_many(&[ids.at(1, 0, 0), ids.at(0, 0, 0), ids.at(1, 500, 0)]);
    let many: Vec<_> = many.into_iter().map(|chunk| chunk.expect("loads").is_some()).collect();
    assert_eq!(many, [true, true, false]);
    assert!(home.limits().iter().chain(&home.sizes()).all(|bytes| *bytes == 0), "{:?}", home.sizes());
}

#[test]
fn segments_on_disk_divide_memory_again_when_they_are_opened_again() {
    let disk = Disk::new();
    let options = SegmentOptions { world: WorldOptions { cache_bytes: MEMORY, ..options() }, ..segments() };
    let limit = |world: &SegmentedWorld<OnDisk>, ids: &Ids, x| {
        let limit = |world: &World| Ok(world.cache().stats().limit_bytes);
        world.segments().with(segment(ids, x), limit).expect("opens")
    };
    let world = SegmentedWorld::create(dir(&disk), &[], &options).expect("an empty directory");
    let ids = register(&world);
    for x in [0, 1, 2] {
        save(&world, ids.at(16 * x, 0, 0), filled(world.root(), ids.stone));
    }
    assert_eq!([2, 1, 0].map(|x| limit(&world, &ids, x)), [MEMORY / 2; 3]);
    world.close().expect("closes");
    drop(world);
    let world = SegmentedWorld::open(dir(&disk), &[], &options).expect("opens");
    assert_eq!([0, 0, 1, 0].map(|x| limit(&world, &ids, x)), [MEMORY, MEMORY, MEMORY / 2, MEMORY / 2]);
}
