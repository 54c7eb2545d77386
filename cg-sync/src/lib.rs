#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod applying;
mod client;
mod error;
mod messages;
mod place;
mod server;
mod state;
mod value_set;

pub use applying::SyncOutcome;
pub use client::SyncClient;
pub use error::{MessageError, SyncError};
pub use messages::{SYNC_VERSION, SyncLimits, SyncReply, SyncRequest};
pub use server::{SyncServer, SyncServerLimits};
pub use value_set::ValueSet;

pub use cg_store::layer::values::ValueKind;
