//! Deltas in maintenance: they are folded into the rows of their chunks.

mod fold;
mod waiting;

pub(crate) use waiting::{Unsettled, Which};
