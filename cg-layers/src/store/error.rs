//! The errors of overlays: a base that is not the one they were written over, and unusable arenas.

use std::path::PathBuf;

use cg_format::overlay::Origin;
use cg_registry::{ListKind, Name};
use cg_store::Error;
use cg_store::engine::ErrorKind;
use cg_store::error::ConflictKey;
use uuid::Uuid;

/// Why a call of an overlay fails. Nothing was written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OverlayError {
    /// It was written over another world.
    #[error(
        "the overlay was written over {expected}, and this is {found}; open it over the world it belongs to"
    )]
    WrongBase {
        /// The base that it was written over.
        expected: Uuid,
        /// The base that was given.
        found: Uuid,
    },
    /// Its base was replaced by a copy of itself, or is an overlay that was reset.
    #[error(
        "the overlay was written over incarnation {expected} of its base, which is now incarnation {found}: it was \
         restored from a copy or reset; create the overlay anew"
    )]
    BaseReplaced {
        /// The incarnation that it was written over.
        expected: Uuid,
        /// The present incarnation of the base.
        found: Uuid,
    },
    /// An id has another name in the base than when the overlay was written.
    #[error(
        "{} {id} is {} in the base, and was `{expected}` when the overlay was written; the base is not the same any more",
        .list.noun(1), found.as_ref().map_or_else(|| "missing".into(), |name| format!("`{name}`"))
    )]
    BaseNames {
        /// The list of names.
        list: ListKind,
        /// The id.
        id: u64,
        /// The name that the overlay has stored.
        expected: Name,
        /// The name in the base.
        found: Option<Name>,
    },
    /// The base has issued ids that the overlay has issued for its own names.
    #[error(
        "the base has {found} {}, and the overlay's own names begin at {shared}: the ids of both would mean different \
         things; register names in the base before overlays over it register their own", .list.noun(2)
    )]
    BaseGrew {
        /// The list of names.
        list: ListKind,
        /// How many of its names were the base's.
        shared: u64,
        /// How many names the base has now.
        found: u64,
    },
    /// The schema generation of the base has changed since the overlay registered names of its own.
    #[error(
        "the base has schema generation {found}, and the overlay registered names of its own in generation {expected}; \
         merge or release the overlay before packs change"
    )]
    BaseSchema {
        /// The generation that the overlay was written with.
        expected: u32,
        /// The present generation of the base.
        found: u32,
    },
    /// The base has changed a value since the overlay wrote over it. Merging would undo that.
    /// [`Overlay::rebase`](crate::Overlay::rebase) resolves the conflict.
    #[error(
        "{key} was {} when the overlay wrote over it, and is {} in the base now; decide which of both is to stay",
        describe(*.expected), describe(*.found)
    )]
    BaseChanged {
        /// The key of the value.
        key: ConflictKey,
        /// The origin that the overlay wrote over.
        expected: Origin,
        /// The present origin in the base.
        found: Origin,
    },
    /// The directory holds no overlay.
    #[error("{} is no overlay: {why}", path.display())]
    NotAnOverlay {
        /// The directory.
        path: PathBuf,
        /// The missing part.
        why: &'static str,
    },
    /// The arena was released or reclaimed while a handle was still held.
    #[error("arena {arena} was given back; lease another")]
    Released {
        /// The arena's number.
        arena: u32,
    },
    /// There is no arena with this number.
    #[error("there is no arena {arena}")]
    UnknownArena {
        /// The number asked for.
        arena: u32,
    },
    /// The arena is free.
    #[error("arena {arena} is leased by nobody; lease it")]
    NotLeased {
        /// The arena's number.
        arena: u32,
    },
    /// The arena has a holder.
    #[error("arena {arena} is in use; drop its other handles first")]
    InUse {
        /// The arena's number.
        arena: u32,
    },
    /// More overlays are stacked than a row can count.
    #[error("{layers} overlays are over each other, at most 255 can be; merge some of them")]
    TooDeep {
        /// How many it would be.
        layers: u32,
    },
    /// What was submitted cannot be written now. It waits.
    #[error("what was submitted to arena {arena} cannot be written now, and waits: {why}")]
    NotWritten {
        /// The arena's number.
        arena: u32,
        /// The kind of the reason.
        kind: ErrorKind,
        /// The reason.
        why: String,
    },
    /// The name of a holder is longer than can be stored.
    #[error("the holder's name has {len_bytes} bytes, at most 65535 can be stored")]
    HolderTooLong {
        /// Its length.
        len_bytes: usize,
    },
}

impl From<OverlayError> for Error {
    fn from(error: OverlayError) -> Self {
        Self::Layer { kind: error.kind(), error: Box::new(error) }
    }
}

impl OverlayError {
    /// The kind of the error, by the action that the caller can take. See [`ErrorKind`].
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::WrongBase { .. }
            | Self::BaseReplaced { .. }
            | Self::BaseNames { .. }
            | Self::BaseGrew { .. }
            | Self::BaseSchema { .. }
            | Self::BaseChanged { .. }
            | Self::NotLeased { .. } => ErrorKind::Invalid,
            Self::NotAnOverlay { .. } | Self::UnknownArena { .. } => ErrorKind::NotFound,
            Self::Released { .. } => ErrorKind::Closed,
            Self::InUse { .. } => ErrorKind::Busy,
            Self::NotWritten { kind, .. } => *kind,
            Self::TooDeep { .. } | Self::HolderTooLong { .. } => ErrorKind::TooLarge,
        }
    }
}

fn describe(origin: Origin) -> String {
    match origin {
        Origin { version: 0, .. } => "absent".into(),
        Origin { layer: 0, version, .. } => format!("version {version}"),
        Origin { layer, version, .. } => format!("version {version} of overlay {layer}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_the_kind_of_what_the_caller_can_do() {
        use ErrorKind as K;
        let (expected, found) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let name = Name::new("game:stone").unwrap();
        let origin = Origin { layer: 0, version: 1, opening: 0 };
        let table = [
            (OverlayError::WrongBase { expected, found }, K::Invalid),
            (OverlayError::BaseReplaced { expected, found }, K::Invalid),
            (
                OverlayError::BaseNames { list: ListKind::Blocks, id: 1, expected: name, found: None },
                K::Invalid,
            ),
            (OverlayError::BaseGrew { list: ListKind::Blocks, shared: 1, found: 2 }, K::Invalid),
            (OverlayError::BaseSchema { expected: 1, found: 2 }, K::Invalid),
            (
                OverlayError::BaseChanged {
                    key: ConflictKey::Property(":time".into()),
                    expected: origin,
                    found: origin,
                },
                K::Invalid,
            ),
            (OverlayError::NotAnOverlay { path: "arenas".into(), why: "empty" }, K::NotFound),
            (OverlayError::Released { arena: 1 }, K::Closed),
            (OverlayError::UnknownArena { arena: 1 }, K::NotFound),
            (OverlayError::NotLeased { arena: 1 }, K::Invalid),
            (OverlayError::InUse { arena: 1 }, K::Busy),
            (OverlayError::NotWritten { arena: 1, kind: K::ReadOnly, why: "full".into() }, K::ReadOnly),
            (OverlayError::TooDeep { layers: 256 }, K::TooLarge),
            (OverlayError::HolderTooLong { len_bytes: 65_536 }, K::TooLarge),
        ];
        for (error, kind) in table {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
