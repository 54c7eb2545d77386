//! Snapshots saved in the world: named values of any length, stored in parts. The store does not interpret the values.
//!
//! | row | payload |
//! |---|---|
//! | name ‖ part 0 | `u64` length of the value, `u32` number of parts after this one |
//! | name ‖ part 1, 2… | the value, a mebibyte each, the last one shorter |
//!
//! One commit saves a snapshot and one deletes it, whatever its length. Snapshots are not part of the content hash, and
//! a transaction does not see them.

use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

use cg_format::frame::{self, Codec, Draft, FrameView};
use cg_format::key::{self, Family};
use cg_format::wire::{Reader, Writer};
use cg_format::{DecodeError, Problem, Section, Space};

use crate::engine::{
    ALL_KEYS, Batch, CommitSeq, Engine, Met, Readable, ReadableExt as _, Stamp, scan_skipping_damage,
};
use crate::storage::error::{Damage, Error};

/// The bytes of a value in one part.
pub(crate) const PART_BYTES: usize = 1 << 20;
/// The size of a part's row beside the bytes in it, including the overhead of staging.
pub(crate) const AROUND_A_PART_BYTES: usize = 8192;

/// A snapshot that is saved in the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedSnapshot {
    /// Its name.
    pub name: String,
    /// Its length.
    pub len_bytes: u64,
    /// The commit that made it visible.
    pub seq: CommitSeq,
}

/// A snapshot that exists and cannot be read, or an unreadable gap that may contain some.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct DamagedSnapshot {
    /// Its name, if that can be read.
    pub name: Option<String>,
    /// The error of its damaged part.
    #[source]
    pub error: Error,
}

/// The content of part 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) len_bytes: u64,
    pub(crate) part_count: u32,
    /// The commit that saved the snapshot. A part with a newer commit belongs to a later snapshot of the same name.
    pub(crate) seq: u64,
}

impl Head {
    /// The number of bytes of the value in a part. The first one is part 1.
    pub(crate) fn part_len_bytes(&self, part: u32) -> u64 {
        let before = u64::from(part.saturating_sub(1)) * PART_BYTES as u64;
        self.len_bytes.saturating_sub(before).min(PART_BYTES as u64)
    }
}

/// The change of one snapshot in a commit.
#[derive(Debug)]
pub(crate) struct SnapshotChange {
    pub(crate) name: String,
    /// `None` is a deletion.
    pub(crate) value: Option<Arc<[u8]>>,
    /// The existing parts, including part 0.
    pub(crate) before: Vec<u32>,
}

impl SnapshotChange {
    /// Whether anything is put.
    pub(crate) const fn is_put(&self) -> bool {
        self.value.is_some()
    }

    /// Adds the rows of the change to a batch.
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

    /// The maximum size of its rows.
    pub(crate) fn max_len_bytes(&self) -> u64 {
        /// A key and a frame.
        const ROW_BYTES: usize = 512;
        let value_bytes = self.value.as_ref().map_or(0, |value| value.len());
        (value_bytes + (value_bytes / PART_BYTES + 2 + self.before.len()) * ROW_BYTES) as u64
    }
}

pub(crate) fn snapshot_head(engine: &dyn Engine, name: &str) -> Result<Option<Head>, Error> {
    let row_key = row_key(name, 0)?;
    let Some(row) = engine.get(Space::Snapshot, &row_key)? else { return Ok(None) };
    decode_head(&row_key, &row).map(Some).map_err(|problem| damaged(&row_key, name, 0, problem))
}

/// The existing parts of a snapshot, ascending. Costs a scan of its rows.
pub(crate) fn parts(engine: &dyn Engine, name: &str) -> Result<Vec<u32>, Error> {
    let (first, last) = (row_key(name, 0)?, row_key(name, u32::MAX)?);
    let range = (Bound::Included(first.as_slice()), Bound::Included(last.as_slice()));
    let mut parts = Vec::new();
    engine.scan(Family::Snapshot, range, |row_key, _| {
        parts.extend(key::decode_snapshot(row_key).map(|(_, part)| part));
        ControlFlow::<()>::Continue(())
    })?;
    Ok(parts)
}

/// A part of the snapshot with this head.
pub(crate) fn part(engine: &dyn Engine, name: &str, head: Head, part: u32) -> Result<Vec<u8>, Error> {
    let row_key = row_key(name, part)?;
    let replaced = || Error::SnapshotReplaced { name: name.into() };
    let expected = head.part_len_bytes(part);
    let damaged = |problem| damaged(&row_key, name, part, problem);
    let Some(row) = engine.get(Space::Snapshot, &row_key)? else {
        let is_lost = snapshot_head(engine, name)?.is_some_and(|now| now.seq == head.seq);
        return Err(if is_lost { damaged(wrong_length(0, expected)) } else { replaced() });
    };
    let frame = FrameView::open(Space::Snapshot, &row_key, &row).map_err(damaged)?;
    if frame.header().version > head.seq {
        return Err(replaced());
    }
    let found = frame.payload().len() as u64;
    if found == expected { Ok(frame.payload().to_vec()) } else { Err(damaged(wrong_length(found, expected))) }
}

/// The snapshots of a view, ascending by name. A damaged head gives an error in its place.
pub(crate) fn list(view: &dyn Readable) -> Result<Vec<Result<SavedSnapshot, DamagedSnapshot>>, Error> {
    let mut found = Vec::new();
    scan_skipping_damage(view, Family::Snapshot, ALL_KEYS, |met| {
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

fn row_key(name: &str, part: u32) -> Result<Vec<u8>, Error> {
    key::snapshot(name, part).ok_or(Error::SnapshotName { len_bytes: name.len() })
}

fn damaged(row_key: &[u8], name: &str, part: u32, problem: DecodeError) -> Error {
    Damage::of_row(Space::Snapshot, row_key, format!("part {part} of snapshot `{name}`"), problem)
}

/// The problem of a part whose length differs from its head; a missing part has length 0.
pub(crate) fn wrong_length(found: u64, expected: u64) -> DecodeError {
    let problem = if found < expected {
        Problem::Truncated { field: "a part", needed: expected, left: found }
    } else {
        Problem::Disagrees { field: "the length of a part", found, expected }
    };
    DecodeError::new(Section::Frame, 0, problem)
}

/// Decodes the head of a snapshot.
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
    reader.end("bytes after the head")?;
    Ok(Head { len_bytes, part_count, seq: frame.header().version })
}

/// The snapshot of a row that is a head.
fn kept_in(row_key: &[u8], row: &[u8]) -> Option<Result<SavedSnapshot, DamagedSnapshot>> {
    let (name, part) = match key::decode_snapshot(row_key) {
        Ok(place) => place,
        Err(problem) => {
            let error = Damage::of_row(Space::Snapshot, row_key, "a snapshot", problem);
            return Some(Err(DamagedSnapshot { name: None, error }));
        }
    };
    let head = (part == 0).then(|| decode_head(row_key, row))?;
    Some(match head {
        Ok(Head { len_bytes, seq, .. }) => {
            Ok(SavedSnapshot { name: name.into(), len_bytes, seq: CommitSeq::new(seq) })
        }
        Err(problem) => {
            let error = damaged(row_key, name, 0, problem);
            Err(DamagedSnapshot { name: Some(name.into()), error })
        }
    })
}
