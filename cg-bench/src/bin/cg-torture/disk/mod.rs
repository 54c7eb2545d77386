//! A file system in memory that records what is done to it, lets one call fail, and knows what a power cut may leave of it.

mod fault;
mod left;
mod mount;
mod op;
mod tree;
mod wire;

pub(crate) use fault::{Call, Fault};
pub(crate) use left::{Left, Manner};
pub(crate) use mount::{Mounted, Recording, Skipped};
pub(crate) use op::Op;
pub(crate) use tree::{Node, ROOT, Tree};
