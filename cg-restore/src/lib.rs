#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod host;
mod target;
mod tickets;

pub use host::{Observer, StoreHost};
pub use target::{Stopped, Target};
