//! Finding, decoding and caching chunks, alone, in boxes and in views of one state.

pub(crate) mod boxes;
pub(crate) mod cache;
pub(crate) mod chunk;
pub(crate) mod columns;
pub(crate) mod delta;
pub(crate) mod iterate;
pub(crate) mod reader;
pub(crate) mod square;
pub(crate) mod state;
pub(crate) mod values;
