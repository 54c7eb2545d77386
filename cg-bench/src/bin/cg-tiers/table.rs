//! Two columns of figures and what one is to the other.

use std::time::Duration;

/// The unit of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unit {
    Bytes,
    Nanoseconds,
    Plain,
}

/// A figure of each side.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    pub(crate) reference: f64,
    pub(crate) ours: f64,
    /// The most that ours may be of the reference.
    pub(crate) aim: Option<f64>,
}

/// Markdown, ready for `docs/lab`.
pub(crate) fn print(reference: &str, ours: &str, rows: &[Row]) {
    println!("| | {reference} | {ours} | ratio | aim |");
    println!("|---|--:|--:|--:|---|");
    for row in rows {
        let ratio = row.ours / row.reference;
        let aim = row.aim.map_or(String::new(), |aim| {
            let met = if ratio <= aim { "met".to_owned() } else { format!("missed by {:.2}×", ratio / aim) };
            format!("≤ {aim}: {met}")
        });
        let [reference, ours] = [row.reference, row.ours].map(|value| row.unit.text(value));
        let ratio = if ratio.is_finite() { format!("{ratio:.2}") } else { String::new() };
        println!("| {} | {reference} | {ours} | {ratio} | {aim} |", row.what);
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Bytes => format!("{:.1} MB", value / 1e6),
            Self::Nanoseconds => format!("{:.1?}", Duration::from_nanos(value as u64)),
            Self::Plain => format!("{value:.2}"),
        }
    }
}
