//! A copy of a region is read within the budget of a tick, and captured on another thread as the region itself is.

use std::sync::Arc;
use std::time::Duration;

use cg_format::chunk::Chunk;
use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, ChunkSource as _, Editor as _, Lookup};
use cg_registry::Catalog;
use cg_snapshot::memory::{Live, Memory, Touch, Watch};
use cg_snapshot::{
    CaptureOptions, Contents, Copied, Handle, Operation, Outcome, RestoreQueue, Snapshot, TickBudget, capture,
};

use super::made::{arena, around, captured, catalog, host, region};

/// A host that notes which chunks are read without a ticket, and how often chunks are written.
#[derive(Debug, Default)]
struct Reads {
    without_ticket: u32,
    writes: u32,
}

impl Watch for Reads {
    fn touch(&mut self, touch: Touch, _: ChunkAt, tickets: u32) {
        self.without_ticket += u32::from(tickets == 0);
        self.writes += u32::from(touch != Touch::Load);
    }
}

/// A part of [`around`] whose sides cut chunks.
fn cut() -> BlockBox {
    BlockBox::new(BlockPos::new(-25, -9, -16), BlockPos::new(20, 15, 17))
}

/// A clock that goes on by 5 ms at each look: the time of a section.
fn clock() -> impl FnMut() -> Duration {
    let mut now = 0;
    move || {
        now += 5;
        Duration::from_millis(now)
    }
}

fn all() -> TickBudget {
    TickBudget { time: Duration::from_secs(9), ..TickBudget::default() }
}

fn one() -> TickBudget {
    TickBudget { sections: 1, concurrent_chunks: 4, ..all() }
}

fn copied(handle: &Handle) -> Arc<Copied> {
    match handle.outcome() {
        Some(Outcome::Copied(copied)) => copied,
        other => panic!("{other:?}"),
    }
}

/// The whole of a region, in one tick.
fn copy(memory: Memory, area: BlockBox) -> Arc<Copied> {
    let (mut queue, mut host) = (RestoreQueue::new(), Live::new(memory, Reads::default()));
    let handle = queue.handle().submit(Operation::Copy { region: region(area) });
    queue.run(&mut host, &catalog(), &all(), clock());
    copied(&handle)
}

/// A capture of a copy, on another thread.
fn elsewhere(copied: Arc<Copied>, options: &CaptureOptions) -> Snapshot {
    let options = options.clone();
    let capture = move || capture(&*copied, &catalog(), copied.region(), &options).expect("it never fails");
    std::thread::spawn(capture).join().expect("no panic")
}

#[test]
fn a_copy_is_captured_as_its_region_is() {
    for seed in 0..12 {
        let host = host(seed);
        for area in [around(), cut()] {
            for contents in [Contents::ALL, Contents::BLOCKS] {
                let options = CaptureOptions { contents, ..CaptureOptions::named("made") };
                let direct = capture(&host, &catalog(), region(area), &options).expect("it never fails");
                let copied = copy(host.clone(), area);
                assert_eq!(elsewhere(copied, &options), direct, "seed {seed}, {area:?}, {contents:?}");
            }
        }
    }
}

#[test]
fn a_copy_takes_as_many_ticks_as_its_budget_says() {
    let memory = host(5);
    let direct = captured(&memory, around());
    let (mut queue, mut host) = (RestoreQueue::new(), Live::new(memory, Reads::default()));
    let handle = queue.handle().submit(Operation::Copy { region: region(around()) });
    let budget = TickBudget { concurrent_chunks: 3, ..TickBudget::default() };
    let mut reports = Vec::new();
    while handle.outcome().is_none() {
        reports.push(queue.run(&mut host, &catalog(), &budget, clock()));
        assert!(reports.len() < 100, "it ends");
    }
    // Six sections of 5 ms fit into 30 ms.
    let sections: Vec<u64> = reports.iter().map(|report| report.sections).collect();
    assert_eq!(sections, [6, 6, 6, 6, 0], "the tick was full when the last section was read");
    assert!(reports.iter().all(|report| report.spent <= Duration::from_millis(35)), "{reports:?}");
    assert_eq!((handle.progress().done, handle.progress().total), (24, 24));
    assert_eq!((host.most_chunks(), host.tickets().len()), (3, 0));
    assert_eq!((host.watch.without_ticket, host.watch.writes), (0, 0));
    assert_eq!(elsewhere(copied(&handle), &CaptureOptions::named("made")), direct);
}

/// Four chunks of stone in a row.
fn row(catalog: &Catalog) -> (Live<Reads>, BlockBox) {
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(63, 15, 15));
    let mut memory = Memory::new(catalog);
    memory.fill(arena(catalog), area, BlockId::new(1)).expect("known");
    (Live::new(memory, Reads::default()), area)
}

