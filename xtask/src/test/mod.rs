//! `cargo xtask test`: set-up, then every test there is, then the proof that the pure crates need no C or C++.

use anyhow::Result;

use crate::context::Context;
use crate::report::{AfterFailure, Outcome, Report};
use crate::setup::Environment;
use crate::{independent, pure, setup};

/// Runs all tests; `filter` is handed to the test binaries, and then only they run.
pub(crate) fn run(context: &Context, after_failure: AfterFailure, filter: &[String]) -> Result<()> {
    let environment = setup::prepare(context)?;
    let mut report = Report::new(context, after_failure);
    steps(context, &environment, &mut report, filter);
    report.finish()
}

/// The steps, for `ci` too.
pub(crate) fn steps(context: &Context, environment: &Environment, report: &mut Report, filter: &[String]) {
    let mut environment = environment.clone();
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
    report.step("tests", || {
        // Not `--all-targets`: that would run the benchmarks too, which `ci` does in their own step.
        let tool = context.cargo().args(["test", "--workspace", "--lib", "--bins", "--tests", "--examples"]);
        let tool = if filter.is_empty() { tool } else { tool.arg("--").args(filter) };
        environment.apply(tool).run()?;
        Ok(Outcome::Passed)
    });
    if filter.is_empty() {
        report.step("exports before an independent reader", || independent::run(context, &environment));
        report.step("doc tests", || {
            environment.apply(context.cargo().args(["test", "--workspace", "--doc"])).run()?;
            Ok(Outcome::Passed)
        });
        report.step("no C or C++", || pure::prove(context, &environment));
    }
}
