//! The report that is printed.

use std::collections::BTreeMap;
use std::fmt;

use crate::verdict::Verdict;

/// The columns, in order.
const VERDICTS: [(Verdict, &str); 9] = [
    (Verdict::OpenError, "open error"),
    (Verdict::ReadError, "read error"),
    (Verdict::Harmless, "harmless"),
    (Verdict::Tail, "unsynced tail gone"),
    (Verdict::Lost, "SILENT LOSS"),
    (Verdict::Wrong, "WRONG VALUE"),
    (Verdict::Panic, "PANIC"),
    (Verdict::Crash, "CRASH"),
    (Verdict::Hang, "HANG"),
];

/// How often each verdict was reached, by what was done.
#[derive(Debug, Default)]
pub(crate) struct Table(BTreeMap<String, BTreeMap<Verdict, u64>>);

impl Table {
    /// Counts one case.
    pub(crate) fn count(&mut self, row: &str, verdict: Verdict) {
        *self.0.entry(row.to_owned()).or_default().entry(verdict).or_default() += 1;
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = VERDICTS.map(|(_, name)| name);
        writeln!(f, "| file | cases | {} |", names.join(" | "))?;
        writeln!(f, "|---|---|{}", "---|".repeat(VERDICTS.len()))?;
        for (row, counts) in &self.0 {
            write!(f, "| {row} | {} |", counts.values().sum::<u64>())?;
            for (verdict, _) in VERDICTS {
                write!(f, " {} |", counts.get(&verdict).copied().unwrap_or_default())?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// `1 kill`, `2 kills`.
pub(crate) fn plural(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
