//! `cg schem`: schematics, looked at, put into worlds and taken out of them.

mod export;
mod import;
mod info;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cg_anvil::schem::{SchemFile, SchemFileError};
use cg_snapshot::schem::SchemError;
use clap::{Subcommand, ValueHint};

use crate::output::{Failure, Outcome, Output};

/// Look at Sponge schematics (.schem, versions 2 and 3), put them into worlds, and make them of worlds.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Info(info::Args),
    Import(import::Args),
    Export(export::Args),
}

pub(super) fn run(command: &Command, out: &Output) -> Result<Outcome, Failure> {
    match command {
        Command::Info(args) => info::run(args, out),
        Command::Import(args) => import::run(args, out),
        Command::Export(args) => export::run(args, out),
    }
}

/// The schematic that a command reads.
#[derive(Debug, clap::Args)]
struct FileArg {
    /// The schematic.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
}

impl FileArg {
    /// Reads the file through.
    fn read(&self) -> Result<SchemFile, Failure> {
        read(&self.file)
    }
}

fn read(file: &Path) -> Result<SchemFile, Failure> {
    SchemFile::read(file).map_err(|error| match &error {
        SchemFileError { source: SchemError::Io(source), .. } if source.kind() == ErrorKind::NotFound => {
            Failure::absent(error.to_string())
        }
        SchemFileError { source: SchemError::Io(_), .. } => Failure::usage(error.to_string()),
        _ => Failure::failed(error),
    })
}
