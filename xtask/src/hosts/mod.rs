//! `cargo xtask hosts`: what programs in other languages need.

mod library;

use anyhow::Result;
use clap::Subcommand;

use crate::context::Context;

/// What is built for programs in other languages.
#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// Build the C library into target/hosts, with its header and pkg-config file.
    Lib {
        /// Optimised, and without debug assertions.
        #[arg(long)]
        release: bool,
    },
}

/// Does it.
///
/// # Errors
/// What a build says.
pub(crate) fn run(context: &Context, action: &Action) -> Result<()> {
    match action {
        Action::Lib { release } => {
            let dir = library::build(context, *release)?;
            println!("the library is in {}", dir.display());
            Ok(())
        }
    }
}
