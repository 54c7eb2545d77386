//! `cargo xtask oldest`: the pure crates compile with the oldest Rust that is promised.
//!
//! `msrv` and clippy read what is said of versions; a feature of the language that is newer is found by compiling alone.

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::metadata;
use crate::pure::PURE;
use crate::report::Outcome;
use crate::toolchain::{self, Needs};

/// Checks them, and `xtask`, which a contributor with that Rust starts first.
///
/// # Errors
/// One of them does not compile.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    let metadata = metadata::stated(context)?;
    let promised = metadata::package(&metadata, "xtask")?["rust_version"].as_str();
    let promised = promised.context("the workspace states no rust-version")?;
    if let Some(reason) = (Needs { toolchain: Some(promised), ..Needs::default() }).missing(context)? {
        return Ok(Outcome::Optional(reason));
    }
    let packages = PURE.iter().chain(&["xtask"]).flat_map(|package| ["--package", package]);
    toolchain::cargo(context, promised).args(["check", "--no-default-features"]).args(packages).run()?;
    Ok(Outcome::Passed)
}
