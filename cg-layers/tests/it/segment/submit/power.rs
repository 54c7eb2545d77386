//! What the disk has when the power goes: of each world what was synced, and segments and root are synced separately.

use std::collections::HashMap;
use std::sync::Arc;

use cg_registry::Catalog;
use cg_store::engine::{
    Batch, CommitSeq, Engine, EngineError, Guard, MemEngine, Readable, Reopen, Reopened, RowVisitor, Scan,
};
use cg_store::error::Location;
use parking_lot::Mutex;

use super::*;

/// An engine that knows what a power cut leaves of it, and counts its syncs.
#[derive(Debug, Clone)]
struct Cuttable {
    engine: Arc<dyn Engine>,
    /// What is synced.
    disk: Arc<Mutex<Arc<dyn Engine>>>,
    syncs: Arc<AtomicU32>,
}

impl Cuttable {
    fn over(engine: Arc<dyn Engine>) -> Self {
        let disk = Arc::new(Mutex::new(copy(&*engine)));
        Self { engine, disk, syncs: Arc::default() }
    }

    fn synced(&self) {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        *self.disk.lock() = copy(&*self.engine);
    }

    /// The engine after a power cut.
    fn cut(&self) -> Self {
        Self::over(copy(&**self.disk.lock()))
    }
}

/// An engine with the rows that another has now.
fn copy(engine: &dyn Engine) -> Arc<dyn Engine> {
    let Reopened::Writable(copy) = engine.reopening()(&|_| Ok(true)).expect("is in memory") else {
        panic!("can be written")
    };
    Arc::from(copy)
}

impl Readable for Cuttable {
    cg_store::engine::delegate! { engine => get get_many get_slices }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.engine.scan_rows(scan, visit)
    }
}

impl Engine for Cuttable {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        let committed = self.engine.commit(batch, guards, level)?;
        if level == Level::Power {
            self.synced();
        }
        Ok(committed)
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.engine.sync()?;
        self.synced();
        Ok(())
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.sync()
    }

    cg_store::engine::delegate! {
        engine => snapshot last_commit batch_count last_synced checkpoint compact failure free_bytes caps usage
    }

    fn close(&self) -> Result<(), EngineError> {
        self.sync()
    }

    fn reopening(&self) -> Reopen {
        self.engine.reopening()
    }
}

/// A segmented world whose power can be cut.
#[derive(Clone)]
struct Machine {
    root: Cuttable,
    segments: Arc<Mutex<HashMap<SegmentPos, Cuttable>>>,
}

impl Machine {
    fn new() -> Self {
        Self { root: Cuttable::over(Arc::new(MemEngine::new())), segments: Arc::default() }
    }

    /// The machine after a power cut.
    fn cut(&self) -> Self {
        let segments = self.segments.lock().iter().map(|(at, engine)| (*at, engine.cut())).collect();
        Self { root: self.root.cut(), segments: Arc::new(Mutex::new(segments)) }
    }

    fn open(&self, is_new: bool, durability: Durability) -> SegmentedWorld<Self> {
        let mut segments = segments();
        segments.world.durability = durability;
        let root = World::builder().options(&segments.world).over(self.root.clone()).expect("a root");
        SegmentedWorld::begin(self.clone(), root, is_new.then_some(16), &segments).expect("begins")
    }

    fn syncs_of_root(&self) -> u32 {
        self.root.syncs.load(Ordering::SeqCst)
    }
}

impl SegmentHome for Machine {
    fn location(&self, _: SegmentPos) -> Location {
        Location::Address("memory".into())
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        Ok(self.segments.lock().contains_key(&segment))
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        self.segments.lock().insert(segment, Cuttable::over(Arc::new(MemEngine::new())));
        SegmentHome::open(self, segment, names, &|_| Ok(()), options)
    }

