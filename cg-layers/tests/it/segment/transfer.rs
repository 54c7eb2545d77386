//! Entities that cross borders, with every commit of it failing in turn.

use std::collections::HashMap;
use std::sync::Arc;

use cg_registry::Catalog;
use cg_store::engine::{Engine, MemEngine};
use cg_store::error::Location;
use parking_lot::Mutex;

use super::*;
use crate::surviving::{Fuse, Surviving};

/// Segments whose engines survive, and whose power can be cut.
pub(crate) struct Crashing {
    pub(crate) fuse: Fuse,
    root: Surviving,
    make: Arc<dyn Fn() -> Surviving + Send + Sync>,
    /// Each with the identity of its world.
    engines: Engines,
}

type Engines = Arc<Mutex<HashMap<SegmentPos, Surviving>>>;

impl Clone for Crashing {
    fn clone(&self) -> Self {
        let Self { fuse, root, make, engines } = self;
        let (make, engines) = (Arc::clone(make), Arc::clone(engines));
        Self { fuse: fuse.clone(), root: root.clone(), make, engines }
    }
}

impl Crashing {
    pub(crate) fn new() -> Self {
        Self::of(MemEngine::new)
    }

    /// With such engines.
    pub(crate) fn of<E: Engine>(make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        let fuse = Fuse::new();
        let root = Surviving::over(make(), &fuse);
        let of_one_power = fuse.clone();
        let make = Arc::new(move || Surviving::over(make(), &of_one_power));
        Self { fuse, root, make, engines: Arc::default() }
    }

    /// An engine that is no segment's, with the same power.
    pub(crate) fn another(&self) -> Surviving {
        (self.make)()
    }

    pub(crate) fn open(&self, is_new: bool) -> SegmentedWorld<Self> {
        self.open_with(is_new, &segments())
    }

    pub(crate) fn open_with(&self, is_new: bool, segments: &SegmentOptions) -> SegmentedWorld<Self> {
        self.fuse.set(i64::MAX);
        SegmentedWorld::begin(self.clone(), self.root(segments), is_new.then_some(16), segments)
            .expect("begins")
    }

    /// The world of the root.
    pub(crate) fn root(&self, segments: &SegmentOptions) -> World {
        World::builder().options(&segments.world).over(self.root.clone()).expect("a root")
    }

    /// The engine of a segment, whether or not its world is open.
    pub(crate) fn engine(&self, segment: SegmentPos) -> Surviving {
        self.engines.lock().get(&segment).cloned().expect("is stored")
    }
}

impl SegmentHome for Crashing {
    fn location(&self, _: SegmentPos) -> Location {
        Location::Address("memory".into())
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        Ok(self.engines.lock().contains_key(&segment))
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let engine = self.another();
        self.engines.lock().insert(segment, engine.clone());
        let take = |catalog: &mut Catalog| {
            *catalog = Catalog::clone(&names);
            Ok(())
        };
        cg_store::layer::world_over(engine, options, take)
    }

