//! Groups: what is submitted within a moment becomes one commit, and what the world does not take is held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::{Batch, try_resume};
use super::writes::{Write, Writes};
use super::{Host, Inner, Saved, State};
use crate::error::Error;

/// How many columns and lists of writes end a group before its time.
const GROUP_LEN: usize = 256;
/// How many bytes end a group before its time.
const GROUP_BYTES: usize = 32 << 20;
/// How long the thread waits before it resumes the world again.
const RESUME_AFTER: Duration = Duration::from_secs(5);

impl Host {
    /// Accepts a list of writes into the group, as [`submit`](Self::submit) accepts a column.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a list with expectations; [`Error::TooLarge`]; [`Error::Held`].
    pub fn submit_writes(&self, mut writes: Writes) -> Result<Saved, Error> {
        if !(writes.chunks.is_empty() && writes.entities.is_empty()) {
            let text = "a list of writes that expects versions cannot be submitted: commit it";
            return Err(Error::Invalid(text.into()));
        }
        self.inner.check_sizes(&writes)?;
        if self.inner.options.durability.is_synced() {
            return self.commit(&mut writes, None);
        }
        self.start_thread()?;
        let mut state = self.inner.state.lock();
        if state.is_closed {
            return Err(Error::Closed("the world"));
        }
        let digest = match writes.all.as_slice() {
            [Write::Column(saved)] => {
                let digest = state.seen.digest(&saved.binding, &saved.column, saved.is_part);
                if state.seen.is_unchanged(&saved.column.at, digest) {
                    state.metrics.unchanged += 1;
                    return Ok(Saved::Unchanged);
                }
                Some(digest)
            }
            _ => None,
        };
        let taken_bytes = state.taken.as_ref().map_or(0, |batch| batch.memory_bytes());
        let held_bytes = state.open.memory_bytes() + taken_bytes;
        if let Some(cause) = &state.held
            && held_bytes + writes.memory_bytes() > self.inner.options.held_bytes
        {
            return Err(Error::Held { held_bytes, cause: Arc::clone(cause) });
        }
        state.recall(&mut writes);
        self.inner.note(&mut state, &writes, digest);
        state.open.push(writes);
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
    pub fn commit(
        &self,
        writes: &mut Writes,
        durability: Option<cg_store::Durability>,
    ) -> Result<Saved, Error> {
        self.inner.check_sizes(writes)?;
        // What was accepted before comes before it.
        self.inner.commit_group()?;
        let _committing = self.inner.committing.lock();
        let digest = {
            let mut state = self.inner.state.lock();
            if state.is_closed {
                return Err(Error::Closed("the world"));
            }
            state.recall(writes);
            match writes.all.as_slice() {
                [Write::Column(saved)] if writes.chunks.is_empty() && writes.entities.is_empty() => {
                    let digest = state.seen.digest(&saved.binding, &saved.column, saved.is_part);
                    if state.seen.is_unchanged(&saved.column.at, digest) {
                        state.metrics.unchanged += 1;
                        return Ok(Saved::Unchanged);
                    }
                    Some(digest)
                }
                _ => None,
            }
        };
        let lists = std::slice::from_ref(&*writes);
        let done = match durability {
            None => self.inner.run(lists)?,
            Some(durability) => self.inner.run_at(lists, durability)?,
        };
        let mut state = self.inner.state.lock();
        self.inner.note(&mut state, writes, digest);
        state.metrics.unchanged += u64::from(!done.changed);
        *writes = Writes::new();
        Ok(if done.changed { Saved::Changed(done.seq) } else { Saved::Unchanged })
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

impl State {
    /// Adds to the columns of a list what the host was shown of each until now.
    fn recall(&self, writes: &mut Writes) {
        for write in &mut writes.all {
            // Nothing else has the column yet.
            if let Write::Column(saved) = write
                && let Some(saved) = Arc::get_mut(saved)
            {
                saved.shown = self.seen.shown(&saved.column.at);
                saved.damaged = self.seen.damaged(&saved.column.at);
            }
        }
    }
}

impl Inner {
    /// Takes note of columns that were accepted, so that the next save of each is compared with them.
    fn note(&self, state: &mut State, writes: &Writes, digest: Option<[u64; 2]>) {
        if writes.is_raw() {
            state.seen.forget_content();
        }
        for write in &writes.all {
            if let Write::Column(saved) = write {
                let digest =
                    digest.unwrap_or_else(|| state.seen.digest(&saved.binding, &saved.column, saved.is_part));
                state.seen.saved(&saved.column, digest, saved.is_part);
            }
        }
    }

    /// Refuses what the world would refuse for its size, as far as that is known without encoding it.
    fn check_sizes(&self, writes: &Writes) -> Result<(), Error> {
        let limits = self.world.limits();
        for write in &writes.all {
            let Write::Column(saved) = write else { continue };
            let column = &saved.column;
            let mut sections = std::collections::HashMap::<i64, u64>::new();
            for one in &column.block_entities {
                *sections.entry(one.at.chunk().y()).or_default() += one.nbt.len() as u64;
            }
            for (y, len_bytes) in sections {
                if len_bytes > limits.chunk_bytes {
                    let at = i32::try_from(y).ok().and_then(|y| column.at.chunk(y).ok());
                    let what = format!("the block entities of section {y} of {}", column.at);
                    return Err(Error::TooLarge { at, what, len_bytes, max_bytes: limits.chunk_bytes });
                }
            }
            for entity in &column.entities {
                let len_bytes = entity.nbt.len() as u64;
                if len_bytes > limits.entity_bytes {
                    let at = column.at.chunk(column.at.min_y).ok();
                    let what = format!("entity {} in {}", entity.id.get(), column.at);
                    return Err(Error::TooLarge { at, what, len_bytes, max_bytes: limits.entity_bytes });
                }
            }
        }
        Ok(())
    }

    fn run_at(
        &self,
        lists: &[Writes],
        durability: cg_store::Durability,
    ) -> Result<super::batch::Done, Error> {
        /// As often as `World::transact` runs a transaction.
        const TRIES: usize = 100;
        for _ in 1..TRIES {
            match self.world.transaction_at(durability, |tx| self.write(tx, lists)) {
                Err(Error::Store { source, .. }) if source.kind() == cg_store::ErrorKind::Conflict => {}
                Err(Error::Store { source, .. }) if source.kind() == cg_store::ErrorKind::Busy => {
                    self.world.wait_for_room()?;
                }
                done => return done.map(|done| super::batch::Done { seq: done.seq, changed: done.value }),
            }
        }
        let done = self.world.transaction_at(durability, |tx| self.write(tx, lists))?;
        Ok(super::batch::Done { seq: done.seq, changed: done.value })
    }

    /// Commits what is held, then what is collected.
    ///
    /// A group that is refused is committed list by list, so that one column stops no other. What the world refuses for good is
    /// reported to the log.
    pub(super) fn commit_group(&self) -> Result<(), Error> {
        let _committing = self.committing.lock();
        loop {
            let batch = {
                let mut state = self.state.lock();
                match &state.taken {
                    Some(held) => Arc::clone(held),
                    None if state.open.is_empty() => return Ok(()),
                    None => {
                        let batch = Arc::new(std::mem::take(&mut state.open));
                        state.taken = Some(Arc::clone(&batch));
                        batch
                    }
                }
            };
            let committed = self.commit_batch(&batch);
            let mut state = self.state.lock();
            match committed {
                Ok(refused) => {
                    state.taken = None;
                    state.held = None;
                    state.metrics.groups += 1;
                    state.metrics.refused += refused;
                }
                Err(error) => {
                    if state.held.is_none() {
                        let (lists, bytes) = (batch.len(), batch.memory_bytes());
                        tracing::error!(%error, lists, bytes, "submitted columns are held in memory until the world takes commits");
                    }
                    state.held = Some(Arc::new(error.clone()));
                    return Err(error);
                }
            }
        }
    }

    /// Commits a batch. Returns how many lists were refused for good; an error if the world may take it later.
    fn commit_batch(&self, batch: &Batch) -> Result<u64, Error> {
        match self.run(batch.lists()) {
            Ok(_) => return Ok(0),
            Err(error) if error.may_pass() => return Err(error),
            Err(error) if batch.len() > 1 => {
                tracing::warn!(%error, "a group was refused; its columns are committed one by one");
            }
            Err(_) => {}
        }
        let mut refused = 0;
        for list in batch.lists() {
            match self.run(std::slice::from_ref(list)) {
                Ok(_) => {}
                Err(error) if error.may_pass() => return Err(error),
                Err(error) => {
                    refused += 1;
                    self.refuse(list, &error);
                }
            }
        }
        Ok(refused)
    }

    fn refuse(&self, list: &Writes, error: &Error) {
        tracing::error!(%error, "the world refuses something that was submitted, and it is not stored");
        let mut state = self.state.lock();
        for write in &list.all {
            if let Write::Column(saved) = write {
                state.seen.refused(&saved.column.at, &saved.shown);
            }
        }
    }

    /// Commits groups until the host is closed.
    fn commit_groups(&self) {
        let mut resume_at: Option<Instant> = None;
        loop {
            let mut state = self.state.lock();
            if state.is_closed {
                return;
            }
            if let Some(at) = resume_at.filter(|_| state.held.is_some()) {
                self.wake.wait_until(&mut state, at);
                if state.is_closed {
                    return;
                }
                if Instant::now() < at {
                    continue;
                }
            } else if state.open.is_empty() {
                self.wake.wait(&mut state);
                continue;
            } else {
                let end = Instant::now() + self.options.group;
                while !state.is_closed
                    && state.open.len() < GROUP_LEN
                    && state.open.memory_bytes() < GROUP_BYTES
                    && Instant::now() < end
                {
                    self.wake.wait_until(&mut state, end);
                }
                if state.is_closed {
                    return;
                }
            }
            let is_held = state.held.is_some();
            drop(state);
            let resumed = if is_held { try_resume(&self.world) } else { Ok(()) };
            // An error is reported when the columns begin to be held.
            let committed = resumed.and_then(|()| self.commit_group());
            resume_at = committed.is_err().then(|| Instant::now() + RESUME_AFTER);
        }
    }
}
