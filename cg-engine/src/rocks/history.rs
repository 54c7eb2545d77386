//! The history that the files of a directory belong to: whether a log is of another one.
//!
//! A copy of a world goes on with the numbers of commits and files that the original uses. So a log of one looks like a log
//! of the other. Each commit carries a part of the number of the opening that made it, see [`cg_format::lineage`].

use std::sync::Arc;

use cg_format::frame::Version;
use cg_format::lineage::Lineage;

use super::super::{Batch, CommitSeq, EngineError};
use super::floor::{self, FILE_NAME, Promise};
use super::{LogCommits, RocksEngine};

impl RocksEngine {
    /// Checks that the logs that were there at the open, and the commit that the floor promises, are of a history. Reads
    /// the floor.
    ///
    /// # Errors
    /// [`EngineError::OtherHistory`] for a log of another history; [`EngineError::Io`].
    pub fn check_history(&self, lineage: &Lineage) -> Result<(), EngineError> {
        let Promise { seq, lineage: promised, .. } = floor::known(&self.dir)?;
        let found = lineage.word_of(seq.get());
        if promised != 0 && seq <= self.found_commit() && promised != found {
            let is_of_other = |log: &&LogCommits| log.first.lineage == found;
            let file = self.logs.iter().find(is_of_other).map_or(FILE_NAME, |log| &log.name);
            let (found, expected) = if file == FILE_NAME { (promised, found) } else { (found, promised) };
            return Err(EngineError::OtherHistory { file: file.into(), commit: seq, found, expected });
        }
        for LogCommits { name, first, last } in &self.logs {
            for Version { commit, lineage: found } in [*first, *last] {
                let expected = lineage.word_of(commit);
                if found != expected {
                    let (file, commit) = (name.clone(), CommitSeq::new(commit));
                    return Err(EngineError::OtherHistory { file, commit, found, expected });
                }
            }
        }
        Ok(())
    }

    /// Notes the history of a batch that is about to be written.
    pub(super) fn note_lineage(&self, batch: &Batch) {
        let Some(lineage) = batch.lineage() else { return };
        let mut noted = self.lineage.lock();
        if noted.as_ref().is_none_or(|noted| !Arc::ptr_eq(noted, lineage)) {
            *noted = Some(Arc::clone(lineage));
        }
    }

    /// The part of the number of the opening that made a commit, which is not older than the newest at the open.
    pub(super) fn word_of(&self, seq: CommitSeq) -> u32 {
        if seq == self.found_commit() {
            return self.found.lineage;
        }
        self.lineage.lock().as_ref().map_or(0, |lineage| lineage.word_of(seq.get()))
    }

    const fn found_commit(&self) -> CommitSeq {
        CommitSeq::new(self.found.commit)
    }
}
