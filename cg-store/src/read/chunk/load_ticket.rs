//! Loads that do not wait: what memory has, and chunks that a background thread loads.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

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
#[derive(Debug)]
pub struct LoadTicket {
    receiver: Receiver<Vec<LoadResult>>,
    /// The number of requested chunks.
    count: usize,
    /// A poll has returned the chunks.
    is_over: Cell<bool>,
}

pub(crate) type LoadResult = Result<Option<Arc<Chunk>>, Error>;

impl LoadTicket {
    pub(crate) fn new(receiver: Receiver<Vec<LoadResult>>, count: usize) -> Self {
        Self { receiver, count, is_over: Cell::new(false) }
    }

    /// The chunks, if they are loaded; one result per position in the order asked. Each is [`Error::Closed`] if the
    /// world was closed before they were loaded. They are returned once. Never blocks.
    pub fn poll(&self) -> Option<Vec<LoadResult>> {
        let found = match self.receiver.try_recv() {
            Ok(found) => found,
            Err(TryRecvError::Disconnected) if !self.is_over.get() => {
                (0..self.count).map(|_| Err(Error::Closed)).collect()
            }
            Err(_) => return None,
        };
        self.is_over.set(true);
        Some(found)
    }

    /// Waits for the chunks.
    ///
    /// # Errors
    /// [`Error::Closed`] if the world was closed before they were loaded, or if [`poll`](Self::poll) has returned them.
    pub fn wait(self) -> Result<Vec<LoadResult>, Error> {
        self.receiver.recv().map_err(|_| Error::Closed)
    }
}

/// The results of a request whose load panicked.
pub(crate) fn panicked(at: &[ChunkAt], message: &str) -> Vec<LoadResult> {
    at.iter().map(|at| Err(Error::LoadPanicked { at: *at, message: message.to_owned() })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_poll_says_once_that_nothing_will_arrive() {
        let (sender, receiver) = channel();
        let pending = LoadTicket::new(receiver, 2);
        assert!(pending.poll().is_none(), "they may still arrive");
        drop(sender);
        let found = pending.poll().expect("the world was closed");
        assert!(matches!(found[..], [Err(Error::Closed), Err(Error::Closed)]), "{found:?}");
        assert!(pending.poll().is_none(), "they are given away once");
    }
}
