//! The log of changes: which commit last changed each value that is no chunk. Kept by worlds whose host asks for it.
//!
//! A row is a commit and the key of a value, in the order of commits. When the value changes again, the row is replaced. So
//! the log has a row for each value that changed since it began, and one for each that was deleted; what changed since a
//! commit is one scan from there. A row whose value has another commit by now is out of date, and counts for nothing.
//!
//! **Invariant**: in a world with the row [`BEGINNING`], every commit after the one that it names has a row for each value
//! other than a chunk that it changed, unless a later commit changed the value.

use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::Space;
use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key;
use cg_format::wire::Writer;

use crate::engine::Batch;
use crate::storage::error::Error;
use crate::storage::meta::{MetaRow, decode_u64};

/// The commit after which all changes are logged, a `u64`. Absent in a world without a log.
pub(crate) const BEGINNING: MetaRow<u64> = MetaRow {
    key: "changeLog",
    what: "the row that says where the log of changes begins",
    encode: |commit, out| Writer::new(out).u64(*commit),
    decode: |payload| decode_u64(payload, "beginning", "bytes after the commit"),
};

/// The spaces that name logged values.
pub(crate) const SPACES: [Space; 4] =
    [Space::WorldProperty, Space::Entity, Space::Object, Space::RecordPlace];

/// No log.
const NONE: u64 = u64::MAX;

/// Where the log of an open world begins. It changes under the commit lock, with an empty queue.
#[derive(Debug)]
pub(crate) struct KeptLog(AtomicU64);

impl KeptLog {
    /// The state of a world that is being opened, by its row [`BEGINNING`]. A damaged one counts as none.
    pub(crate) fn at_open(beginning: Result<Option<u64>, Error>) -> Self {
        let beginning = beginning.unwrap_or_else(|damage| {
            tracing::warn!(%damage, "the world has no log of changes until one is begun");
            None
        });
        Self(AtomicU64::new(beginning.unwrap_or(NONE)))
    }

    /// The commit after which all changes are logged; `None` if the world keeps no log.
    pub(crate) fn beginning(&self) -> Option<u64> {
        Some(self.0.load(Ordering::Acquire)).filter(|beginning| *beginning != NONE)
    }

    /// Whether commits log what they change.
    pub(crate) fn is_kept(&self) -> bool {
        self.beginning().is_some()
    }

    pub(crate) fn set(&self, beginning: Option<u64>) {
        self.0.store(beginning.unwrap_or(NONE), Ordering::Release);
    }

    /// Takes the state of another one.
    pub(crate) fn replace(&self, by: &Self) {
        self.set(by.beginning());
    }
}

/// A value that a commit changes.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    /// The space that names it, one of [`SPACES`].
    pub(crate) space: Space,
    /// Its key there.
    pub(crate) key: Vec<u8>,
    /// The commit that wrote what is replaced, if it has a row in the log.
    pub(crate) old: Option<u64>,
}

impl Logged {
    /// The maximum size of its rows.
    pub(crate) fn max_len_bytes(&self) -> u64 {
        /// Two keys beside the value's, and a frame.
        const BESIDE_BYTES: usize = 2 * key::CHANGE_LOG_MIN_LEN_BYTES + cg_format::frame::LEN_BYTES;
        (BESIDE_BYTES + 2 * self.key.len()) as u64
    }

    /// Adds its row to the batch of a commit, in place of the one that it has.
    pub(crate) fn put(&self, batch: &mut Batch, commit: u64) {
        let Self { space, key, old } = self;
        if let Some(old) = old {
            batch.delete(Space::ChangeLog, key::change_log(*space, *old, key));
        }
        let row = Draft::plain(Codec::None, 0, |_| {});
        batch.put(Space::ChangeLog, key::change_log(*space, commit, key), row, Stamp::Commit);
    }
}

/// Moves the beginning to a commit. What was logged up to it is deleted.
pub(crate) fn begin_at(batch: &mut Batch, beginning: u64) {
    BEGINNING.put(batch, &beginning);
    for space in SPACES {
        let [from, to] = [0, beginning.saturating_add(1)].map(|commit| key::change_log(space, commit, &[]));
        batch.delete_range(Space::ChangeLog, from, to);
    }
}

/// Deletes the row without which the world has no log.
pub(crate) fn disown(batch: &mut Batch) {
    batch.delete(Space::WorldMeta, BEGINNING.key);
}

/// Deletes the log.
pub(crate) fn delete(batch: &mut Batch) {
    disown(batch);
    for space in SPACES {
        let from = key::change_log(space, 0, &[]);
        // No row of another space is between.
        let to = [from.get(..2).unwrap_or_default(), &[0xff; 9][..]].concat();
        batch.delete_range(Space::ChangeLog, from, to);
    }
}
