//! The library's log: a ring of lines that the host fetches.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int};
use std::fmt::{self, Write as _};
use std::sync::Once;

use parking_lot::Mutex;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::call::unreported;
use crate::error::{CG_ABSENT, CG_OK, cut};
use crate::memory::{Out, OutSlice};

/// The lines that are kept.
const LINES: usize = 1024;
/// The longest line. The rest of a longer one is cut off.
const LINE_BYTES: usize = 64 << 10;

#[derive(Debug)]
struct Ring {
    lines: VecDeque<(u32, String)>,
    /// Lines that were forgotten since the last one that was fetched.
    dropped: u64,
}

static RING: Mutex<Ring> = Mutex::new(Ring { lines: VecDeque::new(), dropped: 0 });

impl Ring {
    fn push(&mut self, level: u32, line: String) {
        if self.lines.len() >= LINES {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back((level, line));
    }

    fn next(&mut self) -> Option<(u32, String)> {
        match std::mem::take(&mut self.dropped) {
            0 => self.lines.pop_front(),
            dropped => Some((2, format!("{dropped} older lines of this log were dropped"))),
        }
    }
}

/// Puts what the library reports into the ring, if the program has no log of its own in Rust.
struct Log;

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        // No span is enabled, so none is told from another.
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let level = match *event.metadata().level() {
            Level::ERROR => 1,
            Level::WARN => 2,
            _ => 3,
        };
        let mut line = Line::default();
        event.record(&mut line);
        let text = line.message + &line.fields;
        let text = cut(&text, LINE_BYTES).to_owned();
        RING.lock().push(level, text);
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

#[derive(Debug, Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // A string takes any text.
        let _written = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

/// Begins to collect lines.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // A program in Rust that has a log of its own keeps it.
        let _is_ours = tracing::subscriber::set_global_default(Log);
    });
}

/// The next line of the log. See the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cg_log_next(
    buffer: *mut c_char,
    cap: usize,
    len: *mut usize,
    level: *mut u32,
) -> c_int {
    unreported("cg_log_next", || {
        start();
        // SAFETY: the caller keeps the header's rules of memory.
        let (buffer, len, level) = unsafe {
            (
                OutSlice::new(buffer.cast::<u8>(), cap, "buffer")?,
                Out::new(len, "len")?,
                Out::new(level, "level")?,
            )
        };
        let Some((of, line)) = RING.lock().next() else {
            len.put(0);
            level.put(0);
            return Ok(CG_ABSENT);
        };
        len.put(line.len());
        level.put(of);
        let shown = cut(&line, cap);
        // What a character leaves that does not fit.
        let rest = cap.min(line.len()) - shown.len();
        buffer.put(shown.bytes().chain(std::iter::repeat_n(0, rest)));
        Ok(CG_OK)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ring_counts_what_it_drops() {
        let mut ring = Ring { lines: VecDeque::new(), dropped: 0 };
        assert_eq!(ring.next(), None);
        for line in 0..LINES + 3 {
            ring.push(3, line.to_string());
        }
        assert_eq!(ring.next(), Some((2, "3 older lines of this log were dropped".into())));
        assert_eq!(ring.next(), Some((3, "3".into())));
        assert_eq!(ring.lines.len(), LINES - 1);
    }
}
