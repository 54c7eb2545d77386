//! The queue does what it was asked, in order, within its budget, and holds a ticket for every chunk it works on.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, ChunkSink, Editor, EntityId, SchemaView};
use cg_snapshot::memory::Memory;
use cg_snapshot::{
    BlockChange, CaptureOptions, Event, Host, Operation, Outcome, RestoreOptions, RestoreQueue, TickBudget,
    TickReport,
};

use super::made::{arena, around, captured, catalog, damage, host, region};

/// A host that notes what is done to it.
struct Noting {
    memory: Memory,
    tickets: HashMap<ChunkAt, u32>,
    most_tickets: usize,
    told: Vec<BlockChange>,
    lit: Vec<ChunkAt>,
    saved: Vec<ChunkAt>,
    blocked: Option<ChunkAt>,
}

impl Noting {
    fn new(memory: Memory) -> Self {
        let (tickets, most_tickets) = (HashMap::new(), 0);
        Self {
            memory,
            tickets,
            most_tickets,
            told: Vec::new(),
            lit: Vec::new(),
            saved: Vec::new(),
            blocked: None,
        }
    }

    fn check_ticket(&self, at: ChunkAt) {
        assert!(self.tickets.contains_key(&at), "{at} is worked on without a ticket");
    }
}

impl ChunkSink for Noting {
    type Error = Infallible;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Infallible> {
        self.check_ticket(at);
        assert!(self.lit.is_empty(), "light comes after all blocks");
        self.saved.push(at);
        self.memory.save(at, chunk)
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Infallible> {
        self.check_ticket(at);
        self.memory.delete(at)
    }
}

impl Editor for Noting {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Infallible> {
        self.check_ticket(at);
        self.memory.load(at)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Editor::schema(&self.memory)
    }

    fn entity(&mut self, id: EntityId) -> Result<Option<Entity>, Infallible> {
        Editor::entity(&mut self.memory, id)
    }

    fn put_entity(&mut self, id: EntityId, entity: Entity) -> Result<(), Infallible> {
        self.memory.put_entity(id, entity)
    }

    fn delete_entity(&mut self, id: EntityId) -> Result<(), Infallible> {
        self.memory.delete_entity(id)
    }
}

impl Host for Noting {
    fn take_ticket(&mut self, at: ChunkAt) {
        *self.tickets.entry(at).or_default() += 1;
        self.most_tickets = self.most_tickets.max(self.tickets.len());
    }

    fn release_ticket(&mut self, at: ChunkAt) {
        let count = self.tickets.get_mut(&at).expect("a ticket was taken");
        *count -= 1;
        if *count == 0 {
            self.tickets.remove(&at);
        }
    }

    fn is_ready(&mut self, at: ChunkAt) -> bool {
        self.blocked != Some(at)
    }

    fn changed(&mut self, change: BlockChange) {
        self.told.push(change);
    }

    fn relight(&mut self, at: ChunkAt) -> Result<(), Infallible> {
        self.check_ticket(at);
        self.lit.push(at);
        Ok(())
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
    let mut host = Noting::new(memory);
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
    assert_eq!((host.most_tickets, host.tickets.len()), (3, 0));
    let Some(Outcome::Restored(report)) = handle.outcome() else { panic!("{:?}", handle.outcome()) };
    assert_eq!(report.blocks + report.components, host.told.len() as u64);
    assert_eq!(host.lit, host.saved, "every changed chunk, after all blocks");
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
    let mut host = Noting::new(memory);
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
    assert!(host.tickets.is_empty());
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
    let mut host = Noting::new(memory);
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
    host.blocked = Some(at);
    let budget = TickBudget { time: Duration::from_secs(9), ..TickBudget::default() };
    tick(&mut queue, &mut host, &budget);
    let is_ended = [&before, &restore, &after, &elsewhere].map(|handle| handle.outcome().is_some());
    assert_eq!(is_ended, [false, false, false, true]);
    host.blocked = None;
    tick(&mut queue, &mut host, &budget);
    let snapshot = |handle: &cg_snapshot::Handle| match handle.outcome() {
        Some(Outcome::Captured(snapshot)) => snapshot,
        other => panic!("{other:?}"),
    };
    assert_eq!(snapshot(&before).info().unique_bytes, 576, "with the block of dirt");
    assert_eq!(snapshot(&after).kept(), stone.kept());
    assert!(matches!(restore.outcome(), Some(Outcome::Restored(report)) if report.blocks == 1));
}

#[test]
fn what_cannot_be_done_fails_and_does_not_block_the_rest() {
    let mut host = Noting::new(host(5));
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
