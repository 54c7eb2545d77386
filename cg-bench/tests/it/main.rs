//! The programs of this crate, run as a user would.

mod tiers;
mod torture;
