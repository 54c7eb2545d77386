//! The writes of one commit, and the conditions under which they are applied.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::ops::Range;
use std::sync::Arc;

use cg_format::Space;
use cg_format::frame::{self, Codec, Draft, Stamp, Version};
use cg_format::lineage::Lineage;

use super::{COMMIT_SEQUENCE_KEY, CommitSeq, EngineError, Place};

/// The default limit on a batch: 64 MiB.
pub const DEFAULT_MAX_BATCH_BYTES: u64 = 64 << 20;

/// Ordered operations that are applied whole or not at all.
///
/// Values are [`Draft`]s. The engine seals their frames with the commit's sequence, under its lock. A later operation
/// on a key overrides an earlier one.
#[derive(Default, Clone)]
pub struct Batch {
    /// The bytes of all keys in one buffer, so that keys need no allocations of their own.
    keys: Vec<u8>,
    ops: Vec<StoredOp>,
    values_len_bytes: u64,
    /// Bytes that the limit on a batch does not count.
    uncounted_bytes: u64,
    is_maintenance: bool,
    /// The history that its commits belong to.
    lineage: Option<Arc<Lineage>>,
}

/// The version of a row when the caller decided to write. The commit fails if the row has another version by then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The space of the row.
    pub space: Space,
    /// The row's key.
    pub key: Box<[u8]>,
    /// The version in its frame; `None` if the row must be absent.
    pub expected: Option<u64>,
    /// The checksum in its frame, if the version alone is not enough: a maintenance batch may rewrite a row under the
    /// same version.
    pub checksum: Option<u32>,
}

impl Guard {
    /// The row must have this version.
    pub fn version(space: Space, key: impl AsRef<[u8]>, expected: u64) -> Self {
        Self { space, key: key.as_ref().into(), expected: Some(expected), checksum: None }
    }

    /// The row must have these bytes, by the version and the checksum of its frame.
    pub fn same(space: Space, key: impl AsRef<[u8]>, row: &[u8]) -> Self {
        let (expected, checksum) = (frame::version_of(row), frame::stored_checksum_of(row));
        Self { space, key: key.as_ref().into(), expected, checksum }
    }

    /// The row must be absent.
    pub fn absent(space: Space, key: impl AsRef<[u8]>) -> Self {
        Self { space, key: key.as_ref().into(), expected: None, checksum: None }
    }

    /// Compares the guard with the stored row; `None` if there is no row.
    ///
    /// # Errors
    /// [`EngineError::Conflict`]. [`EngineError::Corrupt`] if the bytes are too few for a frame.
    pub fn check(&self, stored: Option<&[u8]>) -> Result<(), EngineError> {
        let found = stored.map(|bytes| {
            frame::version_of(bytes).ok_or_else(|| EngineError::Corrupt {
                place: Place::Row { family: self.space.family(), key: self.key.clone() },
                message: format!("{} bytes are too few for a frame", bytes.len()),
            })
        });
        let (found, expected) = (found.transpose()?, self.expected);
        let is_same = self.checksum.is_none() || stored.and_then(frame::stored_checksum_of) == self.checksum;
        if found == expected && is_same {
            return Ok(());
        }
        Err(EngineError::Conflict { space: self.space, key: self.key.clone(), expected, found })
    }
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes this a maintenance batch, which changes where rows are stored but not their values.
    ///
    /// A maintenance batch is no commit and takes no sequence. Rows that are stamped with the commit get the number
    /// of the newest commit. So commits can be numbered before they are written, while maintenance runs at the same
    /// time. A maintenance batch is applied whole or not at all. It certainly survives a power cut only if a later
    /// commit does.
    #[must_use]
    pub const fn maintenance(mut self) -> Self {
        self.is_maintenance = true;
        self
    }

    /// Whether it is a [maintenance batch](Self::maintenance), which takes no sequence.
    pub const fn is_maintenance(&self) -> bool {
        self.is_maintenance
    }

    /// Sets the history that the commits of its rows belong to. Each row gets the number of the opening that made the
    /// commit of its version. Without a history that is 0.
    pub fn set_lineage(&mut self, lineage: Arc<Lineage>) {
        self.lineage = Some(lineage);
    }

    /// The history that was [set](Self::set_lineage).
    pub const fn lineage(&self) -> Option<&Arc<Lineage>> {
        self.lineage.as_ref()
    }

    /// Writes a row. Replaces the stored row, if there is one.
    pub fn put(&mut self, space: Space, key: impl AsRef<[u8]>, draft: Draft, stamp: Stamp) {
        self.values_len_bytes += draft.len_bytes() as u64;
        let key = self.keep(key.as_ref());
        self.ops.push(StoredOp::Put { space, key, draft, stamp });
    }

