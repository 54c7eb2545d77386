//! Hosts that are tasks of tokio themselves, and engines that are dropped while calls run.

use std::sync::Arc;

use cg_engine::{Batch, Engine as _, Level, Readable as _, Space};

use crate::database::{TestWorld, database};

/// Makes a world, and calls everything once.
fn live(world: &TestWorld) {
    let engine = world.create();
    engine.commit(Batch::new(), &[], Level::Power).expect("commits");
    assert!(engine.get(Space::Object, b"a").expect("reads").is_none());
    let snapshot = engine.snapshot().expect("is open");
    assert!(snapshot.get(Space::Object, b"a").expect("reads").is_none());
    drop(snapshot);
    engine.usage().expect("is open");
    engine.close().expect("closes");
    drop(engine);
    drop(world.open().expect("opens"));
}

/// The world, which a test removes after its runtime has ended.
fn world() -> Option<Arc<TestWorld>> {
    database().map(|database| Arc::new(database.world()))
}

#[test]
fn a_task_of_one_thread_may_be_a_host() {
    let Some(world) = world() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("builds");
    runtime.block_on(async { live(&world) });
}

#[test]
fn a_task_of_many_threads_may_be_a_host() {
    let Some(world) = world() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("builds");
    let own = Arc::clone(&world);
    runtime.block_on(async { tokio::spawn(async move { live(&own) }).await.expect("does not panic") });
}

#[test]
fn a_blocking_task_may_be_a_host() {
    let Some(world) = world() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("builds");
    let own = Arc::clone(&world);
    runtime
        .block_on(async { tokio::task::spawn_blocking(move || live(&own)).await.expect("does not panic") });
}

#[test]
fn a_local_task_may_be_a_host() {
    let Some(world) = world() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("builds");
    let own = Arc::clone(&world);
    tokio::task::LocalSet::new().block_on(&runtime, async {
        tokio::task::spawn_local(async move { live(&own) }).await.expect("does not panic");
    });
}

#[test]
fn an_engine_is_dropped_while_calls_run() {
    let Some(world) = world() else { return };
    let engine = Arc::new(world.create());
    let threads: Vec<_> = (0..8)
        .map(|n| {
            let engine = Arc::clone(&engine);
            std::thread::spawn(move || {
                for _ in 0..20 {
                    if n % 2 == 0 {
                        engine.commit(Batch::new(), &[], Level::Process).expect("commits");
                    } else {
                        drop(engine.snapshot().expect("is open"));
                    }
                }
                // The last thread drops the engine.
                drop(engine);
            })
        })
        .collect();
    drop(engine);
    for thread in threads {
        thread.join().expect("does not panic");
    }
    assert_eq!(world.open().expect("opens").last_commit().get(), 80);
}
