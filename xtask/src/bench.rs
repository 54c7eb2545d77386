//! `cargo xtask bench [NAME]`: runs the benchmarks of cg-bench and prints one table.
//!
//! The convention that a benchmark follows: what is measured and what it is compared with stand in one criterion
//! group, and the function id of a reference begins with `ref: ` ("ref: memcpy"). Every other benchmark of the group
//! is printed with its time divided by that of each reference, where a reference with the same parameter goes before
//! one without any. Below 1 means faster than the reference.
//!
//! Times are medians of one iteration; the spread is the median absolute deviation in percent of the median.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::context::Context;
use crate::process::Tool;
use crate::{metadata, setup};

const REFERENCE: &str = "ref: ";

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only benchmarks whose name holds this.
    name: Option<String>,
    /// Measure nothing; print the table of what was measured before.
    #[arg(long)]
    no_run: bool,
}

/// One benchmark's result.
#[derive(Debug, Clone)]
struct Measured {
    group: String,
    function: String,
    parameter: Option<String>,
    median_ns: f64,
    deviation_ns: f64,
}

/// Measures and prints.
pub(crate) fn run(context: &Context, options: &Options) -> Result<()> {
    let metadata = metadata::stated(context)?;
    let start = SystemTime::now();
    if !options.no_run {
        let benches = metadata::targets(metadata::package(&metadata, "cg-bench")?, "bench");
        ensure!(!benches.is_empty(), "cg-bench has no benchmark");
        let environment = setup::prepare(context)?;
        let targets = benches.iter().flat_map(|bench| ["--bench", bench]);
        let tool = context.cargo().args(["bench", "--package", "cg-bench"]).args(targets);
        // Results of the run before would only be a second, unrelated ratio on the screen.
        let tool = tool.args(["--", "--noplot", "--discard-baseline"]).args(options.name.as_ref());
        let tool = match context.worlds()? {
            Some(worlds) => tool.env("CG_WORLDS", worlds),
            None => tool,
        };
        environment.apply(tool).run()?;
    }
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    let since = if options.no_run { SystemTime::UNIX_EPOCH } else { start };
    let mut results = Vec::new();
    collect(&Path::new(target).join("criterion"), since, &mut results)?;
    results.retain(|result| options.name.as_ref().is_none_or(|name| result.id().contains(name.as_str())));
    ensure!(
        !results.is_empty(),
        "no result: no benchmark's name holds {:?}",
        options.name.as_deref().unwrap_or("")
    );
    print!("\n{}\n{}", table(&results), conditions(context));
    Ok(())
}

impl Measured {
    fn read(dir: &Path) -> Result<Self> {
        let json = |name: &str| -> Result<Value> {
            let path = dir.join(name);
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
        };
        let (id, estimates) = (json("benchmark.json")?, json("estimates.json")?);
        let text = |name: &str| id[name].as_str().map(str::to_owned);
        let estimate = |name: &str| {
            let value = estimates[name]["point_estimate"].as_f64();
            value.with_context(|| format!("{} has no {name}", dir.display()))
        };
        Ok(Self {
            group: text("group_id").with_context(|| format!("{} has no group", dir.display()))?,
            function: text("function_id").unwrap_or_default(),
            parameter: text("value_str"),
            median_ns: estimate("median")?,
            deviation_ns: estimate("median_abs_dev")?,
        })
    }

    fn id(&self) -> String {
        let parts = [
            Some(&self.group),
            Some(&self.function).filter(|name| !name.is_empty()),
            self.parameter.as_ref(),
        ];
        parts.into_iter().flatten().map(String::as_str).collect::<Vec<_>>().join("/")
    }

    fn reference(&self) -> Option<&str> {
        self.function.strip_prefix(REFERENCE)
    }
}

/// The results below `dir` that are newer than `since`.
fn collect(dir: &Path, since: SystemTime, results: &mut Vec<Measured>) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    for path in paths.iter().filter(|path| path.is_dir()) {
        let estimates = path.join("estimates.json");
        let is_result = path.file_name().is_some_and(|name| name == "new") && estimates.is_file();
        if !is_result {
            collect(path, since, results)?;
        } else if fs::metadata(&estimates)?.modified()? >= since {
            results.push(Measured::read(path)?);
        }
    }
    Ok(())
}

