//! Verdicts on damaged columns, which a server asks for each tick.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use cg_store::ErrorKind;

use crate::error::Error;
use crate::place::ColumnAt;

/// How long a verdict is remembered.
const REMEMBERED: Duration = Duration::from_secs(30);
/// The most verdicts that are remembered.
const MAX_VERDICTS: usize = 4096;

/// Errors of columns that were damaged when they were read last.
#[derive(Debug, Default)]
pub(super) struct Verdicts(HashMap<ColumnAt, (Instant, Error)>);

impl Verdicts {
    /// Remembers the error of a column if it is damage, and writes it to the log.
    pub(super) fn remember(&mut self, at: ColumnAt, error: &Error) {
        if error.kind() != ErrorKind::Damaged {
            return;
        }
        tracing::error!(%error, column = %at, "a column cannot be read");
        self.0.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        if self.0.len() < MAX_VERDICTS {
            self.0.insert(at, (Instant::now(), error.clone()));
        }
    }

    /// Forgets the verdicts on a column, which was written.
    pub(super) fn forget(&mut self, at: &ColumnAt) {
        self.0.retain(|of, _| (of.dimension, of.x, of.z) != (at.dimension, at.x, at.z));
    }

    /// Forgets all verdicts: chunks were written past the columns.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The verdict on a column, if it is remembered.
    pub(super) fn find(&self, at: &ColumnAt) -> Option<Error> {
        let (since, error) = self.0.get(at)?;
        (since.elapsed() < REMEMBERED).then(|| error.clone())
    }
}
