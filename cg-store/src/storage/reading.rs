//! An engine that takes no commits, around one that may.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::Space;
use cg_format::frame::FrameView;
use cg_format::key::Family;
use cg_format::lineage::Lineage;

use crate::engine::{
    Batch, COMMIT_SEQUENCE_KEY, Caps, CommitSeq, Engine, EngineError, Failure, Guard, KeyRange, Level,
    Readable, Reopen, Snapshot, delegate,
};
use crate::storage::error::Error;
use crate::storage::meta::open_row;

/// An engine that refuses every write. Over shared rows it is one state of them, which later commits do not change.
pub(crate) struct ReadingEngine {
    engine: Arc<dyn Engine>,
    rows: Arc<dyn Readable>,
    state: Option<State>,
}

/// A state of shared rows.
#[derive(Debug, Clone, Copy)]
struct State {
    commit: CommitSeq,
    /// The word of the opening that made the commit.
    opening: u32,
    /// A number of its own in this process.
    number: u64,
}

impl ReadingEngine {
    /// The newest state of an engine's rows if they are shared. Otherwise the rows as they are when they are read.
    ///
    /// # Errors
    /// If the engine fails, and [`Error::Corrupt`] if the row of the newest commit is damaged.
    pub(crate) fn newest(engine: &Arc<dyn Engine>) -> Result<Self, Error> {
        static STATES: AtomicU64 = AtomicU64::new(0);
        let engine = Arc::clone(engine);
        if !engine.caps().is_shared {
            return Ok(Self { rows: Arc::clone(&engine) as _, engine, state: None });
        }
        let rows: Arc<dyn Readable> = Arc::from(engine.follow()?);
        let number = STATES.fetch_add(1, Ordering::Relaxed);
        let (commit, opening) = newest_commit(&*rows)?;
        let state = State { commit, opening, number };
        Ok(Self { engine, rows, state: Some(state) })
    }

    /// Whether the newest commit is this one of this history. Unknown of rows that are not shared.
    pub(crate) fn is_at(&self, commit: CommitSeq, lineage: &Lineage) -> bool {
        let word = lineage.word_of(commit.get());
        self.state.is_some_and(|state| (state.commit, state.opening) == (commit, word))
    }
}

/// The newest commit of a state of rows, and the word of the opening that made it.
fn newest_commit(rows: &dyn Readable) -> Result<(CommitSeq, u32), Error> {
    let key = COMMIT_SEQUENCE_KEY;
    let Some(row) = rows.get(Space::WorldMeta, key)? else { return Ok((CommitSeq::NONE, 0)) };
    open_row(
        Space::WorldMeta,
        key,
        &row,
        || "the number of the newest commit",
        |frame: FrameView<'_>| {
            let header = frame.header();
            Ok((CommitSeq::new(header.version), header.lineage))
        },
    )
}

impl Engine for ReadingEngine {
    fn commit(&self, _: Batch, _: &[Guard], _: Level) -> Result<CommitSeq, EngineError> {
        Err(EngineError::OpenedReadOnly)
    }

    fn commit_run(&self, _: CommitSeq, _: Vec<Batch>, _: Level) -> Result<CommitSeq, EngineError> {
        Err(EngineError::OpenedReadOnly)
    }

    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        match self.state {
            Some(_) => !matches!(self.rows.get(space, key), Ok(None)),
            None => self.engine.may_have(space, key),
        }
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        match self.state {
            Some(_) => Ok(Box::new(Arc::clone(&self.rows))),
            None => self.engine.snapshot(),
        }
    }

    fn last_commit(&self) -> CommitSeq {
        self.state.map_or_else(|| self.engine.last_commit(), |state| state.commit)
    }

    fn batch_count(&self) -> u64 {
        self.state.map_or_else(|| self.engine.batch_count(), |state| state.number)
    }

    fn last_synced(&self) -> CommitSeq {
        // An engine over shared rows has one level, so what is visible is synced.
        self.state.map_or_else(|| self.engine.last_synced(), |state| state.commit)
    }

    fn sync(&self) -> Result<(), EngineError> {
        Err(EngineError::OpenedReadOnly)
    }

    fn flush(&self) -> Result<(), EngineError> {
        Err(EngineError::OpenedReadOnly)
    }

    fn checkpoint(&self, _: &Path) -> Result<(), EngineError> {
        Err(EngineError::Unsupported { what: "write a checkpoint when opened for reading only" })
    }

    fn compact(&self, _: Family, _: KeyRange<'_>) -> Result<(), EngineError> {
        Err(EngineError::OpenedReadOnly)
    }

    fn failure(&self) -> Option<Failure> {
        None
    }

    fn reopening(&self) -> Reopen {
        let reopen = self.engine.reopening();
        Box::new(move |expects| {
            Ok(reopen(expects)?.map(|engine| {
                let engine: Arc<dyn Engine> = Arc::from(engine);
                Self { rows: Arc::clone(&engine) as _, engine, state: None }
            }))
        })
    }

    fn caps(&self) -> Caps {
        let mut caps = self.engine.caps();
        (caps.read_only, caps.checkpoint) = (true, false);
        caps
    }

    delegate! { engine => close free_bytes disk_bytes address usage }
}

impl Readable for ReadingEngine {
    delegate! { rows => get get_many get_slices scan_rows scan_ranges is_empty check_columns }
}

impl fmt::Debug for ReadingEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, state, .. } = self;
        f.debug_struct("ReadingEngine").field("engine", engine).field("state", state).finish_non_exhaustive()
    }
}
