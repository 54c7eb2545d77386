//! `cargo xtask unused`: every dependency that a manifest names is used.
//!
//! A crate is used if its name is a word of the code: of a package's own code for a dependency of the package, of any of
//! its code for one of the tests. What stands in comments and strings is no code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, anyhow, ensure};
use proc_macro2::{TokenStream, TokenTree};
use serde_json::Value;

use crate::context::Context;
use crate::layers::collect_sources;
use crate::metadata;
use crate::report::Outcome;

/// The folders of a package that only its tests, benchmarks and examples compile.
const OF_TESTS: [&str; 3] = ["tests", "benches", "examples"];

/// Checks all manifests.
///
/// # Errors
/// All dependencies that no code names, that a package names twice, or that only the workspace names.
pub(crate) fn run(context: &Context) -> Result<Outcome> {
    // Without its features a member's optional dependencies are not among the packages.
    let all = metadata::of(context, &["--all-features"])?;
    let libraries = libraries(&all);
    let members = metadata::stated(context)?;
    let fuzz = metadata::of(context, &["--no-deps", "--manifest-path", "fuzz/Cargo.toml"])?;
    let (mut unused, mut count, mut named) = (Vec::new(), 0, BTreeSet::new());
    for package in metadata::packages(&members).chain(metadata::packages(&fuzz)) {
        let manifest = package["manifest_path"].as_str().context("a package without a manifest")?;
        let words = Words::read(Path::new(manifest).parent().context("a manifest is in a folder")?)?;
        let dependencies = dependencies(package, &libraries);
        unused.extend(violations(package["name"].as_str().unwrap_or_default(), &dependencies, &words));
        count += dependencies.len();
        named.extend(dependencies.into_iter().map(|dependency| dependency.name));
    }
    let manifest = fs::read_to_string(context.root.join("Cargo.toml")).context("the workspace's manifest")?;
    let shared = shared(&manifest).filter(|name| !named.contains(name));
    unused.extend(shared.map(|name| format!("the workspace: no package asks for {name}")));
    ensure!(unused.is_empty(), "unused dependencies:\n{}", unused.join("\n"));
    println!("all {count} dependencies are used");
    Ok(Outcome::Passed)
}

/// A dependency as a manifest states it.
#[derive(Debug)]
struct Dependency<'a> {
    name: &'a str,
    /// The name by which the code calls it.
    word: String,
    is_of_tests: bool,
    is_optional: bool,
    features: BTreeSet<&'a str>,
}

/// The dependencies that a package states, given the names of [`libraries`].
fn dependencies<'a>(package: &'a Value, libraries: &BTreeMap<&str, &str>) -> Vec<Dependency<'a>> {
    let stated = package["dependencies"].as_array().into_iter().flatten();
    stated.map(|stated| Dependency::read(stated, libraries)).collect()
}

impl<'a> Dependency<'a> {
    fn read(stated: &'a Value, libraries: &BTreeMap<&str, &str>) -> Self {
        let name = stated["name"].as_str().unwrap_or_default();
        let library = libraries.get(name).copied().unwrap_or(name);
        let features = stated["features"].as_array().into_iter().flatten();
        Self {
            name,
            word: stated["rename"].as_str().unwrap_or(library).replace('-', "_"),
            is_of_tests: stated["kind"] == "dev",
            is_optional: stated["optional"] == true,
            features: features.filter_map(Value::as_str).collect(),
        }
    }

    /// Whether the package has it for its own code with all that `other` asks for.
    fn covers(&self, other: &Self) -> bool {
        let is_own = !self.is_of_tests && !self.is_optional;
        is_own && self.name == other.name && self.features.is_superset(&other.features)
    }
}

/// By package: the libraries that are not called as their packages are.
fn libraries(metadata: &Value) -> BTreeMap<&str, &str> {
    metadata::packages(metadata).filter_map(renamed_library).collect()
}

fn renamed_library(package: &Value) -> Option<(&str, &str)> {
    let name = package["name"].as_str()?;
    let library = *metadata::targets(package, "lib").first()?;
    (library != name.replace('-', "_")).then_some((name, library))
}

