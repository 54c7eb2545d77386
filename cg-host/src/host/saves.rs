//! Saves of a host: columns and lists of writes, alone and in groups.

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_store::Durability;
use cg_store::prelude::CommitSeq;

use super::group::{GROUP_BYTES, GROUP_LEN};
use super::handle::Host;
use super::seen::digest;
use super::writes::Writes;
use crate::binding::Binding;
use crate::column::Column;
use crate::error::Error;

/// What a save did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// Something was committed, as this commit.
    Changed(CommitSeq),
    /// It was accepted, and is committed with its group.
    Accepted,
    /// The column is what was stored. Nothing was written.
    Unchanged,
}

impl Host {
    /// Saves a column in a commit of its own. `is_part`: sections that are not listed stay; otherwise they are deleted.
    ///
    /// - Components of cells whose block did not change stay, also those that the host does not know.
    /// - Where a cell has the placeholder and the stored block is one that the host does not know, the stored block stays,
    ///   with everything in it.
    /// - An entity is deleted if the host was shown it in this column, and the column no longer has it. One that the host was
    ///   not shown stays.
    ///
    /// # Errors
    /// [`Error::Column`]; of kind [`Damaged`](cg_store::ErrorKind::Damaged) if a stored chunk of it cannot be read: it is never
    /// overwritten. What the store says.
    pub fn save(&self, binding: &Arc<Binding>, column: Column, is_part: bool) -> Result<Saved, Error> {
        let Some(mut writes) = self.changed(binding, column, is_part)? else {
            // It may have been submitted a moment ago.
            self.inner.commit_group()?;
            self.inner.reach(None)?;
            return Ok(Saved::Unchanged);
        };
        self.commit(&mut writes, None)
    }

    /// A list of a column, which is checked; `None` if it is what was saved or loaded last, which is compared first.
    fn changed(
        &self,
        binding: &Arc<Binding>,
        mut column: Column,
        is_part: bool,
    ) -> Result<Option<Writes>, Error> {
        self.inner.check_writable()?;
        column.sort();
        let digest = digest(binding, &column, is_part);
        {
            let mut state = self.inner.state.lock();
            state.check_open()?;
            if state.seen.is_unchanged(&column.at, digest) {
                state.metrics.unchanged += 1;
                return Ok(None);
            }
        }
        let mut writes = Writes::new();
        writes.sorted_column(binding, column, is_part, digest)?;
        Ok(Some(writes))
    }

    /// Accepts a column: every load sees it from now on, and it is committed together with what is submitted within the
    /// [group](crate::HostOptions::group).
    ///
    /// While the world takes no commits, because the disk is full for example, it is held in memory, and the world is resumed
    /// every five seconds. At the safe durabilities this is [`save`](Self::save).
    ///
    /// # Errors
    /// [`Error::Column`], [`Error::TooLarge`] and [`Error::Held`]. The column was not accepted then.
    pub fn submit(&self, binding: &Arc<Binding>, column: Column, is_part: bool) -> Result<Saved, Error> {
        let Some(mut writes) = self.changed(binding, column, is_part)? else { return Ok(Saved::Unchanged) };
        self.submit_writes(&mut writes)
    }

    /// Accepts a list of writes into the group, as [`submit`](Self::submit) accepts a column, and empties it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a list with expectations, or with chunks past their columns; [`Error::TooLarge`];
    /// [`Error::Held`]. The list keeps its writes then.
    pub fn submit_writes(&self, writes: &mut Writes) -> Result<Saved, Error> {
        if !(writes.chunks.is_empty() && writes.entities.is_empty()) {
            let text = "a list of writes that expects versions cannot be submitted: commit it";
            return Err(Error::Invalid(text.into()));
        }
        if writes.is_of_chunks() {
            let text = "chunks, their entities and components of entities cannot be submitted: commit them";
            return Err(Error::Invalid(text.into()));
        }
        self.inner.check_writable()?;
        self.inner.check_sizes(writes)?;
        if self.inner.options.durability.is_synced() {
            return self.commit(writes, None);
        }
        self.start_thread()?;
        let mut state = self.inner.state.lock();
        // What comes in faster than the world takes it waits for its turn here.
        let len_bytes = writes.memory_bytes();
        while state.pending_bytes() > 0 && state.pending_bytes() + len_bytes > self.inner.options.held_bytes {
            let held_bytes = state.pending_bytes();
            drop(state);
            let committed = self.inner.commit_group();
            committed.map_err(|cause| Error::Held { held_bytes, cause: Arc::new(cause) })?;
            state = self.inner.state.lock();
        }
        state.check_open()?;
        if let Some(verdict) = state.verdict(writes) {
            return Err(verdict);
        }
        state.recall(writes);
        let epoch = state.seen.epoch();
        state.note(writes, epoch);
        state.open.push(std::mem::take(writes));
        let is_full = state.open.len() >= GROUP_LEN || state.open.memory_bytes() >= GROUP_BYTES;
        if state.open.len() == 1 || is_full {
            self.inner.wake.notify_all();
        }
        Ok(Saved::Accepted)
    }

    /// Commits a list of writes, and empties it. `durability`: of this commit, or that of the world.
    ///
    /// # Errors
    /// [`Error::Expected`]; what the store says. Nothing was written then, and the list keeps its writes.
    pub fn commit(&self, writes: &mut Writes, durability: Option<Durability>) -> Result<Saved, Error> {
        self.inner.check_writable()?;
        self.inner.check_sizes(writes)?;
        // What was accepted before comes before it.
        self.inner.commit_group()?;
        let _committing = self.inner.committing.lock();
        let epoch = {
            let state = self.inner.state.lock();
            state.check_open()?;
            if writes.is_empty() {
                return Ok(Saved::Unchanged);
            }
            state.recall(writes);
            state.seen.epoch()
        };
        let done = match self.inner.run(&[&*writes], &BTreeSet::new(), durability) {
            Ok(done) => done,
            Err(refusal) => {
                // It may be stored all the same, if it is in doubt.
                self.inner.state.lock().forget(writes);
                return Err(refusal.error);
            }
        };
        let mut state = self.inner.state.lock();
        state.note(writes, epoch);
        state.metrics.unchanged += u64::from(!done.changed);
        *writes = Writes::new();
        drop(state);
        if done.changed {
            return Ok(Saved::Changed(done.seq));
        }
        self.inner.reach(durability)?;
        Ok(Saved::Unchanged)
    }

    fn start_thread(&self) -> Result<(), Error> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let inner = Arc::clone(&self.inner);
            let builder = std::thread::Builder::new().name("cg-host-group".into());
            let started = builder.spawn(move || inner.commit_groups());
            *thread = Some(started.map_err(|error| Error::Thread(Arc::new(error)))?);
        }
        Ok(())
    }
}
