//! The workloads by name: what each does, what its figures count, and who runs it how often.

use crate::failure::Failure;

/// What a workload compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Unit {
    Nanoseconds,
    Bytes,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workload {
    NewTerrain,
    Changed,
    NewEmpty,
    Submit,
    Accept,
    EqualTerrain,
    EqualEmpty,
    ColumnTerrain,
    ColumnEmpty,
    AreaTerrain,
    AreaEmpty,
    Absent,
    BlockProcess,
    BlockSynced,
    Cached,
    Open,
    OpenMemory,
    Disk,
    Explorer,
    Town,
    Miners,
    Teleports,
    Flood,
    Autosave,
    ColdStart,
    Scan,
    ArenaReset,
    Mixed1,
    Mixed2,
    Radius8,
    Radius16,
    Radius32,
    Grown4,
    Grown5,
    Grown6,
}

/// What a reader has to know of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// What is done.
    pub(crate) title: &'static str,
    /// What one unit is.
    pub(crate) per: &'static str,
    pub(crate) unit: Unit,
    /// What is in memory and in the system's page cache.
    pub(crate) state: &'static str,
}

/// The state of stores that were just made or copied by another process.
const COPIED: &str = "the store's files were just written: in the page cache";
const WARM: &str = "everything was loaded twice";
const REOPENED: &str = "reopened; the store's own caches begin empty, the files are in the page cache";

impl Workload {
    pub(crate) const ALL: [Self; 35] = [
        Self::NewTerrain,
        Self::Changed,
        Self::NewEmpty,
        Self::Submit,
        Self::Accept,
        Self::EqualTerrain,
        Self::EqualEmpty,
        Self::ColumnTerrain,
        Self::ColumnEmpty,
        Self::AreaTerrain,
        Self::AreaEmpty,
        Self::Absent,
        Self::BlockProcess,
        Self::BlockSynced,
        Self::Cached,
        Self::Open,
        Self::OpenMemory,
        Self::Disk,
        Self::Explorer,
        Self::Town,
        Self::Miners,
        Self::Teleports,
        Self::Flood,
        Self::Autosave,
        Self::ColdStart,
        Self::Scan,
        Self::ArenaReset,
        Self::Mixed1,
        Self::Mixed2,
        Self::Radius8,
        Self::Radius16,
        Self::Radius32,
        Self::Grown4,
        Self::Grown5,
        Self::Grown6,
    ];

