//! Group commit: callers that commit at about the same time wait for each other and share one sync.

use std::time::Duration;

use crate::rt::lock_order::{Condvar, Mutex, rank};

/// The number of callers that are going to sync.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    coming: Mutex<usize, rank::GroupCommit>,
    all_here: Condvar,
}

/// A caller that is going to sync. Dropping the value reports that it has arrived, or has given up.
#[derive(Debug)]
pub(crate) struct GroupMember<'g>(&'g GroupCommit);

impl GroupCommit {
    /// Registers a caller that is going to commit and sync.
    pub(crate) fn join(&self) -> GroupMember<'_> {
        *self.coming.lock() += 1;
        GroupMember(self)
    }
}

impl GroupMember<'_> {
    /// Reports that the caller has committed. Waits at most `at_most` for the other registered callers.
    pub(crate) fn wait(self, at_most: Duration) {
        let group_commit = self.0;
        drop(self);
        let mut coming = group_commit.coming.lock();
        group_commit.all_here.wait_while_for(&mut coming, |coming| *coming > 0, at_most);
    }
}

impl Drop for GroupMember<'_> {
    fn drop(&mut self) {
        let mut coming = self.0.coming.lock();
        *coming -= 1;
        if *coming == 0 {
            self.0.all_here.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    const FOR_EVER: Duration = Duration::from_secs(600);

    #[test]
    fn alone_nobody_waits() {
        let group_commit = GroupCommit::default();
        group_commit.join().wait(FOR_EVER);
    }

    #[test]
    fn all_leave_together_when_the_last_has_come() {
        let group_commit = GroupCommit::default();
        thread::scope(|scope| {
            let (first, last) = (group_commit.join(), group_commit.join());
            let waiting = scope.spawn(move || first.wait(FOR_EVER));
            last.wait(FOR_EVER);
            waiting.join().unwrap();
        });
    }

    #[test]
    fn nobody_waits_for_ever_for_one_who_does_not_come() {
        let group_commit = GroupCommit::default();
        let (_late, other) = (group_commit.join(), group_commit.join());
        let (begun, at_most) = (Instant::now(), Duration::from_millis(1));
        other.wait(at_most);
        assert!(begun.elapsed() >= at_most);
    }
}
