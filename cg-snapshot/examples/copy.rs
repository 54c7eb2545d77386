//! A game whose chunks are in memory saves a region while it runs: the tick thread copies, and another thread encodes
//! and writes the file. The game digs meanwhile. Prints how long the ticks were, beside a capture on the tick thread.
//!
//! `cargo run --release --package cg-snapshot --example copy`
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;
use std::fs;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, Dimension};
use cg_registry::{BlockOffer, Catalog, Name, Registration};
use cg_snapshot::file::{FileOptions, SnapshotFile};
use cg_snapshot::memory::{Live, Memory, Watch};
use cg_snapshot::{
    CaptureOptions, Copied, Handle, Operation, Outcome, Region, RestoreQueue, Snapshot, TickBudget,
    Unverifiable, capture,
};

type Failure = Box<dyn Error + Send + Sync>;

/// Half a millisecond of a tick.
const BUDGET: TickBudget =
    TickBudget { time: Duration::from_micros(500), sections: usize::MAX, concurrent_chunks: 64 };

/// A game that does nothing with changes.
struct Quiet;

impl Watch for Quiet {}

fn main() -> Result<(), Failure> {
    let mut catalog = Catalog::new();
    catalog.register(&Registration {
        blocks: [":air", "game:stone", "game:ore"]
            .map(|name| Ok::<_, Failure>(BlockOffer::new(Name::new(name)?)))
            .into_iter()
            .collect::<Result<_, _>>()?,
        dimensions: vec![Name::new("game:land")?],
        ..Registration::default()
    })?;
    let land = catalog.dimension("game:land").ok_or("registered above")?;
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(255, 127, 255));
    let region = Region::new(land, area);
    let mut game = Live::new(Memory::new(&catalog), Quiet);
    build(&mut game.memory, land, area)?;
    let options = CaptureOptions::named("land");
    let before = capture(&game.memory, &catalog, region, &options)?;

    // On the tick thread alone.
    let captured = play(&mut game, &catalog, "captured", Operation::Capture { region, options })?;
    let Some(Outcome::Captured(captured)) = captured.outcome() else { return Err("it was captured".into()) };
    assert_eq!(*captured, before, "the state at the beginning: the game announces its changes");
    let before = capture(&game.memory, &catalog, region, &CaptureOptions::named("land"))?;

    // The tick thread copies, and another one does the rest.
    let copied = play(&mut game, &catalog, "copied", Operation::Copy { region })?;
    let Some(Outcome::Copied(copied)) = copied.outcome() else { return Err("it was copied".into()) };
    let (dir, catalog) = (std::env::temp_dir(), Arc::new(catalog));
    let path = dir.join(format!("copy-{}.cgsnap", std::process::id()));
    let saving = thread::spawn({
        let (path, catalog) = (path.clone(), Arc::clone(&catalog));
        move || save(&copied, &catalog, &path)
    });
    // The game goes on here. Then it reads the file back.
    let took = saving.join().map_err(|_| "the thread panicked")??;
    let mut file = SnapshotFile::open(fs::File::open(&path)?, cg_format::Limits::default())?;
    let snapshot: Snapshot = file.load(Unverifiable::Fail)?;
    fs::remove_file(&path)?;
    println!("encoded and written in {took:.1?} on another thread");
    assert_eq!(snapshot, before, "the state at the beginning");
    Ok(())
}

/// Encodes a copy and writes it.
fn save(copied: &Copied, catalog: &Catalog, path: &std::path::Path) -> Result<Duration, Failure> {
    let began = Instant::now();
    let snapshot = capture(copied, catalog, copied.region(), &CaptureOptions::named("land"))?;
    fs::write(path, snapshot.to_bytes(&FileOptions::default())?)?;
    Ok(began.elapsed())
}

/// Ticks until an operation has ended. In each tick the game digs, and says so before.
fn play(
    game: &mut Live<Quiet>,
    catalog: &Catalog,
    done: &str,
    operation: Operation,
) -> Result<Handle, Failure> {
    let (mut queue, clock) = (RestoreQueue::new(), Instant::now());
    let handle = queue.handle().submit(operation);
    let mut ticks: Vec<Duration> = Vec::new();
    while handle.outcome().is_none() {
        let began = Instant::now();
        queue.run(game, catalog, &BUDGET, || clock.elapsed());
        ticks.push(began.elapsed());
        let pos = BlockPos::new(5 * ticks.len() as i64 % 256, 60, 255 - 3 * ticks.len() as i64 % 256);
        let land = catalog.dimension("game:land").ok_or("registered")?;
        queue.before_change(&mut game.memory, ChunkAt::new(land, pos.chunk()))?;
        game.memory.set_block(land, pos, BlockId::new(0))?;
    }
    let longest = ticks.iter().max().copied().unwrap_or_default();
    let total: Duration = ticks.iter().sum();
    let sections = handle.progress().done;
    println!(
        "{sections} sections {done} in {} ticks, {total:.1?} in all, longest {longest:.1?}",
        ticks.len()
    );
    Ok(handle)
}

/// Stone with ore in it, and air above.
fn build(memory: &mut Memory, land: Dimension, area: BlockBox) -> Result<(), Failure> {
    memory.fill(land, area, BlockId::new(0))?;
    let top = BlockPos::new(area.max().x, 63, area.max().z);
    memory.fill(land, BlockBox::new(area.min(), top), BlockId::new(1))?;
    for number in 0..20_000_i64 {
        let pos = BlockPos::new(number * 31 % 256, number * 17 % 64, number * 57 % 256);
        memory.set_block(land, pos, BlockId::new(2))?;
    }
    Ok(())
}
