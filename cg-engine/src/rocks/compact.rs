//! Compaction on request: of a range of keys, or of the next slice of it in which there is something to gain.
//!
//! RocksDB compacts a range as a whole. So a slice ends where a file of the last level ends, and its files are few. A slice
//! is worth it if a file of a higher level overlaps it, if its own files have tombstones, or if much of the family's blob
//! files is garbage. All of that is in memory.

use std::ops::Bound;

use cg_format::key::Family;
use rocksdb::{BottommostLevelCompaction, CompactOptions, LiveFile};

use super::super::{EngineError, KeyRange, range};
use super::{RocksEngine, failure, tuning};

/// A slice takes adjacent files up to this sum of their sizes: one large file, or some small ones.
const SLICE_BYTES: usize = 64 << 20;

/// Garbage of blob files is collected if it is one part in this number of them, or more. Collecting it copies all values
/// of a slice, so a little of it is not worth that.
const GARBAGE_PART: u64 = 16;

/// Which garbage of blob files a compaction collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collect {
    /// That of the oldest files, as every compaction of RocksDB does.
    Oldest,
    /// All of it: the values of the range are copied.
    All,
}

/// A slice of a range: the keys to compact, and the last key that it has.
#[derive(Debug, PartialEq, Eq)]
struct Slice {
    first: Bound<Vec<u8>>,
    last: Bound<Vec<u8>>,
    end: Vec<u8>,
}

impl RocksEngine {
    /// Compacts a range, unless the family is damaged.
    pub(super) fn compact_range(
        &self,
        family: Family,
        keys: KeyRange<'_>,
        collect: Collect,
    ) -> Result<(), EngineError> {
        self.check_writable()?;
        if !self.let_go(family)? {
            tracing::warn!(family = family.name(), "a file is damaged, so none is rewritten");
            return Ok(());
        }
        if range::is_empty(keys) {
            return Ok(());
        }
        self.check_background()?;
        let collect_from = |age_cutoff: f64| {
            self.set_option(family, "blob_garbage_collection_age_cutoff", &age_cutoff.to_string())
        };
        let age_cutoff = tuning::blob_age_cutoff(family).filter(|_| collect == Collect::All);
        if age_cutoff.is_some() {
            collect_from(1.0)?;
        }
        let mut options = CompactOptions::default();
        options.set_bottommost_level_compaction(BottommostLevelCompaction::ForceOptimized);
        self.db.compact_range_cf_opt(
            self.family(family),
            range::first(keys.0),
            range::behind(keys.1),
            &options,
        );
        // The call before does not say whether it failed.
        self.check_background()?;
        age_cutoff.map_or(Ok(()), collect_from)
    }

    /// Compacts the next slice of a range. See [`Engine::compact_next`](super::super::Engine::compact_next).
    pub(super) fn compact_slice(
        &self,
        family: Family,
        keys: KeyRange<'_>,
    ) -> Result<Option<Box<[u8]>>, EngineError> {
        self.check_writable()?;
        if range::is_empty(keys) {
            return Ok(None);
        }
        if !self.let_go(family)? {
            tracing::warn!(family = family.name(), "a file is damaged, so none is rewritten");
            return Ok(None);
        }
        let usage = self.usage_of(family)?;
        let has_garbage = usage.garbage_bytes > 0 && usage.garbage_bytes >= usage.blob_bytes / GARBAGE_PART;
        let mut files = self.db.live_files().map_err(|error| failure::of("list the files", error))?;
        files.retain(|file| file.column_family_name == family.name());
        let Some(slice) = next_slice(&mut files, keys, has_garbage) else { return Ok(None) };
        let collect = if has_garbage { Collect::All } else { Collect::Oldest };
        let Slice { first, last, end } = slice;
        let keys = (first.as_ref().map(|key| &key[..]), last.as_ref().map(|key| &key[..]));
        self.compact_range(family, keys, collect)?;
        Ok(Some(end.into()))
    }
}

/// The first keys of a file and its last.
fn ends(file: &LiveFile) -> (&[u8], &[u8]) {
    (file.start_key.as_deref().unwrap_or_default(), file.end_key.as_deref().unwrap_or_default())
}

/// Whether a file has keys of a range.
fn overlaps(file: &LiveFile, (from, to): KeyRange<'_>) -> bool {
    let (first, last) = ends(file);
    let is_behind = match from {
        Bound::Included(from) => last < from,
        Bound::Excluded(from) => last <= from,
        Bound::Unbounded => false,
    };
    let is_before = match to {
        Bound::Included(to) => first > to,
        Bound::Excluded(to) => first >= to,
        Bound::Unbounded => false,
    };
    !is_behind && !is_before
}

