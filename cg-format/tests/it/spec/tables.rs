//! Reads the marked tables of `docs/format/` and holds them against what decoders read. cg-registry's tests use this
//! file too.
//!
//! A table that describes stored bytes has the columns `offset | width | field | meaning | allowed` and a marker on the
//! line above it: `<!-- layout: NAME -->`. Checked are:
//! - every marked table has a [`Layout`], and the reverse;
//! - the fields of the table are the fields that the traces hold, no more and no less, in the order first met;
//! - where width is a number, each such field has that width;
//! - where offset is a number, the first such field has that offset, counted from where the table's first field was
//!   last seen. Offsets and widths that are no plain numbers are for people.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cg_format::Section;
use cg_format::wire::Span;

/// The layout that one table describes.
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) sections: &'static [Section],
    /// Fields that a decoder reads from each golden file.
    pub(crate) traces: Vec<Vec<Span>>,
}

/// The cells of a table without its head, row by row.
pub(crate) type Table = Vec<Vec<String>>;

/// The path of something in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The golden files of a folder of `testdata/golden/draft`, by their names without `.bin`.
pub(crate) fn goldens(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = repository("testdata/golden/draft").join(folder);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = files.map(|file| file.unwrap().path());
    let mut goldens: Vec<(String, Vec<u8>)> = paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read(path).unwrap()))
        .collect();
    goldens.sort();
    assert!(!goldens.is_empty(), "{} holds no golden file", folder.display());
    goldens
}

/// Every marked table of `docs/format/`, by name.
pub(crate) fn tables() -> BTreeMap<String, Table> {
    let mut tables = BTreeMap::new();
    for file in std::fs::read_dir(repository("docs/format")).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let marker = line.strip_prefix("<!-- layout: ").and_then(|rest| rest.strip_suffix(" -->"));
            let Some(name) = marker else { continue };
            let rows = lines.by_ref().take_while(|line| line.starts_with('|'));
            let cells =
                |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
            let table: Table = rows.skip(2).map(cells).collect();
            assert!(!table.is_empty(), "{name} in {} is no table", path.display());
            assert!(tables.insert(name.to_owned(), table).is_none(), "{name} is the name of two tables");
        }
    }
    tables
}

/// Checks one layout against its table.
#[track_caller]
pub(crate) fn check(layout: &Layout, table: &Table) {
    let name = layout.name;
    for row in table {
        assert_eq!(row.len(), 5, "{name}: five cells, not {row:?}");
    }
    let listed: Vec<&str> = table.iter().map(|row| row[2].trim_matches('`')).collect();
    let mut met: Vec<&str> = Vec::new();
    for trace in &layout.traces {
        let mut base = None;
        // Of what repeats, the offset says where the first stands.
        let mut placed: Vec<&str> = Vec::new();
        for span in trace.iter().filter(|span| layout.sections.contains(&span.section)) {
            if !met.contains(&span.field) {
                met.push(span.field);
            }
            let Some(place) = listed.iter().position(|listed| *listed == span.field) else {
                panic!("{name}: the decoder reads {:?}, the table does not have it", span.field);
            };
            if let Ok(width) = table[place][1].parse::<u64>() {
                assert_eq!(span.len_bytes, width, "{name}: width of {}", span.field);
            }
            if let Ok(offset) = table[place][0].parse::<u64>() {
                if place == 0 || base.is_none() {
                    base = Some(span.offset_bytes - offset);
                    placed.clear();
                }
                if placed.contains(&span.field) {
                    continue;
                }
                placed.push(span.field);
                let found = span.offset_bytes - base.unwrap_or_default();
                assert_eq!(found, offset, "{name}: offset of {}", span.field);
            }
        }
    }
    met.sort_by_key(|field| listed.iter().position(|listed| listed == field));
    assert_eq!(listed, met, "{name}: fields of the table, and fields that golden files have");
}
