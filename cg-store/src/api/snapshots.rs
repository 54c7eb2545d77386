//! Snapshots of regions, saved in the world as values of any length.

use std::io::{self, Read, Seek, SeekFrom};

use crate::api::world::World;
use crate::engine::CommitSeq;
use crate::kinds::snapshots::{self, DamagedSnapshot, Head, PART_BYTES, SavedSnapshot, snapshot_head};
use crate::storage::error::Error;

/// A snapshot's value as a file. Reads one row for each requested mebibyte.
///
/// All bytes are of one snapshot: if it is deleted or replaced meanwhile, the next part is [`Error::SnapshotReplaced`].
/// This and damage are errors of kind [`io::ErrorKind::InvalidData`] that contain the [`Error`].
pub struct SnapshotReader {
    world: World,
    name: String,
    head: Head,
    at: u64,
    /// The part that was read last.
    last: Option<(u32, Vec<u8>)>,
}

impl SnapshotReader {
    /// The length of the value.
    pub const fn len_bytes(&self) -> u64 {
        self.head.len_bytes
    }

    fn part(&self, part: u32) -> Result<Vec<u8>, Error> {
        snapshots::part(&*self.world.rooms().shared.engine()?, &self.name, self.head, part)
    }
}

impl Read for SnapshotReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.head.len_bytes {
            return Ok(0);
        }
        let part = (self.at / PART_BYTES as u64) as u32 + 1;
        if self.last.as_ref().is_none_or(|(last, _)| *last != part) {
            let bytes = self.part(part);
            let bytes = bytes.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            self.last = Some((part, bytes));
        }
        let bytes = self.last.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        let behind = bytes.get((self.at % PART_BYTES as u64) as usize..).unwrap_or_default();
        let count = behind.len().min(out.len());
        out[..count].copy_from_slice(&behind[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for SnapshotReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.head.len_bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

impl std::fmt::Debug for SnapshotReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotReader")
            .field("name", &self.name)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}

/// The snapshots that are saved in a world: named values of any length.
#[derive(Debug, Clone, Copy)]
pub struct Snapshots<'w> {
    world: &'w World,
}

impl World {
    /// The snapshots that are saved in the world.
    pub fn snapshots(&self) -> Snapshots<'_> {
        Snapshots { world: self }
    }
}

impl Snapshots<'_> {
    /// Saves a value under a name. Returns the commit.
    ///
    /// One commit, whatever the length: after a crash the snapshot is there completely or not at all. A value larger
    /// than a batch is written twice, as a large transaction is. Until it is written, memory holds a second copy of the
    /// value, and a third one during that write. If several callers save under one name at once, one succeeds. Does not
    /// sync; [`flush`](World::flush) does.
    ///
    /// # Errors
    /// [`Error::SnapshotExists`], [`Error::SnapshotName`], [`Error::LowDiskSpace`], and the errors of the engine.
    pub fn save(&self, name: &str, value: &[u8]) -> Result<CommitSeq, Error> {
        self.world.applied()?.commit.save_snapshot(name, value).map(CommitSeq::new)
    }

    /// The saved snapshots, ascending by name. A damaged head gives an error in its place. The values are not checked
    /// and may be damaged too. Parts without a head are not listed: [`verify`](World::verify) finds them.
    ///
    /// # Errors
    /// The errors of the engine, except damage.
    pub fn list(&self) -> Result<Vec<Result<SavedSnapshot, DamagedSnapshot>>, Error> {
        snapshots::list(&self.world.applied()?.commit.drained_engine()?.snapshot()?)
    }

    /// A reader of a snapshot's value; `None` if there is no snapshot of that name.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its head is damaged; the errors of the engine. Also the error of a commit that could not
    /// be rolled forward, which may be that of the snapshot.
    pub fn open(&self, name: &str) -> Result<Option<SnapshotReader>, Error> {
        let rooms = self.world.applied()?;
        let engine = rooms.shared.engine()?;
        // While a snapshot is rolled forward, its head may be written before its parts.
        let guard = engine.hold_apply()?;
        let Some(head) = snapshot_head(&*engine, name)? else { return Ok(None) };
        drop(guard);
        drop(engine);
        let (world, name) = (self.world.clone(), name.to_owned());
        Ok(Some(SnapshotReader { world, name, head, at: 0, last: None }))
    }

    /// Deletes a snapshot, or parts of one that lost their head. Returns `false` if there is nothing of that name. One
    /// commit, whatever its length.
    ///
    /// # Errors
    /// The errors of the engine. A damaged snapshot can be deleted, too.
    pub fn delete(&self, name: &str) -> Result<bool, Error> {
        self.world.applied()?.commit.delete_snapshot(name)
    }
}
