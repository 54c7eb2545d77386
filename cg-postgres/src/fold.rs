//! The operations of batches, folded to one state of each row.

use std::collections::BTreeMap;

use cg_engine::{Batch, COMMIT_SEQUENCE_KEY, CommitSeq, EngineError, Family, Guard, Op, SealedRow};
use cg_format::key;

use crate::records::{PART_BYTES, TablePart};

/// The longest key that fits into the index with its other columns.
pub(crate) const MAX_KEY_BYTES: usize = 2600;
/// The longest row. A message of the protocol that has it must be shorter than 1 GiB, with all else that it holds: a longer
/// one ends the connection.
const MAX_ROW_BYTES: usize = (1 << 30) - (1 << 20);
/// A key that is greater than each that is stored.
pub(crate) const AFTER_EACH_KEY: [u8; MAX_KEY_BYTES + 1] = [0xff; MAX_KEY_BYTES + 1];

/// The parameters of the commit of one or more batches.
#[derive(Debug, Default)]
pub(crate) struct Folded {
    pub(crate) guards: Rows,
    /// Ranges that are removed before the other operations apply: their families and bounds.
    pub(crate) ranges: Rows,
    pub(crate) deletes: Keys,
    /// The row under [`COMMIT_SEQUENCE_KEY`], if it is put.
    pub(crate) newest: Option<Vec<u8>>,
    /// Other rows that are put, in parts. There is at least one part.
    pub(crate) puts: Vec<Rows>,
    /// Rows that are put and are most likely not there yet, in parts.
    pub(crate) loads: Vec<Rows>,
    /// Records that are put, in parts.
    pub(crate) records: Vec<TablePart>,
}

impl Folded {
    /// The number of rows that are put.
    pub(crate) fn row_count(&self) -> usize {
        let records = self.records.iter().map(|part| part.keys.len());
        let newest = usize::from(self.newest.is_some());
        newest + self.puts.iter().chain(&self.loads).map(|part| part.keys.len()).chain(records).sum::<usize>()
    }
}

/// Families, keys, and values or upper bounds.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) families: Vec<i16>,
    pub(crate) keys: Vec<Vec<u8>>,
    pub(crate) values: Vec<Vec<u8>>,
}

/// Rows in parts of at most [`PART_BYTES`], or of one row.
#[derive(Debug, Default)]
struct Parts {
    parts: Vec<Rows>,
    /// Bytes of the last part.
    len_bytes: usize,
}

impl Parts {
    fn push(&mut self, family: i16, key: Vec<u8>, row: Vec<u8>) {
        let len_bytes = key.len() + row.len();
        if self.parts.is_empty() || self.len_bytes > 0 && self.len_bytes + len_bytes > PART_BYTES {
            self.parts.push(Rows::default());
            self.len_bytes = 0;
        }
        self.len_bytes += len_bytes;
        if let Some(part) = self.parts.last_mut() {
            part.push(family, key, row);
        }
    }
}

/// Families and keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) families: Vec<i16>,
    pub(crate) keys: Vec<Vec<u8>>,
}

impl Rows {
    fn push(&mut self, family: i16, key: Vec<u8>, value: Vec<u8>) {
        self.families.push(family);
        self.keys.push(key);
        self.values.push(value);
    }
}

/// What happens to a row: it is put, or removed.
type State = Option<Vec<u8>>;

#[derive(Default)]
struct Fold {
    ranges: Rows,
    rows: BTreeMap<(i16, Vec<u8>), State>,
    longest_key_bytes: usize,
    longest_row_bytes: usize,
}

/// Folds batches that follow the commit `last`. Returns the newest commit after them.
///
/// # Errors
/// [`EngineError::TooLarge`] if a key is too long for the index, or a row for a message.
pub(crate) fn fold(
    last: CommitSeq,
    batches: Vec<Batch>,
    guards: &[Guard],
) -> Result<(Folded, CommitSeq), EngineError> {
    let (mut fold, mut seq) = (Fold::default(), last);
    for batch in batches {
        if !batch.is_maintenance() {
            seq = seq.next();
        }
        batch.drain(seq, |op| fold.add(op));
    }
    Ok((fold.folded(guards, false)?, seq))
}

