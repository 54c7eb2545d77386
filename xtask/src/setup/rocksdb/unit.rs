//! Units: RocksDB's sources in groups that the compiler reads as one file, so that it reads the headers once a group.

use std::collections::HashSet;

/// A unit of this much source takes about a minute of one core, and [`PEAK_BYTES`] of memory.
const UNIT_BYTES: usize = 600_000;

/// Many small files cost more than their bytes say.
const UNIT_FILES: usize = 36;

/// The most memory that one compiler process took for one unit was 1.33 GB, with g++ 12 at `-O2`.
pub(super) const PEAK_BYTES: u64 = 1_400_000_000;

/// Beginnings of the names of files that stay alone whatever their text says: they look at the processor or the
/// system through macros of their own.
const ALONE: [&str; 4] = ["crc32c", "env", "stack_trace", "xxhash"];

/// Which units are made, as text for the archive's key. The number goes up when [`plan`] cuts in another way.
pub(super) fn rules() -> String {
    format!("1: {UNIT_BYTES} bytes, {UNIT_FILES} files, alone {}", ALONE.join(" "))
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// As the crate names it to the compiler, from the crate's folder.
    pub(super) path: String,
    pub(super) size_bytes: usize,
}

/// Files that are compiled as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) sources: Vec<Source>,
}

impl Unit {
    pub(super) fn size_bytes(&self) -> usize {
        self.sources.iter().map(|source| source.size_bytes).sum()
    }

    /// Names its files: no two units of a build have the same name, and the order of names is that of the tree.
    pub(super) fn name(&self) -> String {
        let first = self.sources.first().map_or("", |source| &source.path);
        format!("{}-{}", first.replace('/', "-"), self.sources.len())
    }

    /// The one file of this unit, which is compiled as the crate compiles it.
    pub(super) fn single(&self) -> Option<&str> {
        match self.sources.as_slice() {
            [source] => Some(&source.path),
            _ => None,
        }
    }

    /// The text that the compiler reads, in the crate's folder and from its standard input: then `__FILE__`, from which
    /// RocksDB cuts the names in its log, is the same as in a build file by file.
    pub(super) fn text(&self) -> String {
        self.sources.iter().map(|source| format!("#include \"{}\"\n", source.path)).collect()
    }

    /// A unit for each of its files.
    pub(super) fn split(self) -> Vec<Self> {
        self.sources.into_iter().map(|source| Self { sources: vec![source] }).collect()
    }
}

/// The units of these files, given as path and text. Neighbours in the tree come together, since they share headers.
pub(super) fn plan(mut files: Vec<(String, String)>) -> Vec<Unit> {
    files.sort();
    let mut units = Vec::new();
    let mut open = Unit { sources: Vec::new() };
    for (path, text) in files {
        let stays_alone = stays_alone(&path, &text);
        let source = Source { path, size_bytes: text.len() };
        if stays_alone {
            units.push(Unit { sources: vec![source] });
            continue;
        }
        let is_full = open.sources.len() == UNIT_FILES || open.size_bytes() + source.size_bytes > UNIT_BYTES;
        if is_full && !open.sources.is_empty() {
            units.push(Unit { sources: std::mem::take(&mut open.sources) });
        }
        open.sources.push(source);
    }
    if !open.sources.is_empty() {
        units.push(open);
    }
    units
}

/// Whether a file would change what the files after it in a unit mean.
fn stays_alone(path: &str, text: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ALONE.iter().any(|start| name.starts_with(start)) || changes_macros(text) || brings_names(text)
}

/// Whether a macro is left defined at the end, or one is removed that the file did not define. Conditions are not
/// followed, so a file may stay alone without need.
fn changes_macros(text: &str) -> bool {
    let mut defined = HashSet::new();
    let mut was_defined = HashSet::new();
    for line in text.lines() {
        let Some(directive) = line.trim_start().strip_prefix('#') else { continue };
        let mut words = directive.split_whitespace();
        let verb = words.next();
        let name = words.next().and_then(|word| word.split('(').next()).unwrap_or_default();
        match verb {
            Some("define") => {
                defined.insert(name);
                was_defined.insert(name);
            }
            Some("undef") => {
                defined.remove(name);
                if !was_defined.contains(name) {
                    return true;
                }
            }
            _ => {}
        }
    }
    !defined.is_empty()
}

