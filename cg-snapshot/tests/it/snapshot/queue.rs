//! The queue does what it was asked, in order, within its budget, and holds a ticket for every chunk it works on.

use std::sync::Arc;
use std::time::Duration;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, EntityPos, Owner};
use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, ChunkSink as _, Editor as _};
use cg_registry::Catalog;
use cg_snapshot::memory::{Live, Memory, Touch, Watch};
use cg_snapshot::{
    BlockChange, CaptureOptions, Event, Handle, Operation, Outcome, Region, RestoreJob, RestoreOptions,
    RestoreQueue, TickBudget, TickReport,
};

use super::made::{arena, around, captured, catalog, damage, host, id, other_catalog, region};

/// A host that notes what is done to it.
type Noting = Live<Notes>;

#[derive(Debug, Default)]
struct Notes {
    told: Vec<BlockChange>,
    lit: Vec<ChunkAt>,
    saved: Vec<ChunkAt>,
    blocked: Option<ChunkAt>,
    /// The host panics when it reads this chunk.
    panics: Option<ChunkAt>,
}

fn noting(memory: Memory) -> Noting {
    Live::new(memory, Notes::default())
}

impl Watch for Notes {
    fn touch(&mut self, touch: Touch, at: ChunkAt, tickets: u32) {
        assert!(tickets > 0, "{at} is worked on without a ticket: {touch:?}");
        match touch {
            Touch::Load => assert!(self.panics != Some(at), "the host has a bug"),
            Touch::Save => {
                assert!(self.lit.is_empty(), "light comes after all blocks");
                self.saved.push(at);
            }
            Touch::Delete => {}
            Touch::Relight => self.lit.push(at),
        }
    }

    fn is_ready(&mut self, at: ChunkAt) -> bool {
        self.blocked != Some(at)
    }

    fn changed(&mut self, change: BlockChange) {
        self.told.push(change);
    }
}

/// A clock that goes on by so much at each look.
fn clock(step_ms: u64) -> impl FnMut() -> Duration {
    let mut now = 0;
    move || {
        now += step_ms;
        Duration::from_millis(now)
    }
}

fn tick(queue: &mut RestoreQueue, host: &mut Noting, budget: &TickBudget) -> TickReport {
    queue.run(host, &catalog(), budget, clock(5))
}

#[test]
fn a_restore_takes_as_many_ticks_as_its_budget_says_and_lights_in_the_end() {
    let mut memory = host(5);
    let template = Arc::new(captured(&memory, around()));
    damage(&mut memory, 6);
    let mut host = noting(memory);
    let mut queue = RestoreQueue::new();
    let submit = queue.handle();
    let events = submit.subscribe();
    let operation = Operation::Restore {
        snapshot: Arc::clone(&template),
        options: RestoreOptions::default(),
        relight: true,
    };
    let handle = std::thread::spawn(move || submit.submit(operation)).join().expect("from any thread");
    assert_eq!(handle.progress().total, 0, "not received yet");

    let budget = TickBudget { concurrent_chunks: 3, ..TickBudget::default() };
    let mut reports = Vec::new();
    while handle.outcome().is_none() {
        reports.push(tick(&mut queue, &mut host, &budget));
        assert!(reports.len() < 100, "it ends");
    }
    // A section takes one look at the clock, 5 ms: six fit into 30 ms.
    assert!(reports.iter().rev().skip(1).all(|report| report.sections == 6), "{reports:?}");
    assert!(reports.iter().all(|report| report.spent <= Duration::from_millis(35)), "{reports:?}");
    assert_eq!((host.most_chunks(), host.tickets().len()), (3, 0));
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    assert_eq!(report.blocks + report.components, host.watch.told.len() as u64);
    assert_eq!(host.watch.lit, host.watch.saved, "every changed chunk, after all blocks");
    assert_eq!(captured(&host.memory, around()), *template);
    let progress = handle.progress();
    assert_eq!(progress.done, progress.total);
    assert_eq!(progress.total, report.sections + report.changed);
    let events: Vec<Event> = events.try_iter().collect();
    assert_eq!(events, [Event::Started(handle.id()), Event::Ended(handle.id(), Outcome::Restored(report))]);
}

