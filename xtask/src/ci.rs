//! `cargo xtask ci`: what CI runs and what a contributor runs, step by step, with a table at the end.

use anyhow::Result;

use crate::context::Context;
use crate::process::Tool;
use crate::program::Program;
use crate::report::{AfterFailure, Outcome, Report};
use crate::setup::Environment;
use crate::{
    api, bench, features, foreign, fuzz, hosts, layers, metadata, miri, msrv, oldest, powerset, pure, setup,
    spec, test, unused,
};

/// The steps, in the order in which they run: what fails fast comes first, and what only `--full` runs comes last.
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
    /// Every dependency that a manifest names is used.
    Unused,
    /// Clippy over all targets, and over cg-store without debug assertions; warnings denied.
    Clippy,
    /// Everything that `cargo xtask test` does; with `--full` in its long form.
    Test,
    /// The library for other languages, and the hosts in C, C++ and Go: built and tested.
    Hosts,
    /// Tables in docs/format against the decoders, and the names in docs/seeds.md.
    Spec,
    /// Rustdoc, with broken links denied.
    Docs,
    /// The public items against `docs/api`, where cargo-public-api is installed.
    Api,
    /// Licences, bans and sources of the dependencies, where cargo-deny is installed.
    Deny,
    /// The pure crates compile with the oldest Rust that is promised, where rustup has it.
    Oldest,
    /// The pure crates compile for other machines, where rustup has their standard library.
    Foreign,
    /// Clippy with every set of features.
    Powerset,
    /// Tests with other features: the pure crates where no C or C++ compiler can run, cg-format with the C library, the tool without PostgreSQL.
    Variants,
    /// Tests of the decoders in Miri, where rustup has it.
    Miri,
    /// A few seconds of fuzzing for each decoder.
    Fuzz,
    /// The tests over PostgreSQL, and their most important part over the next major version, where servers can be had.
    Postgres,
    /// Every benchmark once, unmeasured and unoptimised: the tests have compiled most of their crates.
    Bench,
}

/// Which steps.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// All steps, and the tests in their long form. Without it these are left out: oldest, foreign, powerset, variants, miri, fuzz smoke, postgres, bench smoke.
    #[arg(long)]
    full: bool,
    /// Leave these steps out.
    #[arg(long, value_delimiter = ',')]
    skip: Vec<Step>,
    /// Run these steps only, also those that need `--full`.
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
    let (mut environment, none) = (None, Environment::default());
    for step in <Step as clap::ValueEnum>::value_variants() {
        if let Some(reason) = options.left_out(*step) {
            report.left_out(name(*step), reason);
            continue;
        }
        if step.links_rocksdb() && environment.is_none() {
            // Late, so that a wrongly formatted file does not wait for a C++ build.
            report.step("set-up", || {
                environment = Some(setup::prepare(context)?);
                Ok(Outcome::Passed)
            });
        }
        let environment = environment.as_ref().unwrap_or(&none);
        run_step(context, *step, options.form(), environment, &mut report);
    }
    report.finish()
}

impl Options {
    /// The form of the tests.
    fn form(&self) -> test::Form {
        if self.full { test::Form::Long } else { test::Form::stated() }
    }

    /// Why a step is left out; `None` if it runs.
    fn left_out(&self, step: Step) -> Option<&'static str> {
        if !self.only.is_empty() {
            return (!self.only.contains(&step)).then_some("left out with --only");
        }
        if self.skip.contains(&step) {
            return Some("left out with --skip");
        }
        (step.is_of_full() && !self.full).then_some("left to --full")
    }
}

impl Step {
    /// Whether it is left to a full run: it takes minutes, and seldom finds what the other steps do not.
    fn is_of_full(self) -> bool {
        matches!(
            self,
            Self::Oldest
                | Self::Foreign
                | Self::Powerset
                | Self::Variants
                | Self::Miri
                | Self::Fuzz
                | Self::Postgres
                | Self::Bench
        )
    }

    fn links_rocksdb(self) -> bool {
        matches!(
            self,
            Self::Clippy
                | Self::Test
                | Self::Hosts
                | Self::Docs
                | Self::Api
                | Self::Powerset
                | Self::Variants
                | Self::Fuzz
                | Self::Postgres
                | Self::Bench
        )
    }
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Fmt => "fmt",
        Step::Layers => "layers",
        Step::Features => "features",
        Step::Msrv => "msrv",
        Step::Unused => "unused",
        Step::Clippy => "clippy",
        Step::Test => "test",
        Step::Hosts => "hosts",
        Step::Spec => "spec",
        Step::Docs => "docs",
        Step::Api => "api",
        Step::Deny => "deny",
        Step::Oldest => "oldest",
        Step::Foreign => "foreign",
        Step::Powerset => "powerset",
        Step::Variants => "variants",
        Step::Miri => "miri",
        Step::Fuzz => "fuzz smoke",
        Step::Postgres => "postgres",
        Step::Bench => "bench smoke",
    }
}

