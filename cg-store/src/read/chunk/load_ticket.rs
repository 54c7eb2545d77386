//! Loads that do not wait: what memory has, and chunks that a background thread loads.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

use crate::rt::answer::Answer;
use crate::storage::error::Error;

/// The cached state of a chunk.
#[derive(Debug, Clone)]
pub enum Peek {
    /// It is stored.
    Here(Arc<Chunk>),
    /// It is not stored: never generated, or deleted.
    Absent,
    /// It is not cached; load or request it.
    NotLoaded,
}

/// Chunks that a background thread loads.
///
/// It is a future as well, of what [`wait`](Self::wait) returns: it needs no particular runtime, and polling it reads
/// nothing itself.
///
/// ```
/// # use cg_store::{Error, World};
/// # use cg_format::ChunkAt;
/// async fn is_stored(world: &World, at: ChunkAt) -> Result<bool, Error> {
///     let mut loaded = world.load_in_background(&[at]).await?;
///     Ok(loaded.remove(0)?.is_some())
/// }
/// ```
#[derive(Debug)]
pub struct LoadTicket {
    answer: Answer<Vec<LoadResult>>,
    /// The number of requested chunks.
    count: usize,
    /// A poll has returned the chunks.
    is_over: AtomicBool,
}

pub(crate) type LoadResult = Result<Option<Arc<Chunk>>, Error>;

impl LoadTicket {
    pub(crate) fn new(answer: Answer<Vec<LoadResult>>, count: usize) -> Self {
        Self { answer, count, is_over: AtomicBool::new(false) }
    }

    /// The chunks, if they are loaded; one result per position in the order asked. Each is [`Error::Closed`] if the
    /// world was closed before they were loaded. They are returned once. Never blocks.
    pub fn poll(&self) -> Option<Vec<LoadResult>> {
        let Poll::Ready(found) = self.answer.try_take() else { return None };
        if self.is_over.swap(true, Ordering::Relaxed) {
            return None;
        }
        Some(found.unwrap_or_else(|| (0..self.count).map(|_| Err(Error::Closed)).collect()))
    }

    /// Waits for the chunks.
    ///
    /// # Errors
    /// [`Error::Closed`] if the world was closed before they were loaded, or if [`poll`](Self::poll) has returned them.
    pub fn wait(self) -> Result<Vec<LoadResult>, Error> {
        self.answer.wait().ok_or(Error::Closed)
    }
}

impl Future for LoadTicket {
    type Output = Result<Vec<LoadResult>, Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let found = self.answer.poll_take(context);
        if found.is_ready() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        found.map(|found| found.ok_or(Error::Closed))
    }
}

/// The results of a request whose load panicked.
pub(crate) fn panicked(at: &[ChunkAt], message: &str) -> Vec<LoadResult> {
    at.iter().map(|at| Err(Error::LoadPanicked { at: *at, message: message.to_owned() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::answer::answer;

    #[test]
    fn a_poll_says_once_that_nothing_will_arrive() {
        let (giver, answer) = answer();
        let pending = LoadTicket::new(answer, 2);
        assert!(pending.poll().is_none(), "they may still arrive");
        drop(giver);
        let found = pending.poll().expect("the world was closed");
        assert!(matches!(found[..], [Err(Error::Closed), Err(Error::Closed)]), "{found:?}");
        assert!(pending.poll().is_none(), "they are given away once");
    }
}
