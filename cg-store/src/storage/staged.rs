//! Commits that are too large for one batch: staged in parts, made to count by one small commit, and rolled forward.
//!
//! | step | batches | a crash after it leaves |
//! |---|---|---|
//! | [`stage`](Staged::stage) | maintenance batches: one part each | parts without an intent, which the next open deletes |
//! | [`commit`](Staged::commit) | one commit: the intent | the commit; the next open rolls it forward |
//! | [`roll_forward`](Staged::roll_forward) | maintenance batches: one part's rows each | the same |
//! | | the last: intent and parts are deleted | nothing but the commit's rows |
//!
//! **Invariants**.
//! - A row stands in its part as it will stand in its family, so rolling forward twice is rolling forward once.
//! - The rows of one chunk, and those of one record, are in one part: whoever reads one of them never sees half.
//! - Nobody commits between the number that is given to [`stage`](Staged::stage) and [`commit`](Staged::commit), which
//!   refuses otherwise; maintenance batches may come in between.
//! - Nobody commits after it before it is rolled forward to its end, so an intent is that of the newest commit.

/// Of worlds on disk alone.
#[cfg(any(feature = "rocks", test))]
pub(crate) mod salvage;

use std::ops::{Bound, ControlFlow};

use cg_format::frame::{self, Codec, Draft, FrameView, Stamp};
use cg_format::key::{self, Family};
use cg_format::staged::{Intent, PartWriter, StagedOp, StagedOps};
use cg_format::{RecordId, Space};

use crate::engine::{
    Batch, COMMIT_SEQUENCE_KEY, Engine, EngineError, Guard, Level, Op, Place, Readable, ReadableExt as _,
};

/// A part is not made longer than this, unless what belongs together is.
const PART_BYTES: u64 = 8 << 20;
/// What the row of a part takes beside the rows in it: key, frame, and a few bytes for each operation.
const AROUND_A_PART_BYTES: u64 = 4096;
/// So many rows that nobody needs are deleted at once.
const DELETED_AT_ONCE: usize = 4096;

/// What belongs into one part.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Whole {
    /// The key of a chunk, with its deltas and its outline.
    Chunk(Box<[u8]>),
    /// A record, in its old leaf, in its new leaf and by its name.
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

/// What belongs together and is too large for any batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TooLong {
    /// The first of its rows.
    pub(crate) space: Space,
    pub(crate) key: Box<[u8]>,
    pub(crate) len_bytes: u64,
    pub(crate) limit_bytes: u64,
}

/// Refuses what could not be staged for an engine that takes batches of so many bytes: of two rows that belong together
/// and are too long in one batch, no part can be made.
pub(crate) fn check(batch: &Batch, max_batch_bytes: u64) -> Result<(), TooLong> {
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
    /// Puts the rows of the commit of a number by, in parts of which no batch is over a limit. The number must be the
    /// engine's next.
    ///
    /// # Errors
    /// What the engine says. The parts that were written mean nothing.
    pub(crate) fn stage(
        engine: &dyn Engine,
        batch: Batch,
        seq: u64,
        limit_bytes: u64,
    ) -> Result<Self, EngineError> {
        let part_bytes = PART_BYTES.min(limit_bytes / 4);
        let mut staged = Self { seq, intent: Intent::default() };
        let (mut part, mut group, mut of_group) = (PartWriter::new(), PartWriter::new(), 0);
        batch.drain_grouped(Whole::of, |number, op| {
            if number != of_group {
                staged.close_group(engine, &mut part, &mut group, part_bytes)?;
                of_group = number;
            }
            match op {
                Op::Put { space, key, draft, stamp } => {
                    let row = draft.seal(space, key, stamp.version(seq));
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

    /// Adds what belongs together to the part that is being made, or to the next if it would grow too long.
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

    /// Makes the parts count: after this the commit is committed.
    ///
    /// # Errors
    /// [`EngineError::Conflict`] if somebody has committed since the number was given, and what else the engine says.
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

    /// Writes the rows of a committed commit where they belong, part by part, and deletes intent and parts. May be
    /// done again after it failed.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for a part that is damaged or missing, and what else the engine says.
    pub(crate) fn roll_forward(&self, engine: &dyn Engine) -> Result<(), EngineError> {
        for number in 0..self.intent.part_count {
            let mut batch = Batch::new();
            self.read_part(engine, number, |part_key, part| {
                fill(&mut batch, part).map_err(|problem| damaged(part_key, &problem.to_string()))
            })?;
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        // One batch: a part that is missing after an intent is damage.
        let mut batch = Batch::new();
        batch.delete(Space::Intent, key::intent(self.seq));
        for number in 0..self.intent.part_count {
            batch.delete(Space::Intent, key::staged(self.seq, number));
        }
        engine.commit(batch.maintenance(), &[], Level::Process).map(drop)
    }

    /// What the row of an intent says.
    fn read(row_key: &[u8], row: &[u8]) -> Result<Self, EngineError> {
        let read = key::decode_intent(row_key).and_then(|seq| {
            let frame = FrameView::open(Space::Intent, row_key, row)?;
            Ok(Self { seq, intent: Intent::decode(frame.payload())? })
        });
        read.map_err(|problem| damaged(row_key, &problem.to_string()))
    }

    /// Reads every part to its end.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for parts that are not what the intent says, and what else the engine says.
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
                batch.put(space, key, draft, Stamp::Keep(version));
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

/// What an engine holds of commits that were staged.
#[derive(Debug, Default)]
pub(crate) struct Unfinished {
    /// Those that are committed and not rolled forward, in the order of their numbers. At most one, if no one else wrote.
    committed: Vec<Staged>,
    /// The keys of all parts.
    parts: Vec<Vec<u8>>,
    /// The newest commit, if there may be parts that nobody could list.
    unlisted_behind: Option<u64>,
}

impl Unfinished {
    /// Looks for intents and parts, and whether all that is to be rolled forward can be. Costs one look if there are none.
    ///
    /// What cannot be read where they would lie keeps nobody from the rest, if the key of the intent that there may be can
    /// be asked for. Parts that mean nothing may be unlisted then; [`finish`](Self::finish) deletes those after the newest commit.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`] for an intent that is damaged, or whose parts are; what else the engine says.
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

    /// The first commit that is to be rolled forward.
    pub(crate) fn first_commit(&self) -> Option<u64> {
        self.committed.first().map(|staged| staged.seq)
    }

    /// Rolls forward what is committed, and deletes what is not.
    ///
    /// # Errors
    /// What the engine says. May be done again.
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
            // Parts of commits that never were: their numbers are given out again, and must not find them.
            let tag = Space::Intent.index_tag().expect("it is in the index family");
            let mut batch = Batch::new();
            batch.delete_range(Space::Intent, key::intent(newest.saturating_add(1)), [tag + 1]);
            engine.commit(batch.maintenance(), &[], Level::Process)?;
        }
        Ok(())
    }
}

/// Whether a row is a part of a commit that may never have been: it means nothing without an intent.
pub(crate) fn is_part(space: Space, row_key: &[u8]) -> bool {
    space == Space::Intent && key::decode_staged(row_key).is_ok()
}

#[cfg(test)]
mod tests;
