//! A segmented world whose segments are worlds of one database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cg_format::LocalPos;
use cg_format::entity::EntityPos;
use cg_layers::{SegmentHome, SegmentOptions, SegmentPos, SegmentedWorld};
use cg_postgres::{Address, Options, PostgresEngine};
use cg_registry::Catalog;
use cg_store::engine::EngineError;
use cg_store::error::Location;
use cg_store::layer::world_over;
use cg_store::prelude::*;
use cg_store::verify::VerifyDepth;
use uuid::Uuid;

use crate::postgres::{TestWorld, world};

/// Segments as worlds of a database.
#[derive(Clone)]
struct InDatabase {
    root: Arc<TestWorld>,
    /// Those whose place was asked for; they are removed with the value.
    segments: Arc<Mutex<BTreeMap<SegmentPos, TestWorld>>>,
}

impl InDatabase {
    fn new(root: TestWorld) -> Self {
        Self { root: Arc::new(root), segments: Arc::default() }
    }

    fn address(&self, segment: SegmentPos) -> Address {
        let mut segments = self.segments.lock().expect("no test panics with it");
        let made = || world().expect("there is a server");
        segments.entry(segment).or_insert_with(made).address.clone()
    }

    fn open_with(&self, new_side: Option<u32>) -> SegmentedWorld<Self> {
        let options = options();
        let address = &self.root.address;
        let engine = match new_side {
            Some(_) => PostgresEngine::create(address, &Options::default()),
            None => PostgresEngine::open(address, &Options::default()),
        };
        let engine = engine.expect("the server answers");
        let root = World::builder().options(&options.world).over(engine).expect("a root");
        SegmentedWorld::begin(self.clone(), root, new_side, &options).expect("begins")
    }
}

fn is_absence(error: &EngineError) -> bool {
    matches!(error, EngineError::NotAnEngineDir { .. })
}

impl SegmentHome for InDatabase {
    fn location(&self, segment: SegmentPos) -> Location {
        Location::Address(self.address(segment).to_string())
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        match PostgresEngine::open_read_only(&self.address(segment), &Options::default()) {
            Err(error) if is_absence(&error) => Ok(false),
            opened => Ok(opened.map(|_| true)?),
        }
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        self.remove(segment)?;
        let engine = PostgresEngine::create(&self.address(segment), &Options::default())?;
        world_over(engine, options, |catalog| {
            *catalog = Catalog::clone(&names);
            Ok(())
        })
    }

    fn open(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        check: &dyn Fn(&Catalog) -> Result<(), Error>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let engine = PostgresEngine::open(&self.address(segment), &Options::default())?;
        world_over(engine, options, |catalog| {
            check(catalog)?;
            *catalog = Catalog::clone(&names);
            Ok(())
        })
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        let _address = self.address(segment);
        let segments = self.segments.lock().expect("no test panics with it");
        segments.get(&segment).into_iter().for_each(TestWorld::remove);
        Ok(())
    }
}

fn options() -> SegmentOptions {
    SegmentOptions { side_chunks: 16, max_open: 1, world: WorldOptions::safe() }
}

/// A cow in the middle of a chunk.
fn cow<H: SegmentHome>(world: &SegmentedWorld<H>, at: ChunkAt) -> Entity {
    let block = at.pos.block(LocalPos::new(8, 0, 8));
    let position = EntityPos::new(at.dimension, block, [0.5, 0.0, 0.5]).expect("a position");
    let kind = world.root().catalog().entity_type("game:cow").expect("is registered");
    Entity::new(kind, Owner::Chunk(at), position)
}

/// Registers names, and saves a chunk of stone in each of two segments, with a cow in the first.
fn fill<H: SegmentHome>(world: &SegmentedWorld<H>) -> [ChunkAt; 2] {
    let name = |text| Name::new(text).expect("a name");
    let registration = Registration {
        blocks: vec![BlockOffer::new(name(":air")), BlockOffer::new(name("game:stone"))],
        entities: vec![name("game:cow")],
        dimensions: vec![name("game:overworld")],
        ..Registration::default()
    };
    world.register(&registration).expect("registers");
    let catalog = world.root().catalog();
    let dimension = catalog.dimension("game:overworld").expect("is registered");
    let stone = catalog.block_id("game:stone").expect("is registered");
    let places = [0, 16].map(|x| ChunkAt::new(dimension, ChunkPos::new(x, 0, 0).expect("inside")));
    for at in places {
        let chunk = Chunk::filled(stone, &catalog.current_schema()).expect("is registered");
        let saved = world.transaction(at, |tx| {
            tx.save(at, chunk);
            Ok::<_, Error>(())
        });
        saved.expect("saves");
    }
    let cow = cow(world, places[0]);
    let put = world.transaction(places[0], |tx| {
        tx.put_entity(id(), cow);
        Ok::<_, Error>(())
    });
    put.expect("puts");
    places
}

fn id() -> EntityId {
    EntityId::new(Uuid::from_u128(1))
}

/// The chunks of all segments that refer to the cow, and where the cow says that it is.
fn whereabouts<H: SegmentHome>(world: &SegmentedWorld<H>, places: [ChunkAt; 2]) -> (Vec<ChunkAt>, Owner) {
    let refers = |at: &ChunkAt| {
        let chunk = world.load(*at).expect("loads").expect("is there");
        chunk.entities().contains(&id())
    };
    let cow = world.entity(id()).expect("reads").expect("is not lost");
    (places.into_iter().filter(refers).collect(), cow.owner)
}

#[test]
fn a_segmented_world_opens_saves_and_transfers() {
    let Some(root) = world() else { return };
    let home = InDatabase::new(root);
    let world = home.open_with(Some(16));
    let places = fill(&world);
    assert_eq!(whereabouts(&world, places), (vec![places[0]], Owner::Chunk(places[0])));
    world.transfer_entities([(id(), cow(&world, places[1]))]).expect("crosses");
    assert_eq!(whereabouts(&world, places), (vec![places[1]], Owner::Chunk(places[1])));
    world.close().expect("closes");
    drop(world);

    let world = home.open_with(None);
    assert_eq!(world.segments().list().len(), 2);
    assert_eq!(whereabouts(&world, places), (vec![places[1]], Owner::Chunk(places[1])));
    for segment in world.segments().list() {
        let verified = world.segments().with(segment, |world| world.verify(VerifyDepth::Full, |_| {}));
        assert_eq!(verified.expect("verifies").findings, [], "{segment}");
    }
    // A transfer back, and one more opening.
    world.transfer_entities([(id(), cow(&world, places[0]))]).expect("crosses");
    world.close().expect("closes");
    drop(world);
    assert_eq!(whereabouts(&home.open_with(None), places), (vec![places[0]], Owner::Chunk(places[0])));
}
