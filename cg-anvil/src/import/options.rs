//! The choices of an import.

use std::num::NonZero;
use std::path::Path;

use super::choices::{Choices, Merge, MergeFiles};
use super::error::ImportError;
use crate::save::{self, Save, SaveError};

/// Choices of an import.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Treatment of places where the world has something already. Default: only an empty world is imported into.
    pub merge: Option<Merge>,
    /// Treatment of files of the save that the world was, and that this save does not have. Default: they stay.
    pub merge_files: MergeFiles,
    /// Imports what a save holds of a dimension where the game does not look for it, as a dimension of its own. Default:
    /// that is refused.
    pub take_strays: bool,
    /// Imports the overworld as this dimension and nothing else. Default: all dimensions by their names.
    pub as_dimension: Option<String>,
    /// Threads that decode, besides the one that commits. Default: one for each of the machine's. At most 64 are started, as
    /// a region file is decoded in 64 parts.
    pub threads: Option<NonZero<usize>>,
    /// Stops with [`ImportError::Stopped`] after this many transactions; run again, the import continues. Default: never.
    pub stop_after_transactions: Option<u64>,
}

impl ImportOptions {
    /// Choices that are stored.
    pub(super) fn choices(&self) -> Choices {
        let Self { merge, merge_files, take_strays, as_dimension, .. } = self.clone();
        Choices { merge, merge_files, take_strays, as_dimension }
    }

    /// Checks that no choice excludes another.
    ///
    /// # Errors
    /// [`ImportError::DeletesOnly`] and [`ImportError::StraysAsDimension`].
    pub fn check(&self) -> Result<(), ImportError> {
        if self.merge_files == MergeFiles::Replace && self.merge != Some(Merge::Replace) {
            return Err(ImportError::DeletesOnly);
        }
        if self.take_strays && self.as_dimension.is_some() {
            return Err(ImportError::StraysAsDimension);
        }
        Ok(())
    }

    /// Finds a save, and takes of it what is asked for.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn find(&self, path: &Path) -> Result<Save, SaveError> {
        let mut save = save::find(path)?;
        if self.take_strays {
            save.take_strays()?;
        }
        if let Some(dimension) = &self.as_dimension {
            save.as_dimension(dimension)?;
        }
        Ok(save)
    }
}
