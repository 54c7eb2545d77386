//! Workloads as players and servers make them.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::thread;

use cg_bench::order::shuffle;
use cg_format::{BlockId, LocalPos};

use super::bench::{Bench, Contents, drop_page_cache, loaded_copy};
use super::loads::{RADIUS, REPEATS, middle};
use crate::check::check_one;
use crate::columns::Column;
use crate::failure::Failure;
use crate::figures::Figures;
use crate::meter::Meter;
use crate::place::{HEIGHT, Place, view};
use crate::subject::{Memory, Subject, Until};

/// Players in a town, and miners.
const PLAYERS: usize = 8;
/// Ticks between two autosaves.
const AUTOSAVE: usize = 64;
/// Columns that are saved together by a generator.
const FLOOD: usize = 64;
/// Columns on each side of an arena, and blocks that a game changes there.
const ARENA: i64 = 4;
const ARENA_BLOCKS: usize = 64;

/// The expected content of each column after changes of single blocks.
struct Expected<'b>(&'b Bench<'b>, BTreeMap<Place, Column>);

/// One cell that gets another block.
struct Change {
    at: Place,
    index: usize,
    cell: LocalPos,
    block: BlockId,
}

impl Change {
    fn make(&self, store: &mut dyn Subject, until: Until) -> Result<(), Failure> {
        store.set_block(self.at, self.index, self.cell, self.block, until)
    }
}

impl Expected<'_> {
    /// Chooses a block of a column and expects it from now on; what a host does beside the store takes no part.
    fn change(&mut self, at: Place, turn: usize) -> Result<Change, Failure> {
        let columns = self.0.columns;
        let column = self.1.entry(at).or_insert_with(|| columns.terrain_at(at).clone());
        let index = turn * 7 % HEIGHT;
        let (cell, block) = columns.change_of(&column.chunks()[index], turn as u64)?;
        column.set_block(index, cell, block, &columns.schema)?;
        Ok(Change { at, index, cell, block })
    }

    fn all(&self) -> impl Iterator<Item = (Place, &Column)> {
        self.1.iter().map(|(at, column)| (*at, column))
    }
}

/// A player walks into new land: each step finds eleven columns absent and saves what is generated.
pub(super) fn explorer(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| bench.create())?;
    let steps = bench.count as i64 / (2 * RADIUS + 1);
    let line = |x: i64| (-RADIUS..=RADIUS).map(move |z| Place::new(x, z));
    for x in 0..steps {
        meter.call(|| {
            for at in line(x) {
                if store.load(at)?.is_some() {
                    return Err(format!("new land at {}, {} is not new", at.x, at.z).into());
                }
                store.save(at, bench.columns.terrain_at(at), Until::Submitted)?;
            }
            Ok(())
        })?;
        line(x).for_each(|at| meter.saved(bench.columns.terrain_at(at).len_bytes()));
    }
    store.close()?;
    let figures = bench.end(meter, (0..steps).flat_map(line).map(|at| (at, bench.columns.terrain_at(at))))?;
    // The store was empty before.
    Ok(Figures { held_bytes: Some(figures.saved_bytes), ..figures })
}

