//! Other writers, a busy store, cancelled operations and a store that fails.

use std::cell::Cell;
use std::sync::Arc;

use cg_format::{BlockPos, ChunkAt};
use cg_layers::restore::{Stopped, StoreHost, Target};
use cg_registry::Catalog;
use cg_snapshot::{Operation, Outcome, Snapshot, StepWork, TickBudget};
use cg_store::{Error, LoadTicket, World};

use super::made::{
    SECTIONS, Server, Told, WRECKED, arena, build, captured, options, region, registration, restore_of, wreck,
};

fn wrecked() -> (World, Arc<Catalog>, Arc<Snapshot>) {
    let world = World::builder().options(&options()).in_memory().expect("created");
    world.registry().register(&registration()).expect("new names");
    let catalog = world.catalog();
    world.transaction(|tx| build(tx, &catalog)).expect("built");
    let template = Arc::new(captured(&world, &catalog));
    world.transaction(|tx| wreck(tx, &catalog)).expect("wrecked");
    (world, catalog, template)
}

/// A world in which something gets in the way of a step.
struct Between<'w, F> {
    world: &'w World,
    /// Called when the work of a step is done and its transaction has not committed.
    meddle: F,
}

impl<F: Fn() -> Result<(), Error>> Target for Between<'_, F> {
    fn transact(&self, _: ChunkAt, work: &mut StepWork<'_, Error>) -> Result<(), Stopped> {
        self.world
            .transaction(|tx| {
                work(tx).map_err(|error| Stopped::Work(Box::new(error)))?;
                (self.meddle)().map_err(Stopped::Store)
            })
            .map(|_| ())
    }

    fn load_ahead(&self, _: &[ChunkAt]) -> Option<LoadTicket> {
        None
    }
}

/// Another thread that digs in the second chunk of the arena, so many times, each time into another block.
fn digger<'w>(world: &'w World, catalog: &'w Catalog, times: i64) -> impl Fn() -> Result<(), Error> + 'w {
    let dug = Cell::new(0);
    let air = catalog.block_id(":air").expect("registered");
    move || {
        if dug.get() == times {
            return Ok(());
        }
        dug.set(dug.get() + 1);
        let pos = BlockPos::new(dug.get(), 5, 16);
        let dig = || world.transaction(|tx| tx.set_block(arena(catalog), pos, air)).map(|_| ());
        std::thread::scope(|scope| scope.spawn(dig).join().expect("no panic"))
    }
}

#[test]
fn a_step_that_conflicts_runs_again_on_the_new_state() {
    let (world, catalog, template) = wrecked();
    let (dig, attempts) = (digger(&world, &catalog, 3), Cell::new(0));
    let meddle = || {
        attempts.set(attempts.get() + 1);
        dig()
    };
    let target = Between { world: &world, meddle };
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&template));
    let mut host = StoreHost::new(&target, Told::default());
    server.finish(&mut host, &catalog, &handle);
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    // It digs in the chunk of the second step: during the first, and in two attempts at the second.
    assert_eq!(attempts.get(), SECTIONS + 2);
    assert_eq!((report.sections, report.changed + report.deleted), (SECTIONS, WRECKED + 1), "{report:?}");
    assert_eq!(report.blocks + report.components, host.observer.blocks.len() as u64, "told once each");
    assert_eq!(captured(&world, &catalog), *template);
}

