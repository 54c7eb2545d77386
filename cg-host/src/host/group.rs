//! Groups: what is submitted within a moment becomes one commit, and what the world does not take is held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_store::{ErrorKind, World};

use super::batch::Batch;
use super::state::Inner;
use super::writes::{Write, Writes};
use crate::error::Error;

/// How many columns and lists of writes end a group before its time.
pub(super) const GROUP_LEN: usize = 256;
/// How many bytes end a group before its time.
pub(super) const GROUP_BYTES: usize = 32 << 20;
/// How long the thread waits before it resumes the world again.
const RESUME_AFTER: Duration = Duration::from_secs(5);

impl Inner {
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
    pub(super) fn commit_groups(&self) {
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

/// The world, for the thread of groups: writable again, if the failure has passed.
pub(super) fn try_resume(world: &World) -> Result<(), Error> {
    match world.resume() {
        // Nothing was wrong with the world itself.
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(()),
        resumed => Ok(resumed?),
    }
}
