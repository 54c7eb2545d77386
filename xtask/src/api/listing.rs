//! A listing of public items, one a line, and how two differ.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Lines that are shown of one library; a renamed type may change hundreds.
const SHOWN: usize = 40;

/// The lines that only one of two listings has.
pub(super) fn differences(name: &str, stored: &str, now: &str) -> Vec<String> {
    let lines = |text: &'static str, of: &str, other: &str| {
        let other: BTreeSet<&str> = other.lines().collect();
        let only = of.lines().filter(|line| !other.contains(line));
        only.map(|line| format!("{name}: {text} {line}")).collect::<Vec<_>>()
    };
    let mut all = [lines("-", stored, now), lines("+", now, stored)].concat();
    if all.is_empty() && stored != now {
        all.push(format!("{name}: the same lines in another order or number"));
    }
    if all.len() > SHOWN {
        let more = all.len() - SHOWN;
        all.truncate(SHOWN);
        all.push(format!("{name}: {more} lines more"));
    }
    all
}

/// Listings of libraries that are gone.
pub(super) fn strays(dir: &Path, names: &[String]) -> Result<Vec<String>> {
    let mut strays = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !names.iter().any(|library| name == format!("{library}.txt")) {
            strays.push(format!("docs/api/{name} belongs to no library; delete it"));
        }
    }
    strays.sort();
    Ok(strays)
}

/// How many methods of its own a type has; those of traits are not its own. A type with two public paths is listed twice.
pub(super) fn methods(listing: &str, path: &str) -> usize {
    let (mut is_own, mut methods) = (false, BTreeSet::new());
    let prefix = format!("{path}::");
    for line in listing.lines() {
        let line = line.trim_start_matches("#[non_exhaustive] ");
        if line.starts_with("impl") {
            is_own = line == format!("impl {path}");
        }
        let method = line.split_once(" fn ").and_then(|(_, rest)| rest.strip_prefix(&prefix));
        methods.extend(method.filter(|_| is_own).and_then(|rest| rest.split(['(', '<']).next()));
    }
    methods.len()
}

/// How many names the root module of a crate has.
pub(super) fn names(listing: &str, root: &str) -> usize {
    let prefix = format!("{root}::");
    let name = |line: &str| {
        let item = line.trim_start_matches("#[non_exhaustive] ").strip_prefix("pub ")?;
        let path = item.split(' ').find(|word| word.starts_with(&prefix))?;
        let rest = path.strip_prefix(&prefix)?;
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        (!after.starts_with("::")).then(|| name.to_owned())
    };
    listing.lines().filter_map(name).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::{differences, methods, names};

    const LISTING: &str = "\
pub mod store
pub use store::engine
pub mod store::directory
pub fn store::directory::lock(&std::path::Path)
#[non_exhaustive] pub enum store::Error
pub store::Error::Closed
pub struct store::World
impl store::World
pub fn store::World::load(&self) -> core::result::Result<(), store::Error>
pub const fn store::World::id(&self) -> u64
impl store::Source for store::World
pub fn store::World::lookup(&self)
pub struct store::Tx<'w, T: store::Source>
impl<T: store::Source> store::Tx<'_, T>
pub fn store::Tx<'_, T>::save(&mut self)
pub trait store::Source
pub fn store::Source::lookup(&self)
pub const store::LIMIT: u64
pub mod store::prelude
pub struct store::prelude::World
impl store::World
pub fn store::World::load(&self) -> core::result::Result<(), store::Error>
";

    #[test]
    fn methods_of_traits_and_of_other_types_do_not_count() {
        assert_eq!(methods(LISTING, "store::World"), 2);
    }

    #[test]
    fn names_of_the_root_are_counted_once_each() {
        // engine, directory, Error, World, Tx, Source, LIMIT, prelude.
        assert_eq!(names(LISTING, "store"), 8);
    }

    #[test]
    fn lines_that_came_and_went_are_shown() {
        assert_eq!(differences("a", "one\ntwo\n", "two\nthree\n"), ["a: - one", "a: + three"]);
        assert_eq!(differences("a", "one\n", "one\n"), Vec::<String>::new());
        assert_eq!(differences("a", "one\none\n", "one\n"), ["a: the same lines in another order or number"]);
        let many: String = (0..50).map(|n| format!("{n}\n")).collect();
        assert_eq!(differences("a", "", &many).last().map(String::as_str), Some("a: 10 lines more"));
    }
}
