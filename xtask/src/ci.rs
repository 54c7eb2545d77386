//! `cargo xtask ci`: what CI runs and what a contributor runs, step by step, with a table at the end.

use anyhow::Result;

use crate::context::Context;
use crate::process::Tool;
use crate::report::{AfterFailure, Outcome, Report};
use crate::setup::Environment;
use crate::{
    api, bench, features, foreign, fuzz, layers, metadata, miri, msrv, oldest, powerset, setup, spec, test,
};

/// The steps, in the order in which they run: what fails fast comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Step {
    /// `cargo fmt --check`.
    Fmt,
    /// Dependencies and words that must stay in their layer.
    Layers,
    /// No crate is compiled twice.
    Features,
    /// No dependency asks for a newer Rust than the workspace promises.
    Msrv,
    /// The pure crates compile with the oldest Rust that is promised, where rustup has it.
    Oldest,
    /// The pure crates compile for other machines, where rustup has their standard library.
    Foreign,
    /// Clippy over all targets, and without debug assertions; warnings denied.
    Clippy,
    /// Clippy with every set of features.
    Powerset,
    /// Everything that `cargo xtask test` does.
    Test,
    /// Tables in docs/format against the decoders.
    Spec,
    /// Rustdoc, with broken links denied.
    Docs,
    /// The public items against `docs/api`, where cargo-public-api is installed.
    Api,
    /// Tests of the decoders in Miri, where rustup has it.
    Miri,
    /// A few seconds of fuzzing for each decoder.
    Fuzz,
    /// Every benchmark once, unmeasured and unoptimised: the tests have compiled most of their crates.
    Bench,
    /// Licences, bans and sources of the dependencies, where cargo-deny is installed.
    Deny,
}

/// Which steps.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Leave these steps out.
    #[arg(long, value_delimiter = ',')]
    skip: Vec<Step>,
    /// Run these steps only.
    #[arg(long, value_delimiter = ',', conflicts_with = "skip")]
    only: Vec<Step>,
    /// Run the later steps also when one failed.
    #[arg(long)]
    keep_going: bool,
}

/// Runs the steps.
///
/// # Errors
/// One or more failed; in CI also those that something missing made impossible.
pub(crate) fn run(context: &Context, options: &Options) -> Result<()> {
    let after_failure = if options.keep_going { AfterFailure::KeepGoing } else { AfterFailure::Stop };
    let mut report = Report::new(context, after_failure);
    let steps = <Step as clap::ValueEnum>::value_variants();
    let wanted = |step: &Step| options.only.is_empty() || options.only.contains(step);
    let mut environment = None;
    for step in steps.iter().filter(|step| wanted(step)) {
        if options.skip.contains(step) {
            report.step(name(*step), || Ok(Outcome::Optional("left out with --skip".to_owned())));
            continue;
        }
        if step.links_rocksdb() && environment.is_none() {
            // Late, so that a wrongly formatted file does not wait for a C++ build.
            report.step("set-up", || {
                environment = Some(setup::prepare(context)?);
                Ok(Outcome::Passed)
            });
        }
        run_step(context, *step, environment.as_ref().unwrap_or(&Environment::default()), &mut report);
    }
    report.finish()
}

impl Step {
    fn links_rocksdb(self) -> bool {
        matches!(
            self,
            Self::Clippy | Self::Powerset | Self::Test | Self::Docs | Self::Api | Self::Fuzz | Self::Bench
        )
    }
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Fmt => "fmt",
        Step::Layers => "layers",
        Step::Features => "features",
        Step::Msrv => "msrv",
        Step::Oldest => "oldest",
        Step::Foreign => "foreign",
        Step::Clippy => "clippy",
        Step::Powerset => "powerset",
        Step::Test => "test",
        Step::Spec => "spec",
        Step::Docs => "docs",
        Step::Api => "api",
        Step::Miri => "miri",
        Step::Fuzz => "fuzz smoke",
        Step::Bench => "bench smoke",
        Step::Deny => "deny",
    }
}

fn run_step(context: &Context, step: Step, environment: &Environment, report: &mut Report) {
    let cargo = || environment.apply(context.cargo());
    let passes = |tool: Tool| tool.run().map(|()| Outcome::Passed);
    match step {
        Step::Fmt => report.step(name(step), || passes(cargo().args(["fmt", "--all", "--check"]))),
        Step::Layers => report.step(name(step), || layers::run(context)),
        Step::Features => report.step(name(step), || features::run(context)),
        Step::Msrv => report.step(name(step), || msrv::run(context)),
        Step::Oldest => report.step(name(step), || oldest::run(context)),
        Step::Foreign => report.step(name(step), || foreign::run(context)),
        Step::Powerset => report.step(name(step), || powerset::run(context, environment)),
        Step::Api => report.step(name(step), || api::run(context, environment, &api::Options::default())),
        Step::Miri => report.step(name(step), || miri::run(context)),
        Step::Fuzz => report.step(name(step), || fuzz::run(context, &fuzz::Options::smoke())),
        Step::Clippy => report.step(name(step), || {
            let deny_warnings = ["--", "-D", "warnings"];
            passes(cargo().args(["clippy", "--workspace", "--all-targets"]).args(deny_warnings))?;
            // Released code has no debug assertions; cg-store then compiles other code for its locks.
            let released = "profile.dev.package.cg-store.debug-assertions=false";
            passes(cargo().args(["clippy", "--config", released, "--workspace"]).args(deny_warnings))
        }),
        Step::Test => test::everything(context, environment, report),
        Step::Spec => report.step(name(step), || spec::run(context)),
        Step::Docs => report.step(name(step), || {
            passes(cargo().args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))
        }),
        Step::Bench => report.step(name(step), || bench_smoke(context, environment)),
        Step::Deny => report.step(name(step), || deny(context)),
    }
}

fn bench_smoke(context: &Context, environment: &Environment) -> Result<Outcome> {
    let metadata = metadata::stated(context)?;
    let benches = metadata::targets(metadata::package(&metadata, "cg-bench")?, "bench");
    if benches.is_empty() {
        return Ok(Outcome::Optional("cg-bench has no benchmark".to_owned()));
    }
    let targets = benches.iter().flat_map(|bench| ["--bench", bench]);
    let tool = context
        .cargo()
        .args(["bench", "--profile", "dev", "--package", "cg-bench"])
        .args(bench::PEERS)
        .args(targets);
    let tool = tool.args(["--", "--test"]);
    environment.apply(bench::with_worlds(context, tool)?).run()?;
    Ok(Outcome::Passed)
}

fn deny(context: &Context) -> Result<Outcome> {
    if !Tool::new("cargo-deny").arg("--version").succeeds() {
        return Ok(Outcome::Optional(
            "cargo-deny is not installed (a minute: cargo install cargo-deny --locked --debug)".to_owned(),
        ));
    }
    context.cargo().args(["deny", "check", "licenses", "bans", "sources"]).run()?;
    Ok(Outcome::Passed)
}
