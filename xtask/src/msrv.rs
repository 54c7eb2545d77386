//! The oldest Rust that is promised, against what the dependencies ask for.
//!
//! What our own code uses of the standard library is clippy's `incompatible_msrv` to check. Neither compiles with that
//! Rust: a feature of the language that is newer passes both.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::context::Context;
use crate::metadata;
use crate::report::Outcome;

/// A version of Rust.
type Version = (u32, u32, u32);

/// Checks that no package in `Cargo.lock`, for whatever platform, states a newer Rust than the workspace does.
///
/// # Errors
/// All packages that do, or members that state another version than the workspace.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    let metadata = metadata::all(context)?;
    let promised = metadata::package(&metadata, "xtask")?["rust_version"].as_str();
    let promised = promised.context("the workspace states no rust-version")?;
    let newer = newer(&metadata, promised)?;
    ensure!(newer.is_empty(), "Rust {promised} is promised, and these ask for more:\n{}", newer.join("\n"));
    println!(
        "{} packages build with Rust {promised}, as far as they say",
        metadata::packages(&metadata).count()
    );
    Ok(Outcome::Passed)
}

/// A line for each package that states a newer Rust than the promised one.
fn newer(metadata: &Value, promised: &str) -> Result<Vec<String>> {
    let limit = version(promised)?;
    let mut lines = Vec::new();
    for package in metadata::packages(metadata) {
        let Some(stated) = package["rust_version"].as_str() else { continue };
        if version(stated)? > limit {
            let [name, number] = ["name", "version"].map(|field| package[field].as_str().unwrap_or("?"));
            lines.push(format!("{name} {number}: Rust {stated}"));
        }
    }
    Ok(lines)
}

/// The numbers of `1.89` or `1.89.0`.
fn version(text: &str) -> Result<Version> {
    let mut numbers = text.splitn(3, '.').map(str::parse::<u32>);
    let mut next =
        || numbers.next().unwrap_or(Ok(0)).with_context(|| format!("{text:?} is no version of Rust"));
    Ok((next()?, next()?, next()?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{newer, version};

    #[test]
    fn a_dependency_that_asks_for_more_is_named() {
        let package =
            |name: &str, rust: Option<&str>| json!({"name": name, "version": "2.0.1", "rust_version": rust});
        let packages = [
            package("silent", None),
            package("older", Some("1.9")),
            package("same", Some("1.89.0")),
            package("patch", Some("1.89.1")),
            package("newer", Some("1.100")),
        ];
        let metadata = json!({ "packages": packages });
        let found = newer(&metadata, "1.89").expect("versions");
        assert_eq!(found, ["patch 2.0.1: Rust 1.89.1", "newer 2.0.1: Rust 1.100"]);
        assert_eq!(version("1.x").unwrap_err().to_string(), "\"1.x\" is no version of Rust");
    }
}
