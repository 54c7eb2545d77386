//! Folding of deltas into the rows of their chunks.

mod fold;
mod schedule;

pub(crate) use schedule::{FoldSchedule, Which};