/// A line for each dependency of a package that is not used.
fn violations(package: &str, dependencies: &[Dependency<'_>], words: &Words) -> Vec<String> {
    let mut lines = Vec::new();
    for dependency in dependencies {
        let Dependency { name, word, is_of_tests, is_optional, .. } = dependency;
        let (in_own, in_tests) = (words.own.contains(word), words.of_tests.contains(word));
        if *is_of_tests && dependencies.iter().any(|own| own.covers(dependency)) {
            lines.push(format!("{package}: {name} is a dependency and a dependency of the tests"));
        } else if !in_own && !in_tests {
            lines.push(format!("{package}: {name} is named by no code"));
        } else if !in_own && !is_of_tests && !is_optional {
            // A dependency of tests alone cannot be optional.
            lines.push(format!("{package}: {name} is named by tests alone"));
        }
    }
    lines
}

/// The words of a package's code.
#[derive(Debug, Default)]
struct Words {
    own: BTreeSet<String>,
    of_tests: BTreeSet<String>,
}

impl Words {
    fn read(package: &Path) -> Result<Self> {
        let mut words = Self::default();
        let mut files = Vec::new();
        collect_sources(package, &mut files)?;
        while let Some(file) = files.pop() {
            let place = file.strip_prefix(package).unwrap_or(&file);
            // Files that the tests of several packages share are reached through `..`, from a folder of tests.
            let is_of_tests = OF_TESTS.iter().any(|folder| place.starts_with(folder));
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let read = collect(&text, if is_of_tests { &mut words.of_tests } else { &mut words.own });
            let shared = read.with_context(|| file.display().to_string())?;
            let folder = file.parent().context("a file is in a folder")?;
            files.extend(shared.into_iter().map(|path| folder.join(path)));
        }
        Ok(words)
    }
}

/// Adds the words of a file. The files of its modules that an attribute names in another folder, as it names them.
fn collect(text: &str, words: &mut BTreeSet<String>) -> Result<Vec<String>> {
    let stream: TokenStream = text.parse().map_err(|error| anyhow!("it holds no Rust: {error}"))?;
    let (mut streams, mut elsewhere) = (vec![stream], Vec::new());
    while let Some(stream) = streams.pop() {
        let tokens: Vec<_> = stream.into_iter().collect();
        if let [TokenTree::Ident(name), TokenTree::Punct(_), TokenTree::Literal(path)] = &tokens[..]
            && name == "path"
        {
            let path = path.to_string();
            elsewhere.extend(Some(path.trim_matches('"').to_owned()).filter(|path| path.starts_with("../")));
        }
        for token in tokens {
            match token {
                TokenTree::Group(group) => streams.push(group.stream()),
                TokenTree::Ident(word) => {
                    words.insert(word.to_string());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
    }
    Ok(elsewhere)
}

/// The names in the table of dependencies that all packages share.
fn shared(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[workspace.dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once(" = ")?.0))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Words, collect, dependencies, libraries, shared, violations};

    /// Checks the findings for a package that names `serde_json` in its code and `tempfile` in its tests.
    #[track_caller]
    fn check(stated: &Value, expected: &[&str]) {
        let mut words = Words::default();
        let own = "//! Without bincode.\n/// Nor serde.\nfn f() -> serde_json::Value { g!(\"bincode\") } // bincode\n";
        assert_eq!(collect(own, &mut words.own).unwrap(), [""; 0]);
        let of_tests = "#[path = \"../a.rs\"] mod a; #[path = \"b.rs\"] mod b { use tempfile as t; }";
        assert_eq!(collect(of_tests, &mut words.of_tests).unwrap(), ["../a.rs"]);
        let library = json!({ "kind": ["lib"], "name": "serde_json" });
        let all = json!({ "packages": [{ "name": "json-lib", "targets": [library] }] });
        let package = json!({ "dependencies": stated });
        assert_eq!(violations("p", &dependencies(&package, &libraries(&all)), &words), expected);
    }

    #[test]
    fn what_no_code_names_is_unused_whatever_comments_and_strings_say() {
        check(&json!([{ "name": "bincode" }]), &["p: bincode is named by no code"]);
        check(&json!([{ "name": "serde", "optional": true }]), &["p: serde is named by no code"]);
        check(&json!([{ "name": "insta", "kind": "dev" }]), &["p: insta is named by no code"]);
    }

    #[test]
    fn what_the_code_names_is_used_under_its_name_there() {
        check(&json!([{ "name": "serde-json" }]), &[]);
        check(&json!([{ "name": "json", "rename": "serde_json" }]), &[]);
        check(&json!([{ "name": "json-lib" }]), &[]);
        check(&json!([{ "name": "serde_json", "rename": "json" }]), &["p: serde_json is named by no code"]);
        check(&json!([{ "name": "tempfile", "kind": "dev" }]), &[]);
        check(&json!([{ "name": "serde-json", "kind": "dev" }]), &[]);
    }

    #[test]
    fn what_tests_alone_name_is_theirs_unless_it_is_optional() {
        check(&json!([{ "name": "tempfile" }]), &["p: tempfile is named by tests alone"]);
        check(&json!([{ "name": "tempfile", "optional": true }]), &[]);
    }

    #[test]
    fn a_dependency_of_the_tests_adds_a_feature_or_is_no_dependency_of_the_package() {
        let twice = |features: &[&str]| json!([{ "name": "serde-json" }, { "name": "serde-json", "kind": "dev", "features": features }]);
        check(&twice(&[]), &["p: serde-json is a dependency and a dependency of the tests"]);
        check(&twice(&["raw_value"]), &[]);
    }

    #[test]
    fn the_shared_names_are_read_from_their_table() {
        let manifest = "[workspace.package]\nversion = \"1\"\n\n[workspace.dependencies]\na = \"1\"\n\nb-c = { path = \"b\" }\n[profile.dev]\nd = 1\n";
        assert_eq!(shared(manifest).collect::<Vec<_>>(), ["a", "b-c"]);
    }
}