    fn open(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        check: &dyn Fn(&Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let engine = self.engines.lock().get(&segment).cloned().expect("was asked for");
        let take = |catalog: &mut Catalog| {
            check(catalog)?;
            *catalog = Catalog::clone(&names);
            Ok(())
        };
        cg_store::layer::world_over(engine, options, take)
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        self.engines.lock().remove(&segment);
        Ok(())
    }
}

/// The chunks of all segments that refer to an entity, and the segments that have a row of it.
pub(crate) fn whereabouts<H: SegmentHome>(
    world: &SegmentedWorld<H>,
    places: &[ChunkAt],
    id: EntityId,
) -> (Vec<ChunkAt>, Vec<i64>) {
    let refers = |at: &&ChunkAt| {
        let chunk = world.load(**at).expect("loads");
        chunk.is_some_and(|chunk| chunk.entities().contains(&id))
    };
    let rows = world.segments().list().into_iter().filter(|segment| {
        world.segments().with(*segment, |world| world.entity(id)).expect("reads").is_some()
    });
    (places.iter().filter(refers).copied().collect(), rows.map(|segment| segment.x).collect())
}

#[test]
fn a_crossing_that_ends_anywhere_leaves_every_entity_in_one_place() {
    let mut arrived = Vec::new();
    for commits in 0.. {
        let home = Crashing::new();
        let world = home.open(true);
        let ids = register(&world);
        let places = [ids.at(0, 0, 0), ids.at(16, 0, 0), ids.at(32, 0, 0)];
        for at in places {
            save(&world, at, filled(world.root(), ids.stone));
        }
        // One leaves the first segment for the second, one for the third; one leaves the third for the first.
        let travels = [(1, places[0], places[1]), (2, places[0], places[2]), (3, places[2], places[0])];
        for (n, from, _) in travels {
            put(&world, n, ids.cow_in(from));
        }
        home.fuse.set(commits);
        let crossed = world.transfer_entities(travels.map(|(n, _, to)| (uuid(n), ids.cow_in(to))));
        let is_burnt = home.fuse.is_burnt();
        assert_eq!(crossed.is_ok(), !is_burnt, "{crossed:?}");
        drop(world);

        let world = home.open(false);
        let mut here = 0;
        for (n, from, to) in travels {
            let (chunks, rows) = whereabouts(&world, &places, uuid(n));
            let owner = world.entity(uuid(n)).expect("reads").expect("is not lost").owner;
            assert_eq!((chunks.len(), rows.len()), (1, 1), "entity {n} after {commits} commits");
            assert!([from, to].contains(&chunks[0]));
            assert_eq!(owner, Owner::Chunk(chunks[0]));
            assert_eq!(rows[0], chunks[0].pos.x() / 16);
            here += usize::from(chunks[0] == to);
        }
        for segment in world.segments().list() {
            world
                .segments()
                .with(segment, |world| {
                    assert_sound(world);
                    Ok(())
                })
                .expect("is there");
        }
        arrived.push(here);
        // What is to come works as if nothing had happened.
        world.transfer_entities([(uuid(1), ids.cow_in(places[2]))]).expect("crosses");
        assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[2]], vec![2]));
        if !is_burnt {
            break;
        }
    }
    // Begun, three arrivals, two departures, ended, and what opening segments commits: once it is begun, all arrive.
    assert!(arrived.is_sorted() && arrived.len() >= 7, "{arrived:?}");
    assert!(arrived.iter().all(|count| [0, 3].contains(count)), "{arrived:?}");
    assert_eq!((arrived[0], arrived.last()), (0, Some(&3)));
}

#[test]
fn a_place_in_the_root_without_its_entity_is_free() {
    let home = Crashing::new();
    let world = home.open(true);
    let ids = register(&world);
    let (here, there) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    for at in [here, there] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    // The root learns of it, the segment does not.
    home.fuse.set(1);
    world
        .transaction(here, |tx| {
            tx.put_entity(uuid(1), ids.cow_in(here));
            Ok::<_, Error>(())
        })
        .expect_err("the power is gone");
    drop(world);
    let world = home.open(false);
    assert_eq!(world.entity(uuid(1)).expect("reads"), None);
    put(&world, 1, ids.cow_in(there));
    assert_eq!(world.entity(uuid(1)).expect("reads").map(|cow| cow.owner), Some(Owner::Chunk(there)));
}

#[test]
fn the_root_forgets_entities_that_are_gone() {
    let (world, ids) = in_memory();
    let (here, there) = (ids.at(0, 0, 0), ids.at(16, 0, 0));
    for at in [here, there] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    for n in 1..4 {
        put(&world, n, ids.cow_in(here));
    }
    put(&world, 4, ids.cow_in(there));
    let places = || {
        let mut count = 0;
        let shown = world.root().read_view(|view| {
            view.for_each_property(":entity/", |place| {
                count += usize::from(place.is_ok());
                std::ops::ControlFlow::<()>::Continue(())
            })
        });
        shown.expect("scans");
        count
    };
    assert_eq!(places(), 4);
    let deleted = world.transaction(here, |tx| {
        tx.delete_entity(uuid(1));
        tx.delete_entity(uuid(4));
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
    world.flush().expect("saves");
    assert_eq!(places(), 3, "what another segment has is not forgotten");
    assert!(world.entity(uuid(4)).expect("reads").is_some());
    world.segments().delete(segment(&ids, 0)).expect("deletes");
    assert_eq!(places(), 1);
}

/// Commits that were accepted and cannot be written: the segment is not closed over them, and who only needs room for
/// another does not hear of it.
#[test]
fn a_segment_that_cannot_be_written_keeps_what_it_accepted() {
    let home = Crashing::new();
    let queued = WorldOptions { durability: Durability::Fast, ..options() };
    let world = home.open_with(true, &SegmentOptions { world: queued, ..segments() });
    let ids = register(&world);
    let places = [0, 16, 32].map(|x| ids.at(x, 0, 0));
    for at in places {
        save(&world, at, filled(world.root(), ids.stone));
        world.flush().expect("writes");
    }
    assert_eq!(world.segments().open_count(), 2, "the last two");
    home.fuse.set(0);
    save(&world, places[1], filled(world.root(), ids.glass));
    assert_eq!(block(&world, places[2]), Some(ids.stone), "was used later");
    assert_eq!(block(&world, places[0]), Some(ids.stone), "has nothing to do with it");
    assert_eq!(block(&world, places[2]), Some(ids.stone));
    assert_eq!(block(&world, places[1]), Some(ids.glass), "was accepted");
}

/// What an entity took from its segment is lost by no crash once it has arrived elsewhere: it would be there twice.
#[test]
fn an_entity_arrives_only_after_what_its_segment_accepted_is_written() {
    let home = Crashing::new();
    let queued = WorldOptions { durability: Durability::Fast, ..options() };
    let segments = SegmentOptions { world: queued, ..segments() };
    let world = home.open_with(true, &segments);
    let ids = register(&world);
    let places = [0, 16].map(|x| ids.at(x, 0, 0));
    for at in places {
        save(&world, at, filled(world.root(), ids.stone));
    }
    put(&world, 1, ids.cow_in(places[0]));
    world.flush().expect("writes");
    // The segment accepts that the cow takes something, and cannot write it.
    home.fuse.set(0);
    save(&world, places[0], filled(world.root(), ids.glass));
    while !home.fuse.is_burnt() {
        std::thread::yield_now();
    }
    home.fuse.set(i64::MAX);
    let crossed = world.transfer_entities([(uuid(1), ids.cow_in(places[1]))]);
    assert!(matches!(crossed, Err(Error::Engine(_))), "{crossed:?}");
    drop(world);

    let world = home.open_with(false, &segments);
    assert_eq!(block(&world, places[0]), Some(ids.stone), "was not written");
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[0]], vec![0]));
}

