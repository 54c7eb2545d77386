//! Words that were replaced by the standard term: refused in documentation, in the help of commands and in the names of
//! public items.
//!
//! Code spans and fenced blocks are not looked at: they hold names that are stored, or were printed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::house::Sources;

/// Pages that record what was measured or seen: their words are those of their day.
const RECORDS: [&str; 2] = ["docs/lab/", "docs/reliability-log.md"];

/// The old words in lower case, and what to say instead.
const REPLACED: [(&str, &str); 40] = [
    ("hand over", "submit"),
    ("hands over", "submits"),
    ("handed over", "submitted"),
    ("handing over", "submitting"),
    ("hand overs", "submissions"),
    ("set aside", "quarantine"),
    ("sets aside", "quarantines"),
    ("setting aside", "quarantining"),
    ("carry out", "roll forward"),
    ("carries out", "rolls forward"),
    ("carried out", "rolled forward"),
    ("carrying out", "rolling forward"),
    ("put by in parts", "staged in parts"),
    ("makes it count", "commits it"),
    ("mark of a deletion", "tombstone"),
    ("marks of deletions", "tombstones"),
    ("deletion mark", "tombstone"),
    ("deletion marks", "tombstones"),
    ("rearranging", "maintenance batch"),
    ("rearrangement", "maintenance batch"),
    ("rearrangements", "maintenance batches"),
    ("keep snapshot", "save snapshot"),
    ("give way", "lower priority"),
    ("steady sync", "periodic sync"),
    ("traveller", "entity transfer"),
    ("travellers", "entity transfers"),
    ("settle tiers", "demote all"),
    ("grow cold", "be demoted"),
    ("grow colder", "be demoted"),
    ("grows cold", "is demoted"),
    ("grows colder", "is demoted"),
    ("nobody", "no thread, or no caller"),
    ("somebody", "a thread, or a caller"),
    ("everybody", "every thread, or every caller"),
    ("whoever", "a caller that"),
    ("he", "the caller, or the thread"),
    ("his", "the caller's, or the thread's"),
    ("him", "the caller, or the thread"),
    ("behind ticks", "in the background"),
    ("so many", "at most N, or this many"),
];

/// One old word, and its line.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    line: usize,
    old: &'static str,
    new: &'static str,
}

/// Every old word in the sources and pages of the workspace.
///
/// # Errors
/// A page cannot be read.
pub(super) fn violations(root: &Path, sources: &Sources) -> Result<Vec<String>> {
    let mut violations = Vec::new();
    let mut add = |place: &str, found: Vec<Found>| {
        violations.extend(
            found.iter().map(|Found { line, old, new }| format!("{place}:{line}: {old:?} is {new:?} here")),
        );
    };
    let is_ours = |place: &str| ["/src/", "/examples/"].iter().any(|folder| place.contains(folder));
    for (place, text) in sources.iter().filter(|(place, _)| is_ours(place)) {
        add(place, in_rust(text));
    }
    for page in pages(root)? {
        let place = page.strip_prefix(root).unwrap_or(&page).to_string_lossy().into_owned();
        if RECORDS.iter().any(|record| place.starts_with(record)) {
            continue;
        }
        let text = fs::read_to_string(&page).with_context(|| format!("cannot read {}", page.display()))?;
        add(&place, in_markdown(&text));
    }
    Ok(violations)
}

/// The pages at the root and below `docs`.
fn pages(root: &Path) -> Result<Vec<PathBuf>> {
    let (mut pages, mut dirs) = (Vec::new(), vec![root.to_owned()]);
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            } else if path.is_dir() && (path == root.join("docs") || dir != root) {
                dirs.push(path);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// The old words in the documentation and in the names of public items of a Rust file.
fn in_rust(text: &str) -> Vec<Found> {
    let mut found = Vec::new();
    let mut block = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
            block.push((index + 1, text));
            continue;
        }
        found.extend(in_lines(&std::mem::take(&mut block)));
        if let Some(name) = public_name(line) {
            found.extend(in_words(&words_of(name, index + 1)));
        }
    }
    found.extend(in_lines(&block));
    found
}

