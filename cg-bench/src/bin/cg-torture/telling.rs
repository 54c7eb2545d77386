//! An engine over RocksDB that tells its parent of every batch before it writes it.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cg_format::Space;
use cg_format::key::Family;
use cg_store::engine::{
    Batch, Caps, CommitSeq, Engine, EngineError, Failure, Guard, KeyRange, Level, ReadView, Reopen,
    RocksEngine, RocksOptions, RocksSnapshot, Usage,
};

/// Which part of a large commit a batch belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Its rows are put by.
    Parts,
    /// The intent is committed.
    Intent,
    /// The rows are carried to where they belong.
    CarryingOut,
    /// The overlay that was merged is emptied.
    Overlay,
}

impl Stage {
    pub(crate) const ALL: [Self; 4] = [Self::Parts, Self::Intent, Self::CarryingOut, Self::Overlay];

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Parts => "parts",
            Self::Intent => "intent",
            Self::CarryingOut => "carrying-out",
            Self::Overlay => "overlay intent",
        }
    }
}

/// Tells of its batches once it is asked to.
pub(crate) struct Telling {
    engine: RocksEngine,
    /// What it says first.
    name: &'static str,
    tells: Arc<AtomicBool>,
    batches: AtomicU64,
    is_committed: AtomicBool,
    /// Leaves the intent out: the control.
    loses_intents: bool,
}

impl Telling {
    pub(crate) fn new(engine: RocksEngine, tells: &Arc<AtomicBool>, loses_intents: bool) -> Self {
        Self { loses_intents, ..Self::named("", engine, Arc::clone(tells)) }
    }

    /// One of several, which tell once they are all asked to.
    pub(crate) fn named(name: &'static str, engine: RocksEngine, tells: Arc<AtomicBool>) -> Self {
        let (batches, is_committed) = (AtomicU64::new(0), AtomicBool::new(false));
        Self { engine, name, tells, batches, is_committed, loses_intents: false }
    }

    /// As one of several, of a pool of arenas in a directory.
    pub(crate) fn of_overlay(dir: &Path, tells: &Arc<AtomicBool>) -> Result<Self, EngineError> {
        let engine = RocksEngine::open(&dir.join("overlay"), &RocksOptions::default())?;
        Ok(Self::named("overlay ", engine, Arc::clone(tells)))
    }

    fn told(&self, batch: Batch) -> Result<Batch, EngineError> {
        if !self.tells.load(Ordering::Acquire) {
            return Ok(batch);
        }
        let is_intent = !batch.is_rearrangement();
        let stage = match (is_intent, self.is_committed.load(Ordering::Acquire)) {
            (true, _) => Stage::Intent,
            (false, false) => Stage::Parts,
            (false, true) => Stage::CarryingOut,
        };
        self.is_committed.fetch_or(is_intent, Ordering::AcqRel);
        let number = self.batches.fetch_add(1, Ordering::AcqRel);
        let mut out = io::stdout().lock();
        let told = writeln!(out, "batch {number} {}{}", self.name, stage.word()).and_then(|()| out.flush());
        told.map_err(|source| EngineError::Io { path: "the parent".into(), source })?;
        Ok(if is_intent && self.loses_intents { Batch::new() } else { batch })
    }
}

impl ReadView for Telling {
    type Val<'a> = <RocksEngine as ReadView>::Val<'a>;

    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Self::Val<'_>>, EngineError> {
        self.engine.get(space, key)
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Self::Val<'_>>, EngineError>> {
        self.engine.get_many(keys)
    }

    fn scan<B>(
        &self,
        family: Family,
        range: KeyRange<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<B>,
    ) -> Result<Option<B>, EngineError> {
        self.engine.scan(family, range, visit)
    }
}

impl Engine for Telling {
    type Snapshot<'a> = RocksSnapshot<'a>;

    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.engine.commit(self.told(batch)?, guards, level)
    }

    fn snapshot(&self) -> RocksSnapshot<'_> {
        self.engine.snapshot()
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.engine.sync()
    }

    fn last_commit(&self) -> CommitSeq {
        self.engine.last_commit()
    }

    fn batch_count(&self) -> u64 {
        self.engine.batch_count()
    }

    fn last_synced(&self) -> CommitSeq {
        self.engine.last_synced()
    }

    fn checkpoint(&self, dir: &Path) -> Result<(), EngineError> {
        self.engine.checkpoint(dir)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.engine.flush()
    }

    fn compact(&self, family: Family, range: KeyRange<'_>) -> Result<(), EngineError> {
        self.engine.compact(family, range)
    }

    fn close(&self) -> Result<(), EngineError> {
        self.engine.close()
    }

    fn failure(&self) -> Option<Failure> {
        self.engine.failure()
    }

    /// Nobody resumes here.
    fn reopening(&self) -> Reopen<Self> {
        Box::new(|_| Err(EngineError::Closed))
    }

    fn free_bytes(&self) -> Option<u64> {
        self.engine.free_bytes()
    }

    fn caps(&self) -> Caps {
        self.engine.caps()
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        self.engine.usage()
    }
}
