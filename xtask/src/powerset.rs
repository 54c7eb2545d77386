//! `cargo xtask powerset`: every library with features compiles without warnings with every set of them.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use crate::context::Context;
use crate::metadata;
use crate::report::Outcome;
use crate::setup::Environment;

/// Crates whose features are compiled by another step: clippy compiles the benchmarks without the other stores, and
/// their smoke run with them.
const ELSEWHERE: [&str; 1] = ["cg-bench"];

/// Runs clippy for each crate and set.
///
/// # Errors
/// A crate does not compile with a set, or not without a warning.
pub(crate) fn run(context: &Context, environment: &Environment) -> Result<Outcome> {
    let mut runs = 0;
    for package in metadata::packages(&metadata::stated(context)?) {
        let name = package["name"].as_str().context("a package without a name")?;
        if ELSEWHERE.contains(&name) {
            continue;
        }
        for set in sets(&features(package)) {
            let tool = context.cargo().args(["clippy", "--package", name, "--no-default-features"]);
            let tool = tool.args(["--features", &set.join(","), "--", "-D", "warnings"]);
            environment.apply(tool).run()?;
            runs += 1;
        }
    }
    ensure!(runs > 0, "no package has features, so nothing was compiled");
    println!("{runs} sets of features compile without a warning");
    Ok(Outcome::Passed)
}

/// The features of a package, without the name for those that are on by default.
fn features(package: &Value) -> Vec<&str> {
    let features = package["features"].as_object().into_iter().flat_map(|features| features.keys());
    features.map(String::as_str).filter(|name| *name != "default").collect()
}

/// Every set of features, from none to all; nothing for a package without any.
fn sets<'a>(features: &[&'a str]) -> Vec<Vec<&'a str>> {
    if features.is_empty() {
        return Vec::new();
    }
    features.iter().fold(vec![Vec::new()], |sets, feature| {
        let with = sets.iter().map(|set| [set.as_slice(), &[*feature]].concat()).collect::<Vec<_>>();
        [sets, with].concat()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{features, sets};

    #[test]
    fn every_set_is_tried_once() {
        let package = json!({ "features": { "a": [], "b": ["a"], "default": ["a"] } });
        assert_eq!(features(&package), ["a", "b"]);
        assert_eq!(sets(&["a", "b"]), [vec![], vec!["a"], vec!["b"], vec!["a", "b"]]);
    }

    #[test]
    fn a_package_without_features_is_left_to_the_other_steps() {
        assert!(sets(&features(&json!({ "features": {} }))).is_empty());
    }
}
