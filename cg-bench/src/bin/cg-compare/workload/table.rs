//! Every workload with what a reader has to know of it, in the order of the report.

use super::Workload as W;
use super::{Facts, Unit};

const NEW: &str = "an empty store";
const COPIED: &str = "the store's files were just written: in the page cache";
const WARM: &str = "everything was loaded twice";
const REOPENED: &str = "reopened; the store's own caches begin empty, the files are in the page cache";

pub(super) const ALL: [Facts; 37] = [
    writes(W::NewTerrain, "new-terrain", "new terrain columns until closed and synced", "column", NEW),
    writes(W::Changed, "changed", "all 24 chunks of a column changed, until synced", "column", COPIED),
    writes(W::NewEmpty, "new-empty", "empty columns until closed and synced", "column", NEW),
    writes(W::Submit, "submit", "submit a changed column, until the call returns", "column", COPIED),
    writes(W::Accept, "accept", "a changed column, until every reader sees it", "column", COPIED),
    writes(W::EqualTerrain, "equal-terrain", "an equal terrain column saved again, synced", "column", COPIED),
    writes(W::EqualEmpty, "equal-empty", "an equal empty column saved again, synced", "column", COPIED),
    reads(W::ColumnTerrain, "column-terrain", "reopened with 16 MiB: a terrain column", "column", REOPENED),
    reads(W::ColumnEmpty, "column-empty", "reopened with 16 MiB: an empty column", "column", REOPENED),
    reads(W::AreaTerrain, "area-terrain", "reopened: 11×11 terrain columns at once", "area", REOPENED),
    reads(W::AreaEmpty, "area-empty", "reopened: 11×11 empty columns at once", "area", REOPENED),
    reads(W::Absent, "absent", "reopened: 121 absent columns, first time", "area", REOPENED),
    reads(W::AbsentAgain, "absent-again", "121 absent columns again, one by one", "area", WARM),
    reads(W::AbsentMany, "absent-many", "121 absent columns again, in one call", "area", WARM),
    writes(W::BlockProcess, "block-process", "one block changed, until the system has it", "block", COPIED),
    writes(W::BlockSynced, "block-synced", "one block changed, until synced", "block", COPIED),
    reads(
        W::Cached,
        "cached",
        "a column that was just loaded, again",
        "column",
        "121 columns in every cache",
    ),
    reads(W::Open, "open", "open a closed store", "open", REOPENED),
    holds(W::OpenMemory, "open-memory", "resident memory that an open store adds", "store", REOPENED),
    holds(W::Disk, "disk", "bytes of all files, compacted", "terrain column", "closed"),
    writes(W::Explorer, "explorer", "a player walks into new land: 11 absent columns saved", "step", NEW),
    writes(W::Town, "town", "8 players load and change a block each; autosaves", "tick", COPIED),
    writes(
        W::Miners,
        "miners",
        "a miner loads a column and takes two blocks, until the system has them",
        "step",
        COPIED,
    ),
    reads(W::Teleports, "teleports", "a player jumps and sees 11×11 columns", "jump", REOPENED),
    writes(W::Flood, "flood", "a generator's columns, synced after each 64", "column", NEW),
    writes(W::Autosave, "autosave", "every column saved, one in ten changed, until synced", "column", COPIED),
    reads(
        W::ColdStart,
        "cold-start",
        "open and load the first 11×11 columns",
        "start",
        "the system was asked to forget the files' pages",
    ),
    reads(W::Scan, "scan", "every chunk decoded", "chunk", REOPENED),
    writes(W::ArenaReset, "arena-reset", "4×4 columns of an arena saved as before", "reset", COPIED),
    writes(W::Mixed1, "mixed-1", "nine loads for each save, one thread", "operation", COPIED),
    writes(W::Mixed2, "mixed-2", "nine loads for each save, two threads", "operation", COPIED),
    writes(W::Radius8, "radius-8", "17×17 columns loaded again, 128 MiB for chunks", "column", WARM),
    writes(W::Radius16, "radius-16", "33×33 columns loaded again, 128 MiB for chunks", "column", WARM),
    writes(W::Radius32, "radius-32", "65×65 columns loaded again, 128 MiB for chunks", "column", WARM),
    writes(W::Grown4, "grown-10k", "a column of a world of 10,000 chunks", "column", REOPENED),
    writes(W::Grown5, "grown-100k", "a column of a world of 100,000 chunks", "column", REOPENED),
    writes(W::Grown6, "grown-1m", "a column of a world of 1,000,000 chunks", "column", REOPENED),
];

/// A workload that is timed and writes content.
const fn writes(
    of: W,
    name: &'static str,
    title: &'static str,
    per: &'static str,
    state: &'static str,
) -> Facts {
    Facts { of, name, title, per, unit: Unit::Nanoseconds, state, writes: true }
}

/// A workload that is timed and reads only.
const fn reads(
    of: W,
    name: &'static str,
    title: &'static str,
    per: &'static str,
    state: &'static str,
) -> Facts {
    Facts { of, name, title, per, unit: Unit::Nanoseconds, state, writes: false }
}

/// A workload that compares bytes of what is there.
const fn holds(
    of: W,
    name: &'static str,
    title: &'static str,
    per: &'static str,
    state: &'static str,
) -> Facts {
    Facts { of, name, title, per, unit: Unit::Bytes, state, writes: false }
}
