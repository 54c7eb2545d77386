//! What one commit writes, and what must hold for it to be written.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::ops::Range;

use cg_format::Space;
use cg_format::frame::{self, Draft, Stamp};

use super::{EngineError, Place};

/// The largest batch that an engine takes unless it was opened with another limit: 64 MiB.
pub const DEFAULT_MAX_BATCH_BYTES: u64 = 64 << 20;

/// Ordered operations that are applied whole or not at all.
///
/// Values come as [`Draft`]s: the engine finishes their frames with the commit's sequence, under its lock. A later
/// operation on a key wins over an earlier one.
#[derive(Default)]
pub struct Batch {
    /// The bytes of all keys, one after the other: a batch of a thousand rows allocates no thousand keys.
    keys: Vec<u8>,
    ops: Vec<StoredOp>,
    values_len_bytes: u64,
    is_maintenance: bool,
}

/// A row's version at the time when the caller decided to write; the commit fails if it is another by then.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Guard {
    /// What the row is.
    pub space: Space,
    /// The row's key.
    pub key: Box<[u8]>,
    /// Its frame's version; `None` if there must be no row.
    pub expected: Option<u64>,
    /// Its frame's checksum, where the version alone does not tell: a maintenance batch may write a row anew under the
    /// version that it had.
    pub checksum: Option<u32>,
}

impl Guard {
    /// The row must have this version.
    pub fn version(space: Space, key: impl AsRef<[u8]>, expected: u64) -> Self {
        Self { space, key: key.as_ref().into(), expected: Some(expected), checksum: None }
    }

    /// The row must be the one with these bytes, by its frame's version and checksum.
    pub fn same(space: Space, key: impl AsRef<[u8]>, row: &[u8]) -> Self {
        let (expected, checksum) = (frame::version_of(row), frame::stored_checksum_of(row));
        Self { space, key: key.as_ref().into(), expected, checksum }
    }

    /// There must be no row.
    pub fn absent(space: Space, key: impl AsRef<[u8]>) -> Self {
        Self { space, key: key.as_ref().into(), expected: None, checksum: None }
    }

    /// Compares with what is stored now; `None`: no row.
    ///
    /// # Errors
    /// [`EngineError::Conflict`], and [`EngineError::Corrupt`] for bytes that are too few for a frame.
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
    /// No operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same operations as a maintenance batch: they change where rows are stored and nothing that the rows say.
    ///
    /// A maintenance batch is no commit: it takes no sequence, and rows that are stamped with the commit get the newest
    /// commit's. So commits can be numbered before they are written, while maintenance goes on beside them. It is
    /// written like a commit, whole or not at all, and is sure to survive a power cut only if a later commit is.
    #[must_use]
    pub const fn maintenance(mut self) -> Self {
        self.is_maintenance = true;
        self
    }

    /// Whether it takes no sequence, see [`maintenance`](Self::maintenance).
    pub const fn is_maintenance(&self) -> bool {
        self.is_maintenance
    }

    /// Writes a row, over whatever is there.
    pub fn put(&mut self, space: Space, key: impl AsRef<[u8]>, draft: Draft, stamp: Stamp) {
        self.values_len_bytes += draft.len_bytes() as u64;
        let key = self.keep(key.as_ref());
        self.ops.push(StoredOp::Put { space, key, draft, stamp });
    }

    /// Removes a row, if it is there.
    pub fn delete(&mut self, space: Space, key: impl AsRef<[u8]>) {
        let key = self.keep(key.as_ref());
        self.ops.push(StoredOp::Delete { space, key });
    }

    /// Removes every row of the space's family from a key on, up to but not including another.
    ///
    /// An empty or inverted range removes nothing. Costs one operation however many rows there are, and a little
    /// for every later read near the range until it is compacted away: meant for a chunk's deltas, not for sweeps.
    pub fn delete_range(&mut self, space: Space, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) {
        if from.as_ref() < to.as_ref() {
            let from = self.keep(from.as_ref());
            let to = self.keep(to.as_ref());
            self.ops.push(StoredOp::DeleteRange { space, from, to });
        }
    }

