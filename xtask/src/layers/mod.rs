//! `cargo xtask layers`: arrows point down and nowhere else, between the crates and inside them, and some words stay
//! where they belong, or are gone.

mod arrows;
mod circle;
mod code;
mod figure;
mod house;
mod inside;
mod knot;
mod room;
mod source;
mod words;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::context::Context;
use crate::metadata;
use crate::report::Outcome;

use house::Sources;

/// Compares the manifests with the figure in `ARCHITECTURE.md`, and reads every source file.
///
/// # Errors
/// All violations, one line each.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    let path = context.root.join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path);
    let text = text.with_context(|| format!("the figure of the layers belongs in {}", path.display()))?;
    let allowed = figure::parse(&text).context("the figure in ARCHITECTURE.md")?;
    let metadata = metadata::stated(context)?;
    let arrows = arrows::of(&metadata);
    let mut violations = arrows::violations(&arrows, &allowed);
    let mut files = Vec::new();
    for package in arrows.keys().map(String::as_str).chain(["fuzz"]) {
        collect_sources(&context.root.join(package), &mut files)?;
    }
    let mut sources = Sources::new();
    for file in &files {
        let place = file.strip_prefix(&context.root).unwrap_or(file).to_string_lossy().into_owned();
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        violations.extend(source::violations(&place, &text));
        sources.insert(place, text);
    }
    violations.extend(inside::violations(&metadata, &context.root, &sources)?);
    violations.extend(words::violations(&context.root, &sources)?);
    if !violations.is_empty() {
        bail!("{} violations\n{}", violations.len(), violations.join("\n"));
    }
    println!("{} crates and {} source files keep to the figure", arrows.len(), files.len());
    Ok(Outcome::Passed)
}

/// Adds every source file below a folder but those in `target/`.
pub(crate) fn collect_sources(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect_sources(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
