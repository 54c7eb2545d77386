//! Rows that commits put into the hottest tier since the last tick. So no tick has to read to find them.

use std::collections::BTreeMap;

use cg_format::cluster::Slot;
use cg_format::frame::FrameKind;
use cg_format::{ClusterTier, Space, key};
use cg_tiering::CubeAt;

use crate::engine::Batch;

/// The maximum number of remembered cubes.
const REMEMBERED_CUBES: usize = 1 << 14;

/// The places of a cube whose rows were written, by the kind of the last write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Puts {
    pub(crate) chunks: u64,
    /// Tombstones.
    pub(crate) tombstones: u64,
}

/// The puts that were not taken yet.
///
/// They are recorded only after the rows can be read. So a caller that takes them and then reads misses nothing.
#[derive(Debug, Default)]
pub(crate) struct RecentPuts {
    cubes: BTreeMap<CubeAt, Puts>,
    is_incomplete: bool,
}

impl Puts {
    /// Adds later writes.
    const fn add(&mut self, later: Self) {
        self.chunks = (self.chunks & !later.tombstones) | later.chunks;
        self.tombstones = (self.tombstones & !later.chunks) | later.tombstones;
    }
}

impl RecentPuts {
    /// The hot rows that a batch will put, one entry for each run of rows in one cube.
    pub(crate) fn of(batch: &Batch) -> Vec<(CubeAt, Puts)> {
        let mut runs: Vec<(CubeAt, Puts)> = Vec::new();
        for (row, draft) in batch.drafts_put(Space::ChunkL0) {
            let Ok(at) = key::decode_chunk(row) else { continue };
            let place = 1 << Slot::of(at.pos, ClusterTier::L1).in_cube();
            let is_tombstone = draft.kind() == FrameKind::Tombstone;
            let puts = if is_tombstone {
                Puts { chunks: 0, tombstones: place }
            } else {
                Puts { chunks: place, tombstones: 0 }
            };
            let cube = CubeAt::of(at);
            match runs.last_mut() {
                Some((last, before)) if *last == cube => before.add(puts),
                _ => runs.push((cube, puts)),
            }
        }
        runs
    }

    pub(crate) fn add(&mut self, written: Vec<(CubeAt, Puts)>) {
        for (cube, puts) in written {
            self.cubes.entry(cube).or_default().add(puts);
        }
        if self.cubes.len() > REMEMBERED_CUBES {
            self.cubes.clear();
            self.is_incomplete = true;
        }
    }

    /// Records that rows were written without a report.
    pub(crate) const fn lose_track(&mut self) {
        self.is_incomplete = true;
    }

    /// Takes the recorded puts. Returns an error if some were dropped because there were too many.
    pub(crate) fn take(&mut self) -> Result<BTreeMap<CubeAt, Puts>, Overflow> {
        let cubes = std::mem::take(&mut self.cubes);
        if std::mem::take(&mut self.is_incomplete) { Err(Overflow(cubes)) } else { Ok(cubes) }
    }
}

/// An incomplete record of the puts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overflow(pub(crate) BTreeMap<CubeAt, Puts>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Stamp;
    use cg_format::frame::{Codec, Draft};
    use cg_format::{ChunkAt, ChunkPos, Dimension};

    fn at(x: i64) -> ChunkAt {
        ChunkAt::new(Dimension::new(0), ChunkPos::new(x, 0, 0).unwrap())
    }

    fn batch(chunks: impl IntoIterator<Item = i64>, tombstones: &[i64]) -> Vec<(CubeAt, Puts)> {
        let mut batch = Batch::new();
        for x in chunks {
            let draft = Draft::plain(Codec::None, 0, |out| out.push(1));
            batch.put(Space::ChunkL0, key::chunk(at(x)), draft, Stamp::Commit);
        }
        for x in tombstones {
            batch.put(Space::ChunkL0, key::chunk(at(*x)), Draft::tombstone(0), Stamp::Commit);
        }
        RecentPuts::of(&batch)
    }

    #[test]
    fn the_last_write_of_a_place_counts() {
        let mut written = RecentPuts::default();
        let place = |x| 1 << Slot::of(at(x).pos, ClusterTier::L1).in_cube();
        written.add(batch([0, 1], &[2]));
        written.add(batch([2], &[0]));
        let expected = Puts { chunks: place(1) | place(2), tombstones: place(0) };
        assert_eq!(written.take(), Ok([(CubeAt::of(at(0)), expected)].into()));
        assert_eq!(written.take(), Ok(BTreeMap::new()));
    }

    #[test]
    fn what_does_not_fit_is_forgotten_and_said_once() {
        let mut written = RecentPuts::default();
        written.add(batch((0..=REMEMBERED_CUBES as i64).map(|n| n * 4), &[]));
        written.add(batch([7], &[]));
        let Err(Overflow(rest)) = written.take() else { panic!("something was forgotten") };
        assert_eq!(rest.into_keys().collect::<Vec<_>>(), [CubeAt::of(at(7))]);
        assert_eq!(written.take(), Ok(BTreeMap::new()));
    }
}
