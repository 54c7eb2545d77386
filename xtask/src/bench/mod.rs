//! `cargo xtask bench [NAME]`: runs the benchmarks of cg-bench and prints one table.
//!
//! The convention that a benchmark follows: what is measured and what it is compared with stand in one criterion
//! group, and the function id of a reference begins with `ref: ` ("ref: memcpy"). Every other benchmark of the group
//! is printed with its time divided by that of each reference, where a reference with the same parameter goes before
//! one without any. Below 1 means faster than the reference. A reference whose id ends in ` <= 1.3` says how many times
//! its time the others may take; the table says whether they do.
//!
//! Times are medians of one iteration; the spread is the median absolute deviation in percent of the median.
//!
//! `scale`, `hour`, `crowd` and `cold` are no benchmarks but programs, as what they measure is too long to be repeated.
//! `compare` is a program too: it measures other stores beside ours, each in processes of its own. `postgres` is one
//! that measures worlds in PostgreSQL over a network of stated delays. `gaia` is a benchmark of its own frame, which
//! prints single operations where criterion has medians.
//!
//! Results lie in a folder of their own, emptied by every run: a table is of one run.

mod compare;
mod measured;
mod postgres;
mod record;
mod table;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::context::Context;
use crate::process::Tool;
use crate::{metadata, setup};

/// What to measure.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only benchmarks whose name holds this; `scale`, `hour`, `crowd` and `cold` run the programs of that name instead, a
    /// few minutes each, `crowd` half an hour; `compare` measures other stores beside ours, `postgres` worlds in PostgreSQL,
    /// `gaia` snapshots of single columns beside the figures of the document about Gaia.
    name: Option<String>,
    /// With `compare`: only workloads whose name holds this. With `postgres`: only these groups of rows. With `cold`: the
    /// saves that are measured [default: those of `CG_WORLDS`].
    of: Vec<String>,
    /// With `compare`: only subjects whose name holds this; may be repeated.
    #[arg(long)]
    subject: Vec<String>,
    /// With `compare`: an earlier `report.json`; says what changed since then beyond the noise.
    #[arg(long, value_name = "OLD.json")]
    compare: Option<PathBuf>,
    /// A few iterations of each: shows that everything runs, and figures to one digit at best.
    #[arg(long)]
    quick: bool,
    /// Measure nothing; print the table of the last run.
    #[arg(long)]
    no_run: bool,
    /// Write the table into docs/benchmarks.md.
    #[arg(long, conflicts_with_all = ["name", "quick"])]
    record: bool,
}

/// The features that compile others to compare with.
pub(crate) const PEERS: [&str; 2] = ["--features", "peers"];

const AT_THE_END: &str = "at the end";
/// The file with the conditions of a whole run, beside its results.
const CONDITIONS: &str = "conditions.txt";
/// Begins the conditions of a run that was no full one.
const PARTIAL: &str = "partial: ";

/// The store beside others.
const COMPARE: &str = "compare";
/// Worlds in PostgreSQL.
const POSTGRES: &str = "postgres";
/// Snapshots of single columns: a benchmark with a frame of its own.
const GAIA: &str = "gaia";
/// Programs that take too long to be repeated: subcommands of `cg-tiers`.
const PROGRAMS: [&str; 4] = ["scale", "hour", "crowd", "cold"];

