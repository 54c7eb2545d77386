//! Chunks in every tier: reading them, moving them, and saving beside that.
//!
//! | group | reference | what is allowed |
//! |---|---|---|
//! | `tiers: chunks of a box` | RocksDB fetches the same rows, and what was asked for is decoded | 1.3 × |
//! | `tiers: blocks of a box` | the same, and every block is looked up and put into the array | 1.3 × |
//! | `tiers: load one chunk` | RocksDB fetches the row that has it, which is decoded | not stated |
//! | `tiers: move` | RocksDB reads the rows that go and writes the rows that come, compressing nothing | not stated |
//! | `tiers: p99 of a save` | the same saves while no chunk moves | not stated |
//!
//! *Cold* is a world that was just opened: nothing is in RocksDB's caches, but the files are in the system's. *Warm* has
//! RocksDB's caches full. No chunk is in the world's own memory in either.

mod moves;
mod reads;
mod saves;

use std::time::Duration;

use cg_bench::stored::Stored;
use cg_format::Tier;
use criterion::Criterion;

fn main() {
    let config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(3));
    let mut criterion = config.warm_up_time(Duration::from_millis(300)).configure_from_args();
    // One world in each tier, for all groups: to make them takes longer than most groups.
    let worlds = Tier::ALL.map(Stored::in_tier);
    reads::boxes(&mut criterion, &worlds);
    reads::single(&mut criterion, &worlds);
    moves::moves(&mut criterion, &worlds);
    // The last, as it changes its world.
    let [hot, ..] = &worlds;
    saves::saves(&mut criterion, hot);
    criterion.final_summary();
}
