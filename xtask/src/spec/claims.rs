//! The page `docs/seeds.md`: every file, test, public item and command that it names exists.
//!
//! A row of a table has four cells: the feature, its state, what of ours it is, and the tests that show it. A test is a
//! link, whose text is its name and whose target is its file. What is written as code in the other two cells is a name
//! too; in the first cell it is the author's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::items::Items;

const PAGE: &str = "docs/seeds.md";

/// What the names are compared with.
#[derive(Debug)]
pub(super) struct Known {
    root: PathBuf,
    items: Items,
    /// The pages whose tables list the commands, by how those begin.
    commands: [(&'static str, String); 2],
    header: String,
}

/// How many rows have each state.
pub(super) type Counts = BTreeMap<String, usize>;

/// Checks the page.
///
/// # Errors
/// All that is wrong, one line each.
pub(super) fn check(root: &Path) -> Result<Counts> {
    let read = |path: &str| {
        let text = fs::read_to_string(root.join(path));
        text.with_context(|| format!("cannot read {path}"))
    };
    let known = Known {
        root: root.to_owned(),
        items: Items::read(&root.join("docs/api"))?,
        commands: [("cargo xtask", read("CONTRIBUTING.md")?), ("cg", read("docs/tool.md")?)],
        header: read("hosts/c/include/cherrygrove.h")?,
    };
    let (counts, wrong) = known.judge(&read(PAGE)?);
    if wrong.is_empty() {
        Ok(counts)
    } else {
        bail!("{} names or rows are wrong\n{}", wrong.len(), wrong.join("\n"))
    }
}

impl Known {
    /// The rows by state, and what is wrong with them.
    fn judge(&self, page: &str) -> (Counts, Vec<String>) {
        let (mut counts, mut wrong) = (Counts::new(), Vec::new());
        for (index, line) in page.lines().enumerate() {
            let mut found: Vec<_> = links(line).filter_map(|(_, target)| self.link(target)).collect();
            if let Some(cells) = cells(line) {
                found.extend(self.row(&cells));
                *counts.entry(cells.get(1).copied().unwrap_or_default().to_owned()).or_default() += 1;
            }
            wrong.extend(found.into_iter().map(|what| format!("{PAGE}:{}: {what}", index + 1)));
        }
        (counts, wrong)
    }

    fn row(&self, cells: &[&str]) -> Vec<String> {
        let &[_, state, ours, shown] = cells else {
            return vec![format!("the row has {} cells, and not 4", cells.len())];
        };
        let tests: Vec<_> = links(shown).filter(|(text, _)| text.starts_with('`')).collect();
        let mut wrong: Vec<_> = tests.iter().filter_map(|(text, target)| self.test(text, target)).collect();
        wrong.extend(spans(ours).chain(spans(&without_links(shown))).filter_map(|name| self.name(name)));
        match state {
            "works" if tests.is_empty() => wrong.push("it works, and no test shows it".to_owned()),
            "different" if !links(ours).any(|(_, target)| target.starts_with("decisions/")) => {
                wrong.push("it is different, and no decision says why".to_owned());
            }
            "works" | "different" => {}
            _ => wrong.push(format!("{state:?} is no state: works, different")),
        }
        wrong
    }

    /// What is wrong with a test: its name as code, and its file from the folder of the page.
    fn test(&self, name: &str, target: &str) -> Option<String> {
        let name = name.trim_matches('`');
        // A file that is not there is a wrong link.
        let text = fs::read_to_string(self.root.join("docs").join(target)).ok()?;
        let is_test = if Path::new(target).extension().is_some_and(|extension| extension == "go") {
            is_go_test(&text, name)
        } else {
            is_rust_test(&text, name)
        };
        (!is_test).then(|| format!("{target} has no test {name} that is always run"))
    }

    fn name(&self, name: &str) -> Option<String> {
        for (prefix, page) in &self.commands {
            if let Some(rest) = name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(' ')) {
                return (!is_command(page, prefix, rest))
                    .then(|| format!("no table has the command `{name}`"));
            }
        }
        if name.contains(['/', '.']) {
            return (!self.root.join(name).exists()).then(|| format!("there is no file {name}"));
        }
        let is_function = self.header.contains(&format!(" {name}("));
        let is_known = self.items.has(name) || is_function;
        (!is_known).then(|| format!("`{name}` is no public item in docs/api and no function of the C header"))
    }

    /// What is wrong with the target of a link.
    fn link(&self, target: &str) -> Option<String> {
        if target.contains("://") {
            return None;
        }
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let path = if file.is_empty() { PAGE.into() } else { Path::new("docs").join(file) };
        let path = self.root.join(path);
        if !path.exists() {
            return Some(format!("the link {target} leads to no file"));
        }
        let text = if heading.is_empty() { return None } else { fs::read_to_string(&path) };
        let is_there =
            text.is_ok_and(|text| text.lines().any(|line| anchor(line).as_deref() == Some(heading)));
        (!is_there).then(|| format!("the link {target} leads to no heading"))
    }
}

/// The cells of a row of a table, without its head.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix('|')?.trim_end().strip_suffix('|')?;
    let is_head = row.starts_with("---") || row.starts_with(" feature |");
    (!is_head).then(|| row.split('|').map(str::trim).collect())
}

