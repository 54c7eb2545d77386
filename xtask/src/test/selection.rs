//! Which packages a run of the tests takes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::context::Context;
use crate::metadata;
use crate::process::Tool;

/// The branch that `--changed` compares with.
const MAIN: &str = "main";

/// Packages whose tests run in the profile `test`, which optimises nothing of the workspace: to run them takes less time than to
/// compile them optimised. `xtask` is one of them since it asks for what `syn` has in the rest of the workspace, so
/// that this run does not compile the crates above `syn` again.
pub(crate) const SHORT: [&str; 6] =
    ["cg-format", "cg-registry", "cg-tiering", "cg-snapshot", "cg-minecraft", "xtask"];

/// The package whose tests need a server of PostgreSQL.
pub(crate) const SERVED: &str = "cg-postgres";

/// The features with which all packages are compiled: the tool with all that it has. The tests over PostgreSQL then compile
/// nothing of their own.
const FEATURES: [&str; 2] = ["--features", "cg-cli/postgres"];

/// What a command over another package names too, to compile crates with the features that they have in the tests of all.
pub(crate) const AS_TESTED: [&str; 6] =
    ["--package", "cg-cli", "--package", SERVED, FEATURES[0], FEATURES[1]];

/// The packages of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Selection {
    /// Every package, and the checks that belong to no package.
    Everything,
    /// These, and nothing else.
    Packages(BTreeSet<String>),
}

impl Selection {
    /// The packages of these names.
    ///
    /// # Errors
    /// The workspace has no package of one of the names.
    pub(crate) fn named(context: &Context, names: &[String]) -> Result<Self> {
        let known = members(&metadata::stated(context)?);
        if let Some(name) = names.iter().find(|name| !known.contains_key(*name)) {
            let known: Vec<_> = known.keys().map(String::as_str).collect();
            bail!("the workspace has no package `{name}`; it has {}", known.join(", "));
        }
        Ok(Self::Packages(names.iter().cloned().collect()))
    }

    /// The packages whose files differ from `main`, committed or not, and all that depend on them.
    pub(crate) fn changed(context: &Context) -> Result<Self> {
        let git = |args: &[&str]| Tool::new("git").args(args).dir(&context.root);
        let base = git(&["merge-base", MAIN, "HEAD"]).output();
        let Some(base) = base.ok().filter(|output| output.status.success()) else {
            println!("there is no branch `{MAIN}` to compare with: everything is tested");
            return Ok(Self::Everything);
        };
        let base = String::from_utf8_lossy(&base.stdout).trim().to_owned();
        let differing = git(&["diff", "--name-only", "--no-renames", "-z", &base]).capture()?;
        let new = git(&["ls-files", "--others", "--exclude-standard", "-z"]).capture()?;
        let files = differing.split('\0').chain(new.split('\0')).filter(|file| !file.is_empty());
        let files: BTreeSet<_> = files.map(PathBuf::from).collect();
        println!("{} files differ from {MAIN}", files.len());
        Ok(affected(&members(&metadata::stated(context)?), &context.root, &files))
    }

    /// The arguments of `cargo test`, once for each profile: the profile and the packages.
    pub(crate) fn runs(&self, context: &Context) -> Result<Vec<Vec<String>>> {
        Ok(match self {
            Self::Everything => of_all(members(&metadata::stated(context)?).into_keys()),
            Self::Packages(names) => in_profiles(names.iter().cloned()),
        })
    }

    /// The arguments of `cargo test --doc`; `None` if no package has a library, and so doc tests.
    pub(crate) fn with_library(&self, context: &Context) -> Result<Option<Vec<String>>> {
        let Self::Packages(names) = self else {
            return Ok(Some(["--workspace".to_owned()].into_iter().chain(features()).collect()));
        };
        let metadata = metadata::stated(context)?;
        let has_library = |name: &&String| {
            metadata::package(&metadata, name)
                .is_ok_and(|package| !metadata::targets(package, "lib").is_empty())
        };
        let names = names.iter().filter(has_library);
        let args: Vec<_> = names.flat_map(|name| ["--package".to_owned(), name.clone()]).collect();
        Ok((!args.is_empty()).then_some(args))
    }

    /// Whether there is nothing to do.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Packages(names) if names.is_empty())
    }
}

fn features() -> impl Iterator<Item = String> {
    FEATURES.into_iter().map(str::to_owned)
}

/// Whether the arguments of a run have the package that needs a server.
pub(super) fn is_served(run: &[String]) -> bool {
    run.iter().any(|arg| arg == SERVED)
}

/// The profile that optimises nothing of the workspace.
const UNOPTIMISED: &str = "test";

/// Whether the arguments of a run are of that profile.
pub(crate) fn is_unoptimised(run: &[String]) -> bool {
    run.iter().any(|arg| arg == UNOPTIMISED)
}

/// The arguments of each run over the packages of these names.
fn in_profiles(names: impl Iterator<Item = String>) -> Vec<Vec<String>> {
    let (dev, test) = names.partition::<BTreeSet<_>, _>(|name| !SHORT.contains(&name.as_str()));
    let run = |(profile, names): (&str, BTreeSet<String>)| {
        let packages = names.into_iter().flat_map(|name| ["--package".to_owned(), name]);
        ["--profile".to_owned(), profile.to_owned()].into_iter().chain(packages).collect()
    };
    [("dev", dev), (UNOPTIMISED, test)].into_iter().filter(|(_, names)| !names.is_empty()).map(run).collect()
}

