//! A few seconds of fuzzing for each target, with nothing but the stable toolchain.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use anyhow::{Context as _, Result, ensure};

use crate::process::Tool;

/// Flags by which the compiler counts the branches that an input takes, as cargo-fuzz sets them.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Builds the targets, unoptimised, and lets each run that long from its committed corpus on.
///
/// # Errors
/// A target found something, or ran no input; all of them are tried first.
pub(super) fn run(cargo: &Tool, host: &str, dir: &Path, targets: &[String], seconds: u64) -> Result<()> {
    let folder = dir.join("target/smoke");
    compile(cargo.clone(), host, dir, &folder)?;
    let programs = folder.join(host).join("debug");
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let (next, (sender, results)) = (AtomicUsize::new(0), channel());
    thread::scope(|scope| {
        for _ in 0..cores {
            let (sender, next, programs, folder) = (sender.clone(), &next, &programs, &folder);
            scope.spawn(move || {
                while let Some(target) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = fuzz(
                        &programs.join(target),
                        &folder.join("found").join(target),
                        dir,
                        target,
                        seconds,
                    );
                    // The receiver is there until all threads have ended.
                    let _ = sender.send((target, found));
                }
            });
        }
    });
    drop(sender);
    let mut failed = Vec::new();
    for (target, found) in results {
        match found {
            Ok(runs) => println!("{target}: {runs} runs"),
            Err(error) => failed.push(format!("{target}: {error:#}")),
        }
    }
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

fn compile(cargo: Tool, host: &str, dir: &Path, folder: &Path) -> Result<()> {
    let cargo = cargo.args(["build", "--bins", "--target", host, "--manifest-path"]);
    let cargo = cargo.arg(dir.join("Cargo.toml")).arg("--target-dir").arg(folder);
    // With a target named, cargo leaves build scripts and macros without these flags.
    cargo.env("RUSTFLAGS", FLAGS).env("CARGO_PROFILE_DEV_DEBUG", "0").run()
}

/// Fuzzes one target and returns how many inputs it ran. What it finds new on the way goes into a folder of its own.
fn fuzz(program: &Path, found: &Path, dir: &Path, target: &str, seconds: u64) -> Result<u64> {
    let artifacts = dir.join("artifacts").join(target);
    for folder in [found, &artifacts] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let tool = Tool::new(program).arg(found).arg(dir.join("corpus").join(target));
    let tool = tool.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let tool = tool.arg(format!("-max_total_time={seconds}"));
    let output = tool.args(["-rss_limit_mb=2048", "-print_final_stats=1"]).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}\n{text}", output.status);
    runs(&text).filter(|runs| *runs > 0).with_context(|| format!("it ran no input:\n{text}"))
}

/// The number of inputs in the statistics of libFuzzer.
fn runs(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn the_runs_are_read_from_the_statistics() {
        assert_eq!(runs("INFO: Seed: 1\nstat::number_of_executed_units: 4096\nstat::x: 2\n"), Some(4096));
        assert_eq!(runs("ERROR: no interesting inputs were found\n"), None);
    }
}