/// Measures and prints.
pub(crate) fn run(context: &Context, options: &Options) -> Result<()> {
    if options.name.as_deref() == Some(COMPARE) {
        return compare::run(context, options);
    }
    ensure!(
        options.subject.is_empty() && options.compare.is_none(),
        "--subject and --compare belong to `bench compare`"
    );
    if options.name.as_deref() == Some(POSTGRES) {
        return postgres::run(context, options);
    }
    if let Some(program) = options.name.as_deref().filter(|name| PROGRAMS.contains(name)) {
        return run_program(context, program, &options.of);
    }
    if options.name.as_deref() == Some(GAIA) {
        ensure!(
            options.of.is_empty() && !options.no_run,
            "`bench gaia` has no name after it, and always runs"
        );
        return run_gaia(context, options.quick);
    }
    ensure!(
        options.of.is_empty(),
        "a second name belongs to `bench compare` or `bench postgres`, and saves to `bench cold`"
    );
    let metadata = metadata::stated(context)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target directory")?;
    let results = Path::new(target).join("xtask/bench");
    if !options.no_run {
        measure(context, options, &metadata, &results)?;
    }
    let mut measured = measured::all(&results)?;
    measured.retain(|result| options.name.as_ref().is_none_or(|name| result.id().contains(name.as_str())));
    ensure!(
        !measured.is_empty(),
        "no result: no benchmark's name holds {:?}",
        options.name.as_deref().unwrap_or("")
    );
    let conditions = fs::read_to_string(results.join(CONDITIONS)).context("the last run did not end")?;
    let table = table::rows(&measured);
    print!("\n{}\n{conditions}", table::text(&table));
    if options.record {
        ensure!(!conditions.starts_with(PARTIAL), "the last run was no full one; it is not recorded");
        let path = context.root.join("docs/benchmarks.md");
        record::write(&path, &table::markdown(&table), &conditions)?;
        println!("written to {}", path.display());
    }
    Ok(())
}

/// Runs one of the programs, which prints its own table.
fn run_program(context: &Context, name: &str, saves: &[String]) -> Result<()> {
    let environment = setup::prepare(context)?;
    let tool = context.cargo().args(["run", "--release", "--package", "cg-bench", "--bin", "cg-tiers"]);
    let tool = with_worlds(context, tool.args(PEERS).args(["--", name]).args(saves))?;
    environment.apply(tool).run()?;
    print!("\n{}", conditions(context, AT_THE_END));
    Ok(())
}

/// Runs the benchmark with a frame of its own, which prints its own table.
fn run_gaia(context: &Context, quick: bool) -> Result<()> {
    let environment = setup::prepare(context)?;
    let tool = context.cargo().args(["bench", "--package", "cg-bench", "--bench", GAIA]);
    environment.apply(if quick { tool.args(["--", "--quick"]) } else { tool }).run()?;
    print!("\n{}", conditions(context, AT_THE_END));
    Ok(())
}

/// Runs the benchmarks; what they measured lies in `results` afterwards, and nothing else.
fn measure(context: &Context, options: &Options, metadata: &Value, results: &Path) -> Result<()> {
    let benches = metadata::targets(metadata::package(metadata, "cg-bench")?, "bench");
    ensure!(!benches.is_empty(), "cg-bench has no benchmark");
    let environment = setup::prepare(context)?;
    match fs::remove_dir_all(results) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("cannot empty {}", results.display()));
        }
        _ => {}
    }
    let targets = benches.iter().filter(|bench| **bench != GAIA).flat_map(|bench| ["--bench", bench]);
    let tool = context.cargo().args(["bench", "--package", "cg-bench"]).args(PEERS).args(targets);
    let tool = tool.args(["--", "--noplot"]);
    let tool = if options.quick { tool.args(["--quick", "--measurement-time", "1"]) } else { tool };
    let tool = tool.args(options.name.as_ref()).env("CRITERION_HOME", results);
    environment.apply(with_worlds(context, tool)?).run()?;
    let partial = if options.quick || options.name.is_some() { PARTIAL } else { "" };
    let mut conditions = format!("{partial}{}", conditions(context, AT_THE_END));
    if context.worlds()?.is_none() {
        conditions.push_str("!!! no CG_WORLDS: the import of real saves was not measured\n");
    }
    // There is no folder when no benchmark has the name.
    fs::create_dir_all(results)?;
    fs::write(results.join(CONDITIONS), conditions).context("cannot write what was measured")
}

/// Lets benchmarks find the real saves.
pub(crate) fn with_worlds(context: &Context, tool: Tool) -> Result<Tool> {
    Ok(match context.worlds()? {
        Some(worlds) => tool.env("CG_WORLDS", worlds),
        None => tool,
    })
}

/// The conditions that a reader has to know to compare these figures with others.
///
/// `when` says at which moment of the run the load is read.
fn conditions(context: &Context, when: &str) -> String {
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
        "{cores} cores of {cpu}, load {load} {when}; {}; {}; commit {}{changed}\n",
        context.host,
        rustc.trim(),
        commit.trim(),
    )
}

/// The folders below a folder, in name order; none when it does not exist.
fn folders(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}
