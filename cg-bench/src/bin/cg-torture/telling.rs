//! An engine over RocksDB that tells its parent of every batch before it writes it.

use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cg_store::engine::{
    Batch, CommitSeq, Engine, EngineError, Guard, Level, Readable, Reopen, RocksEngine, RocksOptions,
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
#[derive(Debug)]
pub(crate) struct Telling {
    engine: RocksEngine,
    /// The text that it tells first.
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
        let is_intent = !batch.is_maintenance();
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

impl Readable for Telling {
    cg_store::engine::delegate! { engine => get get_many get_slices scan_rows }
}

impl Engine for Telling {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.engine.commit(self.told(batch)?, guards, level)
    }

    cg_store::engine::delegate! {
        engine => snapshot sync last_commit batch_count last_synced checkpoint flush compact close failure free_bytes caps usage
    }

    /// The world is not resumed here.
    fn reopening(&self) -> Reopen {
        Box::new(|_| Err(EngineError::Closed))
    }
}
