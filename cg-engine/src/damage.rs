//! Scanning past what the engine cannot read: a damaged block of a sorted file hides a range of keys, and no more.

use std::fmt;
use std::ops::{Bound, ControlFlow};

use cg_format::key::Family;

use super::{EngineError, KeyRange, Readable, ReadableExt as _, RowVisitor, Scan};

/// What a scan meets.
#[derive(Debug)]
pub enum Met<'a> {
    /// A row: its key and its bytes.
    Row(&'a [u8], &'a [u8]),
    /// Rows that cannot be read, after the last one that was met.
    Gap {
        /// The first key that can be read again; `None`: none up to the end of the range.
        until: Option<&'a [u8]>,
        /// What the engine says.
        error: EngineError,
    },
}

/// Gaps that were met, for a caller that scans again from further on. Finding the end of a gap costs some hundred seeks.
#[derive(Debug, Default)]
pub struct Gaps(Vec<Gap>);

#[derive(Debug)]
struct Gap {
    family: Family,
    /// The last key that was met, or where the scan began.
    behind: Vec<u8>,
    /// `None`: to the end of the range that was scanned.
    until: Option<Vec<u8>>,
    to: Bound<Vec<u8>>,
}

impl Gaps {
    /// At most this many are remembered.
    const REMEMBERED: usize = 256;

    /// Notes what a scan of a range that ends at `to` has met after a key.
    pub fn remember(&mut self, family: Family, behind: &[u8], until: Option<&[u8]>, to: Bound<&[u8]>) {
        if self.0.len() >= Self::REMEMBERED {
            self.0.clear();
        }
        let (behind, until) = (behind.to_vec(), until.map(<[u8]>::to_vec));
        self.0.push(Gap { family, behind, until, to: to.map(<[u8]>::to_vec) });
    }

    /// Where a scan of a range is to begin: after a gap if it would begin in one; `None` if nothing of it can be read.
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

/// As [`ReadableExt::scan`](super::ReadableExt::scan), going on after damage.
///
/// A gap costs some hundred seeks.
///
/// # Errors
/// If the engine fails otherwise than by damage.
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

/// A view whose scans fill no cache: see [`Scan::is_uncached`].
pub struct Uncached<'v> {
    rows: &'v dyn Readable,
}

impl fmt::Debug for Uncached<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uncached").finish_non_exhaustive()
    }
}

impl<'v> Uncached<'v> {
    /// Around a view.
    pub fn new(rows: &'v dyn Readable) -> Self {
        Self { rows }
    }
}

impl Readable for Uncached<'_> {
    crate::delegate! { rows => get get_many get_slices }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        self.rows.scan_rows(Scan { is_uncached: true, ..scan }, visit)
    }
}

/// The first row that can be read again after a key; `None` if none can before the end of the range.
///
/// Keys are taken for numbers. A seek fails from after the key to the last one of the damaged block, so the end of that
/// is searched for in doubling steps, and then by halving. So another damaged block far behind is not in the way; of one that
/// is close, the rows between both may count as part of the gap.
fn first_readable(
    view: &dyn Readable,
    family: Family,
    behind: &[u8],
    to: Bound<&[u8]>,
) -> Result<Option<Vec<u8>>, EngineError> {
    /// No key but those of objects, properties and records in deep trees is longer.
    const LEN_BYTES: usize = 64;
    let mut bad = behind.to_vec();
    bad.resize(LEN_BYTES.max(behind.len()), 0);
    let bits = bad.len() * 8;
    // The row at a key or after it, or nothing if that cannot be read.
    let seek = |number: &[u8]| -> Result<Option<Option<Vec<u8>>>, EngineError> {
        // The shortest of the keys that are this number is the first of them.
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

/// A number, most significant byte first, with a power of two added; `None` if it has no room for the sum.
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

    /// Rows of which some cannot be read: a seek to one of them, or a step onto it, fails.
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

    /// What a scan over a range meets, gaps as the key after them.
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
        // To the end of a range nothing can be read; of another range that is not known.
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