#[test]
fn sections_per_tick_are_a_budget_too_and_one_is_always_done() {
    let memory = host(5);
    let mut host = noting(memory);
    let mut queue = RestoreQueue::new();
    let handle = queue.handle().submit(Operation::Relight { region: region(around()) });
    let few = TickBudget { sections: 4, time: Duration::from_secs(1), ..TickBudget::default() };
    assert_eq!(tick(&mut queue, &mut host, &few).sections, 4);
    let none = TickBudget { time: Duration::ZERO, ..TickBudget::default() };
    assert_eq!(tick(&mut queue, &mut host, &none).sections, 1);
    assert_eq!(handle.progress().done, 5);
    handle.cancel();
    let report = tick(&mut queue, &mut host, &few);
    assert_eq!((report.sections, report.ended, report.left), (0, 1, 0));
    assert_eq!(handle.outcome(), Some(Outcome::Cancelled(5)));
    assert!(host.tickets().is_empty());
}

#[test]
fn operations_that_meet_keep_their_order_and_others_overtake_what_waits() {
    let catalog = catalog();
    let mut memory = Memory::new(&catalog);
    let cube = |x: i64| BlockBox::new(BlockPos::new(x * 16, 0, 0), BlockPos::new(x * 16 + 15, 15, 15));
    for x in 0..3 {
        memory.fill(arena(&catalog), cube(x), BlockId::new(1)).unwrap();
    }
    let stone = Arc::new(captured(&memory, cube(0)));
    memory.set_block(arena(&catalog), BlockPos::new(1, 1, 1), BlockId::new(2)).unwrap();
    let mut host = noting(memory);
    let mut queue = RestoreQueue::new();
    let submit = queue.handle();
    let capture = |area| Operation::Capture { region: region(area), options: CaptureOptions::named("now") };
    let before = submit.submit(capture(cube(0)));
    let restore = submit.submit(Operation::Restore {
        snapshot: Arc::clone(&stone),
        options: RestoreOptions::default(),
        relight: false,
    });
    let after = submit.submit(capture(cube(0)));
    let elsewhere = submit.submit(capture(cube(2)));
    let at = ChunkAt::new(arena(&catalog), BlockPos::new(0, 0, 0).chunk());
    host.watch.blocked = Some(at);
    let budget = TickBudget { time: Duration::from_secs(9), ..TickBudget::default() };
    tick(&mut queue, &mut host, &budget);
    let is_ended = [&before, &restore, &after, &elsewhere].map(|handle| handle.outcome().is_some());
    assert_eq!(is_ended, [false, false, false, true]);
    host.watch.blocked = None;
    tick(&mut queue, &mut host, &budget);
    let snapshot = |handle: &cg_snapshot::Handle| match handle.outcome() {
        Some(Outcome::Captured(snapshot)) => snapshot,
        other => panic!("{other:?}"),
    };
    assert_eq!(snapshot(&before).info().unique_bytes, 576, "with the block of dirt");
    assert!(snapshot(&after).kept().eq(stone.kept()));
    assert!(matches!(restore.outcome(), Some(Outcome::Restored(report)) if report.blocks == 1));
}

#[test]
fn what_cannot_be_done_fails_and_does_not_block_the_rest() {
    let mut host = noting(host(5));
    let mut queue = RestoreQueue::new();
    let submit = queue.handle();
    let far = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(1 << 20, 1 << 20, 0));
    let failing =
        submit.submit(Operation::Capture { region: region(far), options: CaptureOptions::named("x") });
    let next = submit.submit(Operation::Relight { region: region(around()) });
    let budget = TickBudget { time: Duration::from_secs(9), ..TickBudget::default() };
    let report = tick(&mut queue, &mut host, &budget);
    assert_eq!((report.ended, report.left), (2, 0));
    let why = "the box has 4295098369 sections of 16³ blocks, a snapshot holds at most 16777216";
    assert_eq!(failing.outcome(), Some(Outcome::Failed(why.into())));
    assert_eq!(next.outcome(), Some(Outcome::Relit(24)));
}

/// A row of so many chunks of stone.
fn row(catalog: &Catalog, count: i64) -> (Memory, BlockBox) {
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(16 * count - 1, 15, 15));
    let mut memory = Memory::new(catalog);
    memory.fill(arena(catalog), area, BlockId::new(1)).unwrap();
    (memory, area)
}

fn outcome(handle: &Handle) -> Outcome {
    handle.outcome().expect("it has ended")
}

const ONE: TickBudget = TickBudget { time: Duration::from_secs(9), sections: 1, concurrent_chunks: 2 };
const ALL: TickBudget = TickBudget { sections: usize::MAX, ..ONE };

