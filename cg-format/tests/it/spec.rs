//! The tables in `docs/format/` against the decoders.
//!
//! A table that describes stored bytes has the columns `offset | width | field | meaning | allowed` and a marker on the
//! line above it: `<!-- layout: NAME -->`. [`layouts`] says for each name which sections it describes and gives
//! decoders' traces of real values. Checked are:
//! - every marked table has an entry in [`layouts`], and the reverse;
//! - the fields of the table are the fields that the traces hold, no more and no less, in the order first met;
//! - where width is a number, each such field has that width;
//! - where offset is a number, each such field has that offset, counted from where the table's first field was last
//!   seen. Offsets and widths that are no plain numbers are for people.
//!
//! To add a layout: write the table, add the marker, add a line to [`layouts`].

use std::collections::BTreeMap;
use std::path::Path;

use cg_format::Section;
use cg_format::wire::Span;

use crate::chunk;

struct Layout {
    name: &'static str,
    sections: &'static [Section],
    traces: Vec<Vec<Span>>,
}

fn layouts() -> Vec<Layout> {
    let chunks = chunk::goldens::traces();
    let of_chunk = |name, sections| Layout { name, sections, traces: chunks.clone() };
    vec![
        of_chunk("chunk-header", &[Section::ChunkHeader]),
        of_chunk("chunk-blocks", &[Section::Palette, Section::Blocks, Section::Layers]),
        of_chunk("chunk-components", &[Section::Components]),
        of_chunk("chunk-entities", &[Section::Entities]),
        of_chunk("side-data", &[Section::SideData]),
    ]
}

#[derive(Debug)]
struct Row {
    offset: String,
    width: String,
    field: String,
}

#[test]
fn tables_say_what_decoders_read() {
    let tables = tables(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/format"));
    let layouts = layouts();
    let mut names: Vec<&str> = layouts.iter().map(|layout| layout.name).collect();
    names.sort_unstable();
    assert_eq!(tables.keys().map(String::as_str).collect::<Vec<_>>(), names, "marked tables and layouts");
    for layout in &layouts {
        check(layout, &tables[layout.name]);
    }
}

#[track_caller]
fn check(layout: &Layout, rows: &[Row]) {
    let name = layout.name;
    let mut met: Vec<&str> = Vec::new();
    for trace in &layout.traces {
        let mut base = None;
        for span in trace.iter().filter(|span| layout.sections.contains(&span.section)) {
            if !met.contains(&span.field) {
                met.push(span.field);
            }
            let Some(row) = rows.iter().find(|row| row.field == span.field) else {
                panic!("{name}: the decoder reads {:?}, the table does not have it", span.field);
            };
            if let Ok(width) = row.width.parse::<u64>() {
                assert_eq!(span.len_bytes, width, "{name}: width of {}", span.field);
            }
            if let Ok(offset) = row.offset.parse::<u64>() {
                if row.field == rows[0].field {
                    base = Some(span.offset_bytes - offset);
                }
                let base = base.expect("a table's first field comes first");
                assert_eq!(span.offset_bytes - base, offset, "{name}: offset of {}", span.field);
            }
        }
    }
    let listed: Vec<&str> = rows.iter().map(|row| row.field.as_str()).collect();
    met.sort_by_key(|field| listed.iter().position(|listed| listed == field));
    assert_eq!(listed, met, "{name}: fields of the table, and fields that real values have");
}

fn tables(folder: &Path) -> BTreeMap<String, Vec<Row>> {
    let mut tables = BTreeMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let Some(name) = line.strip_prefix("<!-- layout: ").and_then(|rest| rest.strip_suffix(" -->"))
            else {
                continue;
            };
            let mut cells = lines.by_ref().take_while(|line| line.starts_with('|')).map(|line| {
                line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
            });
            assert_eq!(
                cells.next().unwrap_or_default(),
                ["offset", "width", "field", "meaning", "allowed"],
                "{name} in {}",
                path.display()
            );
            let rows = cells.skip(1).map(|cells| match cells.as_slice() {
                [offset, width, field, _, _] => {
                    Row { offset: offset.clone(), width: width.clone(), field: field.clone() }
                }
                cells => panic!("{name}: five cells, not {cells:?}"),
            });
            let double = tables.insert(name.to_owned(), rows.collect());
            assert!(double.is_none(), "{name} is the name of two tables");
        }
    }
    tables
}
