//! The newest commit known to be synced, stored in a file beside the database, so that a loss is noticed; and how much of
//! the newest log and of the manifest was synced, so that what a power cut left after it is told from damage.
//!
//! A log that was deleted, or cut exactly between two records, looks like one that was never written, and RocksDB
//! opens with the rest. The floor is a commit that certainly existed. It is written after the sync of that commit, at
//! most once a second and at close. So it costs commits almost nothing and may be one second old.
//!
//! Logs with lower numbers than the newest one were synced to their ends.
//!
//! The file holds two slots of 64 bytes that are written in turn, so that an interrupted write leaves the older slot:
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `cgfloor1` |
//! | 8 | 8 | how often the floor was written; the slot with the higher number is current |
//! | 16 | 8 | commit sequence |
//! | 24 | 8 | number of the newest log |
//! | 32 | 8 | its synced bytes |
//! | 40 | 8 | number of the manifest |
//! | 48 | 8 | its synced bytes |
//! | 56 | 4 | the low 32 bits of the number of the opening that made the commit |
//! | 60 | 4 | CRC-32C of the 60 bytes before |
//!
//! A zero, but for the counts, says that nothing is known. Earlier releases wrote it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use cg_format::frame::Version;

use super::super::{CommitSeq, EngineError, Place};
use super::open::sync_dir;
use super::synced::{FileEnd, ManifestSync, NewestLog, Synced};

/// The name of the file in the engine's directory.
pub(super) const FILE_NAME: &str = "DURABLE";

const MAGIC: &[u8; 8] = b"cgfloor1";
const SLOT_BYTES: usize = 64;
const SUMMED_BYTES: usize = 60;
/// The shortest time between two writes, except at close.
const INTERVAL: Duration = Duration::from_secs(1);
/// The shortest time between two writes if nothing was committed between them.
const IDLE_INTERVAL: Duration = Duration::from_millis(100);

/// The floor of an engine that is open for writing.
#[derive(Debug)]
pub(super) struct Floor {
    file: File,
    slot: Slot,
    /// When it was last raised with a commit.
    raised: Option<Instant>,
    /// When it was last written.
    written: Option<Instant>,
    /// What is synced of the manifest.
    pub(super) manifest: ManifestSync,
}

/// The content of a floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Promise {
    /// The newest commit that is known to be synced.
    pub(super) seq: CommitSeq,
    /// The low 32 bits of the number of the opening that made it; 0 if that is unknown.
    pub(super) lineage: u32,
    /// How much of the files was synced.
    pub(super) synced: Synced,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Slot {
    write_count: u64,
    promise: Promise,
}

impl Floor {
    /// Opens the floor of a directory. Creates one with [`CommitSeq::NONE`] if the file does not exist or neither slot is
    /// intact: the caller has accepted that.
    ///
    /// # Errors
    /// [`EngineError::Io`].
    pub(super) fn open(dir: &Path) -> Result<Self, EngineError> {
        let path = dir.join(FILE_NAME);
        let io = |source| EngineError::Io { path: path.clone(), source };
        let slot = match read(dir) {
            Err(EngineError::Corrupt { .. }) => None,
            read => read?,
        };
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        let manifest = ManifestSync::default();
        let mut floor = Self { file, slot: slot.unwrap_or_default(), raised: None, written: None, manifest };
        if slot.is_none() {
            // Writes both slots, so that no later write needs disk space.
            let none = Promise::default();
            floor.write(none).and_then(|()| floor.write(none)).map_err(io)?;
            // A world whose floor is missing is not written.
            sync_dir(dir)?;
            floor.written = None;
        }
        Ok(floor)
    }

    /// Notes what is synced of the files of a directory that was just opened for writing: all of the manifest, and nothing of
    /// the new log. If it cannot be written, nothing is known of them until the floor is raised.
    pub(super) fn begin(&mut self, dir: &Path) {
        self.manifest = ManifestSync::begun(dir);
        let log = FileEnd { len_bytes: 0, ..NewestLog::find(dir).end() };
        let synced = Synced { log, manifest: self.manifest.synced() };
        self.raise(Promise { synced, ..self.slot.promise });
        // What comes next is raised without delay.
        (self.raised, self.written) = (None, None);
    }

    /// The commit of the floor.
    pub(super) fn seq(&self) -> CommitSeq {
        self.slot.promise.seq
    }

    /// Whether it was not raised with a commit within the last second.
    pub(super) fn is_due(&self) -> bool {
        self.raised.is_none_or(|raised| raised.elapsed() >= INTERVAL)
    }

    /// Whether it was not written just now: then it may be raised though no commit follows.
    pub(super) fn is_idle(&self) -> bool {
        self.written.is_none_or(|written| written.elapsed() >= IDLE_INTERVAL)
    }

