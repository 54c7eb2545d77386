//! `cargo xtask spec`: the tables in `docs/format` against what the decoders really read.

use anyhow::{Result, ensure};

use crate::context::Context;
use crate::counted::passed_by;
use crate::report::Outcome;
use crate::test::selection::SHORT;

/// Runs the test modules `spec` of the crates that own stored layouts.
///
/// # Errors
/// A table and a decoder differ, or no test ran, which would prove nothing.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    // The packages of one run of all tests, so that nothing is compiled again for them.
    let packages = SHORT.iter().flat_map(|package| ["--package", package]);
    let tool = context.cargo().args(["test", "--test", "it"]).args(packages).args(["--", "spec"]);
    let line = tool.line();
    let count = passed_by(&tool)?;
    ensure!(count > 0, "`{line}` ran no test: tests/it has no module `spec`, so the tables are unchecked");
    println!("{count} spec tests passed");
    Ok(Outcome::Passed)
}