/// As [`in_profiles`], with the features of all packages.
fn of_all(names: impl Iterator<Item = String>) -> Vec<Vec<String>> {
    let with = |run: Vec<String>| {
        let features = is_served(&run).then(features).into_iter().flatten();
        run.into_iter().chain(features).collect()
    };
    in_profiles(names).into_iter().map(with).collect()
}

/// A package of the workspace.
#[derive(Debug)]
struct Member {
    /// Its folder, absolute.
    dir: PathBuf,
    /// The members that its manifest names, for tests and build scripts too.
    dependencies: BTreeSet<String>,
}

fn members(metadata: &Value) -> BTreeMap<String, Member> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let member = |package: &Value| {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        let inside = dependencies.filter(|dependency| dependency["path"].is_string());
        let dir = manifest.parent().map(Path::to_path_buf).unwrap_or_default();
        (
            text(&package["name"]),
            Member { dir, dependencies: inside.map(|inside| text(&inside["name"])).collect() },
        )
    };
    metadata::packages(metadata).map(member).collect()
}

/// The packages in which the files are, and their dependents. A file that is in no package may matter to all.
fn affected(members: &BTreeMap<String, Member>, root: &Path, files: &BTreeSet<PathBuf>) -> Selection {
    let mut names = BTreeSet::new();
    for file in files {
        let Some((name, _)) = members.iter().find(|(_, member)| root.join(file).starts_with(&member.dir))
        else {
            println!("{} is in no package: everything is tested", file.display());
            return Selection::Everything;
        };
        names.insert(name.clone());
    }
    loop {
        let depend = |member: &Member| !member.dependencies.is_disjoint(&names);
        let more: Vec<_> =
            members.iter().filter(|(name, member)| !names.contains(*name) && depend(member)).collect();
        if more.is_empty() {
            return Selection::Packages(names);
        }
        names.extend(more.into_iter().map(|(name, _)| name.clone()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::{SHORT, Selection, affected, in_profiles, members, of_all};

    /// `store` needs `format`, `tool` needs `store` for its tests alone, `tasks` needs none.
    fn selected(files: &[&str]) -> Selection {
        let package = |name: &str, dependencies: serde_json::Value| {
            serde_json::json!({
                "name": name, "manifest_path": format!("/w/{name}/Cargo.toml"), "dependencies": dependencies,
            })
        };
        let metadata = serde_json::json!({ "packages": [
            package("format", serde_json::json!([{ "name": "serde", "path": null }])),
            package("store", serde_json::json!([{ "name": "format", "path": "/w/format" }])),
            package("tool", serde_json::json!([{ "name": "store", "path": "/w/store", "kind": "dev" }])),
            package("tasks", serde_json::json!([])),
        ] });
        let files: BTreeSet<_> = files.iter().map(PathBuf::from).collect();
        affected(&members(&metadata), Path::new("/w"), &files)
    }

    fn packages(names: &[&str]) -> Selection {
        Selection::Packages(names.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn a_change_selects_its_package_and_all_that_depend_on_it() {
        assert_eq!(selected(&["format/src/lib.rs"]), packages(&["format", "store", "tool"]));
        assert_eq!(selected(&["store/tests/it.rs", "tasks/src/a.rs"]), packages(&["store", "tasks", "tool"]));
        assert_eq!(selected(&["tool/Cargo.toml"]), packages(&["tool"]));
        assert_eq!(selected(&[]), packages(&[]));
    }

    #[test]
    fn each_package_is_in_one_run_and_in_its_profile() {
        let runs = |names: &[&str]| in_profiles(names.iter().map(|name| (*name).to_owned()));
        assert_eq!(
            runs(&["cg-tiering", "cg-store", "cg-cli"]),
            [
                &["--profile", "dev", "--package", "cg-cli", "--package", "cg-store"][..],
                &["--profile", "test", "--package", "cg-tiering"],
            ]
        );
        assert_eq!(runs(&["cg-snapshot"]), [["--profile", "test", "--package", "cg-snapshot"]]);
        assert_eq!(runs(&["cg-store"]), [["--profile", "dev", "--package", "cg-store"]]);
        assert_eq!(runs(&SHORT).len(), 1);
    }

    #[test]
    fn all_packages_are_compiled_with_the_tool_over_postgresql() {
        let names = ["cg-cli", "cg-postgres", "cg-tiering"].map(str::to_owned);
        assert_eq!(
            of_all(names.into_iter()),
            [
                &[
                    "--profile",
                    "dev",
                    "--package",
                    "cg-cli",
                    "--package",
                    "cg-postgres",
                    "--features",
                    "cg-cli/postgres",
                ][..],
                &["--profile", "test", "--package", "cg-tiering"],
            ]
        );
    }

    #[test]
    fn a_file_in_no_package_selects_everything() {
        assert_eq!(selected(&["tool/src/a.rs", "docs/format/README.md"]), Selection::Everything);
        assert_eq!(selected(&["Cargo.lock"]), Selection::Everything);
        // A folder whose name only begins as a package's does.
        assert_eq!(selected(&["tool-data/a"]), Selection::Everything);
    }
}
