//! `cargo xtask test postgres`: the tests over PostgreSQL, on a test cluster that is made for them.

use std::env;

use anyhow::{Context as _, Result, bail};

use super::TARGETS;
use super::programs::{self, Program};
use super::scratch::Scratch;
use super::selection::{self, SERVED, Selection};
use crate::context::Context;
use crate::postgres::{self, ADDRESS, stated_address};
use crate::report::{AfterFailure, Outcome, Report};
use crate::setup::{self, Environment, Major, Postgresql};

/// The tool, and the parts of the names of its tests of addresses.
const TOOL: &str = "cg-cli";
const TOOL_TESTS: [&str; 5] =
    ["postgres::", "postgres_segments::", "postgres_sync::", "place::", "addresses::"];

/// What is compiled where the other tests were not, by one selection of packages: each alone would compile `ring`, tokio and the
/// store with features of its own.
const SELECTED: [&str; 8] =
    ["--profile", "dev", "--package", SERVED, "--package", TOOL, "--features", "cg-cli/postgres"];

/// The test program in which nodes fail.
const FAILING: &str = "failover";

/// The variable from which they have the command that lets a node of the cluster fail.
const FAIL: &str = "CG_PG_FAIL";

/// The variables of the numbers of failovers and of cut connections, and what they are by default.
const COUNTS: [[&str; 2]; 2] = [["CG_PG_FAILOVERS", "10"], ["CG_PG_CUTS", "200"]];

/// Tests that need more than this program sets up by itself.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Lane {
    /// The tests over PostgreSQL: on the database that `CG_PG_URL` names, else on a test cluster that is removed afterwards unless it was there before.
    Postgres {
        /// Which PostgreSQL, as for `cargo xtask postgres up`.
        #[arg(long, default_value = "15")]
        major: Major,
        /// Parts of the names of tests; only they run then.
        filter: Vec<String>,
    },
}

/// The tests of one major version: parts of their names. All run where a list is empty.
#[derive(Debug, Default)]
struct Part {
    engine: Vec<String>,
    tool: Vec<String>,
    failing: Vec<String>,
    /// Whether the cluster itself is checked before.
    checks_cluster: bool,
}

impl Part {
    fn all() -> Self {
        let tool = TOOL_TESTS.map(str::to_owned).to_vec();
        Self { tool, checks_cluster: stated_address().is_none(), ..Self::default() }
    }

    fn filtered(filter: &[String]) -> Self {
        let [engine, tool, failing] = [(); 3].map(|()| filter.to_vec());
        Self { engine, tool, failing, checks_cluster: false }
    }

    /// What another version is tried with: the promises of engines, those of shared rows, the plans of the statements, the dump of
    /// the schema, copies, and failovers.
    fn of_second() -> Self {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            engine: names(&["promises::", "shared::", "plans::", "golden::"]),
            tool: names(&["postgres::a_copied_world", "postgres::a_killed_copy"]),
            failing: names(&["failovers::"]),
            checks_cluster: false,
        }
    }

    /// Sees that each name is that of a test.
    ///
    /// # Errors
    /// One is not.
    fn ensure_there(&self, compiled: &[Program]) -> Result<()> {
        let is_failing = |program: &&&Program| program.is(FAILING);
        let (failing, engine): (Vec<_>, Vec<_>) =
            programs::of(compiled, SERVED)?.into_iter().partition(|program| is_failing(&program));
        let tool = programs::of(compiled, TOOL)?;
        for (programs, names) in [(engine, &self.engine), (tool, &self.tool), (failing, &self.failing)] {
            let lists = programs.iter().map(|program| program.tool().arg("--list").capture());
            let lists = lists.collect::<Result<Vec<_>>>()?.concat();
            if let Some(unknown) = names.iter().find(|name| !lists.contains(*name)) {
                bail!("no test has `{unknown}` in its name");
            }
        }
        Ok(())
    }
}

/// Runs the lane.
///
/// # Errors
/// The workspace has no such tests, no cluster could be made, or a test failed.
pub(super) fn run(context: &Context, lane: &Lane) -> Result<()> {
    let Lane::Postgres { major, filter } = lane;
    let environment = setup::prepare(context)?;
    let mut report = Report::new(context, AfterFailure::Stop);
    let part = if filter.is_empty() { Part::all() } else { Part::filtered(filter) };
    // In CI all tests were compiled before.
    let compiled = compile(context, &environment, &mut report, context.is_ci());
    if filter.is_empty() {
        report
            .step("tests over PostgreSQL: names", || part.ensure_there(&compiled).map(|()| Outcome::Passed));
    }
    over(context, &environment, &mut report, &compiled, *major, &part);
    report.finish()
}

/// All tests over the first version and a part of them over the second one, with the same programs.
pub(super) fn over_both(context: &Context, environment: &Environment, report: &mut Report) {
    let compiled = compile(context, environment, report, true);
    let second = (Major::Eighteen, Part::of_second());
    for (major, part) in [(Major::Distribution, Part::all()), second] {
        let mut is_there = false;
        report.step(&named(major, "server programs"), || {
            if major == Major::Eighteen && stated_address().is_some() {
                return Ok(Outcome::Optional(format!("{ADDRESS} is set: nothing is started")));
            }
            part.ensure_there(&compiled)?;
            if stated_address().is_none()
                && let Err(error) = Postgresql::ensure(context, major)
            {
                return Ok(Outcome::Missing(format!("{error:#}")));
            }
            is_there = true;
            Ok(Outcome::Passed)
        });
        if is_there {
            over(context, environment, report, &compiled, major, &part);
        }
    }
}

