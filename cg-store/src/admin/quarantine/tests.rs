//! Commits during a quarantine. A test engine stops a scan in the middle to run them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use std::{fmt, thread};

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{BlockId, BlockPos, ChunkAt, ChunkPos, ComponentId, EntityId, LocalPos};
use cg_registry::{ComponentOffer, Name};
use parking_lot::Mutex;

use super::*;
use crate::engine::{Engine, Level, MemEngine, Readable, Reopen, RowVisitor, Scan, Snapshot, Value};
use crate::storage::directory::{State, WorldFile};
use crate::storage::location::Location;
use crate::storage::meta::WorldRows;
use crate::{Durability, Property, World, WorldOptions};

/// The last read of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    Row(Space),
    Family(Family),
}

/// An action to run after a given read.
type Hook = Mutex<Option<(Read, Box<dyn FnOnce() + Send>)>>;

/// An engine in memory that runs an action once, after the first read of a kind.
struct Watched {
    engine: Box<dyn Engine>,
    hook: Arc<Hook>,
}

struct WatchedSnapshot<'e> {
    snapshot: Snapshot<'e>,
    hook: Arc<Hook>,
}

fn fire(hook: &Hook, read: Read) {
    let wanted = hook.lock().take_if(|(wanted, _)| *wanted == read);
    if let Some((_, act)) = wanted {
        act();
    }
}

impl Readable for Watched {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        let found = self.engine.get(space, key);
        fire(&self.hook, Read::Row(space));
        found
    }

    crate::engine::delegate! { engine => get_many get_slices }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        let found = self.engine.scan_rows(scan, visit);
        fire(&self.hook, Read::Family(scan.family));
        found
    }
}

impl Readable for WatchedSnapshot<'_> {
    crate::engine::delegate! { snapshot => get get_many get_slices }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        let found = self.snapshot.scan_rows(scan, visit);
        fire(&self.hook, Read::Family(scan.family));
        found
    }
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.engine.fmt(f)
    }
}

impl Engine for Watched {
    crate::engine::delegate! {
        engine => commit sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes caps usage
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        Ok(Box::new(WatchedSnapshot { snapshot: self.engine.snapshot()?, hook: Arc::clone(&self.hook) }))
    }

    fn reopening(&self) -> Reopen {
        let (reopen, hook) = (self.engine.reopening(), Arc::clone(&self.hook));
        Box::new(move |expects| Ok(reopen(expects)?.map(|engine| Self { engine, hook: Arc::clone(&hook) })))
    }
}

const COW: EntityId = EntityId::new(uuid::Uuid::from_u128(1));

/// A world with a cow in a chunk, beside an empty one.
struct Farm {
    world: World,
    hook: Arc<Hook>,
    milk: ComponentId,
    stone: BlockId,
    at: ChunkAt,
    beside: ChunkAt,
}

impl Farm {
    fn new() -> Self {
        Self::over(MemEngine::new(), &WorldOptions::default())
    }

    fn over(engine: MemEngine, options: &WorldOptions) -> Self {
        let hook = Arc::<Hook>::default();
        let engine = Watched { engine: Box::new(engine), hook: Arc::clone(&hook) };
        let file = WorldFile { state: State::Ready, ..WorldFile::new_world() };
        let rows = WorldRows::read(&engine).unwrap();
        let world =
            World::begin(Box::new(engine), rows, file, Location::Address("memory".into()), options).unwrap();
        let overworld = world.registry().register_dimension("game:overworld").unwrap();
        let kind = world.registry().register_entity("game:cow").unwrap();
        let milk = ComponentOffer::fixed(Name::new("game:milk").unwrap(), 1);
        let milk = world.registry().register_component(milk).unwrap();
        let [air, stone] = world.registry().register_blocks([":air", "game:stone"]).unwrap();
        let [at, beside] = [0, 1].map(|x| ChunkAt::new(overworld, ChunkPos::new(x, 0, 0).unwrap()));
        let empty = Chunk::filled(air, &world.catalog().current_schema()).unwrap();
        world
            .transaction(|tx| {
                tx.save(at, empty.clone());
                tx.save(beside, empty);
                let position = EntityPos::new(overworld, BlockPos::new(8, 0, 8), [0.5; 3]).unwrap();
                tx.put_entity(COW, Entity::new(kind, Owner::Chunk(at), position));
                Ok::<_, Error>(())
            })
            .unwrap();
        Self { world, hook, milk, stone, at, beside }
    }

    /// Damages a row without the world's knowledge. The cache keeps the old value.
    fn spoil(&self, space: Space, key: &[u8]) {
        let mut batch = Batch::new();
        batch.put(space, key, Draft::plain(Codec::None, 0, |out| out.extend(b"spoilt")), Stamp::Commit);
        self.world.engine().commit(batch, &[], Level::Process).unwrap();
    }

