//! Builds of one package and of the workspace have the same features, so that cargo compiles no crate for both.
//!
//! Cargo compiles a crate with the features that the packages of this build ask for. If another build asks for more, the crate and
//! all above it are compiled again. The mend is to name the feature in the workspace's `Cargo.toml`. The package whose tests need
//! a server is left out: beside it other crates have more features, in the tests of the workspace too.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::context::Context;
use crate::report::Outcome;
use crate::test::SERVED;

/// Packages that are built alone: `cargo build --release --package cg-cli`, and the demonstration.
const ALONE: [&str; 2] = ["cg-cli", "cg-bench"];

/// Compares the builds.
///
/// # Errors
/// A crate is compiled for a package with other features than for the workspace; all of them are named.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    // A build of the tool alone has no async runtime.
    let whole = crates(context, &["--workspace", "--exclude", SERVED])?;
    let mut twice = Vec::new();
    for package in ALONE {
        let alone = crates(context, &["--package", package])?;
        twice.extend(alone.difference(&whole).map(|one| format!("{one}, for {package} alone")));
    }
    ensure!(twice.is_empty(), "compiled twice, with other features for the workspace:\n{}", twice.join("\n"));
    println!("{} and the workspace compile every crate with the same features", ALONE.join(", "));
    Ok(Outcome::Passed)
}

/// The crates of a build with their versions and features.
fn crates(context: &Context, packages: &[&str]) -> Result<BTreeSet<String>> {
    let args = ["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p} with [{f}]"];
    let tree = context.cargo().args(args).args(packages).capture()?;
    Ok(tree
        .lines()
        .map(|line| line.trim_end_matches(" (*)").to_owned())
        .filter(|line| !line.is_empty())
        .collect())
}
