//! Gaps: key ranges in which the engine cannot list the rows of chunks, because a block of a sorted file is damaged.
//!
//! An iterator stops at such a block, which also hides rows of newer files between the same keys. A single row can
//! still be read if it is in another file. So all possible keys are read one by one. If they are few, these are all
//! keys between two rows. Otherwise the change marks show which cubes were ever written.
//!
//! A gap is closed by one batch that deletes its range of keys and puts the readable rows in it. The engine does not
//! read a block that a newer range deletion covers. The block itself stays where it is, so the files of the family are
//! still not rewritten.

use std::ops::{Bound, ControlFlow};

use cg_format::frame::{Draft, Stamp};
use cg_format::key::{self, CHUNK_LEN_BYTES};
use cg_format::{ChunkAt, ChunkBox, ClusterTier, Dimension, Space};

use crate::admin::Admin;
use crate::engine::{
    ALL_KEYS, Batch, EngineError, Guard, Level, Met, Place, Readable, ReadableExt as _, Table,
    scan_skipping_damage,
};
use crate::storage::error::Error;

/// The key of a chunk or a cluster.
type Key = [u8; CHUNK_LEN_BYTES];

/// The maximum number of keys that are read without knowing which exist.
const KEYS_TRIED: usize = 1 << 16;
/// The maximum number of chunks in a box around lost chunks.
const MAX_BOX_CHUNKS: u128 = 1 << 20;
/// The maximum number of keys that are read in one call.
const KEYS_AT_ONCE: usize = 1024;

/// A key range of chunks or clusters in which no row can be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    space: Space,
    /// The last row before it; `None` if there is none.
    behind: Option<Vec<u8>>,
    /// The first row after it; `None` if there is none.
    until: Option<Vec<u8>>,
    /// The sorted file with the damaged block, if the engine reported it.
    table: Option<Table>,
}

/// Chunks of one dimension, with the box around them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostChunks {
    /// The dimension.
    pub dimension: Dimension,
    /// The smallest box that contains them.
    pub bounds: ChunkBox,
}

impl LostChunks {
    /// The chunks that a row holds or may hold; `None` if it is not a row of chunks.
    pub fn of_row(space: Space, row: &[u8]) -> Option<Self> {
        let of = |at: ChunkAt| Self { dimension: at.dimension, bounds: ChunkBox::new(at.pos, at.pos) };
        let tier = match space {
            Space::ChunkL0 => return key::decode_chunk(row).ok().map(of),
            Space::ChunkDelta => return key::decode_delta(row).ok().map(|(at, _)| of(at)),
            Space::ClusterL1 => ClusterTier::L1,
            Space::ClusterL2 => ClusterTier::L2,
            _ => return None,
        };
        let (dimension, cluster) = key::decode_cluster(tier, row).ok()?;
        Some(Self { dimension, bounds: ChunkBox::new(cluster.min_chunk(), cluster.max_chunk()) })
    }

    /// The box around both; `None` if that would be too large.
    fn joined(&self, other: &Self) -> Option<Self> {
        let low = ChunkBox::new(self.bounds.min(), other.bounds.min()).min();
        let high = ChunkBox::new(self.bounds.max(), other.bounds.max()).max();
        let bounds = ChunkBox::new(low, high);
        let is_near = self.dimension == other.dimension && bounds.count() <= MAX_BOX_CHUNKS;
        is_near.then_some(Self { dimension: self.dimension, bounds })
    }
}

impl Gap {
    /// Creates the gap that a scan found after a row.
    pub(crate) fn new(
        space: Space,
        behind: Option<&[u8]>,
        until: Option<&[u8]>,
        error: &EngineError,
    ) -> Self {
        let table = match error {
            EngineError::Corrupt { place: Place::Table(table), .. } => Some((**table).clone()),
            _ => None,
        };
        Self { space, behind: behind.map(<[u8]>::to_vec), until: until.map(<[u8]>::to_vec), table }
    }

    /// The first key after all keys that may be hidden.
    fn end(&self) -> Vec<u8> {
        let end = match &self.table {
            Some(table) => [&table.to[..], &[0]].concat(),
            // After the keys of all chunks.
            None => vec![u8::MAX; CHUNK_LEN_BYTES + 1],
        };
        match &self.until {
            Some(until) => end.min(until.clone()),
            None => end,
        }
    }

    fn contains(&self, key: &Key, end: &[u8]) -> bool {
        self.behind.as_ref().is_none_or(|behind| key[..] > behind[..]) && key[..] < *end
    }

    /// Every key that a row in the gap may have, ascending, each with whether its cube was ever written. `None` if that
    /// is unknown.
    ///
    /// The engine's filter passes one absent key of a hundred to the damaged block. If its cube was never written,
    /// nothing is lost.
    pub(crate) fn keys(&self, view: &dyn Readable) -> Result<Option<Vec<(Key, bool)>>, Error> {
        let end = self.end();
        let marked = self.marked_keys(view, &end)?;
        let mut keys = Vec::new();
        let mut next = self.behind.as_deref().and_then(|key| Key::try_from(key).ok());
        while let Some(key) = next.as_mut()
            && keys.len() < KEYS_TRIED
            && increment(key)
        {
            if !self.contains(key, &end) {
                return Ok(Some(keys));
            }
            let is_marked = marked.as_ref().is_none_or(|marked| marked.binary_search(key).is_ok());
            keys.push((*key, is_marked));
        }
        Ok(marked.map(|marked| marked.into_iter().map(|key| (key, true)).collect()))
    }

