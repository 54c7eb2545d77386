//! Text from elsewhere as it is shown: names in files, saves and packs may hold what a terminal takes for a command.
//!
//! Reports go through [`Screen`], which lets through lines and tabs and nothing else that is no character to look at. A
//! name that stands in a line goes through [`shown`] besides, so that it cannot begin a line of its own.

use std::fmt::{self, Write as _};
use std::io;

use serde_json::ser::Formatter;

/// A text on one line, without anything that moves the cursor, colours, or turns the direction of writing.
pub(crate) const fn shown(text: &str) -> Shown<'_> {
    Shown(text)
}

/// As [`shown`] gives it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a>(&'a str);

/// Whether a terminal does something else with a character than to show it.
fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}'
        )
}

fn write_escaped(
    text: &str,
    out: &mut (impl fmt::Write + ?Sized),
    passes: impl Fn(char) -> bool,
) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(|c| is_command(c) && !passes(c)) {
        let (before, from) = rest.split_at(at);
        out.write_str(before)?;
        let mut chars = from.chars();
        for c in chars.next().into_iter().flat_map(char::escape_default) {
            out.write_char(c)?;
        }
        rest = chars.as_str();
    }
    out.write_str(rest)
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(self.0, f, |_| false)
    }
}

/// Writes text for people, in lines.
pub(crate) struct Screen<W> {
    out: W,
    failed: Option<io::Error>,
}

impl<W: io::Write> Screen<W> {
    pub(crate) const fn new(out: W) -> Self {
        Self { out, failed: None }
    }

    /// Writes a report.
    pub(crate) fn show(mut self, report: &impl fmt::Display) -> io::Result<()> {
        let written = write!(self, "{report}");
        match (written, self.failed) {
            (_, Some(error)) => Err(error),
            (Err(error), None) => Err(io::Error::other(error)),
            (Ok(()), None) => Ok(()),
        }
    }
}

impl<W: io::Write> fmt::Write for Screen<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut escaped = String::new();
        let is_plain = !text.contains(is_command);
        if !is_plain {
            write_escaped(text, &mut escaped, |c| matches!(c, '\n' | '\t'))?;
        }
        let bytes = if is_plain { text.as_bytes() } else { escaped.as_bytes() };
        self.out.write_all(bytes).map_err(|error| {
            self.failed = Some(error);
            fmt::Error
        })
    }
}

/// JSON on one line, in whose texts those characters have numbers that are no ASCII. What it says is the same.
#[derive(Debug, Default)]
pub(crate) struct Json;

impl Formatter for Json {
    fn write_string_fragment<W>(&mut self, out: &mut W, fragment: &str) -> io::Result<()>
    where
        W: ?Sized + io::Write,
    {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_command) {
            let (before, from) = rest.split_at(at);
            out.write_all(before.as_bytes())?;
            let mut chars = from.chars();
            if let Some(c) = chars.next() {
                write!(out, "\\u{:04x}", u32::from(c))?;
            }
            rest = chars.as_str();
        }
        out.write_all(rest.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize as _;

    use super::*;

    /// A title, the screen cleared, a line of its own, and a word that is read from its end.
    const HOSTILE: &str =
        "a\x1b]0;mine\x07b\x1b[2J\ncg: all is well\r\u{9b}31m\u{202e}dlrow\u{2069}\tπ \u{7f}";

    #[test]
    fn a_name_commands_no_terminal_and_begins_no_line() {
        assert_eq!(
            shown(HOSTILE).to_string(),
            "a\\u{1b}]0;mine\\u{7}b\\u{1b}[2J\\ncg: all is well\\r\\u{9b}31m\\u{202e}dlrow\\u{2069}\\tπ \\u{7f}"
        );
        for plain in ["", "game:stone[axis=y]", "C:\\saves\\☃", "שלום 'x' \"y\""] {
            assert_eq!(shown(plain).to_string(), plain);
        }
    }

    #[test]
    fn a_report_keeps_its_lines() {
        let mut out = Vec::new();
        Screen::new(&mut out).show(&format_args!("one\n\ttwo {HOSTILE}\n")).expect("memory is left");
        let out = String::from_utf8(out).expect("text");
        assert_eq!(out.lines().count(), 3);
        assert!(!out.chars().any(|c| is_command(c) && c != '\n' && c != '\t'), "{out:?}");
    }

    #[test]
    fn json_says_the_same() {
        let mut out = Vec::new();
        HOSTILE
            .serialize(&mut serde_json::Serializer::with_formatter(&mut out, Json))
            .expect("memory is left");
        let out = String::from_utf8(out).expect("text");
        assert!(!out.contains(is_command), "{out:?}");
        assert_eq!(serde_json::from_str::<String>(&out).expect("JSON"), HOSTILE);
    }

    #[test]
    fn who_reads_no_more_is_told_by_the_reader() {
        struct Gone;
        impl io::Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = Screen::new(Gone).show(&"text").expect_err("nobody reads");
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
