//! Staged commits, which are too large for one batch. They are staged in parts, committed by one small commit, and
//! rolled forward.
//!
//! | step | batches | a crash after it leaves |
//! |---|---|---|
//! | [`stage`](Staged::stage) | maintenance batches: one part each | parts without an intent, which the next open deletes |
//! | [`commit`](Staged::commit) | one commit: the intent | the commit; the next open rolls it forward |
//! | [`roll_forward`](Staged::roll_forward) | maintenance batches: one part's rows each | the same |
//! | | the last: intent and parts are deleted | only the commit's rows |
//!
//! **Invariants**.
//! - A row has the same bytes in its part as later in its family, so rolling forward twice has the same result as once.
//! - The rows of one chunk, and those of one record, are in one part: a reader of one of them never sees half.
//! - No other commit runs between choosing the number for [`stage`](Staged::stage) and [`commit`](Staged::commit),
//!   which refuses otherwise. Maintenance batches may run in between.
//! - No later commit runs before this one is completely rolled forward, so an intent is that of the newest commit.

pub(crate) mod salvage;

use std::ops::{Bound, ControlFlow};

use cg_format::frame::{self, Codec, Draft, FrameView, Stamp};
use cg_format::key::{self, Family};
use cg_format::staged::{Intent, PartWriter, StagedOp, StagedOps};
use cg_format::{RecordId, Space};

use crate::engine::{
    Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine, EngineError, Guard, Level, Op, Place, Readable,
    ReadableExt as _,
};

/// The maximum length of a part, unless one group is longer.
const PART_BYTES: u64 = 8 << 20;
/// The size of a part's row beside the rows in it: key, frame, and a few bytes for each operation.
const AROUND_A_PART_BYTES: u64 = 4096;
/// The maximum number of unused rows that are deleted at once.
const DELETED_AT_ONCE: usize = 4096;

/// A group of rows that must be in one part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Whole {
    /// The key of a chunk; with its deltas and its outline.
    Chunk(Box<[u8]>),
    /// A record: in its old leaf, in its new leaf and by its id.
    Record(RecordId),
}

impl Whole {
    fn of(space: Space, row: &[u8]) -> Option<Self> {
        Some(match space {
            Space::ChunkL0 => Self::Chunk(row.into()),
            Space::ChunkDelta => Self::Chunk(row.get(..key::CHUNK_LEN_BYTES)?.into()),
            Space::OpacityPatch => Self::Chunk(key::chunk(key::decode_opacity_patch(row).ok()?).into()),
            Space::Record => Self::Record(key::decode_record(row).ok()?.1),
            Space::RecordPlace => Self::Record(key::decode_record_place(row).ok()?),
            _ => return None,
        })
    }
}

/// A group of rows that is too large for any batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TooLong {
    /// The first of its rows.
    pub space: Space,
    /// Its key.
    pub key: Box<[u8]>,
    /// How long it is.
    pub len_bytes: u64,
    /// How long it may be.
    pub limit_bytes: u64,
}

/// Refuses a batch that could not be staged for an engine with this maximum batch. A group of rows that is longer
/// cannot be put into any part.
///
/// # Errors
/// The longest group that no part can have.
pub fn check(batch: &Batch, max_batch_bytes: u64) -> Result<(), TooLong> {
    let limit_bytes = max_batch_bytes.saturating_sub(AROUND_A_PART_BYTES);
    match batch.longest_group(Whole::of) {
        Some((space, key, len_bytes)) if len_bytes > limit_bytes => {
            Err(TooLong { space, key: key.into(), len_bytes, limit_bytes })
        }
        _ => Ok(()),
    }
}

/// A commit whose parts are in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Staged {
    seq: u64,
    intent: Intent,
}

impl Staged {
    /// Stages the rows of a commit in parts, with no batch over a limit. `seq` must be the engine's next number.
    ///
    /// # Errors
    /// The errors of the engine. The parts that were written have no effect.
    pub(crate) fn stage(
        engine: &dyn Engine,
        batch: Batch,
        seq: u64,
        limit_bytes: u64,
    ) -> Result<Self, EngineError> {
        let part_bytes = PART_BYTES.min(limit_bytes / 4);
        let mut staged = Self { seq, intent: Intent::default() };
        let (mut part, mut group, mut of_group) = (PartWriter::new(), PartWriter::new(), 0);
        batch.drain_grouped(CommitSeq::new(seq), Whole::of, |number, op| {
            if number != of_group {
                staged.close_group(engine, &mut part, &mut group, part_bytes)?;
                of_group = number;
            }
            match op {
                Op::Put { space, key, draft, version } => {
                    let row = draft.seal(space, key, version);
                    group.add(&StagedOp::Put { space, key, row: &row });
                }
                Op::Delete { space, key } => group.add(&StagedOp::Delete { space, key }),
                Op::DeleteRange { space, from, to } => {
                    group.add(&StagedOp::DeleteRange { space, from, to });
                }
            }
            Ok(())
        })?;
        staged.close_group(engine, &mut part, &mut group, part_bytes)?;
        staged.write_part(engine, part)?;
        Ok(staged)
    }

