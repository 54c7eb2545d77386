//! Everything that a user of this crate can see, in one binary.
#![allow(clippy::needless_raw_string_hashes, reason = "`UPDATE_EXPECT=1` writes them")]

mod arrival;
mod file;
mod laws;
mod made;
mod queue;
mod spec;
