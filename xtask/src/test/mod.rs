//! `cargo xtask test`: set-up, then every test there is, then the proof that the pure crates need no C or C++.

mod postgres;
mod programs;
mod scratch;
pub(crate) mod selection;
mod slowest;

use std::env;

use anyhow::{Context as _, Result};

use crate::cg::{Cg, program_built_by};
use crate::context::Context;
use crate::postgres::{ADDRESS, stated_address};
use crate::report::{AfterFailure, Outcome, Report};
use crate::setup::Environment;
use crate::{independent, pure, setup, torture};

use postgres::Lane;
use scratch::Scratch;
use selection::Selection;
pub(crate) use selection::{AS_TESTED, SERVED};

/// The targets of `cargo test`. Not `--all-targets`: that would run the benchmarks too, which `ci` does in their own step.
const TARGETS: [&str; 4] = ["--lib", "--bins", "--tests", "--examples"];

/// Tells tests that have a long form to take it, as `testdata/long.rs` reads it.
const LONG: &str = "CG_LONG_TESTS";

/// How many cases a property has of the crates that are tested unoptimised; proptest's own number is 256. To proptest the
/// variable counts for more than a number that a property states: other crates have properties of two cases on the disk.
const CASES: [&str; 2] = ["PROPTEST_CASES", "64"];

/// How much each test tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The part that fits into the time of a run of CI.
    Usual,
    /// All of it, for `ci --full`.
    Long,
}

impl Form {
    /// The long one where `CG_LONG_TESTS` is set.
    pub(crate) fn stated() -> Self {
        if env::var_os(LONG).is_some() { Self::Long } else { Self::Usual }
    }

    fn apply(self, environment: &mut Environment) {
        if self == Self::Long {
            environment.set(LONG, "1");
        }
    }

    /// The variable that limits the cases of a run's properties, if it does.
    fn cases(self, run: &[String]) -> Option<[&'static str; 2]> {
        let is_limited = self == Self::Usual && env::var_os(CASES[0]).is_none();
        (is_limited && selection::is_unoptimised(run)).then_some(CASES)
    }
}

/// Which tests, and how.
#[derive(Debug, Default, clap::Args)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    lane: Option<Lane>,
    /// Only the tests and doc tests of this package; may be given more than once.
    #[arg(long = "package", short, value_name = "NAME")]
    packages: Vec<String>,
    /// Only packages with files that differ from the branch `main`, and all that depend on them; everything when such a
    /// file is in no package, or there is no `main`.
    #[arg(long, conflicts_with = "packages")]
    changed: bool,
    /// Run the tests one after the other, and list the twenty slowest.
    #[arg(long)]
    slowest: bool,
    /// Run the later steps also when one failed.
    #[arg(long)]
    keep_going: bool,
    /// Parts of the names of tests, given to the test programs; only they run then.
    filter: Vec<String>,
}

/// Runs the tests.
///
/// # Errors
/// A step failed, or a package is unknown.
pub(crate) fn run(context: &Context, options: &Options) -> Result<()> {
    if let Some(lane) = &options.lane {
        return postgres::run(context, lane);
    }
    let selection = match (options.changed, &options.packages[..]) {
        (true, _) => Selection::changed(context)?,
        (false, []) => Selection::Everything,
        (false, names) => Selection::named(context, names)?,
    };
    if selection.is_empty() {
        println!("no package is different: there is nothing to test");
        return Ok(());
    }
    let environment = setup::prepare(context)?;
    let after_failure = if options.keep_going { AfterFailure::KeepGoing } else { AfterFailure::Stop };
    let mut report = Report::new(context, after_failure);
    steps(context, &environment, &mut report, &selection, options, Form::stated());
    report.finish()
}

/// All steps, for `ci` too.
pub(crate) fn everything(context: &Context, environment: &Environment, report: &mut Report, form: Form) {
    steps(context, environment, report, &Selection::Everything, &Options::default(), form);
}

/// The tests over PostgreSQL of both versions, for `ci --full`.
pub(crate) fn over_postgresql(context: &Context, environment: &Environment, report: &mut Report, form: Form) {
    let mut environment = environment.clone();
    form.apply(&mut environment);
    postgres::over_both(context, &environment, report);
}

fn steps(
    context: &Context,
    environment: &Environment,
    report: &mut Report,
    selection: &Selection,
    options: &Options,
    form: Form,
) {
    let mut environment = environment.clone();
    form.apply(&mut environment);
    if *selection == Selection::Everything && stated_address().is_none() {
        // Tests that need a server then do nothing, and do not fail in CI: another step has one.
        environment.set(ADDRESS, "");
    }
    report.step("real worlds", || match context.worlds()? {
        Some(dir) => {
            println!("found in {}", dir.display());
            environment.set("CG_WORLDS", dir.to_string_lossy());
            Ok(Outcome::Passed)
        }
        None => Ok(Outcome::Missing(
            "no folder ../shared/worlds and no CG_WORLDS; every test over real saves is left out".to_owned(),
        )),
    });
    let mut runs = Vec::new();
    report.step("tests: compile", || {
        for run in selection.runs(context)? {
            let tool = environment.apply(context.cargo().arg("test").args(&run).args(TARGETS));
            let tool = match form.cases(&run) {
                Some([name, count]) => tool.env(name, count),
                None => tool,
            };
            tool.clone().arg("--no-run").run()?;
            runs.push(tool);
        }
        Ok(Outcome::Passed)
    });
    report.step("tests: run", || {
        let scratch = match form {
            Form::Usual => Scratch::in_memory(),
            Form::Long => Err("the long form is that on the disk".to_owned()),
        };
        let runs = match &scratch {
            Ok(scratch) => {
                println!("what the tests write is in {}, in memory", scratch.path().display());
                runs.iter().map(|tool| tool.clone().env("TMPDIR", scratch.path())).collect()
            }
            Err(why) => {
                println!("what the tests write is on the disk: {why}");
                runs.clone()
            }
        };
        if options.slowest {
            slowest::list(&runs, &options.filter)?;
        } else {
            runs.iter().try_for_each(|tool| tool.clone().arg("--").args(&options.filter).run())?;
        }
        Ok(Outcome::Passed)
    });
    if options.slowest || !options.filter.is_empty() {
        return;
    }
    report.step("doc tests", || {
        let Some(packages) = selection.with_library(context)? else {
            return Ok(Outcome::Optional("no package of these has a library".to_owned()));
        };
        let tool = context.cargo().args(["test", "--profile", "dev", "--doc"]).args(packages);
        environment.apply(tool).run()?;
        Ok(Outcome::Passed)
    });
    if *selection == Selection::Everything {
        let size: &[_] = if form == Form::Usual { &["--ci"] } else { &[] };
        for (name, torment) in
            [("power cuts", "power"), ("power cuts of disks", "disks"), ("failing calls", "calls")]
        {
            report.step(name, || {
                let tests = runs.first().context("the tests were not compiled")?;
                let program = program_built_by(tests.clone().arg("--no-run"), "cg-torture")?;
                let scratch =
                    Scratch::in_memory().inspect_err(|why| println!("it writes on the disk: {why}"));
                torture::on_a_file_system(&program, torment, size, scratch.as_ref().ok().map(Scratch::path))
            });
        }
        report.step("exports before an independent reader", || {
            let tests = runs.first().context("the tests were not compiled")?;
            independent::run(context, &Cg::built_by(tests.clone().arg("--no-run"))?)
        });
        report.step("no C or C++", || pure::prove(context, &environment));
        report.step("tests over PostgreSQL", || Ok(postgres::among_all()));
    }
}
