//! The segment of a chunk, and the root's rows that name segments.
//!
//! The root is a world. The rows are properties in the engine's own, nameless namespace:
//!
//! | property | value |
//! |---|---|
//! | `:segments` | u32: the side of a segment in chunks |
//! | `:segment/D.X.Y.Z` | u8: 0 being created, 1 stored, 2 being deleted |
//! | `:entity/UUID` | the segment that contains the entity, if any does: dimension u64, x, y, z i64 |
//! | `:crossing` | entities in transit between segments, see `transfer` |
//! | `:crossed/D.X.Y.Z` | a commit of the segment after its newest transfer, see `history` |
//! | `:promotion/S.P`, `:promotion` | a merge of an earlier version, see `open` |
//!
//! A segment is a world too. Its property `:segment` stores the root (UUID) and the place that it belongs to; `:crossed` a
//! commit of the root, see `history`.

use std::fmt;

use cg_format::wire::{Reader, Writer};
use cg_format::{ChunkAt, DecodeError, Dimension, EntityId, Problem, Section};
use cg_registry::Name;
use cg_store::{Error, Property};

use super::SegmentError;

/// The smallest side; every side is a multiple of it. It is the side of the coldest tier's clusters, so that no
/// cluster is in two segments.
const SIDE_STEP: u32 = 16;
const MAX_SIDE: u32 = 1 << 20;

/// A segment, by its position among the segments of a dimension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentPos {
    /// The dimension.
    pub dimension: Dimension,
    /// Its position along x, in segments.
    pub x: i64,
    /// Along y.
    pub y: i64,
    /// Along z.
    pub z: i64,
}

impl fmt::Display for SegmentPos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} {} {} of dimension {}", self.x, self.y, self.z, self.dimension.get())
    }
}

impl SegmentPos {
    /// The segment of a chunk, for a given side in chunks.
    pub(super) fn of(at: ChunkAt, side_chunks: u32) -> Self {
        let place = |chunk: i64| chunk.div_euclid(side_chunks.into());
        let (x, y, z) = (place(at.pos.x()), place(at.pos.y()), place(at.pos.z()));
        Self { dimension: at.dimension, x, y, z }
    }

    /// Whether it is the segment of a chunk. Cheaper than [`of`](Self::of), which divides.
    pub(super) fn has(self, at: ChunkAt, side_chunks: u32) -> bool {
        let side = i64::from(side_chunks);
        let is_in =
            |chunk: i64, place: i64| (0..side).contains(&chunk.wrapping_sub(place.wrapping_mul(side)));
        self.dimension == at.dimension
            && is_in(at.pos.x(), self.x)
            && is_in(at.pos.y(), self.y)
            && is_in(at.pos.z(), self.z)
    }

    /// The name of its directory.
    pub(super) fn file_name(self) -> String {
        format!("{}.{}.{}.{}", self.dimension.get(), self.x, self.y, self.z)
    }

    pub(super) fn property(self) -> Result<Property, Error> {
        named(&format!(":segment/{}", self.file_name()))
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u64(self.dimension.get());
        for place in [self.x, self.y, self.z] {
            writer.i64(place);
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let dimension = Dimension::new(reader.u64("dimension")?);
        Ok(Self { dimension, x: reader.i64("x")?, y: reader.i64("y")?, z: reader.i64("z")? })
    }

    /// Parses a name of [`file_name`](Self::file_name).
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.split('.');
        let dimension = Dimension::new(parts.next()?.parse().ok()?);
        let mut place = || parts.next()?.parse().ok();
        let (x, y, z) = (place()?, place()?, place()?);
        parts.next().is_none().then_some(Self { dimension, x, y, z })
    }
}

/// The state of a segment, as the root stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SegmentState {
    Creating = 0,
    There = 1,
    Deleting = 2,
}

impl SegmentState {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Section::Overlay);
        let here = reader.clone();
        let state = match reader.u8("segment state")? {
            0 => Self::Creating,
            1 => Self::There,
            2 => Self::Deleting,
            found => {
                let (field, found) = ("segment state", found.into());
                return Err(here.error(Problem::OutOfRange { field, found, allowed: "0 to 2" }));
            }
        };
        reader.end("bytes after the state")?;
        Ok(state)
    }

    pub(super) fn encode(self) -> Vec<u8> {
        vec![self as u8]
    }
}

