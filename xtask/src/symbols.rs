//! `cargo xtask symbols A B`: whether two archives or programs define the same strong symbols.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::process::Tool;

/// Prints what both hold and in what they differ.
///
/// # Errors
/// A symbol is missing or too many, or a file cannot be read by `nm`.
pub(crate) fn run(reference: &Path, other: &Path) -> Result<()> {
    let [a, b] = [read(reference)?, read(other)?];
    let missing: Vec<_> = a.strong.difference(&b.strong).collect();
    let added: Vec<_> = b.strong.difference(&a.strong).collect();
    for (what, names) in [("missing", &missing), ("added", &added)] {
        for name in names {
            println!("{what}: {name}");
        }
    }
    if missing.is_empty() && added.is_empty() {
        println!("the strong symbols are the same");
        return Ok(());
    }
    bail!("{} strong symbols are missing, {} are added", missing.len(), added.len())
}

fn read(path: &Path) -> Result<Symbols> {
    let bytes = fs::metadata(path).with_context(|| format!("cannot open {}", path.display()))?.len();
    let listing = Tool::new("nm").args(["--defined-only", "--format=posix"]).arg(path).capture()?;
    let symbols = Symbols::parse(&listing);
    println!(
        "{}: {:.1} MB, {} strong symbols, {} functions of static initialisers",
        path.display(),
        bytes as f64 / 1e6,
        symbols.strong.len(),
        symbols.initialisers
    );
    Ok(symbols)
}

/// Symbols that a linker would take from a file.
#[derive(Debug, Default)]
struct Symbols {
    strong: BTreeSet<String>,
    /// One for each compiled file with variables that are initialised before `main`.
    initialisers: usize,
}

impl Symbols {
    /// Reads what `nm --defined-only --format=posix` lists: a name, its kind, and numbers.
    fn parse(listing: &str) -> Self {
        let mut symbols = Self::default();
        for line in listing.lines() {
            let mut words = line.split(' ');
            let (Some(name), Some(kind)) = (words.next(), words.next()) else { continue };
            // Capitals are seen by other files. A weak one (W, V) may be in any file that uses it, or in none.
            if matches!(kind, "T" | "D" | "B" | "R" | "S" | "G" | "A" | "C") {
                symbols.strong.insert(name.to_owned());
            }
            if name.starts_with("_GLOBAL__sub_I_") {
                symbols.initialisers += 1;
            }
        }
        symbols
    }
}

#[cfg(test)]
mod tests {
    use super::Symbols;

    #[test]
    fn strong_symbols_are_those_that_others_rely_on() {
        let listing = "librocksdb.a[a.o]:\n_ZN1aEv T 0 1f\n_ZN1bE B 8 4\n_ZN1wEv W 0 9\nlocal t 0 1\n\
                       _GLOBAL__sub_I_a.cc t 0 5\nunique u 0 8\n_ZN1cE R 8 4\n_ZN1dE D 0 4\n";
        let symbols = Symbols::parse(listing);
        assert_eq!(
            symbols.strong.iter().map(String::as_str).collect::<Vec<_>>(),
            ["_ZN1aEv", "_ZN1bE", "_ZN1cE", "_ZN1dE"]
        );
        assert_eq!(symbols.initialisers, 1);
    }
}
