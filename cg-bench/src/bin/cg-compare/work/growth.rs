//! Workloads whose size is their point: views and worlds of growing size.

use std::hint::black_box;

use cg_bench::order::shuffle;

use super::bench::Bench;
use crate::check::check;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::meter::Meter;
use crate::place::{HEIGHT, Place, square, view};
use crate::subject::{Memory, Until};
use crate::workload::Workload;

/// Columns that are loaded from a grown store.
const SAMPLE: usize = 400;
const NO_SIZE: &str = "the workload has no store of its own size";

/// The columns of a workload that has a store of its own size.
fn places(workload: Workload) -> Option<Vec<Place>> {
    let view = |radius| Some(view(Place::new(0, 0), radius));
    let world = |chunks: usize| Some(square(chunks.div_ceil(HEIGHT)));
    match workload {
        Workload::Radius8 => view(8),
        Workload::Radius16 => view(16),
        Workload::Radius32 => view(32),
        Workload::Grown4 => world(10_000),
        Workload::Grown5 => world(100_000),
        Workload::Grown6 => world(1_000_000),
        _ => None,
    }
}

/// Everything in a radius loaded again and again, with the memory of a server.
pub(super) fn radius(bench: &Bench<'_>, workload: Workload) -> Result<Figures, Failure> {
    let places = places(workload).ok_or(NO_SIZE)?;
    let mut meter = Meter::begin()?;
    let (mut store, compared_columns) = meter.apart(|| {
        let mut store = bench.reopen(Memory::SERVER)?;
        let expected = places.iter().map(|at| (*at, bench.columns.terrain_at(*at)));
        let compared_columns = check(store.as_mut(), expected)?;
        for at in &places {
            black_box(store.load(*at)?);
        }
        Ok((store, compared_columns))
    })?;
    for at in &places {
        black_box(meter.call(|| store.load(*at))?);
    }
    let figures = meter.end(&bench.own())?;
    store.close()?;
    let held_bytes = Some(places.iter().map(|at| bench.columns.terrain_at(*at).len_bytes()).sum());
    Ok(Figures { held_bytes, compared_columns, ..figures })
}

/// Columns of a world of growing size, anywhere in it, just opened.
pub(super) fn grown(bench: &Bench<'_>, workload: Workload) -> Result<Figures, Failure> {
    let mut places = places(workload).ok_or(NO_SIZE)?;
    shuffle(&mut places, bench.seed);
    places.truncate(SAMPLE);
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| bench.reopen(Memory::SERVER))?;
    for at in &places {
        black_box(meter.call(|| store.load(*at))?);
    }
    let figures = meter.end(&bench.own())?;
    let compared_columns =
        check(store.as_mut(), places.iter().map(|at| (*at, bench.columns.terrain_at(*at))))?;
    store.close()?;
    Ok(Figures { compared_columns, ..figures })
}

/// Makes the store of a workload that has one of its own size, in the scratch folder.
///
/// A process of its own does it, so that what it leaves in memory is not that of the store that is measured.
pub(super) fn fill(bench: &Bench<'_>, workload: Workload) -> Result<(), Failure> {
    let mut store = bench.create()?;
    for at in places(workload).ok_or(NO_SIZE)? {
        store.save(at, bench.columns.terrain_at(at), Until::Submitted)?;
    }
    store.sync()?;
    store.close()
}
