//! An engine over shared rows: a simulated server, reached over a network that loses messages.
//!
//! It is the model of an engine whose rows other processes may have open, and the [suite](super) runs over it.
//!
//! [`Server`] holds the rows in a `BTreeMap`. [`Network`] delays each message, and loses some requests and some
//! answers. [`Remote`] is the engine: it sends a message again until it receives an answer. The server stores its
//! answer to each client's last commit. So a batch whose answer was lost is not applied twice.
//!
//! It is neither a protocol nor a store: client and server run in one process, and nothing is stored after it ends.

mod engine;
mod network;
mod server;
mod view;

pub use engine::Remote;
pub use network::Network;
pub use server::Server;
