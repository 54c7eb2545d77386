//! Region snapshots kept in the world: named values of any length, in parts. What they say is not the store's business.
//!
//! | row | payload |
//! |---|---|
//! | name ‖ part 0 | `u64` length of the value, `u32` number of parts behind this one |
//! | name ‖ part 1, 2… | the value, a mebibyte each, the last one shorter |
//!
//! Each is kept by one commit and deleted by one, whatever its length. Snapshots belong to no content hash, and a
//! transaction does not see them.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::frame::{self, Codec, Draft, FrameView};
use cg_format::key::{self, Family};
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Problem, Section, Space};

use crate::api::world::{Inner, World};
use crate::commit::transaction::{Changes, commit_snapshot};
use crate::engine::{
    ALL_KEYS, Batch, Engine, EngineError, Met, ReadableExt as _, Stamp, scan_skipping_damage,
};
use crate::storage::error::{Damage, Error};

/// Bytes of a value in one part.
const PART_BYTES: usize = 1 << 20;
/// What the row of a part takes beside the bytes in it, and what puts it by.
const AROUND_A_PART_BYTES: usize = 8192;

/// A snapshot that the world keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptSnapshot {
    /// Its name.
    pub name: String,
    /// Its length.
    pub len_bytes: u64,
    /// The commit that made it visible.
    pub seq: u64,
}

/// A snapshot that is there and cannot be read, or a gap in what can be read, where some may lie.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct DamagedSnapshot {
    /// Its name, if that can be read.
    pub name: Option<String>,
    /// What is damaged.
    #[source]
    pub error: Error,
}

/// What part 0 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    len_bytes: u64,
    pub(crate) part_count: u32,
    /// The commit that kept the snapshot. No part of it is newer: one that is belongs to another, kept since.
    pub(crate) seq: u64,
}

impl Head {
    /// The bytes of the value in a part, the first of which is part 1.
    pub(crate) fn part_len_bytes(&self, part: u32) -> u64 {
        let before = u64::from(part.saturating_sub(1)) * PART_BYTES as u64;
        self.len_bytes.saturating_sub(before).min(PART_BYTES as u64)
    }
}

/// What a commit changes of one snapshot.
#[derive(Debug)]
pub(crate) struct SnapshotChange {
    name: String,
    /// `None` is a deletion.
    value: Option<Arc<[u8]>>,
    /// The parts that are there, part 0 too.
    before: Vec<u32>,
}

impl World {
    /// Keeps a value under a name; returns the commit that did.
    ///
    /// One commit, whatever its length: it is there whole or not at all, after any crash. One that is longer than a batch
    /// is written twice, as a large transaction is. The value is in memory once more until it is written, and while it is
    /// written once again. Of several that are kept under one name at once, one is kept. Forces no sync:
    /// [`flush`](Self::flush) does.
    ///
    /// # Errors
    /// [`Error::SnapshotExists`], [`Error::SnapshotName`], [`Error::NoRoom`], and what the engine says.
    pub fn keep_snapshot(&self, name: &str, value: &[u8]) -> Result<u64, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        let _one_at_a_time = inner.keeping.lock();
        // One whose commit failed is written by now, or never will be.
        inner.drain()?;
        let before = inner.snapshot_parts(name)?;
        if before.first() == Some(&0) {
            return Err(Error::SnapshotExists { name: name.into() });
        }
        inner.change_snapshot(SnapshotChange { name: name.into(), value: Some(value.into()), before })
    }

    /// The snapshots that the world keeps, ascending by name, and in their places those of which the head is damaged.
    /// Reads the keys of their rows; nothing of the values, which may be damaged too. Parts without a head are no snapshot:
    /// [`verify`](Self::verify) finds them.
    ///
    /// # Errors
    /// What the engine says, but for damage.
    pub fn snapshots(&self) -> Result<Vec<Result<KeptSnapshot, DamagedSnapshot>>, Error> {
        let mut found = Vec::new();
        let engine = self.settled()?.settled_engine()?;
        let view = engine.snapshot()?;
        scan_skipping_damage(&view, Family::Snapshot, ALL_KEYS, |met| {
            match met {
                Met::Row(row_key, row) => found.extend(kept_in(row_key, row)),
                Met::Gap { error, .. } => {
                    found.push(Err(DamagedSnapshot { name: None, error: error.into() }));
                }
            }
            ControlFlow::<()>::Continue(())
        })?;
        Ok(found)
    }

    /// A snapshot's value, to be read in parts; `None` if there is none of that name.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its head is damaged; what kept a commit from being carried out to its end, which may be that of
    /// the snapshot; and what the engine says.
    pub fn snapshot(&self, name: &str) -> Result<Option<SnapshotReader>, Error> {
        let inner = self.settled()?;
        let engine = inner.engine()?;
        // A head that is there before its parts is of a snapshot that is being carried out.
        let at_rest = engine.at_rest()?;
        let Some(head) = snapshot_head(&*engine, name)? else { return Ok(None) };
        drop(at_rest);
        drop(engine);
        let (world, name) = (self.clone(), name.to_owned());
        Ok(Some(SnapshotReader { world, name, head, at: 0, last: None }))
    }

    /// Deletes a snapshot, or parts of one that lost their head; `false` if there is nothing of that name. One commit,
    /// whatever its length.
    ///
    /// # Errors
    /// What the engine says. A damaged snapshot is deleted all the same.
    pub fn delete_snapshot(&self, name: &str) -> Result<bool, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        let _one_at_a_time = inner.keeping.lock();
        inner.drain()?;
        let before = inner.snapshot_parts(name)?;
        if before.is_empty() {
            return Ok(false);
        }
        inner.change_snapshot(SnapshotChange { name: name.into(), value: None, before })?;
        Ok(true)
    }
}

