//! The workloads by name: what each does, what its figures count, and who runs it how often.

mod table;

use crate::failure::Failure;

/// The unit of the values that a workload compares.
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
    AbsentAgain,
    AbsentMany,
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

/// Facts of a workload that a reader has to know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) of: Workload,
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// The work that is done.
    pub(crate) title: &'static str,
    /// The meaning of one unit.
    pub(crate) per: &'static str,
    pub(crate) unit: Unit,
    /// The contents of memory and of the system's page cache.
    pub(crate) state: &'static str,
    /// Whether content is written.
    pub(crate) writes: bool,
}

impl Workload {
    /// Every workload, in the order of the report.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        table::ALL.iter().map(|facts| facts.of)
    }

    /// The workload of a name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn named(name: &str) -> Result<Self, Failure> {
        let found = table::ALL.iter().find(|facts| facts.name == name).map(|facts| facts.of);
        found.ok_or_else(|| format!("no workload is called {name:?}").into())
    }

    /// Its line of the table, which has the order of the variants.
    pub(crate) fn facts(self) -> &'static Facts {
        &table::ALL[self as usize]
    }

    /// Whether content is written.
    pub(crate) fn writes(self) -> bool {
        self.facts().writes
    }

    /// Whether several threads use the store.
    pub(crate) fn needs_threads(self) -> bool {
        self == Self::Mixed2
    }

    /// Whether it has a store of its own size, which another process makes before.
    pub(crate) fn has_own_store(self) -> bool {
        let growing =
            [Self::Radius8, Self::Radius16, Self::Radius32, Self::Grown4, Self::Grown5, Self::Grown6];
        growing.contains(&self)
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
            Self::Grown6 => 3,
            _ => u64::MAX,
        }
    }

    /// Whether single blocks are changed by name.
    pub(crate) fn sets_single_blocks(self) -> bool {
        matches!(self, Self::BlockProcess | Self::BlockSynced | Self::Town | Self::Miners)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_has_its_own_line_of_the_table() {
        for (place, facts) in table::ALL.iter().enumerate() {
            assert_eq!(facts.of as usize, place, "{} is at another place than its variant", facts.name);
            assert_eq!(Workload::named(facts.name).expect("it is there"), facts.of);
        }
        assert_eq!(Workload::Grown6 as usize + 1, table::ALL.len(), "a workload has no line");
    }
}
