//! Tracks which rows are written while the guards of a commit are compared, so that no lock is needed for that.
//!
//! A commit with guards begins to watch under the commit lock and compares the guards without it. Under the lock
//! again, it finds the guards whose rows were written since, and compares only those again. A commit without guards
//! records its rows only while another commit watches.
//!
//! **Invariant**: every row that a batch wrote after a [`Since`] was created is recorded, or all rows are treated as
//! written.

use std::collections::HashSet;
use std::hash::BuildHasher as _;

use cg_format::Space;
use cg_format::key::Family;
use foldhash::fast::FixedState;

use super::super::batch::Batch;
use super::super::{COMMIT_SEQUENCE_KEY, Guard};

/// The maximum number of recorded rows, eight bytes each. Above it, all rows are treated as written.
const REMEMBERED_ROWS: usize = 1 << 16;

/// The rows written since the oldest running watch began.
#[derive(Debug, Default)]
pub(super) struct Watch {
    watchers: usize,
    /// Hashes of rows, in the order of the batches. A collision costs one comparison.
    written: Vec<u64>,
    /// How often the recorded rows were dropped.
    forgotten: u64,
}

/// The start of a commit's watch. It must be passed to [`Watch::end`].
#[derive(Debug)]
#[must_use = "what is written is noted for as long as a commit watches"]
pub(super) struct Since {
    from: usize,
    forgotten: u64,
}

/// The rows that a batch writes.
#[derive(Debug, Default)]
pub(super) struct Rows {
    hashes: Vec<u64>,
    /// Whether the batch also writes unknown rows, those of a range.
    has_others: bool,
}

fn hash(family: Family, key: &[u8]) -> u64 {
    FixedState::with_seed(0).hash_one((family, key))
}

fn hash_of(space: Space, key: &[u8]) -> u64 {
    hash(space.family(), key)
}

impl Rows {
    pub(super) fn of(batch: &Batch) -> Self {
        let mut hashes: Vec<_> = batch.places().map(|(space, key)| hash_of(space, key)).collect();
        if !batch.is_maintenance() {
            // The engine adds this row to every commit.
            hashes.push(hash_of(Space::WorldMeta, COMMIT_SEQUENCE_KEY));
        }
        Self { hashes, has_others: batch.has_ranges() }
    }
}

impl Watch {
    /// Whether any commit watches.
    pub(super) const fn is_watched(&self) -> bool {
        self.watchers > 0
    }

    /// Begins to record the written rows.
    pub(super) fn begin(&mut self) -> Since {
        self.watchers += 1;
        Since { from: self.written.len(), forgotten: self.forgotten }
    }

    /// Records what a batch has written.
    pub(super) fn note(&mut self, rows: &Rows) {
        if !self.is_watched() {
            return;
        }
        if rows.has_others || self.written.len() + rows.hashes.len() > REMEMBERED_ROWS {
            self.forget();
        } else {
            self.written.extend_from_slice(&rows.hashes);
        }
    }

    /// Ends the watch. Returns the guards whose rows were written since it began.
    pub(super) fn end(&mut self, since: Since, guards: &[Guard]) -> Vec<Guard> {
        let touched = if since.forgotten == self.forgotten {
            let written = self.written.get(since.from..).unwrap_or_default();
            let written: HashSet<u64> = written.iter().copied().collect();
            let is_touched =
                |guard: &&Guard| !written.is_empty() && written.contains(&hash_of(guard.space, &guard.key));
            guards.iter().filter(is_touched).cloned().collect()
        } else {
            guards.to_vec()
        };
        self.watchers -= 1;
        if self.watchers == 0 {
            self.written.clear();
        }
        touched
    }

    fn forget(&mut self) {
        self.written.clear();
        self.forgotten += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;
    use cg_format::frame::{Codec, Draft};

    const SPACE: Space = Space::WorldProperty;

    fn puts(keys: &[&[u8]]) -> Batch {
        let mut batch = Batch::new();
        for key in keys {
            batch.put(SPACE, key, Draft::plain(Codec::None, 0, |_| {}), Stamp::Commit);
        }
        batch
    }

    fn guards(keys: &[&[u8]]) -> Vec<Guard> {
        keys.iter().map(|key| Guard::absent(SPACE, key)).collect()
    }

    #[test]
    fn what_was_written_since_is_compared_again() {
        let mut watch = Watch::default();
        watch.note(&Rows::of(&puts(&[b"a"])));
        let first = watch.begin();
        watch.note(&Rows::of(&puts(&[b"b", b"x"])));
        let second = watch.begin();
        let mut removal = Batch::new();
        removal.delete(SPACE, b"c");
        watch.note(&Rows::of(&removal));
        let all = guards(&[b"a", b"b", b"c", b"d"]);
        assert_eq!(watch.end(first, &all), guards(&[b"b", b"c"]));
        assert_eq!(watch.end(second, &all), guards(&[b"c"]));
        assert_eq!((watch.is_watched(), watch.written.len()), (false, 0), "nothing is kept for nobody");
    }

    #[test]
    fn every_commit_writes_the_row_of_the_sequence_and_no_rearrangement_does() {
        let guard = vec![Guard::version(Space::WorldMeta, COMMIT_SEQUENCE_KEY, 1)];
        let mut watch = Watch::default();
        let since = watch.begin();
        watch.note(&Rows::of(&puts(&[b"x"]).maintenance()));
        assert_eq!(watch.end(since, &guard), vec![]);
        let since = watch.begin();
        watch.note(&Rows::of(&puts(&[b"x"])));
        assert_eq!(watch.end(since, &guard), guard);
    }

    #[test]
    fn what_nobody_can_name_is_everything() {
        let all = guards(&[b"a", b"b"]);
        let mut watch = Watch::default();
        let since = watch.begin();
        let mut range = puts(&[b"x"]);
        range.delete_range(SPACE, b"p", b"q");
        watch.note(&Rows::of(&range));
        let later = watch.begin();
        assert_eq!((watch.end(since, &all), watch.end(later, &all)), (all.clone(), vec![]));
        let since = watch.begin();
        let many = Rows { hashes: vec![7; REMEMBERED_ROWS - 1], has_others: false };
        watch.note(&many);
        watch.note(&Rows { hashes: vec![7], has_others: false });
        let full = watch.begin();
        assert_eq!(watch.written.len(), REMEMBERED_ROWS);
        watch.note(&Rows { hashes: vec![7], has_others: false });
        assert!(watch.written.is_empty());
        assert_eq!((watch.end(since, &all), watch.end(full, &all)), (all.clone(), all));
    }
}
