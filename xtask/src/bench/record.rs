//! The table in `docs/benchmarks.md`, between two marks.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// The line before the table.
const BEGIN: &str = "<!-- written by `cargo xtask bench --record`, not by hand -->\n";
/// The line behind it.
const END: &str = "<!-- end of what is written -->\n";

/// Replaces the table in the page at `path`, and the conditions under which it was measured.
///
/// # Errors
/// The page cannot be read or written, or has no marks.
pub(super) fn write(path: &Path, table: &str, conditions: &str) -> Result<()> {
    let page = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let page = replaced(&page, table, conditions).with_context(|| path.display().to_string())?;
    fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

fn replaced(page: &str, table: &str, conditions: &str) -> Result<String> {
    let (before, rest) = page.split_once(BEGIN).with_context(|| format!("there is no line {BEGIN:?}"))?;
    let (_, after) = rest.split_once(END).with_context(|| format!("there is no line {END:?}"))?;
    Ok(format!("{before}{BEGIN}\n{conditions}\n{table}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, replaced};

    #[test]
    fn only_what_lies_between_the_marks_is_replaced() {
        let page = format!("# Page\n\n{BEGIN}old\nlines\n{END}\nmore\n");
        let new = replaced(&page, "| a |\n", "calm\n").expect("both marks");
        assert_eq!(new, format!("# Page\n\n{BEGIN}\ncalm\n\n| a |\n\n{END}\nmore\n"));
        assert_eq!(replaced(&new, "| a |\n", "calm\n").expect("both marks"), new);
        let error = replaced(&page.replace(END, ""), "", "").unwrap_err();
        assert_eq!(error.to_string(), "there is no line \"<!-- end of what is written -->\\n\"");
    }

    #[test]
    fn the_page_has_its_marks() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md");
        let page = std::fs::read_to_string(path).expect("the page");
        replaced(&page, "", "").expect("both marks");
    }
}