    fn open(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        check: &dyn Fn(&Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let engine = self.segments.lock().get(&segment).cloned().expect("was asked for");
        let take = |catalog: &mut Catalog| {
            check(catalog)?;
            *catalog = Catalog::clone(&names);
            Ok(())
        };
        cg_store::layer::world_over(engine, options, take)
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        self.segments.lock().remove(&segment);
        Ok(())
    }
}

fn all_kinds(world: &SegmentedWorld<Machine>, ids: &Ids, n: u8) -> WriteBatch {
    let at = ids.at(0, 0, 0);
    let mut batch = saving(world, at, ids.stone);
    batch.put_entity(uuid(1), ids.cow_in(at));
    batch.put_object("bricks", [n]).expect("a key");
    batch.put_record(values::id(1), values::record(ids, 3, n));
    batch.set_property(values::property("game:rain"), Some(vec![n]));
    batch
}

#[test]
fn a_batch_is_durable_when_its_places_are() {
    for durability in [Durability::Fast, Durability::Process] {
        let machine = Machine::new();
        let world = machine.open(true, durability);
        let ids = register(&world);
        let at = ids.at(0, 0, 0);
        let accepted = world.submit(at, all_kinds(&world, &ids, 1)).expect("is taken").wait();
        let durable = accepted.expect("is accepted").durable();
        assert!(!durable.is_durable());
        let segment = world.segment_of(at);
        let sync = |world: &World| cg_layers::Base::keep_found(world, Level::Power);
        world.segments().with(segment, sync).expect("syncs");
        assert!(!durable.is_durable(), "the root has not synced its places");
        durable.wait().expect("syncs the root");
        assert!(durable.is_durable());

        // A known key, a new one, and a chunk alone.
        let before = machine.syncs_of_root();
        let wait = |batch| {
            let accepted = world.submit(at, batch).expect("is taken").wait().expect("is accepted");
            accepted.durable().wait().expect("syncs");
        };
        wait(all_kinds(&world, &ids, 2));
        wait(saving(&world, ids.at(1, 0, 0), ids.stone));
        assert_eq!(machine.syncs_of_root(), before, "no place is new");
        let mut new = WriteBatch::new();
        new.put_object("more", [1]).expect("a key");
        wait(new);
        assert_eq!(machine.syncs_of_root(), before + 1, "one place is new");

        let world = machine.cut().open(false, durability);
        assert!(world.entity(uuid(1)).expect("reads").is_some());
        assert_eq!(values::object(&world, "bricks"), Some((1, 2)));
        assert_eq!(values::object(&world, "more"), Some((0, 1)));
        assert!(world.records().get(values::id(1)).expect("reads").is_some());
        let rain = world.property(&values::property("game:rain")).expect("reads");
        assert_eq!(rain.as_deref(), Some(&[2][..]));
        assert!(world.load(ids.at(1, 0, 0)).expect("loads").is_some());
    }
}

/// The place of a key that an earlier batch put, and that of an entity that came here, count too.
#[test]
fn a_batch_waits_for_places_that_others_stored() {
    let machine = Machine::new();
    let world = machine.open(true, Durability::Process);
    let ids = register(&world);
    let [here, there] = [0, 16].map(|x| ids.at(x, 0, 0));
    for at in [here, there] {
        save(&world, at, filled(world.root(), ids.stone));
    }
    world.flush().expect("syncs");
    put(&world, 1, ids.cow_in(here));
    world.transfer_entities([(uuid(1), ids.cow_in(there))]).expect("transfers");
    let ticket = world.submit(there, {
        let mut batch = WriteBatch::new();
        batch.edit_entity(uuid(1), |_| Ok(()));
        batch
    });
    ticket.expect("is taken").wait().expect("is accepted").durable().wait().expect("syncs");
    let world = machine.cut().open(false, Durability::Process);
    assert_eq!(world.entity(uuid(1)).expect("reads").map(|cow| cow.owner), Some(Owner::Chunk(there)));
}

/// A segment that was created is known to the root before anything in it is durable.
#[test]
fn a_chunk_is_durable_in_a_segment_that_the_root_knows() {
    let machine = Machine::new();
    let world = machine.open(true, Durability::Fast);
    let ids = register(&world);
    let at = ids.at(0, 0, 0);
    let durable = |batch| world.submit(at, batch).expect("is taken").wait().expect("is accepted").durable();
    durable(saving(&world, at, ids.stone)).wait().expect("syncs");
    let world = machine.cut().open(false, Durability::Fast);
    assert_eq!(block(&world, at), Some(ids.stone));
}
