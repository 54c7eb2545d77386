//! `cargo xtask demo [PATH]`: a world that one can look at, made from a seed or imported from a save.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::setup;

/// Sets up, then builds and runs the demonstration, with a save to import if one is named.
pub(crate) fn run(context: &Context, save: Option<&Path>) -> Result<()> {
    // Resolved first: the demonstration runs in the workspace root, and a wrong path should not wait for a build.
    let save = save.map(|path| path.canonicalize().with_context(|| format!("no save at {}", path.display())));
    let save = save.transpose()?;
    let environment = setup::prepare(context)?;
    let tool = context.cargo().args(["run", "--release", "--package", "cg-bench", "--bin", "cg-demo", "--"]);
    environment.apply(tool.args(save)).run()
}
