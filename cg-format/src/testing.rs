//! What the tests of layouts share: annotated hex, golden files, and tables of `docs/format/` held against spans.

use std::fmt::Write as _;
use std::path::Path;
use std::string::String;
use std::vec::Vec;
use std::{eprintln, format, fs};

use crate::wire::Span;

/// Bytes of one printed line.
const LINE_LEN_BYTES: usize = 16;

/// Prints bytes field by field: offset, bytes, section and field. Repeated lines are shown as `*`.
pub(crate) fn annotated(bytes: &[u8], spans: &[Span]) -> String {
    let mut out = String::new();
    let mut next = 0;
    for span in spans {
        assert_eq!(span.offset_bytes, next, "fields follow each other: {span:?}");
        next += span.len_bytes;
        let field = &bytes[span.offset_bytes as usize..next as usize];
        let mut name = format!("{}: {}", span.section, span.field);
        if field.len() > LINE_LEN_BYTES {
            let _ = write!(name, " ({} bytes)", field.len());
        }
        print_field(&mut out, span.offset_bytes as usize, field, &name);
    }
    assert_eq!(next, bytes.len() as u64, "every byte belongs to a field");
    out
}

fn print_field(out: &mut String, at: usize, field: &[u8], name: &str) {
    let lines: Vec<&[u8]> = field.chunks(LINE_LEN_BYTES).collect();
    for (i, line) in lines.iter().enumerate() {
        let is_inner = i > 0 && i + 1 < lines.len();
        if is_inner && lines[i - 1] == *line {
            if i == 1 || lines[i - 2] != *line {
                out.push_str("*\n");
            }
            continue;
        }
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = if i == 0 { name } else { "" };
        let text = format!("{:06x}  {:<47}  {name}", at + i * LINE_LEN_BYTES, hex.join(" "));
        out.push_str(text.trim_end());
        out.push('\n');
    }
}

/// Compares bytes and their description with `testdata/golden/draft/<name>.bin` and `.txt`.
///
/// With `UPDATE_GOLDEN=1` the files are written instead.
#[track_caller]
pub(crate) fn golden(name: &str, bytes: &[u8], text: &str) {
    let stem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft").join(name);
    let (value, description) = (stem.with_extension("bin"), stem.with_extension("txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(value.parent().unwrap()).unwrap();
        fs::write(&value, bytes).unwrap();
        fs::write(&description, text).unwrap();
        eprintln!("wrote {}", value.display());
    }
    let read = |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(read(&value) == bytes, "{} differs from what is encoded; see its snapshot", value.display());
    assert_eq!(String::from_utf8(read(&description)).unwrap(), text, "{}", description.display());
}

/// The rows of the table under `<!-- layout: NAME -->`, without its head: the cells of each.
pub(crate) fn table<'a>(doc: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let marker = format!("<!-- layout: {name} -->\n");
    let (_, behind) = doc.split_once(&marker).unwrap_or_else(|| panic!("no {marker:?} in the page"));
    let lines = behind.trim_start().lines().take_while(|line| line.starts_with('|'));
    let cells = |line: &'a str| line.trim_matches('|').split('|').map(str::trim).collect();
    lines.skip(2).map(cells).collect()
}

/// Checks that a table lists exactly the fields that a decoder read, and the widths of those with one width.
#[track_caller]
pub(crate) fn check_table(doc: &str, name: &str, spans: &[Span]) {
    let rows = table(doc, name);
    for span in spans {
        let quoted = format!("`{}`", span.field);
        let Some(row) = rows.iter().find(|row| row[2] == quoted) else {
            panic!("table {name} has no row for the field {quoted}");
        };
        if let Ok(width) = row[1].parse::<u64>() {
            assert_eq!(span.len_bytes, width, "table {name}, width of {quoted}");
        }
    }
    for row in &rows {
        let is_read = spans.iter().any(|span| row[2] == format!("`{}`", span.field));
        assert!(is_read, "table {name} lists {}, which no golden has", row[2]);
    }
}
