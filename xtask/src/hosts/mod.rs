//! `cargo xtask hosts [lib|c|go]…`: the library for other languages, and the hosts over it, built and tested.
//!
//! Each host is built by the tools of its own language, from `target/hosts`. A toolchain that is missing is named and
//! counted; in CI, and where `--require` names the host, it is a failure.

mod c;
mod go;
mod library;

use anyhow::Result;

use crate::context::Context;
use crate::report::{AfterFailure, Outcome, Report};
use crate::setup::{self, Environment};

/// What is built and tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Host {
    /// The library, its header and its pkg-config file, into `target/hosts`.
    Lib,
    /// C and C++: tests with sanitizers, kills, the example game, the package.
    C,
    /// Go: the wrapper, and the provider for dragonfly with its conformance and server tests.
    Go,
}

/// Which hosts, and how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// What is built and tested; all when left out.
    host: Vec<Host>,
    /// Fail if the toolchain of this host is missing.
    #[arg(long, value_delimiter = ',')]
    require: Vec<Host>,
    /// How often a process of each host is killed.
    #[arg(long, default_value_t = 5)]
    kills: u32,
    /// Optimise the library, as a server uses it. Without it, it is the one of the tests, with debug assertions.
    #[arg(long)]
    release: bool,
    /// Print costs of the optimised library beside those of Rust and of dragonfly's own provider, instead of the tests.
    #[arg(long)]
    bench: bool,
}

impl Options {
    /// All hosts, as CI tests them.
    pub(crate) const fn all() -> Self {
        Self { host: Vec::new(), require: Vec::new(), kills: 5, release: false, bench: false }
    }

    fn asks_for(&self, host: Host) -> bool {
        self.host.is_empty() || self.host.contains(&host)
    }
}

/// Builds and tests what is asked for.
///
/// # Errors
/// A build or a test failed, or a toolchain is missing that is required.
pub(crate) fn run(context: &Context, options: &Options) -> Result<()> {
    let environment = setup::prepare(context)?;
    let mut report = Report::new(context, AfterFailure::KeepGoing);
    steps(context, &environment, options, &mut report);
    report.finish()
}

/// The steps of a run.
pub(crate) fn steps(context: &Context, environment: &Environment, options: &Options, report: &mut Report) {
    let mut built = None;
    report.step("hosts: lib", || {
        built = Some(library::build(context, environment, options.release || options.bench)?);
        Ok(Outcome::Passed)
    });
    let Some(library) = built else { return };
    let (mut passed, mut failed, mut skipped) = (1, 0, 0);
    for (host, name) in [(Host::C, "hosts: c"), (Host::Go, "hosts: go")] {
        if !options.asks_for(host) {
            continue;
        }
        report.step(name, || {
            let outcome = match (host, options.bench) {
                (Host::Go, false) => go::test(context, &library, options.kills),
                (Host::Go, true) => go::bench(context, &library),
                (_, false) => c::test(context, &library, options.kills),
                (_, true) => c::bench(context, environment, &library),
            };
            match &outcome {
                Ok(Outcome::Passed) => passed += 1,
                Ok(_) => skipped += 1,
                Err(_) => failed += 1,
            }
            match outcome {
                Ok(Outcome::Missing(reason)) if options.require.contains(&host) => anyhow::bail!("{reason}"),
                outcome => outcome,
            }
        });
    }
    println!("\nhosts: {passed} passed, {failed} failed, {skipped} skipped");
}
