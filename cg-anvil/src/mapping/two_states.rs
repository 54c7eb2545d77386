//! A player of whom two files of a save say different things.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A player whose own file says something else than the `level.dat` beside it.
///
/// The world keeps both files as they came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoStates {
    /// The player.
    pub uuid: Uuid,
    /// The file whose state the world took.
    pub taken: String,
    /// The file with the other state.
    pub other: String,
    /// Whether an export wrote the player as the world has them in place of the other state: they were changed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replaced: bool,
}
