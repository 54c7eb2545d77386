//! The newest commit known to be synced, stored in a file beside the database, so that a loss is noticed.
//!
//! A log that was deleted, or cut exactly between two records, looks like one that was never written, and RocksDB
//! opens with the rest. The floor is a commit that certainly existed. It is written after the sync of that commit, at
//! most once a second and at close. So it costs commits almost nothing and may be one second old.
//!
//! The file holds two slots of 64 bytes that are written in turn, so that an interrupted write leaves the older slot:
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 8 | `cgfloor1` |
//! | 8 | 8 | how often the floor was written; the slot with the higher number is current |
//! | 16 | 8 | commit sequence |
//! | 24 | 36 | zero |
//! | 60 | 4 | CRC-32C of the 60 bytes before |

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use super::super::{CommitSeq, EngineError, Place};

/// The name of the file in the engine's directory.
pub(super) const FILE_NAME: &str = "DURABLE";

const MAGIC: &[u8; 8] = b"cgfloor1";
const SLOT_BYTES: usize = 64;
const SUMMED_BYTES: usize = 60;
/// The shortest time between two writes, except at close.
const INTERVAL: Duration = Duration::from_secs(1);

/// The floor of an engine that is open for writing.
#[derive(Debug)]
pub(super) struct Floor {
    file: File,
    slot: Slot,
    written: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    write_count: u64,
    seq: CommitSeq,
}

impl Floor {
    /// Opens the floor of a directory. Creates one with [`CommitSeq::NONE`] if the file does not exist.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if neither slot is intact; [`EngineError::Io`].
    pub(super) fn open(dir: &Path) -> Result<Self, EngineError> {
        let path = dir.join(FILE_NAME);
        let io = |source| EngineError::Io { path: path.clone(), source };
        let slot = read(dir)?;
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(io)?;
        let mut floor =
            Self { file, slot: slot.unwrap_or(Slot { write_count: 0, seq: CommitSeq::NONE }), written: None };
        if slot.is_none() {
            // Writes both slots, so that no later write needs disk space.
            floor.write(CommitSeq::NONE).and_then(|()| floor.write(CommitSeq::NONE)).map_err(io)?;
            floor.written = None;
        }
        Ok(floor)
    }

    /// The commit of the floor.
    pub(super) fn seq(&self) -> CommitSeq {
        self.slot.seq
    }

    /// Raises the floor to a synced commit, unless it was raised within the last second.
    pub(super) fn raise(&mut self, synced: CommitSeq) {
        if self.written.is_none_or(|written| written.elapsed() >= INTERVAL) {
            self.raise_now(synced);
        }
    }

    /// Raises the floor to a synced commit.
    ///
    /// No commit depends on the floor. If it cannot be written, the older floor stays and the failure is only logged.
    pub(super) fn raise_now(&mut self, synced: CommitSeq) {
        if synced <= self.slot.seq {
            return;
        }
        if let Err(error) = self.write(synced) {
            tracing::warn!(%error, floor = %self.slot.seq, "the durable floor could not be raised");
        }
    }

    /// Lowers the floor to the newest commit that exists, because those after it are lost.
    ///
    /// # Errors
    /// [`EngineError::Io`]: the floor is unchanged.
    pub(super) fn lower(&mut self, dir: &Path, found: CommitSeq) -> Result<(), EngineError> {
        // Writes both slots, so that damage of one does not restore the higher floor.
        let written = self.write(found).and_then(|()| self.write(found));
        written.map_err(|source| EngineError::Io { path: dir.join(FILE_NAME), source })
    }

    fn write(&mut self, seq: CommitSeq) -> io::Result<()> {
        let slot = Slot { write_count: self.slot.write_count + 1, seq };
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
        bytes[16..24].copy_from_slice(&self.seq.get().to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..SUMMED_BYTES]);
        bytes[SUMMED_BYTES..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (summed, sum) = bytes.split_at_checked(SUMMED_BYTES)?;
        let field = |at: usize| Some(u64::from_le_bytes(summed.get(at..at + 8)?.try_into().ok()?));
        let slot = Self { write_count: field(8)?, seq: CommitSeq::new(field(16)?) };
        // The two numbers determine every byte of a slot. Any other bytes are damage.
        (sum == crc32c::crc32c(summed).to_le_bytes() && slot.encode() == bytes).then_some(slot)
    }
}

/// The floor of a directory. [`CommitSeq::NONE`] if it has none, like a checkpoint.
///
/// # Errors
/// As [`Floor::open`].
pub(super) fn promised(dir: &Path) -> Result<CommitSeq, EngineError> {
    Ok(read(dir)?.map_or(CommitSeq::NONE, |slot| slot.seq))
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
        None => Err(EngineError::Corrupt {
            place: Place::File { name: FILE_NAME.into(), offset_bytes: 0 },
            message: "neither slot matches its checksum".into(),
        }),
    }
}

#[cfg(test)]
mod tests;