#[test]
fn a_capture_is_of_the_state_at_which_it_began() {
    let catalog = catalog();
    let (memory, area) = row(&catalog, 4);
    let dimension = arena(&catalog);
    let mut host = noting(memory);
    let at = |x| ChunkAt::new(dimension, BlockPos::new(16 * x, 0, 0).chunk());
    let sheep = |at: ChunkAt| {
        let kind = catalog.entity_type("game:sheep").expect("registered");
        let position = EntityPos::new(dimension, at.pos.min_block(), [0.0; 3]).expect("a position");
        Entity::new(kind, Owner::Chunk(at), position)
    };
    host.memory.delete(at(3)).unwrap();
    host.memory.put_entity(id(1), sheep(at(1))).unwrap();
    let template = captured(&host.memory, area);

    let mut queue = RestoreQueue::new();
    let capture = Operation::Capture { region: region(area), options: CaptureOptions::named("made") };
    let [first, second] = [(); 2].map(|()| queue.handle().submit(capture.clone()));
    tick(&mut queue, &mut host, &ONE);
    assert_eq!(first.progress().done, 1);
    // One chunk that was captured, one that was not, one that was not there, and one outside; a sheep walks on.
    for x in [0, 1, 2, 1] {
        queue.before_change(&mut host.memory, at(x)).unwrap();
        host.memory.set_block(dimension, BlockPos::new(16 * x + 5, 5, 5), BlockId::new(2)).unwrap();
    }
    queue.before_change(&mut host.memory, at(3)).unwrap();
    host.memory.insert(at(3), Chunk::filled(BlockId::new(2), &catalog.current_schema()).unwrap());
    queue.before_change(&mut host.memory, at(4)).unwrap();
    host.memory.put_entity(id(1), sheep(at(2))).unwrap();
    tick(&mut queue, &mut host, &ALL);
    let Outcome::Captured(snapshot) = outcome(&first) else { panic!("{first:?}") };
    assert_eq!(*snapshot, template);
    let Outcome::Captured(snapshot) = outcome(&second) else { panic!("{second:?}") };
    assert_eq!(*snapshot, captured(&host.memory, area), "the second began after the changes");
}

#[test]
fn an_operation_over_which_the_host_panicked_fails_and_gives_its_tickets_back() {
    let catalog = catalog();
    let (memory, area) = row(&catalog, 4);
    let template = Arc::new(captured(&memory, area));
    let mut host = noting(memory);
    for x in [5, 20, 40, 60] {
        host.memory.set_block(arena(&catalog), BlockPos::new(x, 5, 5), BlockId::new(2)).unwrap();
    }
    let mut queue = RestoreQueue::new();
    let restore =
        Operation::Restore { snapshot: template, options: RestoreOptions::default(), relight: false };
    let [failing, next] = [(); 2].map(|()| queue.handle().submit(restore.clone()));
    host.watch.panics = Some(ChunkAt::new(arena(&catalog), BlockPos::new(16, 0, 0).chunk()));
    let ticked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tick(&mut queue, &mut host, &ALL)));
    assert!(ticked.is_err(), "the panic goes on to the host");
    assert_eq!(failing.outcome(), None, "not yet");
    host.watch.panics = None;
    tick(&mut queue, &mut host, &ALL);
    let why = "the host panicked over one of its chunks; the rest was not touched";
    assert_eq!(outcome(&failing), Outcome::Failed(why.into()));
    let Outcome::Restored(report) = outcome(&next) else { panic!("{next:?}") };
    assert_eq!(
        (report.sections, report.unchanged, report.blocks),
        (4, 1, 3),
        "whole, not without that chunk"
    );
    assert!(host.tickets().is_empty(), "{:?}", host.tickets());
}

#[test]
fn who_waits_for_a_queue_that_is_gone_hears_of_it() {
    let catalog = catalog();
    let (memory, area) = row(&catalog, 3);
    let mut host = noting(memory);
    let relight = Operation::Relight { region: region(area) };
    let mut queue = RestoreQueue::new();
    let (submit, events) = (queue.handle(), queue.handle().subscribe());
    let [begun, waiting] = [(); 2].map(|()| submit.submit(relight.clone()));
    tick(&mut queue, &mut host, &ONE);
    let unseen = submit.submit(relight.clone());
    assert_eq!(host.tickets().len(), 1);
    queue.close(&mut host);
    assert_eq!([&begun, &waiting, &unseen].map(outcome), [1, 0, 0].map(Outcome::Cancelled));
    assert!(host.tickets().is_empty());
    assert_eq!(events.try_iter().count(), 4, "one began, three ended");

    let left = submit.submit(relight.clone());
    assert_eq!(left.outcome(), None, "a closed queue still works");
    tick(&mut queue, &mut host, &ONE);
    let unseen = submit.submit(relight.clone());
    drop(queue);
    let late = submit.submit(relight);
    assert_eq!([&left, &unseen, &late].map(outcome), [1, 0, 0].map(Outcome::Cancelled));
}

