//! A restore brings back blocks, components, side data and entities, within the budget of each tick.

use std::sync::Arc;
use std::time::Duration;

use cg_layers::Overlay;
use cg_layers::restore::{StoreHost, Target};
use cg_registry::Catalog;
use cg_snapshot::{Host, Outcome, Snapshot};
use cg_store::{Error, Peek, World};

use super::made::{
    SECTIONS, Server, Told, WRECKED, build, captured, options, registration, restore_of, wreck,
};

/// Restores a template over what a match left.
#[track_caller]
fn restored(target: &impl Target, catalog: &Catalog, template: &Arc<Snapshot>) -> Told {
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(template));
    let mut host = StoreHost::new(target, Told::default());
    let reports = server.finish(&mut host, catalog, &handle);
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    assert_eq!((report.sections, report.changed + report.deleted), (SECTIONS, WRECKED), "{report:?}");
    assert_eq!((report.entities_put, report.entities_deleted), (3, 1), "{report:?}");
    assert_eq!(report.blocks + report.components, host.observer.blocks.len() as u64);
    assert_eq!(host.observer.lit.len() as u64, report.changed);
    // A section takes 5 ms of the 30 ms of a tick.
    assert!(reports.iter().all(|report| report.sections <= 6), "{reports:?}");
    assert!(reports.iter().all(|report| report.spent <= Duration::from_millis(35)), "{reports:?}");
    assert_eq!(host.ticket_count(), 0);
    host.observer
}

fn run(world: &World) {
    world.registry().register(&registration()).expect("new names");
    let catalog = world.catalog();
    world.transaction(|tx| build(tx, &catalog)).expect("built");
    let template = Arc::new(captured(world, &catalog));
    world.transaction(|tx| wreck(tx, &catalog)).expect("wrecked");
    assert_ne!(captured(world, &catalog), *template);
    restored(world, &catalog, &template);
    assert_eq!(captured(world, &catalog), *template);
}

#[test]
fn an_arena_in_memory_is_as_before() {
    run(&World::builder().options(&options()).in_memory().expect("created"));
}

#[test]
fn an_arena_on_disk_is_as_before() {
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::builder().options(&options()).create(dir.path()).expect("created");
    run(&world);
    world.close().expect("closed");
}

#[test]
fn chunks_that_are_not_in_memory_are_loaded_ahead() {
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::builder().options(&options()).create(dir.path()).expect("created");
    world.registry().register(&registration()).expect("new names");
    let catalog = world.catalog();
    world.transaction(|tx| build(tx, &catalog)).expect("built");
    let template = Arc::new(captured(&world, &catalog));
    world.transaction(|tx| wreck(tx, &catalog)).expect("wrecked");
    world.cache().clear();
    let mut host = StoreHost::new(&world, ());
    let chunks: Vec<_> = template.region().sections().map(|section| section.at).collect();
    for at in &chunks {
        host.take_ticket(*at);
    }
    for at in &chunks {
        while !host.is_ready(*at) {
            std::thread::yield_now();
        }
        assert!(!matches!(world.peek(*at), Peek::NotLoaded), "{at} is ready and not in memory");
        host.release_ticket(*at);
    }
    assert_eq!(host.ticket_count(), 0);
    world.cache().clear();
    restored(&world, &catalog, &template);
    assert_eq!(captured(&world, &catalog), *template);
}

#[test]
fn an_overlay_is_as_before_and_its_base_stays() {
    let world = World::builder().options(&options()).in_memory().expect("created");
    world.registry().register(&registration()).expect("new names");
    let catalog = world.catalog();
    world.transaction(|tx| build(tx, &catalog)).expect("built");
    let template = Arc::new(captured(&world, &catalog));
    let arena = Overlay::in_memory(world.clone(), &options()).expect("created");
    let before = world.last_commit();
    arena.transaction(|tx| wreck(tx, &catalog)).expect("wrecked");
    assert_ne!(captured(&arena, &catalog), *template);
    restored(&arena, &catalog, &template);
    assert_eq!(captured(&arena, &catalog), *template);
    assert_eq!(world.last_commit(), before, "nothing was written into the base");
}

#[test]
fn a_second_restore_writes_nothing() -> Result<(), Error> {
    let world = World::builder().options(&options()).in_memory()?;
    world.registry().register(&registration())?;
    let catalog = world.catalog();
    world.transaction(|tx| build(tx, &catalog))?;
    let template = Arc::new(captured(&world, &catalog));
    let before = world.last_commit();
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&template));
    server.finish(&mut StoreHost::new(&world, Told::default()), &catalog, &handle);
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    assert_eq!(report.unchanged, SECTIONS);
    assert_eq!(world.last_commit(), before);
    Ok(())
}
