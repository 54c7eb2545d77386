//! Output and end of a command: one value as text or as JSON, and an exit code.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use cg_store::World;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::failure::Code;
pub(crate) use crate::failure::Failure;
use crate::shown::{Json, Screen, shown};

/// How results are written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON value on one line, for scripts.
    Json,
}

/// Where results go.
#[derive(Debug)]
pub(crate) struct Output {
    format: Format,
}

/// A failure in JSON.
#[derive(Debug, Serialize)]
struct ErrorReport {
    error: ErrorText,
}

#[derive(Debug, Serialize)]
struct ErrorText {
    code: &'static str,
    message: String,
}

/// A warning in JSON.
#[derive(Debug, Serialize)]
struct WarningReport<'a> {
    warning: &'a str,
}

/// How a command that ran to its end found things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(crate) enum Outcome {
    /// Nothing is wrong: exit code 0.
    Good,
    /// Something is damaged, lost or refused: exit code 1.
    Findings,
    /// The named thing is not there, and the result says so: exit code 4.
    Absent,
}

impl Output {
    pub(crate) const fn new(format: Format) -> Self {
        Self { format }
    }

    /// Prints a result, without what a terminal would take for a command.
    ///
    /// A reader that has gone away, as in `cg dump … | head`, is no failure.
    pub(crate) fn print(&self, report: &(impl Serialize + Display)) -> Result<(), Failure> {
        self.print_to(io::stdout().lock(), report)
    }

    /// As [`print`](Self::print), on standard error: for a command whose standard output has other bytes.
    pub(crate) fn print_beside(&self, report: &(impl Serialize + Display)) -> Result<(), Failure> {
        self.print_to(io::stderr().lock(), report)
    }

    fn print_to(&self, mut out: impl io::Write, report: &(impl Serialize + Display)) -> Result<(), Failure> {
        let written = match self.format {
            Format::Text => Screen::new(&mut out).show(report),
            Format::Json => {
                let mut json = serde_json::Serializer::with_formatter(&mut out, Json);
                let written = report.serialize(&mut json);
                written.map_err(io::Error::from).and_then(|()| out.write_all(b"\n"))
            }
        };
        match written.and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
            _ => Ok(()),
        }
    }

    /// Prints on standard error why a command did not run to its end.
    pub(crate) fn print_failure(&self, failure: &Failure) {
        let message = failure.to_string();
        let mut err = io::stderr().lock();
        // Without a reader, the exit code says it.
        let _unread = match self.format {
            Format::Text => writeln!(err, "cg: {}", shown(&message)),
            Format::Json => {
                let report = ErrorReport { error: ErrorText { code: failure.code().as_str(), message } };
                let written = report.serialize(&mut serde_json::Serializer::with_formatter(&mut err, Json));
                written.map_err(io::Error::from).and_then(|()| err.write_all(b"\n"))
            }
        };
    }

    /// Prints on standard error what is to be known while a command goes on.
    pub(crate) fn warn(&self, message: &str) {
        let mut err = io::stderr().lock();
        // A standard error that is closed is no failure: the result says it too.
        let _unread = match self.format {
            Format::Text => writeln!(err, "cg: {}", shown(message)),
            Format::Json => {
                let written = WarningReport { warning: message }
                    .serialize(&mut serde_json::Serializer::with_formatter(&mut err, Json));
                written.map_err(io::Error::from).and_then(|()| err.write_all(b"\n"))
            }
        };
    }

    /// Prints on standard error what a person may want to know beside the result. Not in JSON, where it would not be a
    /// report.
    pub(crate) fn note(&self, message: &str) {
        if self.format == Format::Text {
            let _unread = writeln!(io::stderr().lock(), "cg: {}", shown(message));
        }
    }

    /// Whether output is text and standard error a terminal: only then progress is shown.
    fn shows_progress(&self) -> bool {
        self.format == Format::Text && io::stderr().is_terminal()
    }

    /// A count on standard error of work without a known total.
    pub(crate) fn progress(&self, what: &'static str) -> ProgressBar {
        let bar = if self.shows_progress() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.with_style(style("{spinner} {msg}: {human_pos} ({per_sec})")).with_message(what)
    }

    /// A count on standard error with its total, and the time that is left.
    pub(crate) fn progress_of(&self, what: &'static str, total: u64) -> ProgressBar {
        let target =
            if self.shows_progress() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        bar_of(target, what, total)
    }

    /// Does work on chunks of a world while [progress](Self::progress_of) shows how many of them it has decoded.
    ///
    /// The chunks are counted beforehand if progress is shown: of clusters, that reads the directories.
    pub(crate) fn watch_chunks<T>(
        &self,
        what: &'static str,
        world: &World,
        work: impl FnOnce() -> T,
    ) -> Result<T, Failure> {
        if !self.shows_progress() {
            return Ok(work());
        }
        let bar = self.progress_of(what, world.tiers().census()?.chunks());
        let before = world.metrics().stats.chunks_decoded;
        let done = thread::scope(|scope| {
            let (end, ended) = channel::<()>();
            scope.spawn(|| {
                let ended = ended;
                while ended.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                    bar.set_position(world.metrics().stats.chunks_decoded - before);
                }
            });
            let done = work();
            drop(end);
            done
        });
        bar.finish_and_clear();
        Ok(done)
    }
}

