//! A restore over the borders of segments.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{BlockBox, BlockPos, ChunkAt, LocalPos};
use cg_layers::restore::StoreHost;
use cg_layers::{SegmentHome, SegmentOptions, SegmentedWorld};
use cg_registry::Catalog;
use cg_snapshot::{CaptureOptions, Outcome, Region, Snapshot, capture};
use cg_store::{Error, Peek, World};

use super::made::{Server, Told, arena, at, options, registration, restore_of, sheep, standing};

/// Around a corner of four segments.
fn region(catalog: &Catalog) -> Region {
    Region::new(arena(catalog), BlockBox::new(BlockPos::new(224, 0, 240), BlockPos::new(287, 15, 271)))
}

fn places(catalog: &Catalog) -> Vec<ChunkAt> {
    region(catalog).sections().map(|section| section.at).collect()
}

/// Stone, with a sheep in each chunk.
fn template() -> (World, Arc<Snapshot>) {
    let world = World::builder().options(&options()).in_memory().expect("created");
    world.registry().register(&registration()).expect("new names");
    let catalog = world.catalog();
    let stone = catalog.block_id("game:stone").expect("registered");
    let built = world.transaction(|tx| {
        for (number, at) in (1..).zip(places(&catalog)) {
            tx.save(at, Chunk::filled(stone, &catalog.current_schema())?);
            tx.put_entity(sheep(number), standing(&catalog, at));
        }
        Ok::<_, Error>(())
    });
    built.expect("built");
    let taken =
        capture(&world, &catalog, region(&catalog), &CaptureOptions::named("corner")).expect("captured");
    (world, Arc::new(taken))
}

fn segmented() -> SegmentOptions {
    SegmentOptions { side_chunks: 16, max_open: 2, world: options() }
}

#[track_caller]
fn restored(
    world: &SegmentedWorld<impl SegmentHome>,
    template: &Arc<Snapshot>,
    changed: u64,
) -> Vec<ChunkAt> {
    let catalog = world.catalog();
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(template));
    let mut host = StoreHost::new(world, Told::default());
    server.finish(&mut host, &catalog, &handle);
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    assert_eq!(report.changed + report.deleted, changed, "{report:?}");
    assert_eq!(host.ticket_count(), 0);
    let found =
        capture(world, &catalog, region(&catalog), &CaptureOptions::named("corner")).expect("captured");
    assert_eq!(found, **template);
    host.observer.lit
}

fn run(world: &SegmentedWorld<impl SegmentHome>) {
    world.register(&registration()).expect("new names");
    let (_, template) = template();
    let catalog = world.catalog();
    assert_eq!(restored(world, &template, 8).len(), 8);
    assert_eq!(world.segments().list().len(), 4);
    let air = catalog.block_id(":air").expect("registered");
    let harmed = at(&catalog, [16, 0, 16]);
    let dug = world.transaction(harmed, |tx| {
        let mut chunk = Chunk::clone(&*tx.load(harmed)?.expect("it was built"));
        chunk.set_block(LocalPos::new(9, 9, 9), air, &catalog.current_schema())?;
        tx.save(harmed, chunk);
        Ok::<_, Error>(())
    });
    dug.expect("dug");
    assert_eq!(restored(world, &template, 1), [harmed]);
    assert_eq!(restored(world, &template, 0), []);
}

#[test]
fn a_box_over_the_borders_of_segments_is_as_before() {
    run(&SegmentedWorld::in_memory(&[], &segmented()).expect("created"));
}

#[test]
fn a_box_over_the_borders_of_segments_on_disk_is_as_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let world = SegmentedWorld::create(dir.path(), &[], &segmented()).expect("created");
    run(&world);
    world.close().expect("closed");
    drop(world);
    let world = SegmentedWorld::open(dir.path(), &[], &segmented()).expect("opened");
    let (_, template) = template();
    let catalog = world.catalog();
    assert!(places(&catalog).iter().all(|at| matches!(world.peek(*at), Peek::NotLoaded)));
    assert_eq!(restored(&world, &template, 0), []);
    world.close().expect("closed");
}
