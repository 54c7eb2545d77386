//! Blocks that are to be updated at a tick, as side data `host:ticks` of a column's lowest chunk.
//!
//! `docs/format/host.md` has the layout.

use cg_format::wire::{Reader, Writer};
use cg_format::{BlockId, BlockPos, ChunkAt, DecodeError, Section};

use crate::binding::Binding;
use crate::column::{Column, Scheduled};
use crate::error::Error;
use crate::place::ColumnAt;

const VERSION: u8 = 1;
const LEN_BYTES: usize = 44;

/// What is stored: the tick at which it was saved, and the scheduled blocks in the world's numbers.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Ticks {
    pub(crate) tick: i64,
    pub(crate) scheduled: Vec<(Scheduled, BlockId)>,
}

impl Ticks {
    /// The scheduled blocks of a host's column, and stored ones that stay: of blocks that the host does not know, and in chunks
    /// that it does not save.
    pub(crate) fn of(
        binding: &Binding,
        column: &Column,
        stored: Option<Self>,
        stays: impl Fn(ChunkAt) -> bool,
    ) -> Result<Self, Error> {
        let mut scheduled = Vec::with_capacity(column.scheduled.len());
        for one in &column.scheduled {
            scheduled.push((*one, binding.block_in(&column.at, one.block)?));
        }
        if let Some(stored) = stored {
            let chunk = |one: &Scheduled| ChunkAt::new(column.at.dimension, one.at.chunk());
            let is_kept =
                |(one, block): &(Scheduled, BlockId)| binding.number(*block).is_none() || stays(chunk(one));
            let kept = stored.scheduled.into_iter().filter(is_kept);
            let later = column.tick.wrapping_sub(stored.tick);
            scheduled.extend(
                kept.map(|(one, block)| (Scheduled { due: one.due.wrapping_add(later), ..one }, block)),
            );
        }
        scheduled.sort_unstable_by_key(|(one, block)| (one.due, one.priority, one.at, block.get()));
        Ok(Self { tick: column.tick, scheduled })
    }

    /// Those of blocks that the host knows, in its numbers.
    pub(crate) fn into_column(self, binding: &Binding, column: &mut Column) {
        column.tick = self.tick;
        for (one, block) in self.scheduled {
            match binding.number(block) {
                Some(number) => column.scheduled.push(Scheduled { block: number, ..one }),
                None => column.kept += 1,
            }
        }
    }

    /// The side data; `None` if nothing is scheduled.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        if self.scheduled.is_empty() {
            return None;
        }
        let mut bytes = Vec::with_capacity(9 + LEN_BYTES * self.scheduled.len());
        let mut writer = Writer::new(&mut bytes);
        writer.u8(VERSION);
        writer.i64(self.tick);
        for (Scheduled { at, due, priority, .. }, block) in &self.scheduled {
            for axis in [at.x, at.y, at.z] {
                writer.i64(axis);
            }
            writer.i64(*due);
            writer.u64(block.get());
            writer.u32(priority.cast_unsigned());
        }
        Some(bytes)
    }

    /// The scheduled blocks of side data of a column; `None` if it is none.
    pub(crate) fn decode(side: &[u8], at: &ColumnAt) -> Option<Self> {
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
        let is_here = |(one, _): &(Scheduled, BlockId)| (one.at.x >> 4, one.at.z >> 4) == (at.x, at.z);
        read().ok().filter(|ticks| ticks.scheduled.iter().all(is_here))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks() -> (Ticks, ColumnAt) {
        let one = |x, due, priority| Scheduled { at: BlockPos::new(x, -3, 17), due, block: 0, priority };
        let scheduled = vec![(one(5, 30, -1), BlockId::new(258)), (one(6, 31, 0), BlockId::new(1))];
        let dimension = cg_format::Dimension::new(0);
        (Ticks { tick: 20, scheduled }, ColumnAt { dimension, x: 0, z: 1, min_y: -4, max_y: 4 })
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
        assert_eq!(Ticks::decode(&bytes, &at), Some(ticks));
        assert_eq!(Ticks::default().encode(), None);
    }

    #[test]
    fn what_is_no_list_or_of_another_column_is_refused() {
        let (ticks, at) = ticks();
        let bytes = ticks.encode().expect("two are scheduled");
        assert_eq!(Ticks::decode(&bytes, &ColumnAt { x: 1, ..at }), None);
        for len in 0..bytes.len() {
            let is_whole = len == 9 || len == 53;
            assert_eq!(Ticks::decode(&bytes[..len], &at).is_some(), is_whole, "{len}");
        }
        let newer: Vec<u8> = std::iter::once(2).chain(bytes.iter().copied().skip(1)).collect();
        assert_eq!(Ticks::decode(&newer, &at), None);
    }
}
