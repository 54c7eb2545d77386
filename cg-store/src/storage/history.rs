//! The history of a world or of a pool of overlays: the openings that made its commits, and the engine that stores them.
//!
//! | row of `worldMeta` | content |
//! |---|---|
//! | `lineage/` ‖ index as 8 hex digits | up to 256 [openings](cg_format::lineage), from the oldest to the newest |
//!
//! An opening for writing draws a number. It is stored with the first commit, in the same batch, so that an opening without a
//! commit stores nothing. An engine that is opened again after a failure goes on with the same number, unless it finds
//! a number that is neither its own nor the one before: then another opening has committed. That is found before the
//! engine is open for writing.

use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::frame::{Codec, Draft};
use cg_format::key::Family;
use cg_format::lineage::{Lineage, Opening};
use cg_format::{DecodeError, Problem, Section, Space};
use uuid::Uuid;

use crate::engine::{
    Batch, CommitSeq, Engine, EngineError, Fence, Found, Guard, Level, Readable, ReadableExt as _, Reopen,
    Stamp, delegate,
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
    /// The newest opening that was stored when this one began.
    before: Option<Opening>,
    /// Indexes of stored rows with none but openings whose commits were lost.
    stale_rows: Range<u32>,
    /// Whether this opening is stored.
    is_stored: AtomicBool,
    /// Whether another such engine is around this one, whose opening is stored instead.
    is_inner: AtomicBool,
}

impl HistoryEngine {
    /// Begins an opening of an engine with this history. If the engine takes commits, the next one is the opening's first.
    pub(crate) fn begin(engine: Box<dyn Engine>, mut lineage: Lineage) -> Self {
        let rows_before = row_count(&lineage);
        let before = lineage.openings().last().copied();
        if !engine.caps().read_only {
            let first_commit = engine.last_commit().next().get();
            lineage.add(Opening { first_commit, number: random() });
        }
        let stale_rows = row_count(&lineage)..rows_before;
        let [is_stored, is_inner] = [false; 2].map(AtomicBool::new);
        Self { engine, lineage: Arc::new(lineage), before, stale_rows, is_stored, is_inner }
    }

    /// Goes on with an opening, after the engine was opened again.
    fn resumed(
        engine: Box<dyn Engine>,
        lineage: &Arc<Lineage>,
        before: Option<Opening>,
        stale_rows: Range<u32>,
        is_inner: bool,
    ) -> Self {
        let stored = read(&engine).unwrap_or_default();
        let is_stored = stored.openings().last() == lineage.openings().last();
        let [is_stored, is_inner] = [is_stored, is_inner].map(AtomicBool::new);
        Self { engine, lineage: Arc::clone(lineage), before, stale_rows, is_stored, is_inner }
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
            self.is_inner.store(true, Ordering::Release);
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
            self.is_inner.store(true, Ordering::Release);
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
        let (reopen, lineage, before) = (self.engine.reopening(), Arc::clone(&self.lineage), self.before);
        let (stale_rows, is_inner) = (self.stale_rows.clone(), self.is_inner.load(Ordering::Acquire));
        Box::new(move |expects| {
            let is_own = |found: &Found<'_>| {
                if !is_inner {
                    check_owner(found.rows, &lineage, before)?;
                }
                expects(found)
            };
            let resumed = |engine| Self::resumed(engine, &lineage, before, stale_rows.clone(), is_inner);
            Ok(reopen(&is_own)?.map(resumed))
        })
    }

    delegate! {
        engine => snapshot sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes
        disk_bytes address caps usage
    }
}

