//! Set-up: finds or installs what RocksDB needs, and says what is done and why.

mod apt;
mod cache;
mod compiler;
mod libclang;
mod pip;
mod postgresql;
mod remedy;
mod rocksdb;

use anyhow::Result;

pub(crate) use cache::{Lock, fingerprint};
pub(crate) use pip::{Venv, ensure_python};
pub(crate) use postgresql::{Major, Postgresql};

use crate::context::Context;
use crate::process::Tool;

/// The variables with which every `cargo` command of a run is started, so that all share one archive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    vars: Vec<(String, String)>,
}

impl Environment {
    /// Adds a variable.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.vars.push((name.to_owned(), value.into()));
    }

    /// Gives the variables to a command.
    pub(crate) fn apply(&self, tool: Tool) -> Tool {
        tool.envs(&self.vars)
    }

    /// The variables as lines for a POSIX shell.
    pub(crate) fn exports(&self) -> String {
        let quoted = |value: &str| value.replace('\'', r"'\''");
        self.vars.iter().map(|(name, value)| format!("export {name}='{}'\n", quoted(value))).collect()
    }
}

/// Finds or makes everything that a build of the whole workspace needs, the lightest way first.
///
/// Costs well under a second when all is there; compiles RocksDB once per machine and version.
pub(crate) fn prepare(context: &Context) -> Result<Environment> {
    find_or_make(context).map_err(|error| remedy::explain(error, &context.cache))
}

fn find_or_make(context: &Context) -> Result<Environment> {
    let mut environment = Environment::default();
    let compiler = compiler::ensure(context)?;
    libclang::ensure(context, &mut environment)?;
    rocksdb::ensure(context, &compiler, &mut environment)?;
    Ok(environment)
}

/// One line about what set-up found or does.
fn say(line: impl AsRef<str>) {
    eprintln!("set-up: {}", line.as_ref());
}
