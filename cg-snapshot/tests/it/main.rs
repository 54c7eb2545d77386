//! Schematics, seen from outside: made ones, real ones, and broken ones.

#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

mod broken;
mod laws;
mod made;
mod real;