    /// Raises the floor to what is synced.
    ///
    /// No commit depends on the floor. If it cannot be written, the older floor stays and the failure is only logged.
    pub(super) fn raise(&mut self, to: Promise) {
        let there = self.slot.promise;
        let to = if to.seq < there.seq { Promise { synced: to.synced, ..there } } else { to };
        if to == there {
            return;
        }
        if to.seq > there.seq {
            self.raised = Some(Instant::now());
        }
        if let Err(error) = self.write(to) {
            tracing::warn!(%error, floor = %there.seq, "the durable floor could not be raised");
        }
    }

    /// Lowers the floor to the newest commit that exists, because those after it are lost.
    ///
    /// # Errors
    /// [`EngineError::Io`]: the floor is unchanged.
    pub(super) fn lower(&mut self, dir: &Path, found: Version) -> Result<(), EngineError> {
        // Writes both slots, so that damage of one does not restore the higher floor.
        let Version { commit, lineage } = found;
        let found = Promise { seq: CommitSeq::new(commit), lineage, synced: Synced::default() };
        let written = self.write(found).and_then(|()| self.write(found));
        written.map_err(|source| EngineError::Io { path: dir.join(FILE_NAME), source })
    }

    fn write(&mut self, promise: Promise) -> io::Result<()> {
        let slot = Slot { write_count: self.slot.write_count + 1, promise };
        self.written = Some(Instant::now());
        self.file.seek(SeekFrom::Start(slot.write_count % 2 * SLOT_BYTES as u64))?;
        self.file.write_all(&slot.encode())?;
        self.file.sync_data()?;
        self.slot = slot;
        Ok(())
    }
}

impl Slot {
    fn encode(self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.write_count.to_le_bytes());
        let Promise { seq, lineage, synced: Synced { log, manifest } } = self.promise;
        let fields = [seq.get(), log.number, log.len_bytes, manifest.number, manifest.len_bytes];
        for (place, field) in bytes[16..].chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes[56..SUMMED_BYTES].copy_from_slice(&lineage.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..SUMMED_BYTES]);
        bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (summed, sum) = bytes.split_at_checked(SUMMED_BYTES)?;
        let field = |at: usize| Some(u64::from_le_bytes(summed.get(at..at + 8)?.try_into().ok()?));
        let end = |at: usize| Some(FileEnd { number: field(at)?, len_bytes: field(at + 8)? });
        let synced = Synced { log: end(24)?, manifest: end(40)? };
        let lineage = u32::from_le_bytes(summed.get(56..)?.try_into().ok()?);
        let promise = Promise { seq: CommitSeq::new(field(16)?), lineage, synced };
        let slot = Self { write_count: field(8)?, promise };
        // The numbers determine every byte of a slot. Any other bytes are damage.
        (sum == crc32c::crc32c(summed).to_le_bytes() && slot.encode() == bytes).then_some(slot)
    }
}

/// The floor of a directory. Nothing is promised if it has none, like a checkpoint.
///
/// # Errors
/// [`EngineError::Corrupt`] if neither slot is intact; [`EngineError::Io`].
pub(super) fn promised(dir: &Path) -> Result<Promise, EngineError> {
    Ok(read(dir)?.unwrap_or_default().promise)
}

/// As [`promised`], but nothing is promised either if neither slot is intact: enough for reading.
///
/// # Errors
/// [`EngineError::Io`].
pub(super) fn known(dir: &Path) -> Result<Promise, EngineError> {
    match promised(dir) {
        Err(EngineError::Corrupt { .. }) => Ok(Promise::default()),
        promised => promised,
    }
}

/// Why the floor of a directory that must have one promises nothing.
pub(super) fn problem(dir: &Path) -> Option<EngineError> {
    match read(dir) {
        Ok(Some(_)) => None,
        Ok(None) => Some(corrupt("the file is missing")),
        Err(error) => Some(error),
    }
}

fn corrupt(problem: &str) -> EngineError {
    EngineError::Corrupt {
        place: Place::File { name: FILE_NAME.into(), offset_bytes: 0 },
        message: format!(
            "{problem}; it says which commits were synced, so that missing ones are noticed: bring it back from a copy that \
             was made since the world was last written, or go on without it by `cg accept-loss`"
        ),
    }
}

fn read(dir: &Path) -> Result<Option<Slot>, EngineError> {
    let path = dir.join(FILE_NAME);
    let mut bytes = Vec::new();
    match File::open(&path).and_then(|file| file.take(2 * SLOT_BYTES as u64 + 1).read_to_end(&mut bytes)) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(EngineError::Io { path, source }),
    }
    match bytes.chunks(SLOT_BYTES).filter_map(Slot::decode).max_by_key(|slot| slot.write_count) {
        Some(slot) => Ok(Some(slot)),
        None => Err(corrupt("neither slot matches its checksum")),
    }
}

#[cfg(test)]
mod tests;
