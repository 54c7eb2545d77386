//! What waits in a queue: within the budget, and for what it meets where it will work.

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
    assert_eq!(tickets, [(at(place), 1)], "the capture waits behind the restore");
    host.watch.0 = None;
    queue.run(&mut host, &there, &TickBudget::default(), clock());
    let Some(Outcome::Captured(snapshot)) = after.outcome() else { panic!("{after:?}") };
    assert_eq!(snapshot.info().present_count, 1, "what the restore put back");
}
