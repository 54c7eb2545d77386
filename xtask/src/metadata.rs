//! Cargo's metadata of the workspace.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::context::Context;

/// The workspace's own packages and what their manifests state; resolves nothing and needs no network.
pub(crate) fn stated(context: &Context) -> Result<Value> {
    of(context, &["--no-deps"])
}

/// All packages of a build for this machine, with the features they are built with.
pub(crate) fn resolved(context: &Context) -> Result<Value> {
    of(context, &["--filter-platform", &context.host])
}

/// All packages in `Cargo.lock`, whatever platform needs them.
pub(crate) fn all(context: &Context) -> Result<Value> {
    of(context, &[])
}

/// The package of this name.
pub(crate) fn package<'a>(metadata: &'a Value, name: &str) -> Result<&'a Value> {
    let package = packages(metadata).find(|package| package["name"] == name);
    package.with_context(|| format!("the workspace has no package {name}"))
}

/// All packages.
pub(crate) fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// The names of a package's targets of one kind (`bench`, `bin`, ...).
pub(crate) fn targets<'a>(package: &'a Value, kind: &str) -> Vec<&'a str> {
    let targets = package["targets"].as_array().into_iter().flatten();
    let of_kind = targets
        .filter(|target| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k == kind)));
    of_kind.filter_map(|target| target["name"].as_str()).collect()
}

/// Reads the output of `cargo metadata` with these arguments.
pub(crate) fn of(context: &Context, args: &[&str]) -> Result<Value> {
    let text = context.cargo().args(["metadata", "--format-version", "1"]).args(args).capture()?;
    serde_json::from_str(&text).context("`cargo metadata` wrote no JSON")
}
