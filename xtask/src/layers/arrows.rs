//! The dependencies between workspace crates: normal, build and development ones alike.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::figure::Allowed;
use crate::metadata;

/// Crate name → the workspace crates it depends on.
pub(super) type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The arrows in the output of `cargo metadata`, where only the workspace's own packages count.
pub(super) fn of(metadata: &Value) -> Arrows {
    let name = |package: &Value| package["name"].as_str().unwrap_or_default().to_owned();
    let members: BTreeSet<String> = metadata::packages(metadata).map(name).collect();
    let arrows = metadata::packages(metadata).map(|package| {
        // A crate names itself to have a feature on in its tests.
        let own = name(package);
        let uses = package["dependencies"].as_array().into_iter().flatten().map(name);
        let uses = uses.filter(|used| members.contains(used) && *used != own).collect();
        (own, uses)
    });
    arrows.collect()
}

/// Every arrow that the figure does not have, and every crate that only one of the two knows.
pub(super) fn violations(arrows: &Arrows, allowed: &Allowed) -> Vec<String> {
    let mut violations = Vec::new();
    for (name, uses) in arrows {
        let Some(may) = allowed.get(name) else {
            violations.push(format!("{name} is in the workspace and not in the figure"));
            continue;
        };
        violations.extend(uses.difference(may).map(|used| format!("{name} -> {used} is not in the figure")));
    }
    let gone = allowed.keys().filter(|name| !arrows.contains_key(*name));
    violations.extend(gone.map(|name| format!("{name} is in the figure and not in the workspace")));
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{of, violations};
    use crate::layers::figure;

    fn workspace(packages: &[(&str, &[(&str, Value)])]) -> Value {
        let packages = packages.iter().map(|(name, uses)| {
            let uses = uses.iter().map(|(name, kind)| json!({ "name": name, "kind": kind }));
            json!({ "name": name, "dependencies": uses.collect::<Vec<_>>() })
        });
        json!({ "packages": packages.collect::<Vec<_>>() })
    }

    #[track_caller]
    fn check(packages: &[(&str, &[(&str, Value)])], expected: &[&str]) {
        let allowed = figure::parse("base <- nothing\nstore <- base\nxtask <- no cg crate\n").unwrap();
        assert_eq!(violations(&of(&workspace(packages)), &allowed), expected);
    }

    #[test]
    fn a_graph_of_the_figure_passes() {
        let serde = ("serde", Value::Null);
        check(&[("base", &[serde]), ("store", &[("base", Value::Null)]), ("xtask", &[])], &[]);
    }

    #[test]
    fn an_arrow_upwards_fails_whatever_its_kind() {
        for kind in [Value::Null, json!("dev"), json!("build")] {
            check(
                &[("base", &[("store", kind.clone())]), ("store", &[]), ("xtask", &[("base", kind)])],
                &["base -> store is not in the figure", "xtask -> base is not in the figure"],
            );
        }
    }

    #[test]
    fn a_crate_that_only_one_side_knows_fails() {
        check(
            &[("base", &[]), ("store", &[]), ("extra", &[])],
            &[
                "extra is in the workspace and not in the figure",
                "xtask is in the figure and not in the workspace",
            ],
        );
    }
}
