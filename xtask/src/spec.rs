//! `cargo xtask spec`: the tables in `docs/format` against what the decoders really read.

use anyhow::{Result, bail, ensure};

use crate::context::Context;
use crate::report::Outcome;
use crate::test::selection::SHORT;

/// Runs the test modules `spec` of the crates that own stored layouts.
///
/// # Errors
/// A table and a decoder differ, or no test ran, which would prove nothing.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    // The packages of one run of all tests, so that nothing is compiled again for them.
    let packages = SHORT.iter().flat_map(|package| ["--package", package]);
    let tool = context.cargo().args(["test", "--test", "it"]).args(packages).args(["--", "spec"]);
    let line = tool.line();
    println!("$ {line}");
    let output = tool.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if !output.status.success() {
        bail!("`{line}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    let count = passed_count(&text);
    ensure!(count > 0, "`{line}` ran no test: tests/it has no module `spec`, so the tables are unchecked");
    println!("{count} spec tests passed");
    Ok(Outcome::Passed)
}

/// How many tests passed, over all `test result:` lines.
fn passed_count(text: &str) -> usize {
    let results = text.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    results.filter_map(|rest| rest.split(' ').next()?.parse::<usize>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::passed_count;

    #[test]
    fn passed_tests_are_counted_and_ignored_ones_are_not() {
        let text =
            "running 3 tests\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 9 filtered out\n";
        assert_eq!(passed_count(text), 2);
        assert_eq!(passed_count("test result: ok. 0 passed; 0 failed; 0 ignored\n"), 0);
        assert_eq!(passed_count(""), 0);
    }
}