    /// The keys in cubes that were ever written, ascending; `None` if the change marks cannot be read.
    fn marked_keys(&self, view: &dyn Readable, end: &[u8]) -> Result<Option<Vec<Key>>, Error> {
        let scale = if self.space == Space::ClusterL2 { ClusterTier::L2 } else { ClusterTier::L1 };
        let tag = Space::ChangeMark.index_tag().expect("it is in the index family");
        let (first, last) = ([tag, scale.scale_level()], [tag, scale.scale_level() + 1]);
        let mark_of = |row: &[u8]| {
            let chunks = LostChunks::of_row(self.space, row)?;
            Some(key::change_mark(chunks.dimension, chunks.bounds.min().cluster(scale)).to_vec())
        };
        let first = self.behind.as_deref().and_then(mark_of).unwrap_or(first.to_vec());
        let until = self.table.as_ref().map(|table| &table.to[..]).or(self.until.as_deref());
        let last = until.and_then(mark_of).unwrap_or(last.to_vec());
        let mut keys = Vec::new();
        let mut add = |key: Key| {
            if self.contains(&key, end) {
                keys.push(key);
            }
        };
        let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let scanned = view.scan(Space::ChangeMark.family(), range, |mark, _| {
            if let Ok((dimension, cube)) = key::decode_change_mark(mark) {
                if self.space == Space::ChunkL0 {
                    let chunks = ChunkBox::new(cube.min_chunk(), cube.max_chunk());
                    chunks.iter().for_each(|pos| add(key::chunk(ChunkAt { dimension, pos })));
                } else {
                    add(key::cluster(dimension, cube));
                }
            }
            ControlFlow::<()>::Continue(())
        });
        match scanned {
            Err(EngineError::Corrupt { .. }) => return Ok(None),
            scanned => scanned?,
        };
        keys.sort_unstable();
        Ok(Some(keys))
    }

    /// The chunks with unreadable rows, in one box or in several distant ones, with the number of rows. `None` if that
    /// is unknown.
    pub(crate) fn lost(&self, view: &dyn Readable) -> Result<Option<Vec<(LostChunks, u64)>>, Error> {
        let Some(keys) = self.keys(view)? else { return Ok(None) };
        let mut boxes: Vec<(LostChunks, u64)> = Vec::new();
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let asked: Vec<_> = keys.iter().map(|(key, _)| (self.space, &key[..])).collect();
            for ((key, is_marked), row) in keys.iter().zip(view.get_many(&asked)) {
                match row {
                    Err(EngineError::Corrupt { .. }) if *is_marked => {}
                    Ok(_) | Err(EngineError::Corrupt { .. }) => continue,
                    Err(error) => return Err(error.into()),
                }
                let Some(chunks) = LostChunks::of_row(self.space, key) else { continue };
                let known = boxes.last_mut();
                match known.and_then(|known| Some((known.0.joined(&chunks)?, known))) {
                    Some((joined, known)) => *known = (joined, known.1 + 1),
                    None => boxes.push((chunks, 1)),
                }
            }
        }
        Ok(Some(boxes))
    }

    /// The first place in it. Quarantining that place closes the gap if nothing in it is lost.
    pub(crate) fn place(&self, view: &dyn Readable) -> Result<Option<LostChunks>, Error> {
        let first = self.keys(view)?.and_then(|keys| keys.first().copied());
        Ok(first.and_then(|(key, _)| LostChunks::of_row(self.space, &key)))
    }
}

