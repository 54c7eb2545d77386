//! The deltas of chunks as reads see them: their folding into the chunk, and what cannot be read of them.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::delta::{ApplyError, DeltaView};
use cg_format::frame::{self, FrameKind, FrameView};
use cg_format::key::{self, Family};
use cg_format::{ChunkAt, DecodeError, Problem, Section, Space};
use cg_registry::Catalog;
use foldhash::HashMap;

use super::Deltas;
use crate::engine::{ALL_KEYS, Met, Readable, ReadableExt as _, scan_skipping_damage};
use crate::read::chunk::StoredChunk;
use crate::read::chunk::decode::{decode_as_stored, schema_of};
use crate::storage::error::{Damage, Error};

/// Decodes a chunk with the schema of its row and applies its deltas. The version is that of the last delta.
///
/// Deltas that are [`Stored`](Deltas::Stored) are read from `view`, which must be a view with the row.
pub(crate) fn fold(
    catalog: &Catalog,
    stored: StoredChunk<'_>,
    deltas: &Deltas,
    view: &dyn Readable,
) -> Result<(Chunk, u64), Error> {
    let (mut chunk, mut version) = (decode_as_stored(catalog, stored)?, stored.version.get());
    if matches!(deltas, Deltas::None) {
        return Ok((chunk, version));
    }
    let schema = schema_of(catalog, stored)?;
    let mut apply = |row_key: &[u8], delta: Result<(u64, DeltaView<'_>), DecodeError>| {
        let applied = delta.and_then(|(seq, delta)| {
            version = seq;
            delta.fold_into(&mut chunk, &schema).map_err(|why| unfit(&why))
        });
        applied.map_err(|problem| Damage::of_chunk(Space::ChunkDelta, row_key, stored.at, problem))
    };
    match deltas {
        Deltas::None => {}
        Deltas::Cached(cached) => {
            // A row that was written meanwhile already contains the deltas up to its version.
            for (seq, says) in cached.iter().filter(|(seq, _)| *seq > stored.version.get()) {
                apply(&key::delta(stored.at, seq), DeltaView::new(says).map(|delta| (seq, delta)))?;
            }
        }
        Deltas::Stored => {
            let (first, last) =
                (key::delta(stored.at, stored.version.get()), key::delta(stored.at, u64::MAX));
            let range = (Bound::Excluded(&first[..]), Bound::Included(&last[..]));
            view.try_scan(Family::ChunkDelta, range, |row_key, row| {
                apply(row_key, read(row_key, row).map(|(seq, delta, _)| (seq, delta)))
            })?;
        }
    }
    Ok((chunk, version))
}

/// Decodes a delta's row: the commit, and the payload as a view and as bytes.
pub(crate) fn read<'r>(row_key: &[u8], row: &'r [u8]) -> Result<(u64, DeltaView<'r>, &'r [u8]), DecodeError> {
    let (_, seq) = key::decode_delta(row_key)?;
    let frame = FrameView::open(Space::ChunkDelta, row_key, row)?;
    if frame.header().kind != FrameKind::Deltas {
        let found = frame.header().kind.byte().into();
        return Err(DecodeError::new(
            Section::Frame,
            1,
            Problem::OutOfRange { field: "kind", found, allowed: "4 (deltas)" },
        ));
    }
    Ok((seq, DeltaView::new(frame.payload())?, frame.payload()))
}

/// The damage of a delta that cannot be applied to its chunk.
fn unfit(why: &ApplyError) -> DecodeError {
    let found = match why {
        ApplyError::CarriesComponents { block, .. } => block.get(),
        _ => 0,
    };
    let allowed = "blocks without components, in layers that are there, in place of such";
    let problem = Problem::OutOfRange { field: "set block", found, allowed };
    DecodeError::new(Section::Delta, frame::LEN_BYTES as u64, problem)
}

/// The cached deltas of one chunk, ascending by their commits. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct CachedDeltas(Arc<Vec<(u64, Arc<[u8]>)>>);

impl CachedDeltas {
    /// The commit and the payload of each delta. The payload is sound.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.0.iter().map(|(seq, says)| (*seq, &**says))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The commit of the last one.
    pub(super) fn last(&self) -> Option<u64> {
        self.0.last().map(|(seq, _)| *seq)
    }

    pub(super) fn push(&mut self, seq: u64, says: Arc<[u8]>) {
        Arc::make_mut(&mut self.0).push((seq, says));
    }

