//! `cargo xtask spec`: the tables in `docs/format` against what the decoders really read, and the names in
//! `docs/seeds.md` against files, tests, public items and commands.

mod claims;
mod items;

use anyhow::{Result, ensure};

use crate::context::Context;
use crate::counted::passed_by;
use crate::report::Outcome;
use crate::test::selection::SHORT;

/// Checks the names, and runs the test modules `spec` of the crates that own stored layouts.
///
/// # Errors
/// A name stands for nothing, a table and a decoder differ, or no test ran, which would prove nothing.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    let counts = claims::check(&context.root)?;
    let states: Vec<_> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    println!("every name in docs/seeds.md is there; its rows: {}", states.join(", "));
    // The packages of one run of all tests, so that nothing is compiled again for them.
    let packages = SHORT.iter().flat_map(|package| ["--package", package]);
    let tool = context.cargo().args(["test", "--test", "it"]).args(packages).args(["--", "spec"]);
    let line = tool.line();
    let count = passed_by(&tool)?;
    ensure!(count > 0, "`{line}` ran no test: tests/it has no module `spec`, so the tables are unchecked");
    println!("{count} spec tests passed");
    Ok(Outcome::Passed)
}