/// What is written as code.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The texts and targets of links.
fn links(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split("](").zip(text.split("](").skip(1)).filter_map(|(before, after)| {
        let (_, text) = before.rsplit_once('[')?;
        Some((text, after.split_once(')')?.0))
    })
}

fn without_links(text: &str) -> String {
    links(text).fold(text.to_owned(), |rest, (name, target)| rest.replace(&format!("[{name}]({target})"), ""))
}

/// The anchor of a heading.
fn anchor(line: &str) -> Option<String> {
    let heading = line.trim_start_matches('#');
    let text = heading.strip_prefix(' ').filter(|_| heading.len() < line.len())?;
    let kept = text.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    Some(kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect())
}

/// Whether a table has a command, its verb and its options.
fn is_command(page: &str, prefix: &str, rest: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || "-_".contains(c);
    let command = rest.split(' ').next().unwrap_or_default();
    let begin = format!("`{prefix} {command}");
    let is_row = |line: &&str| {
        line.starts_with('|') && line.split(&begin).skip(1).any(|after| !after.starts_with(is_word))
    };
    let rows: Vec<_> = page.lines().filter(is_row).collect();
    let words: Vec<_> = rows.iter().flat_map(|row| row.split(|c| !is_word(c))).collect();
    let stated = rest.split(' ').filter(|word| word.chars().any(char::is_lowercase));
    !rows.is_empty() && stated.into_iter().all(|word| words.contains(&word))
}

