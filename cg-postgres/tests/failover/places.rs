//! A world that several threads save chunks and entities in, and what it has to hold then.

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cg_engine::{Engine, MemEngine};
use cg_store::prelude::*;
use cg_store::verify::VerifyDepth;
use cg_store::view::Area;

/// The number of threads. Each has chunks and an entity of its own.
pub(crate) const THREADS: u8 = 4;

/// The newest transactions of each thread whose chunks are looked at after a round. All are at the end.
const OWN_CHECKED: u64 = 1000;

/// A world, and the number of the transactions of each thread. All of them were acknowledged.
pub(crate) struct Places {
    pub(crate) world: World,
    ids: Ids,
    saved: [AtomicU64; THREADS as usize],
    /// The newest commit before the first transaction.
    begun: u64,
}

struct Ids {
    dimension: Dimension,
    air: BlockId,
    stone: BlockId,
    cow: EntityTypeId,
}

impl Ids {
    fn register(world: &World) -> Self {
        let dimension = world.registry().register_dimension("game:overworld").expect("registers");
        let [air, stone] = world.registry().register_blocks([":air", "game:stone"]).expect("registers");
        let cow = world.registry().register_entity("game:cow").expect("registers");
        Self { dimension, air, stone, cow }
    }
}

impl Places {
    /// A world over an empty engine.
    pub(crate) fn create(engine: impl Engine) -> Self {
        let world = open(engine);
        let ids = Ids::register(&world);
        let begun = world.last_commit().get();
        Self { world, ids, saved: Default::default(), begun }
    }

    /// The number of all transactions.
    pub(crate) fn transactions(&self) -> u64 {
        self.saved.iter().map(|saved| saved.load(Ordering::Acquire)).sum()
    }

    /// Runs transactions of one thread until `is_done`.
    pub(crate) fn work(&self, thread: u8, is_done: &AtomicBool) {
        let saved = &self.saved[usize::from(thread)];
        while !is_done.load(Ordering::Acquire) {
            let number = saved.load(Ordering::Acquire) + 1;
            let committed = self.save(&self.world, thread, number);
            committed.unwrap_or_else(|error| panic!("transaction {number} of thread {thread}: {error}"));
            saved.store(number, Ordering::Release);
        }
    }

    /// The two chunks of a thread. The entity moves from one to the other.
    fn chunks(&self, thread: u8) -> [ChunkAt; 2] {
        [0, 1].map(|n| {
            let pos = ChunkPos::new(i64::from(thread) * 100 + n, 0, -1).expect("inside the world");
            ChunkAt::new(self.ids.dimension, pos)
        })
    }

    /// The chunk that one transaction alone saves.
    fn own_chunk(&self, thread: u8, number: u64) -> ChunkAt {
        let [x, z] = [number % 64, number / 64].map(|n| n as i64);
        let pos = ChunkPos::new(i64::from(thread) * 100 + x, 1, z).expect("inside the world");
        ChunkAt::new(self.ids.dimension, pos)
    }

    /// Writes the number of a transaction into chunks, an entity and a property.
    fn save(&self, world: &World, thread: u8, number: u64) -> Result<(), Error> {
        let ids = &self.ids;
        let chunks = self.chunks(thread);
        let schema = world.catalog().current_schema();
        let body = |tx: &mut Transaction<'_>| {
            for at in chunks.into_iter().chain([self.own_chunk(thread, number)]) {
                let mut chunk = Chunk::filled(ids.air, &schema).expect("is registered");
                chunk.set_block(cell(number), ids.stone, &schema).expect("is registered");
                tx.save(at, chunk);
            }
            let height = BlockPos::new(0, number as i64, 0);
            let position = EntityPos::new(ids.dimension, height, [0.0; 3]).expect("inside the world");
            let owner = Owner::Chunk(chunks[number as usize % 2]);
            tx.put_entity(entity(thread), Entity::new(ids.cow, owner, position));
            tx.set_property(property(thread), Some(number.to_le_bytes().to_vec()));
            Ok(())
        };
        world.transaction(body).map(drop)
    }

    /// Checks that the world holds every transaction once and whole.
    pub(crate) fn check(&self) {
        self.check_in(&self.world);
        assert_eq!(self.world.last_commit().get() - self.begun, self.transactions(), "numbers are dense");
    }

    fn check_in(&self, world: &World) {
        world.cache().clear();
        for (thread, saved) in (0..).zip(&self.saved) {
            let number = saved.load(Ordering::Acquire);
            let stored = world.property(&property(thread)).expect("reads").unwrap_or_default();
            if number == 0 {
                assert!(stored.is_empty(), "thread {thread}");
                continue;
            }
            assert_eq!(stored, number.to_le_bytes(), "thread {thread}, transaction {number}");
            for at in self.chunks(thread) {
                let chunk = world.load(at).expect("loads");
                assert_eq!(self.cells(chunk), [cell(number)], "{at}, transaction {number}");
            }
            let first = number.saturating_sub(OWN_CHECKED) + 1;
            let own: Vec<_> = (first..=number).map(|number| self.own_chunk(thread, number)).collect();
            for (number, chunk) in (first..).zip(world.load_many(&own)) {
                let cells = self.cells(chunk.expect("loads"));
                assert_eq!(cells, [cell(number)], "thread {thread} lost transaction {number}");
            }
            let cow = world.entity(entity(thread)).expect("reads").expect("is there");
            assert_eq!(cow.position.block().y as u64, number, "thread {thread}");
            let owner = Owner::Chunk(self.chunks(thread)[number as usize % 2]);
            assert_eq!(cow.owner, owner, "thread {thread}");
        }
    }

    /// The cells that are stone; none if there is no chunk.
    fn cells(&self, chunk: Option<impl Deref<Target = Chunk>>) -> Vec<LocalPos> {
        let cells = (0..4096).filter_map(LocalPos::from_index);
        let chunk = chunk.as_deref();
        let is_stone = |cell: &LocalPos| chunk.is_some_and(|chunk| chunk.block(*cell) == self.ids.stone);
        cells.filter(is_stone).collect()
    }

    /// Closes the world, opens another engine over its rows, and checks that it equals a world in memory.
    pub(crate) fn check_elsewhere<E: Engine>(self, open_engine: impl FnOnce() -> E) {
        self.check();
        self.world.close().expect("closes");
        let in_memory = open(MemEngine::new());
        Ids::register(&in_memory);
        for thread in 0..THREADS {
            let number = self.saved[usize::from(thread)].load(Ordering::Acquire);
            for number in 1..=number {
                self.save(&in_memory, thread, number).expect("saves");
            }
        }
        let elsewhere = open(open_engine());
        self.check_in(&elsewhere);
        let hash = |world: &World| world.content_hash(Area::World).expect("hashes");
        assert_eq!(hash(&elsewhere), hash(&in_memory));
        assert!(elsewhere.verify(VerifyDepth::Full, |_| {}).expect("verifies").is_ok());
        elsewhere.close().expect("closes");
    }
}

fn open(engine: impl Engine) -> World {
    let options = WorldOptions { durability: Durability::Process, ..WorldOptions::default() };
    World::builder().options(&options).over(engine).expect("opens")
}

/// The cell of a chunk that tells the number of its transaction.
fn cell(number: u64) -> LocalPos {
    LocalPos::from_index((number % 4096) as u16).expect("below 4096")
}

fn entity(thread: u8) -> EntityId {
    EntityId::from_bytes([thread + 1; 16])
}

fn property(thread: u8) -> Property {
    Property::Named(Name::new(format!("game:thread_{thread}")).expect("a name"))
}
