//! A server that is killed between two ticks of a restore.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cg_format::Limits;
use cg_layers::restore::StoreHost;
use cg_snapshot::file::{FileOptions, SnapshotFile};
use cg_snapshot::{Outcome, TickBudget, Unverifiable};
use cg_store::World;

use super::made::{
    SECTIONS, Server, Told, WRECKED, build, captured, options, registration, restore_of, wreck,
};

/// The files as a killed process leaves them.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

#[test]
fn what_was_committed_before_the_crash_is_there_and_the_same_operation_does_the_rest() {
    let dir = tempfile::tempdir().expect("a directory");
    let world = World::builder().options(&options()).create(dir.path().join("world")).expect("created");
    world.registry().register(&registration()).expect("new names");
    let catalog = world.catalog();
    world.transaction(|tx| build(tx, &catalog)).expect("built");
    let template = captured(&world, &catalog);
    let bytes = template.to_bytes(&FileOptions::default()).expect("written");
    world.snapshots().save("arena", &bytes).expect("stored");
    world.transaction(|tx| wreck(tx, &catalog)).expect("wrecked");

    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&Arc::new(template.clone())));
    let mut host = StoreHost::new(&world, Told::default());
    while handle.progress().done < 12 {
        server.tick(&mut host, &catalog, &TickBudget { sections: 4, ..TickBudget::default() });
    }
    copy(&dir.path().join("world"), &dir.path().join("crashed"));
    drop((server, world));

    let world = World::builder().options(&options()).open(dir.path().join("crashed")).expect("opens");
    let catalog = world.catalog();
    let reader = world.snapshots().open("arena").expect("readable").expect("it was stored");
    let mut file = SnapshotFile::open(reader, Limits::default()).expect("a snapshot");
    let stored = Arc::new(file.load(Unverifiable::Fail).expect("sound"));
    assert_eq!(*stored, template);
    let mut server = Server::default();
    let handle = server.queue.handle().submit(restore_of(&stored));
    let mut host = StoreHost::new(&world, Told::default());
    server.finish(&mut host, &catalog, &handle);
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    let changed = report.changed + report.deleted;
    assert_eq!(report.sections, SECTIONS);
    assert!(changed > 0 && changed < WRECKED, "{changed} of {WRECKED} were left");
    assert_eq!(captured(&world, &catalog), template);
}
