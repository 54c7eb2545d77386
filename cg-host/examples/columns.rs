//! The cost of a column that is saved and loaded: `cargo run --release --example columns DIR [COLUMNS [SECONDS]]`.
//!
//! Each column has 10 mixed sections of 16 blocks and 14 of one block, as a column of Minecraft has. `hosts/c/bench`
//! measures the same through the C interface, with the same columns and the same names.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_format::CellOrder;
use cg_host::{Binding, Cells, Column, ColumnAt, Form, Host, HostOptions, Known, KnownBlock, Section};
use cg_store::prelude::*;

type Failure = Box<dyn std::error::Error>;

const SECTIONS: i32 = 24;
const MIXED: i32 = 10;
const BLOCKS: u32 = 1000;
const KINDS: u32 = 16;
const FORM: Form = Form { order: CellOrder::Yzx, word_bits: 64, widths: 0 };

struct Bench {
    host: Host,
    binding: Arc<Binding>,
    dimension: Dimension,
    columns: i64,
    limit: Duration,
}

impl Bench {
    fn new(world: World, columns: i64, limit: Duration) -> Result<Self, Failure> {
        let dimension = world.registry().register_dimension("bench:overworld")?;
        let host = Host::new(world, HostOptions::default())?;
        let block = |kind| -> Result<KnownBlock, Failure> {
            let name = Name::new(format!("bench:block[kind={kind}]"))?;
            Ok(KnownBlock { name, is_opaque: true, owns_block_entity: false })
        };
        let binding = host.bind(Known {
            blocks: (0..BLOCKS).map(block).collect::<Result<_, _>>()?,
            biomes: Vec::new(),
            entities: Vec::new(),
            placeholder: 0,
            air: 0,
            biome_placeholder: 0,
            layer_count: 1,
            form: FORM,
            biome_side_log2: 2,
        })?;
        Ok(Self { host, binding, dimension, columns, limit })
    }

    fn at(&self, number: i64) -> ColumnAt {
        let (x, z) = (number % 32, number / 32);
        ColumnAt { dimension: self.dimension, x, z, min_y: -4, max_y: SECTIONS - 5 }
    }

    /// Runs of a kind, of lengths that change with the column.
    fn column(&self, number: i64, seed: u64) -> Column {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let mut column = Column::new(self.at(number));
        for y in 0..SECTIONS {
            let kinds = if y < MIXED { KINDS } else { 1 };
            let palette = (0..kinds).map(|kind| (y.unsigned_abs() * 37 + kind * 3) % BLOCKS).collect();
            let (mut kind, mut left, mut words) = (0, 0, Vec::new());
            for _ in 0..if y < MIXED { 256 } else { 0 } {
                let mut word = 0_u64;
                for place in 0..16 {
                    if left == 0 {
                        state ^= state << 13;
                        state ^= state >> 7;
                        state ^= state << 17;
                        kind = state & u64::from(KINDS - 1);
                        left = 1 + (state >> 8 & 31);
                    }
                    word |= kind << (place * 4);
                    left -= 1;
                }
                words.extend(word.to_le_bytes());
            }
            let bits = if y < MIXED { 4 } else { 0 };
            let (word_bits, order) = (FORM.word_bits, FORM.order);
            let cells = Cells { words, palette: Some(palette), bits, word_bits, order, side_log2: 4 };
            let layers = vec![cells];
            let section = Section { y: y - 4, layers, biomes: None, block_light: None, sky_light: None };
            column.sections.push(section);
        }
        column
    }

    /// Saves all columns, without the time that making them takes. A server keeps its cells, so they are copied, as the
    /// library for C copies them.
    fn save(&mut self, name: &str, seed: u64, is_submitted: bool) -> Result<(), Failure> {
        let (mut spent, mut count) = (Duration::ZERO, 0);
        while count < self.columns && spent < self.limit {
            let kept = self.column(count, seed + count.unsigned_abs());
            let begun = Instant::now();
            let column = kept.clone();
            if is_submitted {
                self.host.submit(&self.binding, column, false)?;
            } else {
                self.host.save(&self.binding, column, false)?;
            }
            spent += begun.elapsed();
            count += 1;
        }
        let begun = Instant::now();
        self.host.flush()?;
        spent += begun.elapsed();
        print(name, spent, count);
        self.columns = count;
        Ok(())
    }

    fn load(&self, name: &str) -> Result<(), Failure> {
        let (begun, mut count) = (Instant::now(), 0);
        while count < self.columns && begun.elapsed() < self.limit {
            let column = self.host.load(&self.binding, self.at(count))?.ok_or("a column is not there")?;
            assert_eq!(column.sections.len(), SECTIONS as usize);
            count += 1;
        }
        print(name, begun.elapsed(), count);
        Ok(())
    }
}

fn print(name: &str, spent: Duration, count: i64) {
    println!("{name:28} {:8.1} us a column ({count} columns)", spent.as_secs_f64() * 1e6 / count as f64);
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: columns DIR [COLUMNS [SECONDS]]")?;
    let columns = arguments.next().map_or(Ok(1024), |count| count.parse())?;
    let seconds: u64 = arguments.next().map_or(Ok(20), |seconds| seconds.parse())?;
    let limit = Duration::from_secs(seconds) / 7;
    let options = WorldOptions::balanced();
    let mut bench = Bench::new(World::builder().options(&options).create(&path)?, columns, limit)?;
    bench.save("save, new", 0, false)?;
    bench.save("save, all changed", 1_000_000, false)?;
    bench.save("save, unchanged", 1_000_000, false)?;
    bench.save("submit, all changed", 2_000_000, true)?;
    bench.load("load, in memory")?;
    bench.host.close()?;
    let columns = bench.columns;
    // The directory is unlocked when the last handle is dropped.
    drop(bench);
    let world = World::builder().options(&options).open(&path)?;
    let bench = Bench::new(world, columns, limit)?;
    bench.load("load, reopened")?;
    bench.load("load, again")?;
    bench.host.close()?;
    Ok(())
}