    /// Keeps the deltas whose commits `keep` selects.
    pub(super) fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        if !self.0.iter().all(|(seq, _)| keep(*seq)) {
            Arc::make_mut(&mut self.0).retain(|(seq, _)| keep(*seq));
        }
    }

    /// The memory that they take.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().map(|(_, says)| bytes(says)).sum()
    }
}

/// The memory of a delta: its payload, its entry and the allocator's overhead.
pub(super) fn bytes(says: &[u8]) -> usize {
    const ENTRY_BYTES: usize = 72;
    ENTRY_BYTES + says.len()
}

/// The last commit of the deltas of each chunk in a view. Reads keys only, and takes no lock.
pub(crate) struct DeltasInView {
    last: HashMap<ChunkAt, u64>,
    gaps: Gaps,
}

impl DeltasInView {
    /// Scans the keys of all deltas.
    pub(crate) fn read(view: &dyn Readable) -> Result<Self, Error> {
        let mut last = HashMap::default();
        let gaps = each_delta(view, |at, seq, _| {
            last.insert(at, seq);
        })?;
        Ok(Self { last, gaps })
    }

    /// The deltas of a chunk.
    pub(crate) fn of(&self, at: ChunkAt) -> Deltas {
        let has_any = self.last.contains_key(&at) || (!self.gaps.is_empty() && self.gaps.may_hide(at));
        if has_any { Deltas::Stored } else { Deltas::None }
    }

    /// The version of a chunk, given the version of its row.
    pub(crate) fn version(&self, at: ChunkAt, of_row: u64) -> u64 {
        self.last.get(&at).map_or(of_row, |last| of_row.max(*last))
    }
}

/// Unreadable ranges in the keys of deltas. A chunk whose deltas may be in one counts as having deltas, so that damage
/// is never treated as "nothing changed".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gaps(Vec<Gap>);

/// The range between the last key that was read and the next readable one; unbounded if there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gap {
    after: Option<Vec<u8>>,
    until: Option<Vec<u8>>,
}

impl Gaps {
    /// Whether everything can be read.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether deltas of a chunk may be in a gap.
    pub(crate) fn may_hide(&self, at: ChunkAt) -> bool {
        let [first, last] = [0, u64::MAX].map(|seq| key::delta(at, seq));
        self.0.iter().any(|gap| {
            gap.after.as_ref().is_none_or(|after| last[..] > after[..])
                && gap.until.as_ref().is_none_or(|until| first[..] < until[..])
        })
    }
}

/// Visits every delta's chunk, commit and row, in the order of the keys. Returns the unreadable gaps.
pub(super) fn each_delta(
    view: &dyn Readable,
    mut visit: impl FnMut(ChunkAt, u64, &[u8]),
) -> Result<Gaps, Error> {
    let (mut gaps, mut last) = (Gaps::default(), None::<Vec<u8>>);
    scan_skipping_damage(view, Family::ChunkDelta, ALL_KEYS, |met| {
        match met {
            Met::Row(key, row) => {
                let last = last.get_or_insert_default();
                last.clear();
                last.extend_from_slice(key);
                // A key that does not decode is skipped; verification reports it.
                if let Ok((at, seq)) = key::decode_delta(key) {
                    visit(at, seq, row);
                }
            }
            Met::Gap { until, error } => {
                tracing::warn!(%error, "changes of some chunks cannot be read");
                gaps.0.push(Gap { after: last.clone(), until: until.map(<[u8]>::to_vec) });
            }
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    #[test]
    fn a_gap_may_hide_what_lies_between_and_at_its_ends() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, x));
        let key = |x, seq| Some(key::delta(at(x), seq).to_vec());
        let hides = |after, until| {
            let gaps = Gaps(vec![Gap { after, until }]);
            (0..8).map(|x| u8::from(gaps.may_hide(at(x)))).collect::<Vec<_>>()
        };
        // Eight chunks along one axis, whose keys sort like their coordinates.
        assert_eq!(hides(key(2, 9), key(5, 4)), [0, 0, 1, 1, 1, 1, 0, 0]);
        assert_eq!(hides(key(2, u64::MAX), key(5, 0)), [0, 0, 0, 1, 1, 0, 0, 0]);
        assert_eq!(hides(None, key(2, 1)), [1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(hides(key(6, 1), None), [0, 0, 0, 0, 0, 0, 1, 1]);
        assert!(!Gaps::default().may_hide(at(0)) && Gaps::default().is_empty());
    }
}