/// The step of a run of all tests, which starts no server.
pub(super) fn among_all() -> Outcome {
    match stated_address() {
        Some(_) => {
            println!("they ran with the others, on the database that {ADDRESS} names");
            Outcome::Passed
        }
        None => Outcome::Optional(format!("{ADDRESS} is not set; `cargo xtask test postgres` runs them")),
    }
}

/// Compiles the programs; after the other tests by their command, which has them already.
fn compile(
    context: &Context,
    environment: &Environment,
    report: &mut Report,
    is_after: bool,
) -> Vec<Program> {
    let mut compiled = Vec::new();
    report.step("tests over PostgreSQL: compile", || {
        let selected = if is_after {
            let runs = Selection::Everything.runs(context)?;
            let run = runs.into_iter().find(|run| selection::is_served(run));
            run.with_context(|| format!("the workspace has no package {SERVED}"))?
        } else {
            SELECTED.map(str::to_owned).to_vec()
        };
        let tests = context.cargo().arg("test").args(selected).args(TARGETS);
        compiled = Program::compiled_by(environment.apply(tests))?;
        Ok(Outcome::Passed)
    });
    compiled
}

fn named(major: Major, what: &str) -> String {
    format!("PostgreSQL {}: {what}", major.name())
}

/// Runs tests over a server, and removes the cluster that was made for them.
fn over(
    context: &Context,
    environment: &Environment,
    report: &mut Report,
    compiled: &[Program],
    major: Major,
    part: &Part,
) {
    let mut environment = environment.clone();
    if part.checks_cluster {
        report.step(&named(major, "failovers of the cluster"), || check(context, &environment, major));
    }
    let mut is_ours = false;
    report.step(&named(major, "the server"), || {
        if let Some(stated) = stated_address() {
            println!("{ADDRESS} is set: nothing is started");
            environment.set(ADDRESS, stated);
        } else {
            is_ours = !postgres::exists(context, major)?;
            environment.set(ADDRESS, postgres::up(context, major, 3)?);
        }
        Ok(Outcome::Passed)
    });
    report.step(&named(major, "tests"), || engine(compiled, &environment, &part.engine));
    report.step(&named(major, "the tool"), || tool(compiled, &environment, &part.tool));
    let failing = || fail(compiled, environment.clone(), major, &part.failing);
    report.step(&named(major, "failovers and cuts beneath worlds"), failing);
    if is_ours {
        // Also after a failure.
        let removed = postgres::down(context, major);
        report.step(&named(major, "the cluster is removed"), || removed.map(|()| Outcome::Passed));
    }
}

/// The tests of the engine beneath which nothing fails.
fn engine(compiled: &[Program], environment: &Environment, filter: &[String]) -> Result<Outcome> {
    let scratch = Scratch::in_memory();
    for program in programs::of(compiled, SERVED)?.into_iter().filter(|program| !program.is(FAILING)) {
        let tests = program.tool().args(filter);
        let tests = match &scratch {
            Ok(scratch) => tests.env("TMPDIR", scratch.path()),
            Err(_) => tests,
        };
        environment.apply(tests).run()?;
    }
    Ok(Outcome::Passed)
}

/// The tests of the tool that need the feature.
fn tool(compiled: &[Program], environment: &Environment, filter: &[String]) -> Result<Outcome> {
    for program in programs::of(compiled, TOOL)? {
        environment.apply(program.tool().args(filter)).run()?;
    }
    Ok(Outcome::Passed)
}

/// The check of the cluster itself, on one of its own.
fn check(context: &Context, environment: &Environment, major: Major) -> Result<Outcome> {
    // This program is compiled in the profile `tasks` already.
    let tool = context.cargo().args(["test", "--profile", "tasks", "--package", "xtask", "--test", "it"]);
    let tool = environment.apply(tool).env("CG_PG_MAJOR", major.name());
    tool.args(["--", "--ignored", "--nocapture", "postgres::"]).run()?;
    Ok(Outcome::Passed)
}

/// The tests that let nodes of the cluster fail, each alone.
fn fail(
    compiled: &[Program],
    mut environment: Environment,
    major: Major,
    filter: &[String],
) -> Result<Outcome> {
    if stated_address().is_none() {
        environment.set(FAIL, postgres::fail_command(major)?);
    }
    for [name, count] in COUNTS.into_iter().filter(|[name, _]| env::var_os(name).is_none()) {
        environment.set(name, count);
    }
    for program in programs::of(compiled, SERVED)?.into_iter().filter(|program| program.is(FAILING)) {
        let tests = program.tool().args(["--test-threads", "1", "--nocapture"]).args(filter);
        environment.apply(tests).run()?;
    }
    Ok(Outcome::Passed)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::super::Options;
    use super::Lane;
    use crate::setup::Major;

    fn options(args: &[&str]) -> Options {
        let command = Options::augment_args(clap::Command::new("test"));
        let matches = command.try_get_matches_from([&["test"], args].concat()).expect("they are right");
        Options::from_arg_matches(&matches).expect("clap made them")
    }

    #[test]
    fn the_lane_is_a_word_and_a_filter_of_that_name_follows_two_dashes() {
        let Some(Lane::Postgres { major, filter }) = options(&["postgres", "--major", "18", "cut"]).lane
        else {
            panic!("no lane");
        };
        assert_eq!((major, filter), (Major::Eighteen, vec!["cut".to_owned()]));
        let filtered = options(&["--", "postgres"]);
        assert!(filtered.lane.is_none());
        assert_eq!(filtered.filter, ["postgres"]);
        let package = options(&["--package", "cg-store", "world"]);
        assert_eq!(
            (package.packages, package.filter),
            (vec!["cg-store".to_owned()], vec!["world".to_owned()])
        );
    }
}
