#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod binding;
mod column;
mod error;
mod host;
mod queue;

pub use binding::{Binding, Known, KnownBiome, KnownBlock};
pub use column::{BlockEntity, Cells, Column, ColumnAt, ColumnEntity, Form, Scheduled, Section};
pub use error::{BindingProblem, CellsProblem, ColumnProblem, Error};
pub use host::{GAME, Host, HostMetrics, HostOptions, OnDamage, Peeked, Saved, Writes};
pub use queue::{Answer, Done, Queue};
