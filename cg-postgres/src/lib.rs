#![doc = include_str!("../README.md")]

mod address;
mod connect;
mod engine;
mod error;
mod fold;
mod options;
mod pool;
mod records;
mod runtime;
mod schema;
mod session;
mod tls;

pub use address::{Address, AddressError, Replication};
pub use engine::PostgresEngine;
pub use error::{Refusal, ServerError};
pub use options::Options;
