//! What an import that continues must agree in with its beginning.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What happens where the world has something already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// The save's columns and entities replace the world's; all of a replaced column goes, its entities too.
    Replace,
    /// The world's columns and entities are kept; a column that the world has any part of stays as it is.
    Keep,
}

/// What happens to files, no region files, of the save that a world was, and that the imported save does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MergeFiles {
    /// They stay.
    #[default]
    Keep,
    /// They are deleted, if the imported save has a `level.dat` of its own.
    Replace,
}

/// Choices in which an import that continues must agree with its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choices {
    pub(super) merge: Option<Merge>,
    #[serde(default)]
    pub(super) merge_files: MergeFiles,
    #[serde(default)]
    pub(super) take_strays: bool,
    #[serde(default)]
    pub(super) as_dimension: Option<String>,
}

impl fmt::Display for Choices {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { merge, merge_files, take_strays, as_dimension } = self;
        match merge {
            None => out.write_str("without a merge mode")?,
            Some(Merge::Replace) => out.write_str("with the merge mode `replace`")?,
            Some(Merge::Keep) => out.write_str("with the merge mode `keep`")?,
        }
        if *merge_files == MergeFiles::Replace {
            out.write_str(", with the merge mode `replace` of files")?;
        }
        if *take_strays {
            out.write_str(", with strays as dimensions")?;
        }
        match as_dimension {
            None => Ok(()),
            Some(dimension) => write!(out, ", as the dimension `{dimension}`"),
        }
    }
}