    /// Removes a row, if there is one.
    pub fn delete(&mut self, space: Space, key: impl AsRef<[u8]>) {
        let key = self.keep(key.as_ref());
        self.ops.push(StoredOp::Delete { space, key });
    }

    /// Removes every row of the space's family from `from` up to but not including `to`.
    ///
    /// An empty or inverted range removes nothing. Costs one operation, whatever the number of rows. Later reads near
    /// the range are slightly slower until the range is compacted. Meant for the deltas of a chunk, not for sweeps.
    pub fn delete_range(&mut self, space: Space, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) {
        if from.as_ref() < to.as_ref() {
            let from = self.keep(from.as_ref());
            let to = self.keep(to.as_ref());
            self.ops.push(StoredOp::DeleteRange { space, from, to });
        }
    }

    /// Appends the operations of another batch. Whether this is a maintenance batch does not change.
    pub fn append(&mut self, other: Self) {
        let base = self.keys.len();
        self.keys.extend_from_slice(&other.keys);
        self.values_len_bytes += other.values_len_bytes;
        self.uncounted_bytes += other.uncounted_bytes;
        self.ops.extend(other.ops.into_iter().map(|op| op.moved(base)));
    }

    /// Bytes of all keys and frames. The limit on a batch is compared with this number.
    pub fn len_bytes(&self) -> u64 {
        self.keys.len() as u64 + self.values_len_bytes - self.uncounted_bytes
    }

    /// Adds operations that the limit on a batch does not count: a few small rows of the store's own.
    pub fn uncounted(&mut self, add: impl FnOnce(&mut Self)) {
        let before = self.len_bytes();
        add(self);
        self.uncounted_bytes += self.len_bytes() - before;
    }

    /// The number of operations.
    pub fn op_count(&self) -> usize {
        self.ops.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The rows that are put or removed. For a range, its first key.
    #[cfg(feature = "rocks")]
    pub(super) fn places(&self) -> impl Iterator<Item = (Space, &[u8])> {
        self.ops.iter().filter_map(|op| {
            let (space, key) = op.place();
            Some((space, self.keys.get(key)?))
        })
    }

    /// Whether it removes ranges. `places` lists only the first key of a range.
    #[cfg(feature = "rocks")]
    pub(super) fn has_ranges(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, StoredOp::DeleteRange { .. }))
    }

    /// The keys of a space that are put.
    pub fn keys_put(&self, wanted: Space) -> impl Iterator<Item = &[u8]> {
        self.ops.iter().filter_map(move |op| match op {
            StoredOp::Put { space, key, .. } if *space == wanted => self.keys.get(key.clone()),
            _ => None,
        })
    }

    /// The rows of a space that are put.
    pub fn drafts_put(&self, wanted: Space) -> impl Iterator<Item = (&[u8], &Draft)> {
        self.ops.iter().filter_map(move |op| match op {
            StoredOp::Put { space, key, draft, .. } if *space == wanted => {
                Some((self.keys.get(key.clone())?, draft))
            }
            _ => None,
        })
    }

    /// Finds the group of operations with the most bytes of keys and frames. Returns the row that its first operation
    /// writes, and the bytes of the group. An operation without a group forms a group of its own.
    pub fn longest_group<G: Eq + Hash>(
        &self,
        group_of: impl Fn(Space, &[u8]) -> Option<G>,
    ) -> Option<(Space, &[u8], u64)> {
        let numbers = self.numbers_of_groups(group_of);
        let mut lens = vec![0; self.ops.len()];
        for (op, number) in self.ops.iter().zip(&numbers) {
            lens[*number] += op.len_bytes();
        }
        let (longest, len_bytes) = lens.into_iter().enumerate().max_by_key(|(_, len_bytes)| *len_bytes)?;
        let (space, key) = self.ops.get(longest)?.place();
        Some((space, self.keys.get(key)?, len_bytes))
    }

    /// As [`drain`](Self::drain), but group by group and without the row of the sequence: `each` also gets the number of
    /// the operation's group. Groups come in the order of their first operations.
    ///
    /// # Errors
    /// The errors of `each`.
    pub fn drain_grouped<G: Eq + Hash, X>(
        mut self,
        seq: CommitSeq,
        group_of: impl Fn(Space, &[u8]) -> Option<G>,
        mut each: impl FnMut(usize, Op<'_>) -> Result<(), X>,
    ) -> Result<(), X> {
        let numbers = self.numbers_of_groups(group_of);
        let mut ops: Vec<_> = numbers.into_iter().zip(std::mem::take(&mut self.ops)).collect();
        ops.sort_by_key(|(number, _)| *number);
        for (number, op) in ops {
            each(number, op.into_op(&self.keys, seq, self.lineage.as_deref()))?;
        }
        Ok(())
    }

    /// Returns, for each operation, the index of the first operation of its group.
    fn numbers_of_groups<G: Eq + Hash>(&self, group_of: impl Fn(Space, &[u8]) -> Option<G>) -> Vec<usize> {
        let mut groups = HashMap::new();
        let number = |(index, op): (usize, &StoredOp)| {
            let (space, key) = op.place();
            match group_of(space, &self.keys[key]) {
                Some(group) => *groups.entry(group).or_insert(index),
                None => index,
            }
        };
        self.ops.iter().enumerate().map(number).collect()
    }

    /// Passes the operations of a batch that is applied as a commit to `each`, in order. The last one puts the row under
    /// [`COMMIT_SEQUENCE_KEY`], so that no batch can set another value. A maintenance batch has no such row, and `seq` is
    /// the newest commit.
    pub fn drain(self, seq: CommitSeq, mut each: impl FnMut(Op<'_>)) {
        let Self { keys, ops, is_maintenance, lineage, .. } = self;
        for op in ops {
            each(op.into_op(&keys, seq, lineage.as_deref()));
        }
        if !is_maintenance {
            let (space, key) = (Space::WorldMeta, COMMIT_SEQUENCE_KEY);
            let version = version(Stamp::Commit, seq, lineage.as_deref());
            each(Op::Put { space, key, draft: Draft::plain(Codec::None, 0, |_| {}), version });
        }
    }

    fn keep(&mut self, key: &[u8]) -> Range<usize> {
        let start = self.keys.len();
        self.keys.extend_from_slice(key);
        start..self.keys.len()
    }
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("op_count", &self.op_count())
            .field("len_bytes", &self.len_bytes())
            .finish_non_exhaustive()
    }
}

