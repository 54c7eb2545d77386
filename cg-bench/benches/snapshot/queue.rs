//! Regions put back within the ticks of a server: how many ticks took more than they may.

use std::cell::LazyCell;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_snapshot::memory::{Live, Watch};
use cg_snapshot::{BlockChange, Operation, Outcome, RestoreOptions, RestoreQueue, TickBudget};
use criterion::Criterion;

use super::arena::Arena;

/// How many changed blocks a server is told.
#[derive(Debug, Default)]
struct Told(u64);

/// Durations of the ticks of one or more restores.
#[derive(Debug, Default)]
struct Ticks {
    count: u64,
    over: u64,
    longest: Duration,
    spent: Duration,
}

/// One iteration is a whole restore; its time is that of all its ticks together.
pub(super) fn restoring(criterion: &mut Criterion) {
    let arena = LazyCell::new(Arena::generated);
    let mut group = criterion.benchmark_group("snapshot: restore by a queue");
    group.sample_size(10).measurement_time(Duration::from_secs(5)).warm_up_time(Duration::from_secs(1));
    for (damage, percent) in super::CASES {
        let name = super::case(damage, percent);
        let mut ticks = Ticks::default();
        group.bench_function(&name, |bench| {
            let (damaged, blocks) = arena.damaged(damage, percent);
            bench.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                for _ in 0..iterations {
                    let mut server = Live::new(damaged.clone(), Told::default());
                    let before = ticks.spent;
                    restore(&arena, &mut server, &mut ticks);
                    let Told(told) = server.watch;
                    assert!(told >= blocks && server.tickets().is_empty(), "{told} of {blocks}");
                    spent += ticks.spent.saturating_sub(before);
                }
                spent
            });
        });
        let Ticks { count, over, longest, .. } = ticks;
        let budget = TickBudget::default().time;
        if count > 0 {
            eprintln!(
                "{name}: {over} of {count} ticks over the budget of {budget:?}, the longest {longest:?}"
            );
        }
    }
    group.finish();
}

fn restore(arena: &Arena, server: &mut Live<Told>, ticks: &mut Ticks) {
    let (mut queue, budget, epoch) = (RestoreQueue::new(), TickBudget::default(), Instant::now());
    let handle = queue.handle().submit(Operation::Restore {
        snapshot: Arc::clone(&arena.snapshot),
        options: RestoreOptions::default(),
        relight: false,
    });
    while handle.outcome().is_none() {
        let began = Instant::now();
        queue.run(server, &arena.catalog, &budget, || epoch.elapsed());
        let took = began.elapsed();
        ticks.count += 1;
        ticks.over += u64::from(took > budget.time);
        ticks.longest = ticks.longest.max(took);
        ticks.spent += took;
    }
    assert!(matches!(handle.outcome(), Some(Outcome::Restored(_))), "{handle:?}");
}

impl Watch for Told {
    fn changed(&mut self, change: BlockChange) {
        black_box(change);
        self.0 += 1;
    }
}
