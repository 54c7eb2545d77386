//! A schematic and the file that holds its blocks.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cg_snapshot::schem::{Cells, Grid, SchemError, SchemLimits, Schematic};

/// A schematic that was read and checked, and the file that its blocks are still in.
#[derive(Debug)]
pub struct SchemFile {
    /// Schematic, but for its blocks.
    pub schematic: Schematic,
    path: PathBuf,
}

/// Error in a file, with the file's path.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct SchemFileError {
    /// The file.
    pub path: PathBuf,
    /// Error in it.
    pub source: SchemError,
}

impl SchemFile {
    /// Reads a file through once.
    ///
    /// # Errors
    /// What is wrong with the file, and its name.
    pub fn read(path: &Path) -> Result<Self, SchemFileError> {
        let failed = |source| SchemFileError { path: path.to_owned(), source };
        let file = File::open(path).map_err(|error| failed(SchemError::Io(error)))?;
        let is_folder = file.metadata().is_ok_and(|metadata| metadata.is_dir());
        if is_folder {
            let error = io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, not a file");
            return Err(failed(SchemError::Io(error)));
        }
        let schematic = Schematic::read(file, &SchemLimits::default()).map_err(failed)?;
        Ok(Self { schematic, path: path.to_owned() })
    }

    /// Goes to the blocks or biomes.
    pub(super) fn open(&self, grid: &Grid) -> Result<Cells<File>, SchemFileError> {
        let file = File::open(&self.path).map_err(SchemError::Io);
        file.and_then(|file| grid.open(file)).map_err(|error| self.failed(error))
    }

    pub(super) fn failed(&self, source: SchemError) -> SchemFileError {
        SchemFileError { path: self.path.clone(), source }
    }
}
