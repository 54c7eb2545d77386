//! Scanning past rows that the engine cannot read: a damaged block of a sorted file hides one range of keys.

use std::fmt;
use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;

use super::{EngineError, KeyRange, Readable, ReadableExt as _, RowVisitor, Scan};

/// An item that a scan visits.
#[derive(Debug)]
pub enum Met<'a> {
    /// A row: its key and its bytes.
    Row(&'a [u8], &'a [u8]),
    /// A range of rows that cannot be read. It begins after the last visited row.
    Gap {
        /// The first key that can be read again; `None` if there is none in the range.
        until: Option<&'a [u8]>,
        /// The error of the engine.
        error: EngineError,
    },
}

/// Known gaps, for a caller that scans again from a later key. Finding the end of a gap costs several hundred seeks.
#[derive(Debug, Default)]
pub struct Gaps(Vec<Gap>);

#[derive(Debug)]
struct Gap {
    family: Family,
    /// The last key that was visited, or where the scan began.
    behind: Vec<u8>,
    /// `None`: the gap extends to the end of the scanned range.
    until: Option<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

impl Gaps {
    /// The maximum number of remembered gaps.
    const REMEMBERED: usize = 256;

    /// Records a gap after the key `behind`, which a scan of a range that ends at `to` has found.
    pub fn remember(&mut self, family: Family, behind: &[u8], until: Option<&[u8]>, to: Bound<&[u8]>) {
        if self.0.len() >= Self::REMEMBERED {
            self.0.clear();
        }
        let (behind, until) = (behind.to_vec(), until.map(<[u8]>::to_vec));
        self.0.push(Gap { family, behind, until, to: to.map(<[u8]>::to_vec) });
    }

    /// Where a scan of a range begins: at the end of a gap if the range begins in one. `None` if nothing in the range
    /// can be read.
    pub fn behind(&self, family: Family, (from, to): KeyRange<'_>) -> Option<Bound<Vec<u8>>> {
        let is_inside = |gap: &&Gap| {
            let (key, is_behind) = match from {
                Bound::Included(key) => (key, gap.behind[..] < *key),
                Bound::Excluded(key) => (key, gap.behind[..] <= *key),
                Bound::Unbounded => return false,
            };
            let is_before = match &gap.until {
                Some(until) => *key < until[..],
                None => gap.to.as_ref().map(|to| &to[..]) == to,
            };
            gap.family == family && is_behind && is_before
        };
        match self.0.iter().find(is_inside) {
            Some(gap) => gap.until.clone().map(Bound::Included),
            None => Some(from.map(<[u8]>::to_vec)),
        }
    }
}

/// As [`ReadableExt::scan`](super::ReadableExt::scan), but continues after damage.
///
/// A gap costs several hundred seeks.
///
/// # Errors
/// All errors of the engine except damage.
pub fn scan_skipping_damage<B>(
    view: &dyn Readable,
    family: Family,
    (from, to): KeyRange<'_>,
    mut visit: impl FnMut(Met<'_>) -> ControlFlow<B>,
) -> Result<Option<B>, EngineError> {
    let mut from = from.map(<[u8]>::to_vec);
    loop {
        let mut last: Option<Vec<u8>> = None;
        let range = (from.as_ref().map(Vec::as_slice), to);
        let scanned = view.scan(family, range, |key, row| {
            let last = last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key);
            visit(Met::Row(key, row))
        });
        let error = match scanned {
            Err(error @ EngineError::Corrupt { .. }) => error,
            scanned => return scanned,
        };
        let behind = last.unwrap_or_else(|| match from {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => Vec::new(),
        });
        let until = first_readable(view, family, &behind, to)?;
        if let ControlFlow::Break(value) = visit(Met::Gap { until: until.as_deref(), error }) {
            return Ok(Some(value));
        }
        match until {
            Some(key) => from = Bound::Included(key),
            None => return Ok(None),
        }
    }
}

/// A view whose scans fill no cache; see [`Scan::is_uncached`].
pub struct Uncached<'v> {
    rows: &'v dyn Readable,
}

impl fmt::Debug for Uncached<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uncached").finish_non_exhaustive()
    }
}

impl<'v> Uncached<'v> {
    /// Wraps a view.
    pub fn new(rows: &'v dyn Readable) -> Self {
        Self { rows }
    }
}

impl Readable for Uncached<'_> {
    crate::delegate! { rows => get get_many get_slices is_empty }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.rows.scan_rows(Scan { is_uncached: true, ..scan }, visit)
    }
}

