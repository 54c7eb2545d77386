//! Which world it is.

use uuid::Uuid;

/// A world, or a layer over worlds, and which of its lives this is.
///
/// Versions of two incarnations are never compared. A base whose identity differs from the one that an overlay remembers is
/// not the base that the overlay was written over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The world, for ever. A copy has the same.
    pub uuid: Uuid,
    /// Drawn anew whenever the content may go back: when a copy lives on, and when commits were lost.
    pub incarnation: Uuid,
}
