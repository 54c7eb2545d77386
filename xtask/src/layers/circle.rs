//! The circle of a crate: the most files that all use each other, directly or through others of them.
//!
//! A name that a module imports for others, as a `mod.rs` does, is a use of the file that has the name.

use std::collections::{BTreeMap, BTreeSet};

use super::house::{Module, absolute};
use super::knot;

/// How many files of a crate may use each other in a circle; crates that are not listed are not held to any. The numbers
/// may only go down.
const BOUNDS: [(&str, usize); 1] = [("cg-layers", 0)];

/// How many files of a crate may use each other, if it is held to a number.
pub(super) fn allowed(name: &str) -> Option<usize> {
    BOUNDS.iter().find(|(bound, _)| *bound == name).map(|(_, allowed)| *allowed)
}

/// The circle of a crate, if it has more than the allowed files.
pub(super) fn violations(allowed: usize, modules: &[Module]) -> Vec<String> {
    let files: Vec<_> = largest(modules).into_iter().collect();
    let count = files.len();
    let is_larger = count > allowed;
    let what = || format!("{count} files use each other, at most {allowed} may: {}", files.join(", "));
    is_larger.then(what).into_iter().collect()
}

/// The largest set of files in which each reaches each other; empty when no two do.
fn largest(modules: &[Module]) -> BTreeSet<&str> {
    let by_names: BTreeMap<&[String], &Module> =
        modules.iter().map(|module| (module.names.as_slice(), module)).collect();
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for module in modules {
        let of_it = uses.entry(&module.file).or_default();
        for path in &module.code.paths {
            let here = [module.names.as_slice(), &path.inside].concat();
            let path = from_root(&here, &path.segments, &by_names);
            let found = path.and_then(|path| owner(&path, &by_names, 0));
            of_it.extend(found.filter(|found| found.file != module.file).map(|found| found.file.as_str()));
        }
    }
    knot::largest_of(&uses)
}

/// The path from the root, also of one that begins with a module declared here.
fn from_root(
    here: &[String],
    segments: &[String],
    by_names: &BTreeMap<&[String], &Module>,
) -> Option<Vec<String>> {
    let declared = [here, segments.get(..1)?].concat();
    if by_names.contains_key(declared.as_slice()) {
        return Some([here, segments].concat());
    }
    absolute(here, segments)
}

/// The module whose name a path from the root is, through the imports of the modules on the way.
fn owner<'m>(
    path: &[String],
    by_names: &BTreeMap<&[String], &'m Module>,
    depth: usize,
) -> Option<&'m Module> {
    /// More imports of imports than a crate has; two modules that import all of each other have no end.
    const DEEP: usize = 8;
    let len = (0..=path.len()).rev().find(|len| by_names.contains_key(&path[..*len]))?;
    let module = *by_names.get(&path[..len])?;
    let name = path.get(len).filter(|_| depth < DEEP);
    let import =
        module.code.paths.iter().find(|import| import.inside.is_empty() && import.name.as_ref() == name);
    let Some(import) = import.filter(|_| name.is_some()) else { return Some(module) };
    let Some(imported) = from_root(&module.names, &import.segments, by_names) else { return Some(module) };
    owner(&[&imported[..], &path[len + 1..]].concat(), by_names, depth + 1)
}

#[cfg(test)]
mod tests {
    use super::largest;
    use crate::layers::house::{Sources, modules};

    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let sources: Sources =
            files.iter().map(|(file, text)| (format!("x/src/{file}"), (*text).to_owned())).collect();
        let modules = modules("x/src/lib.rs", &sources).expect("the crate is whole");
        let circle = largest(&modules);
        let files: Vec<_> = circle.iter().map(|file| &file["x/src/".len()..]).collect();
        assert_eq!(files, expected);
    }

    #[test]
    fn files_that_use_each_other_are_a_circle_whatever_names_them() {
        check(
            &[
                ("lib.rs", "mod a; pub use a::{B, C};"),
                ("a/mod.rs", "mod b; mod c; mod d; pub use b::B; pub use c::C;"),
                ("a/b.rs", "use super::c::C;"),
                ("a/c.rs", "use crate::B;"),
                ("a/d.rs", "use super::{B, C};"),
            ],
            &["a/b.rs", "a/c.rs"],
        );
    }

    #[test]
    fn a_folder_that_only_names_its_files_is_in_no_circle() {
        check(
            &[
                ("lib.rs", "mod a; pub use a::B;"),
                ("a/mod.rs", "mod b; mod c; pub use b::B; pub use c::C;"),
                ("a/b.rs", "use super::C;"),
                ("a/c.rs", ""),
            ],
            &[],
        );
    }

    #[test]
    fn a_folder_with_code_is_in_the_circle_of_its_files() {
        check(
            &[
                ("lib.rs", "mod a;"),
                ("a/mod.rs", "mod b; use b::B; pub struct Own(B);"),
                ("a/b.rs", "use super::Own; pub struct B;"),
            ],
            &["a/b.rs", "a/mod.rs"],
        );
    }
}