/// Players of a town: each tick every one of them loads two columns near and changes a block.
pub(super) fn town(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let mut near = view(middle(bench), RADIUS);
    shuffle(&mut near, bench.seed);
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    let mut expected = Expected(bench, BTreeMap::new());
    for tick in 0..usize::MAX {
        let turns = tick * PLAYERS..(tick + 1) * PLAYERS;
        let changes = turns.clone().map(|turn| expected.change(near[turn % near.len()], turn));
        let changes: Vec<_> = changes.collect::<Result<_, _>>()?;
        meter.call(|| {
            for (turn, change) in turns.zip(&changes) {
                for near_by in [turn, turn * 3 + 1] {
                    black_box(store.load(near[near_by % near.len()])?);
                }
                change.make(store.as_mut(), Until::Accepted)?;
            }
            if tick % AUTOSAVE == AUTOSAVE - 1 { store.sync() } else { Ok(()) }
        })?;
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    store.close()?;
    bench.end(meter, expected.all())
}

/// Miners go down: each step loads a column and takes two blocks, which a killed process must not give again.
pub(super) fn miners(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let mut shafts = bench.places();
    shuffle(&mut shafts, bench.seed);
    shafts.truncate(PLAYERS);
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    let mut expected = Expected(bench, BTreeMap::new());
    for step in 0..usize::MAX {
        let at = shafts[step % shafts.len()];
        let changes = [expected.change(at, step)?, expected.change(at, step + 1)?];
        meter.call(|| {
            black_box(store.load(at)?);
            changes.iter().try_for_each(|change| change.make(store.as_mut(), Until::Process))
        })?;
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    store.close()?;
    bench.end(meter, expected.all())
}

/// A player jumps from place to place, and sees 11×11 columns each time.
pub(super) fn teleports(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let side = (bench.count as f64).sqrt() as i64;
    let mut middles: Vec<_> = bench.places();
    middles.retain(|at| [at.x, at.z].iter().all(|axis| (RADIUS..side - RADIUS).contains(axis)));
    shuffle(&mut middles, bench.seed);
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| bench.open(Contents::Terrain, Memory::SERVER))?;
    let mut compared_columns = 0;
    for middle in middles.iter().cycle().take(REPEATS) {
        let places = view(*middle, RADIUS);
        let loaded = meter.call(|| store.load_area(&places))?;
        for (at, loaded) in places.iter().zip(&loaded) {
            check_one(*at, bench.columns.terrain_at(*at), loaded.as_ref())?;
            compared_columns += 1;
        }
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    let figures = meter.end(&bench.dir(Contents::Terrain))?;
    store.close()?;
    Ok(Figures { compared_columns, ..figures })
}

/// A generator that makes land as fast as it is taken, and waits for the disk after each 64 columns.
pub(super) fn flood(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| bench.create())?;
    let places = bench.places();
    for together in places.chunks(FLOOD) {
        meter.work(together.len() as u64, || {
            for at in together {
                store.save(*at, bench.columns.terrain_at(*at), Until::Submitted)?;
            }
            store.sync()
        })?;
        for at in together {
            meter.saved(bench.columns.terrain_at(*at).len_bytes());
        }
    }
    store.close()?;
    bench.end(meter, places.iter().map(|at| (*at, bench.columns.terrain_at(*at))))
}

/// Every column saved again, one in ten of them changed, until everything is on the disk.
pub(super) fn autosave(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let mut now = BTreeMap::new();
    for (number, at) in bench.places().into_iter().enumerate() {
        let changed = number % 10 == 0;
        let column = if changed {
            bench.columns.changed_at(at, bench.seed)?
        } else {
            bench.columns.terrain_at(at).copied()
        };
        now.insert(at, column);
    }
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    for (at, column) in &now {
        meter.call(|| store.save(*at, column, Until::Submitted))?;
        meter.saved(column.len_bytes());
    }
    meter.work(0, || store.sync())?;
    store.close()?;
    bench.end(meter, now.iter().map(|(at, column)| (*at, column)))
}

/// A server starts after the machine did: nothing of the store's files is in memory.
pub(super) fn cold_start(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let places = view(middle(bench), RADIUS);
    let mut meter = Meter::begin()?;
    let mut compared_columns = 0;
    for _ in 0..REPEATS {
        meter.apart(|| drop_page_cache(&bench.dir(Contents::Terrain)))?;
        let (store, loaded) = meter.call(|| {
            let mut store = bench.open(Contents::Terrain, Memory::SERVER)?;
            let loaded = store.load_area(&places)?;
            Ok((store, loaded))
        })?;
        for (at, loaded) in places.iter().zip(&loaded) {
            check_one(*at, bench.columns.terrain_at(*at), loaded.as_ref())?;
            compared_columns += 1;
        }
        meter.apart(|| store.close())?;
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    Ok(Figures { compared_columns, ..meter.end(&bench.dir(Contents::Terrain))? })
}

/// Every chunk of the store decoded once.
pub(super) fn scan(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| bench.open(Contents::Terrain, Memory::SERVER))?;
    let chunks = (bench.count * HEIGHT) as u64;
    let found = meter.work(chunks, || store.scan())?;
    if found != chunks {
        return Err(format!("a scan finds {found} chunks of {chunks}").into());
    }
    store.close()?;
    bench.end_unchanged(meter, Contents::Terrain)
}

/// A game changes 64 blocks in an arena of 4×4 columns; timed is that the arena is as before, by saving it again.
pub(super) fn arena_reset(bench: &Bench<'_>) -> Result<Figures, Failure> {
    let arena: Vec<_> = (0..ARENA * ARENA).map(|n| Place::new(n / ARENA, n % ARENA)).collect();
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    for game in 0..REPEATS {
        let mut played = Expected(bench, BTreeMap::new());
        for turn in 0..ARENA_BLOCKS {
            let change = played.change(arena[(game + turn) % arena.len()], turn)?;
            change.make(store.as_mut(), Until::Accepted)?;
        }
        meter.call(|| {
            arena.iter().try_for_each(|at| store.save(*at, bench.columns.terrain_at(*at), Until::Accepted))
        })?;
        for at in &arena {
            meter.saved(bench.columns.terrain_at(*at).len_bytes());
        }
        if meter.is_enough(bench.enough) {
            break;
        }
    }
    store.close()?;
    bench.end(meter, bench.places().into_iter().map(|at| (at, bench.columns.terrain_at(at))))
}

/// Threads that load nine columns for each that they save; no two save the same column.
pub(super) fn mixed(bench: &Bench<'_>, threads: usize) -> Result<Figures, Failure> {
    let places = bench.places();
    let changed: Vec<_> =
        places.iter().map(|at| bench.columns.changed_at(*at, bench.seed)).collect::<Result<_, _>>()?;
    let mut meter = Meter::begin()?;
    let mut store = meter.apart(|| loaded_copy(bench, Contents::Terrain))?;
    let operations = places.len() * 10;
    let play = |store: &mut dyn Subject, thread: usize| -> Result<(), Failure> {
        for turn in (thread..operations).step_by(threads) {
            let index = turn / 10;
            if turn % 10 == index % threads {
                store.save(places[index], &changed[index], Until::Submitted)?;
            } else {
                black_box(store.load(places[turn.wrapping_mul(7_919) % places.len()])?);
            }
        }
        Ok(())
    };
    if threads == 1 {
        meter.work(operations as u64, || play(store.as_mut(), 0))?;
    } else {
        let handles: Option<Vec<_>> = (0..threads).map(|_| store.share()).collect();
        let handles = handles.ok_or("the store cannot be shared by threads")?;
        meter.work(operations as u64, || {
            thread::scope(|scope| {
                let play = &play;
                let threads = handles.into_iter().enumerate();
                let threads: Vec<_> = threads
                    .map(|(thread, mut store)| scope.spawn(move || play(store.as_mut(), thread)))
                    .collect();
                threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
            })
        })?;
    }
    for column in &changed {
        meter.saved(column.len_bytes());
    }
    store.close()?;
    bench.end(meter, places.iter().copied().zip(&changed))
}