fn run_step(context: &Context, step: Step, form: test::Form, environment: &Environment, report: &mut Report) {
    let cargo = || environment.apply(context.cargo());
    let passes = |tool: Tool| tool.run().map(|()| Outcome::Passed);
    match step {
        Step::Fmt => report.step(name(step), || passes(cargo().args(["fmt", "--all", "--check"]))),
        Step::Layers => report.step(name(step), || layers::run(context)),
        Step::Features => report.step(name(step), || features::run(context)),
        Step::Msrv => report.step(name(step), || msrv::run(context)),
        Step::Unused => report.step(name(step), || unused::run(context)),
        Step::Oldest => report.step(name(step), || oldest::run(context)),
        Step::Foreign => report.step(name(step), || foreign::run(context)),
        Step::Powerset => report.step(name(step), || powerset::run(context, environment)),
        Step::Variants => report.step(name(step), || pure::variants(context, environment)),
        Step::Api => report.step(name(step), || api::run(context, environment, &api::Options::default())),
        Step::Miri => report.step(name(step), || miri::run(context)),
        Step::Fuzz => report.step(name(step), || fuzz::run(context, &fuzz::Options::smoke())),
        Step::Clippy => report.step(name(step), || {
            let deny_warnings = ["--", "-D", "warnings"];
            // The features have code of their own, over crates that are in the workspace anyway.
            let features = "cg-bench/postgres,cg-cli/postgres";
            let all = ["clippy", "--workspace", "--all-targets", "--features", features];
            passes(cargo().args(all).args(deny_warnings))?;
            // Released code has no debug assertions; cg-store, and no other crate, then compiles other code for its locks.
            let released = "profile.dev.package.cg-store.debug-assertions=false";
            let tool = cargo().args(["clippy", "--config", released, "--lib", "--package", "cg-store"]);
            // It asks for what `syn` has in the workspace, so that the crates above `syn` are not compiled again.
            passes(tool.args(["--bins", "--package", "xtask"]).args(deny_warnings))
        }),
        Step::Test => test::everything(context, environment, report, form),
        Step::Hosts => hosts::steps(context, environment, &hosts::Options::all(), report),
        Step::Spec => report.step(name(step), || spec::run(context)),
        Step::Docs => report.step(name(step), || {
            passes(cargo().args(["doc", "--no-deps", "--workspace"]).env("RUSTDOCFLAGS", "-D warnings"))
        }),
        Step::Postgres => test::over_postgresql(context, environment, report, form),
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
        .args(test::AS_TESTED)
        .args(targets);
    let tool = tool.args(["--", "--test"]);
    environment.apply(bench::with_worlds(context, tool)?).run()?;
    Ok(Outcome::Passed)
}

fn deny(context: &Context) -> Result<Outcome> {
    if let Some(reason) = (Program { name: "cargo-deny", version: None }).missing(context) {
        return Ok(Outcome::Optional(reason));
    }
    context.cargo().args(["deny", "check", "licenses", "bans", "sources"]).run()?;
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _, ValueEnum as _};

    use super::{Options, Step, name};

    /// The names of the steps that run.
    fn run(args: &[&str]) -> Vec<&'static str> {
        let command = Options::augment_args(clap::Command::new("ci"));
        let matches = command.get_matches_from([&["ci"], args].concat());
        let options = Options::from_arg_matches(&matches).expect("clap made them");
        let steps = Step::value_variants().iter().copied();
        steps.filter(|step| options.left_out(*step).is_none()).map(name).collect()
    }

    const USUAL: [&str; 12] = [
        "fmt", "layers", "features", "msrv", "unused", "clippy", "test", "hosts", "spec", "docs", "api",
        "deny",
    ];
    const FULL: [&str; 8] =
        ["oldest", "foreign", "powerset", "variants", "miri", "fuzz smoke", "postgres", "bench smoke"];

    #[test]
    fn a_full_run_has_all_steps_and_another_the_fast_ones() {
        assert_eq!(run(&[]), USUAL);
        assert_eq!(run(&["--full"]), [&USUAL[..], &FULL].concat());
        assert_eq!(run(&["--skip", "test"]), [&USUAL[..6], &USUAL[7..]].concat());
    }

    #[test]
    fn a_step_can_be_run_alone_with_and_without_full() {
        for full in [&[][..], &["--full"]] {
            assert_eq!(run(&[&["--only", "miri,spec"], full].concat()), ["spec", "miri"]);
        }
    }

    #[test]
    fn the_help_names_the_steps_of_a_full_run() {
        let command = Options::augment_args(clap::Command::new("ci"));
        let full = command.get_arguments().find(|arg| arg.get_id() == "full").expect("the option");
        let help = full.get_help().expect("its help").to_string();
        assert!(help.ends_with(&format!("left out: {}", FULL.join(", "))), "{help}");
    }
}
