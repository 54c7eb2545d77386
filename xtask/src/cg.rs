//! `cg` as the tests have it: optimised, with debug assertions and overflow checks.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::context::Context;
use crate::process::Tool;
use crate::setup::Environment;

/// The compiled program.
#[derive(Debug)]
pub(crate) struct Cg {
    program: PathBuf,
}

impl Cg {
    /// Compiles it in the profile `dev`, in which it is optimised.
    ///
    /// # Errors
    /// It does not compile.
    pub(crate) fn build(context: &Context, environment: &Environment) -> Result<Self> {
        let build = environment.apply(context.cargo().args(["build", "--package", "cg-cli", "--bin", "cg"]));
        build.clone().run()?;
        Self::built_by(build)
    }

    /// The one that a `cargo` command made that ended well: a build, or a run of the tests of the command line, which start it.
    ///
    /// # Errors
    /// The command made none.
    pub(crate) fn built_by(cargo: Tool) -> Result<Self> {
        Ok(Self { program: program_built_by(cargo, "cg")? })
    }

    /// One call of it.
    pub(crate) fn tool(&self, command: &str) -> Tool {
        Tool::new(&self.program).arg(command)
    }
}

/// The program of a name that a `cargo` command made that ended well.
///
/// # Errors
/// The command made none.
pub(crate) fn program_built_by(cargo: Tool, name: &str) -> Result<PathBuf> {
    let messages = cargo.args(["--message-format", "json"]).capture()?;
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_it = |message: &Value| message["target"]["name"] == name && message["profile"]["test"] == false;
    let mut programs =
        messages.filter(is_it).filter_map(|message| Some(message["executable"].as_str()?.into()));
    programs.next().with_context(|| format!("cargo names no program `{name}`"))
}
