//! Workloads that write.

use std::collections::BTreeMap;

use cg_bench::order::shuffle;

use super::bench::{Bench, Contents, loaded_copy};
use crate::columns::Column;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::meter::Meter;
use crate::place::{HEIGHT, Place};
use crate::subject::Until;

/// Calls in a row, after which the store may write what it has accepted: what an autosave does in a tick.
const BURST: usize = 32;
/// How many times as long as others a workload goes on whose single calls may take long.
const PATIENCE: u32 = 2;

/// New columns, until the store is closed and everything is on the disk.
pub(super) fn new_columns(bench: &Bench<'_>, contents: Contents) -> Result<Figures, Failure> {
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| bench.create())?;
    for at in bench.places() {
        let column = contents.at(bench.columns, at);
        meter.call(|| store.save(at, column, Until::Submitted))?;
        meter.saved(column.len_bytes());
    }
    meter.work(0, || {
        store.sync()?;
        store.close()
    })?;
    bench.end(meter, bench.places().into_iter().map(|at| (at, contents.at(bench.columns, at))))
}

/// Every stored column with another block in each chunk.
fn changed(bench: &Bench<'_>) -> Result<BTreeMap<Place, Column>, Failure> {
    let places = bench.places().into_iter();
    places.map(|at| Ok((at, bench.columns.changed_at(at, bench.seed)?))).collect()
}

/// All chunks of all columns changed, until everything is on the disk.
pub(super) fn changed_until_synced(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let changed = changed(bench)?;
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    for (at, column) in &changed {
        meter.call(|| store.save(*at, column, Until::Submitted))?;
        meter.saved(column.len_bytes());
    }
    meter.work(0, || store.sync())?;
    store.close()?;
    bench.end(meter, changed.iter().map(|(at, column)| (*at, column)))
}

/// Changed columns; only the calls are timed, in bursts between which the store can write.
pub(super) fn calls(bench: &Bench<'_>, until: Until) -> Result<Figures, Failure> {
    let changed = changed(bench)?;
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    for (number, (at, column)) in changed.iter().enumerate() {
        meter.call(|| store.save(*at, column, until))?;
        meter.saved(column.len_bytes());
        if number % BURST == BURST - 1 {
            store.sync()?;
        }
    }
    store.close()?;
    bench.end(meter, changed.iter().map(|(at, column)| (*at, column)))
}

/// Saves the stored content again from other memory, each column synced.
pub(super) fn equal(bench: &Bench<'_>, contents: Contents) -> Result<Figures, Failure> {
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, contents))?;
    for at in bench.places() {
        let column = contents.at(bench.columns, at).copied();
        meter.call(|| store.save(at, &column, Until::Synced))?;
        meter.saved(column.len_bytes());
        if meter.spent() > bench.enough * PATIENCE {
            break;
        }
    }
    store.close()?;
    bench.end(meter, bench.places().into_iter().map(|at| (at, contents.at(bench.columns, at))))
}

/// Single blocks, in chunks all over the terrain.
pub(super) fn blocks(bench: &Bench<'_>, until: Until) -> Result<Figures, Failure> {
    let mut places = bench.places();
    shuffle(&mut places, bench.seed);
    let mut now = BTreeMap::<Place, Column>::new();
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    for (turn, at) in places.iter().cycle().take(4 * bench.count).enumerate() {
        let column = now.entry(*at).or_insert_with(|| bench.columns.terrain_at(*at).clone());
        let index = turn * 7 % HEIGHT;
        let (cell, block) = bench.columns.change_of(&column.chunks()[index], turn as u64)?;
        meter.call(|| store.set_block(*at, index, cell, block, until))?;
        column.set_block(index, cell, block, &bench.columns.schema)?;
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    store.sync()?;
    store.close()?;
    bench.end(meter, now.iter().map(|(at, column)| (*at, column)))
}
