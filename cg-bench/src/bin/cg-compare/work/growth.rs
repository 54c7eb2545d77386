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

/// Columns that are loaded from a grown store.
const SAMPLE: usize = 400;

/// Everything in a radius loaded again and again, with the memory of a server.
pub(super) fn radius(bench: &Bench<'_>, radius: i64) -> Result<Figures, Failure> {
    let places = view(Place::new(0, 0), radius);
    fill(bench, &places)?;
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
    Ok(Figures { compared_columns, ..figures })
}

/// Columns of a world of this many chunks, anywhere in it, just opened.
pub(super) fn grown(bench: &Bench<'_>, chunks: usize) -> Result<Figures, Failure> {
    let mut places = square(chunks.div_ceil(HEIGHT));
    fill(bench, &places)?;
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

/// Makes the store of the scratch folder.
fn fill(bench: &Bench<'_>, places: &[Place]) -> Result<(), Failure> {
    let mut store = bench.create()?;
    for at in places {
        store.save(*at, bench.columns.terrain_at(*at), Until::Submitted)?;
    }
    store.sync()?;
    store.close()
}
