//! `cargo xtask bench postgres`: builds and starts the program that measures worlds in PostgreSQL over a network.

use anyhow::{Context as _, Result};

use super::{AT_THE_END, Options, conditions, with_worlds};
use crate::context::Context;
use crate::postgres::{self, ADDRESS, stated_address};
use crate::setup::{self, Major};
use crate::{metadata, process::Tool};

/// The feature that compiles it, and what it is built from.
const PROGRAM: [&str; 7] =
    ["--release", "--package", "cg-bench", "--features", "postgres", "--bin", "cg-over-network"];

/// Runs it on the database that is stated, else on a test cluster that is removed afterwards unless it was there before.
pub(super) fn run(context: &Context, options: &Options) -> Result<()> {
    let environment = setup::prepare(context)?;
    // Nothing is measured while a compiler runs.
    environment.apply(context.cargo().arg("build").args(PROGRAM)).run()?;
    let metadata = metadata::stated(context)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    let tool = context.cargo().arg("run").args(PROGRAM).args(["--", "--disk", target]).args(&options.of);
    let tool = if options.quick { tool.arg("--quick") } else { tool };
    let tool = environment.apply(with_worlds(context, tool)?);
    if let Some(stated) = stated_address() {
        return measure(context, tool.env(ADDRESS, stated));
    }
    let major = Major::Distribution;
    let is_ours = !postgres::exists(context, major)?;
    let address = postgres::up(context, major, 3);
    let measured = address.and_then(|address| {
        let fail = postgres::fail_command(major)?;
        measure(context, tool.env(ADDRESS, address).args(["--fail", fail.as_str()]))
    });
    let removed = if is_ours { postgres::down(context, major) } else { Ok(()) };
    measured.and(removed)
}

fn measure(context: &Context, tool: Tool) -> Result<()> {
    tool.run()?;
    print!("\n{}", conditions(context, AT_THE_END));
    Ok(())
}
