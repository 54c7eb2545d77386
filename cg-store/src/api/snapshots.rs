//! Snapshots of regions, kept in the world as values of any length.

use std::io::{self, Read, Seek, SeekFrom};

use crate::api::world::World;
use crate::kinds::snapshots::{self, DamagedSnapshot, Head, PART_BYTES, SavedSnapshot, snapshot_head};
use crate::storage::error::Error;

/// A snapshot's value as a file. Reads one row for each mebibyte that is asked for.
///
/// What was read is of one snapshot: if it is deleted meanwhile, or another is kept under its name, the next part is
/// [`Error::SnapshotReplaced`]. That and damage are errors of kind [`io::ErrorKind::InvalidData`] that carry the [`Error`].
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

/// The snapshots that a world keeps: named values of any length.
#[derive(Debug, Clone, Copy)]
pub struct Snapshots<'w> {
    world: &'w World,
}

impl World {
    /// The snapshots that the world keeps.
    pub fn snapshots(&self) -> Snapshots<'_> {
        Snapshots { world: self }
    }
}

impl Snapshots<'_> {
    /// Keeps a value under a name; returns the commit that did.
    ///
    /// One commit, whatever its length: it is there whole or not at all, after any crash. One that is longer than a batch
    /// is written twice, as a large transaction is. The value is in memory once more until it is written, and while it is
    /// written once again. Of several that are kept under one name at once, one is kept. Forces no sync:
    /// [`flush`](World::flush) does.
    ///
    /// # Errors
    /// [`Error::SnapshotExists`], [`Error::SnapshotName`], [`Error::LowDiskSpace`], and what the engine says.
    pub fn save(&self, name: &str, value: &[u8]) -> Result<u64, Error> {
        self.world.applied()?.commit.save_snapshot(name, value)
    }

    /// The snapshots that the world keeps, ascending by name, and in their places those of which the head is damaged.
    /// Reads the keys of their rows; nothing of the values, which may be damaged too. Parts without a head are no snapshot:
    /// [`verify`](World::verify) finds them.
    ///
    /// # Errors
    /// What the engine says, but for damage.
    pub fn list(&self) -> Result<Vec<Result<SavedSnapshot, DamagedSnapshot>>, Error> {
        snapshots::list(&self.world.applied()?.commit.settled_engine()?.snapshot()?)
    }

    /// A snapshot's value, to be read in parts; `None` if there is none of that name.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its head is damaged; what kept a commit from being rolled forward to its end, which may be that of
    /// the snapshot; and what the engine says.
    pub fn open(&self, name: &str) -> Result<Option<SnapshotReader>, Error> {
        let rooms = self.world.applied()?;
        let engine = rooms.shared.engine()?;
        // A head that is there before its parts is of a snapshot that is being rolled forward.
        let guard = engine.hold_apply()?;
        let Some(head) = snapshot_head(&*engine, name)? else { return Ok(None) };
        drop(guard);
        drop(engine);
        let (world, name) = (self.world.clone(), name.to_owned());
        Ok(Some(SnapshotReader { world, name, head, at: 0, last: None }))
    }

    /// Deletes a snapshot, or parts of one that lost their head; `false` if there is nothing of that name. One commit,
    /// whatever its length.
    ///
    /// # Errors
    /// What the engine says. A damaged snapshot is deleted all the same.
    pub fn delete(&self, name: &str) -> Result<bool, Error> {
        self.world.applied()?.commit.delete_snapshot(name)
    }
}