impl Admin<'_> {
    /// Closes every gap that overlaps a range of keys of chunks or clusters, if no row in it is damaged. Returns
    /// whether no gap is left.
    pub(super) fn close_gaps(&self, space: Space, keys: [Key; 2]) -> Result<bool, Error> {
        let mut tried = Vec::new();
        loop {
            let gaps = self.gaps(space, &keys)?;
            let Some(gap) = gaps.iter().find(|gap| !tried.contains(*gap)) else { return Ok(gaps.is_empty()) };
            // A gap that remains has damaged rows, or is in another file too.
            self.close_gap(gap)?;
            tried.push(gap.clone());
        }
    }

    /// The gaps that overlap a range of keys, in their full extent.
    fn gaps(&self, space: Space, [first, last]: &[Key; 2]) -> Result<Vec<Gap>, Error> {
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        let goes_on = |next: Option<&[u8]>| match next {
            Some(next) if *next <= last[..] => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        };
        // The rows around a gap may be outside of the range, so the search starts at the beginning of the file.
        let mut from = None;
        scan_skipping_damage(
            &view,
            space.family(),
            (Bound::Included(&first[..]), ALL_KEYS.1),
            |met| match met {
                Met::Row(key, _) => goes_on(Some(key)),
                Met::Gap { until, error } => {
                    let table = Gap::new(space, None, None, &error).table;
                    let begins = table.map_or(Vec::new(), |table| table.from.into());
                    from = Some(from.take().map_or(begins.clone(), |from: Vec<u8>| from.min(begins)));
                    goes_on(until)
                }
            },
        )?;
        let Some(from) = from else { return Ok(Vec::new()) };
        for from in [&from[..], &[]] {
            let (mut gaps, mut behind) = (Vec::new(), None::<Vec<u8>>);
            let range = (Bound::Included(from), ALL_KEYS.1);
            scan_skipping_damage(&view, space.family(), range, |met| {
                let next = match met {
                    Met::Row(key, _) => Some(key),
                    Met::Gap { until, error } => {
                        gaps.push(Gap::new(space, behind.as_deref(), until, &error));
                        until
                    }
                };
                behind = next.map(<[u8]>::to_vec);
                goes_on(next)
            })?;
            gaps.retain(|gap| gap.until.as_deref().is_none_or(|until| *until > first[..]));
            // A row before the file is also before the gap.
            if from.is_empty() || gaps.iter().all(|gap| gap.behind.is_some()) {
                return Ok(gaps);
            }
        }
        Ok(Vec::new())
    }

    /// Closes a gap, unless a row in it is damaged or its rows are unknown.
    fn close_gap(&self, gap: &Gap) -> Result<(), Error> {
        loop {
            let engine = self.shared.engine()?;
            let view = engine.snapshot_of_now()?;
            let Some(mut keys) = gap.keys(&view)? else { return Ok(()) };
            // The row before the gap is included, because the engine's iterator starts from it.
            if let Some(behind) = gap.behind.as_deref().and_then(|key| Key::try_from(key).ok()) {
                keys.insert(0, (behind, true));
            }
            let mut batch = Batch::new();
            batch.delete_range(gap.space, gap.behind.as_deref().unwrap_or_default(), gap.end());
            let mut guards = Vec::new();
            for keys in keys.chunks(KEYS_AT_ONCE) {
                let asked: Vec<_> = keys.iter().map(|(key, _)| (gap.space, &key[..])).collect();
                for ((key, is_marked), row) in keys.iter().zip(view.get_many(&asked)) {
                    match row {
                        Ok(None) => {
                            guards.push(Guard::absent(gap.space, key));
                            continue;
                        }
                        Ok(Some(row)) => {
                            guards.push(Guard::same(gap.space, key, &row));
                            if let Ok((draft, version)) = Draft::of_row(gap.space, key, &row) {
                                batch.put(gap.space, key, draft, Stamp::Keep(version.commit));
                                continue;
                            }
                        }
                        // An unreadable row cannot be guarded, and no move changes it.
                        Err(EngineError::Corrupt { .. }) => {}
                        Err(error) => return Err(error.into()),
                    }
                    if *is_marked && !self.is_quarantined(gap.space, key)? {
                        return Ok(());
                    }
                }
            }
            match engine.commit(batch.maintenance(), &guards, Level::Process) {
                Ok(_) => return Ok(()),
                // Another commit wrote there.
                Err(EngineError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether no lookup ends at a damaged row of chunks any more.
    pub(super) fn is_quarantined(&self, space: Space, row: &[u8]) -> Result<bool, Error> {
        let Some(LostChunks { dimension, bounds }) = LostChunks::of_row(space, row) else { return Ok(false) };
        for pos in bounds.iter() {
            if self.damaged_chunk(ChunkAt { dimension, pos })?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Increments a key; returns `false` after the last one.
fn increment(key: &mut Key) -> bool {
    for byte in key.iter_mut().rev() {
        *byte = byte.wrapping_add(1);
        if *byte != 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::ChunkPos;

    #[test]
    fn what_lies_far_apart_is_in_boxes_of_its_own() {
        let chunks = |dimension, x, y| {
            let pos = ChunkPos::constant(x, y, 0);
            LostChunks { dimension: Dimension::new(dimension), bounds: ChunkBox::new(pos, pos) }
        };
        let here = chunks(0, 0, 0);
        let near = here.joined(&chunks(0, 1 << 10, 1 << 9)).unwrap();
        assert_eq!(
            near.bounds,
            ChunkBox::new(ChunkPos::constant(0, 0, 0), ChunkPos::constant(1 << 10, 1 << 9, 0))
        );
        assert_eq!(near.joined(&chunks(0, 3, 3)), Some(near));
        assert_eq!(here.joined(&chunks(0, 1 << 10, 1 << 10)), None);
        assert_eq!(here.joined(&chunks(1, 1, 0)), None);
    }

    #[test]
    fn keys_are_counted_with_their_carries() {
        let mut key = [u8::MAX; CHUNK_LEN_BYTES];
        assert!(!increment(&mut key));
        assert!(increment(&mut key));
        assert_eq!(key[CHUNK_LEN_BYTES - 2..], [0, 1]);
        key[CHUNK_LEN_BYTES - 1] = u8::MAX;
        assert!(increment(&mut key));
        assert_eq!(key[CHUNK_LEN_BYTES - 2..], [1, 0]);
    }
}
