//! Work that can wait, done in slices of a host's tick.

use std::time::{Duration, Instant};

use cg_tiering::{GameClock, GameTick};
use parking_lot::Mutex;

use crate::engine::Engine;
use crate::error::Error;
use crate::world::World;

/// What a tick did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickReport {
    /// The world's time: what the host said, or the later time that it had said before.
    pub now: GameTick,
    /// Opacity tiles into which patches were folded.
    pub tiles_folded: usize,
    /// Whether the budget ended before the work did.
    pub work_left: bool,
}

/// Where maintenance stands between two ticks.
#[derive(Debug, Default)]
pub(crate) struct Maintenance {
    state: Mutex<Progress>,
}

#[derive(Debug, Default)]
struct Progress {
    clock: GameClock,
    /// The key in the opacity map behind which folding goes on.
    folded_up_to: Vec<u8>,
}

impl<E: Engine> World<E> {
    /// Tells the world the time and lets it work for about as long as the budget says.
    ///
    /// Folds opacity patches into their tiles. Exceeds the budget by one tile at most; a tick that comes while another
    /// one runs waits for it. Never called, a world stays right: only its opacity map grows longer to read.
    ///
    /// # Errors
    /// If a row of the opacity map is damaged, or the engine fails.
    pub fn tick(&self, now: GameTick, budget: Duration) -> Result<TickReport, Error> {
        let inner = self.inner();
        inner.check_open()?;
        let deadline = Instant::now() + budget;
        let mut progress = inner.maintenance.state.lock();
        let mut report = TickReport { now: progress.clock.advance(now), tiles_folded: 0, work_left: false };
        loop {
            if Instant::now() >= deadline {
                report.work_left = true;
                return Ok(report);
            }
            if let Some(tile) = inner.fold_next_tile(&progress.folded_up_to)? {
                progress.folded_up_to = tile.to_vec();
                report.tiles_folded += 1;
            } else {
                progress.folded_up_to.clear();
                return Ok(report);
            }
        }
    }

    /// The time that the host last said, and how often it tried to set it back.
    pub fn clock(&self) -> GameClock {
        self.inner().maintenance.state.lock().clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorldOptions;
    use cg_format::chunk::Chunk;
    use cg_format::{ChunkAt, ChunkPos};

    #[test]
    fn a_tick_without_budget_does_nothing_and_says_so() {
        let world = World::temporary(&[], &WorldOptions::default()).unwrap();
        let flat = world.register_dimension("game:flat").unwrap();
        let [stone] = world.register_blocks(["game:stone"]).unwrap();
        world
            .transaction(|tx| {
                for x in 0..3 {
                    let chunk = Chunk::filled(stone, &tx.catalog().current_schema())?;
                    tx.save(ChunkAt::new(flat, ChunkPos::new(x * 4, 0, 0).unwrap()), chunk);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        let before = world.opacity(flat, 64, 3).unwrap();
        assert_eq!(before.runs(), [0..=15]);
        let idle = world.tick(GameTick::new(9), Duration::ZERO).unwrap();
        assert_eq!(idle, TickReport { now: GameTick::new(9), tiles_folded: 0, work_left: true });
        let busy = world.tick(GameTick::new(3), Duration::from_secs(60)).unwrap();
        assert_eq!(busy, TickReport { now: GameTick::new(9), tiles_folded: 3, work_left: false });
        assert_eq!(world.tick(GameTick::new(9), Duration::from_secs(60)).unwrap().tiles_folded, 0);
        assert_eq!(world.opacity(flat, 64, 3).unwrap(), before, "folding changes no answer");
        assert_eq!(world.clock().clamped(), 1);
    }
}
