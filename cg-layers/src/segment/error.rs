//! The errors of segmented worlds.

use std::fmt;
use std::path::PathBuf;

use cg_format::EntityId;
use cg_registry::{ListKind, Name};
use cg_store::Error;
use cg_store::engine::ErrorKind;
use cg_store::error::{ConflictKey, Location};
use uuid::Uuid;

use super::pos::SegmentPos;

/// Why a call of a segmented world fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// A side that does not fit tiers and opacity.
    #[error("a segment's side is a multiple of 16 chunks from 16 to 1048576, and {side_chunks} is none")]
    Side {
        /// The requested side.
        side_chunks: u32,
    },
    /// A transaction touched a second segment. Nothing was written.
    #[error(
        "the transaction is in {first} and touched {second}; do one for each segment, and move entities between them with \
         `transfer_entities`"
    )]
    TwoSegments {
        /// The segment that the transaction is in.
        first: SegmentPos,
        /// The other segment.
        second: SegmentPos,
    },
    /// An entity is put into one segment while another contains it. Nothing was written.
    #[error("entity {id} is in {segment}; move it with `transfer_entities`")]
    EntityElsewhere {
        /// The entity.
        id: EntityId,
        /// The segment that contains it.
        segment: SegmentPos,
    },
    /// A property, an object or a record is read, put or deleted in a segment while another one, or the root, contains it.
    /// Nothing was written. Change it where it is, or delete it there first. The root has the world's settings, and what
    /// hosts put into [it](crate::SegmentedWorld::root).
    #[error("{key} is in {}", .home.map_or_else(|| "the root".to_owned(), |home| home.to_string()))]
    Elsewhere {
        /// Its key.
        key: ConflictKey,
        /// The segment that contains it; `None` for the root.
        home: Option<SegmentPos>,
    },
    /// An entity to be transferred is in no segment. Nothing was written.
    #[error("entity {id} is in no segment; put it first")]
    NoEntity {
        /// The entity.
        id: EntityId,
    },
    /// An entity to be transferred has no chunk to go to. Nothing was written.
    #[error("entity {id} is to cross a border and its owner is no chunk; give it the chunk where it arrives")]
    NoOwner {
        /// The entity.
        id: EntityId,
    },
    /// A segment cannot take what was submitted to it. If its ticket says so, nothing of the batch is stored. If a reader
    /// gets it, the batch waits until the segment can be opened or written.
    #[error("what was submitted to {segment} cannot be given to it: {why}")]
    NotAccepted {
        /// The segment.
        segment: SegmentPos,
        /// The kind of the reason.
        kind: ErrorKind,
        /// The reason in words.
        why: String,
    },
    /// There is no such segment.
    #[error("{segment} is not stored")]
    Missing {
        /// The segment.
        segment: SegmentPos,
    },
    /// A segment that the root knows is missing, and was not deleted.
    #[error("{segment} is gone: the root knows it and {at} is missing; restore it, or delete the segment")]
    Lost {
        /// The segment.
        segment: SegmentPos,
        /// Its location.
        at: Location,
    },
    /// A segment or the root lacks a transfer of entities that the other knows: it was put back from a copy. Nothing was
    /// changed. Otherwise an entity could be in two segments, or in none.
    #[error(
        "{segment} and its root are not of one history: {what} does not have the commit {commit} of a transfer that the other knows, so it was put back from a copy; put root and segments back from one backup, or accept what is there by `cg segments accept`"
    )]
    Replaced {
        /// The segment.
        segment: SegmentPos,
        /// Which of both lacks it.
        what: &'static str,
        /// The commit that it lacks.
        commit: u64,
    },
    /// The root does not know the world in the place of a segment. Nothing was changed.
    #[error(
        "{segment} lies in {at} and its root does not know it; restore both from one backup, or move it away"
    )]
    NotKnown {
        /// The segment.
        segment: SegmentPos,
        /// Its location.
        at: Location,
    },
    /// The storage failed, or the process died, while the entity was transferred, and the transfer is not finished yet.
    #[error(
        "entity {id} is on its way from {from} to {to}, since storage failed or a process died; it arrives once the world is open for writing and both can be written"
    )]
    InTransit {
        /// The entity.
        id: EntityId,
        /// The segment that it leaves.
        from: SegmentPos,
        /// The segment that it goes to.
        to: SegmentPos,
    },
    /// The root stores a merge into several segments that an earlier version committed and did not finish. Nothing was
    /// changed.
    #[error(
        "the root has a merge into several segments that an earlier version began and did not finish; open the world \
         once with the version that wrote it, then again with this one"
    )]
    UnfinishedMerge,
    /// A transaction or an overlay set a property of the engine's own namespace, where the root stores its segments. Nothing
    /// was written.
    #[error("`{property}` is a property of the engine's own; name those of hosts in a namespace of theirs")]
    EnginesProperty {
        /// The property.
        property: String,
    },
    /// A transaction puts a property into a segment, and its name has more than 65,525 bytes. Nothing was written. The root
    /// names the place of each property of a segment by a name that is ten bytes longer. The root itself takes properties
    /// whose names have up to 65,535 bytes, [as each world does](Name::MAX_LEN_BYTES).
    #[error(
        "the name of property `{}` has {} bytes, and a property in a segment has a name of at most {MAX_PROPERTY_NAME_BYTES}; shorten it, or put the property into the root",
        Beginning(name), name.len()
    )]
    LongPropertyName {
        /// The whole name.
        name: String,
    },
    /// The directory holds no segmented world.
    #[error("{} is no segmented world: {why}", path.display())]
    NotSegmented {
        /// The directory.
        path: PathBuf,
        /// The missing part.
        why: &'static str,
    },
    /// The world in the place of a segment is not a segment.
    #[error("what lies in the place of {segment} is no segment of this world: {why}")]
    NotASegment {
        /// The segment.
        segment: SegmentPos,
        /// The fault.
        why: &'static str,
    },
    /// A segment belongs to another root.
    #[error(
        "{segment} belongs to the root {found}, and this is {expected}; export and import what is to move"
    )]
    WrongRoot {
        /// The segment.
        segment: SegmentPos,
        /// This root.
        expected: Uuid,
        /// The root of the segment.
        found: Uuid,
    },
    /// A segment is stored in the place of another.
    #[error("{found} lies in the place of {segment}; put it back")]
    Misplaced {
        /// The segment that should be there.
        segment: SegmentPos,
        /// The segment that is there.
        found: SegmentPos,
    },
    /// A name of a segment has another id in its root, or none.
    #[error("{segment} has `{name}` as {} {id}, and its root does not; restore both from one backup", .list.noun(1))]
    Names {
        /// The segment.
        segment: SegmentPos,
        /// The list of names.
        list: ListKind,
        /// The id in the segment.
        id: u64,
        /// The name.
        name: Name,
    },
    /// A row of the root cannot be decoded.
    #[error("the root's {what} cannot be read: {problem}; restore the root from a backup")]
    DamagedRoot {
        /// Which row.
        what: String,
        /// The fault.
        problem: cg_format::DecodeError,
    },
}

