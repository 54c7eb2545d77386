//! The position of a segment.

use std::fmt;

use cg_format::wire::{Reader, Writer};
use cg_format::{BlockBox, BlockPos, ChunkAt, ChunkBox, DecodeError, Dimension};

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

    /// Whether it has a chunk of a box.
    pub(super) fn meets(self, dimension: Dimension, area: ChunkBox, side_chunks: u32) -> bool {
        let of = |pos| Self::of(ChunkAt::new(dimension, pos), side_chunks);
        let (min, max) = (of(area.min()), of(area.max()));
        self.dimension == dimension
            && (min.x..=max.x).contains(&self.x)
            && (min.y..=max.y).contains(&self.y)
            && (min.z..=max.z).contains(&self.z)
    }

    /// Its blocks. What would be beyond the ends of the world is at the ends.
    pub(super) fn blocks(self, side_chunks: u32) -> BlockBox {
        let side = 16 * i64::from(side_chunks);
        let first = |place: i64| place.saturating_mul(side);
        let last = |place: i64| first(place).saturating_add(side - 1);
        BlockBox::new(
            BlockPos::new(first(self.x), first(self.y), first(self.z)),
            BlockPos::new(last(self.x), last(self.y), last(self.z)),
        )
    }

    /// The name of its directory.
    pub(super) fn file_name(self) -> String {
        format!("{}.{}.{}.{}", self.dimension.get(), self.x, self.y, self.z)
    }

    pub(super) fn encode(self, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        writer.u64(self.dimension.get());
        for place in [self.x, self.y, self.z] {
            writer.i64(place);
        }
    }

    /// Its bytes.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
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
    }
}
