//! Resources of every workload: the subject, the columns, stores that were prepared, and a folder of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

use crate::check::check;
use crate::columns::{Column, Columns};
use crate::failure::Failure;
use crate::figures::Figures;
use crate::meter::Meter;
use crate::place::{Place, square};
use crate::subject::{Kind, Memory, Setting, Subject, Until};

/// Contents of a prepared store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    Terrain,
    Empty,
}

impl Contents {
    fn name(self) -> &'static str {
        match self {
            Self::Terrain => "terrain",
            Self::Empty => "empty",
        }
    }

    /// The column of a place.
    pub(crate) fn at(self, columns: &Columns, at: Place) -> &Column {
        match self {
            Self::Terrain => columns.terrain_at(at),
            Self::Empty => &columns.empty,
        }
    }
}

/// One measurement of one subject.
pub(crate) struct Bench<'a> {
    pub(crate) kind: &'a dyn Kind,
    pub(crate) columns: &'a Columns,
    /// The folder of the subject's prepared stores.
    pub(crate) prepared: &'a Path,
    /// An empty folder for what the workload writes.
    pub(crate) scratch: &'a Path,
    /// Columns of a prepared store.
    pub(crate) count: usize,
    /// How long repetitions go on.
    pub(crate) enough: Duration,
    /// Where random orders begin.
    pub(crate) seed: u64,
}

impl Bench<'_> {
    /// The places of the prepared columns.
    pub(crate) fn places(&self) -> Vec<Place> {
        square(self.count)
    }

    /// Where the workload's own store is.
    pub(crate) fn own(&self) -> PathBuf {
        self.scratch.join("store")
    }

    /// Where a prepared store is.
    pub(crate) fn dir(&self, contents: Contents) -> PathBuf {
        self.prepared.join(contents.name())
    }

    fn setting<'d>(&'d self, dir: &'d Path, memory: Memory) -> Setting<'d> {
        let Columns { catalog, schema, dimension, .. } = self.columns;
        Setting { dir, catalog, schema, dimension: *dimension, memory }
    }

    /// A new store in the scratch folder.
    pub(crate) fn create(&self) -> Result<Box<dyn Subject>, Failure> {
        self.kind.create(&self.setting(&self.own(), Memory::SERVER))
    }

    /// A prepared store, to be read.
    pub(crate) fn open(&self, contents: Contents, memory: Memory) -> Result<Box<dyn Subject>, Failure> {
        self.kind.open(&self.setting(&self.dir(contents), memory))
    }

    /// A copy of a prepared store, to be written to.
    pub(crate) fn open_copy(&self, contents: Contents) -> Result<Box<dyn Subject>, Failure> {
        copy(&self.dir(contents), &self.own())?;
        self.kind.open(&self.setting(&self.own(), Memory::SERVER))
    }

    /// The store in the scratch folder, closed before.
    pub(crate) fn reopen(&self, memory: Memory) -> Result<Box<dyn Subject>, Failure> {
        self.kind.open(&self.setting(&self.own(), memory))
    }

    /// Ends a workload that wrote: the figures, and a comparison of what the reopened store has.
    ///
    /// # Errors
    /// A column is missing or differs.
    pub(crate) fn end<'c>(
        &self,
        meter: Meter,
        expected: impl IntoIterator<Item = (Place, &'c Column)>,
    ) -> Result<Figures, Failure> {
        let figures = meter.end(&self.own())?;
        self.compared(figures, self.reopen(Memory::SERVER)?, expected)
    }

    /// Ends a workload that read a prepared store: the same, of all that is prepared.
    ///
    /// # Errors
    /// A column is missing or differs.
    pub(crate) fn end_unchanged(&self, meter: Meter, contents: Contents) -> Result<Figures, Failure> {
        let figures = meter.end(&self.dir(contents))?;
        let expected = self.places().into_iter().map(|at| (at, contents.at(self.columns, at)));
        self.compared(figures, self.open(contents, Memory::SERVER)?, expected)
    }

    /// Adds a comparison of what an open store has. It has no more than what was compared, unless that is less than what
    /// was prepared.
    fn compared<'c>(
        &self,
        figures: Figures,
        mut store: Box<dyn Subject>,
        expected: impl IntoIterator<Item = (Place, &'c Column)>,
    ) -> Result<Figures, Failure> {
        let expected: Vec<_> = expected.into_iter().collect();
        let compared_columns = check(store.as_mut(), expected.iter().copied())?;
        store.close()?;
        let is_all = expected.len() >= self.count;
        let held_bytes = is_all.then(|| expected.iter().map(|(_, column)| column.len_bytes()).sum());
        Ok(Figures { held_bytes, compared_columns, ..figures })
    }
}

/// A copy of the terrain whose columns were all loaded once, as a host has that changes them.
pub(crate) fn loaded_copy(bench: &Bench<'_>, contents: Contents) -> Result<Box<dyn Subject>, Failure> {
    let mut store = bench.open_copy(contents)?;
    let expected = bench.places().into_iter().map(|at| (at, contents.at(bench.columns, at)));
    check(store.as_mut(), expected)?;
    Ok(store)
}

/// Makes the stores that workloads read and copy.
///
/// # Errors
/// A store fails, or does not have what was saved.
pub(crate) fn prepare(bench: &Bench<'_>) -> Result<(), Failure> {
    fs::create_dir_all(bench.prepared)?;
    for contents in [Contents::Terrain, Contents::Empty] {
        let dir = bench.dir(contents);
        let setting = bench.setting(&dir, Memory::SERVER);
        let mut store = bench.kind.create(&setting)?;
        for at in bench.places() {
            store.save(at, contents.at(bench.columns, at), Until::Submitted)?;
        }
        store.sync()?;
        store.close()?;
        bench.kind.compact(&setting)?;
        let mut store = bench.kind.open(&setting)?;
        let expected = bench.places().into_iter().map(|at| (at, contents.at(bench.columns, at)));
        check(store.as_mut(), expected)?;
        store.close()?;
    }
    Ok(())
}

/// Copies a folder into one that does not exist.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(path, target)?;
        }
    }
    Ok(())
}

/// Asks the system to forget the pages of all files below a folder, once the disk has them.
pub(crate) fn drop_page_cache(dir: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            drop_page_cache(&entry.path())?;
        } else {
            let file = File::open(entry.path())?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
