//! An engine written outside `cg-engine`: rows on a simulated server, reached over a slow network that loses
//! messages.
//!
//! It uses only the public surface of `cg-engine`, and so shows what an engine in another workspace needs. Its tests
//! run the conformance suite and a world over it.
//!
//! [`Server`] holds the rows in a `BTreeMap`. [`Network`] delays each message, and loses some requests and some
//! answers. [`Remote`] is the engine: it sends a message again until it receives an answer. The server stores its
//! answer to each client's last commit. So a batch whose answer was lost is not applied twice.
//!
//! # What it is not
//! Neither a protocol nor a store: client and server run in one process, and nothing is stored after it ends.
#![forbid(unsafe_code)]

mod network;
mod remote;
mod server;

pub use network::Network;
pub use remote::Remote;
pub use server::Server;
