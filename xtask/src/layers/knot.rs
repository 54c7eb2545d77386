//! The knot of a crate: the most top modules that all use each other, directly or through others of them.

use std::collections::{BTreeMap, BTreeSet};

use super::house::{House, ROOT};

/// The largest set of modules in which each reaches each other; empty when no two do.
pub(super) fn largest(house: &House) -> BTreeSet<&str> {
    let mut uses: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in &house.arrows {
        uses.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    // The root declares every module, so it uses all of them.
    uses.insert(ROOT, house.modules.iter().map(String::as_str).collect());
    largest_of(&uses)
}

/// The largest set of names in which each reaches each other by what it uses; empty when no two do.
pub(super) fn largest_of<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|name| (*name, reachable(name, uses))).collect();
    let mut largest = BTreeSet::new();
    for (name, from) in &reached {
        let back = |other: &&&str| reached.get(**other).is_some_and(|from| from.contains(name));
        let knot: BTreeSet<&str> = from.iter().filter(back).copied().collect();
        if knot.len() > largest.len() {
            largest = knot;
        }
    }
    largest
}

/// All that a module uses, directly or through others; itself only if there is a way back.
fn reachable<'a>(from: &'a str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        let next = uses.get(name).into_iter().flatten().copied();
        open.extend(next.filter(|next| found.insert(*next)));
    }
    found
}

/// The knot in words: its modules, and a line for each pair of them in which one uses the other least.
pub(super) fn describe(knot: &BTreeSet<&str>, house: &House) -> Vec<String> {
    if knot.is_empty() {
        return Vec::new();
    }
    let mut uses: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for arrow in &house.arrows {
        let ends = (arrow.from.as_str(), arrow.to.as_str());
        if knot.contains(ends.0) && knot.contains(ends.1) {
            uses.entry(ends).or_default().insert(&arrow.place);
        }
    }
    let names: Vec<_> = knot.iter().copied().collect();
    let mut lines = vec![format!("{} modules use each other: {}", knot.len(), names.join(", "))];
    let mut uses: Vec<_> = uses.into_iter().collect();
    uses.sort_by_key(|(_, places)| places.len());
    let thin = uses.iter().take(12);
    lines.extend(thin.map(|((from, to), places)| {
        let places: Vec<_> = places.iter().copied().collect();
        format!("  {from} uses {to}: {}", places.join(", "))
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::{describe, largest};
    use crate::layers::house::{Arrow, House};

    fn house(arrows: &[(&str, &str)]) -> House {
        let modules = arrows.iter().flat_map(|(from, to)| [from, to]).filter(|name| **name != "the root");
        let modules = modules.map(|name| (*name).to_owned()).collect();
        let arrow = |(line, (from, to)): (usize, &(&str, &str))| Arrow {
            from: (*from).to_owned(),
            to: (*to).to_owned(),
            place: format!("{from}.rs:{}", line + 1),
            path: (*to).to_owned(),
        };
        House { modules, arrows: arrows.iter().enumerate().map(arrow).collect() }
    }

    #[track_caller]
    fn check(arrows: &[(&str, &str)], expected: &[&str]) {
        let house = house(arrows);
        assert_eq!(largest(&house).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn arrows_without_a_way_back_are_no_knot() {
        check(&[("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")], &[]);
    }

    #[test]
    fn the_largest_circle_is_found_without_what_hangs_on_it() {
        let circle = [("b", "c"), ("c", "d"), ("d", "b")];
        check(&[&[("a", "b"), ("d", "e"), ("x", "y"), ("y", "x")][..], &circle].concat(), &["b", "c", "d"]);
    }

    #[test]
    fn what_the_root_holds_ties_a_knot_with_it() {
        check(&[("a", "the root"), ("b", "a")], &["a", "b", "the root"]);
    }

    #[test]
    fn a_knot_is_described_from_its_thinnest_arrow_on() {
        let house = house(&[("a", "b"), ("a", "b"), ("b", "a"), ("b", "c")]);
        assert_eq!(
            describe(&largest(&house), &house),
            ["2 modules use each other: a, b", "  b uses a: b.rs:3", "  a uses b: a.rs:1, a.rs:2"]
        );
    }
}