impl SnapshotChange {
    /// Whether anything is put.
    pub(crate) const fn is_put(&self) -> bool {
        self.value.is_some()
    }

    /// Adds the rows that say it.
    pub(crate) fn put_rows(&self, batch: &mut Batch) {
        let row_key =
            |part| key::snapshot(&self.name, part).expect("it was checked when its parts were listed");
        let value = self.value.as_deref();
        let parts = value.map_or(0, |value| value.len().div_ceil(PART_BYTES)) as u32;
        let rest = self.before.iter().filter(|part| value.is_none() || **part > parts);
        rest.for_each(|part| batch.delete(Space::Snapshot, row_key(*part)));
        let Some(value) = value else { return };
        let head = Draft::plain(Codec::None, 0, |out| {
            let mut writer = Writer::new(out);
            writer.u64(value.len() as u64);
            writer.u32(parts);
        });
        batch.put(Space::Snapshot, row_key(0), head, Stamp::Commit);
        for (number, part) in (1..).zip(value.chunks(PART_BYTES)) {
            let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(part));
            batch.put(Space::Snapshot, row_key(number), row, Stamp::Commit);
        }
    }

    /// At most so many bytes do its rows take.
    fn max_len_bytes(&self) -> u64 {
        /// A key and a frame.
        const ROW_BYTES: usize = 512;
        let value_bytes = self.value.as_ref().map_or(0, |value| value.len());
        (value_bytes + (value_bytes / PART_BYTES + 2 + self.before.len()) * ROW_BYTES) as u64
    }
}

fn snapshot_head(engine: &dyn Engine, name: &str) -> Result<Option<Head>, Error> {
    let row_key = row_key(name, 0)?;
    let Some(row) = engine.get(Space::Snapshot, &row_key)? else { return Ok(None) };
    decode_head(&row_key, &row).map(Some).map_err(|problem| damaged(&row_key, name, 0, problem))
}

impl Inner {
    /// The parts of a snapshot that are there, ascending. Costs a scan of its rows.
    fn snapshot_parts(&self, name: &str) -> Result<Vec<u32>, Error> {
        let (first, last) = (row_key(name, 0)?, row_key(name, u32::MAX)?);
        let range = (Bound::Included(first.as_slice()), Bound::Included(last.as_slice()));
        let mut parts = Vec::new();
        self.engine()?.scan(Family::Snapshot, range, |row_key, _| {
            parts.extend(key::decode_snapshot(row_key).map(|(_, part)| part));
            ControlFlow::<()>::Continue(())
        })?;
        Ok(parts)
    }

