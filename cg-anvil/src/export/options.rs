//! The choices of an export.

use serde::{Deserialize, Serialize};

use super::layout::LayoutChoice;

/// Choices of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportOptions {
    /// Only this dimension, by the name that the save would have. Default: all.
    pub dimension: Option<String>,
    /// In which folders the overworld, the nether and the end go. Default: as they were imported.
    pub layout: LayoutChoice,
    /// Treatment of columns with unreadable chunks. Default: they are left out.
    pub damaged: Damaged,
}

/// What becomes of columns of which chunks cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Damaged {
    /// They are left out: the game generates them anew, and what was built there is gone.
    #[default]
    LeaveOut,
    /// They are written with what is left, and say that they were only begun: the game generates the terrain again, also
    /// over what is left.
    Regenerate,
}
