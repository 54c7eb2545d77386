//! Order in which the sections of a column stood, and the kind of the number of each.

use crate::nbt::{Tag, Value};

/// The sections of a column as they stood in its list: the height of each, and the kind of its `Y`.
///
/// The game writes them ascending, with a byte each. A world that was upgraded from before 1.18 has the new ones at the
/// end, and tools write ints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionOrder(Vec<(i8, Tag)>);

/// The kinds of numbers that a height may be.
const KINDS: [Tag; 4] = [Tag::Byte, Tag::Short, Tag::Int, Tag::Long];

impl SectionOrder {
    /// The order of these sections; `None` where it and the kinds are the game's, or a height is there twice.
    pub(super) fn of(met: Vec<(i8, Tag)>) -> Option<Self> {
        let is_usual =
            met.is_sorted_by(|(a, _), (b, _)| a < b) && met.iter().all(|(_, tag)| *tag == Tag::Byte);
        let mut heights: Vec<_> = met.iter().map(|(y, _)| y).collect();
        heights.sort_unstable();
        (!is_usual && heights.is_sorted_by(|a, b| a < b)).then_some(Self(met))
    }

    /// Note of a section at this height with this `Y`.
    pub(super) const fn note(y: i8, value: Option<Value<'_>>) -> (i8, Tag) {
        let tag = match value {
            Some(Value::Short(_)) => Tag::Short,
            Some(Value::Int(_)) => Tag::Int,
            Some(Value::Long(_)) => Tag::Long,
            _ => Tag::Byte,
        };
        (y, tag)
    }

    /// Where the section of a height stood, and the kind of its `Y`. One that was not there stands after all others.
    pub(crate) fn place(&self, y: i32) -> (usize, Tag) {
        let found = self.0.iter().enumerate().find(|(_, (met, _))| i32::from(*met) == y);
        found.map_or((usize::MAX, Tag::Byte), |(place, (_, tag))| (place, *tag))
    }

    /// Two bytes for each section: its height, and the kind.
    pub(crate) fn encode(&self) -> Vec<u8> {
        self.0.iter().flat_map(|(y, tag)| [y.cast_unsigned(), *tag as u8]).collect()
    }

    /// Reads what [`SectionOrder::encode`] gave.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (pairs, rest) = bytes.as_chunks::<2>();
        let noted = |[y, tag]: &[u8; 2]| {
            let tag = Tag::from_byte(*tag).filter(|tag| KINDS.contains(tag))?;
            Some((y.cast_signed(), tag))
        };
        let met = pairs.iter().map(noted).collect::<Option<_>>()?;
        rest.is_empty().then_some(())?;
        Self::of(met)
    }
}
