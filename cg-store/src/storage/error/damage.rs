//! A row whose content does not fit its key.

use cg_format::{ChunkAt, DecodeError, Space, key};

use super::{Error, hex};
use crate::engine::{EngineError, Place, row_in_words};

/// A row whose content does not fit its key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place} is damaged ({space:?} row {}): {problem}", hex(key))]
pub struct Damage {
    /// The kind of row.
    pub space: Space,
    /// Its key.
    pub key: Vec<u8>,
    /// A description of the row.
    pub place: String,
    /// The fault.
    pub problem: DamageCause,
}

/// The fault of a damaged row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DamageCause {
    /// Its bytes are wrong: what was found, and at which byte of the row.
    #[error("{0}")]
    Bytes(DecodeError),
    /// The engine cannot read it: its message, with the name of the damaged file.
    #[error("{0}")]
    Unreadable(String),
}

impl Damage {
    /// Advice to a host or a person.
    pub(super) const fn advice(&self) -> &'static str {
        match self.space {
            Space::ChunkL0 | Space::Entity if self.is_of_overlay() => {
                "reset the overlay, or restore it from a copy; its base is not touched"
            }
            Space::ChunkL0
            | Space::ClusterL1
            | Space::ClusterL2
            | Space::Entity
            | Space::Object
            | Space::Record
            | Space::RecordPlace => {
                "run `cg verify`, then restore it from a checkpoint or set it aside with `cg quarantine`"
            }
            Space::OpacityTile | Space::OpacityPatch => "`cg opacity rebuild` draws the map anew",
            _ => "restore it from a checkpoint",
        }
    }

    /// Whether the row's key begins with a lease.
    const fn is_of_overlay(&self) -> bool {
        matches!(self.key.len(), key::OVERLAY_CHUNK_LEN_BYTES | key::OVERLAY_ENTITY_LEN_BYTES)
    }

    /// Damage in the row of a chunk or cluster, found while looking for a chunk.
    pub(crate) fn of_chunk(space: Space, key: &[u8], at: ChunkAt, problem: DecodeError) -> Error {
        Error::Corrupt(Box::new(Self {
            space,
            key: key.into(),
            place: at.to_string(),
            problem: DamageCause::Bytes(problem),
        }))
    }

    /// The error of a damaged row. `place` names what it holds.
    pub fn of_row(space: Space, key: &[u8], place: impl Into<String>, problem: DecodeError) -> Error {
        let problem = DamageCause::Bytes(problem);
        Error::Corrupt(Box::new(Self { space, key: key.into(), place: place.into(), problem }))
    }

    /// Damage that the engine found, if the row belongs to something with a name or a position.
    pub(super) fn of_engine(error: &EngineError) -> Option<Self> {
        let EngineError::Corrupt { place: Place::Row { family, key }, message } = error else { return None };
        let space = Space::of_row(*family, key)?;
        let place = row_in_words(space, key)?;
        let problem = DamageCause::Unreadable(message.clone());
        Some(Self { space, key: key.to_vec(), place, problem })
    }
}