/// One operation, as an engine receives it.
#[derive(Debug)]
pub enum Op<'a> {
    /// Writes a row. Replaces the stored row, if there is one.
    Put {
        /// The space of the row.
        space: Space,
        /// Its key.
        key: &'a [u8],
        /// Its frame. The engine [seals](Draft::seal) it with the version.
        draft: Draft,
        /// The version that the row gets.
        version: Version,
    },
    /// Removes a row, if there is one.
    Delete {
        /// The space of the row.
        space: Space,
        /// Its key.
        key: &'a [u8],
    },
    /// Removes every row of a range.
    DeleteRange {
        /// The space of the rows.
        space: Space,
        /// The first key.
        from: &'a [u8],
        /// The first key after the range.
        to: &'a [u8],
    },
}

#[derive(Clone)]
enum StoredOp {
    Put { space: Space, key: Range<usize>, draft: Draft, stamp: Stamp },
    Delete { space: Space, key: Range<usize> },
    DeleteRange { space: Space, from: Range<usize>, to: Range<usize> },
}

impl StoredOp {
    /// Resolves the ranges of the keys in the buffer `keys`, and the version in a commit.
    fn into_op<'k>(self, keys: &'k [u8], seq: CommitSeq, lineage: Option<&Lineage>) -> Op<'k> {
        match self {
            Self::Put { space, key, draft, stamp } => {
                Op::Put { space, key: &keys[key], draft, version: version(stamp, seq, lineage) }
            }
            Self::Delete { space, key } => Op::Delete { space, key: &keys[key] },
            Self::DeleteRange { space, from, to } => {
                Op::DeleteRange { space, from: &keys[from], to: &keys[to] }
            }
        }
    }

    /// The row that it writes or removes; for a range, its first key.
    fn place(&self) -> (Space, Range<usize>) {
        match self {
            Self::Put { space, key, .. } | Self::Delete { space, key } => (*space, key.clone()),
            Self::DeleteRange { space, from, .. } => (*space, from.clone()),
        }
    }

    /// Bytes of its keys and frame.
    fn len_bytes(&self) -> u64 {
        (match self {
            Self::Put { key, draft, .. } => key.len() + draft.len_bytes(),
            Self::Delete { key, .. } => key.len(),
            Self::DeleteRange { from, to, .. } => from.len() + to.len(),
        }) as u64
    }

    /// The same operation after its keys were moved by an offset in the buffer.
    fn moved(self, base: usize) -> Self {
        let by = |key: Range<usize>| key.start + base..key.end + base;
        match self {
            Self::Put { space, key, draft, stamp } => Self::Put { space, key: by(key), draft, stamp },
            Self::Delete { space, key } => Self::Delete { space, key: by(key) },
            Self::DeleteRange { space, from, to } => Self::DeleteRange { space, from: by(from), to: by(to) },
        }
    }
}

/// The version that a row gets in a commit.
fn version(stamp: Stamp, seq: CommitSeq, lineage: Option<&Lineage>) -> Version {
    let commit = stamp.version(seq.get());
    Version { commit, lineage: lineage.map_or(0, |lineage| lineage.word_of(commit)) }
}
