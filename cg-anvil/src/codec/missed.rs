//! Content that slots of a save do not hold.

use std::collections::BTreeMap;

/// Takes note of content that slots do not hold: in words, and how often.
pub(crate) struct Missed<'a>(pub(crate) &'a mut BTreeMap<String, u64>);

impl Missed<'_> {
    pub(crate) fn add(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.0.entry(what.into()).or_default() += count;
        }
    }
}
