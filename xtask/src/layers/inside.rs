//! The inside of the crates: rooms where one has them, and no knot where it has none.

use std::path::Path;

use anyhow::{Context as _, Error, Result};
use serde_json::Value;

use super::house::{self, Sources};
use super::{circle, knot, room};
use crate::metadata;

/// Everything that is wrong inside the workspace's crates, one line each.
///
/// # Errors
/// A crate cannot be read, or its figure is none.
pub(super) fn violations(metadata: &Value, root: &Path, sources: &Sources) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    for package in metadata::packages(metadata) {
        for target in package["targets"].as_array().into_iter().flatten() {
            let is =
                |kind: &str| target["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|it| it == kind));
            let name = match (is("lib"), is("bin")) {
                (true, _) => package["name"].as_str(), // The target's own has underscores.
                (_, true) => target["name"].as_str(),
                _ => continue,
            };
            let name = name.context("a target without a name")?;
            let file = Path::new(target["src_path"].as_str().context("a target without a file")?);
            let file = file.strip_prefix(root).unwrap_or(file).to_string_lossy();
            violations.extend(of_crate(name, &file, sources).with_context(|| name.to_owned())?);
        }
    }
    Ok(violations)
}

fn of_crate(name: &str, file: &str, sources: &Sources) -> Result<Vec<String>> {
    let house = house::read(file, sources)?;
    let allowed = circle::allowed(name);
    let circle =
        allowed.map(|allowed| Ok::<_, Error>(circle::violations(allowed, &house::modules(file, sources)?)));
    let circle = circle.transpose()?.unwrap_or_default();
    let Some(rooms) = room::figure(&sources[file])? else {
        let knot = knot::largest(&house);
        return Ok(of(name, [knot::describe(&knot, &house), circle].concat()));
    };
    Ok(of(name, [room::missing(&rooms, &house), room::upward(&rooms, &house), circle].concat()))
}

fn of(name: &str, lines: Vec<String>) -> Vec<String> {
    lines.into_iter().map(|line| format!("{name}: {line}")).collect()
}
