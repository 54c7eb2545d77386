//! Operations that wait in a queue: within the budget, and for what they meet where they will work.

use std::sync::Arc;
use std::time::Duration;

use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt};
use cg_registry::{Catalog, Name, Registration};
use cg_snapshot::memory::{Live, Memory, Watch};
use cg_snapshot::{CaptureOptions, Operation, Outcome, Region, RestoreOptions, RestoreQueue, TickBudget};

use super::made::{arena, captured, catalog, region};

/// A host of which one chunk cannot be worked on.
#[derive(Debug, Default)]
struct Blocked(Option<ChunkAt>);

impl Watch for Blocked {
    fn is_ready(&mut self, at: ChunkAt) -> bool {
        self.0 != Some(at)
    }
}

/// A clock that goes on by 5 ms at each look.
fn clock() -> impl FnMut() -> Duration {
    let mut now = Duration::ZERO;
    move || {
        now += Duration::from_millis(5);
        now
    }
}

#[test]
fn operations_that_end_at_once_are_in_the_budget_too() {
    let catalog = catalog();
    let mut host = Live::new(Memory::new(&catalog), Blocked::default());
    let mut queue = RestoreQueue::new();
    let far = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(1 << 20, 1 << 20, 0));
    for _ in 0..20 {
        queue
            .handle()
            .submit(Operation::Capture { region: region(far), options: CaptureOptions::named("x") });
    }
    let mut tick = || {
        let report = queue.run(&mut host, &catalog, &TickBudget::default(), clock());
        (report.ended, report.left)
    };
    // Each takes one look at the clock, and one begins at 30 of 30 ms.
    assert_eq!([tick(), tick(), tick(), tick()], [(7, 13), (7, 6), (6, 0), (0, 0)]);
}

#[test]
fn a_restore_meets_others_in_a_dimension_that_was_registered_while_it_waited() {
    let home = catalog();
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15));
    let mut memory = Memory::new(&home);
    memory.fill(arena(&home), area, BlockId::new(1)).expect("known");
    let template = Arc::new(captured(&memory, area));

    // Where it is restored, number 0 is another dimension, and the arena is not there yet.
    let mut there = Catalog::new();
    let moon = Name::new("mod:moon").expect("a name");
    there.register(&Registration { dimensions: vec![moon], ..Registration::default() }).expect("new names");
    there.register(&template.names().registration(&there)).expect("new names");
    let mut host = Live::new(Memory::new(&there), Blocked::default());
    let mut queue = RestoreQueue::new();
    let at = |region: Region| ChunkAt::new(region.dimension(), area.min().chunk());
    let moon = Region::new(template.region().dimension(), area);
    host.watch.0 = Some(at(moon));
    let first = queue.handle().submit(Operation::Relight { region: moon });
    let restore = queue.handle().submit(Operation::Restore {
        snapshot: Arc::clone(&template),
        options: RestoreOptions::default(),
        relight: false,
    });
    queue.run(&mut host, &there, &TickBudget::default(), clock());
    assert_eq!([first.outcome(), restore.outcome()], [None, None]);

    there.register(&template.registration(&there)).expect("the dimension");
    let place = Region::new(arena(&there), area);
    assert!(place.dimension() != moon.dimension());
    let after =
        queue.handle().submit(Operation::Capture { region: place, options: CaptureOptions::named("after") });
    host.watch.0 = Some(at(place));
    queue.run(&mut host, &there, &TickBudget::default(), clock());
    assert_eq!(first.outcome(), Some(Outcome::Relit(1)));
    assert_eq!([restore.outcome(), after.outcome()], [None, None]);
    let tickets: Vec<_> = host.tickets().iter().map(|(at, count)| (*at, *count)).collect();
    assert_eq!(tickets, [(at(place), 1)], "the capture waits after the restore");
    host.watch.0 = None;
    queue.run(&mut host, &there, &TickBudget::default(), clock());
    let Some(Outcome::Captured(snapshot)) = after.outcome() else { panic!("{after:?}") };
    assert_eq!(snapshot.info().present_count, 1, "what the restore put back");
}

/// One chunk of a large operation is not loaded for long; what others need is not kept from them.
#[test]
fn an_operation_that_waits_leaves_tickets_to_others() {
    let catalog = catalog();
    let cubes = |from: i64, count: i64| {
        BlockBox::new(BlockPos::new(from * 16, 0, 0), BlockPos::new((from + count) * 16 - 1, 15, 15))
    };
    let mut memory = Memory::new(&catalog);
    memory.fill(arena(&catalog), cubes(0, 100), BlockId::new(1)).expect("known");
    let mut host = Live::new(memory, Blocked::default());
    let mut queue = RestoreQueue::new();
    let capture = |area| Operation::Capture { region: region(area), options: CaptureOptions::named("x") };
    let at = |x: i64| ChunkAt::new(arena(&catalog), BlockPos::new(x * 16, 0, 0).chunk());
    let budget = TickBudget { concurrent_chunks: 8, time: Duration::from_secs(1), ..TickBudget::default() };
    host.watch.0 = Some(at(3));
    let large = queue.handle().submit(capture(cubes(0, 40)));
    queue.run(&mut host, &catalog, &budget, clock());
    assert_eq!((large.progress().done, host.tickets().len()), (3, 8), "it may take all");

    // One after the other, and one that waits as well, for nothing that would ever come.
    let small = [50, 55].map(|x| queue.handle().submit(capture(cubes(x, 5))));
    let also = queue.handle().submit(Operation::Relight { region: region(cubes(0, 1)) });
    queue.run(&mut host, &catalog, &budget, clock());
    for small in small {
        let Some(Outcome::Captured(snapshot)) = small.outcome() else { panic!("{small:?}") };
        assert_eq!(snapshot.info().present_count, 5);
    }
    assert_eq!((also.outcome(), large.progress().done), (None, 3), "it meets the one that waits");
    assert!(host.tickets().contains_key(&at(3)) && host.most_chunks() == 8, "{:?}", host.tickets());

    host.watch.0 = None;
    for _ in 0..40 {
        queue.run(&mut host, &catalog, &budget, clock());
    }
    let Some(Outcome::Captured(snapshot)) = large.outcome() else { panic!("{large:?}") };
    assert_eq!((snapshot.info().section_count, snapshot.info().present_count), (40, 40));
    assert_eq!((also.outcome(), host.tickets().len()), (Some(Outcome::Relit(1)), 0));

    // What is cancelled gives back what it has, and no more.
    host.watch.0 = Some(at(0));
    let large = queue.handle().submit(capture(cubes(0, 40)));
    queue.run(&mut host, &catalog, &budget, clock());
    let small = queue.handle().submit(capture(cubes(50, 1)));
    queue.run(&mut host, &catalog, &budget, clock());
    assert!(small.outcome().is_some());
    large.cancel();
    queue.run(&mut host, &catalog, &budget, clock());
    assert!(host.tickets().is_empty());
}
