//! Entities, properties, objects and records that transactions are about to put into their segments.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use cg_store::Error;
use cg_store::error::ConflictKey;
use cg_store::layer::{Mutex, rank};

use super::pos::SegmentPos;

/// The segment that each key is being put into, and how many transactions put it.
///
/// The root's place of a key may be outdated, so no other segment may put it until the transaction has committed.
#[derive(Debug, Default)]
pub(super) struct Putting(Mutex<HashMap<ConflictKey, (SegmentPos, usize)>, rank::SegmentPutting>);

/// Keys are being put until this is dropped.
pub(super) struct PuttingGuard<'p> {
    all: &'p Putting,
    keys: BTreeSet<ConflictKey>,
}

impl Putting {
    /// # Errors
    /// [`Error::Conflict`] if another segment is about to put one of them.
    pub(super) fn begin(&self, segment: SegmentPos, put: &[ConflictKey]) -> Result<PuttingGuard<'_>, Error> {
        let keys: BTreeSet<_> = put.iter().cloned().collect();
        let mut putting = self.0.lock();
        let elsewhere = |key: &&ConflictKey| putting.get(*key).is_some_and(|(other, _)| *other != segment);
        if let Some(key) = keys.iter().find(elsewhere) {
            return Err(Error::Conflict { key: key.clone() });
        }
        for key in &keys {
            putting.entry(key.clone()).or_insert((segment, 0)).1 += 1;
        }
        drop(putting);
        Ok(PuttingGuard { all: self, keys })
    }
}

impl Drop for PuttingGuard<'_> {
    fn drop(&mut self) {
        let mut putting = self.all.0.lock();
        for key in &self.keys {
            if let Entry::Occupied(mut entry) = putting.entry(key.clone()) {
                entry.get_mut().1 -= 1;
                if entry.get().1 == 0 {
                    entry.remove();
                }
            }
        }
    }
}
