//! Verification of saved snapshots: a head has all its parts, and the parts have a head.
//!
//! The rows of one snapshot are adjacent, its head first, so each row is visited once. The store does not interpret the
//! value.

use std::ops::RangeInclusive;

use cg_format::frame::{self, FrameView};
use cg_format::{DecodeError, Space, key};

use super::{Verifier, VerifyDepth};
use crate::engine::Readable;
use crate::kinds::snapshots::{Head, decode_head, wrong_length};

/// The snapshot whose rows are being visited.
pub(super) struct Parts {
    name: String,
    /// Its head; `None` if there is no readable one, which was reported.
    head: Option<Head>,
    /// The number of the last visited part.
    last: u32,
}

impl Verifier<'_> {
    /// Checks that a row of a snapshot follows the one before it. A damaged row counts as present.
    pub(super) fn snapshot_row(&mut self, view: &dyn Readable, key: &[u8], row: &[u8]) {
        let Ok((name, part)) = key::decode_snapshot(key) else { return };
        if self.parts.as_ref().is_none_or(|parts| parts.name != name) {
            self.end_of_snapshot();
            let head = if part == 0 { decode_head(key, row).ok() } else { None };
            self.parts = Some(Parts { name: name.to_owned(), head, last: 0 });
            if part > 0 {
                self.look_for_head(view, name, key);
            }
        }
        let Some(Parts { head: Some(head), last, .. }) = &mut self.parts else { return };
        let head = *head;
        let missing = last.saturating_add(1)..=part.saturating_sub(1).min(head.part_count);
        *last = part.max(*last);
        self.missing_parts(missing);
        let what = if part > head.part_count {
            let count = head.part_count;
            format!("it is part {part}, and the head says {count}; `cg snapshot delete` removes all of it")
        } else if frame::version_of(row).is_some_and(|version| version > head.seq) {
            format!("it is newer than the head, which commit {} kept; restore it from a checkpoint", head.seq)
        } else {
            return;
        };
        self.find(Space::Snapshot, key, what);
    }

    /// Checks one row of a snapshot.
    pub(super) fn snapshot(
        &self,
        key: &[u8],
        row: &[u8],
        frame: &FrameView<'_>,
        depth: VerifyDepth,
    ) -> Result<(), DecodeError> {
        let (_, part) = key::decode_snapshot(key)?;
        if depth == VerifyDepth::Quick {
            return Ok(());
        }
        if part == 0 {
            return decode_head(key, row).map(drop);
        }
        let head = self.parts.as_ref().and_then(|parts| parts.head);
        let Some(head) = head.filter(|head| part <= head.part_count) else { return Ok(()) };
        let (found, expected) = (frame.payload().len() as u64, head.part_len_bytes(part));
        if found == expected { Ok(()) } else { Err(wrong_length(found, expected)) }
    }

    /// Called after the last row of a snapshot: checks that it was the last part.
    pub(super) fn end_of_snapshot(&mut self) {
        if let Some(Parts { head: Some(head), last, .. }) = &self.parts {
            self.missing_parts(last.saturating_add(1)..=head.part_count);
        }
        self.parts = None;
    }

    /// Called for unreadable rows, which may contain any parts.
    pub(super) fn gap_in_snapshots(&mut self) {
        self.parts = None;
    }

    fn missing_parts(&mut self, parts: RangeInclusive<u32>) {
        let Some(name) = self.parts.as_ref().map(|parts| parts.name.clone()) else { return };
        let (first, last) = (*parts.start(), *parts.end());
        if first > last {
            return;
        }
        let which =
            if first == last { format!("part {first} is") } else { format!("parts {first} to {last} are") };
        // The first part contains names and index.
        let help = if first == 1 {
            "delete the rest of it with `cg snapshot delete`"
        } else {
            "put back what is left of it with `cg snapshot restore --skip-damaged`"
        };
        let shown = name.escape_debug();
        let what = format!("{which} missing of snapshot `{shown}`; restore it from a checkpoint, or {help}");
        let key = key::snapshot(&name, first).unwrap_or_default();
        self.find(Space::Snapshot, &key, what);
    }

    /// Reports a part without a head, if no head can be found.
    fn look_for_head(&mut self, view: &dyn Readable, name: &str, key: &[u8]) {
        let head = key::snapshot(name, 0);
        if head.is_some_and(|head| matches!(view.get(Space::Snapshot, &head), Ok(None))) {
            let shown = name.escape_debug();
            let what = format!(
                "it is a part of snapshot `{shown}`, which has no head and is not there; `cg snapshot delete` removes \
                 what is left of it"
            );
            self.find(Space::Snapshot, key, what);
        }
    }
}
