//! Which deletions may be forgotten.
//!
//! A deleted chunk leaves a mark: its row in the hottest tier, with the commit that deleted it. The mark hides what
//! colder tiers still hold, and tells who knows an older state what is gone. So it goes only when neither is needed:
//! the host has said that nobody asks for changes since a commit so old, and no colder tier holds the place.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use cg_format::frame::{self, FrameKind};
use cg_format::key::Family;

use crate::api::world::World;
use crate::engine::{ALL_KEYS, Batch, ReadableExt as _};
use crate::storage::error::Error;
use crate::storage::meta;

impl World {
    /// Allows maintenance to forget which chunks commits before this one deleted, for good; returns the first commit
    /// whose deletions are kept. It never goes back, nor beyond the newest commit's next.
    ///
    /// What was deleted stays deleted. Marks that hide an older copy in a cluster are kept until the cluster is written
    /// without it. Call it with the oldest state that somebody may still ask changes from; with
    /// [`last_commit`](Self::last_commit) if nobody does. Never called, a world keeps a row of some fifty bytes for each
    /// chunk that was deleted and not saved again.
    ///
    /// Objects that were deleted before that commit lose their versions at once, which costs a scan of all objects and a
    /// commit for every few thousand: one that is written anew begins with 0.
    ///
    /// # Errors
    /// What the engine says. Objects that were not forgotten then are by the next call.
    pub fn forget_before(&self, commit: u64) -> Result<u64, Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        inner.drain()?;
        let commit = commit.min(inner.commits.published().saturating_add(1));
        let mut deleted = inner.objects_deleted_before(commit)?.into_iter().peekable();
        loop {
            let mut committing = inner.commit_alone()?;
            let known = inner.forgotten_before.load(Ordering::Relaxed);
            let forgotten_before = commit.max(known);
            let mut batch = Batch::new();
            if commit > known {
                meta::put_forgotten(&mut batch, commit);
            }
            let forgotten = inner.forget_objects(&mut batch, &mut deleted, commit)?;
            if !batch.is_empty() {
                let seq = inner.commit_past_queue(batch, forgotten.iter().cloned())?;
                inner.forgotten_before.store(forgotten_before, Ordering::Relaxed);
                committing.publish(seq, forgotten);
            }
            if deleted.peek().is_none() {
                return Ok(forgotten_before);
            }
        }
    }

    /// How many marks are left of chunks that commits before this one deleted: what [`forget_before`](Self::forget_before)
    /// would allow to forget, what hides a copy in a cluster among it. Reads every hot row.
    ///
    /// # Errors
    /// What the engine says.
    pub fn deletions_before(&self, commit: u64) -> Result<u64, Error> {
        let mut marks = 0;
        let engine = self.settled()?.settled_engine()?;
        engine.snapshot()?.scan_uncached(Family::ChunkL0, ALL_KEYS, |_, row| {
            let is_mark = frame::kind_of(row) == Some(FrameKind::Tombstone);
            marks += u64::from(is_mark && frame::version_of(row).is_some_and(|version| version < commit));
            ControlFlow::<()>::Continue(())
        })?;
        Ok(marks)
    }

    /// The first commit whose deletions are certainly known: who has an older state must ask for all anew.
    pub fn forgotten_before(&self) -> u64 {
        self.unsettled().forgotten_before.load(Ordering::Relaxed)
    }
}
