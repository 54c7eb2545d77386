//! Workloads that read.

use std::hint::black_box;
use std::time::Instant;

use cg_bench::order::shuffle;
use cg_bench::process::resident_bytes;

use super::bench::{Bench, Contents};
use crate::check::{check, check_one};
use crate::failure::Failure;
use crate::figures::Figures;
use crate::meter::Meter;
use crate::place::{Place, view};
use crate::subject::{Memory, Subject};

/// Columns on each side of the middle of an area: 11×11 columns.
pub(super) const RADIUS: i64 = 5;
/// The most repetitions of what opens the store each time.
pub(super) const REPEATS: usize = 40;

/// The middle of what is stored.
pub(super) fn middle(bench: &Bench<'_>) -> Place {
    let half = (bench.count as f64).sqrt() as i64 / 2;
    Place::new(half, half)
}

/// How many times as long as the measured part the comparison before it may take.
const PATIENCE: u32 = 8;

/// Columns in an order that no cache expects, with memory for less than there are.
///
/// A store that reads much for each column gets to a part of them only, and is compared with more memory at the end.
pub(super) fn columns(bench: &Bench<'_>, contents: Contents) -> Result<Figures, Failure> {
    let mut places = bench.places();
    shuffle(&mut places, bench.seed);
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| {
        let mut store = bench.open(contents, Memory::TINY)?;
        let begun = Instant::now();
        let expected = places.iter().map(|at| (*at, contents.at(bench.columns, *at)));
        let expected = expected.take_while(|_| begun.elapsed() < bench.enough * PATIENCE);
        check(store.as_mut(), expected)?;
        Ok(store)
    })?;
    for at in places.iter().cycle() {
        black_box(meter.call(|| store.load(*at))?);
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    store.close()?;
    bench.end_unchanged(meter, contents)
}

/// An area at once, by a store that was just opened; opening takes no part.
pub(super) fn area(bench: &Bench<'_>, contents: Contents) -> Result<Figures, Failure> {
    let places = view(middle(bench), RADIUS);
    let mut meter = Meter::begin()?;
    let mut compared_columns = 0;
    for _ in 0..REPEATS {
        let mut store = meter.apart(|| bench.open(contents, Memory::SERVER))?;
        let loaded = meter.call(|| store.load_area(&places))?;
        meter.apart(|| store.close())?;
        for (at, loaded) in places.iter().zip(&loaded) {
            check_one(*at, contents.at(bench.columns, *at), loaded.as_ref())?;
            compared_columns += 1;
        }
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    Ok(Figures { compared_columns, ..meter.end(&bench.dir(contents))? })
}

/// Columns that were never stored, one after the other, by a store that was just opened.
pub(super) fn absent(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let places = view(Place::new(-100, -100), RADIUS);
    let mut meter = Meter::begin()?;
    for _ in 0..REPEATS {
        let mut store = meter.apart(|| bench.open(Contents::Terrain, Memory::SERVER))?;
        meter.call(|| one_by_one(store.as_mut(), &places))?;
        meter.apart(|| store.close())?;
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    bench.end_unchanged(meter, Contents::Terrain)
}

/// An area that was never stored, after it was asked for twice.
pub(super) fn absent_again(
    bench: &Bench<'_>,
    ask: fn(&mut dyn Subject, &[Place]) -> Result<(), Failure>,
) -> Result<Figures, Failure> {
    let places = view(Place::new(-100, -100), RADIUS);
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| bench.open(Contents::Terrain, Memory::SERVER))?;
    meter.apart(|| (0..2).try_for_each(|_| ask(store.as_mut(), &places)))?;
    while meter.spent() < bench.enough {
        meter.work(1, || ask(store.as_mut(), &places))?;
    }
    store.close()?;
    bench.end_unchanged(meter, Contents::Terrain)
}

/// Asks for columns that were never saved.
pub(super) fn one_by_one(store: &mut dyn Subject, places: &[Place]) -> Result<(), Failure> {
    for at in places {
        if store.load(*at)?.is_some() {
            return Err(never_saved(*at));
        }
    }
    Ok(())
}

/// As [`one_by_one`], as an area.
pub(super) fn in_one_call(store: &mut dyn Subject, places: &[Place]) -> Result<(), Failure> {
    let found = store.load_area(places)?;
    let there = places.iter().zip(found).find(|(_, found)| found.is_some());
    there.map_or(Ok(()), |(at, _)| Err(never_saved(*at)))
}

fn never_saved(at: Place) -> Failure {
    format!("the column at {}, {} was never saved", at.x, at.z).into()
}

/// An area's columns again and again: what is decoded already costs little, and what is not is decoded each time.
pub(super) fn cached(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let places = view(middle(bench), RADIUS);
    let mut meter = Meter::begin()?;
    let expected = || places.iter().map(|at| (*at, bench.columns.terrain_at(*at)));
    let (mut store, compared_columns) = meter.apart(|| {
        let mut store = bench.open(Contents::Terrain, Memory::SERVER)?;
        check(store.as_mut(), expected())?;
        let compared_columns = check(store.as_mut(), expected())?;
        Ok((store, compared_columns))
    })?;
    while meter.spent() < bench.enough {
        meter.work(places.len() as u64, || {
            for at in &places {
                black_box(store.load(*at)?);
            }
            Ok(())
        })?;
    }
    let figures = meter.end(&bench.dir(Contents::Terrain))?;
    store.close()?;
    Ok(Figures { compared_columns, ..figures })
}

/// Opening; closing takes no part.
pub(super) fn open(bench: &Bench<'_>) -> Result<Figures, Failure> {
    // The first reads the files into the system's cache.
    bench.open(Contents::Terrain, Memory::SERVER)?.close()?;
    let mut meter = Meter::begin()?;
    for _ in 0..REPEATS {
        let store = meter.call(|| bench.open(Contents::Terrain, Memory::SERVER))?;
        meter.apart(|| store.close())?;
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    bench.end_unchanged(meter, Contents::Terrain)
}

/// Measures the memory that an open store adds to that of a process that has opened none.
pub(super) fn open_memory(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let before = resident_bytes()?;
    let mut meter = Meter::begin()?;
    let store = meter.call(|| bench.open(Contents::Terrain, Memory::SERVER))?;
    let added = resident_bytes()?.saturating_sub(before);
    store.close()?;
    let figures = bench.end_unchanged(meter, Contents::Terrain)?;
    Ok(Figures { value: added as f64, latency: None, ..figures })
}

/// The files of the prepared terrain.
pub(super) fn disk(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let mut meter = Meter::begin()?;
    let mut store = bench.open(Contents::Terrain, Memory::SERVER)?;
    let expected = bench.places().into_iter().map(|at| (at, bench.columns.terrain_at(at)));
    let compared_columns = check(store.as_mut(), expected)?;
    store.close()?;
    for at in bench.places() {
        meter.work(1, || Ok(()))?;
        meter.saved(bench.columns.terrain_at(at).len_bytes());
    }
    let figures = meter.end(&bench.dir(Contents::Terrain))?;
    let value = figures.disk_bytes as f64 / bench.count as f64;
    let held_bytes = Some(figures.saved_bytes);
    Ok(Figures { value, latency: None, held_bytes, compared_columns, ..figures })
}
