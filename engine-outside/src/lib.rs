//! An engine written from outside: rows on a simulated server, behind a network that is slow and loses messages.
//!
//! It uses nothing but the public surface of `cg-engine`, so that it shows what an engine in another workspace needs.
//! Its tests run the conformance suite, and a world, over it.
//!
//! [`Server`] holds the rows in a `BTreeMap`. [`Network`] delays each message, and loses requests and answers by turns.
//! [`Remote`] is the engine: it sends a message again until it is answered. The server remembers the answer to each
//! client's last commit, so a batch whose answer was lost is not applied twice.
//!
//! # What it is not
//! No protocol and no storage: client and server are in one process, and nothing outlives them.
#![forbid(unsafe_code)]

mod network;
mod remote;
mod server;

pub use network::Network;
pub use remote::Remote;
pub use server::Server;
