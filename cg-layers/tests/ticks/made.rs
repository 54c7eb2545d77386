//! An arena with chests, light and sheep, what a match does to it, and a server that restores it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{
    BlockBox, BlockPos, ChunkAt, ChunkPos, ChunkSource, Dimension, Editor, EntityId, EntitySource, LocalPos,
};
use cg_layers::restore::{StoreHost, Target};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, Name, Registration};
use cg_snapshot::{
    BlockChange, CaptureOptions, Handle, Operation, Region, RestoreOptions, RestoreQueue, Snapshot,
    TickBudget, TickReport, capture,
};
use cg_store::{Durability, Error, WorldOptions};

/// The arena: 4 × 2 × 4 chunks, of which one is not stored.
pub(crate) const SECTIONS: u64 = 32;

/// Chunks that a match changes, makes or deletes.
pub(crate) const WRECKED: u64 = 8;

pub(crate) fn options() -> WorldOptions {
    WorldOptions { durability: Durability::Process, ..WorldOptions::default() }
}

pub(crate) fn registration() -> Registration {
    let name = |text: &str| Name::new(text).expect("a name");
    let chest = BlockOffer { components: vec![name("game:items")], ..BlockOffer::new(name("game:chest")) };
    Registration {
        components: vec![ComponentOffer::variable(name("game:items"))],
        blocks: vec![BlockOffer::new(name(":air")), BlockOffer::new(name("game:stone")), chest],
        entities: vec![name("game:sheep")],
        dimensions: vec![name("game:arena")],
        sides: vec![name("game:light")],
        ..Registration::default()
    }
}

pub(crate) fn arena(catalog: &Catalog) -> Dimension {
    catalog.dimension("game:arena").expect("registered")
}

pub(crate) fn region(catalog: &Catalog) -> Region {
    Region::new(arena(catalog), BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(63, 31, 63)))
}

pub(crate) fn at(catalog: &Catalog, [x, y, z]: [i64; 3]) -> ChunkAt {
    ChunkAt::new(arena(catalog), ChunkPos::new(x, y, z).expect("inside the world"))
}

pub(crate) fn sheep(number: u64) -> EntityId {
    EntityId::from_bytes(u128::from(number).to_le_bytes())
}

pub(crate) fn standing(catalog: &Catalog, at: ChunkAt) -> Entity {
    let pos = at.pos.block(LocalPos::new(8, 8, 8));
    let position = EntityPos::new(at.dimension, pos, [0.5; 3]).expect("inside the world");
    Entity::new(catalog.entity_type("game:sheep").expect("registered"), Owner::Chunk(at), position)
}

/// Stone with a chest in each chunk, light in the upper ones, sheep in the corners.
pub(crate) fn build(tx: &mut impl Editor<Error = Error>, catalog: &Catalog) -> Result<(), Error> {
    let schema = catalog.current_schema();
    let block = |name| catalog.block_id(name).expect("registered");
    let items = catalog.component_id("game:items").expect("registered");
    let light = catalog.side_kind("game:light").expect("registered");
    let chest = LocalPos::new(1, 2, 3);
    for (number, pos) in region(catalog).area().chunks().iter().enumerate().skip(1) {
        let at = ChunkAt::new(arena(catalog), pos);
        let mut chunk = Chunk::filled(block("game:stone"), &schema).expect("a known block");
        chunk.set_block(chest, block("game:chest"), &schema).expect("a known block");
        chunk.set_component(CellLayer::base(chest), items, &[number as u8; 3]).expect("a chest");
        if pos.y() == 1 {
            chunk.set_side(light, vec![number as u8; 5]);
        }
        tx.save(at, chunk.into())?;
        if number % 5 == 0 {
            tx.put_entity(sheep(number as u64), standing(catalog, at))?;
        }
    }
    Ok(())
}

/// Takes blocks, empties chests, darkens, deletes a chunk, makes one, and moves, kills and adds sheep.
pub(crate) fn wreck(tx: &mut impl Editor<Error = Error>, catalog: &Catalog) -> Result<(), Error> {
    let schema = catalog.current_schema();
    let air = catalog.block_id(":air").expect("registered");
    let items = catalog.component_id("game:items").expect("registered");
    let light = catalog.side_kind("game:light").expect("registered");
    for x in 1..4 {
        let lower = at(catalog, [x, 0, 2]);
        let mut chunk = Chunk::clone(&*tx.load(lower)?.expect("it was built"));
        chunk.set_block(LocalPos::new(9, 9, 9), air, &schema).expect("a known block");
        tx.save(lower, chunk.into())?;
        let upper = at(catalog, [x, 1, 2]);
        let mut chunk = Chunk::clone(&*tx.load(upper)?.expect("it was built"));
        chunk.set_component(CellLayer::base(LocalPos::new(1, 2, 3)), items, b"").expect("a chest");
        chunk.set_side(light, b"dark".to_vec());
        tx.save(upper, chunk.into())?;
    }
    tx.save(at(catalog, [0, 0, 0]), Chunk::filled(air, &schema).expect("a known block").into())?;
    tx.delete_entity(sheep(25))?;
    tx.delete_entity(sheep(5))?;
    tx.delete(at(catalog, [3, 1, 3]))?;
    tx.put_entity(sheep(15), standing(catalog, at(catalog, [2, 0, 0])))?;
    tx.put_entity(sheep(99), standing(catalog, at(catalog, [3, 0, 3])))
}

pub(crate) fn captured<S, X>(source: &S, catalog: &Catalog) -> Snapshot
where
    S: ChunkSource<Error = X> + EntitySource<Error = X> + Sync,
    X: std::error::Error + Send + 'static,
{
    capture(source, catalog, region(catalog), &CaptureOptions::named("arena")).expect("captured")
}

pub(crate) fn restore_of(snapshot: &Arc<Snapshot>) -> Operation {
    let snapshot = Arc::clone(snapshot);
    Operation::Restore { snapshot, options: RestoreOptions::default(), relight: true }
}

/// Notifications that a game received.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) blocks: Vec<BlockChange>,
    pub(crate) lit: Vec<ChunkAt>,
}

impl cg_layers::restore::Observer for Told {
    fn changed(&mut self, change: BlockChange) {
        self.blocks.push(change);
    }

    fn relight(&mut self, at: ChunkAt) {
        self.lit.push(at);
    }
}

/// The longest time that an operation takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A tick thread: a queue, and a clock that advances by 5 ms at each look.
#[derive(Debug, Default)]
pub(crate) struct Server {
    pub(crate) queue: RestoreQueue,
    now: Duration,
}

impl Server {
    pub(crate) fn tick<T: Target>(
        &mut self,
        host: &mut StoreHost<'_, T, Told>,
        catalog: &Catalog,
        budget: &TickBudget,
    ) -> TickReport {
        self.queue.run(host, catalog, budget, || {
            self.now += Duration::from_millis(5);
            self.now
        })
    }

    /// Ticks until an operation has ended; what each tick did.
    pub(crate) fn finish<T: Target>(
        &mut self,
        host: &mut StoreHost<'_, T, Told>,
        catalog: &Catalog,
        handle: &Handle,
    ) -> Vec<TickReport> {
        let (mut reports, begun) = (Vec::new(), Instant::now());
        while handle.outcome().is_none() {
            reports.push(self.tick(host, catalog, &TickBudget::default()));
            // A background thread may take long to create a segment.
            assert!(begun.elapsed() < PATIENCE, "it ends: {:?}", handle.progress());
            std::thread::sleep(Duration::from_micros(20));
        }
        reports
    }
}
