#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod binding;
mod codec;
mod column;
mod error;
mod host;
mod place;
mod problem;
mod queue;

pub use binding::{BLOCK_ENTITY, Binding, ENTITY_NBT, Known, KnownBiome, KnownBlock};
pub use codec::OnDamage;
pub use column::{BlockEntity, Cells, Column, ColumnEntity, Form, Scheduled, Section};
pub use error::Error;
pub use host::{Host, HostMetrics, HostOptions, Peeked, Saved, Writes};
pub use place::ColumnAt;
pub use problem::{BindingProblem, CellsProblem, ColumnProblem};
pub use queue::{Answer, Done, Queue};
