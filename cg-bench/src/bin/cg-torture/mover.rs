//! A thread of the worker that moves chunks between tiers and compacts files all the time, so that kills come in the middle.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use cg_store::prelude::*;
use cg_store::tiers::Compaction;
use cg_store::view::Area;
use cg_tiering::{GameTick, PlayerAt};

use crate::subject;

/// Rounds after which the whole world is settled into cold clusters.
const ROUNDS_PER_SETTLING: u64 = 100;

/// Rounds after which a compaction begins; each later round does a step of it.
const ROUNDS_PER_COMPACTION: u64 = 40;

/// The thread; it ends with the value.
pub(crate) struct Mover {
    ends: std::sync::Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    pub(crate) fn start(world: &World) -> Self {
        let ends = std::sync::Arc::new(AtomicBool::new(false));
        let (world, told) = (world.clone(), std::sync::Arc::clone(&ends));
        let thread = std::thread::spawn(move || {
            let mut now = world.tiers().clock().now().get();
            let mut compaction: Option<Compaction<'_>> = None;
            for round in 0_u64.. {
                if told.load(Ordering::Acquire) {
                    return;
                }
                now += 25;
                // A player is in each dimension, near some chunks and far from others; now and then none is.
                let players: Vec<_> = [0, 1]
                    .map(|dimension| subject::at((round / 5 % 24 * 2 + dimension) as u8))
                    .into_iter()
                    .zip([u16::MAX - 1, u16::MAX])
                    .filter(|_| round % 20 != 0)
                    .map(|(at, id)| PlayerAt {
                        id: subject::entity_id(id),
                        dimension: at.dimension,
                        block: at.pos.min_block(),
                    })
                    .collect();
                let ticked = world.tick(GameTick::new(now), &players, Duration::from_millis(2)).map(drop);
                let settled = if round % ROUNDS_PER_SETTLING == ROUNDS_PER_SETTLING - 1 {
                    world.tiers().demote_all(1000, |_| {}).map(drop)
                } else {
                    Ok(())
                };
                let begun = if round % ROUNDS_PER_COMPACTION == ROUNDS_PER_COMPACTION - 1 {
                    world.tiers().compaction(Area::World).map(|begun| compaction = Some(begun))
                } else {
                    Ok(())
                };
                let compacted = begun.and_then(|()| match &mut compaction {
                    Some(begun) => begun.run(Duration::ZERO),
                    None => Ok(false),
                });
                if matches!(compacted, Ok(false)) {
                    compaction = None;
                }
                // Nobody asks what was deleted, so its marks go where they hide nothing.
                let forgotten = world.tiers().purge_tombstones_before(world.last_commit()).map(drop);
                if let Err(error) = ticked.and(settled).and(compacted.map(drop)).and(forgotten) {
                    // The steps will meet it too, and tell the parent.
                    eprintln!("moving failed: {error}");
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