/// As [`fold`], for rows that are stored as they are. Rows of `worldMeta` are replaced from one call to the next.
///
/// # Errors
/// As [`fold`].
pub(crate) fn fold_rows(rows: Vec<SealedRow>) -> Result<Folded, EngineError> {
    let mut fold = Fold::default();
    for SealedRow { family, key, bytes } in rows {
        fold.put(family, &key, bytes.into());
    }
    fold.folded(&[], true)
}

impl Fold {
    fn folded(self, guards: &[Guard], is_load: bool) -> Result<Folded, EngineError> {
        for (longest, max) in
            [(self.longest_key_bytes, MAX_KEY_BYTES), (self.longest_row_bytes, MAX_ROW_BYTES)]
        {
            if longest > max {
                return Err(EngineError::TooLarge { len_bytes: longest as u64, max_bytes: max as u64 });
            }
        }
        let mut folded = Folded { ranges: self.ranges, ..Folded::default() };
        for guard in guards {
            folded.guards.push(number(guard.space.family()), guard.key.to_vec(), expected(guard));
        }
        let mut puts = Parts { parts: vec![Rows::default()], len_bytes: 0 };
        let mut loads = Parts::default();
        for ((family, key), row) in self.rows {
            let Some(row) = row else {
                folded.deletes.families.push(family);
                folded.deletes.keys.push(key);
                continue;
            };
            if family == number(Family::WorldMeta) && key == COMMIT_SEQUENCE_KEY {
                folded.newest = Some(row);
                continue;
            }
            if family == number(Family::Record)
                && let Ok((leaf, _)) = key::decode_record(&key)
            {
                TablePart::put(&mut folded.records, &leaf, key, row);
                continue;
            }
            let is_new = is_load && family != number(Family::WorldMeta);
            let parts = if is_new { &mut loads } else { &mut puts };
            parts.push(family, key, row);
        }
        (folded.puts, folded.loads) = (puts.parts, loads.parts);
        Ok(folded)
    }

    /// Adds an operation.
    fn add(&mut self, op: Op<'_>) {
        match op {
            Op::Put { space, key, draft, version } => {
                self.put(space.family(), key, draft.seal(space, key, version));
            }
            Op::Delete { space, key } => {
                self.longest_key_bytes = self.longest_key_bytes.max(key.len());
                self.rows.insert((number(space.family()), key.to_vec()), None);
            }
            Op::DeleteRange { space, from, to } => {
                let family = number(space.family());
                let range = (family, from.to_vec())..(family, to.to_vec());
                let inside: Vec<_> = self.rows.range(range).map(|(place, _)| place.clone()).collect();
                for place in inside {
                    self.rows.remove(&place);
                }
                self.ranges.push(family, from.to_vec(), to.to_vec());
            }
        }
    }

    fn put(&mut self, family: Family, key: &[u8], row: Vec<u8>) {
        self.longest_key_bytes = self.longest_key_bytes.max(key.len());
        self.longest_row_bytes = self.longest_row_bytes.max(row.len());
        self.rows.insert((number(family), key.to_vec()), Some(row));
    }
}

/// The number of a family in a row.
pub(crate) fn number(family: Family) -> i16 {
    family.number().into()
}