/// A merge into several segments stopped. Merged segments keep their part, and the overlay keeps the rest: call
/// [`merge_into`](crate::Overlay::merge_into) again to continue.
///
/// It is the cause of an [`Error::Layer`], whose kind is that of `error`.
#[derive(Debug, thiserror::Error)]
#[error(
    "{merged} of {segments} segments have their part of the merge, and the overlay keeps the rest; merge it again to go on: {error}"
)]
pub struct MergedInPart {
    /// How many segments this call has merged.
    pub merged: usize,
    /// How many were to be merged.
    pub segments: usize,
    /// Why the merge stopped.
    pub error: Box<Error>,
}

impl From<MergedInPart> for Error {
    fn from(error: MergedInPart) -> Self {
        Self::Layer { kind: error.error.kind(), error: Box::new(error) }
    }
}

impl From<SegmentError> for Error {
    fn from(error: SegmentError) -> Self {
        Self::Layer { kind: error.kind(), error: Box::new(error) }
    }
}

impl SegmentError {
    /// The error of a batch that a segment does not take because of another error.
    pub(super) fn not_accepted(segment: SegmentPos, error: &Error) -> Self {
        match error.layer() {
            Some(same @ Self::NotAccepted { .. }) => same.clone(),
            _ => Self::NotAccepted { segment, kind: error.kind(), why: error.to_string() },
        }
    }

    /// The error for what another segment, or the root, contains.
    pub(super) fn elsewhere(key: &ConflictKey, home: Option<SegmentPos>) -> Self {
        match (key, home) {
            (ConflictKey::Entity(id), Some(segment)) => Self::EntityElsewhere { id: *id, segment },
            (key, home) => Self::Elsewhere { key: key.clone(), home },
        }
    }

