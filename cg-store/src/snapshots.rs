//! Region snapshots kept in the world: named values of any length, in parts. What they say is not the store's business.
//!
//! | row | payload |
//! |---|---|
//! | name ‖ part 0 | `u64` length of the value, `u32` number of parts behind this one |
//! | name ‖ part 1, 2… | the value, a mebibyte each, the last one shorter |
//!
//! Part 0 is written with or after the last of the others and makes the snapshot visible; parts without it are what is
//! left of a process that was killed, and the next snapshot of that name is written over them. Deleting is one commit.
//! Snapshots belong to no content hash, and a transaction does not see them.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::{Bound, ControlFlow};

use cg_format::frame::{self, Codec, Draft, FrameView};
use cg_format::key::{self, Family};
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Problem, Section, Space};

use crate::engine::{ALL_KEYS, Batch, Engine, ReadView as _, Stamp};
use crate::error::{Damage, Error};
use crate::world::{Inner, World};

/// Bytes of a value in one part.
const PART_BYTES: usize = 1 << 20;
/// Parts of one commit: the batch stays far below any limit.
const PARTS_AT_ONCE: usize = 16;

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

/// What part 0 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Head {
    len_bytes: u64,
    part_count: u32,
}

impl<E: Engine> World<E> {
    /// Keeps a value under a name; returns the commit that made it visible.
    ///
    /// A value up to 16 MiB is one commit; a longer one is written in several, and is there with the last. Of several that
    /// are kept under one name at once, one is kept. Forces no sync: [`flush`](Self::flush) does.
    ///
    /// # Errors
    /// [`Error::SnapshotExists`], [`Error::SnapshotName`], [`Error::NoRoom`], and what the engine says.
    pub fn keep_snapshot(&self, name: &str, value: &[u8]) -> Result<u64, Error> {
        let inner = self.inner();
        inner.check_open()?;
        if inner.snapshot_head(name)?.is_some() {
            return Err(Error::SnapshotExists { name: name.into() });
        }
        let parts: Vec<&[u8]> = value.chunks(PART_BYTES).collect();
        let part_count = parts.len() as u32;
        let head = Draft::plain(Codec::None, 0, |out| {
            let mut writer = Writer::new(out);
            writer.u64(value.len() as u64);
            writer.u32(part_count);
        });
        let mut head = Some(head);
        let mut written = 0;
        let mut first_seq = None;
        loop {
            let now: Vec<_> = parts.iter().skip(written).take(PARTS_AT_ONCE).collect();
            let mut batch = Batch::new();
            for (number, part) in (written as u32 + 1..).zip(&now) {
                let row = Draft::plain(Codec::None, 0, |out| out.extend_from_slice(part));
                batch.put(Space::Snapshot, row_key(name, number)?, row, Stamp::Commit);
            }
            written += now.len();
            let is_last = written == parts.len();
            if let Some(head) = head.take_if(|_| is_last) {
                batch.put(Space::Snapshot, row_key(name, 0)?, head, Stamp::Commit);
            }
            inner.space.check(&*inner.engine()?, batch.len_bytes())?;
            let mut committing = inner.commit_alone()?;
            // Who kept another one meanwhile was first. So is who began to after this did: its parts lie over these.
            if inner.snapshot_head(name)?.is_some()
                || first_seq != inner.snapshot_part_seq(name, first_seq)?
            {
                return Err(Error::SnapshotExists { name: name.into() });
            }
            let seq = inner.commit_past_queue(batch, std::iter::empty())?;
            committing.publish(seq, []);
            first_seq.get_or_insert(seq);
            if is_last {
                return Ok(seq);
            }
        }
    }