    /// Adds a finished group to the current part, or to the next if the part would become too long.
    fn close_group(
        &mut self,
        engine: &dyn Engine,
        part: &mut PartWriter,
        group: &mut PartWriter,
        part_bytes: u64,
    ) -> Result<(), EngineError> {
        let group = std::mem::take(group);
        if !part.is_empty() && (part.len_bytes() + group.len_bytes()) as u64 > part_bytes {
            self.write_part(engine, std::mem::take(part))?;
        }
        part.append(group);
        Ok(())
    }

    fn write_part(&mut self, engine: &dyn Engine, part: PartWriter) -> Result<(), EngineError> {
        let part_key = key::staged(self.seq, self.intent.part_count);
        let bytes = part.into_bytes();
        self.intent.add(&bytes);
        let mut batch = Batch::new();
        let draft = Draft::plain(Codec::None, 0, move |out| out.extend(bytes));
        batch.put(Space::Intent, part_key, draft, Stamp::Commit);
        engine.commit(batch.maintenance(), &[], Level::Process).map(drop)
    }

    /// Writes the intent. This is the commit point.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if there was a commit since the number was chosen; other errors of the engine.
    pub(crate) fn commit(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        let mut batch = Batch::new();
        let draft = Draft::plain(Codec::None, 0, |out| self.intent.encode(out));
        batch.put(Space::Intent, key::intent(self.seq), draft, Stamp::Commit);
        let (space, row) = (Space::WorldMeta, COMMIT_SEQUENCE_KEY);
        let guard = match self.seq.saturating_sub(1) {
            0 => Guard::absent(space, row),
            before => Guard::version(space, row, before),
        };
        engine.commit(batch, &[guard], Level::Process).map(drop)
    }

    /// Writes the rows of the commit to their families, part by part, and deletes intent and parts. May be repeated
    /// after a failure.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for a part that is damaged or missing; other errors of the engine.
    pub(crate) fn roll_forward(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        for number in 0..self.intent.part_count {
            let mut batch = Batch::new();
            self.read_part(engine, number, |part_key, part| {
                fill(&mut batch, part).map_err(|problem| damaged(part_key, &problem.to_string()))
            })?;
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        // One batch, because a part that is missing while its intent exists is damage.
        let mut batch = Batch::new();
        batch.delete(Space::Intent, key::intent(self.seq));
        for number in 0..self.intent.part_count {
            batch.delete(Space::Intent, key::staged(self.seq, number));
        }
        engine.commit(batch.maintenance(), &[], Level::Process).map(drop)
    }

    /// Decodes the row of an intent.
    fn read(row_key: &[u8], row: &[u8]) -> Result<Self, EngineError> {
        let read = key::decode_intent(row_key).and_then(|seq| {
            let frame = FrameView::open(Space::Intent, row_key, row)?;
            Ok(Self { seq, intent: Intent::decode(frame.payload())? })
        });
        read.map_err(|problem| damaged(row_key, &problem.to_string()))
    }

    /// Reads every part completely.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] if the parts differ from the intent; other errors of the engine.
    fn check_parts(&self, view: &dyn Readable) -> Result<(), EngineError> {
        let mut found = Intent::default();
        for number in 0..self.intent.part_count {
            self.read_part(view, number, |part_key, part| {
                found.add(part);
                fill(&mut Batch::new(), part).map_err(|problem| damaged(part_key, &problem.to_string()))
            })?;
        }
        if found != self.intent {
            let words = |Intent { part_count, len_bytes, checksum }: Intent| {
                format!("{part_count} parts of {len_bytes} bytes with checksum {checksum:08x}")
            };
            let what = format!("it is of {}, and there are {}", words(self.intent), words(found));
            return Err(damaged(&key::intent(self.seq), &what));
        }
        Ok(())
    }

    fn read_part<T>(
        &self,
        view: &dyn Readable,
        number: u32,
        read: impl FnOnce(&[u8], &[u8]) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let part_key = key::staged(self.seq, number);
        let Some(row) = view.get(Space::Intent, &part_key)? else {
            let what =
                format!("part {number} of {} of commit {} is missing", self.intent.part_count, self.seq);
            return Err(damaged(&part_key, &what));
        };
        let frame = FrameView::open(Space::Intent, &part_key, &row)
            .map_err(|problem| damaged(&part_key, &problem.to_string()))?;
        read(&part_key, frame.payload())
    }
}

/// Adds the operations of a part to a batch.
fn fill(batch: &mut Batch, part: &[u8]) -> Result<(), cg_format::DecodeError> {
    for op in StagedOps::new(part)? {
        match op? {
            StagedOp::Put { space, key, row } => {
                let (draft, version) = Draft::of_row(space, key, row)?;
                batch.put(space, key, draft, Stamp::Keep(version.commit));
            }
            StagedOp::Delete { space, key } => batch.delete(space, key),
            StagedOp::DeleteRange { space, from, to } => batch.delete_range(space, from, to),
        }
    }
    Ok(())
}

fn damaged(row: &[u8], what: &str) -> EngineError {
    EngineError::Corrupt {
        place: Place::Row { family: Family::Index, key: row.into() },
        message: what.to_owned(),
    }
}

/// The staged commits that an engine holds.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Those that are committed and not rolled forward, in the order of their numbers. At most one, unless another
    /// program wrote.
    committed: Vec<Staged>,
    /// The keys of all parts.
    parts: Vec<Vec<u8>>,
    /// The newest commit, if there may be parts that could not be listed.
    unlisted_behind: Option<u64>,
}

