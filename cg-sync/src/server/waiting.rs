//! A request that waits until there is something to tell.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use cg_store::engine::CommitSeq;
use cg_store::layer::{sync_to, wait_for_commit};

use super::SyncServer;
use crate::error::SyncError;
use crate::messages::{SyncReply, SyncRequest};

/// The shortest time between two looks at the world. A server that commits often is not looked at for each commit.
const LOOK_EVERY: Duration = Duration::from_millis(10);

impl SyncServer {
    /// As [`answer`](Self::answer), but waits until something that was asked about changed, for as long as `timeout`. Then it
    /// answers that nothing did. A client that sends its next request at once hears of changes within some milliseconds, and
    /// asks for nothing in between.
    ///
    /// Blocks the calling thread, and holds nothing while it sleeps. Looks at the world once for the request, and again after
    /// commits, at most once in 10 ms. Each look waits until nothing is queued, as
    /// [`World::read_view`](cg_store::World::read_view) does, and costs what [`answer`](Self::answer) costs: with many such
    /// threads, let one look and wake the others. A look reads the log from where the one before it ended. What cannot be told is news each time: the
    /// damage of a chunk of which the client has a version, and an area that is too large. Other damage is no news by itself,
    /// and is in the reply to whatever is. In a world without a [log](Self::keep_log) every commit is news of every set.
    ///
    /// # Errors
    /// As [`answer`](Self::answer).
    pub fn answer_when_changed(
        &self,
        request: &SyncRequest,
        timeout: Duration,
    ) -> Result<SyncReply, SyncError> {
        let until = Instant::now().checked_add(timeout);
        self.check(request)?;
        // What was looked at and is no news is not looked at again.
        let mut asked = Cow::Borrowed(request);
        loop {
            let begun = Instant::now();
            let reply = self.world.read_view(|view| self.answer_of(view, &asked))?;
            let is_over = until.is_some_and(|until| begun >= until);
            if is_over || reply.has_news(&asked) {
                sync_to(&self.world, CommitSeq::new(reply.commit))?;
                return Ok(reply);
            }
            asked.to_mut().go_on_behind(&reply);
            if reply.values.iter().any(|told| told.has_more) {
                continue;
            }
            wait_for_commit(&self.world, CommitSeq::new(reply.commit), until)?;
            let now = Instant::now();
            let pause = LOOK_EVERY.saturating_sub(now - begun);
            let left = until.map_or(pause, |until| until.saturating_duration_since(now));
            std::thread::sleep(pause.min(left));
        }
    }
}
