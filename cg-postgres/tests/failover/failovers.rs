//! Failovers beneath engines and a world that go on writing: nothing is lost, torn or applied twice.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cg_postgres::{Options, PostgresEngine};

use crate::cluster::{SetOnDrop, cluster, number};
use crate::database::TestWorld;
use crate::places::{Places, THREADS};
use crate::rows::{Writer, check_whole};

/// The number of worlds with a writer of rows.
const WRITERS: usize = 4;

/// A writer sends one batch in this many in parts.
const LARGE: u64 = 500;

/// The pause of a writer after each call.
const PAUSE: Duration = Duration::from_millis(5);

/// The patience of an engine for a failover on a busy machine.
pub(crate) fn patient() -> Options {
    let mut options = Options::default();
    options.patience = Duration::from_secs(90);
    options
}

pub(crate) fn create(world: &TestWorld) -> PostgresEngine {
    PostgresEngine::create(&world.address, &patient()).expect("is made")
}

pub(crate) fn take(world: &TestWorld) -> PostgresEngine {
    PostgresEngine::open(&world.address.clone().with_take(true), &patient()).expect("is taken")
}

#[test]
fn a_failover_loses_nothing_and_doubles_nothing() {
    let Some(cluster) = cluster() else { return };
    let failovers = number("CG_PG_FAILOVERS", 10);
    let mut writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let world = cluster.database.world();
            let engine = create(&world);
            Writer::new(world, engine, LARGE)
        })
        .collect();
    let test = cluster.database.world();
    let places = Places::create(create(&test));
    let (mut killed, mut stalled, mut paused, mut standbys) = (0, 0, 0, 0);
    for round in 1..=failovers {
        let is_done = AtomicBool::new(false);
        let failed = thread::scope(|scope| {
            let done = SetOnDrop(&is_done);
            for writer in &mut writers {
                let is_done = &is_done;
                scope.spawn(move || {
                    let _all = SetOnDrop(is_done);
                    while !is_done.load(Ordering::Acquire) {
                        writer.step();
                        check_whole(&writer.engine);
                        // Else most of a failover is the copying of their log.
                        thread::sleep(PAUSE);
                    }
                });
            }
            for thread in 0..THREADS {
                let (places, is_done) = (&places, &is_done);
                scope.spawn(move || places.work(thread, is_done));
            }
            if round % 3 == 0 {
                cluster.fail("--standby");
                standbys += 1;
            }
            let began = Instant::now();
            let (how, count) = match (round % 5, round % 4) {
                (0, _) => ("--pause", &mut paused),
                (_, 0) => ("--stall 2", &mut stalled),
                _ => ("", &mut killed),
            };
            cluster.fail(how);
            *count += 1;
            let took = began.elapsed();
            thread::sleep(Duration::from_millis(200));
            drop(done);
            took
        });
        writers.iter().for_each(Writer::check);
        places.check();
        let longest = writers.iter_mut().map(|writer| std::mem::take(&mut writer.longest)).max();
        let sum = |count: fn(&Writer) -> u64| writers.iter().map(count).sum::<u64>();
        println!(
            "{round} of {failovers} failovers ({killed} killed, {stalled} stalled and killed, {paused} paused) and {standbys} killed standbys: \
             {} batches, {} commits, {} transactions, 0 lost, 0 twice; failed over in {failed:.1?}, longest call {:.1?}",
            sum(|writer| writer.batches),
            sum(|writer| writer.commits),
            places.transactions(),
            longest.unwrap_or_default(),
        );
    }
    for writer in &writers {
        let elsewhere = take(&writer.world);
        writer.check_rows(&elsewhere);
    }
    places.check_elsewhere(|| take(&test));
}
