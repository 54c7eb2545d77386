//! Regions put back within the ticks of a server: how many ticks took more than they may.

use std::cell::LazyCell;
use std::convert::Infallible;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSink, Editor, EntityId, SchemaView};
use cg_snapshot::memory::Memory;
use cg_snapshot::{BlockChange, Host, Operation, Outcome, RestoreOptions, RestoreQueue, TickBudget};
use criterion::Criterion;

use super::arena::Arena;

/// A server's memory, which counts what it is told.
struct Server {
    memory: Memory,
    told: u64,
    tickets: u64,
}

/// What the ticks of one or more restores took.
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
                    let mut server = Server { memory: damaged.clone(), told: 0, tickets: 0 };
                    let before = ticks.spent;
                    restore(&arena, &mut server, &mut ticks);
                    assert!(server.told >= blocks && server.tickets == 0, "{} of {blocks}", server.told);
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

fn restore(arena: &Arena, server: &mut Server, ticks: &mut Ticks) {
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

impl ChunkSink for Server {
    type Error = Infallible;

    fn save(&mut self, at: ChunkAt, chunk: Arc<Chunk>) -> Result<(), Infallible> {
        self.memory.save(at, chunk)
    }

    fn delete(&mut self, at: ChunkAt) -> Result<(), Infallible> {
        self.memory.delete(at)
    }
}

impl Editor for Server {
    fn load(&mut self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Infallible> {
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

impl Host for Server {
    fn take_ticket(&mut self, _: ChunkAt) {
        self.tickets += 1;
    }

    fn release_ticket(&mut self, _: ChunkAt) {
        self.tickets -= 1;
    }

    fn changed(&mut self, change: BlockChange) {
        black_box(change);
        self.told += 1;
    }

    fn relight(&mut self, _: ChunkAt) -> Result<(), Infallible> {
        Ok(())
    }
}