/// How often a world is asked how far its work is.
const LOOK_EVERY: Duration = Duration::from_millis(100);

fn bar_of(target: ProgressDrawTarget, what: &'static str, total: u64) -> ProgressBar {
    let style = style("{spinner} {msg}: {human_pos} of {human_len} ({per_sec}, {eta} left)");
    ProgressBar::with_draw_target(Some(total), target).with_style(style).with_message(what)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is a constant")
}

impl Outcome {
    /// Good exactly if nothing was found.
    pub(crate) const fn good_if(good: bool) -> Self {
        if good { Self::Good } else { Self::Findings }
    }

    /// Good exactly if the named thing was there.
    pub(crate) const fn good_if_there(is_there: bool) -> Self {
        if is_there { Self::Good } else { Self::Absent }
    }
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Good => Self::SUCCESS,
            Outcome::Findings => Self::from(Code::Damaged.exit()),
            Outcome::Absent => Self::from(Code::Absent.exit()),
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that hexadecimal digits stand for, or `None` if they are none.
pub(crate) fn unhex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let pairs = digits.chunks_exact(2).map(|pair| str::from_utf8(pair).ok());
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// A count with a comma after every three digits from the right.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A count with its noun: `1 block`, `2,048 blocks`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// A length in the unit that keeps it below 1,024.
pub(crate) fn bytes_text(len_bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if len_bytes < 1024 {
        return format!("{len_bytes} B");
    }
    let mut size = len_bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that keeps what is written.
    #[derive(Debug, Clone, Default)]
    struct Kept(Arc<Mutex<String>>);

    impl TermLike for Kept {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().expect("nothing panics").push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn progress_shows_its_total_and_the_time_left() {
        let screen = Kept::default();
        let bar = bar_of(ProgressDrawTarget::term_like(Box::new(screen.clone())), "rows checked", 4000);
        bar.set_position(1000);
        bar.tick();
        let shown = screen.0.lock().expect("nothing panics").clone();
        assert!(shown.contains(" rows checked: 1,000 of 4,000 (") && shown.contains("s left)"), "{shown}");
    }

    #[test]
    fn counts_and_lengths_read_well() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0, 1023, 1024, 1_572_864].map(bytes_text), ["0 B", "1023 B", "1.0 KiB", "1.5 MiB"]);
        assert_eq!([counted(1, "row"), counted(2048, "row")], ["1 row", "2,048 rows"]);
        assert_eq!(bytes_text(u64::MAX), "16384.0 PiB");
    }

    #[test]
    fn hexadecimal_goes_both_ways() {
        assert_eq!(unhex(&hex(&[0, 0xab, 255])), Some(vec![0, 0xab, 255]));
        assert_eq!(["a", "zz", "+1"].map(unhex), [None, None, None]);
    }
}