    /// Adds the operations of another batch after this one's; whether this is a maintenance batch stays as it is.
    pub fn append(&mut self, other: Self) {
        let base = self.keys.len();
        self.keys.extend_from_slice(&other.keys);
        self.values_len_bytes += other.values_len_bytes;
        self.ops.extend(other.ops.into_iter().map(|op| op.moved(base)));
    }

    /// Bytes of all keys and frames: what the limit on a batch counts.
    pub fn len_bytes(&self) -> u64 {
        self.keys.len() as u64 + self.values_len_bytes
    }

    /// How many operations.
    pub fn op_count(&self) -> usize {
        self.ops.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// The rows that are put or removed; of a range the first.
    #[cfg(feature = "rocks")]
    pub(super) fn places(&self) -> impl Iterator<Item = (Space, &[u8])> {
        self.ops.iter().filter_map(|op| {
            let (space, key) = op.place();
            Some((space, self.keys.get(key)?))
        })
    }

    /// Whether it removes ranges, whose rows are not listed.
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

    /// Of the operations that belong together, those with the most bytes of keys and frames: where the first of them
    /// writes, and how many bytes. What belongs to nothing stands for itself.
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

    /// As [`drain`](Self::drain), with the operations of a group after each other, each with its group's number.
    /// Groups come in the order of their first operations.
    ///
    /// # Errors
    /// What `each` fails with.
    pub fn drain_grouped<G: Eq + Hash, X>(
        mut self,
        group_of: impl Fn(Space, &[u8]) -> Option<G>,
        mut each: impl FnMut(usize, Op<'_>) -> Result<(), X>,
    ) -> Result<(), X> {
        let numbers = self.numbers_of_groups(group_of);
        let mut ops: Vec<_> = numbers.into_iter().zip(std::mem::take(&mut self.ops)).collect();
        ops.sort_by_key(|(number, _)| *number);
        for (number, op) in ops {
            each(number, op.into_op(&self.keys))?;
        }
        Ok(())
    }

    /// For each operation the place of the first one of its group.
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

    /// Passes the operations to `each` in order.
    pub fn drain(self, mut each: impl FnMut(Op<'_>)) {
        let Self { keys, ops, .. } = self;
        for op in ops {
            each(op.into_op(&keys));
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

/// One operation, as an engine takes it.
#[derive(Debug)]
pub enum Op<'a> {
    /// A row is written, over whatever is there.
    Put {
        /// What the row is.
        space: Space,
        /// Its key.
        key: &'a [u8],
        /// Its frame, to be [sealed](Draft::seal) with the version that the stamp gives.
        draft: Draft,
        /// Which version it gets.
        stamp: Stamp,
    },
    /// A row is removed, if it is there.
    Delete {
        /// What the row is.
        space: Space,
        /// Its key.
        key: &'a [u8],
    },
    /// Every row of a range is removed.
    DeleteRange {
        /// What the rows are.
        space: Space,
        /// The first key.
        from: &'a [u8],
        /// The first key after the range.
        to: &'a [u8],
    },
}

enum StoredOp {
    Put { space: Space, key: Range<usize>, draft: Draft, stamp: Stamp },
    Delete { space: Space, key: Range<usize> },
    DeleteRange { space: Space, from: Range<usize>, to: Range<usize> },
}

impl StoredOp {
    /// The operation, with its keys out of all keys.
    fn into_op(self, keys: &[u8]) -> Op<'_> {
        match self {
            Self::Put { space, key, draft, stamp } => Op::Put { space, key: &keys[key], draft, stamp },
            Self::Delete { space, key } => Op::Delete { space, key: &keys[key] },
            Self::DeleteRange { space, from, to } => {
                Op::DeleteRange { space, from: &keys[from], to: &keys[to] }
            }
        }
    }

    /// The row that it writes or removes, or the first of them.
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

    /// The same operation after its keys have moved back by an offset.
    fn moved(self, base: usize) -> Self {
        let by = |key: Range<usize>| key.start + base..key.end + base;
        match self {
            Self::Put { space, key, draft, stamp } => Self::Put { space, key: by(key), draft, stamp },
            Self::Delete { space, key } => Self::Delete { space, key: by(key) },
            Self::DeleteRange { space, from, to } => Self::DeleteRange { space, from: by(from), to: by(to) },
        }
    }
}
