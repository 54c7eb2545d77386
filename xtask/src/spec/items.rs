//! The public items of the libraries, as `docs/api` lists them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// Every end of the path of a public item: `cg_store::World::load`, `World::load` and `load`.
#[derive(Debug, Default)]
pub(super) struct Items(BTreeSet<String>);

impl Items {
    /// Reads all listings.
    ///
    /// # Errors
    /// The folder or a listing cannot be read.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let mut items = Self::default();
        for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
            let path = entry?.path();
            let text = fs::read_to_string(&path);
            items.add(&text.with_context(|| format!("cannot read {}", path.display()))?);
        }
        Ok(items)
    }

    pub(super) fn add(&mut self, listing: &str) {
        for segments in listing.lines().filter_map(segments) {
            self.0.extend((0..segments.len()).map(|from| segments[from..].join("::")));
        }
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains(path)
    }
}

/// The path of the item of a line, without the arguments of types.
fn segments(line: &str) -> Option<Vec<&str>> {
    let item = line.trim_start_matches("#[non_exhaustive] ").strip_prefix("pub ")?;
    let (keywords, mut rest) = item.split_at(item.find("cg_")?);
    if !keywords.chars().all(|c| c.is_ascii_lowercase() || c == ' ') {
        return None;
    }
    let mut segments = Vec::new();
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        segments.push(&rest[..end]);
        rest = behind_arguments(&rest[end..]);
        match rest.strip_prefix("::") {
            Some(next) => rest = next,
            None => return Some(segments),
        }
    }
}

/// What follows `<…>`, if that is the beginning.
fn behind_arguments(text: &str) -> &str {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return &text[if c == '>' { at + 1 } else { at }..];
        }
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::Items;

    #[test]
    fn each_end_of_a_path_is_an_item_and_types_of_arguments_are_none() {
        let mut items = Items::default();
        items.add(
            "pub mod cg_store\n\
             #[non_exhaustive] pub struct cg_store::Options\n\
             pub cg_store::Options::deltas: cg_engine::Kind\n\
             impl<S: cg_store::Base> cg_store::Overlay<S>\n\
             pub const fn cg_store::Overlay<'_, Vec<S>>::reset(&self, &cg_store::Hidden) -> bool\n\
             pub fn ()::changed(&mut self, cg_snapshot::BlockChange)\n",
        );
        for there in ["cg_store", "Options::deltas", "deltas", "cg_store::Overlay::reset", "Overlay::reset"] {
            assert!(items.has(there), "{there}");
        }
        for not in ["Kind", "Hidden", "store", "Overlay::deltas", "BlockChange", "ptions::deltas"] {
            assert!(!items.has(not), "{not}");
        }
    }
}
