//! A dump of stored bytes with the names of their fields.

use alloc::string::String;
use core::fmt::Write;

use super::Span;

const LINE_BYTES: usize = 16;
/// The maximum number of lines of one field. A longer field is shortened in the middle.
const MAX_LINES: usize = 4;

/// Prints bytes as hexadecimal lines with offset, bytes and field name, under the names of their sections.
///
/// The spans come from a decoder's `trace`. Bytes without a span are printed as unexplained; long fields are shortened
/// in the middle.
///
/// ```
/// use cg_format::Section;
/// use cg_format::wire::{Span, annotate};
/// let spans = [Span { section: Section::Entities, field: "entity count", offset_bytes: 0, len_bytes: 2 }];
/// let text = annotate(&spans, &[0, 1, 2]);
/// assert_eq!(text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>(), [
///     "entity section",
///     "000000 00 01 entity count",
///     "unexplained",
///     "000002 02 1 bytes",
/// ]);
/// ```
pub fn annotate(spans: &[Span], bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut section = None;
    let mut done = 0;
    for span in spans {
        unexplained(&mut out, bytes, done, span.offset_bytes);
        if section != Some(span.section) {
            let _ = writeln!(out, "{}", span.section);
            section = Some(span.section);
        }
        done = span.offset_bytes + span.len_bytes;
        field(&mut out, bytes, span.offset_bytes, done, span.field);
    }
    unexplained(&mut out, bytes, done, bytes.len() as u64);
    out
}

fn unexplained(out: &mut String, bytes: &[u8], start: u64, end: u64) {
    if start < end {
        let _ = writeln!(out, "unexplained");
        field(out, bytes, start, end, &alloc::format!("{} bytes", end - start));
    }
}

fn field(out: &mut String, bytes: &[u8], start: u64, end: u64, name: &str) {
    let part = bytes.get(start as usize..end as usize).unwrap_or(&[]);
    if part.is_empty() {
        let _ = writeln!(out, "  {start:06x}  {:48}  {name}", "-");
    }
    let lines = part.chunks(LINE_BYTES).count();
    let cut = if lines > MAX_LINES { MAX_LINES - 1..lines - 1 } else { 0..0 };
    for (index, line) in part.chunks(LINE_BYTES).enumerate() {
        if cut.contains(&index) {
            if index == cut.start {
                let _ = writeln!(out, "          … {} lines of {LINE_BYTES} bytes", cut.len());
            }
            continue;
        }
        let hex: String = line.iter().map(|byte| alloc::format!("{byte:02x} ")).collect();
        let name = if index == 0 { name } else { "" };
        let text = alloc::format!("  {:06x}  {hex:48}  {name}", start as usize + index * LINE_BYTES);
        let _ = writeln!(out, "{}", text.trim_end());
    }
}