/// Damage of one entity on its way: all others arrive, and who asks for that one hears of the damage.
#[test]
fn a_damaged_entity_on_its_way_keeps_nothing_else_from_being_done() {
    let home = Crashing::new();
    let world = home.open(true);
    let ids = register(&world);
    let places = [0, 16, 32].map(|x| ids.at(x, 0, 0));
    for at in places {
        save(&world, at, filled(world.root(), ids.stone));
    }
    for n in 1..=3 {
        put(&world, n, ids.cow_in(places[0]));
    }
    for at in &places[..2] {
        block(&world, *at);
    }
    // The root has begun it, and no segment has anything of it.
    home.fuse.set(1);
    world.transfer_entities([1, 2].map(|n| (uuid(n), ids.cow_in(places[1])))).expect_err("the power is gone");
    drop(world);
    let from = segment(&ids, 0);
    home.engine(from).overwrite(cg_format::Space::Entity, cg_format::key::entity(uuid(1)));

    let world = home.open(false);
    let damaged = |found: Result<(), Error>| match found {
        Err(Error::Corrupt(damage)) => assert_eq!(damage.key, cg_format::key::entity(uuid(1))),
        other => panic!("its row is damaged: {other:?}"),
    };
    assert_eq!(whereabouts_of_sound(&world, &places, uuid(2)), vec![places[1]], "it has arrived");
    damaged(world.entity(uuid(1)).map(drop));
    damaged(world.transaction(places[2], |tx| {
        tx.put_entity(uuid(1), ids.cow_in(places[2]));
        Ok::<_, Error>(())
    }));
    damaged(world.transfer_entities([(uuid(1), ids.cow_in(places[2]))]));
    // The next crossing is recorded beside it.
    world.transfer_entities([(uuid(3), ids.cow_in(places[2]))]).expect("has nothing to do with it");
    assert_eq!(whereabouts_of_sound(&world, &places, uuid(3)), vec![places[2]]);
    drop(world);
    let world = home.open(false);
    damaged(world.entity(uuid(1)).map(drop));
    world.segments().with(from, |world| world.quarantine().entity(uuid(1)).map(drop)).expect("sets it aside");
    assert_eq!(world.entity(uuid(1)).expect("is gone"), None);
    put(&world, 1, ids.cow_in(places[2]));
    world.transfer_entities([(uuid(1), ids.cow_in(places[0]))]).expect("crosses");
    assert_eq!(whereabouts(&world, &places, uuid(1)), (vec![places[0]], vec![0]));
}

/// The chunks that refer to an entity.
fn whereabouts_of_sound<H: SegmentHome>(
    world: &SegmentedWorld<H>,
    places: &[ChunkAt],
    id: EntityId,
) -> Vec<ChunkAt> {
    assert!(world.entity(id).expect("is sound").is_some());
    let refers =
        |at: &&ChunkAt| world.load(**at).expect("loads").is_some_and(|chunk| chunk.entities().contains(&id));
    places.iter().filter(refers).copied().collect()
}
