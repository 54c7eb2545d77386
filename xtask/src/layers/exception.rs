//! The crates whose inside is not in order yet, and the folders whose words are not: each with how far from it; the
//! number may only go down.

/// Crate → the modules in its largest knot, or the arrows upwards if it has rooms.
const EXCEPTIONS: [(&str, usize); 0] = [];

/// Folder or page → the replaced words in its documentation.
pub(super) const WORDS: [(&str, usize); 0] = [];

/// The number of a crate; 0 for one without an exception.
pub(super) fn of(name: &str) -> usize {
    EXCEPTIONS.iter().find(|(of, _)| *of == name).map_or(0, |(_, count)| *count)
}

/// The exceptions for crates that do not exist.
pub(super) fn unused(crates: &[&str]) -> impl Iterator<Item = String> {
    let gone = EXCEPTIONS.iter().filter(|(of, _)| !crates.contains(of));
    gone.map(|(of, _)| format!("{of} has an exception and is no crate"))
}

/// What to say of a crate that has `count` of something where `allowed` are excepted; `lines` describe them.
pub(super) fn compare(name: &str, count: usize, allowed: usize, lines: Vec<String>) -> Vec<String> {
    if count == allowed {
        return Vec::new();
    }
    if count < allowed {
        return vec![format!(
            "{name}: {count} instead of the {allowed} in xtask/src/layers/exception.rs; lower it"
        )];
    }
    let mut lines: Vec<_> = lines.into_iter().map(|line| format!("{name}: {line}")).collect();
    if allowed > 0 {
        lines.push(format!("{name}: {count}, and the exception is for {allowed}"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[track_caller]
    fn check(count: usize, allowed: usize, expected: &[&str]) {
        assert_eq!(compare("store", count, allowed, vec!["a uses b".to_owned()]), expected);
    }

    #[test]
    fn an_exception_holds_for_its_exact_number() {
        check(0, 0, &[]);
        check(7, 7, &[]);
        check(2, 0, &["store: a uses b"]);
        check(8, 7, &["store: a uses b", "store: 8, and the exception is for 7"]);
        check(6, 7, &["store: 6 instead of the 7 in xtask/src/layers/exception.rs; lower it"]);
    }
}
