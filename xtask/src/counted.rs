//! Tests that count how many of them passed: a filter that none matches proves nothing.

use anyhow::{Result, bail};

use crate::process::Tool;

/// Runs tests, and returns how many passed.
///
/// # Errors
/// One failed.
pub(crate) fn passed_by(tests: &Tool) -> Result<usize> {
    let line = tests.line();
    println!("$ {line}");
    let output = tests.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    if !output.status.success() {
        bail!("`{line}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim_end());
    }
    Ok(passed_count(&text))
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