/// The old words in a page.
fn in_markdown(text: &str) -> Vec<Found> {
    let lines: Vec<_> = text.lines().enumerate().map(|(index, line)| (index + 1, line)).collect();
    in_lines(&lines)
}

fn in_lines(lines: &[(usize, &str)]) -> Vec<Found> {
    let (mut words, mut is_fenced, mut is_code) = (Vec::new(), false, false);
    for (number, line) in lines {
        if line.trim_start().starts_with("```") {
            (is_fenced, is_code) = (!is_fenced, false);
        } else if !is_fenced {
            for (index, part) in line.split('`').enumerate() {
                is_code ^= index > 0;
                if !is_code {
                    words.extend(words_of(part, *number));
                }
            }
        }
    }
    in_words(&words)
}

/// The words of a text, or of a name like `hand_over` or `HandOver`, in lower case.
fn words_of(text: &str, line: usize) -> Vec<(usize, String)> {
    let mut words: Vec<(usize, String)> = Vec::new();
    let mut previous = ' ';
    for c in text.chars() {
        if c.is_alphanumeric() {
            let begins = !previous.is_alphanumeric() || (c.is_uppercase() && previous.is_lowercase());
            match words.last_mut() {
                Some((_, word)) if !begins => word.extend(c.to_lowercase()),
                _ => words.push((line, c.to_lowercase().collect())),
            }
        }
        previous = c;
    }
    words
}

fn in_words(words: &[(usize, String)]) -> Vec<Found> {
    let mut found = Vec::new();
    for (at, (line, _)) in words.iter().enumerate() {
        let rest = &words[at..];
        let is_here = |old: &str| {
            let same = rest.iter().zip(old.split(' ')).take_while(|((_, word), old)| word == old).count();
            same == old.split(' ').count()
        };
        let here = REPLACED.iter().filter(|(old, _)| is_here(old));
        found.extend(here.map(|&(old, new)| Found { line: *line, old, new }));
    }
    found
}

/// The name of the public item that a line of code declares.
fn public_name(line: &str) -> Option<&str> {
    let words = line.strip_prefix("pub ")?.split([' ', '(', '<', ':', ';', '{', '=']);
    let kinds = ["fn", "struct", "enum", "trait", "type", "mod", "static", "const"];
    words.skip_while(|word| !kinds.contains(word)).find(|word| !kinds.contains(word))
}

#[cfg(test)]
mod tests {
    use super::{in_markdown, in_rust};

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)]) {
        let found: Vec<_> = in_rust(text).iter().map(|found| (found.line, found.old)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn documentation_says_the_standard_term() {
        check("/// It was handed\n/// over, and Set aside.\n", &[(1, "handed over"), (2, "set aside")]);
        check("//! Nobody waits.\nfn f() {}\n", &[(1, "nobody")]);
    }

    #[test]
    fn names_of_public_items_are_words_too() {
        check("    pub fn hand_over(&self) {}\n", &[(1, "hand over")]);
        check(
            "pub struct SetAside;\npub const fn settle_tiers() {}\n",
            &[(1, "set aside"), (2, "settle tiers")],
        );
        check("pub(crate) fn hand_over() {}\nfn set_aside() {}\n", &[]);
    }

    #[test]
    fn code_and_plain_comments_are_not_looked_at() {
        check("// nobody\nlet a = \"nobody\";\n/// `set aside` is stored.\n", &[]);
        check("/// ```\n/// // nobody\n/// ```\n/// Somebody.\n", &[(4, "somebody")]);
    }

    #[test]
    fn longer_words_are_other_words() {
        check("/// The header handles what the hand overlooks.\n", &[]);
    }

    #[test]
    fn a_page_is_read_line_by_line() {
        let found = in_markdown("# A page\n\nIt is carried\nout by `nobody`.\n");
        let found: Vec<_> = found.iter().map(|found| (found.line, found.new)).collect();
        assert_eq!(found, [(3, "rolled forward")]);
    }
}