    /// Makes another thread change the world after a given read, and waits for it. This would block for ever if the
    /// reader held the commit lock.
    fn meanwhile(&self, read: Read, change: impl FnOnce(&World) -> Result<(), Error> + Send + 'static) {
        let world = self.world.clone();
        let act = move || {
            let (done, wait) = std::sync::mpsc::channel();
            let other = thread::spawn(move || {
                let changed = change(&world);
                done.send(()).unwrap();
                changed
            });
            wait.recv_timeout(Duration::from_secs(30)).expect("no lock is held while reading");
            other.join().unwrap().expect("it is done");
        };
        *self.hook.lock() = Some((read, Box::new(act)));
    }

    /// Checks that the action was run, and that the world is sound.
    fn check(&self) {
        assert!(self.hook.lock().is_none(), "it never happened");
        let report = self.world.verify(crate::verify::VerifyDepth::Full, |_| {}).unwrap();
        assert_eq!(report.findings, []);
    }
}

/// Changes the cow.
fn milked(world: &World, milk: ComponentId) -> Result<(), Error> {
    let milked = world.transaction(|tx| {
        let mut cow = tx.entity(COW)?.expect("is there");
        cow.set_component(milk, vec![7])?;
        tx.put_entity(COW, cow);
        Ok(())
    });
    milked.map(drop)
}

/// Puts a stone into a cell.
fn dig(world: &World, at: ChunkAt, stone: BlockId) -> Result<(), Error> {
    let cell = at.pos.block(LocalPos::new(1, 1, 1));
    world.transaction(|tx| tx.set_block(at.dimension, cell, stone)).map(drop)
}

#[test]
fn an_entity_that_changes_meanwhile_is_detached_as_it_is_now() {
    let farm = Farm::new();
    assert!(farm.world.load(farm.at).unwrap().is_some(), "memory has it, so its entities can still change");
    farm.spoil(Space::ChunkL0, &key::chunk(farm.at));
    let milk = farm.milk;
    farm.meanwhile(Read::Family(Family::Entity), move |world| milked(world, milk));
    assert!(farm.world.quarantine().chunk(farm.at).unwrap());
    let cow = farm.world.entity(COW).unwrap().expect("lives on");
    assert_eq!(cow.component(milk), Some(&[7][..]));
    assert!(matches!(&cow.owner, Owner::Detached(reason) if reason.as_str() == CHUNK_QUARANTINED));
    assert_eq!(farm.world.load(farm.at).unwrap(), None);
    farm.check();
}

/// A farm with queued commits, each of which waits for a signal before it is written.
struct SlowFarm {
    farm: Farm,
    word: Arc<Mutex<Option<Receiver<()>>>>,
}

impl SlowFarm {
    fn new() -> Self {
        let word = Arc::<Mutex<Option<Receiver<()>>>>::default();
        let engine = MemEngine::new().with_fault({
            let word = Arc::clone(&word);
            move |_| {
                if let Some(word) = &*word.lock() {
                    // The first write waits for a signal, the later ones for a fixed time.
                    let _ = word.recv();
                    thread::sleep(Duration::from_millis(50));
                }
                None
            }
        });
        let farm =
            Farm::over(engine, &WorldOptions { durability: Durability::Fast, ..WorldOptions::default() });
        farm.world.flush().unwrap();
        assert!(farm.world.load(farm.at).unwrap().is_some(), "memory has it, so it can still change");
        Self { farm, word }
    }

    /// Runs something that begins while one commit is being written. Before that write ends, a change is accepted after
    /// others.
    fn meanwhile<T: Send>(
        &self,
        change: impl FnOnce(&World) -> Result<(), Error>,
        act: impl FnOnce(&World) -> T + Send,
    ) -> T {
        let world = &self.farm.world;
        let queue = |n: u8| {
            let set = world.transaction(|tx| {
                tx.set_property(Property::Time, Some(vec![n]));
                Ok::<_, Error>(())
            });
            set.unwrap();
        };
        let (sender, receiver) = channel();
        *self.word.lock() = Some(receiver);
        queue(0);
        thread::scope(|scope| {
            let acting = scope.spawn(|| act(world));
            // It waits for the write in progress.
            thread::sleep(Duration::from_millis(100));
            (1..4).for_each(queue);
            change(world).unwrap();
            drop(sender);
            acting.join().unwrap()
        })
    }
}