/// Whether a file has a test of this name, of its own or in the list of a macro, which is not ignored.
fn is_rust_test(text: &str, name: &str) -> bool {
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let declares = |line: &&str| {
        let rest = line.strip_prefix("fn ").and_then(|line| line.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let Some(at) = lines.iter().position(declares) else { return false };
    let above = lines[..at].iter().rev().take_while(|line| line.starts_with(['#', '/']));
    let attributes: Vec<_> = above.filter(|line| line.starts_with('#')).collect();
    let is_listed = text.split("! {").skip(1).filter_map(|list| list.split_once('}')).any(|(list, _)| {
        let is_list = list.chars().all(|c| c.is_alphanumeric() || c == '_' || c.is_whitespace());
        is_list && list.split_whitespace().any(|word| word == name)
    });
    let is_ignored = attributes.iter().any(|line| line.starts_with("#[ignore"));
    (is_listed || attributes.contains(&&"#[test]")) && !is_ignored
}

/// Whether a file has a test of this name, or a case of a suite.
fn is_go_test(text: &str, name: &str) -> bool {
    let is_test = name.starts_with("Test") && text.contains(&format!("\nfunc {name}(t *testing.T)"));
    is_test || text.contains(&format!("{{\"{name}\", "))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Items, Known, check};

    const RUST: &str = "#[test]\nfn it_holds() {}\n\
        over_both! {\n    on_both\n}\nfn on_both(world: &World) {}\n\
        #[test]\n#[ignore = \"slow\"]\nfn it_is_slow() {}\nfn helper() {}\n";
    const GO: &str = "package a\nfunc TestIt(t *testing.T) {}\nvar cases = []Case{{\"in_a_suite\", f}}\n";

    /// What is wrong with a page of one row, in a workspace that has a few names.
    fn wrong(row: &str) -> Vec<String> {
        let root = tempfile::tempdir().expect("a folder");
        let files = [
            ("docs/decisions/0001-why.md", "# Why\n"),
            ("docs/other.md", "# Other `page`, 2\n"),
            ("docs/seeds.md", ""),
            ("a/tests/it.rs", RUST),
            ("a/it_test.go", GO),
        ];
        for (file, text) in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("is made");
            std::fs::write(path, text).expect("is written");
        }
        let mut items = Items::default();
        items.add("pub fn cg_store::World::load(&self)\n");
        let tasks = "| `cargo xtask torture` | Kills; `--only power` cuts. |\n".to_owned();
        let tool = "| `cg object list\\|get WORLD` | objects; with `--all` all of them |\n".to_owned();
        let header = "int cg_columns_walk(cg_handle world);\n".to_owned();
        let commands = [("cargo xtask", tasks), ("cg", tool)];
        let known = Known { root: root.path().to_owned(), items, commands, header };
        known.judge(row).1
    }

    #[track_caller]
    fn refused(row: &str, expected: &str) {
        assert_eq!(wrong(row), [format!("docs/seeds.md:1: {expected}")]);
    }

    const TEST: &str = "[`it_holds`](../a/tests/it.rs)";

    #[test]
    fn a_row_whose_names_are_all_there_is_right() {
        let ours = "`World::load`, `cg_columns_walk`, `cg object get --all`, `cargo xtask torture --only power`, \
                    `a/tests/it.rs`, [it](other.md#other-page-2)";
        let tests =
            "[`on_both`](../a/tests/it.rs), [`TestIt`](../a/it_test.go), [`in_a_suite`](../a/it_test.go)";
        assert_eq!(wrong(&format!("| their `own` word | works | {ours} | {TEST}, {tests} |")), [""; 0]);
        assert_eq!(wrong(&format!("| a | different | so; [1](decisions/0001-why.md) | {TEST} |")), [""; 0]);
    }

    #[test]
    fn a_name_of_each_sort_that_is_not_there_is_named() {
        let row = |ours: &str| format!("| a | different | {ours}; [1](decisions/0001-why.md) | — |");
        let no_item = "is no public item in docs/api and no function of the C header";
        refused(&row("`World::lode`"), &format!("`World::lode` {no_item}"));
        refused(&row("`cg_columns_run`"), &format!("`cg_columns_run` {no_item}"));
        refused(&row("`a/tests/at.rs`"), "there is no file a/tests/at.rs");
        refused(&row("`cg subject list`"), "no table has the command `cg subject list`");
        refused(&row("`cg object put`"), "no table has the command `cg object put`");
        refused(&row("`cg object get --none`"), "no table has the command `cg object get --none`");
        refused(&row("`cargo xtask tort`"), "no table has the command `cargo xtask tort`");
        refused(&row("[it](others.md)"), "the link others.md leads to no file");
        refused(&row("[it](other.md#pages)"), "the link other.md#pages leads to no heading");
    }

    #[test]
    fn a_test_is_one_that_is_always_run() {
        for (name, file) in [
            ("it_held", "../a/tests/it.rs"),
            ("it_hold", "../a/tests/it.rs"),
            ("helper", "../a/tests/it.rs"),
            ("it_is_slow", "../a/tests/it.rs"),
            ("TestNo", "../a/it_test.go"),
        ] {
            let row = format!("| a | works | b | [`{name}`]({file}) |");
            refused(&row, &format!("{file} has no test {name} that is always run"));
        }
    }

    #[test]
    fn a_state_needs_what_it_claims() {
        refused("| a | works | b | — |", "it works, and no test shows it");
        refused(&format!("| a | different | b | {TEST} |"), "it is different, and no decision says why");
        refused("| a | done | b | — |", "\"done\" is no state: works, different");
        refused("| a | works | b |", "the row has 3 cells, and not 4");
    }

    #[test]
    fn the_page_is_right() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let counts = check(root).expect("every name is there");
        assert_eq!(counts.keys().collect::<Vec<_>>(), ["different", "works"]);
    }
}
