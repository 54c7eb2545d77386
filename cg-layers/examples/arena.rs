//! The cycle of an arena in a stored world: save a snapshot, play a match, restore within the ticks of a server, verify.
//! Runs in memory, on disk, and in an overlay over a world. Prints how long the ticks were.
//!
//! `cargo run --release --package cg-layers --example arena`
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{BlockBox, BlockPos, ChunkAt, ChunkSource, Editor, EntityId, EntitySource, Limits, LocalPos};
use cg_layers::Overlay;
use cg_layers::restore::{Observer, StoreHost, Target};
use cg_registry::{BlockOffer, Catalog, ComponentOffer, Name, Registration};
use cg_snapshot::file::{FileOptions, SnapshotFile};
use cg_snapshot::{
    BlockChange, CaptureOptions, Operation, Outcome, Region, RestoreOptions, RestoreQueue, Snapshot,
    TickBudget, Unverifiable, capture,
};
use cg_store::{Durability, World, WorldOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const TICK: Duration = Duration::from_millis(50);

/// The number of changes that the clients of a game would be sent.
#[derive(Debug, Default)]
struct Sent(u64);

impl Observer for Sent {
    fn changed(&mut self, _: BlockChange) {
        self.0 += 1;
    }
}

fn main() -> Result<()> {
    let options = WorldOptions { durability: Durability::Balanced, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory()?;
    cycle("in memory", &world)?;
    in_overlay(&world, &options)?;
    let dir = tempfile::tempdir()?;
    let world = World::builder().options(&options).create(dir.path())?;
    cycle("on disk", &world)?;
    Ok(world.close()?)
}

fn cycle(name: &str, world: &World) -> Result<()> {
    register(world)?;
    let catalog = world.catalog();
    world.transaction(|tx| build(tx, &catalog))?;
    // One state of the running world, in a file that the world keeps.
    let template = world.read_view(|view| Ok::<_, cg_store::Error>(captured(view, &catalog)))??;
    world.snapshots().save("arena", &template.to_bytes(&FileOptions::default())?)?;
    world.transaction(|tx| wreck(tx, &catalog))?;
    let stored = world.snapshots().open("arena")?.ok_or("it was stored above")?;
    let snapshot = Arc::new(SnapshotFile::open(stored, Limits::default())?.load(Unverifiable::Fail)?);
    restore(name, world, &catalog, &snapshot)?;
    assert_eq!(
        world.read_view(|view| Ok::<_, cg_store::Error>(captured(view, &catalog)))??,
        template,
        "the arena is as it was"
    );
    Ok(())
}

/// The match is played in a layer of its own. A match that wants nothing of it restored calls `Overlay::reset` instead.
fn in_overlay(world: &World, options: &WorldOptions) -> Result<()> {
    let catalog = world.catalog();
    let arena = Overlay::in_memory(world.clone(), options)?;
    let template = Arc::new(captured(&arena, &catalog)?);
    arena.transaction(|tx| wreck(tx, &catalog))?;
    restore("in an overlay", &arena, &catalog, &template)?;
    assert_eq!(captured(&arena, &catalog)?, *template, "the arena is as it was");
    Ok(())
}

/// A server that restores and goes on ticking.
fn restore(name: &str, target: &impl Target, catalog: &Catalog, snapshot: &Arc<Snapshot>) -> Result<()> {
    let mut queue = RestoreQueue::new();
    let handle = queue.handle().submit(Operation::Restore {
        snapshot: Arc::clone(snapshot),
        options: RestoreOptions::default(),
        relight: false,
    });
    let mut host = StoreHost::new(target, Sent::default());
    let (clock, budget) = (Instant::now(), TickBudget::of_tick(TICK));
    let mut ticks = Vec::new();
    while handle.outcome().is_none() {
        let began = Instant::now();
        queue.run(&mut host, catalog, &budget, || clock.elapsed());
        ticks.push(began.elapsed());
        // The rest of the tick belongs to the game.
        thread::sleep(TICK.saturating_sub(began.elapsed()));
    }
    let Some(Outcome::Restored(report)) = handle.outcome() else {
        return Err(format!("{:?}", handle.outcome()).into());
    };
    println!(
        "{name}: {} of {} sections restored, {} blocks sent, {} entities put back; {} ticks, longest {:.1?} of {:.0?}",
        report.changed + report.deleted,
        report.sections,
        host.observer.0,
        report.entities_put,
        ticks.len(),
        ticks.iter().max().copied().unwrap_or_default(),
        budget.time
    );
    Ok(())
}

fn register(world: &World) -> Result<()> {
    let items = Name::new("game:items")?;
    let chest = BlockOffer { components: vec![items.clone()], ..BlockOffer::new(Name::new("game:chest")?) };
    world.registry().register(&Registration {
        components: vec![ComponentOffer::variable(items)],
        blocks: vec![BlockOffer::new(Name::new(":air")?), BlockOffer::new(Name::new("game:stone")?), chest],
        entities: vec![Name::new("game:sheep")?],
        dimensions: vec![Name::new("game:arena")?],
        sides: vec![Name::new("game:light")?],
        ..Registration::default()
    })?;
    Ok(())
}

fn region(catalog: &Catalog) -> Result<Region> {
    let dimension = catalog.dimension("game:arena").ok_or("it is registered")?;
    Ok(Region::new(dimension, BlockBox::new(BlockPos::new(-128, 0, -128), BlockPos::new(127, 63, 127))))
}

fn captured<S, X>(source: &S, catalog: &Catalog) -> Result<Snapshot>
where
    S: ChunkSource<Error = X> + EntitySource<Error = X> + Sync,
    X: Error + Send + 'static,
{
    Ok(capture(source, catalog, region(catalog)?, &CaptureOptions::named("arena"))?)
}

/// Stone, and in each chunk a chest, side data and a sheep.
fn build<X: Error + 'static>(tx: &mut impl Editor<Error = X>, catalog: &Catalog) -> Result<()> {
    let schema = catalog.current_schema();
    let block = |name| catalog.block_id(name).ok_or("it is registered");
    let items = catalog.component_id("game:items").ok_or("it is registered")?;
    let light = catalog.side_kind("game:light").ok_or("it is registered")?;
    let sheep = catalog.entity_type("game:sheep").ok_or("it is registered")?;
    let region = region(catalog)?;
    for (number, pos) in (0_u64..).zip(region.area().chunks().iter()) {
        let at = ChunkAt::new(region.dimension(), pos);
        let mut chunk = Chunk::filled(block("game:stone")?, &schema)?;
        let chest = LocalPos::new(1, 2, 3);
        chunk.set_block(chest, block("game:chest")?, &schema)?;
        chunk.set_component(CellLayer::base(chest), items, &number.to_le_bytes())?;
        chunk.set_side(light, number.to_le_bytes().to_vec());
        tx.save(at, chunk.into())?;
        let position = EntityPos::new(at.dimension, pos.block(LocalPos::new(8, 8, 8)), [0.5; 3])?;
        let id = EntityId::from_bytes(u128::from(number).to_le_bytes());
        tx.put_entity(id, Entity::new(sheep, Owner::Chunk(at), position))?;
    }
    Ok(())
}

/// Digs in every third chunk, empties its chest, darkens it and kills its sheep.
fn wreck<X: Error + 'static>(tx: &mut impl Editor<Error = X>, catalog: &Catalog) -> Result<()> {
    let schema = catalog.current_schema();
    let air = catalog.block_id(":air").ok_or("it is registered")?;
    let items = catalog.component_id("game:items").ok_or("it is registered")?;
    let light = catalog.side_kind("game:light").ok_or("it is registered")?;
    let region = region(catalog)?;
    for pos in region.area().chunks().iter().step_by(3) {
        let at = ChunkAt::new(region.dimension(), pos);
        let mut chunk = Chunk::clone(&*tx.load(at)?.ok_or("it was built")?);
        for index in 2048..4096 {
            let cell = LocalPos::from_index(index).ok_or("below 4,096")?;
            chunk.set_block(cell, air, &schema)?;
        }
        let chest = CellLayer::base(LocalPos::new(1, 2, 3));
        if chunk.component(chest, items).is_some() {
            chunk.set_component(chest, items, b"")?;
        }
        chunk.set_side(light, b"dark".to_vec());
        let sheep = chunk.entities().to_vec();
        tx.save(at, chunk.into())?;
        sheep.into_iter().try_for_each(|id| tx.delete_entity(id))?;
    }
    Ok(())
}
