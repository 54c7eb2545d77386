//! Which tests take longest: each runs alone, and the time between two lines of a test program is one test's.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, pipe};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::process::Tool;

/// How many are listed.
const LISTED: usize = 20;

/// One test and what it took.
#[derive(Debug, PartialEq, Eq)]
struct Timed {
    took: Duration,
    /// The program that holds it, as cargo names it.
    program: String,
    name: String,
}

/// Runs the tests of `cargo test` commands, whose programs are compiled, one after the other and lists the slowest.
///
/// # Errors
/// A test failed, or cargo did; the list is of the tests until then.
pub(super) fn list(tools: &[Tool], filter: &[String]) -> Result<()> {
    let mut timed = Vec::new();
    let ended = tools.iter().try_for_each(|tool| run(tool, filter, &mut timed));
    timed.sort_by_key(|test| Reverse(test.took));
    let total: Duration = timed.iter().map(|test| test.took).sum();
    println!(
        "\nthe slowest of {} tests, which took {:.1} s one after the other:",
        timed.len(),
        total.as_secs_f64()
    );
    for Timed { took, program, name } in timed.iter().take(LISTED) {
        println!("{:>8.2} s  {program}  {name}", took.as_secs_f64());
    }
    ended
}

fn run(tool: &Tool, filter: &[String], timed: &mut Vec<Timed>) -> Result<()> {
    let messages = tool.clone().args(["--no-run", "--message-format", "json"]).capture()?;
    let mut clock = Clock { packages: packages(&messages), ..Clock::default() };
    let tool = tool.clone().arg("--").args(filter).args(["--test-threads", "1"]);
    eprintln!("$ {}", tool.line());
    let (reader, writer) = pipe().context("cannot make a pipe")?;
    let mut command = tool.command();
    // One pipe for both: cargo says on standard error which program it starts.
    command.stdout(writer.try_clone().context("cannot make a pipe")?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot run `{}`", tool.line()))?;
    // It holds ends of the pipe, which would never close.
    drop(command);
    let start = Instant::now();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.context("cannot read what the tests print")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        timed.extend(clock.line(start.elapsed(), &line));
    }
    let status = child.wait().with_context(|| format!("cannot wait for `{}`", tool.line()))?;
    ensure!(status.success(), "`{}` failed: {status}", tool.line());
    Ok(())
}

/// The package of each test program, by the program's file name, from what cargo says of a build.
fn packages(messages: &str) -> HashMap<String, String> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let file = Path::new(message["executable"].as_str()?).file_name()?.to_string_lossy().into_owned();
        let manifest = Path::new(message["manifest_path"].as_str()?);
        Some((file, manifest.parent()?.file_name()?.to_string_lossy().into_owned()))
    };
    messages.filter_map(program).collect()
}

/// Reads lines as they come.
#[derive(Debug, Default)]
struct Clock {
    packages: HashMap<String, String>,
    program: String,
    /// When the last test ended, or the program began.
    since: Duration,
    /// A test whose line something else was printed into, so that its end is a line of its own.
    unfinished: Option<String>,
}

impl Clock {
    /// A line that was complete at `now`, and the test that it ends.
    fn line(&mut self, now: Duration, line: &str) -> Option<Timed> {
        if let Some(program) = line.trim_start().strip_prefix("Running ") {
            let (source, file) = program.split_once(" (").unwrap_or((program, ""));
            let file = file.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
            // Several packages have a `src/lib.rs` and a `tests/it`.
            let package = self.packages.get(file).map_or("", String::as_str);
            self.program = format!("{package} {source}");
        }
        if line.starts_with("running ") {
            self.since = now;
        }
        let ends = |rest: &str| rest == "ok" || rest == "FAILED" || rest.starts_with("ignored");
        let name = if let Some((name, rest)) =
            line.strip_prefix("test ").and_then(|test| test.split_once(" ... "))
        {
            if !ends(rest) {
                self.unfinished = Some(name.to_owned());
                return None;
            }
            name.to_owned()
        } else if ends(line) {
            self.unfinished.take()?
        } else {
            return None;
        };
        let took = now.saturating_sub(self.since);
        self.since = now;
        Some(Timed { took, program: self.program.clone(), name })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Clock, Timed, packages};

    #[test]
    fn the_time_between_two_lines_is_that_of_the_test_between_them() {
        let lines = [
            (0, "   Compiling cg-store v0.1.0"),
            (90, "     Running tests/it/main.rs (target/debug/deps/it-0123456789abcdef)"),
            (91, ""),
            (91, "running 3 tests"),
            (93, "test world::load ... ok"),
            (94, "test world::kill ... a child's last words"),
            (99, "ok"),
            (100, "test world::save - should panic ... FAILED"),
            (100, "test result: FAILED. 2 passed; 1 failed"),
            (101, "     Running unittests src/lib.rs (target/debug/deps/cg_store-0123456789abcdef)"),
            (105, "running 1 test"),
            (106, "test chunk ... ignored, reason"),
        ];
        let messages = [
            r#"{"reason":"compiler-artifact","manifest_path":"/w/cg-store/Cargo.toml","executable":"/w/target/debug/deps/it-0123456789abcdef"}"#,
            r#"{"reason":"compiler-artifact","manifest_path":"/w/cg-format/Cargo.toml","executable":null}"#,
            "no message of cargo",
        ];
        let mut clock = Clock { packages: packages(&messages.join("\n")), ..Clock::default() };
        let timed: Vec<_> = lines
            .iter()
            .filter_map(|(second, line)| clock.line(Duration::from_secs(*second), line))
            .collect();
        let test = |seconds, program: &str, name: &str| Timed {
            took: Duration::from_secs(seconds),
            program: program.to_owned(),
            name: name.to_owned(),
        };
        assert_eq!(
            timed,
            [
                test(2, "cg-store tests/it/main.rs", "world::load"),
                test(6, "cg-store tests/it/main.rs", "world::kill"),
                test(1, "cg-store tests/it/main.rs", "world::save - should panic"),
                test(1, " unittests src/lib.rs", "chunk"),
            ]
        );
    }
}
