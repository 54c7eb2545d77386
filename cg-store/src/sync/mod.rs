//! Sync: a client's world as a cache of a server's.
//!
//! A [`SyncClient`] says in a [`SyncRequest`] what it has; [`World::answer`](crate::World::answer) says in a [`SyncReply`]
//! what of it is up to date, newer or gone; the client applies that. Which bytes carry the messages is the host's matter.
//!
//! A request asks in two ways. About **chunks**, one by one: the reply brings the newer ones along. About **areas**: the
//! reply says which chunks changed since the client last asked about the area, and the client asks about those that it
//! lacks ([`SyncClient::request_stale`]), as many at a time as it likes.
//!
//! What is cached is blocks of all layers, components and side data: what stays where it is. Entities are not: they move
//! from tick to tick, so a version of them is old before it arrives, and the host's own network tells its players of those
//! that are near; a cache that is asked offline would show where they were once. Chunks arrive without their references, so
//! the content hash of a box is the server's where no entity belongs to its chunks.
//!
//! **Invariant**: ids never travel without names, and mean in the cache what they meant to the server.
//! **Invariant**: a version is compared with versions of the same incarnation alone.
//! **Invariant**: a reply tells of nothing that a power cut can take back.

mod applying;
mod changed;
mod client;
mod error;
mod messages;
mod place;
mod server;
mod state;
mod versions;

pub use client::{SyncClient, SyncOutcome};
pub use error::{MessageError, SyncError};
pub use messages::{SYNC_VERSION, SyncLimits, SyncReply, SyncRequest};
pub use server::SyncServerLimits;