/// Whether names of a namespace are brought into the global one (`using rocksdb::DB;`, not `using Key = …;`).
fn brings_names(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("using ") && line.contains("::") && !line.contains('='))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{ALONE, UNIT_BYTES, UNIT_FILES, Unit, brings_names, changes_macros, plan, rules};

    fn names(units: &[Unit]) -> Vec<Vec<&str>> {
        units.iter().map(|unit| unit.sources.iter().map(|source| source.path.as_str()).collect()).collect()
    }

    fn file(path: &str, size_bytes: usize) -> (String, String) {
        (path.to_owned(), "x".repeat(size_bytes))
    }

    #[test]
    fn units_are_full_at_a_size_or_a_count_and_hold_neighbours() {
        let half = UNIT_BYTES / 2;
        let large = vec![file("d/c.cc", half), file("d/a.cc", half), file("d/b.cc", half), file("e.cc", 1)];
        assert_eq!(names(&plan(large)), [vec!["d/a.cc", "d/b.cc"], vec!["d/c.cc", "e.cc"]]);
        let small: Vec<_> = (0..=UNIT_FILES).map(|index| file(&format!("{index:02}.cc"), 1)).collect();
        let sizes: Vec<_> = plan(small).iter().map(|unit| unit.sources.len()).collect();
        assert_eq!(sizes, [UNIT_FILES, 1]);
        assert_eq!(names(&plan(vec![file("huge.cc", 3 * UNIT_BYTES)])), [["huge.cc"]]);
        assert!(plan(Vec::new()).is_empty());
    }

    #[test]
    fn files_that_change_what_follows_stay_alone() {
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        let files = vec![
            file("a.cc", "int a;"),
            file("b/env_posix.cc", "int b;"),
            file("b/macro.cc", "#define LEFT 1\n"),
            file("c.cc", "int c;"),
        ];
        assert_eq!(names(&plan(files)), [vec!["b/env_posix.cc"], vec!["b/macro.cc"], vec!["a.cc", "c.cc"]]);
    }

    #[test]
    fn macros_that_are_left_or_removed_are_noticed() {
        assert!(changes_macros("#define A\n"));
        assert!(changes_macros("  # define A(x) x\n"));
        assert!(changes_macros("#undef A\n"));
        assert!(changes_macros("#undef A\n#define A\n#undef A\n"));
        assert!(changes_macros("#define A\n#undef A\n#define B\n"));
        assert!(!changes_macros("#define A(x) x\nA(1)\n#undef A\n"));
        assert!(!changes_macros("#include <a>\n#if B\n#endif\n"));
    }

    #[test]
    fn names_that_are_brought_to_all_are_noticed() {
        assert!(brings_names("using rocksdb::DB;\n"));
        assert!(brings_names("using namespace std::chrono;\n"));
        assert!(!brings_names("using Key = std::string;\n  using rocksdb::DB;\n"));
    }

    #[test]
    fn a_unit_is_read_as_includes_in_the_crates_folder() {
        let units = plan(vec![file("rocksdb/a.cc", 1), file("rocksdb/b.cc", 1)]);
        assert_eq!(units[0].name(), "rocksdb-a.cc-2");
        assert_eq!(units[0].text(), "#include \"rocksdb/a.cc\"\n#include \"rocksdb/b.cc\"\n");
        assert_eq!(units[0].single(), None);
        let singles = units[0].clone().split();
        assert_eq!(names(&singles), [["rocksdb/a.cc"], ["rocksdb/b.cc"]]);
        assert_eq!(singles[0].single(), Some("rocksdb/a.cc"));
    }

    /// When this changes, so does what `plan` makes: the archive must get another key.
    #[test]
    fn the_rules_are_part_of_the_key() {
        expect!["1: 600000 bytes, 36 files, alone crc32c env stack_trace xxhash"].assert_eq(&rules());
        assert!(ALONE.is_sorted());
    }
}
