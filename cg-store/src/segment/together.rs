//! Keeps transactions and readers out of segments that change together.
//!
//! A change of several segments is committed by one commit of the root and shown in one segment after the other. Who
//! begins to read one of them meanwhile waits until all show it, so nobody who has seen some of it sees less of it
//! afterwards; who commits waits until it is written. Segments that have nothing to do with it are never waited for.
//!
//! **Invariant**: while a segment is closed no transaction commits in it, by whatever handle of its world it comes: each
//! passes the world's [`Door`]. A crossing or a deletion may; they and the change take `moving` first.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Condvar, Mutex};

use super::{SegmentError, SegmentPos};

/// Which segments are closed, and who is in the middle of a commit.
#[derive(Debug, Default)]
pub(super) struct Together {
    state: Mutex<State>,
    /// Readers wait, for those who only look.
    is_closed: AtomicBool,
    /// How often segments were closed for readers.
    closings: AtomicU64,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// How many transactions of each segment are being committed.
    committing: HashMap<SegmentPos, usize>,
    closed: BTreeSet<SegmentPos>,
    wait: Wait,
}

/// Who waits before segments that are closed.
#[derive(Debug, Default)]
enum Wait {
    /// Those who commit: what is to be changed is being looked at.
    #[default]
    Commits,
    /// Readers too: the change counts, or is about to.
    Everybody,
    /// Nobody, and all hear why: the change counts, and could not be carried out.
    Nobody(Arc<str>),
}

/// That a transaction is being committed, until the value is dropped.
#[derive(Debug)]
pub(crate) struct CommitsIn<'t> {
    together: &'t Together,
    segment: SegmentPos,
}

/// What the transactions of a segment's world pass before they commit, unless who runs them has seen to that.
#[derive(Debug)]
pub(crate) struct Door {
    together: Arc<Together>,
    segment: SegmentPos,
}

/// That segments take no commits, until the value is dropped. Dropped while readers wait, they stay closed.
#[derive(Debug)]
pub(super) struct ClosedSegments<'t> {
    together: &'t Together,
}

impl Together {
    /// Waits until segments that somebody wants to read are as they are to stay.
    ///
    /// # Errors
    /// [`SegmentError::NotCarriedOut`] if a change of one of them could not be.
    pub(super) fn pass(&self, segments: &[SegmentPos]) -> Result<(), SegmentError> {
        if !self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut state = self.state.lock();
        while let Some(segment) = segments.iter().find(|segment| state.closed.contains(segment)) {
            match &state.wait {
                Wait::Commits => break,
                Wait::Everybody => self.changed.wait(&mut state),
                Wait::Nobody(why) => return Err(stuck(*segment, why)),
            }
        }
        Ok(())
    }

    /// How often segments were closed for readers: who reads of several, and finds another number afterwards, may have seen
    /// some changed and others not.
    pub(super) fn closings(&self) -> u64 {
        self.closings.load(Ordering::Acquire)
    }

    /// Waits until a transaction may be committed in a segment, and keeps the segment from being closed meanwhile.
    ///
    /// # Errors
    /// As [`pass`](Self::pass).
    pub(super) fn commit_in(&self, segment: SegmentPos) -> Result<CommitsIn<'_>, SegmentError> {
        let mut state = self.state.lock();
        while state.closed.contains(&segment) {
            if let Wait::Nobody(why) = &state.wait {
                return Err(stuck(segment, why));
            }
            self.changed.wait(&mut state);
        }
        *state.committing.entry(segment).or_default() += 1;
        Ok(CommitsIn { together: self, segment })
    }

    /// Closes segments for commits; waits for those that are under way. The caller is the only one who does.
    pub(super) fn close(&self, segments: impl IntoIterator<Item = SegmentPos>) -> ClosedSegments<'_> {
        let mut state = self.state.lock();
        state.closed = segments.into_iter().collect();
        state.wait = Wait::Commits;
        while state.closed.iter().any(|segment| state.committing.contains_key(segment)) {
            self.changed.wait(&mut state);
        }
        drop(state);
        ClosedSegments { together: self }
    }

    /// The segments that are closed.
    pub(super) fn closed(&self) -> BTreeSet<SegmentPos> {
        self.state.lock().closed.clone()
    }

    /// Closes segments of which a change counts already: those that are stuck, or nobody has used yet.
    pub(super) fn close_again(&self, segments: impl IntoIterator<Item = SegmentPos>) -> ClosedSegments<'_> {
        self.state.lock().closed = segments.into_iter().collect();
        let closed = ClosedSegments { together: self };
        closed.to_everybody();
        closed
    }

    /// Whether a change of a segment counts, or is about to, and is not carried out.
    pub(super) fn is_changing(&self, segment: SegmentPos) -> bool {
        let is_changing =
            |state: &State| state.closed.contains(&segment) && !matches!(state.wait, Wait::Commits);
        self.is_closed.load(Ordering::Acquire) && is_changing(&self.state.lock())
    }

    /// Whether a change that counts could not be carried out.
    pub(super) fn is_stuck(&self) -> bool {
        self.is_closed.load(Ordering::Acquire) && matches!(self.state.lock().wait, Wait::Nobody(_))
    }

    /// Closes for readers too, and says who waited so far.
    fn wait_is(&self, wait: Wait) -> Wait {
        let mut state = self.state.lock();
        let before = std::mem::replace(&mut state.wait, wait);
        self.is_closed.store(true, Ordering::Release);
        drop(state);
        self.changed.notify_all();
        before
    }
}

impl Door {
    pub(super) fn new(together: &Arc<Together>, segment: SegmentPos) -> Self {
        Self { together: Arc::clone(together), segment }
    }