    /// The workload of a name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let found = Self::ALL.into_iter().find(|workload| workload.facts().name == name);
        found.ok_or_else(|| format!("no workload is called {name:?}").into())
    }

    pub(crate) fn facts(self) -> Facts {
        let time = |name, title, per, state| Facts { name, title, per, unit: Unit::Nanoseconds, state };
        match self {
            Self::NewTerrain => {
                time("new-terrain", "new terrain columns until closed and synced", "column", "an empty store")
            }
            Self::Changed => {
                time("changed", "all 24 chunks of a column changed, until synced", "column", COPIED)
            }
            Self::NewEmpty => {
                time("new-empty", "empty columns until closed and synced", "column", "an empty store")
            }
            Self::Submit => {
                time("submit", "submit a changed column, until the call returns", "column", COPIED)
            }
            Self::Accept => time("accept", "a changed column, until every reader sees it", "column", COPIED),
            Self::EqualTerrain => {
                time("equal-terrain", "an equal terrain column saved again, synced", "column", COPIED)
            }
            Self::EqualEmpty => {
                time("equal-empty", "an equal empty column saved again, synced", "column", COPIED)
            }
            Self::ColumnTerrain => {
                time("column-terrain", "reopened with 16 MiB: a terrain column", "column", REOPENED)
            }
            Self::ColumnEmpty => {
                time("column-empty", "reopened with 16 MiB: an empty column", "column", REOPENED)
            }
            Self::AreaTerrain => {
                time("area-terrain", "reopened: 11×11 terrain columns at once", "area", REOPENED)
            }
            Self::AreaEmpty => time("area-empty", "reopened: 11×11 empty columns at once", "area", REOPENED),
            Self::Absent => time("absent", "reopened: 121 absent columns, first time", "area", REOPENED),
            Self::BlockProcess => {
                time("block-process", "one block changed, until the system has it", "block", COPIED)
            }
            Self::BlockSynced => time("block-synced", "one block changed, until synced", "block", COPIED),
            Self::Cached => {
                time("cached", "a column that was just loaded, again", "column", "121 columns in every cache")
            }
            Self::Open => time("open", "open a closed store", "open", REOPENED),
            Self::OpenMemory => Facts {
                name: "open-memory",
                title: "resident memory that an open store adds",
                per: "store",
                unit: Unit::Bytes,
                state: REOPENED,
            },
            Self::Disk => Facts {
                name: "disk",
                title: "bytes of all files, compacted",
                per: "terrain column",
                unit: Unit::Bytes,
                state: "closed",
            },
            Self::Explorer => time(
                "explorer",
                "a player walks into new land: 11 absent columns saved",
                "step",
                "an empty store",
            ),
            Self::Town => time("town", "8 players load and change a block each; autosaves", "tick", COPIED),
            Self::Miners => time(
                "miners",
                "a miner loads a column and takes two blocks, until the system has them",
                "step",
                COPIED,
            ),
            Self::Teleports => time("teleports", "a player jumps and sees 11×11 columns", "jump", REOPENED),
            Self::Flood => {
                time("flood", "a generator's columns, synced after each 64", "column", "an empty store")
            }
            Self::Autosave => {
                time("autosave", "every column saved, one in ten changed, until synced", "column", COPIED)
            }
            Self::ColdStart => time(
                "cold-start",
                "open and load the first 11×11 columns",
                "start",
                "the system was asked to forget the files' pages",
            ),
            Self::Scan => time("scan", "every chunk decoded", "chunk", REOPENED),
            Self::ArenaReset => {
                time("arena-reset", "4×4 columns of an arena saved as before", "reset", COPIED)
            }
            Self::Mixed1 => time("mixed-1", "nine loads for each save, one thread", "operation", COPIED),
            Self::Mixed2 => time("mixed-2", "nine loads for each save, two threads", "operation", COPIED),
            Self::Radius8 => {
                time("radius-8", "17×17 columns loaded again, 128 MiB for chunks", "column", WARM)
            }
            Self::Radius16 => {
                time("radius-16", "33×33 columns loaded again, 128 MiB for chunks", "column", WARM)
            }
            Self::Radius32 => {
                time("radius-32", "65×65 columns loaded again, 128 MiB for chunks", "column", WARM)
            }
            Self::Grown4 => time("grown-10k", "a column of a world of 10,000 chunks", "column", REOPENED),
            Self::Grown5 => time("grown-100k", "a column of a world of 100,000 chunks", "column", REOPENED),
            Self::Grown6 => time("grown-1m", "a column of a world of 1,000,000 chunks", "column", REOPENED),
        }
    }

    /// Whether content is written.
    pub(crate) fn writes(self) -> bool {
        matches!(
            self,
            Self::NewTerrain
                | Self::Changed
                | Self::NewEmpty
                | Self::Submit
                | Self::Accept
                | Self::EqualTerrain
                | Self::EqualEmpty
                | Self::BlockProcess
                | Self::BlockSynced
                | Self::Explorer
                | Self::Town
                | Self::Miners
                | Self::Flood
                | Self::Autosave
                | Self::ArenaReset
                | Self::Mixed1
                | Self::Mixed2
                | Self::Radius8
                | Self::Radius16
                | Self::Radius32
                | Self::Grown4
                | Self::Grown5
                | Self::Grown6
        )
    }

    /// Whether several threads use the store.
    pub(crate) fn needs_threads(self) -> bool {
        self == Self::Mixed2
    }

    /// Whether the store is only opened.
    pub(crate) fn opens_only(self) -> bool {
        matches!(self, Self::Open | Self::OpenMemory)
    }

    /// Whether a quick run has it; the others take longer than all of that.
    pub(crate) fn is_quick(self) -> bool {
        !matches!(self, Self::Radius16 | Self::Radius32 | Self::Grown5 | Self::Grown6)
    }

    /// How many rounds it takes part in: making a large store costs more than any spread is worth.
    pub(crate) fn most_rounds(self) -> u64 {
        match self {
            Self::Grown5 | Self::Radius32 => 3,
            Self::Grown6 => 1,
            _ => u64::MAX,
        }
    }

    /// Whether single blocks are changed by name.
    pub(crate) fn sets_single_blocks(self) -> bool {
        matches!(self, Self::BlockProcess | Self::BlockSynced | Self::Town | Self::Miners)
    }
}