    /// Commits a change and waits until it is written. Nobody else changes a snapshot meanwhile.
    fn change_snapshot(&self, change: SnapshotChange) -> Result<u64, Error> {
        let caps = self.engine()?.caps();
        let (max_bytes, limit_bytes) = (change.max_len_bytes(), self.batch_limit()?);
        if change.is_put() {
            // What is put by in parts is written twice.
            let written_bytes = if max_bytes > limit_bytes { 2 * max_bytes } else { max_bytes };
            self.space.check(&*self.engine()?, written_bytes)?;
        }
        let len_bytes = (PART_BYTES + AROUND_A_PART_BYTES) as u64;
        if max_bytes > limit_bytes && len_bytes > caps.max_batch_bytes {
            return Err(EngineError::TooLarge { len_bytes, max_bytes: caps.max_batch_bytes }.into());
        }
        commit_snapshot(self, Changes::of_snapshot(self.registry.catalog(), change))
    }

    /// A part of the snapshot that had this head.
    fn snapshot_part(&self, name: &str, head: Head, part: u32) -> Result<Vec<u8>, Error> {
        let row_key = row_key(name, part)?;
        let engine = self.engine()?;
        let replaced = || Error::SnapshotReplaced { name: name.into() };
        let expected = head.part_len_bytes(part);
        let damaged = |problem| damaged(&row_key, name, part, problem);
        let Some(row) = engine.get(Space::Snapshot, &row_key)? else {
            let is_lost = snapshot_head(&*engine, name)?.is_some_and(|now| now.seq == head.seq);
            return Err(if is_lost { damaged(wrong_length(0, expected)) } else { replaced() });
        };
        let frame = FrameView::open(Space::Snapshot, &row_key, &row).map_err(damaged)?;
        if frame.header().version > head.seq {
            return Err(replaced());
        }
        let found = frame.payload().len() as u64;
        if found == expected {
            Ok(frame.payload().to_vec())
        } else {
            Err(damaged(wrong_length(found, expected)))
        }
    }
}

fn row_key(name: &str, part: u32) -> Result<Vec<u8>, Error> {
    key::snapshot(name, part).ok_or(Error::SnapshotName { len_bytes: name.len() })
}

fn damaged(row_key: &[u8], name: &str, part: u32, problem: DecodeError) -> Error {
    Damage::of_row(Space::Snapshot, row_key, format!("part {part} of snapshot `{name}`"), problem)
}

/// A part that is shorter or longer than its head says; one that is lost has no byte.
pub(crate) fn wrong_length(found: u64, expected: u64) -> DecodeError {
    let problem = if found < expected {
        Problem::Truncated { field: "a part", needed: expected, left: found }
    } else {
        Problem::Disagrees { field: "the length of a part", found, expected }
    };
    DecodeError::new(Section::Frame, 0, problem)
}

/// What the head of a snapshot says.
pub(crate) fn decode_head(row_key: &[u8], row: &[u8]) -> Result<Head, DecodeError> {
    let frame = FrameView::open(Space::Snapshot, row_key, row)?;
    let mut reader = Reader::at_offset(frame.payload(), frame::LEN_BYTES as u64, Section::Frame);
    let len_bytes = reader.u64("snapshot length")?;
    let here = reader.clone();
    let part_count = reader.u32("snapshot parts")?;
    let expected = len_bytes.div_ceil(PART_BYTES as u64);
    if u64::from(part_count) != expected {
        let (field, found) = ("snapshot parts", part_count.into());
        return Err(here.error(Problem::Disagrees { field, found, expected }));
    }
    reader.end("bytes behind the head")?;
    Ok(Head { len_bytes, part_count, seq: frame.header().version })
}

/// The snapshot that a row is the head of.
fn kept_in(row_key: &[u8], row: &[u8]) -> Option<Result<KeptSnapshot, DamagedSnapshot>> {
    let (name, part) = match key::decode_snapshot(row_key) {
        Ok(place) => place,
        Err(problem) => {
            let error = Damage::of_row(Space::Snapshot, row_key, "a snapshot", problem);
            return Some(Err(DamagedSnapshot { name: None, error }));
        }
    };
    let head = (part == 0).then(|| decode_head(row_key, row))?;
    Some(match head {
        Ok(head) => Ok(KeptSnapshot { name: name.into(), len_bytes: head.len_bytes, seq: head.seq }),
        Err(problem) => {
            let error = damaged(row_key, name, 0, problem);
            Err(DamagedSnapshot { name: Some(name.into()), error })
        }
    })
}

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
}

impl Read for SnapshotReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.head.len_bytes {
            return Ok(0);
        }
        let part = (self.at / PART_BYTES as u64) as u32 + 1;
        if self.last.as_ref().is_none_or(|(last, _)| *last != part) {
            let bytes = self.world.unsettled().snapshot_part(&self.name, self.head, part);
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
