//! A server whose matches are played in arenas. Matches end, are renewed or are forgotten, and the server crashes once. The
//! ticks clean up within their budget.
//!
//! `cargo run --release --package cg-layers --example leases`
#![allow(clippy::print_stdout, reason = "that is what it is for")]

use std::error::Error;
use std::time::Duration;

use cg_format::{BlockPos, ChunkAt, ChunkPos};
use cg_layers::{ArenaPolicy, ArenaReport, Arenas, Overlay};
use cg_store::prelude::*;
use cg_tiering::GameTick;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A match takes a minute, unless its holder renews the lease. After a crash there are ten seconds to resume it.
const POLICY: ArenaPolicy = ArenaPolicy {
    end_after_ticks: Some(60 * GameTick::PER_SECOND),
    reclaim_after_ticks: Some(10 * GameTick::PER_SECOND),
    remove_after_ticks: Some(120 * GameTick::PER_SECOND),
};
const BUDGET: Duration = Duration::from_millis(2);

fn main() -> Result<()> {
    let template = World::builder().in_memory()?;
    let dimension = template.registry().register_dimension("game:arena")?;
    let [air, stone] = template.registry().register_blocks([":air", "game:stone"])?;
    let at = ChunkAt::new(dimension, ChunkPos::new(0, 0, 0)?);
    template.transaction(|tx| {
        let empty = tx.new_chunk(air)?;
        tx.save(at, empty);
        Ok::<_, Box<dyn Error>>(())
    })?;
    let play = |arena: &Overlay<World>| {
        arena.transaction(|tx| tx.set_block(dimension, BlockPos::new(1, 2, 3), stone)).map(drop)
    };

    let dir = tempfile::tempdir()?;
    let arenas = Arenas::create(dir.path(), template.clone(), &WorldOptions::ephemeral())?;
    let long = arenas.lease("a long match", GameTick::new(0))?;
    let forgotten = arenas.lease("a match that is never released", GameTick::new(0))?;
    play(&long)?;
    play(&forgotten)?;
    long.renew(GameTick::new(1000))?;
    let report = run(&arenas, 0..=1200)?;
    println!("after a minute: {report:?}");
    assert!(report.ended == 1 && report.rows_swept > 0);
    assert!(play(&forgotten).is_err(), "its arena was given back");

    // The server stops, and the long match is not resumed.
    drop((long, forgotten, arenas));
    let arenas = Arenas::open(dir.path(), template, &WorldOptions::ephemeral())?;
    let report = run(&arenas, 1201..=1500)?;
    println!("after the restart: {report:?}");
    assert!(report.reclaimed == 1 && report.rows_swept > 0);
    let report = run(&arenas, 1501..=4000)?;
    println!("two minutes later: {report:?}");
    assert_eq!((report.removed, arenas.list().len()), (2, 0));
    Ok(())
}

/// Ticks, and sums up what they did.
fn run(arenas: &Arenas<World>, ticks: impl Iterator<Item = u64>) -> Result<ArenaReport> {
    let mut sum = ArenaReport::default();
    for now in ticks {
        let report = arenas.tick(GameTick::new(now), &POLICY, BUDGET)?;
        sum.ended += report.ended;
        sum.reclaimed += report.reclaimed;
        sum.removed += report.removed;
        sum.rows_swept += report.rows_swept;
    }
    Ok(sum)
}
