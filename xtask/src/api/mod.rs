//! `cargo xtask api`: the public items of each library are those that `docs/api/` lists.
//!
//! A change of the interface is then a change of a file, which a reviewer sees. The listings are made by `cargo-public-api`
//! from the JSON that rustdoc of a nightly toolchain writes.

mod bound;
mod listing;

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use crate::context::Context;
use crate::metadata;
use crate::process::Tool;
use crate::program::Program;
use crate::report::Outcome;
use crate::setup::Environment;
use crate::toolchain::Needs;

/// The version of the program that makes the listings. Another one may write the same items otherwise.
const VERSION: &str = "0.52.0";

/// Libraries of the tools, which no host uses, and the C interface, which its header lists.
const INTERNAL: [&str; 2] = ["cg-bench", "cg-ffi"];

/// What to do with a listing that differs.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// Write the listings anew, to be committed.
    #[arg(long)]
    write: bool,
}

/// Lists the public items of each library, and compares or writes the files.
///
/// # Errors
/// A listing differs from its file, a file belongs to no library, or `cg-store` has more items than it may.
pub(crate) fn run(context: &Context, environment: &Environment, options: &Options) -> Result<Outcome> {
    let dir = context.root.join("docs/api");
    let names = libraries(context)?;
    if let Some(reason) = missing(context)? {
        bound::check(&read(&dir, "cg-store")?)?;
        return Ok(Outcome::Optional(reason));
    }
    let mut differences = Vec::new();
    for name in &names {
        let tool = Tool::new("cargo-public-api").dir(&context.root);
        let tool = tool.args(["--package", name, "-sss", "--color", "never"]);
        let now = match environment.apply(tool).capture() {
            Ok(now) => now,
            // Rustdoc's JSON changes with the nightly, and the tool reads some of its versions only.
            Err(error) if !options.write => {
                bound::check(&read(&dir, "cg-store")?)?;
                return Ok(Outcome::Optional(format!(
                    "cargo-public-api {VERSION} cannot list {name}: {error:#}"
                )));
            }
            Err(error) => return Err(error),
        };
        if options.write {
            fs::create_dir_all(&dir)?;
            fs::write(file(&dir, name), &now)
                .with_context(|| format!("cannot write the listing of {name}"))?;
        } else {
            differences.extend(listing::differences(name, &read(&dir, name)?, &now));
        }
    }
    differences.extend(listing::strays(&dir, &names)?);
    ensure!(
        differences.is_empty(),
        "the public items are not those of docs/api; `cargo xtask api --write` writes them\n{}",
        differences.join("\n")
    );
    bound::check(&read(&dir, "cg-store")?)?;
    println!("{} libraries have the public items that docs/api lists", names.len());
    Ok(Outcome::Passed)
}

/// The packages with a library that hosts use.
fn libraries(context: &Context) -> Result<Vec<String>> {
    let metadata = metadata::stated(context)?;
    let is_library = |package: &&serde_json::Value| !metadata::targets(package, "lib").is_empty();
    let libraries = metadata::packages(&metadata).filter(is_library);
    let names = libraries.filter_map(|package| package["name"].as_str().map(str::to_owned));
    Ok(names.filter(|name| !INTERNAL.contains(&name.as_str())).collect())
}

/// Installs in CI what is missing. The reason to skip the step, with its remedy, where something still is.
fn missing(context: &Context) -> Result<Option<String>> {
    let needs = Needs { toolchain: Some("nightly"), ..Needs::default() };
    match needs.missing(context)? {
        None => Ok(Program { name: "cargo-public-api", version: Some(VERSION) }.missing(context)),
        reason => Ok(reason),
    }
}

fn file(dir: &Path, name: &str) -> std::path::PathBuf {
    dir.join(format!("{name}.txt"))
}

fn read(dir: &Path, name: &str) -> Result<String> {
    let path = file(dir, name);
    let why = || format!("{} cannot be read; `cargo xtask api --write` writes it", path.display());
    fs::read_to_string(&path).with_context(why)
}
