//! The top modules of a crate, and which of them use which.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};

use super::code::{Code, Path};

/// The sources of a crate by their path from the workspace root, with `/`.
pub(super) type Sources = BTreeMap<String, String>;

/// The name by which a crate's modules call the root, which stands above all of them.
pub(super) const ROOT: &str = "the root";

/// The outermost level of a crate.
#[derive(Debug, Default)]
pub(super) struct House {
    /// The modules below the root, without those that only tests compile.
    pub(super) modules: BTreeSet<String>,
    /// Every use of one of them, or of the root, by another.
    pub(super) arrows: Vec<Arrow>,
}

/// One use of one module by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: String,
    pub(super) to: String,
    /// File and line.
    pub(super) place: String,
    /// The path as if written from the root.
    pub(super) path: String,
}

/// A file of the crate, as a module.
#[derive(Debug)]
pub(super) struct Module {
    /// Its names from the root.
    pub(super) names: Vec<String>,
    pub(super) file: String,
    pub(super) code: Code,
}

/// Reads a crate from its root file on, through the modules that it declares.
///
/// # Errors
/// A module has no file, a file is no Rust, or the root imports everything of a module, so that it is unknown
/// whose a name is.
pub(super) fn read(root: &str, sources: &Sources) -> Result<House> {
    let modules = modules(root, sources)?;
    let tops = modules.iter().filter_map(|module| module.names.first().cloned());
    let mut house = House { modules: tops.collect(), arrows: Vec::new() };
    let inline = modules[0].code.paths.iter().filter_map(|path| path.inside.first().cloned());
    house.modules.extend(inline);
    let owners = owners(&house.modules, &modules)?;
    for module in &modules {
        let paths = module.code.paths.iter();
        house.arrows.extend(paths.filter_map(|path| arrow(module, path, &house.modules, &owners)));
    }
    Ok(house)
}

/// The files of a crate, the root first.
///
/// # Errors
/// A module has no file, or a file is no Rust.
pub(super) fn modules(root: &str, sources: &Sources) -> Result<Vec<Module>> {
    let mut modules = Vec::new();
    collect(Vec::new(), root, sources, &mut modules)?;
    Ok(modules)
}

fn collect(names: Vec<String>, file: &str, sources: &Sources, modules: &mut Vec<Module>) -> Result<()> {
    let text = sources.get(file).with_context(|| format!("{file} does not exist"))?;
    let code = Code::read(text).with_context(|| file.to_owned())?;
    let (folder, name) = file.rsplit_once('/').unwrap_or_default();
    let is_folder = names.is_empty() || name == "mod.rs";
    let stem = name.trim_end_matches(".rs");
    let folder = if is_folder { folder.to_owned() } else { format!("{folder}/{stem}") };
    let declared = code.modules.clone();
    modules.push(Module { names: names.clone(), file: file.to_owned(), code });
    for inner in declared {
        let base = format!("{folder}/{}", inner.join("/"));
        let files = [format!("{base}.rs"), format!("{base}/mod.rs")];
        let found = files.iter().find(|file| sources.contains_key(*file));
        let found =
            found.with_context(|| format!("{file} declares {}, which has no file", inner.join("::")))?;
        collect([names.clone(), inner].concat(), found, sources, modules)?;
    }
    Ok(())
}

/// The owners of the names that the root has by an import or as a macro. `None` for those of other crates.
fn owners(tops: &BTreeSet<String>, modules: &[Module]) -> Result<BTreeMap<String, Option<String>>> {
    let mut owners = BTreeMap::new();
    for module in modules.iter().filter(|module| !module.names.is_empty()) {
        let macros = module.code.macros.iter().cloned();
        owners.extend(macros.map(|name| (name, module.names.first().cloned())));
    }
    let root = &modules[0];
    for path in root.code.paths.iter().filter(|path| path.inside.is_empty()) {
        let Some(name) = &path.name else { continue };
        let first = path.segments.iter().find(|segment| !matches!(segment.as_str(), "crate" | "self"));
        let owner = first.filter(|first| tops.contains(*first));
        ensure!(
            name != "*" || owner.is_none(),
            "{}:{}: `{}` hides whose a name is; list the names",
            root.file,
            path.line,
            path.segments.join("::")
        );
        owners.insert(name.clone(), owner.cloned());
    }
    Ok(owners)
}

