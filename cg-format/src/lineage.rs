//! The lineage of a world: which opening for writing made which commit.
//!
//! Commit numbers alone do not tell two histories apart. A world that is put back from a copy goes on with the numbers that
//! the original used after the copy was made. So each opening for writing draws a random number, and stores it with its
//! first commit. A commit is known by its number and that of the opening that made it.
//!
//! The openings are stored in rows of up to 256, after their frames; every row but the last is full:
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `first commit`: the first commit of an opening |
//! | 8 | 8 | `opening`: its random number, whose low 32 bits are not zero |
//! | 16 | … | the next opening |
//!
//! First commits increase strictly, within a row and from row to row. A commit before the first opening of the list is of
//! an earlier draft, which stored none; its number is 0.

use alloc::vec::Vec;

use crate::wire::{Reader, Span, Trace, Writer};
use crate::{DecodeError, Problem, Section};

/// An opening of a world for writing that made a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opening {
    /// Its first commit.
    pub first_commit: u64,
    /// Its random number. The low 32 bits are not zero, because rows carry them.
    pub number: u64,
}

/// A commit of one history: two are equal only if they are the same commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HistoryPoint {
    /// The number of the opening that made the commit; 0 if it was made before openings were stored.
    pub opening: u64,
    /// The commit's sequence number.
    pub commit: u64,
}

/// The openings of a world, from the oldest to the newest.
///
/// ```
/// use cg_format::lineage::{HistoryPoint, Lineage, Opening};
/// let mut original = Lineage::default();
/// original.add(Opening { first_commit: 1, number: 7 });
/// let mut copy = original.clone();
/// // Both go on after commit 10.
/// original.add(Opening { first_commit: 11, number: 8 });
/// copy.add(Opening { first_commit: 11, number: 9 });
///
/// let seen = original.at(12);
/// assert_eq!(seen, HistoryPoint { opening: 8, commit: 12 });
/// assert!(original.has(seen) && !copy.has(seen));
/// assert!(copy.has(original.at(10)), "both have commit 10");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lineage {
    /// First commits increase strictly.
    openings: Vec<Opening>,
}

impl Lineage {
    /// The most openings in one row.
    pub const OPENINGS_PER_ROW: usize = 256;

    /// The number of the opening that made a commit; 0 if none of the list did. Costs a binary search.
    pub fn opening_of(&self, commit: u64) -> u64 {
        let number = |opening: &Opening| opening.number;
        if let Some(newest) = self.openings.last().filter(|newest| newest.first_commit <= commit) {
            return newest.number;
        }
        let later = self.openings.partition_point(|opening| opening.first_commit <= commit);
        later.checked_sub(1).and_then(|index| self.openings.get(index)).map_or(0, number)
    }

    /// The low 32 bits of [`opening_of`](Self::opening_of), which the rows of a commit carry in their frames.
    pub fn word_of(&self, commit: u64) -> u32 {
        self.opening_of(commit) as u32
    }

    /// A commit of this history.
    pub fn at(&self, commit: u64) -> HistoryPoint {
        HistoryPoint { opening: self.opening_of(commit), commit }
    }

    /// Whether a commit is certainly one of this history, if it is not after the newest commit. Of commits that were made
    /// before openings were stored, nothing is certain.
    pub fn has(&self, point: HistoryPoint) -> bool {
        point.opening != 0 && self.opening_of(point.commit) == point.opening
    }

    /// The openings.
    pub fn openings(&self) -> &[Opening] {
        &self.openings
    }

    /// Adds the newest opening. Openings whose first commit is not before that of the new one are removed: their commits
    /// were lost, and their numbers are used again.
    pub fn add(&mut self, opening: Opening) {
        let kept = self.openings.partition_point(|earlier| earlier.first_commit < opening.first_commit);
        self.openings.truncate(kept);
        self.openings.push(opening);
    }

    /// The index and the content of the row with the newest opening; `None` if there is no opening.
    pub fn newest_row(&self) -> Option<(u32, &[Opening])> {
        let index = self.openings.len().checked_sub(1)? / Self::OPENINGS_PER_ROW;
        Some((index as u32, self.openings.get(index * Self::OPENINGS_PER_ROW..)?))
    }

    /// Appends the stored form of a row's openings.
    pub fn encode_row(openings: &[Opening], out: &mut Vec<u8>) {
        let mut writer = Writer::new(out);
        for Opening { first_commit, number } in openings {
            writer.u64(*first_commit);
            writer.u64(*number);
        }
    }

    /// Appends the openings of the next row. Rows must come in the order of their indexes.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Lineage`] for a row that is empty, too long, not a whole number of openings, or out of
    /// order, and for a row after one that is not full.
    pub fn decode_row(&mut self, bytes: &[u8]) -> Result<(), DecodeError> {
        self.read_row(bytes, Reader::new(bytes, Section::Lineage))
    }

    /// Explains the stored form of the first row: the fields that [`decode_row`](Self::decode_row) reads, up to the first
    /// error.
    pub fn trace_row(bytes: &[u8]) -> (Vec<Span>, Result<(), DecodeError>) {
        let trace = Trace::default();
        let reader = Reader::new(bytes, Section::Lineage).traced(Some(&trace));
        let result = Self::default().read_row(bytes, reader);
        (trace.into_inner(), result)
    }