    /// The snapshots that the world keeps, ascending by name. Reads the keys of their rows; nothing of the values.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a head is damaged, and what the engine says.
    pub fn snapshots(&self) -> Result<Vec<KeptSnapshot>, Error> {
        let mut kept = Vec::new();
        let engine = self.inner().settled_engine()?;
        let view = engine.snapshot()?;
        let failed = view.scan(Family::Snapshot, ALL_KEYS, |row_key, row| match kept_in(row_key, row) {
            Ok(found) => {
                kept.extend(found);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })?;
        failed.map_or(Ok(kept), Err)
    }

    /// A snapshot's value, to be read in parts; `None` if there is none of that name.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if its head is damaged, and what the engine says.
    pub fn snapshot(&self, name: &str) -> Result<Option<SnapshotReader<E>>, Error> {
        let Some(head) = self.inner().snapshot_head(name)? else { return Ok(None) };
        let (world, name) = (self.clone(), name.to_owned());
        Ok(Some(SnapshotReader { world, name, head, at: 0, last: None }))
    }

    /// Deletes a snapshot; `false` if there was none of that name. One commit, whatever its length.
    ///
    /// # Errors
    /// What the engine says. A damaged snapshot is deleted all the same.
    pub fn delete_snapshot(&self, name: &str) -> Result<bool, Error> {
        let inner = self.inner();
        inner.check_open()?;
        let (first, last) = (row_key(name, 0)?, row_key(name, u32::MAX)?);
        let mut committing = inner.commit_alone()?;
        let engine = inner.engine()?;
        if engine.get(Space::Snapshot, &first)?.is_none() {
            return Ok(false);
        }
        let range = (Bound::Included(first.as_slice()), Bound::Included(last.as_slice()));
        let mut batch = Batch::new();
        engine.scan(Family::Snapshot, range, |row_key, _| {
            batch.delete(Space::Snapshot, row_key);
            ControlFlow::<()>::Continue(())
        })?;
        let seq = inner.commit_past_queue(batch, std::iter::empty())?;
        committing.publish(seq, []);
        Ok(true)
    }
}

impl<E: Engine> Inner<E> {
    fn snapshot_head(&self, name: &str) -> Result<Option<Head>, Error> {
        let row_key = row_key(name, 0)?;
        let engine = self.engine()?;
        let Some(row) = engine.get(Space::Snapshot, &row_key)? else { return Ok(None) };
        decode_head(&row_key, &row).map(Some).map_err(|problem| damaged(&row_key, name, 0, problem))
    }

    /// The commit that wrote part 1, if it is asked for.
    fn snapshot_part_seq(&self, name: &str, asked: Option<u64>) -> Result<Option<u64>, Error> {
        if asked.is_none() {
            return Ok(None);
        }
        let row = self.engine()?.get(Space::Snapshot, &row_key(name, 1)?)?.map(|row| frame::version_of(&row));
        Ok(row.flatten())
    }

    fn snapshot_part(&self, name: &str, part: u32) -> Result<Vec<u8>, Error> {
        let row_key = row_key(name, part)?;
        let engine = self.engine()?;
        let row = engine.get(Space::Snapshot, &row_key)?;
        let gone = || {
            let problem = Problem::Truncated { field: "a part", needed: 1, left: 0 };
            DecodeError::new(Section::Frame, 0, problem)
        };
        let frame = row.as_deref().ok_or_else(gone);
        let frame = frame.and_then(|row| FrameView::open(Space::Snapshot, &row_key, row));
        let payload = frame.map(|frame| frame.payload().to_vec());
        payload.map_err(|problem| damaged(&row_key, name, part, problem))
    }
}

fn row_key(name: &str, part: u32) -> Result<Vec<u8>, Error> {
    key::snapshot(name, part).ok_or(Error::SnapshotName { len_bytes: name.len() })
}

fn damaged(row_key: &[u8], name: &str, part: u32, problem: DecodeError) -> Error {
    Damage::of_row(Space::Snapshot, row_key, format!("part {part} of snapshot `{name}`"), problem)
}

fn decode_head(row_key: &[u8], row: &[u8]) -> Result<Head, DecodeError> {
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
    Ok(Head { len_bytes, part_count })
}

/// The snapshot that a row is the head of.
fn kept_in(row_key: &[u8], row: &[u8]) -> Result<Option<KeptSnapshot>, Error> {
    let broken_key = |problem| Damage::of_row(Space::Snapshot, row_key, "a snapshot", problem);
    let (name, part) = key::decode_snapshot(row_key).map_err(broken_key)?;
    if part > 0 {
        return Ok(None);
    }
    let head = decode_head(row_key, row).map_err(|problem| damaged(row_key, name, 0, problem))?;
    let seq = frame::version_of(row).unwrap_or_default();
    Ok(Some(KeptSnapshot { name: name.into(), len_bytes: head.len_bytes, seq }))
}

/// A snapshot's value as a file. Reads one row for each mebibyte that is asked for.
///
/// A part that is damaged, or gone since, is an error of kind [`io::ErrorKind::InvalidData`] that carries the [`Error`].
pub struct SnapshotReader<E: Engine> {
    world: World<E>,
    name: String,
    head: Head,
    at: u64,
    /// The part that was read last.
    last: Option<(u32, Vec<u8>)>,
}

impl<E: Engine> SnapshotReader<E> {
    /// The length of the value.
    pub const fn len_bytes(&self) -> u64 {
        self.head.len_bytes
    }
}

impl<E: Engine> Read for SnapshotReader<E> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.head.len_bytes {
            return Ok(0);
        }
        let part = (self.at / PART_BYTES as u64) as u32 + 1;
        if self.last.as_ref().is_none_or(|(last, _)| *last != part) {
            let bytes = self.world.inner().snapshot_part(&self.name, part);
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

impl<E: Engine> Seek for SnapshotReader<E> {
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

impl<E: Engine> std::fmt::Debug for SnapshotReader<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SnapshotReader")
            .field("name", &self.name)
            .field("head", &self.head)
            .finish_non_exhaustive()
    }
}
