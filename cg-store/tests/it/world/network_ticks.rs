//! Ticks over a network: the thread of the tick calls no engine, and a job on the pool calls it seldom.

mod faults;
mod life;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::moves::{player, tiers};
use super::tier::noisy;
use super::*;
use cg_engine::conformance::remote::{Network, Remote, Server};
use cg_engine::conformance::shared::Link as _;
use cg_engine::conformance::{Counter, Counting};
use cg_format::Space;
use cg_store::ErrorKind;
use cg_store::engine::{Caps, EngineError, Guard, Latency, Readable, Reopen, Snapshot, delegate};
use cg_store::{Peek, WriteBatch};
use cg_tiering::{GameTick, PlayerAt, TierPolicy};

const HOUR: u64 = 60 * 60 * GameTick::PER_SECOND;
const DAY: u64 = 24 * HOUR;
const ENOUGH: Duration = Duration::from_secs(600);
/// The time after which a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

fn network_options() -> WorldOptions {
    WorldOptions { cache_bytes: 64 << 20, tiers: TierPolicy::network(), deltas: true, ..options() }
}

/// The action that a gate takes before a batch of maintenance is written. `Some`: the batch is refused.
type Before = Box<dyn FnMut() -> Option<EngineError> + Send>;

/// Stands before the batches of maintenance.
#[derive(Default)]
struct Gate {
    before: Mutex<Option<Before>>,
    passing: AtomicUsize,
    most_passing: AtomicUsize,
}

impl Gate {
    fn set(&self, before: impl FnMut() -> Option<EngineError> + Send + 'static) {
        *self.before.lock().expect("no test panics in it") = Some(Box::new(before));
    }
}

/// An engine whose batches of maintenance pass a gate.
struct Gated {
    engine: Counting,
    gate: Arc<Gate>,
}

impl std::fmt::Debug for Gated {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gated").finish_non_exhaustive()
    }
}

impl Readable for Gated {
    delegate! { engine => get get_many get_slices scan_rows }
}

impl Engine for Gated {
    fn may_have(&self, _: Space, _: &[u8]) -> bool {
        // Over a network this uses only memory.
        true
    }

    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        if !batch.is_maintenance() {
            return self.engine.commit(batch, guards, level);
        }
        let passing = self.gate.passing.fetch_add(1, Ordering::AcqRel) + 1;
        self.gate.most_passing.fetch_max(passing, Ordering::AcqRel);
        let before = self.gate.before.lock().expect("no test panics in it").take();
        let mut refused = None;
        if let Some(mut before) = before {
            refused = before();
            let mut place = self.gate.before.lock().expect("no test panics in it");
            place.get_or_insert(before);
        }
        let committed = refused.map_or_else(|| self.engine.commit(batch, guards, level), Err);
        self.gate.passing.fetch_sub(1, Ordering::AcqRel);
        committed
    }

    fn commit_run(
        &self,
        first: CommitSeq,
        batches: Vec<Batch>,
        level: Level,
    ) -> Result<CommitSeq, EngineError> {
        self.engine.commit_run(first, batches, level)
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        self.engine.snapshot()
    }

    fn reopening(&self) -> Reopen {
        self.engine.reopening()
    }

    fn caps(&self) -> Caps {
        self.engine.caps()
    }

    delegate! {
        engine => sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes
        disk_bytes usage
    }
}

/// A world over a network whose calls are counted, and a gate before what maintenance writes.
fn over_network(options: &WorldOptions) -> (World, Counter, Arc<Gate>, Ids) {
    let (engine, counter) = Counting::over(MemEngine::new().with_max_batch_bytes(1 << 30));
    let engine = engine.with_caps(|caps| caps.latency = Latency::Network);
    let gate = Arc::<Gate>::default();
    let engine = Gated { engine, gate: Arc::clone(&gate) };
    let world = World::builder().options(options).over(engine).expect("begins");
    let ids = Ids::register(&world);
    (world, counter, gate, ids)
}

/// The moves of several ticks: promoted, warmed, cooled, shadows dropped, tombstones purged, conflicts, refused.
type Sum = [u64; 7];

fn add(sum: &mut Sum, moves: MoveCounts) {
    let MoveCounts {
        promoted, warmed, cooled, shadows_dropped, tombstones_purged, conflicts, refused, ..
    } = moves;
    let all = [promoted, warmed, cooled, shadows_dropped, tombstones_purged, conflicts, refused];
    sum.iter_mut().zip(all).for_each(|(sum, count)| *sum += count);
}