impl Unfinished {
    /// Finds intents and parts, and checks whether all that must be rolled forward can be. Costs one scan if there are
    /// none.
    ///
    /// An unreadable range does not hide the rest, provided that the key of the possible intent can be read. Parts
    /// without effect may be unlisted then; [`finish`](Self::finish) deletes those after the newest commit.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for a damaged intent or damaged parts of one; other errors of the engine.
    pub(crate) fn find(view: &dyn Readable) -> Result<Self, EngineError> {
        let mut found = Self::default();
        let tag = Space::Intent.index_tag().expect("it is in the index family");
        let (from, to) = ([tag], [tag + 1]);
        let range = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let scanned = view.scan(Family::Index, range, |row_key, row| {
            if key::decode_staged(row_key).is_ok() {
                found.parts.push(row_key.to_vec());
                return ControlFlow::Continue(());
            }
            match Staged::read(row_key, row) {
                Ok(staged) => {
                    found.committed.push(staged);
                    ControlFlow::Continue(())
                }
                Err(damage) => ControlFlow::Break(damage),
            }
        });
        match scanned {
            Ok(damage) => damage.map_or(Ok(()), Err)?,
            Err(error @ EngineError::Corrupt { .. }) => {
                tracing::warn!(%error, "parts of commits that never were may stay");
                let newest = view.get(Space::WorldMeta, COMMIT_SEQUENCE_KEY)?;
                let newest = newest.and_then(|row| frame::version_of(&row)).unwrap_or_default();
                found.unlisted_behind = Some(newest);
                let row_key = key::intent(newest);
                if found.committed.is_empty()
                    && let Some(row) = view.get(Space::Intent, &row_key)?
                {
                    found.committed.push(Staged::read(&row_key, &row)?);
                }
            }
            Err(error) => return Err(error),
        }
        found.committed.iter().try_for_each(|staged| staged.check_parts(view))?;
        Ok(found)
    }

    /// The first commit that must be rolled forward.
    pub(crate) fn first_commit(&self) -> Option<u64> {
        self.committed.first().map(|staged| staged.seq)
    }

    /// Rolls forward what is committed, and deletes the other parts.
    ///
    /// # Errors
    /// The errors of the engine. May be repeated.
    pub(crate) fn finish(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        for staged in &self.committed {
            staged.roll_forward(engine)?;
            tracing::info!(commit = staged.seq, parts = staged.intent.part_count, "carried a commit out");
        }
        let numbers: Vec<u64> = self.committed.iter().map(|staged| staged.seq).collect();
        let is_over =
            |part: &&Vec<u8>| key::decode_staged(part).is_ok_and(|(seq, _)| !numbers.contains(&seq));
        let over: Vec<_> = self.parts.iter().filter(is_over).collect();
        for parts in over.chunks(DELETED_AT_ONCE) {
            let mut batch = Batch::new();
            for part in parts {
                batch.delete(Space::Intent, part);
            }
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        if let Some(newest) = self.unlisted_behind {
            // Parts of commits that were never committed. Their numbers are used again, and those commits must not find
            // old parts.
            let tag = Space::Intent.index_tag().expect("it is in the index family");
            let mut batch = Batch::new();
            batch.delete_range(Space::Intent, key::intent(newest.saturating_add(1)), [tag + 1]);
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        Ok(())
    }
}

/// Whether a row is a part of a staged commit. A part has no effect without an intent.
pub(crate) fn is_part(space: Space, row_key: &[u8]) -> bool {
    space == Space::Intent && key::decode_staged(row_key).is_ok()
}

#[cfg(test)]
mod tests;