/// The first slice of a range in which there is something to gain. `collects`: every file of the last level has some.
fn next_slice(files: &mut Vec<LiveFile>, keys: KeyRange<'_>, collects: bool) -> Option<Slice> {
    files.retain(|file| overlaps(file, keys));
    let last_level = files.iter().map(|file| file.level).max()?;
    let end = files.iter().map(|file| ends(file).1).max()?.to_vec();
    let (mut below, above): (Vec<&LiveFile>, Vec<&LiveFile>) =
        files.iter().partition(|file| file.level == last_level && last_level > 0);
    below.sort_unstable_by_key(|file| ends(file).0);
    // Part i begins after the end of file i − 1 and ends with file i; the last one has all that follows too.
    let part = |index: usize| -> KeyRange<'_> {
        let end_of = |index: usize| below.get(index).map(|file| ends(file).1);
        let from = index.checked_sub(1).and_then(end_of).map_or(keys.0, Bound::Excluded);
        let to = end_of(index).filter(|_| index + 1 < below.len()).map_or(keys.1, Bound::Included);
        (from, to)
    };
    let is_worth_it = |index: usize| {
        let has_own = below.get(index).is_some_and(|file| collects || file.num_deletions > 0);
        has_own || above.iter().any(|file| overlaps(file, part(index)))
    };
    let count = below.len().max(1);
    let first = (0..count).find(|index| is_worth_it(*index))?;
    let size = |index: usize| below.get(index).map_or(0, |file| file.size);
    let (mut last, mut bytes) = (first, size(first));
    while last + 1 < count && bytes + size(last + 1) <= SLICE_BYTES && is_worth_it(last + 1) {
        last += 1;
        bytes += size(last);
    }
    let end = if last + 1 < count { ends(below[last]).1.to_vec() } else { end };
    let owned = |bound: Bound<&[u8]>| bound.map(<[u8]>::to_vec);
    Some(Slice { first: owned(part(first).0), last: owned(part(last).1), end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(level: i32, from: u8, to: u8, size: usize, num_deletions: u64) -> LiveFile {
        LiveFile {
            column_family_name: String::new(),
            name: String::new(),
            size,
            level,
            start_key: Some(vec![from]),
            end_key: Some(vec![to]),
            num_entries: 100,
            num_deletions,
        }
    }

    /// The ends of the slices of a range, one after the other, and what is compacted for each.
    fn slices(files: &[LiveFile], keys: KeyRange<'_>, collects: bool) -> Vec<(Bound<u8>, Bound<u8>, u8)> {
        let (mut from, mut found) = (keys.0.map(<[u8]>::to_vec), Vec::new());
        let byte = |bound: Bound<Vec<u8>>| bound.map(|key| key[0]);
        while let Some(Slice { first, last, end }) =
            next_slice(&mut files.to_vec(), (from.as_ref().map(|key| &key[..]), keys.1), collects)
        {
            found.push((byte(first), byte(last), end[0]));
            from = Bound::Excluded(end);
        }
        found
    }

    const ALL: KeyRange<'static> = (Bound::Unbounded, Bound::Unbounded);
    use Bound::{Excluded, Included, Unbounded};

    #[test]
    fn a_slice_is_a_file_of_the_last_level_and_what_lies_above_it() {
        let big = SLICE_BYTES;
        let last_level = [file(6, 10, 19, big, 0), file(6, 20, 29, big, 0), file(6, 40, 49, big, 0)];
        assert_eq!(slices(&last_level, ALL, false), [], "nothing is to be gained");
        let with = |more: LiveFile| [&last_level[..], &[more]].concat();
        assert_eq!(slices(&with(file(0, 21, 22, 1, 0)), ALL, false), [(Excluded(19), Included(29), 29)]);
        // Between two files, before the first and after the last.
        assert_eq!(slices(&with(file(0, 30, 31, 1, 0)), ALL, false), [(Excluded(29), Unbounded, 49)]);
        assert_eq!(slices(&with(file(3, 1, 2, 1, 0)), ALL, false), [(Unbounded, Included(19), 19)]);
        assert_eq!(slices(&with(file(3, 60, 61, 1, 0)), ALL, false), [(Excluded(29), Unbounded, 61)]);
        let all =
            [(Unbounded, Included(19), 19), (Excluded(19), Included(29), 29), (Excluded(29), Unbounded, 49)];
        assert_eq!(slices(&with(file(0, 1, 48, 1, 0)), ALL, false), all);
        assert_eq!(slices(&last_level, ALL, true), all, "garbage is anywhere");
        let own = [file(6, 10, 19, big, 0), file(6, 20, 29, big, 5)];
        assert_eq!(slices(&own, ALL, false), [(Excluded(19), Unbounded, 29)], "its own tombstones");
    }

    #[test]
    fn small_files_share_a_slice() {
        let third = SLICE_BYTES / 3;
        let files: Vec<_> = (1..=5).map(|at| file(6, at * 10, at * 10 + 9, third, 1)).collect();
        assert_eq!(
            slices(&files, ALL, false),
            [(Unbounded, Included(39), 39), (Excluded(39), Unbounded, 59)]
        );
    }

    #[test]
    fn files_of_one_level_alone_are_one_slice() {
        assert_eq!(slices(&[], ALL, true), []);
        let flushed = [file(0, 10, 19, 1, 0), file(0, 15, 29, 1, 0)];
        assert_eq!(slices(&flushed, ALL, false), [(Unbounded, Unbounded, 29)]);
    }

    #[test]
    fn a_range_is_not_left() {
        let files = [file(6, 10, 19, 1, 3), file(6, 20, 29, 1, 3), file(0, 10, 29, 1, 0)];
        let (from, to) = ([12], [14]);
        let inside: KeyRange<'_> = (Included(&from), Included(&to));
        assert_eq!(slices(&files, inside, true), [(Included(12), Included(14), 29)]);
        let (from, to) = ([20], [30]);
        assert_eq!(
            slices(&files, (Included(&from), Excluded(&to)), true),
            [(Included(20), Excluded(30), 29)]
        );
        let (from, to) = ([30], [40]);
        assert_eq!(slices(&files, (Included(&from), Excluded(&to)), true), []);
    }
}
