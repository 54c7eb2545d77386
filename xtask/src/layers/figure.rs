//! The figure of the layers, as written in `ARCHITECTURE.md`.
//!
//! A line is `crate <- what it may use`, then two spaces and words for people. What it may use is a list of crates
//! (`a, b + c`), `nothing`, `no cg crate`, `the two above`, `the three above`, or `all above`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};

/// Crate name → the workspace crates it may depend on.
pub(super) type Allowed = BTreeMap<String, BTreeSet<String>>;

/// Reads the figure.
///
/// # Errors
/// No line of it was found, a crate stands there twice, or a line names a crate that is not above it.
pub(super) fn parse(text: &str) -> Result<Allowed> {
    let mut above: Vec<String> = Vec::new();
    let mut allowed = Allowed::new();
    for line in text.lines() {
        let Some((name, rest)) = line.split_once("<-") else { continue };
        let name = name.trim();
        if !is_crate_name(name) {
            continue;
        }
        let words = rest.trim_start().split("  ").next().unwrap_or_default();
        let uses = uses(words, &above);
        for used in &uses {
            ensure!(above.contains(used), "the line of {name} names {used}, which does not stand above it");
        }
        ensure!(allowed.insert(name.to_owned(), uses).is_none(), "{name} has two lines");
        above.push(name.to_owned());
    }
    ensure!(!allowed.is_empty(), "it has no line of the form `crate <- crates`");
    Ok(allowed)
}

fn is_crate_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn uses(words: &str, above: &[String]) -> BTreeSet<String> {
    let nearest = |count: usize| above.iter().rev().take(count).cloned().collect::<Vec<_>>();
    let parts = words.split([',', '+']).map(str::trim);
    let sets = parts.map(|part| match part.trim_end_matches('.') {
        "nothing" | "no cg crate" | "rocksdb" | "" => Vec::new(),
        "all above" => above.to_vec(),
        "the two above" => nearest(2),
        "the three above" => nearest(3),
        name => vec![name.to_owned()],
    });
    sets.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::parse;

    const FIGURE: &str = "
    base       <- nothing                bytes
    names      <- base                   ids
    policy     <- base                   pure
    store      <- the three above + rocksdb     disk
    pictures   <- base, names            regions
    tool       <- all above              the tool
    xtask      <- no cg crate            set-up
";

    #[test]
    fn the_words_of_the_figure_become_sets_of_crates() {
        let allowed = parse(FIGURE).unwrap();
        let of = |name: &str| allowed[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert!(of("base").is_empty());
        assert_eq!(of("policy"), ["base"]);
        assert_eq!(of("store"), ["base", "names", "policy"]);
        assert_eq!(of("pictures"), ["base", "names"]);
        assert_eq!(of("tool"), ["base", "names", "pictures", "policy", "store"]);
        assert!(of("xtask").is_empty());
    }

    #[test]
    fn an_arrow_upwards_is_refused() {
        let error = parse("names <- store  x\nstore <- names  y\n").unwrap_err();
        assert_eq!(error.to_string(), "the line of names names store, which does not stand above it");
    }

    #[test]
    fn a_text_without_a_figure_is_refused() {
        let error = parse("arrows point down\n").unwrap_err();
        assert_eq!(error.to_string(), "it has no line of the form `crate <- crates`");
    }
}
