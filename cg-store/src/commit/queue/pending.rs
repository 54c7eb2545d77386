//! The values of queued commits, for readers.

use std::collections::hash_map::Entry;

use crate::commit::transaction::{Changeable, Changes};
use crate::each_kind;
use crate::kinds::kind;
use crate::read::pending::PendingValues;

/// Adds the changes of a commit.
pub(super) fn add(pending: &mut PendingValues, seq: u64, changes: &Changes) {
    each_kind!(mut pending, changes, |newest, changes: K| {
        newest.extend(changes.iter().map(|(key, change)| (key.clone(), (seq, K::new(change).cloned()))));
    });
}

/// Forgets the changes of a commit, except those that a later commit replaced.
pub(super) fn remove(pending: &mut PendingValues, seq: u64, changes: &Changes) {
    each_kind!(mut pending, changes, |newest, changes| {
        for (key, _) in changes {
            if let Entry::Occupied(entry) = newest.entry(key.clone())
                && entry.get().0 == seq
            {
                entry.remove();
            }
        }
    });
}
