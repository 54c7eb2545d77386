//! The history of a world or of a pool of overlays: the openings that made its commits, and the engine that stores them.
//!
//! | row of `worldMeta` | content |
//! |---|---|
//! | `lineage/` ‖ index as 8 hex digits | up to 256 [openings](cg_format::lineage), from the oldest to the newest |
//!
//! An opening for writing draws a number. It is stored with the first commit, in the same batch, so that an opening without a
//! commit stores nothing. An engine that is opened again after a failure goes on with the same number.

use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::frame::{Codec, Draft};
use cg_format::key::Family;
use cg_format::lineage::{Lineage, Opening};
use cg_format::{DecodeError, Problem, Section, Space};
use uuid::Uuid;

use crate::engine::{
    Batch, CommitSeq, Engine, EngineError, Guard, Level, Readable, ReadableExt as _, Reopen, Stamp, delegate,
};
use crate::storage::error::Error;
use crate::storage::meta::open_row;

const PREFIX: &[u8] = b"lineage/";
/// The first key after those with the prefix.
const END: &[u8] = b"lineage0";

/// An engine whose rows carry the opening that made their commit.
#[derive(Debug)]
pub(crate) struct HistoryEngine {
    engine: Box<dyn Engine>,
    /// With this opening, if the engine takes commits.
    lineage: Arc<Lineage>,
    /// Indexes of stored rows with none but openings whose commits were lost.
    stale_rows: Range<u32>,
    /// Whether this opening is stored.
    is_stored: AtomicBool,
}

impl HistoryEngine {
    /// Begins an opening of an engine with this history. If the engine takes commits, the next one is the opening's first.
    pub(crate) fn begin(engine: Box<dyn Engine>, mut lineage: Lineage) -> Self {
        let rows_before = row_count(&lineage);
        if !engine.caps().read_only {
            let first_commit = engine.last_commit().next().get();
            lineage.add(Opening { first_commit, number: random() });
        }
        let stale_rows = row_count(&lineage)..rows_before;
        Self { engine, lineage: Arc::new(lineage), stale_rows, is_stored: AtomicBool::new(false) }
    }

    /// Goes on with an opening, after the engine was opened again.
    fn resumed(engine: Box<dyn Engine>, lineage: &Arc<Lineage>, stale_rows: Range<u32>) -> Self {
        let stored = read(&engine).unwrap_or_default();
        let is_stored = stored.openings().last() == lineage.openings().last();
        Self { engine, lineage: Arc::clone(lineage), stale_rows, is_stored: AtomicBool::new(is_stored) }
    }

    /// The history that its rows carry.
    pub(crate) const fn lineage(&self) -> &Arc<Lineage> {
        &self.lineage
    }

    /// Adds the opening to the batch of its first commit.
    fn add_opening(&self, batch: &mut Batch) {
        let Some((index, openings)) = self.lineage.newest_row() else { return };
        batch.uncounted(|batch| {
            let draft = Draft::plain(Codec::None, 0, |out| Lineage::encode_row(openings, out));
            batch.put(Space::WorldMeta, row_key(index), draft, Stamp::Commit);
            for index in self.stale_rows.clone() {
                batch.delete(Space::WorldMeta, row_key(index));
            }
        });
    }
}

impl Engine for HistoryEngine {
    fn commit(&self, mut batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        if batch.lineage().is_some() {
            // Another such engine is around this one.
            return self.engine.commit(batch, guards, level);
        }
        batch.set_lineage(Arc::clone(&self.lineage));
        if batch.is_maintenance() || self.is_stored.load(Ordering::Acquire) {
            return self.engine.commit(batch, guards, level);
        }
        self.add_opening(&mut batch);
        let committed = self.engine.commit(batch, guards, level);
        if committed.is_ok() {
            self.is_stored.store(true, Ordering::Release);
        }
        committed
    }

    fn commit_run(
        &self,
        first: CommitSeq,
        mut batches: Vec<Batch>,
        level: Level,
    ) -> Result<CommitSeq, EngineError> {
        if batches.iter().any(|batch| batch.lineage().is_some()) {
            return self.engine.commit_run(first, batches, level);
        }
        for batch in &mut batches {
            batch.set_lineage(Arc::clone(&self.lineage));
        }
        if self.is_stored.load(Ordering::Acquire) {
            return self.engine.commit_run(first, batches, level);
        }
        if let Some(batch) = batches.first_mut() {
            self.add_opening(batch);
        }
        let committed = self.engine.commit_run(first, batches, level);
        if committed.is_ok() || self.engine.last_commit() >= first {
            self.is_stored.store(true, Ordering::Release);
        }
        committed
    }

    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        self.engine.may_have(space, key)
    }

    fn reopening(&self) -> Reopen {
        let (reopen, lineage, stale) =
            (self.engine.reopening(), Arc::clone(&self.lineage), self.stale_rows.clone());
        let resumed = move |engine| Self::resumed(engine, &lineage, stale.clone());
        Box::new(move |expects| Ok(reopen(expects)?.map(&resumed)))
    }

    delegate! {
        engine => snapshot sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes
        disk_bytes caps usage
    }
}

impl Readable for HistoryEngine {
    delegate! { engine => get get_many get_slices scan_rows }
}

/// The stored openings of an engine.
///
/// # Errors
/// [`Error::Corrupt`] if a row is damaged or missing; the errors of the engine.
pub(crate) fn read(view: &dyn Readable) -> Result<Lineage, Error> {
    let mut lineage = Lineage::default();
    let mut index = 0;
    let range = (Bound::Included(PREFIX), Bound::Excluded(END));
    view.try_scan(Family::WorldMeta, range, |key, row| {
        open_row(
            Space::WorldMeta,
            key,
            row,
            || "a row of the world's openings",
            |frame| {
                if key != row_key(index) {
                    let problem = Problem::OutOfRange {
                        field: "index in the key",
                        found: index.into(),
                        allowed: "the next one",
                    };
                    return Err(DecodeError::new(Section::Lineage, 0, problem));
                }
                index += 1;
                lineage.decode_row(frame.payload())
            },
        )
    })?;
    Ok(lineage)
}

fn row_count(lineage: &Lineage) -> u32 {
    lineage.newest_row().map_or(0, |(index, _)| index + 1)
}

fn row_key(index: u32) -> Vec<u8> {
    [PREFIX, format!("{index:08x}").as_bytes()].concat()
}

/// A number that no other opening has, whose low 32 bits are not zero.
fn random() -> u64 {
    loop {
        let (number, _) = Uuid::new_v4().as_u64_pair();
        if number as u32 != 0 {
            return number;
        }
    }
}