/// Refuses an invalid side.
pub(super) fn check_side(side_chunks: u32) -> Result<(), SegmentError> {
    let fits = side_chunks.is_multiple_of(SIDE_STEP) && (SIDE_STEP..=MAX_SIDE).contains(&side_chunks);
    if fits { Ok(()) } else { Err(SegmentError::Side { side_chunks }) }
}

/// The prefix of the properties that name segments.
pub(super) const SEGMENT_PREFIX: &str = ":segment/";
/// The prefix of the properties that store the segments of entities.
pub(super) const ENTITY_PREFIX: &str = ":entity/";

/// The prefix of the properties in which earlier versions staged a merge.
pub(super) const OLD_MERGE_PREFIX: &str = ":promotion/";

pub(super) fn side_property() -> Result<Property, Error> {
    named(":segments")
}

pub(super) fn transfer_property() -> Result<Property, Error> {
    named(":crossing")
}

/// The property that committed a merge into several segments in earlier versions.
pub(super) fn old_merge_property() -> Result<Property, Error> {
    named(":promotion")
}

/// The property that a segment stores about itself.
pub(super) fn own_property() -> Result<Property, Error> {
    named(":segment")
}

/// The property of the root with a commit of a segment.
pub(super) fn crossed_property(segment: SegmentPos) -> Result<Property, Error> {
    named(&format!(":crossed/{}", segment.file_name()))
}

/// The property of a segment with a commit of the root.
pub(super) fn own_crossed_property() -> Result<Property, Error> {
    named(":crossed")
}

pub(super) fn entity_property(id: EntityId) -> Result<Property, Error> {
    named(&format!("{ENTITY_PREFIX}{id}"))
}

fn named(text: &str) -> Result<Property, Error> {
    Ok(Property::Named(Name::new(text)?))
}

/// Decodes a whole value of the root.
pub(super) fn whole<T>(
    what: impl fmt::Display,
    bytes: &[u8],
    read: impl FnOnce(&mut Reader<'_>) -> Result<T, DecodeError>,
) -> Result<T, Error> {
    let mut reader = Reader::new(bytes, Section::Overlay);
    let value = read(&mut reader).and_then(|value| {
        reader.end("bytes after the value")?;
        Ok(value)
    });
    value.map_err(|problem| SegmentError::DamagedRoot { what: what.to_string(), problem }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::ChunkPos;

    #[test]
    fn chunks_below_zero_lie_in_segments_below_zero() {
        let of = |x, y, z| {
            let at = ChunkAt::new(Dimension::new(1), ChunkPos::constant(x, y, z));
            SegmentPos::of(at, 32).to_string()
        };
        assert_eq!(of(0, 31, -1), "segment 0 0 -1 of dimension 1");
        assert_eq!(of(32, -32, -33), "segment 1 -1 -2 of dimension 1");
    }

    #[test]
    fn a_segment_has_the_chunks_that_are_of_it() {
        let ends = [-49, -48, -1, 0, 47, 48, 95];
        let all = || ends.into_iter().flat_map(move |x| ends.map(|y| (x, y, -1 - x)));
        let at = |dimension, (x, y, z)| ChunkAt::new(Dimension::new(dimension), ChunkPos::constant(x, y, z));
        for one in all() {
            let segment = SegmentPos::of(at(1, one), 48);
            for other in all() {
                let is_of_it = SegmentPos::of(at(1, other), 48) == segment;
                assert_eq!(segment.has(at(1, other), 48), is_of_it, "{other:?} and {segment}");
            }
            assert!(!segment.has(at(2, one), 48));
        }
    }

    #[test]
    fn a_name_comes_back() {
        let pos = SegmentPos { dimension: Dimension::new(3), x: -7, y: 0, z: i64::MAX };
        assert_eq!(SegmentPos::parse(&pos.file_name()), Some(pos));
        assert_eq!(SegmentPos::parse("1.2.3"), None);
        assert_eq!(SegmentPos::parse("1.2.3.4.5"), None);
        assert!(pos.property().is_ok() && entity_property(EntityId::from_bytes([0xfe; 16])).is_ok());
    }
}