/// Ticks at one moment until a job that began at it has found nothing to do.
#[track_caller]
fn run_until_idle(world: &World, now: u64, players: &[PlayerAt]) -> Sum {
    let (begun, mut sum, mut idle) = (Instant::now(), Sum::default(), 0);
    while begun.elapsed() < PATIENCE {
        let report = world.tick(GameTick::new(now), players, ENOUGH).expect("ticks");
        assert_eq!(report.now.get(), now);
        add(&mut sum, report.moves);
        let is_idle = !report.work_left && report.moves == MoveCounts::default();
        idle += u32::from(is_idle);
        // The first report may be that of a job which began earlier.
        if is_idle && idle > 1 {
            return sum;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("the moves of one moment do not end");
}

/// Ticks at one moment until a job writes.
#[track_caller]
fn tick_until(world: &World, now: u64, begins: &std::sync::mpsc::Receiver<()>) {
    let begun = Instant::now();
    while begins.recv_timeout(Duration::from_millis(1)).is_err() {
        world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
        assert!(begun.elapsed() < PATIENCE, "no job writes");
    }
}

/// The chunks of a few places in each 4³ cube of a row of 16³ cubes.
fn in_each_cube(ids: &Ids, clusters: i64) -> Vec<ChunkAt> {
    let cubes = (0..clusters * 4).flat_map(|x| (0..4).flat_map(move |y| (0..4).map(move |z| [x, y, z])));
    let corners = cubes.map(|cube| cube.map(|side| 4 * side));
    corners.flat_map(|[x, y, z]| (0..6).map(move |n| ids.at(x + n % 4, y + n / 4, z))).collect()
}

#[test]
fn a_ticks_thread_calls_no_engine_whatever_is_due() {
    let (world, counter, _, ids) = over_network(&network_options());
    let all = in_each_cube(&ids, 2);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    let (mut sum, mut now, mut tick) = (Sum::default(), 0, 0);
    // A slow machine needs more of them to see what was moved.
    while tick < 300 || (sum[2] == 0 && tick < 30_000) {
        // Everything is due in the middle of it, and something is changed now and then.
        now = tick + if tick < 50 { 0 } else { HOUR } + if tick < 150 { 0 } else { DAY };
        let visitor = player(1, ids.overworld, 8 * tick as i64, 8, 8);
        let tick_it = || world.tick(GameTick::new(now), &[visitor], Duration::from_millis(5));
        let (report, calls) = counter.during(tick_it);
        add(&mut sum, report.expect("ticks").moves);
        assert_eq!(calls.all(), 0, "tick {tick}: {calls:?}");
        let place = all[tick as usize % all.len()];
        let (_, calls) = counter.during(|| world.peek(place));
        assert_eq!(calls.all(), 0, "peek: {calls:?}");
        if tick % 10 == 0 {
            let mut batch = WriteBatch::new();
            batch.save(place, marked(&world, &ids, tick as u16));
            let (taken, calls) = counter.during(|| world.submit(batch));
            drop(taken.expect("is taken"));
            assert_eq!(calls.all(), 0, "submit: {calls:?}");
        }
        std::thread::sleep(Duration::from_millis(1));
        tick += 1;
    }
    world.flush().expect("everything is accepted");
    run_until_idle(&world, now + 1, &[]);
    run_until_idle(&world, now + DAY + HOUR, &[]);
    assert!(sum[2] > 0, "chunks were moved meanwhile: {sum:?}");
    assert_eq!(tiers(&world), [0, 0, all.len() as u64]);
    assert_sound(&world);
}

#[test]
fn a_budget_that_is_shorter_than_a_call_moves_chunks_too() {
    let network = Arc::new(Network::new(Duration::from_millis(2), 0));
    let remote = Remote::take(&Server::new(), &network).expect("it answers");
    let world = World::builder().options(&network_options()).over(remote).expect("begins");
    let ids = Ids::register(&world);
    let all = in_each_cube(&ids, 4);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    let (begun, mut warmed, mut tick) = (Instant::now(), 0, 1);
    while warmed < all.len() as u64 && begun.elapsed() < PATIENCE {
        let report = world.tick(GameTick::new(HOUR + tick), &[], Duration::from_millis(1)).expect("ticks");
        warmed += report.moves.warmed;
        tick += 1;
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(warmed, all.len() as u64);
}

#[test]
fn the_first_tick_of_a_world_that_was_opened_calls_nothing() {
    let server = Server::new();
    let network = Arc::new(Network::new(Duration::ZERO, 0));
    let open = || {
        let remote = Remote::take(&server, &network).expect("it answers");
        let (engine, counter) = Counting::over(remote);
        (World::builder().options(&network_options()).over(engine).expect("opens"), counter)
    };
    let (world, _) = open();
    let ids = Ids::register(&world);
    let all = in_each_cube(&ids, 1);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    run_until_idle(&world, 7, &[]);
    world.close().expect("closes");
    drop(world);
    let (world, counter) = open();
    assert_eq!(world.tiers().clock().now().get(), 7, "the clock was stored");
    network.pause(true);
    let (report, calls) = counter.during(|| world.tick(GameTick::new(2 * DAY), &[], ENOUGH));
    let report = report.expect("ticks");
    assert_eq!((calls.all(), report.work_left, report.moves), (0, true, MoveCounts::default()));
    let (peeked, calls) = counter.during(|| world.peek(all[0]));
    assert!(matches!(peeked, Peek::NotLoaded) && calls.all() == 0, "{calls:?}");
    network.pause(false);
    run_until_idle(&world, 3 * DAY, &[]);
    assert_eq!(tiers(&world), [0, 0, all.len() as u64], "what another opening left is found");
    assert_sound(&world);
}

#[test]
fn a_cube_that_moves_costs_less_than_two_calls() {
    // All of it is near a player.
    let tiers_of = TierPolicy { near_distance_blocks: 500, ..TierPolicy::network() };
    let (world, counter, _, ids) = over_network(&WorldOptions { tiers: tiers_of, ..network_options() });
    let all = in_each_cube(&ids, 2);
    let cubes = 128;
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    let count = all.len() as u64;
    run_until_idle(&world, 1, &[]);
    let mut taken = Vec::new();
    let mut during = |now: u64, players: &[PlayerAt]| {
        let before = counter.calls();
        let sum = run_until_idle(&world, now, players);
        taken.push((counter.calls() - before).all());
        (sum, tiers(&world))
    };
    assert_eq!(during(HOUR + 2, &[]), ([0, count, 0, 0, 0, 0, 0], [0, count, 0]));
    assert_eq!(during(DAY + HOUR, &[]), ([0, 0, count, 0, 0, 0, 0], [0, 0, count]));
    let visitor = [player(1, ids.overworld, 256, 8, 8)];
    run_until_idle(&world, DAY + HOUR + 1, &visitor);
    world.cache().clear();
    assert!(world.load_many(&all).into_iter().all(|found| found.expect("loads").is_some()));
    let ([promoted, ..], [hot, ..]) = during(DAY + HOUR + HOUR / 2, &visitor);
    assert_eq!((promoted, hot), (count, count));
    assert!(taken.iter().all(|calls| *calls < 2 * cubes), "{taken:?} calls for {cubes} cubes");
    assert!(taken.iter().all(|calls| *calls <= 40), "{taken:?} calls for {cubes} cubes");
    assert_sound(&world);
}

#[test]
fn two_ticks_never_run_two_jobs() {
    let (world, _, gate, ids) = over_network(&network_options());
    let all = in_each_cube(&ids, 1);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    run_until_idle(&world, 1, &[]);
    gate.set(|| {
        std::thread::sleep(Duration::from_millis(5));
        None
    });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (world, all) = (&world, &all);
            scope.spawn(move || {
                for tick in 0..100 {
                    let now = (tick + 1) * (HOUR / 4) + thread;
                    world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
                    if tick % 20 == 0 {
                        save(world, [(all[tick as usize], filled(world, ids.stone))]);
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
        }
    });
    run_until_idle(&world, 60 * DAY, &[]);
    assert_eq!(gate.most_passing.load(Ordering::Acquire), 1);
    assert_eq!(tiers(&world), [0, 0, all.len() as u64]);
    assert_sound(&world);
}

#[test]
fn while_a_job_runs_a_tick_says_that_work_is_left() {
    let (world, counter, gate, ids) = over_network(&network_options());
    let all = in_each_cube(&ids, 1);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    run_until_idle(&world, 1, &[]);
    let ((begun, begins), (go_on, goes_on)) = (channel(), channel::<()>());
    gate.set(move || {
        let _ = begun.send(());
        let _ = goes_on.recv();
        None
    });
    tick_until(&world, HOUR + 2, &begins);
    for tick in 0..20 {
        let tick_it = || world.tick(GameTick::new(HOUR + 3 + tick), &[], ENOUGH);
        let (report, calls) = counter.during(tick_it);
        let report = report.expect("ticks");
        assert_eq!((report.work_left, report.moves, calls.all()), (true, MoveCounts::default(), 0));
        assert_eq!(report.now.get(), HOUR + 3 + tick);
    }
    assert_eq!(world.tiers().clock().now().get(), HOUR + 22, "time goes on");
    drop(go_on);
    let [_, warmed, ..] = run_until_idle(&world, HOUR + 30, &[]);
    assert_eq!(warmed, all.len() as u64);
}

#[test]
fn no_access_is_stored_over_a_network() {
    let (world, counter, _, ids) = over_network(&network_options());
    let all = in_each_cube(&ids, 1);
    save(&world, all.iter().map(|at| (*at, marked(&world, &ids, 7))));
    for tick in 1..100 {
        run_until_idle(&world, tick * 600, &[]);
        world.cache().clear();
        assert!(world.load_many(&all).into_iter().all(|found| found.is_ok()));
    }
    let is_heat = |key: &[u8]| Space::of_row(Family::Index, key) == Some(Space::Heat);
    let heat = || {
        let mut count = 0;
        let scanned = world.engine().scan(Family::Index, engine::ALL_KEYS, |key, _| {
            count += usize::from(is_heat(key));
            std::ops::ControlFlow::<()>::Continue(())
        });
        scanned.expect("scans");
        count
    };
    assert_eq!(heat(), 0);
    let before = counter.calls();
    let now = 100 * 600 + HOUR;
    run_until_idle(&world, now, &[]);
    assert_eq!(heat(), 64, "a warm cluster is found by its heat row, which its own batch puts");
    assert!((counter.calls() - before).all() < 30);
    assert_eq!(world.metrics().ticks.count(), world.metrics().tick_excess.count());
    let refused = world.tiers().set_clock(GameTick::new(5)).map_err(|error| error.kind());
    assert_eq!(refused, Ok::<_, ErrorKind>(()), "it waits for no job");
}
