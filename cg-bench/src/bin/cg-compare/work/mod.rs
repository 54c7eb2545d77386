//! Code of the workloads, which is the same for every subject.

mod bench;
mod growth;
mod loads;
mod saves;
mod scenes;

use crate::failure::Failure;
use crate::figures::Figures;
use crate::subject::Until;
use crate::workload::Workload;

use bench::Contents;

pub(crate) use bench::{Bench, prepare};

/// Makes the store of a workload that [has its own](Workload::has_own_store), before another process measures it.
///
/// # Errors
/// The store fails.
pub(crate) fn fill(workload: Workload, bench: &Bench<'_>) -> Result<(), Failure> {
    growth::fill(bench, workload)
}

/// Measures a workload once.
///
/// # Errors
/// The store fails, or does not have what was saved.
pub(crate) fn run(workload: Workload, bench: &Bench<'_>) -> Result<Figures, Failure> {
    match workload {
        Workload::NewTerrain => saves::new_columns(bench, Contents::Terrain),
        Workload::NewEmpty => saves::new_columns(bench, Contents::Empty),
        Workload::Changed => saves::changed_until_synced(bench),
        Workload::Submit => saves::calls(bench, Until::Submitted),
        Workload::Accept => saves::calls(bench, Until::Accepted),
        Workload::EqualTerrain => saves::equal(bench, Contents::Terrain),
        Workload::EqualEmpty => saves::equal(bench, Contents::Empty),
        Workload::BlockProcess => saves::blocks(bench, Until::Process),
        Workload::BlockSynced => saves::blocks(bench, Until::Synced),
        Workload::ColumnTerrain => loads::columns(bench, Contents::Terrain),
        Workload::ColumnEmpty => loads::columns(bench, Contents::Empty),
        Workload::AreaTerrain => loads::area(bench, Contents::Terrain),
        Workload::AreaEmpty => loads::area(bench, Contents::Empty),
        Workload::Absent => loads::absent(bench),
        Workload::AbsentAgain => loads::absent_again(bench, loads::one_by_one),
        Workload::AbsentMany => loads::absent_again(bench, loads::in_one_call),
        Workload::Cached => loads::cached(bench),
        Workload::Open => loads::open(bench),
        Workload::OpenMemory => loads::open_memory(bench),
        Workload::Disk => loads::disk(bench),
        Workload::Explorer => scenes::explorer(bench),
        Workload::Town => scenes::town(bench),
        Workload::Miners => scenes::miners(bench),
        Workload::Teleports => scenes::teleports(bench),
        Workload::Flood => scenes::flood(bench),
        Workload::Autosave => scenes::autosave(bench),
        Workload::ColdStart => scenes::cold_start(bench),
        Workload::Scan => scenes::scan(bench),
        Workload::ArenaReset => scenes::arena_reset(bench),
        Workload::Mixed1 => scenes::mixed(bench, 1),
        Workload::Mixed2 => scenes::mixed(bench, 2),
        Workload::Radius8 | Workload::Radius16 | Workload::Radius32 => growth::radius(bench, workload),
        Workload::Grown4 | Workload::Grown5 | Workload::Grown6 => growth::grown(bench, workload),
    }
}
