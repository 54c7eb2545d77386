//! An engine that takes no commits, around one that may.

use std::path::Path;

use cg_format::Space;
use cg_format::key::Family;

use crate::engine::{
    Batch, Caps, CommitSeq, Engine, EngineError, Failure, Guard, KeyRange, Level, Readable, Reopen, delegate,
};

/// An engine that refuses every write.
#[derive(Debug)]
pub(crate) struct ReadingEngine {
    pub(crate) engine: Box<dyn Engine>,
}

impl Engine for ReadingEngine {
    fn commit(&self, _: Batch, _: &[Guard], _: Level) -> Result<CommitSeq, EngineError> {
        Err(EngineError::OpenedReadOnly)
    }

    fn commit_run(&self, _: CommitSeq, _: Vec<Batch>, _: Level) -> Result<CommitSeq, EngineError> {
        Err(EngineError::OpenedReadOnly)
    }

    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        self.engine.may_have(space, key)
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
        Box::new(move |expects| Ok(reopen(expects)?.map(|engine| Self { engine })))
    }

    fn caps(&self) -> Caps {
        let mut caps = self.engine.caps();
        (caps.read_only, caps.checkpoint) = (true, false);
        caps
    }

    delegate! {
        engine => snapshot last_commit batch_count last_synced close free_bytes disk_bytes address usage
    }
}

impl Readable for ReadingEngine {
    delegate! { engine => get get_many get_slices scan_rows }
}