    /// Waits until a transaction may be committed, and keeps the segment from being closed meanwhile.
    ///
    /// # Errors
    /// [`SegmentError::NotCarriedOut`] if a change of the segment could not be: what is committed now would be written over.
    pub(crate) fn pass(&self) -> Result<CommitsIn<'_>, SegmentError> {
        self.together.commit_in(self.segment)
    }
}

impl ClosedSegments<'_> {
    /// Has readers wait too.
    pub(super) fn to_everybody(&self) {
        if matches!(self.together.wait_is(Wait::Everybody), Wait::Nobody(_)) {
            // Nobody has read them since they were closed.
            return;
        }
        // In this order, and before anything is changed: who has the new number waits, and who did not wait has the old one
        // when he began and the new one when he is done.
        self.together.closings.fetch_add(1, Ordering::AcqRel);
    }

    /// Lets readers in: all of the change can be seen.
    pub(super) fn to_readers(&self) {
        let mut state = self.together.state.lock();
        state.wait = Wait::Commits;
        self.together.is_closed.store(false, Ordering::Release);
        drop(state);
        self.together.changed.notify_all();
    }

    /// Lets everybody in.
    pub(super) fn open(self) {
        self.together.state.lock().wait = Wait::Commits;
    }

    /// Leaves them closed, and says why to whoever comes.
    pub(super) fn stuck(self, why: &str) {
        self.together.wait_is(Wait::Nobody(why.into()));
    }

    /// Leaves some of them closed, as [`stuck`](Self::stuck), and lets everybody into the others.
    pub(super) fn stuck_in(self, segments: impl IntoIterator<Item = SegmentPos>, why: &str) {
        self.together.state.lock().closed = segments.into_iter().collect();
        self.stuck(why);
    }
}

impl Drop for ClosedSegments<'_> {
    fn drop(&mut self) {
        let mut state = self.together.state.lock();
        match state.wait {
            Wait::Commits => {
                state.closed.clear();
                self.together.is_closed.store(false, Ordering::Release);
            }
            Wait::Everybody => state.wait = Wait::Nobody("it was cut off".into()),
            Wait::Nobody(_) => {}
        }
        drop(state);
        self.together.changed.notify_all();
    }
}

fn stuck(segment: SegmentPos, why: &Arc<str>) -> SegmentError {
    SegmentError::NotCarriedOut { segment, why: why.to_string() }
}

impl Drop for CommitsIn<'_> {
    fn drop(&mut self) {
        let mut state = self.together.state.lock();
        if let Some(count) = state.committing.get_mut(&self.segment) {
            *count -= 1;
            if *count == 0 {
                state.committing.remove(&self.segment);
                self.together.changed.notify_all();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::Dimension;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    const SHORT: Duration = Duration::from_millis(20);

    fn segment(x: i64) -> SegmentPos {
        SegmentPos { dimension: Dimension::new(0), x, y: 0, z: 0 }
    }

    #[test]
    fn closing_waits_for_commits_under_way_and_readers_wait_for_the_end() {
        let together = Together::default();
        let committing = together.commit_in(segment(0)).unwrap();
        thread::scope(|scope| {
            let ((tell, told), (go, went)) = (channel(), channel::<()>());
            let together = &together;
            scope.spawn(move || {
                let closed = together.close([segment(0), segment(1)]);
                tell.send("closed for commits").unwrap();
                went.recv().unwrap();
                closed.to_everybody();
                tell.send("closed for all").unwrap();
                went.recv().unwrap();
                closed.open();
            });
            assert!(told.recv_timeout(SHORT).is_err(), "a transaction is being committed");
            drop(committing);
            told.recv().unwrap();
            assert_eq!(
                (together.pass(&[segment(0)]), together.closings()),
                (Ok(()), 0),
                "it is only looked at"
            );
            assert!(together.commit_in(segment(2)).is_ok(), "another segment");
            let (tell_commit, committed) = channel();
            scope.spawn(move || {
                drop(together.commit_in(segment(1)).unwrap());
                tell_commit.send(()).unwrap();
            });
            assert!(committed.recv_timeout(SHORT).is_err());
            go.send(()).unwrap();
            told.recv().unwrap();
            let (tell_read, read) = channel();
            scope.spawn(move || tell_read.send(together.pass(&[segment(2), segment(1)])).unwrap());
            assert!(read.recv_timeout(SHORT).is_err());
            assert_eq!((together.pass(&[segment(2)]), together.closings()), (Ok(()), 1));
            go.send(()).unwrap();
            assert_eq!(read.recv(), Ok(Ok(())));
            committed.recv().unwrap();
        });
    }

    #[test]
    fn what_got_stuck_or_was_cut_off_is_told_until_it_is_carried_out() {
        let together = Together::default();
        for why in ["the disk is full", "it was cut off"] {
            let closed = together.close([segment(1)]);
            closed.to_everybody();
            if why == "it was cut off" {
                drop(closed);
            } else {
                closed.stuck(why);
            }
            let told = SegmentError::NotCarriedOut { segment: segment(1), why: why.into() };
            assert_eq!(together.pass(&[segment(0), segment(1)]), Err(told.clone()));
            assert_eq!(together.commit_in(segment(1)).err(), Some(told));
            assert_eq!(together.pass(&[segment(0)]), Ok(()));
            assert!(together.is_stuck());
            let closings = together.closings();
            let again = together.close_again([segment(1)]);
            assert!(!together.is_stuck());
            assert_eq!(together.closings(), closings, "who reads others is not to read them again");
            again.open();
            assert_eq!(together.pass(&[segment(1)]), Ok(()));
        }
        drop(together.close([segment(1)]));
        assert_eq!(together.pass(&[segment(1)]), Ok(()), "nothing was changed yet");
    }
}