    /// The kind of the error, by the action that the caller can take. See [`ErrorKind`].
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Side { .. }
            | Self::TwoSegments { .. }
            | Self::EntityElsewhere { .. }
            | Self::Elsewhere { .. }
            | Self::NoOwner { .. }
            | Self::EnginesProperty { .. }
            | Self::LongPropertyName { .. }
            | Self::WrongRoot { .. } => ErrorKind::Invalid,
            Self::NoEntity { .. } | Self::Missing { .. } | Self::NotSegmented { .. } => ErrorKind::NotFound,
            Self::Lost { .. }
            | Self::NotKnown { .. }
            | Self::Replaced { .. }
            | Self::NotASegment { .. }
            | Self::Misplaced { .. }
            | Self::Names { .. }
            | Self::DamagedRoot { .. } => ErrorKind::Damaged,
            Self::InTransit { .. } => ErrorKind::Unavailable,
            Self::NotAccepted { kind, .. } => *kind,
            Self::UnfinishedMerge => ErrorKind::Unsupported,
        }
    }
}

/// The longest name of a property in a segment: the name of its place, which is in the root, is as long as a name may be.
pub(super) const MAX_PROPERTY_NAME_BYTES: usize = 65_525;

/// A name as errors show it: if it is long, its beginning and how much more there is.
struct Beginning<'a>(&'a str);

impl Beginning<'_> {
    const MAX_BYTES: usize = 64;
}

impl fmt::Display for Beginning<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let longest = Self::MAX_BYTES.min(self.0.len());
        let end = (0..=longest).rev().find(|at| self.0.is_char_boundary(*at)).unwrap_or(0);
        match self.0.split_at(end) {
            (all, "") => f.write_str(all),
            (kept, left_out) => write!(f, "{kept}… ({} bytes more)", left_out.len()),
        }
    }
}

/// The segment whose loss an error reports, or that it is of another history.
pub(super) fn lost_segment(error: &Error) -> Option<SegmentPos> {
    match error.layer()? {
        SegmentError::Lost { segment, .. } | SegmentError::Replaced { segment, .. } => Some(*segment),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{DecodeError, Dimension, Problem, Section};

    #[test]
    fn every_error_has_the_kind_of_what_the_caller_can_do() {
        use ErrorKind as K;
        let at = |x| SegmentPos { dimension: Dimension::new(0), x, y: 0, z: 0 };
        let (segment, id) = (at(0), EntityId::new(Uuid::from_u128(1)));
        let (expected, found) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let name = Name::new("game:stone").unwrap();
        let problem =
            DecodeError::new(Section::Frame, 0, Problem::Truncated { field: "length", needed: 4, left: 0 });
        let table = [
            (SegmentError::Side { side_chunks: 5 }, K::Invalid),
            (SegmentError::TwoSegments { first: segment, second: at(1) }, K::Invalid),
            (SegmentError::EntityElsewhere { id, segment }, K::Invalid),
            (SegmentError::Elsewhere { key: ConflictKey::Entity(id), home: None }, K::Invalid),
            (SegmentError::NoEntity { id }, K::NotFound),
            (SegmentError::NoOwner { id }, K::Invalid),
            (SegmentError::Missing { segment }, K::NotFound),
            (SegmentError::NotAccepted { segment, kind: K::ReadOnly, why: "full".into() }, K::ReadOnly),
            (SegmentError::Lost { segment, at: Location::Address("0".into()) }, K::Damaged),
            (SegmentError::NotKnown { segment, at: Location::Address("0".into()) }, K::Damaged),
            (SegmentError::Replaced { segment, what: "the root", commit: 7 }, K::Damaged),
            (SegmentError::InTransit { id, from: segment, to: at(1) }, K::Unavailable),
            (SegmentError::UnfinishedMerge, K::Unsupported),
            (SegmentError::EnginesProperty { property: ":root".into() }, K::Invalid),
            (SegmentError::LongPropertyName { name: "game:a".into() }, K::Invalid),
            (SegmentError::NotSegmented { path: "world".into(), why: "empty" }, K::NotFound),
            (SegmentError::NotASegment { segment, why: "another" }, K::Damaged),
            (SegmentError::WrongRoot { segment, expected, found }, K::Invalid),
            (SegmentError::Misplaced { segment, found: at(1) }, K::Damaged),
            (SegmentError::Names { segment, list: ListKind::Blocks, id: 1, name }, K::Damaged),
            (SegmentError::DamagedRoot { what: "list".into(), problem }, K::Damaged),
        ];
        for (error, kind) in table {
            assert_eq!(error.kind(), kind, "{error}");
        }
    }
}