/// The arrow that a path is, if it leaves its top module.
fn arrow(
    module: &Module,
    path: &Path,
    tops: &BTreeSet<String>,
    owners: &BTreeMap<String, Option<String>>,
) -> Option<Arrow> {
    let here = [module.names.as_slice(), &path.inside].concat();
    let from = here.first()?;
    let absolute = absolute(&here, &path.segments)?;
    let to = match absolute.first() {
        Some(first) if tops.contains(first) => first.clone(),
        Some(first) => match owners.get(first) {
            Some(owner) => owner.clone()?,
            None => ROOT.to_owned(),
        },
        None => ROOT.to_owned(),
    };
    let place = format!("{}:{}", module.file, path.line);
    (to != *from).then(|| Arrow { from: from.clone(), to, place, path: absolute.join("::") })
}

/// The path from the root. `None` for one that begins with a name in scope: an import brought that, or another crate.
pub(super) fn absolute(here: &[String], segments: &[String]) -> Option<Vec<String>> {
    let mut base = match segments.first()?.as_str() {
        "crate" => Vec::new(),
        "self" => here.to_vec(),
        "super" => here[..here.len().checked_sub(1)?].to_vec(),
        _ => return None,
    };
    for segment in &segments[1..] {
        if segment == "super" {
            base.pop();
        } else {
            base.push(segment.clone());
        }
    }
    Some(base)
}

#[cfg(test)]
mod tests {
    use super::{Sources, read};

    fn sources(files: &[(&str, &str)]) -> Sources {
        files.iter().map(|(file, text)| (format!("x/src/{file}"), (*text).to_owned())).collect()
    }

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let house = read("x/src/lib.rs", &sources(files)).expect("the crate is whole");
        let arrows = house.arrows.iter();
        let arrows =
            arrows.map(|a| format!("{} {} -> {} ({})", &a.place["x/src/".len()..], a.from, a.to, a.path));
        assert_eq!(arrows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_name_of_the_root_is_its_modules() {
        let root = "mod a; mod b; mod c; pub use b::{B, deep::D as E}; use other::O; fn own() {}";
        check(
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::{B, E, O, own};\nuse crate::c;"),
                ("b.rs", "macro_rules! m { () => {} } use crate::B; use crate::b::B;"),
                ("c.rs", "crate::m!();"),
            ],
            &[
                "a.rs:1 a -> b (B)",
                "a.rs:1 a -> b (E)",
                "a.rs:1 a -> the root (own)",
                "a.rs:2 a -> c (c)",
                "c.rs:1 c -> b (m)",
            ],
        );
    }

    #[test]
    fn super_leaves_a_module_when_there_are_enough_of_it() {
        check(
            &[
                ("lib.rs", "mod a; mod b;"),
                ("a/mod.rs", "mod deep; use super::b::B;"),
                ("a/deep.rs", "mod deeper; use super::Inside;"),
                (
                    "a/deep/deeper.rs",
                    "use super::super::b::B;\nmod inline { use super::super::super::super::b; }\nself::b::C",
                ),
                ("b.rs", "mod inline { pub struct B; }"),
            ],
            &["a/mod.rs:1 a -> b (b::B)", "a/deep/deeper.rs:2 a -> b (b)"],
        );
    }

    #[test]
    fn tests_are_no_modules() {
        let files = [("lib.rs", "mod a; #[cfg(test)] mod testing;"), ("a.rs", "#[cfg(test)] mod tests;")];
        check(&files, &[]);
        let house = read("x/src/lib.rs", &sources(&files)).expect("the crate is whole");
        assert_eq!(house.modules.into_iter().collect::<Vec<_>>(), ["a"]);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let error = |files| format!("{:#}", read("x/src/lib.rs", &sources(files)).unwrap_err());
        assert_eq!(error(&[("lib.rs", "mod a;")]), "x/src/lib.rs declares a, which has no file");
        assert_eq!(
            error(&[("lib.rs", "mod a;"), ("a.rs", "}")]),
            "x/src/a.rs: it holds no Rust: cannot parse string into token stream"
        );
        assert_eq!(
            error(&[("lib.rs", "mod a;\npub use a::*;"), ("a.rs", "")]),
            "x/src/lib.rs:2: `a::*` hides whose a name is; list the names"
        );
    }
}