fn at(x: i64) -> ChunkAt {
    ChunkAt::new(arena(&catalog()), BlockPos::new(16 * x, 0, 0).chunk())
}

fn chunk(host: &mut Live<Reads>, x: i64) -> Arc<Chunk> {
    host.memory.load(at(x)).unwrap_or_else(|never| match never {}).expect("it is there")
}

fn dig(host: &mut Live<Reads>, x: i64) {
    let pos = BlockPos::new(16 * x + 5, 5, 5);
    host.memory.set_block(arena(&catalog()), pos, BlockId::new(2)).expect("known");
}

#[test]
fn a_copy_shares_the_chunks_of_the_host_and_stays_as_it_is() {
    let (mut host, area) = row(&catalog());
    let template = captured(&host.memory, area);
    let copied = copy(host.memory.clone(), area);
    for x in 0..4 {
        let Ok(Lookup::Found(shared)) = copied.lookup(at(x)) else { panic!("{x}") };
        assert!(Arc::ptr_eq(&shared, &chunk(&mut host, x)), "{x}");
        dig(&mut host, x);
    }
    let outside = [at(4), at(-1), ChunkAt { dimension: cg_format::Dimension::new(7), ..at(0) }];
    assert!(outside.into_iter().all(|at| copied.lookup(at) == Ok(Lookup::NotFound)));
    assert_eq!(elsewhere(copied, &CaptureOptions::named("made")), template);
}

#[test]
fn a_copy_that_is_cancelled_leaves_nothing() {
    let (mut host, area) = row(&catalog());
    let mut queue = RestoreQueue::new();
    let handle = queue.handle().submit(Operation::Copy { region: region(area) });
    for _ in 0..2 {
        queue.run(&mut host, &catalog(), &one(), clock());
    }
    // A change that was announced, so that the operation keeps what was there.
    queue.before_change(&mut host.memory, at(3)).unwrap_or_else(|never| match never {});
    let holders = |host: &mut Live<Reads>| [0, 1, 2, 3].map(|x| Arc::strong_count(&chunk(host, x)));
    assert_eq!(holders(&mut host), [3, 3, 2, 3], "the host, this call, and the copy");
    assert_eq!(host.tickets().len(), 2, "the next chunks");
    handle.cancel();
    let report = queue.run(&mut host, &catalog(), &one(), clock());
    assert_eq!((report.sections, report.ended, report.left), (0, 1, 0));
    assert_eq!(handle.outcome(), Some(Outcome::Cancelled(2)));
    assert_eq!(holders(&mut host), [2; 4]);
    assert!(host.tickets().is_empty());
}

#[test]
fn a_copy_is_of_one_state_if_changes_are_announced_and_else_of_one_for_each_section() {
    let (mut host, area) = row(&catalog());
    let before = captured(&host.memory, area);
    let mut queue = RestoreQueue::new();
    let [announced, silent] = [true, false].map(|is_announced| {
        let handle = queue.handle().submit(Operation::Copy { region: region(area) });
        queue.run(&mut host, &catalog(), &one(), clock());
        // One chunk that was read, and one that was not.
        for x in [0, 2] {
            if is_announced {
                queue.before_change(&mut host.memory, at(x)).unwrap_or_else(|never| match never {});
            }
            dig(&mut host, x);
        }
        queue.run(&mut host, &catalog(), &all(), clock());
        let copied = copied(&handle);
        if is_announced {
            for x in [0, 2] {
                let pos = BlockPos::new(16 * x + 5, 5, 5);
                host.memory.set_block(arena(&catalog()), pos, BlockId::new(1)).expect("known");
            }
        }
        elsewhere(copied, &CaptureOptions::named("made"))
    });
    assert_eq!(announced, before);
    let (mut mixed, _) = row(&catalog());
    dig(&mut mixed, 2);
    assert_eq!(
        silent,
        captured(&mixed.memory, area),
        "chunk 0 from before its change, chunk 2 from after it"
    );
}

#[test]
fn a_region_that_no_snapshot_holds_is_not_copied() {
    let (mut host, _) = row(&catalog());
    let mut queue = RestoreQueue::new();
    let far = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(1 << 20, 1 << 20, 0));
    let handle = queue.handle().submit(Operation::Copy { region: region(far) });
    queue.run(&mut host, &catalog(), &all(), clock());
    let why = "the box has 4295098369 sections of 16³ blocks, a snapshot holds at most 16777216";
    assert_eq!(handle.outcome(), Some(Outcome::Failed(why.into())));
    assert_eq!(host.tickets().len(), 0);
}
