//! Connections that are cut at each message of a commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use cg_engine::conformance::shared::Link as _;
use cg_postgres::{Options, PostgresEngine};

use crate::cluster::{SetOnDrop, number, server};
use crate::database::{Database, TestWorld, options};
use crate::places::{Places, THREADS};
use crate::proxy::{Cut, Proxy};
use crate::rows::{Writer, check_whole};

/// The writer sends one batch in this many in parts.
const LARGE: u64 = 7;

/// How a commit is disturbed.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Cut(Cut),
    /// The server ends the session while it waits for another node.
    Ended,
}

/// A commit has three messages, its answer four. What is asked behind it has as many.
fn kinds() -> Vec<Kind> {
    let request = |messages, half| Kind::Cut(Cut::Request { messages, half });
    let requests = [(0, false), (0, true), (1, false), (1, true), (2, false), (2, true)];
    let waits = [0, 1, 2, 4, 8].map(|ms| Kind::Cut(Cut::Wait(Duration::from_millis(ms))));
    // The last two are in the answer to what is asked behind the commit.
    let answers = [0, 1, 2, 3, 4, 5].map(|messages| Kind::Cut(Cut::Answer { messages }));
    let mut kinds: Vec<_> = requests.map(|(messages, half)| request(messages, half)).into();
    kinds.extend(waits);
    kinds.extend(answers);
    kinds.extend([Kind::Cut(Cut::Late), Kind::Ended]);
    kinds
}

/// Ends the first session of this role that waits for another node within a second. Its answer says whether there was one.
const END: &str = "DO $$ BEGIN
    PERFORM set_config('cg.ended', 'no', false);
    FOR i IN 1 .. 1000 LOOP
        PERFORM pg_stat_clear_snapshot();
        PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE wait_event = 'SyncRep' AND usename = current_user AND query LIKE '%FUNCTION%';
        IF FOUND THEN PERFORM set_config('cg.ended', 'yes', false); EXIT; END IF;
        PERFORM pg_sleep(0.001);
    END LOOP;
END $$; SELECT current_setting('cg.ended')";

/// Whether a session was ended while it waited.
pub(crate) fn end_in_wait(database: &Database) -> bool {
    end_in_wait_of(database, "cg_commit_1")
}

/// Whether a session was ended while its call of a function waited.
pub(crate) fn end_in_wait_of(database: &Database, function: &str) -> bool {
    database.run(&END.replace("FUNCTION", function)).as_deref() == Some("yes")
}

/// Counts of cuts by kind, for the log.
#[derive(Default)]
struct Tally(BTreeMap<String, usize>);

impl Tally {
    fn add(&mut self, kind: Kind) {
        *self.0.entry(format!("{kind:?}")).or_default() += 1;
    }

    fn print(&self, what: &str) {
        println!("{what}: {} cuts, 0 lost, 0 twice", self.0.values().sum::<usize>());
        for (kind, count) in &self.0 {
            println!("    {count} {kind}");
        }
    }
}

/// Opens a world over a proxy.
pub(crate) fn over(
    database: &Database,
    world: &TestWorld,
    options: &Options,
) -> (PostgresEngine, Arc<Proxy>) {
    let proxy = Proxy::start(database.primary());
    let address = database.over(&format!("127.0.0.1:{}", proxy.port));
    let address = address.with_world(world.address.world()).expect("fits");
    (PostgresEngine::open(&address, options).expect("opens"), proxy)
}

#[test]
fn a_writer_whose_connections_are_cut_loses_nothing_and_doubles_nothing() {
    let Some(server) = server() else { return };
    let count = number("CG_PG_CUTS", 40).div_ceil(2);
    let world = server.database.world();
    drop(world.create());
    let (engine, proxy) = over(&server.database, &world, &options());
    let mut writer = Writer::new(world, engine, LARGE);
    let (mut tally, mut cuts) = (Tally::default(), 0);
    for kind in kinds().into_iter().cycle().take(count) {
        match kind {
            Kind::Cut(cut) => {
                proxy.cut_next(cut);
                writer.step();
                cuts += 1;
                proxy.wait_for_cuts(cuts);
                if cut == Cut::Late {
                    proxy.deliver_delayed();
                }
            }
            Kind::Ended => {
                let is_done = AtomicBool::new(false);
                let ended = thread::scope(|scope| {
                    let ender = scope.spawn(|| {
                        let ended = end_in_wait(&server.database);
                        is_done.store(true, Ordering::Release);
                        ended
                    });
                    while !is_done.load(Ordering::Acquire) {
                        writer.step();
                    }
                    ender.join().expect("asks the server")
                });
                if !ended {
                    continue;
                }
            }
        }
        tally.add(kind);
        writer.step();
        check_whole(&writer.engine);
    }
    writer.check();
    tally.print(&format!("one writer, {} batches, {} commits", writer.batches, writer.commits));
}

#[test]
fn a_world_whose_connections_are_cut_loses_nothing_and_doubles_nothing() {
    let Some(server) = server() else { return };
    let count = number("CG_PG_CUTS", 40) / 2;
    let test = server.database.world();
    drop(test.create());
    let (engine, proxy) = over(&server.database, &test, &options());
    let places = Places::create(engine);
    let (mut tally, mut cuts) = (Tally::default(), 0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let _done = SetOnDrop(&is_done);
        for thread in 0..THREADS {
            let (places, is_done) = (&places, &is_done);
            scope.spawn(move || places.work(thread, is_done));
        }
        for kind in kinds().into_iter().cycle().take(count) {
            match kind {
                Kind::Cut(cut) => {
                    proxy.cut_next(cut);
                    cuts += 1;
                    proxy.wait_for_cuts(cuts);
                    if cut == Cut::Late {
                        wait_for_transactions(&places, 2 * u64::from(THREADS));
                        proxy.deliver_delayed();
                    }
                }
                Kind::Ended if !end_in_wait(&server.database) => continue,
                Kind::Ended => {}
            }
            tally.add(kind);
            wait_for_transactions(&places, 1);
        }
    });
    let transactions = places.transactions();
    places.check_elsewhere(|| test.open().expect("opens"));
    tally.print(&format!("a world of {THREADS} threads, {transactions} transactions"));
}

/// Waits for some more transactions.
fn wait_for_transactions(places: &Places, more: u64) {
    let until = places.transactions() + more;
    let began = std::time::Instant::now();
    while places.transactions() < until {
        assert!(began.elapsed() < Duration::from_secs(60), "no transaction commits");
        thread::sleep(Duration::from_millis(1));
    }
}
