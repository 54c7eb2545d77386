//! Quarantine of damage, so that one bad row never blocks a world.
//!
//! A damaged row is copied as it is under a quarantine key, and then removed from its place. A chunk is replaced by a
//! tombstone in the hottest tier, because an older copy in a colder tier must not become visible again. An entity is
//! removed together with the reference to it. An object or a record is removed. From then on the place is absent and
//! may be used again.
//!
//! **Invariant**: nothing is deleted that was not copied first, in the same batch. No copy is overwritten: its key ends
//! with the commit that made it.
//!
//! Finding what belongs to a damaged row requires reading a part of the world. That is done before the commit lock is
//! taken. Under the lock, only what was written meanwhile is read again.

mod chunk;
mod clear;
mod commit;
mod entity;
mod gap;
mod values;

use std::ops::{Bound, ControlFlow};

use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::Family;
use cg_format::{DecodeError, Space, key};

use crate::admin::Admin;
use crate::commit::commit_log::Committing;
use crate::engine::{Batch, CommitSeq, EngineError, ReadableExt as _, Stamp};
use crate::storage::change_log;
use crate::storage::error::{ConflictKey, Damage, Error};

pub use chunk::{CHUNK_QUARANTINED, QuarantinedChunks};
pub(crate) use commit::DamagedCommits;
pub use commit::SalvagedCommit;
#[cfg(feature = "rocks")]
pub use commit::salvage_in;
pub(crate) use gap::Gap;
pub use gap::LostChunks;

/// A damaged row that was quarantined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantined {
    /// The kind of row.
    pub space: Space,
    /// Its key.
    pub key: Vec<u8>,
    /// The commit that quarantined it.
    pub commit: CommitSeq,
    /// Its damaged bytes; empty if the engine could not read them.
    pub bytes: Vec<u8>,
}

impl Quarantined {
    /// Decodes a row of the quarantine.
    fn decode(row_key: &[u8], row: &[u8]) -> Result<Self, DecodeError> {
        let (space, key, commit) = key::decode_quarantine(row_key)?;
        let frame = FrameView::open(Space::Quarantine, row_key, row)?;
        Ok(Self { space, key: key.into(), commit: CommitSeq::new(commit), bytes: frame.payload().to_vec() })
    }
}

/// A damaged row as it was read.
#[derive(Debug, PartialEq, Eq)]
struct Damaged {
    space: Space,
    key: Vec<u8>,
    /// Empty if the engine cannot read them.
    bytes: Vec<u8>,
}

impl Admin<'_> {
    /// Reads a row that is known to be damaged.
    fn damaged_row(&self, space: Space, key: &[u8]) -> Result<Damaged, Error> {
        let unreadable = || Damaged { space, key: key.into(), bytes: Vec::new() };
        Ok(self.if_damaged(space, key, |_| false)?.unwrap_or_else(unreadable))
    }

    /// A row, if it is damaged; `None` if there is none or `is_sound` finds nothing wrong.
    fn if_damaged(
        &self,
        space: Space,
        key: &[u8],
        is_sound: impl FnOnce(&[u8]) -> bool,
    ) -> Result<Option<Damaged>, Error> {
        let bytes = match self.shared.engine()?.get(space, key) {
            Ok(None) => return Ok(None),
            Ok(Some(row)) if is_sound(&row) => return Ok(None),
            Ok(Some(row)) => row.to_vec(),
            Err(EngineError::Corrupt { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(Damaged { space, key: key.into(), bytes }))
    }

    /// Adds a copy of a damaged row to a batch, unless the quarantine has the row with the same bytes. So a cluster is
    /// copied once, even if its chunks are quarantined one by one. The caller holds the commit lock, so the number in
    /// the key is that of the next commit.
    fn put_copy(&self, batch: &mut Batch, damaged: &Damaged, _held: &Committing<'_>) -> Result<(), Error> {
        let Damaged { space, key: row, bytes } = damaged;
        let keys = key::quarantine_copies(*space, row);
        let range = (Bound::Included(&keys.start()[..]), Bound::Included(&keys.end()[..]));
        let known = self.shared.engine()?.scan(Family::Index, range, |row_key, copy| {
            // A damaged copy does not count.
            let same = |known: Quarantined| known.key == *row && known.bytes == *bytes;
            let known = Quarantined::decode(row_key, copy).is_ok_and(same);
            if known { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if known.is_none() {
            let commit = self.shared.engine()?.last_commit().next().get();
            let copy = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(bytes));
            batch.put(Space::Quarantine, key::quarantine(*space, row, commit), copy, Stamp::Commit);
        }
        Ok(())
    }

    /// Commits a quarantine batch, if it is within the batch limit, and makes it visible.
    fn commit_quarantine(
        &self,
        mut committing: Committing<'_>,
        mut batch: Batch,
        what: impl FnOnce() -> String,
        written: Vec<ConflictKey>,
        visible: impl FnOnce(u64),
    ) -> Result<(), Error> {
        // What it changes is not logged, so the log begins with it.
        let beginning = self.shared.change_log.beginning();
        let beginning = match beginning {
            Some(_) => Some(self.shared.engine()?.last_commit().next().get()),
            None => None,
        };
        if let Some(beginning) = beginning {
            change_log::begin_at(&mut batch, beginning);
        }
        let limit_bytes = self.shared.batch_limit()?;
        let len_bytes = batch.len_bytes();
        if len_bytes > limit_bytes {
            return Err(Error::TooLarge { what: what(), len_bytes, limit_bytes });
        }
        let seq = self.commit.commit_past_queue(batch, written.iter().cloned())?;
        self.shared.change_log.set(beginning);
        visible(seq);
        committing.publish(seq, written);
        drop(committing);
        Ok(self.shared.engine()?.sync()?)
    }
}

#[cfg(test)]
mod tests;

impl Admin<'_> {
    /// See [`Quarantine::list`](crate::quarantine::Quarantine::list).
    pub(crate) fn quarantined(&self) -> Result<Vec<Quarantined>, Error> {
        let mut all = Vec::new();
        let tag = Space::Quarantine.index_tag().expect("it is in the index family");
        let (from, to) = ([tag], [tag + 1]);
        let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        self.commit.drained_engine()?.try_scan(Family::Index, range, |row_key, row| {
            let damaged = |problem| Damage::of_row(Space::Quarantine, row_key, "a quarantined row", problem);
            all.push(Quarantined::decode(row_key, row).map_err(damaged)?);
            Ok::<_, Error>(())
        })?;
        Ok(all)
    }

    /// See [`Quarantine::delete`](crate::quarantine::Quarantine::delete).
    pub(crate) fn delete_quarantined(&self, space: Space, row: &[u8], commit: u64) -> Result<bool, Error> {
        self.shared.check_open()?;
        let copy = key::quarantine(space, row, commit);
        let mut committing = self.commit.commit_alone()?;
        // Rows that the engine cannot read can be deleted.
        if self.if_damaged(Space::Quarantine, &copy, |_| false)?.is_none() {
            return Ok(false);
        }
        let mut batch = Batch::new();
        batch.delete(Space::Quarantine, copy);
        let seq = self.commit.commit_past_queue(batch, [])?;
        committing.publish(seq, []);
        Ok(true)
    }
}