#[test]
fn operations_meet_in_the_dimension_of_their_name() {
    // The snapshot says dimension 0, and here that is another one: the arena is number 1.
    let there = other_catalog();
    let home = catalog();
    let (memory, area) = row(&home, 1);
    let template = Arc::new(captured(&memory, area));
    let mut host = noting(Memory::new(&there));
    host.memory.fill(arena(&there), area, there.block_id("game:dirt").expect("registered")).unwrap();
    let place = Region::new(arena(&there), area);
    let mut queue = RestoreQueue::new();
    let restore = queue.handle().submit(Operation::Restore {
        snapshot: template,
        options: RestoreOptions::default(),
        relight: false,
    });
    let after = Operation::Capture { region: place, options: CaptureOptions::named("after") };
    let after = queue.handle().submit(after);
    let at = ChunkAt::new(place.dimension(), area.min().chunk());
    host.watch.blocked = Some(at);
    queue.run(&mut host, &there, &ALL, clock(1));
    assert_eq!([restore.outcome(), after.outcome()], [None, None]);
    assert_eq!(host.tickets().keys().collect::<Vec<_>>(), [&at]);
    assert_eq!(host.tickets().values().sum::<u32>(), 1, "the capture waits after the restore");
    host.watch.blocked = None;
    queue.run(&mut host, &there, &ALL, clock(1));
    let Outcome::Captured(snapshot) = outcome(&after) else { panic!("{after:?}") };
    let names: Vec<&str> = snapshot.names().blocks().map(|(_, name)| name.as_str()).collect();
    assert_eq!(names, ["game:stone"]);
}

#[test]
fn a_snapshot_by_other_ids_is_brought_to_those_of_the_host_within_the_budget() {
    let there = other_catalog();
    let template = Arc::new(captured(&host(5), around()));
    let (kept, sections) = (template.kept().len() as u64, template.info().section_count);
    assert!(kept > 12, "or this shows nothing");
    let mut live = noting(Memory::new(&there));
    let mut queue = RestoreQueue::new();
    let options = RestoreOptions::default();
    let restore = Operation::Restore { snapshot: Arc::clone(&template), options, relight: false };
    let handle = queue.handle().submit(restore.clone());
    let mut reports = Vec::new();
    while handle.outcome().is_none() {
        reports.push(queue.run(&mut live, &there, &TickBudget::default(), clock(5)));
        assert!(reports.len() < 100, "it ends");
        let brought = 6 * reports.len() as u64;
        assert_eq!(handle.progress().done, brought.saturating_sub(kept).min(sections), "no progress before");
    }
    // A section takes one look at the clock, 5 ms, whether it is brought or restored: six fit into 30 ms.
    assert!(reports.iter().rev().skip(1).all(|report| report.sections == 6), "{reports:?}");
    assert_eq!(reports.iter().map(|report| report.sections).sum::<u64>(), kept + sections);
    assert!(reports.iter().all(|report| report.spent <= Duration::from_millis(35)), "{reports:?}");

    // What came of it is what comes of it at once.
    let mut at_once = Memory::new(&there);
    let mut job = RestoreJob::new(Arc::clone(&template), &there, options).unwrap();
    let report = job.run(&mut at_once, &mut |_| {}).unwrap();
    assert_eq!(outcome(&handle), Outcome::Restored(report));
    for pos in around().chunks().iter() {
        let at = ChunkAt::new(arena(&there), pos);
        assert_eq!(live.memory.load(at), at_once.load(at), "{at}");
    }
    assert!(live.memory.entities().eq(at_once.entities()));

    // One that is cancelled on the way has put nothing back.
    let handle = queue.handle().submit(restore);
    queue.run(&mut live, &there, &TickBudget::default(), clock(5));
    handle.cancel();
    queue.run(&mut live, &there, &TickBudget::default(), clock(5));
    assert_eq!(outcome(&handle), Outcome::Cancelled(0));
}