/// The table: a line per result in the order of the groups, references first.
fn table(results: &[Measured]) -> String {
    let mut sorted: Vec<_> = results.iter().collect();
    sorted.sort_by(|a, b| {
        let key = |result: &Measured| (result.group.clone(), result.reference().is_none(), result.id());
        key(a).cmp(&key(b))
    });
    let width = sorted.iter().map(|result| result.id().len()).max().unwrap_or(0);
    let mut table =
        format!("{:width$}  {:>10}  {:>7}  ratio to reference\n", "benchmark", "median", "spread");
    for result in sorted {
        let spread = 100.0 * result.deviation_ns / result.median_ns;
        let line = format!(
            "{:width$}  {:>10}  ±{spread:>4.1} %  {}",
            result.id(),
            time(result.median_ns),
            ratios(result, results)
        );
        table += line.trim_end();
        table.push('\n');
    }
    table
}

/// `3.10 x memcpy, 0.55 x lz4`: this result's median divided by that of each reference of its group.
fn ratios(result: &Measured, results: &[Measured]) -> String {
    if result.reference().is_some() {
        return "(reference)".to_owned();
    }
    let group = results.iter().filter(|other| other.group == result.group);
    let mut ratios = Vec::new();
    for reference in group.clone() {
        let Some(name) = reference.reference() else { continue };
        let same_parameter = reference.parameter == result.parameter;
        let is_matched = group
            .clone()
            .any(|other| other.function == reference.function && other.parameter == result.parameter);
        if same_parameter || (reference.parameter.is_none() && !is_matched) {
            ratios.push(format!("{:.2} x {name}", result.median_ns / reference.median_ns));
        }
    }
    ratios.join(", ")
}

fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.2} ns"),
        ns if ns < 1e6 => format!("{:.2} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// What a reader has to know to compare these figures with others.
fn conditions(context: &Context) -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = cpu.map_or("unknown processor", |(_, name)| name);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let git = |args: &[&str]| Tool::new("git").args(args).dir(&context.root).capture().unwrap_or_default();
    let commit = git(&["rev-parse", "--short", "HEAD"]);
    let changed = if git(&["status", "--porcelain"]).trim().is_empty() { "" } else { " with changes" };
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    let rustc = Tool::new("rustc").arg("--version").capture().unwrap_or_default();
    format!(
        "{cores} cores of {cpu}, load {load} at the end; {}; {}; commit {}{changed}\n",
        context.host,
        rustc.trim(),
        commit.trim(),
    )
}

#[cfg(test)]
mod tests {
    use super::{Measured, table};

    fn measured(group: &str, function: &str, parameter: Option<&str>, median_ns: f64) -> Measured {
        let parameter = parameter.map(str::to_owned);
        let (group, function) = (group.to_owned(), function.to_owned());
        Measured { group, function, parameter, median_ns, deviation_ns: median_ns / 50.0 }
    }

    #[test]
    fn each_result_stands_beside_the_references_of_its_group() {
        let results = [
            measured("decode", "chunk", Some("terrain"), 3_000.0),
            measured("decode", "chunk", Some("library"), 9_000.0),
            measured("decode", "ref: lz4", Some("terrain"), 6_000.0),
            measured("decode", "ref: lz4", None, 1_000.0),
            measured("decode", "ref: memcpy", Some("terrain"), 150.0),
            measured("unpack", "4 bits", None, 12.5),
        ];
        assert_eq!(
            table(&results),
            "\
benchmark                       median   spread  ratio to reference
decode/ref: lz4                1.00 us  ± 2.0 %  (reference)
decode/ref: lz4/terrain        6.00 us  ± 2.0 %  (reference)
decode/ref: memcpy/terrain   150.00 ns  ± 2.0 %  (reference)
decode/chunk/library           9.00 us  ± 2.0 %  9.00 x lz4
decode/chunk/terrain           3.00 us  ± 2.0 %  0.50 x lz4, 20.00 x memcpy
unpack/4 bits                 12.50 ns  ± 2.0 %
"
        );
    }
}
