//! `cg completions`: a script with which a shell completes this tool's command line.

use std::io::{self, Write as _};

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::output::{Failure, Outcome};

/// Print a script with which a shell completes the command line of `cg`.
///
/// For bash: `cg completions bash > ~/.local/share/bash-completion/completions/cg`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut super::Args::command(), "cg", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(Outcome::Good),
    }
}
