//! Reads the deltas of a view, and finds the unreadable gaps.

use std::ops::ControlFlow;

use cg_format::ChunkAt;
use cg_format::key::{self, Family};

use crate::engine::{ALL_KEYS, Met, Readable, scan_skipping_damage};
use crate::storage::error::Error;

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
