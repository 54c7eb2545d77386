//! Which chunks have deltas, told from the keys of a view; and where nobody can tell.

use std::collections::HashMap;
use std::ops::ControlFlow;

use cg_format::ChunkAt;
use cg_format::key::{self, Family};

use crate::engine::{ALL_KEYS, Met, Readable, scan_skipping_damage};
use crate::storage::error::Error;

/// Parts of the keys of deltas that nobody can read: a chunk whose deltas may lie there has some until the contrary is
/// known, so that damage is never taken for "nothing changed".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gaps(Vec<Gap>);

/// What lies between the last key that was read and the next that can be; open where there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Gap {
    behind: Option<Vec<u8>>,
    until: Option<Vec<u8>>,
}

impl Gaps {
    /// Whether everything can be read.
    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether deltas of a chunk may lie in one.
    pub(crate) fn may_hide(&self, at: ChunkAt) -> bool {
        let [first, last] = [0, u64::MAX].map(|seq| key::delta(at, seq));
        self.0.iter().any(|gap| {
            gap.behind.as_ref().is_none_or(|behind| last[..] > behind[..])
                && gap.until.as_ref().is_none_or(|until| first[..] < until[..])
        })
    }
}

/// Shows every delta's chunk, commit and row, in the order of the keys, and returns where nobody can tell.
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
                // A key that nobody can read belongs to no chunk; verification reports it.
                if let Ok((at, seq)) = key::decode_delta(key) {
                    visit(at, seq, row);
                }
            }
            Met::Gap { until, error } => {
                tracing::warn!(%error, "changes of some chunks cannot be read");
                gaps.0.push(Gap { behind: last.clone(), until: until.map(<[u8]>::to_vec) });
            }
        }
        ControlFlow::<()>::Continue(())
    })?;
    Ok(gaps)
}

/// The chunks that have deltas in a view.
#[derive(Debug)]
pub(crate) struct WithDeltas {
    /// The commit of each one's last.
    last: HashMap<ChunkAt, u64>,
    gaps: Gaps,
}

impl WithDeltas {
    /// Reads the keys of all deltas.
    pub(crate) fn of(view: &dyn Readable) -> Result<Self, Error> {
        let mut last = HashMap::new();
        // The keys of a chunk's deltas ascend with their commits, so the last one stays.
        let gaps = each_delta(view, |at, seq, _| {
            last.insert(at, seq);
        })?;
        Ok(Self { last, gaps })
    }

    /// Whether a chunk may have deltas.
    pub(crate) fn has(&self, at: ChunkAt) -> bool {
        self.last.contains_key(&at) || (!self.gaps.is_empty() && self.gaps.may_hide(at))
    }

    /// The commit of a chunk's last delta, if that is known.
    pub(super) fn last(&self, at: ChunkAt) -> Option<u64> {
        self.last.get(&at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::{ChunkPos, Dimension};

    #[test]
    fn a_gap_may_hide_what_lies_between_and_at_its_ends() {
        let at = |x| ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, x));
        let key = |x, seq| Some(key::delta(at(x), seq).to_vec());
        let hides = |behind, until| {
            let gaps = Gaps(vec![Gap { behind, until }]);
            (0..8).map(|x| u8::from(gaps.may_hide(at(x)))).collect::<Vec<_>>()
        };
        // Along one axis eight chunks sort as their coordinates do.
        assert_eq!(hides(key(2, 9), key(5, 4)), [0, 0, 1, 1, 1, 1, 0, 0]);
        assert_eq!(hides(key(2, u64::MAX), key(5, 0)), [0, 0, 0, 1, 1, 0, 0, 0]);
        assert_eq!(hides(None, key(2, 1)), [1, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(hides(key(6, 1), None), [0, 0, 0, 0, 0, 0, 1, 1]);
        assert!(!Gaps::default().may_hide(at(0)) && Gaps::default().is_empty());
    }
}