/// The bytes of a frame that a guard expects: none for an absent row, else the version, with the checksum before it if
/// the guard has one.
fn expected(guard: &Guard) -> Vec<u8> {
    let Some(version) = guard.expected else { return Vec::new() };
    let checksum = guard.checksum.map(u32::to_le_bytes);
    checksum.into_iter().flatten().chain(version.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use cg_engine::{Space, Stamp};
    use cg_format::frame::{Codec, Draft, version_of};

    use super::*;

    fn put(batch: &mut Batch, key: &[u8], len_bytes: usize) {
        let draft = Draft::plain(Codec::None, 0, |out| out.resize(out.len() + len_bytes, 7));
        batch.put(Space::Object, key, draft, Stamp::Commit);
    }

    #[test]
    fn the_last_operation_on_a_row_remains() {
        let (mut first, mut second) = (Batch::new(), Batch::new());
        for key in [b"a", b"b", b"c", b"d"] {
            put(&mut first, key, 0);
        }
        first.delete(Space::Object, b"d");
        second.delete_range(Space::Object, b"a", b"c");
        put(&mut second, b"b", 0);
        second.delete(Space::Object, b"e");
        let (folded, seq) = fold(CommitSeq::new(4), vec![first, second], &[]).expect("is short");
        assert_eq!(seq, CommitSeq::new(6));
        let object = number(Family::Object);
        let ranges = Rows { families: vec![object], keys: vec![b"a".into()], values: vec![b"c".into()] };
        assert_eq!(folded.ranges, ranges);
        assert_eq!(folded.deletes, Keys { families: vec![object; 2], keys: vec![b"d".into(), b"e".into()] });
        let [puts] = &folded.puts[..] else { panic!("{:?}", folded.puts) };
        assert_eq!(puts.families, [object, object]);
        assert_eq!(puts.keys, [b"b", b"c"]);
        let versions: Vec<_> = puts.values.iter().map(|row| version_of(row)).collect();
        assert_eq!(versions, [Some(6), Some(5)]);
        assert_eq!(folded.newest.as_deref().and_then(version_of), Some(6));
        assert_eq!(folded.row_count(), 3);
    }

    #[test]
    fn a_maintenance_batch_takes_no_number() {
        let mut batch = Batch::new();
        put(&mut batch, b"a", 0);
        let (folded, seq) = fold(CommitSeq::new(4), vec![batch.maintenance()], &[]).expect("is short");
        assert_eq!(seq, CommitSeq::new(4));
        assert_eq!(folded.puts[0].keys, [b"a"]);
        assert_eq!(folded.newest, None);
    }

    #[test]
    fn long_rows_are_put_in_parts() {
        let mut batch = Batch::new();
        for key in [b"a", b"b", b"c"] {
            put(&mut batch, key, PART_BYTES / 2 + 1);
        }
        put(&mut batch, b"d", PART_BYTES * 2);
        let (folded, _) = fold(CommitSeq::NONE, vec![batch], &[]).expect("is short");
        let keys: Vec<_> = folded.puts.iter().map(|part| part.keys.len()).collect();
        assert_eq!(keys, [1; 4]);
    }

    #[test]
    fn rows_of_a_load_are_new_but_those_of_the_world() {
        let row = |family, key: &[u8], len| SealedRow { family, key: key.into(), bytes: vec![7; len].into() };
        let half = PART_BYTES / 2 + 1;
        let rows = vec![
            row(Family::WorldMeta, b"state", 9),
            row(Family::Object, b"a", half),
            row(Family::Object, b"b", half),
        ];
        let folded = fold_rows(rows).expect("is short");
        let keys = |parts: &[Rows]| parts.iter().map(|part| part.keys.clone()).collect::<Vec<_>>();
        assert_eq!(keys(&folded.puts), [[b"state"]]);
        assert_eq!(keys(&folded.loads), [[b"a"], [b"b"]]);
        assert_eq!(folded.row_count(), 3);
    }

    #[test]
    fn a_key_that_the_index_cannot_hold_is_refused() {
        let mut batch = Batch::new();
        batch.delete(Space::Object, [1; MAX_KEY_BYTES + 1]);
        let refused = fold(CommitSeq::NONE, vec![batch], &[]);
        assert!(
            matches!(refused, Err(EngineError::TooLarge { len_bytes: 2601, max_bytes: 2600 })),
            "{refused:?}"
        );
    }

    #[test]
    fn a_guard_expects_the_last_bytes_before_the_end_of_the_version() {
        let version = Guard::version(Space::Object, b"a", 258);
        assert_eq!(expected(&version), [2, 1, 0, 0, 0, 0, 0, 0]);
        let same = Guard { checksum: Some(3), ..version };
        assert_eq!(expected(&same), [3, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(expected(&Guard::absent(Space::Object, b"a")), [0; 0]);
    }
}