/// Changes that are accepted while the queue is written are not in the rows that are read afterwards.
#[test]
fn an_entity_whose_change_is_queued_meanwhile_is_detached_as_it_is_then() {
    let slow = SlowFarm::new();
    let Farm { world, at, milk, .. } = &slow.farm;
    slow.farm.spoil(Space::ChunkL0, &key::chunk(*at));
    let milked = |world: &World| milked(world, *milk);
    assert!(slow.meanwhile(milked, |world| world.quarantine().chunk(*at)).unwrap());
    let cow = world.entity(COW).unwrap().expect("lives on");
    assert_eq!(cow.component(*milk), Some(&[7][..]));
    assert!(matches!(&cow.owner, Owner::Detached(reason) if reason.as_str() == CHUNK_QUARANTINED));
    slow.farm.check();
}

#[test]
fn a_chunk_whose_change_is_queued_meanwhile_loses_nothing_but_the_reference() {
    let slow = SlowFarm::new();
    let Farm { world, at, stone, .. } = &slow.farm;
    slow.farm.spoil(Space::Entity, &key::entity(COW));
    let dug = |world: &World| dig(world, *at, *stone);
    assert!(slow.meanwhile(dug, |world| world.quarantine().entity(COW)).unwrap());
    let chunk = world.load(*at).unwrap().expect("stays");
    assert_eq!((chunk.block(LocalPos::new(1, 1, 1)), chunk.entities()), (*stone, &[][..]));
    slow.farm.check();
}

#[test]
fn a_chunk_that_is_whole_again_meanwhile_is_left_alone() {
    let farm = Farm::new();
    assert!(farm.world.load(farm.at).unwrap().is_some(), "memory has it, so it can still be saved");
    farm.spoil(Space::ChunkL0, &key::chunk(farm.at));
    let (at, stone) = (farm.at, farm.stone);
    farm.meanwhile(Read::Family(Family::Entity), move |world| dig(world, at, stone));
    assert!(!farm.world.quarantine().chunk(farm.at).unwrap());
    assert_eq!(farm.world.quarantine().list().unwrap(), []);
    let cow = farm.world.entity(COW).unwrap().expect("stays");
    assert_eq!(cow.owner, Owner::Chunk(farm.at));
    farm.check();
}

#[test]
fn a_chunk_that_changes_meanwhile_loses_nothing_but_the_reference() {
    let farm = Farm::new();
    farm.spoil(Space::Entity, &key::entity(COW));
    let (at, stone) = (farm.at, farm.stone);
    farm.meanwhile(Read::Row(Space::ChunkL0), move |world| dig(world, at, stone));
    assert!(farm.world.quarantine().entity(COW).unwrap());
    assert_eq!(farm.world.entity(COW).unwrap(), None);
    let chunk = farm.world.load(at).unwrap().expect("stays");
    assert_eq!(chunk.block(LocalPos::new(1, 1, 1)), stone);
    assert_eq!(chunk.entities(), []);
    farm.check();
}

#[test]
fn what_has_nothing_to_do_with_it_is_committed_meanwhile() {
    let farm = Farm::new();
    let (beside, stone) = (farm.beside, farm.stone);
    farm.spoil(Space::Entity, &key::entity(COW));
    farm.meanwhile(Read::Family(Family::ChunkL0), move |world| dig(world, beside, stone));
    assert!(farm.world.quarantine().entity(COW).unwrap());
    farm.check();
    farm.spoil(Space::ChunkL0, &key::chunk(farm.at));
    farm.meanwhile(Read::Family(Family::Entity), |world| {
        world.registry().register_dimension("game:moon").map(drop)
    });
    assert!(farm.world.quarantine().chunk(farm.at).unwrap());
    farm.check();
    assert_eq!(farm.world.load(beside).unwrap().expect("stays").block(LocalPos::new(1, 1, 1)), stone);
    assert_eq!(farm.world.quarantine().list().unwrap().len(), 2);
}

#[test]
fn what_somebody_else_has_set_aside_meanwhile_is_set_aside_once() {
    let farm = Farm::new();
    let at = farm.at;
    farm.spoil(Space::Entity, &key::entity(COW));
    farm.meanwhile(Read::Family(Family::ChunkL0), |world| {
        assert!(world.quarantine().entity(COW)?);
        Ok(())
    });
    assert!(!farm.world.quarantine().entity(COW).unwrap(), "it is gone");
    farm.check();
    farm.spoil(Space::ChunkL0, &key::chunk(at));
    farm.meanwhile(Read::Family(Family::Entity), move |world| {
        assert!(world.quarantine().chunk(at)?);
        Ok(())
    });
    assert!(!farm.world.quarantine().chunk(at).unwrap(), "it is absent");
    farm.check();
    assert_eq!(farm.world.quarantine().list().unwrap().len(), 2);
}
