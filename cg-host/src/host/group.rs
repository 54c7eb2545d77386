//! Groups: what is submitted within a moment becomes one commit, and what the world does not take is held.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_format::EntityId;

use super::commit::Refusal;
use super::state::Inner;
use super::writes::Writes;
use crate::error::Error;

/// How many columns and lists of writes end a group before its time. An autosave of a usual server is one commit.
pub(super) const GROUP_LEN: usize = 4096;
/// How many bytes end a group before its time.
pub(super) const GROUP_BYTES: usize = 64 << 20;
/// The longest time that a group is collected.
const LONGEST_GROUP: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the thread waits before it resumes the world again.
const RESUME_AFTER: Duration = Duration::from_secs(5);

impl Inner {
    /// Commits what is held, then what is collected by now.
    ///
    /// What the world refuses for good is left out, so that one column stops no other, and is reported to the log and by the
    /// next flush.
    pub(super) fn commit_group(&self) -> Result<(), Error> {
        let _committing = self.committing.lock();
        let mut is_last = false;
        while !is_last {
            let batch = {
                let mut state = self.state.lock();
                match &state.taken {
                    Some(held) => Arc::clone(held),
                    None if state.open.is_empty() => return Ok(()),
                    None => {
                        is_last = true;
                        let batch = Arc::new(std::mem::take(&mut state.open));
                        state.taken = Some(Arc::clone(&batch));
                        batch
                    }
                }
            };
            let committed = self.commit_lists(batch.lists().iter().collect(), &mut BTreeSet::new());
            let mut state = self.state.lock();
            match committed {
                Ok(()) => {
                    state.taken = None;
                    state.held = None;
                    state.metrics.groups += 1;
                }
                Err(error) => {
                    if state.held.is_none() {
                        let (lists, bytes) = (batch.len(), batch.memory_bytes());
                        tracing::error!(%error, lists, bytes, "submitted columns are held in memory until the world takes commits");
                    }
                    state.held = Some(Arc::new(error.clone()));
                    // The thread of groups resumes the world after a while.
                    self.wake.notify_all();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Commits lists, and leaves out those that the world refuses for good. An error says that it may take the rest later.
    fn commit_lists(&self, mut lists: Vec<&Writes>, spared: &mut BTreeSet<EntityId>) -> Result<(), Error> {
        while let Err(Refusal { list, error }) = self.run(&lists, spared, None) {
            if error.may_pass() {
                return Err(error);
            }
            let Some(place) = list.or((lists.len() == 1).then_some(0)) else {
                return parts(lists).into_iter().try_for_each(|part| self.commit_lists(part, spared));
            };
            let refused = lists.remove(place);
            spared.extend(refused.entities_of_columns());
            self.refuse(refused, &error);
        }
        Ok(())
    }

    fn refuse(&self, list: &Writes, error: &Error) {
        tracing::error!(%error, "the world refuses something that was submitted, and it is not stored");
        let mut state = self.state.lock();
        state.metrics.refused += 1;
        state.refused.get_or_insert_with(|| error.clone());
        state.forget(list);
        for at in list.columns().map(|saved| saved.column.at) {
            if error.place().is_some_and(|place| at.has(place)) {
                state.verdicts.remember(at, error);
            }
        }
    }

    /// Commits groups until the host is closed.
    pub(super) fn commit_groups(&self) {
        // The time of the next try after a failure, and how many groups were committed before it.
        let mut resume_at: Option<(Instant, u64)> = None;
        loop {
            let mut state = self.state.lock();
            if state.is_closed {
                return;
            }
            let groups = state.metrics.groups;
            // What failed may be committed since, by a flush of the host.
            resume_at = resume_at.filter(|(_, before)| *before == groups);
            if state.held.is_some() && resume_at.is_none() {
                resume_at = Some((Instant::now() + RESUME_AFTER, groups));
            }
            if let Some((at, _)) = resume_at.filter(|_| state.taken.is_some()) {
                self.wake.wait_until(&mut state, at);
                if state.is_closed {
                    return;
                }
                if Instant::now() < at {
                    continue;
                }
            } else if let Some(end) = state.open.end(self.options.group.min(LONGEST_GROUP)) {
                // A flush may have ended the group that this thread waited for: a newer one has its own time.
                let is_full = state.open.len() >= GROUP_LEN || state.open.memory_bytes() >= GROUP_BYTES;
                if !is_full && Instant::now() < end {
                    self.wake.wait_until(&mut state, end);
                    continue;
                }
            } else {
                self.wake.wait(&mut state);
                continue;
            }
            let is_held = state.held.is_some();
            drop(state);
            let resumed = if is_held { self.world.resume().map_err(Error::from) } else { Ok(()) };
            // An error is reported when the columns begin to be held. After a panic they wait, as after an error.
            let commit = || resumed.and_then(|()| self.commit_group());
            let is_committed = matches!(catch_unwind(AssertUnwindSafe(commit)), Ok(Ok(())));
            resume_at = (!is_committed).then(|| (Instant::now() + RESUME_AFTER, groups));
        }
    }
}

/// Parts of lists whose commit was refused without a name: columns stay together, because they were checked one by one
/// before, and each other list is alone.
fn parts(lists: Vec<&Writes>) -> Vec<Vec<&Writes>> {
    let (columns, others): (Vec<_>, Vec<_>) =
        lists.into_iter().partition(|list| list.columns().next().is_some());
    if columns.is_empty() || others.is_empty() {
        return columns.into_iter().chain(others).map(|list| vec![list]).collect();
    }
    std::iter::once(columns).chain(others.into_iter().map(|list| vec![list])).collect()
}