impl Readable for HistoryEngine {
    delegate! { engine => get get_many get_slices scan_rows scan_ranges is_empty check_columns }
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

/// Checks that the newest stored opening is one of a history, or the one that was newest before. Rows of an older opening
/// have lost commits, which their number shows.
fn check_owner(view: &dyn Readable, own: &Lineage, before: Option<Opening>) -> Result<(), EngineError> {
    let stored = match read(view) {
        Ok(stored) => stored,
        Err(Error::Engine(error)) => return Err(error),
        // Damage in these rows is reported where they are needed.
        Err(_) => return Ok(()),
    };
    let Some(newest) = stored.openings().last() else { return Ok(()) };
    if own.openings().contains(newest) || before.as_ref() == Some(newest) {
        return Ok(());
    }
    let who = format!("the opening {:016x}", newest.number);
    Err(EngineError::Fenced { why: Fence::Owner { who } })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{MemEngine, Reopened};

    /// An engine whose rows another one replaces before it is opened again.
    #[derive(Debug)]
    struct Replaced {
        engine: MemEngine,
        by: Arc<HistoryEngine>,
    }

    impl Engine for Replaced {
        fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
            self.engine.commit(batch, guards, level)
        }

        fn reopening(&self) -> Reopen {
            let by = Arc::clone(&self.by);
            Box::new(move |expects| by.engine.reopening()(expects))
        }

        delegate! {
            engine => snapshot sync last_commit batch_count last_synced checkpoint flush compact close failure
            free_bytes disk_bytes address caps usage
        }
    }

    impl Readable for Replaced {
        delegate! { engine => get get_many get_slices scan_rows }
    }

    fn opened(engine: impl Engine) -> HistoryEngine {
        HistoryEngine::begin(Box::new(engine), Lineage::default())
    }

    fn commit(engine: &HistoryEngine) {
        engine.commit(Batch::new(), &[], Level::Process).expect("commits");
    }

    #[test]
    fn an_engine_in_which_another_opening_committed_is_fenced() {
        let other = Arc::new(opened(MemEngine::new()));
        commit(&other);
        let number = other.lineage().openings()[0].number;
        for commits in [0, 1] {
            let engine = opened(Replaced { engine: MemEngine::new(), by: Arc::clone(&other) });
            (0..commits).for_each(|_| commit(&engine));
            let refused = engine.reopening()(&|found| Ok(found.last_commit == CommitSeq::new(1)));
            let who = format!("the opening {number:016x}");
            assert!(
                matches!(&refused, Err(EngineError::Fenced { why: Fence::Owner { who: by } }) if *by == who),
                "{refused:?}"
            );
            let refused = engine.reopening()(&|_| Ok(false));
            assert!(matches!(refused, Err(EngineError::Fenced { .. })), "{refused:?}");
        }
    }

    #[test]
    fn rows_of_an_older_opening_are_left_to_their_number() {
        let openings = [3, 7].map(|number| Opening { first_commit: number, number });
        let older = Arc::new(HistoryEngine::begin(Box::new(MemEngine::new()), Lineage::default()));
        commit(&older);
        let mut lineage = read(&*older).expect("is sound");
        for opening in openings {
            lineage.add(opening);
        }
        let engine = MemEngine::new();
        for _ in 0..8 {
            engine.commit(Batch::new(), &[], Level::Process).expect("commits");
        }
        let replaced = Replaced { engine, by: older };
        let engine = HistoryEngine::begin(Box::new(replaced), lineage);
        let found = engine.reopening()(&|found| Ok(found.last_commit > CommitSeq::new(1)));
        assert!(matches!(found, Ok(Reopened::Unexpected(_))), "{found:?}");
    }

    #[test]
    fn an_engine_goes_on_with_its_opening_stored_or_not() {
        let engine = opened(MemEngine::new());
        for commits in [0, 1] {
            (0..commits).for_each(|_| commit(&engine));
            let Ok(Reopened::Writable(again)) = engine.reopening()(&|_| Ok(true)) else {
                panic!("it has one owner")
            };
            again.commit(Batch::new(), &[], Level::Process).expect("commits");
            assert_eq!(read(&again).expect("is sound").openings(), engine.lineage().openings());
        }
    }

    #[test]
    fn an_engine_inside_another_is_not_fenced_by_the_opening_of_that() {
        let outer = opened(opened(MemEngine::new()));
        for _ in 0..2 {
            commit(&outer);
            let again = outer.reopening()(&|_| Ok(true));
            assert!(matches!(again, Ok(Reopened::Writable(_))), "{again:?}");
        }
    }
}
