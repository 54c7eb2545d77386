//! Failures that are not resumed, and readers that go on meanwhile.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use super::*;

fn a_failed_sync_is_never_resumed(failing: &Failing) {
    let Failing { world, plan, .. } = failing;
    failing.put(Durability::Safe, 0).expect("commits");
    plan.fail(1, Fault::Sync);
    let error = failing.put(Durability::Safe, 1).expect_err("the sync fails");
    assert!(matches!(error, Error::Engine(EngineError::SyncFailed { .. })), "{error}");
    for _ in 0..2 {
        let error = world.resume().expect_err("nobody knows what is on the disk");
        let Error::NotResumed(NotResumed::SyncFailed { .. }) = error else { panic!("{error}") };
        assert_eq!(
            error.to_string(),
            "the world stays read-only: a sync failed, and nobody knows what is on the disk now \
             (the disk: sync failed by request); close the world, check the disk, open the world again and run \
             `cg verify`, or restore a backup"
        );
    }
    let error = failing.put(Durability::Process, 2).expect_err("takes nothing");
    assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    assert!(failing.has(0) && failing.has(1) && !failing.has(2), "reads go on");
}

#[test]
fn a_failed_sync_is_never_resumed_in_memory() {
    a_failed_sync_is_never_resumed(&Failing::over(MemEngine::new()));
}

#[test]
fn a_failed_sync_is_never_resumed_on_disk() {
    let disk = Disk::new();
    let engine = RocksEngine::create(&disk.root().join("db"), &RocksOptions::default()).expect("is created");
    a_failed_sync_is_never_resumed(&Failing::over(engine));
}

#[test]
fn a_sync_that_fails_while_resuming_is_told_and_ends_it() {
    let failing = Failing::over(MemEngine::new());
    failing.plan.fail(1, Fault::Lost);
    failing.put(Durability::Process, 0).expect_err("fails");
    failing.plan.fail(1, Fault::Sync);
    for _ in 0..2 {
        let error = failing.world.resume().expect_err("cannot be synced");
        assert!(matches!(error, Error::NotResumed(NotResumed::SyncFailed { .. })), "{error}");
    }
    failing.put(Durability::Process, 1).expect_err("takes nothing");
    assert!(!failing.has(0) && !failing.has(1));
}

#[test]
fn promised_commits_that_are_gone_keep_the_world_read_only_and_what_is_left_is_read() {
    let failing = Failing::over(MemEngine::new());
    let Failing { world, plan, .. } = &failing;
    failing.put(Durability::Process, 0).expect("commits");
    let promised = world.last_commit();
    plan.fail(1, Fault::NoSpace);
    failing.put(Durability::Process, 1).expect_err("fails");
    plan.forget_commits.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let error = world.resume().expect_err("commits are gone");
        let Error::NotResumed(NotResumed::LostCommits { promised: told, found }) = error else {
            panic!("{error}")
        };
        assert_eq!((told, found.next()), (promised, promised));
        let error = failing.put(Durability::Process, 2).expect_err("takes nothing");
        assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
        assert!(failing.has(0));
    }
    // The disk that was not there is there again.
    plan.forget_commits.store(false, Ordering::Relaxed);
    world.resume().expect("all are there");
    failing.put(Durability::Safe, 2).expect("commits");
    assert!(failing.has(0) && !failing.has(1) && failing.has(2));
    assert_sound(world);
}

#[test]
fn a_world_that_is_writable_or_read_only_by_choice_has_nothing_to_resume() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    world.resume().expect("there is nothing to do");
    world.close().expect("closes");
    let error = world.resume().expect_err("is closed");
    assert!(matches!(error, Error::Closed), "{error}");
    drop(world);
    let world = World::builder().options(&options()).open_read_only(disk.path()).expect("opens");
    let error = world.resume().expect_err("was opened for reading");
    assert!(matches!(error, Error::Engine(EngineError::OpenedReadOnly)), "{error}");
}

#[test]
fn files_that_cannot_be_opened_are_tried_again_when_they_can() {
    let disk = Disk::new();
    let db = disk.root().join("db");
    let failing = Failing::over(RocksEngine::create(&db, &RocksOptions::default()).expect("is created"));
    let Failing { world, plan, ids } = &failing;
    failing.put(Durability::Safe, 0).expect("commits");
    plan.fail(1, Fault::NoSpace);
    let queued = failing.put(Durability::Fast, 1).expect("is accepted");
    queued.wait_for(Level::Process).expect_err("is not written");
    let away = disk.root().join("away");
    fs::rename(&db, &away).expect("renames");
    for _ in 0..2 {
        let error = world.resume().expect_err("there is nothing to open");
        let Error::NotResumed(NotResumed::NotReopened { cause }) = &error else { panic!("{error}") };
        assert!(matches!(**cause, EngineError::NotAnEngineDir { .. } | EngineError::Io { .. }), "{cause}");
        let error = world.load(ids.at(0, 0, 0)).expect_err("there is no engine");
        assert!(matches!(error, Error::Engine(EngineError::NotReopened { .. })), "{error}");
        assert!(world.load(ids.at(1, 0, 0)).expect("the queue has it").is_some());
        let error = failing.put(Durability::Fast, 2).expect_err("takes nothing");
        assert!(matches!(error, Error::Engine(_)), "{error}");
    }
    fs::rename(&away, &db).expect("renames");
    world.resume().expect("all is there again");
    assert!(queued.is_durable() && failing.has(0) && failing.has(1) && !failing.has(2));
    assert_sound(world);
}

#[test]
fn readers_go_on_while_a_world_is_resumed_again_and_again() {
    let disk = Disk::new();
    let engine = RocksEngine::create(&disk.root().join("db"), &RocksOptions::default()).expect("is created");
    let failing = Failing::over(engine);
    let Failing { world, plan, ids } = &failing;
    failing.put(Durability::Safe, 0).expect("commits");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reads = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    assert!(failing.has(0));
                    // A walk that reads inside.
                    let walked = world.read_view(|view| {
                        view.for_each_chunk(cg_store::view::Area::World, |stored| {
                            assert!(stored.is_ok() && world.load(ids.at(0, 0, 0)).expect("loads").is_some());
                            ControlFlow::<()>::Continue(())
                        })
                    });
                    // What is queued cannot be settled while the world is read-only.
                    assert!(matches!(walked, Ok(None) | Err(Error::Engine(EngineError::ReadOnly { .. }))));
                    reads += 1;
                }
                assert!(reads > 0);
            });
        }
        for step in 1..=6 {
            plan.fail(1, if step % 2 == 0 { Fault::Lost } else { Fault::Whole });
            let ticket = failing.put(Durability::Fast, step).expect("is accepted");
            ticket.wait_for(Level::Process).expect_err("is not written");
            assert!(failing.has(step), "memory has the last word");
            world.resume().expect("goes on");
            assert!(ticket.is_durable() && failing.has(step));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert_sound(world);
}