#[test]
fn a_copy_that_conflicts_reads_again_and_is_captured_as_the_world_is() {
    let (world, catalog, _) = wrecked();
    let (dig, attempts) = (digger(&world, &catalog, 3), Cell::new(0));
    let meddle = || {
        attempts.set(attempts.get() + 1);
        dig()
    };
    let target = Between { world: &world, meddle };
    let mut server = Server::default();
    let handle = server.queue.handle().submit(Operation::Copy { region: region(&catalog) });
    let mut host = StoreHost::new(&target, Told::default());
    server.finish(&mut host, &catalog, &handle);
    let Some(Outcome::Copied(copied)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    // It digs in the chunk of the second step: during the first, and in two attempts at the second.
    assert_eq!(attempts.get(), SECTIONS + 2);
    assert_eq!(captured(&*copied, &catalog), captured(&world, &catalog));
    assert_eq!((host.observer.blocks.len(), host.ticket_count()), (0, 0));
}

#[test]
fn a_step_that_always_conflicts_waits_for_the_next_tick() {
    let (world, catalog, template) = wrecked();
    let air = catalog.block_id(":air").expect("registered");
    let (calls, dug) = (Cell::new(0), Cell::new(0));
    let first = BlockPos::new(3, 3, 3);
    // The first chunk of the region was made by the match and is deleted by the restore.
    let meddle = || {
        calls.set(calls.get() + 1);
        if dug.get() == 3 {
            return Ok(());
        }
        dug.set(dug.get() + 1);
        let stone = catalog.block_id("game:stone").expect("registered");
        let block = if dug.get() % 2 == 0 { air } else { stone };
        let dig = || world.transaction(|tx| tx.set_block(arena(&catalog), first, block)).map(|_| ());
        std::thread::scope(|scope| scope.spawn(dig).join().expect("no panic"))
    };
    let target = Between { world: &world, meddle };
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&template));
    let mut host = StoreHost::new(&target, Told::default());
    let tick = server.tick(&mut host, &catalog, &TickBudget::default());
    assert_eq!((tick.sections, tick.left, calls.get()), (0, 1, 3), "three attempts");
    assert!(host.observer.blocks.is_empty(), "nothing was written");
    assert_eq!(handle.progress().done, 0);
    server.finish(&mut host, &catalog, &handle);
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    assert_eq!((report.sections, report.changed + report.deleted), (SECTIONS, WRECKED), "{report:?}");
    assert_eq!(captured(&world, &catalog), *template);
}

#[test]
fn a_busy_store_is_asked_again_in_the_next_tick() {
    let (world, catalog, template) = wrecked();
    let refused = Cell::new(false);
    let meddle = || {
        let is_first = !refused.replace(true);
        if is_first { Err(Error::Busy { queued_bytes: 2, limit_bytes: 1 }) } else { Ok(()) }
    };
    let target = Between { world: &world, meddle };
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&template));
    let mut host = StoreHost::new(&target, Told::default());
    assert_eq!(server.tick(&mut host, &catalog, &TickBudget::default()).sections, 0);
    server.finish(&mut host, &catalog, &handle);
    assert!(matches!(handle.outcome(), Some(Outcome::Restored(_))), "{:?}", handle.outcome());
    assert_eq!(captured(&world, &catalog), *template);
}

#[test]
fn a_cancelled_restore_stays_between_two_steps() {
    let (world, catalog, template) = wrecked();
    let wreck = captured(&world, &catalog);
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&template));
    let mut host = StoreHost::new(&world, Told::default());
    while handle.progress().done < 9 {
        server.tick(&mut host, &catalog, &TickBudget { sections: 3, ..TickBudget::default() });
    }
    handle.cancel();
    server.tick(&mut host, &catalog, &TickBudget::default());
    assert_eq!(handle.outcome(), Some(Outcome::Cancelled(9)));
    assert_eq!(host.ticket_count(), 0);
    let now = captured(&world, &catalog);
    for (index, section) in now.region().sections().enumerate() {
        let expected = if index < 9 { &template } else { &wreck };
        assert_eq!(now.section(index), expected.section(index), "{}", section.at);
    }
}

#[test]
fn an_error_of_the_store_ends_the_operation_and_is_its_outcome() {
    let (world, catalog, template) = wrecked();
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&template));
    let mut host = StoreHost::new(&world, Told::default());
    while handle.progress().done == 0 {
        server.tick(&mut host, &catalog, &TickBudget { sections: 1, ..TickBudget::default() });
    }
    world.close().expect("closed");
    server.finish(&mut host, &catalog, &handle);
    let at = super::made::at(&catalog, [0, 0, 1]);
    assert_eq!(handle.outcome(), Some(Outcome::Failed(format!("{at}: {}", Error::Closed))));
    assert_eq!(host.ticket_count(), 0);
}
