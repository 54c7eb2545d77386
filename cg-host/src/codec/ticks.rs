//! Blocks that are to be updated at a tick, as side data `host:ticks` of their chunk.
//!
//! `docs/format/host.md` has the layout.

use cg_format::wire::{Reader, Writer};
use cg_format::{BlockId, BlockPos, ChunkAt, DecodeError, Section};

use crate::binding::Binding;
use crate::column::{Column, Scheduled};

const VERSION: u8 = 1;
const LEN_BYTES: usize = 44;

/// What is stored: the tick at which it was saved, and the scheduled blocks with the world's numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) tick: i64,
    pub(crate) scheduled: Vec<(Scheduled, BlockId)>,
}

impl Ticks {
    /// Adds stored ones of blocks that the host does not know, with what was left of them.
    pub(crate) fn keep_unknown(&mut self, binding: &Binding, stored: Self) {
        let later = self.tick.wrapping_sub(stored.tick);
        let kept = stored.scheduled.into_iter().filter(|(_, block)| binding.number(*block).is_none());
        let later = |(one, block): (Scheduled, BlockId)| {
            (Scheduled { due: one.due.wrapping_add(later), ..one }, block)
        };
        self.scheduled.extend(kept.map(later));
    }

    /// Adds those of blocks that the host knows to a column, whose tick becomes the newest of its chunks.
    pub(crate) fn add_to(self, binding: &Binding, column: &mut Column) {
        let tick = if column.scheduled.is_empty() { self.tick } else { column.tick.max(self.tick) };
        let by = tick.wrapping_sub(column.tick);
        for one in &mut column.scheduled {
            one.due = one.due.wrapping_add(by);
        }
        column.tick = tick;
        let by = tick.wrapping_sub(self.tick);
        for (one, block) in self.scheduled {
            match binding.number(block) {
                Some(number) => {
                    column.scheduled.push(Scheduled { block: number, due: one.due.wrapping_add(by), ..one });
                }
                None => column.kept += 1,
            }
        }
    }

    /// The side data; `None` if nothing is scheduled.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        if self.scheduled.is_empty() {
            return None;
        }
        let mut scheduled = self.scheduled.clone();
        scheduled.sort_unstable_by_key(|(one, block)| (one.due, one.priority, one.at, block.get()));
        let mut bytes = Vec::with_capacity(9 + LEN_BYTES * self.scheduled.len());
        let mut writer = Writer::new(&mut bytes);
        writer.u8(VERSION);
        writer.i64(self.tick);
        for (Scheduled { at, due, priority, .. }, block) in &scheduled {
            for axis in [at.x, at.y, at.z] {
                writer.i64(axis);
            }
            writer.i64(*due);
            writer.u64(block.get());
            writer.u32(priority.cast_unsigned());
        }
        Some(bytes)
    }

    /// The scheduled blocks of side data of a chunk; `None` if it is none.
    pub(crate) fn decode(side: &[u8], at: ChunkAt) -> Option<Self> {
        let read = || -> Result<Self, DecodeError> {
            let mut reader = Reader::new(side, Section::SideData);
            reader.expect_u8("format version", VERSION)?;
            let mut ticks = Self { tick: reader.i64("tick")?, ..Self::default() };
            while reader.left_bytes() > 0 {
                let at = BlockPos::new(reader.i64("x")?, reader.i64("y")?, reader.i64("z")?);
                let due = reader.i64("due")?;
                let block = BlockId::new(reader.u64("block")?);
                let priority = reader.u32("priority")?.cast_signed();
                ticks.scheduled.push((Scheduled { at, due, block: 0, priority }, block));
            }
            Ok(ticks)
        };
        let is_here = |(one, _): &(Scheduled, BlockId)| one.at.chunk() == at.pos;
        read().ok().filter(|ticks| ticks.scheduled.iter().all(is_here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks() -> (Ticks, ChunkAt) {
        let one = |x, due, priority| Scheduled { at: BlockPos::new(x, -3, 17), due, block: 0, priority };
        let scheduled = vec![(one(5, 30, -1), BlockId::new(258)), (one(6, 31, 0), BlockId::new(1))];
        let pos = cg_format::ChunkPos::new(0, -1, 1).expect("near");
        (Ticks { tick: 20, scheduled }, ChunkAt::new(cg_format::Dimension::new(0), pos))
    }

    #[test]
    fn the_bytes_are_those_of_the_page() {
        let (ticks, at) = ticks();
        let bytes = ticks.encode().expect("two are scheduled");
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = "011400000000000000\
                        0500000000000000fdffffffffffffff11000000000000001e000000000000000201000000000000ffffffff\
                        0600000000000000fdffffffffffffff11000000000000001f00000000000000010000000000000000000000";
        assert_eq!(hex, expected);
        assert_eq!(Ticks::decode(&bytes, at), Some(ticks));
        assert_eq!(Ticks::default().encode(), None);
    }

    #[test]
    fn what_is_no_list_or_of_another_chunk_is_refused() {
        let (ticks, at) = ticks();
        let bytes = ticks.encode().expect("two are scheduled");
        let pos = cg_format::ChunkPos::new(0, 0, 1).expect("near");
        assert_eq!(Ticks::decode(&bytes, ChunkAt { pos, ..at }), None);
        for len in 0..bytes.len() {
            let is_whole = len == 9 || len == 53;
            assert_eq!(Ticks::decode(&bytes[..len], at).is_some(), is_whole, "{len}");
        }
        let newer: Vec<u8> = std::iter::once(2).chain(bytes.iter().copied().skip(1)).collect();
        assert_eq!(Ticks::decode(&newer, at), None);
    }
}
