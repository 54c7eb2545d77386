//! Set-up on machines that are made of a few scripts: what is run there, and what a person is told; and the profiles.
#![allow(clippy::needless_raw_string_hashes, reason = "expect_test writes them")]

mod linker;
mod machine;
mod postgres;
#[path = "../../../testdata/profile.rs"]
mod profile;
mod profiles;
mod python;
mod setup;
mod units;
