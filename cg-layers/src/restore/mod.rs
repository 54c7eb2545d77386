//! Restores snapshots into worlds, overlays and segmented worlds within the ticks of a server.
//!
//! `cg-snapshot` captures boxes of blocks and puts them back, and knows no store. A [`StoreHost`] is the host of its
//! [`RestoreQueue`](cg_snapshot::RestoreQueue), and writes into a [`World`](cg_store::World), an
//! [`Overlay`](crate::Overlay) or a [`SegmentedWorld`](crate::SegmentedWorld).
//!
//! - Each step of a restore is one transaction: a chunk and its entities are restored together, or not at all.
//! - Steps commit at the durability of the store. A server that restores within ticks uses `Fast` or `Balanced`.
//! - A step that conflicts with another commit runs again. While the store is busy, steps wait for the next tick.
//! - Chunks are loaded on the store's own threads before their steps.
//! - The queue is in memory. After a crash, submit the operation again: what was restored already is not written again.
//!
//! ```
//! use std::error::Error;
//! use std::sync::Arc;
//! use std::time::Instant;
//!
//! use cg_format::{BlockBox, BlockPos};
//! use cg_layers::restore::StoreHost;
//! use cg_snapshot::{
//!     CaptureOptions, Operation, Outcome, Region, RestoreOptions, RestoreQueue, TickBudget, capture,
//! };
//! use cg_store::prelude::*;
//!
//! fn main() -> Result<(), Box<dyn Error>> {
//!     let world = World::builder().in_memory()?;
//!     let arena = world.registry().register_dimension("game:arena")?;
//!     let [air, stone] = world.registry().register_blocks([":air", "game:stone"])?;
//!     let catalog = world.catalog();
//!     let pos = BlockPos::new(5, 5, 5);
//!     world.transaction(|tx| {
//!         let chunk = Chunk::filled(stone, &catalog.current_schema())?;
//!         tx.save(ChunkAt::new(arena, pos.chunk()), chunk);
//!         Ok::<(), Box<dyn Error>>(())
//!     })?;
//!
//!     // Capture the arena, and play.
//!     let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15));
//!     let options = CaptureOptions::named("arena");
//!     let region = Region::new(arena, area);
//!     let template = world.read_view(|view| Ok::<_, cg_store::Error>(capture(view, &catalog, region, &options)))??;
//!     world.transaction(|tx| tx.set_block(arena, pos, air))?;
//!
//!     // Restore it within the ticks that follow.
//!     let mut queue = RestoreQueue::new();
//!     let restored = queue.handle().submit(Operation::Restore {
//!         snapshot: Arc::new(template),
//!         options: RestoreOptions::default(),
//!         relight: false,
//!     });
//!     let mut host = StoreHost::new(&world, ());
//!     let clock = Instant::now();
//!     while restored.outcome().is_none() {
//!         queue.run(&mut host, &catalog, &TickBudget::default(), || clock.elapsed());
//!     }
//!     assert!(matches!(restored.outcome(), Some(Outcome::Restored(report)) if report.blocks == 1));
//!     let chunk = world.load(ChunkAt::new(arena, pos.chunk()))?.expect("it is stored");
//!     assert_eq!(chunk.block(pos.local()), stone);
//!     Ok(())
//! }
//! ```

mod host;
mod target;
mod tickets;

pub use host::{Observer, StoreHost};
pub use target::{Stopped, Target};
