//! `cargo xtask fuzz`: the targets in `fuzz/`, on the stable toolchain.

mod smoke;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::context::Context;
use crate::process::Tool;
use crate::report::Outcome;
use crate::setup;

/// What to fuzz.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// One target; all of them when left out.
    target: Option<String>,
    /// How long each target runs.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only run the committed corpora through their targets, once; needs no cargo-fuzz.
    #[arg(long)]
    corpus: bool,
    /// Fuzz each target for a few seconds, unoptimised; needs no cargo-fuzz. A step of `ci`.
    #[arg(long, conflicts_with_all = ["corpus", "seconds"])]
    smoke: bool,
}

/// How long each target runs in a smoke run.
const SMOKE_SECONDS: u64 = 3;

impl Options {
    /// A smoke run of every target.
    pub(crate) const fn smoke() -> Self {
        Self { target: None, seconds: SMOKE_SECONDS, corpus: false, smoke: true }
    }
}

/// Fuzzes, or replays the corpora.
pub(crate) fn run(context: &Context, options: &Options) -> Result<Outcome> {
    let dir = context.root.join("fuzz");
    let mut targets = targets(&dir)?;
    if let Some(wanted) = &options.target {
        if !targets.contains(wanted) {
            bail!("no fuzz target {wanted}; there are: {}", targets.join(", "));
        }
        targets.retain(|target| target == wanted);
    }
    if targets.is_empty() {
        return Ok(Outcome::Optional("fuzz/fuzz_targets holds no target".to_owned()));
    }
    let environment = setup::prepare(context)?;
    if options.corpus {
        return replay(&environment.apply(context.cargo()), &dir, &targets);
    }
    if options.smoke {
        let cargo = environment.apply(context.cargo());
        smoke::run(&cargo, &context.host, &dir, &targets, SMOKE_SECONDS)?;
        return Ok(Outcome::Passed);
    }
    if !Tool::new("cargo-fuzz").arg("--version").succeeds() {
        bail!("cargo-fuzz is not installed. Run:\n    cargo install cargo-fuzz --locked");
    }
    for target in &targets {
        // The flags that give coverage are unstable in name only; `-s none` needs no nightly standard library.
        let tool = environment.apply(context.cargo()).env("RUSTC_BOOTSTRAP", "1");
        let limits = [format!("-max_total_time={}", options.seconds), "-rss_limit_mb=2048".to_owned()];
        tool.args(["fuzz", "run", "-s", "none", target, "--"]).args(limits).run()?;
    }
    Ok(Outcome::Passed)
}

/// Builds the targets without instrumentation and gives each of them every file of its corpus.
fn replay(cargo: &Tool, dir: &Path, targets: &[String]) -> Result<Outcome> {
    let manifest = dir.join("Cargo.toml");
    let build = cargo.clone().args(["build", "--release", "--bins", "--manifest-path"]).arg(manifest);
    build.arg("--target-dir").arg(dir.join("target/replay")).env("RUSTFLAGS", "--cfg fuzzing").run()?;
    let mut empty = Vec::new();
    for target in targets {
        let inputs = files(&dir.join("corpus").join(target))?;
        if inputs.is_empty() {
            empty.push(target.as_str());
            continue;
        }
        let replayed = Tool::new(dir.join("target/replay/release").join(target)).args(&inputs).capture();
        replayed.with_context(|| format!("the corpus of {target} fails"))?;
        println!("{target}: {} inputs", inputs.len());
    }
    if !empty.is_empty() {
        bail!("no committed corpus for {}", empty.join(", "));
    }
    Ok(Outcome::Passed)
}

/// The target names, from the files in `fuzz/fuzz_targets`.
fn targets(dir: &Path) -> Result<Vec<String>> {
    let files = files(&dir.join("fuzz_targets"))?;
    let sources = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    Ok(sources.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())).collect())
}

/// The files of a folder in name order; none when it does not exist.
fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}
