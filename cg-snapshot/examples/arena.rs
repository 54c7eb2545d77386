//! The cycle of an arena: a template, a match that destroys much of it, and the restore within the ticks of a server that
//! goes on. Prints how long the ticks were.
//!
//! `cargo run --release --package cg-snapshot --example arena`
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, Dimension};
use cg_registry::{BlockOffer, Catalog, Name, Registration};
use cg_snapshot::memory::{Live, Memory, Touch, Watch};
use cg_snapshot::{
    BlockChange, CaptureOptions, Operation, Outcome, Region, RestoreOptions, RestoreQueue, TickBudget,
    capture,
};

const TICK: Duration = Duration::from_millis(50);
const MATCHES: u64 = 3;
const CRATERS: u64 = 60;

/// Counts of the changes that the clients of a game would be sent, whose chunks are in memory.
#[derive(Debug, Default)]
struct Sent {
    blocks: u64,
    lit: u64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut catalog = Catalog::new();
    let offer = |name| Ok::<_, Box<dyn Error>>(BlockOffer::new(Name::new(name)?));
    catalog.register(&Registration {
        blocks: vec![offer(":air")?, offer("game:stone")?, offer("game:planks")?, offer("game:lamp")?],
        dimensions: vec![Name::new("game:arena")?],
        ..Registration::default()
    })?;
    let dimension = catalog.dimension("game:arena").ok_or("registered above")?;
    let area = BlockBox::new(BlockPos::new(-128, 0, -128), BlockPos::new(127, 63, 127));
    let mut game = Live::new(Memory::new(&catalog), Sent::default());
    build(&mut game.memory, dimension)?;

    let began = Instant::now();
    let template =
        capture(&game.memory, &catalog, Region::new(dimension, area), &CaptureOptions::named("arena"))?;
    let info = template.info();
    println!(
        "template: {} sections, {} different, {} bytes, captured in {:.1?}",
        info.section_count,
        info.unique_count,
        template.memory_bytes(),
        began.elapsed()
    );
    let template = Arc::new(template);
    let mut queue = RestoreQueue::new();
    let submit = queue.handle();
    let clock = Instant::now();
    for game_number in 1..=MATCHES {
        let destroyed = play(&mut game.memory, dimension, game_number)?;
        let handle = submit.submit(Operation::Restore {
            snapshot: Arc::clone(&template),
            options: RestoreOptions::default(),
            relight: true,
        });
        game.watch = Sent::default();
        let mut ticks = Vec::new();
        let budget = TickBudget::of_tick(TICK);
        while handle.outcome().is_none() {
            let began = Instant::now();
            queue.run(&mut game, &catalog, &budget, || clock.elapsed());
            let took = began.elapsed();
            ticks.push(took);
            // The rest of the tick belongs to the game.
            thread::sleep(TICK.saturating_sub(took));
        }
        let Some(Outcome::Restored(report)) = handle.outcome() else {
            return Err(format!("{:?}", handle.outcome()).into());
        };
        let longest = ticks.iter().max().copied().unwrap_or_default();
        let total: Duration = ticks.iter().sum();
        println!(
            "match {game_number}: {destroyed} blocks destroyed; {} told, {} of {} sections saved, {} lit; \
             {} ticks, {total:.1?} in all, longest {longest:.1?} of {:.0?}",
            game.watch.blocks,
            report.changed,
            report.sections,
            game.watch.lit,
            ticks.len(),
            budget.time
        );
        assert!(game.tickets().is_empty(), "every ticket was released");
        let now = capture(&game.memory, &catalog, template.region(), &CaptureOptions::named("arena"))?;
        assert_eq!(now, *template, "the arena is what it was");
    }
    Ok(())
}

/// A floor, walls, and houses with lamps.
fn build(world: &mut Memory, dimension: Dimension) -> Result<(), Box<dyn Error>> {
    let [air, stone, planks, lamp] = [0, 1, 2, 3].map(BlockId::new);
    let mut fill = |from: [i64; 3], to: [i64; 3], block| {
        let corner = |[x, y, z]: [i64; 3]| BlockPos::new(x, y, z);
        world.fill(dimension, BlockBox::new(corner(from), corner(to)), block)
    };
    fill([-128, 0, -128], [127, 63, 127], air)?;
    fill([-128, 0, -128], [127, 12, 127], stone)?;
    for x in (-120_i64..120).step_by(24) {
        for z in (-120_i64..120).step_by(20) {
            let height = 18 + (x * 7 + z * 3).rem_euclid(17);
            fill([x, 13, z], [x + 9, height, z + 9], planks)?;
            fill([x + 1, 14, z + 1], [x + 8, height - 1, z + 8], air)?;
            fill([x + 4, 14, z + 4], [x + 4, 14, z + 4], lamp)?;
        }
    }
    Ok(())
}

/// Blows craters at places that look random; how many blocks are gone.
fn play(world: &mut Memory, dimension: Dimension, seed: u64) -> Result<u64, Box<dyn Error>> {
    let mut bits = seed;
    let mut below = |end: u64| {
        bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        ((bits >> 33) % end) as i64
    };
    let mut gone = 0;
    for _ in 0..CRATERS {
        let (x, y, z, radius) = (below(240) - 120, below(16) + 8, below(240) - 120, below(6) + 4);
        for dx in -radius..=radius {
            for dy in -radius..=radius {
                for dz in -radius..=radius {
                    let pos = BlockPos::new(x + dx, (y + dy).max(1), z + dz);
                    if dx * dx + dy * dy + dz * dz <= radius * radius {
                        let old = world.set_block(dimension, pos, BlockId::new(0))?;
                        gone += u64::from(old.is_some_and(|old| old.get() != 0));
                    }
                }
            }
        }
    }
    Ok(gone)
}

impl Watch for Sent {
    fn touch(&mut self, touch: Touch, _: ChunkAt, _: u32) {
        self.lit += u64::from(touch == Touch::Relight);
    }

    fn changed(&mut self, _: BlockChange) {
        self.blocks += 1;
    }
}
