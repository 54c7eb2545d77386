//! An engine over shared rows: a simulated server, reached over a network that loses messages.
//!
//! It is the model of an engine whose rows other processes may have open, and the [suite](super) runs over it.
//!
//! [`Server`] holds the rows in a `BTreeMap`, and a copy of them that stands for its other nodes. [`Network`] delays
//! each message, and loses some requests and some answers. It is the [`Link`](super::shared::Link) of the tests of
//! shared rows, for which a server can have a [`Defect`].
//! [`Remote`] is the engine: it sends a message again until it receives an answer. The server stores its
//! answer to each client's last commit. So a batch whose answer was lost is not applied twice.
//!
//! It is neither a protocol nor a store: client and server run in one process, and nothing is stored after it ends.

mod engine;
mod network;
mod server;
mod view;

pub use engine::Remote;
pub use network::Network;
pub use server::{Defect, Server};

use std::sync::Arc;
use std::time::Duration;

use super::shared::{Replicated, Shared};
use crate::EngineError;

/// Each engine has a network of its own, without latency and losses.
impl Shared for Arc<Server> {
    type Engine = Remote;
    type Link = Network;

    fn take(&self) -> Result<(Remote, Arc<Network>), EngineError> {
        let network = Arc::new(Network::new(Duration::ZERO, 0));
        Ok((Remote::take(self, &network)?, network))
    }

    fn read(&self) -> Result<Remote, EngineError> {
        Remote::read(self, &Arc::new(Network::new(Duration::ZERO, 0)))
    }
}

impl Replicated for Arc<Server> {
    fn stall_next(&self) {
        Server::stall_next(self);
    }

    fn fail_over(&self) {
        Server::fail_over(self);
    }
}