    fn read_row(&mut self, bytes: &[u8], mut reader: Reader<'_>) -> Result<(), DecodeError> {
        if !self.openings.len().is_multiple_of(Self::OPENINGS_PER_ROW) {
            let before = self.openings.len() % Self::OPENINGS_PER_ROW;
            let (field, found) = ("openings in the row before", before as u64);
            return Err(reader.error(Problem::OutOfRange { field, found, allowed: "256" }));
        }
        let count = bytes.len() / 16;
        if count == 0 || count > Self::OPENINGS_PER_ROW {
            let (field, found) = ("number of openings", count as u64);
            return Err(reader.error(Problem::OutOfRange { field, found, allowed: "1 to 256" }));
        }
        for _ in 0..count {
            let here = reader.clone();
            let first_commit = reader.u64("first commit")?;
            if self.openings.last().is_some_and(|earlier| earlier.first_commit >= first_commit) {
                let (field, found) = ("first commit", first_commit);
                return Err(here.error(Problem::OutOfRange {
                    field,
                    found,
                    allowed: "more than the opening before",
                }));
            }
            let here = reader.clone();
            let number = reader.u64("opening")?;
            if number as u32 == 0 {
                let allowed = "a number whose low 32 bits are not zero";
                return Err(here.error(Problem::OutOfRange { field: "opening", found: number, allowed }));
            }
            self.openings.push(Opening { first_commit, number });
        }
        reader.end("bytes after the openings")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{annotated, golden};
    use proptest::prelude::*;
    use std::format;
    use std::string::ToString as _;

    fn opening(first_commit: u64, number: u64) -> Opening {
        Opening { first_commit, number }
    }

    fn of(openings: &[(u64, u64)]) -> Lineage {
        let mut lineage = Lineage::default();
        for (first, number) in openings {
            lineage.add(opening(*first, *number));
        }
        lineage
    }

    #[test]
    fn a_commit_is_of_the_newest_opening_that_began_before_it() {
        let lineage = of(&[(5, 50), (6, 60), (9, 90)]);
        let found = (3..12).map(|commit| lineage.opening_of(commit)).collect::<Vec<_>>();
        assert_eq!(found, [0, 0, 50, 60, 60, 60, 90, 90, 90]);
        let before = lineage.at(4);
        assert_eq!(before, HistoryPoint { opening: 0, commit: 4 });
        assert!(!lineage.has(before) && lineage.has(lineage.at(5)));
    }

    #[test]
    fn an_opening_after_a_loss_takes_the_place_of_those_that_made_the_lost_commits() {
        let mut lineage = of(&[(1, 10), (5, 50), (9, 90)]);
        lineage.add(opening(5, 51));
        assert_eq!(lineage.openings(), [opening(1, 10), opening(5, 51)]);
    }

    #[test]
    fn a_row_is_pinned() {
        let lineage = of(&[(1, 0x0102_0304_0506_0708), (258, 0x1112_1314_1516_1718)]);
        let mut bytes = Vec::new();
        Lineage::encode_row(lineage.openings(), &mut bytes);
        golden("lineage/row", &bytes, &format!("{lineage:#?}\n"));
        let (fields, read) = Lineage::trace_row(&bytes);
        assert_eq!(read, Ok(()));
        insta::assert_snapshot!("row", annotated(&bytes, &fields));
    }

    #[test]
    fn what_no_writer_produces_is_refused() {
        let decode = |rows: &[&[u8]]| {
            let mut lineage = Lineage::default();
            rows.iter().try_for_each(|row| lineage.decode_row(row)).expect_err("it is refused").to_string()
        };
        let row = |openings: &[Opening]| {
            let mut bytes = Vec::new();
            Lineage::encode_row(openings, &mut bytes);
            bytes
        };
        let one = row(&[opening(1, 1)]);
        for (error, found) in [
            ("number of openings is 0, allowed is 1 to 256 (at byte 0)", decode(&[&[]])),
            ("number of openings is 257, allowed is 1 to 256 (at byte 0)", decode(&[&[0; 257 * 16]])),
            ("openings in the row before is 1, allowed is 256 (at byte 0)", decode(&[&one, &one])),
            (
                "first commit is 1, allowed is more than the opening before (at byte 16)",
                decode(&[&row(&[opening(1, 1), opening(1, 2)])]),
            ),
            (
                "opening is 4294967296, allowed is a number whose low 32 bits are not zero (at byte 8)",
                decode(&[&row(&[opening(1, 1 << 32)])]),
            ),
            (
                "bytes after the openings must be zero or absent, found 1 (at byte 16)",
                decode(&[&[&one[..], &[7]].concat()]),
            ),
        ] {
            assert_eq!(found, format!("lineage: {error}"));
        }
    }

    proptest! {
        #[test]
        fn rows_come_back(firsts in proptest::collection::btree_set(1_u64..1 << 40, 1..600)) {
            let mut lineage = Lineage::default();
            let mut rows: Vec<Vec<u8>> = Vec::new();
            for first in firsts {
                lineage.add(opening(first, first | 1));
                let (index, openings) = lineage.newest_row().expect("one was added");
                rows.resize(index as usize + 1, Vec::new());
                let row = rows.last_mut().expect("it has that row");
                row.clear();
                Lineage::encode_row(openings, row);
            }
            let mut again = Lineage::default();
            for row in &rows {
                again.decode_row(row).expect("it was encoded");
            }
            prop_assert_eq!(again, lineage);
        }
    }
}
