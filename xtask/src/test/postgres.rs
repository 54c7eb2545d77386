//! `cargo xtask test postgres`: the tests over PostgreSQL, on a test cluster that is made for them.

use std::env;

use anyhow::Result;

use super::programs::{self, Program};
use super::scratch::Scratch;
use super::selection::SERVED;
use crate::context::Context;
use crate::postgres::{self, ADDRESS, stated_address};
use crate::report::{AfterFailure, Outcome, Report};
use crate::setup::{self, Environment, Major};

/// The tool, and the parts of the names of its tests of addresses.
const TOOL: &str = "cg-cli";
const TOOL_TESTS: [&str; 3] = ["postgres::", "place::", "addresses::"];

/// All that is compiled, by one selection of packages: each alone would compile `ring`, tokio and the store with features of
/// its own.
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

/// Runs the lane.
///
/// # Errors
/// The workspace has no such tests, no cluster could be made, or a test failed.
pub(super) fn run(context: &Context, lane: &Lane) -> Result<()> {
    let Lane::Postgres { major, filter } = lane;
    let mut environment = setup::prepare(context)?;
    let mut report = Report::new(context, AfterFailure::Stop);
    let mut compiled = Vec::new();
    report.step("tests: compile", || {
        let tests =
            context.cargo().arg("test").args(SELECTED).args(["--lib", "--bins", "--tests", "--examples"]);
        compiled = Program::compiled_by(environment.apply(tests))?;
        Ok(Outcome::Passed)
    });
    let mut is_ours = false;
    if let Some(stated) = stated_address() {
        println!("{ADDRESS} is set: nothing is started");
        environment.set(ADDRESS, stated);
    } else {
        if filter.is_empty() {
            report.step("failovers of the test cluster", || check(context, &environment, *major));
        }
        is_ours = !postgres::exists(context, *major)?;
        report.step("test cluster", || {
            environment.set(ADDRESS, postgres::up(context, *major, 3)?);
            Ok(Outcome::Passed)
        });
    }
    // Nothing fails beneath the other tests.
    let failing = environment.clone();
    environment.set(FAIL, "");
    report.step("tests: run", || engine(&compiled, &environment, filter));
    if filter.is_empty() {
        report.step("doc tests", || {
            let tests = context.cargo().arg("test").args(SELECTED).arg("--doc");
            environment.apply(tests).run()?;
            Ok(Outcome::Passed)
        });
    }
    report.step("the tool over PostgreSQL", || tool(&compiled, &environment, filter));
    report.step("failovers and cuts beneath worlds", || fail(&compiled, failing, *major, filter));
    let removed = if is_ours { postgres::down(context, *major) } else { Ok(()) };
    report.finish().and(removed)
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

/// The tests of the engine. None lets a node fail.
fn engine(compiled: &[Program], environment: &Environment, filter: &[String]) -> Result<Outcome> {
    let scratch = Scratch::in_memory();
    for program in programs::of(compiled, SERVED)? {
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
        let tests = program.tool();
        let tests = if filter.is_empty() { tests.args(TOOL_TESTS) } else { tests.args(filter) };
        environment.apply(tests).run()?;
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