/// Finds the first readable row after a key; `None` if there is none before the end of the range.
///
/// Keys are treated as numbers. Seeks fail from after the key up to the last key of the damaged block. The search
/// doubles its step until a seek succeeds, then bisects. Another damaged block far away does not disturb it. If one
/// is close, the rows between both may be counted as part of the gap.
fn first_readable(
    view: &dyn Readable,
    family: Family,
    behind: &[u8],
    to: Bound<&[u8]>,
) -> Result<Option<Vec<u8>>, EngineError> {
    /// Only keys of objects, of properties and of records in deep trees are longer.
    const LEN_BYTES: usize = 64;
    let mut bad = behind.to_vec();
    bad.resize(LEN_BYTES.max(behind.len()), 0);
    let bits = bad.len() * 8;
    // The first row at or after a key; `None` if it cannot be read.
    let seek = |number: &[u8]| -> Result<Option<Option<Vec<u8>>>, EngineError> {
        // Of all keys with this number, the shortest is the first.
        let len = number.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let range = (Bound::Included(number.get(..len).unwrap_or_default()), to);
        match view.scan_first(family, range, 1, |key, _| ControlFlow::Break(key.to_vec())) {
            Ok(found) => Ok(Some(found)),
            Err(EngineError::Corrupt { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    };
    let mut found = None;
    let mut step = 0;
    while found.is_none() && step < bits {
        let Some(next) = sum(&bad, step) else { break };
        match seek(&next)? {
            Some(row) => found = Some(row),
            None => bad = next,
        }
        step += 1;
    }
    let Some(mut found) = found else { return Ok(None) };
    for step in (0..step.saturating_sub(1)).rev() {
        let Some(next) = sum(&bad, step) else { continue };
        match seek(&next)? {
            Some(row) => found = row,
            None => bad = next,
        }
    }
    Ok(found)
}

/// Adds a power of two to a number, most significant byte first; `None` on overflow.
fn sum(number: &[u8], power: usize) -> Option<Vec<u8>> {
    let mut sum = number.to_vec();
    let mut carry = 1_u16 << (power % 8);
    for byte in sum.iter_mut().rev().skip(power / 8) {
        carry += u16::from(*byte);
        *byte = carry as u8;
        carry >>= 8;
        if carry == 0 {
            return Some(sum);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::Space;

    use crate::{Place, Value};

    /// Rows that partly cannot be read: a seek or a step to such a row fails.
    struct Damaged {
        rows: Vec<(Vec<u8>, bool)>,
    }

    impl Readable for Damaged {
        fn get(&self, _: Space, _: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
            unreachable!("only scanned")
        }

        fn get_many(&self, _: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
            unreachable!("only scanned")
        }

        fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
            use std::ops::RangeBounds as _;
            let Scan { family, range, .. } = scan;
            for (key, is_sound) in self.rows.iter().filter(|(key, _)| range.contains(key.as_slice())) {
                if !is_sound {
                    return Err(EngineError::Corrupt { place: Place::Family(family), message: "bad".into() });
                }
                if visit(key, b"row").is_break() {
                    break;
                }
            }
            Ok(())
        }
    }

    /// Lists the items that a scan of a range visits. A gap is listed as the key after it.
    fn met(rows: &[(&str, bool)], from: Bound<&[u8]>, to: Bound<&[u8]>) -> Vec<String> {
        let rows = rows.iter().map(|(key, is_sound)| (key.as_bytes().to_vec(), *is_sound)).collect();
        let mut met = Vec::new();
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        let scanned = scan_skipping_damage(&Damaged { rows }, Family::Object, (from, to), |one| {
            met.push(match one {
                Met::Row(key, _) => text(key),
                Met::Gap { until: Some(key), .. } => format!("gap until {}", text(key)),
                Met::Gap { until: None, .. } => "gap".into(),
            });
            ControlFlow::<()>::Continue(())
        });
        assert_eq!(scanned.unwrap(), None);
        met
    }

    #[test]
    fn a_scan_goes_on_behind_each_gap() {
        let rows = [
            ("a", true),
            ("b", false),
            ("bb", false),
            ("c", true),
            ("d", false),
            ("gggg", true),
            ("z", false),
        ];
        let all = (Bound::Unbounded, Bound::Unbounded);
        let whole = ["a", "gap until c", "c", "gap until gggg", "gggg", "gap"];
        assert_eq!(met(&rows, all.0, all.1), whole);
        assert_eq!(met(&rows, Bound::Included(b"bb"), Bound::Excluded(b"gggg")), ["gap until c", "c", "gap"]);
        assert_eq!(met(&rows, Bound::Excluded(b"c"), Bound::Included(b"gggg")), ["gap until gggg", "gggg"]);
        assert_eq!(met(&[("x", false)], all.0, all.1), ["gap"]);
        let long = ["k".repeat(70), "k".repeat(90)];
        let rows = [("a", true), (&*long[0], false), (&*long[1], true)];
        assert_eq!(met(&rows, all.0, all.1).first().map(String::as_str), Some("a"));
    }

    #[test]
    fn who_begins_in_a_gap_that_was_met_begins_behind_it() {
        let mut gaps = Gaps::default();
        let begins = |gaps: &Gaps, from| gaps.behind(Family::Object, (from, Bound::Unbounded));
        let same = |key: &[u8]| Some(Bound::Included(key.to_vec()));
        assert_eq!(begins(&gaps, Bound::Included(b"c")), same(b"c"));
        gaps.remember(Family::Object, b"b", Some(b"g"), Bound::Unbounded);
        assert_eq!(begins(&gaps, Bound::Included(b"c")), same(b"g"));
        assert_eq!(begins(&gaps, Bound::Included(b"b")), same(b"b"), "this row was met");
        assert_eq!(begins(&gaps, Bound::Excluded(b"b")), same(b"g"));
        assert_eq!(begins(&gaps, Bound::Included(b"g")), same(b"g"));
        assert_eq!(begins(&gaps, Bound::Included(b"a")), same(b"a"));
        assert_eq!(begins(&gaps, Bound::Unbounded), Some(Bound::Unbounded));
        let other = gaps.behind(Family::Entity, (Bound::Excluded(b"c"), Bound::Unbounded));
        assert_eq!(other, Some(Bound::Excluded(b"c".to_vec())));
        // Nothing can be read up to the end of this range. For another range that is unknown.
        gaps.remember(Family::Object, b"m", None, Bound::Included(b"p"));
        assert_eq!(begins(&gaps, Bound::Included(b"n")), same(b"n"));
        let to_there = gaps.behind(Family::Object, (Bound::Included(b"n"), Bound::Included(b"p")));
        assert_eq!(to_there, None);
    }

    #[test]
    fn numbers_are_added_with_their_carries() {
        assert_eq!(sum(&[0, 255, 255], 0), Some(vec![1, 0, 0]));
        assert_eq!(sum(&[0, 1, 255], 9), Some(vec![0, 3, 255]));
        assert_eq!(sum(&[255, 255], 3), None);
    }
}
