//! Reading ahead of acceptance: over a network, the chunks that waiting batches replace or change are read together.
//!
//! A batch is accepted after the one before it, and reads what it replaces. Over a network each of these reads would be a
//! round trip. So the chunks of the next batches are loaded into memory in a few calls, where acceptance finds them.
//! A commit in between is seen: memory gets what a commit writes before readers may miss it.
//!
//! A world without memory for chunks reads nothing ahead.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use cg_format::ChunkAt;

use crate::commit::queue::Submitted;
use crate::commit::state::CommitState;
use crate::rt::pool::caught;

/// The batches that are read ahead together.
const BATCHES: usize = 64;
/// The chunks that are read ahead together. A row has some kilobytes.
const CHUNKS: usize = 1024;

/// How far submitted batches were read ahead.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    /// The number of the last batch whose chunks were read.
    up_to: AtomicU64,
}

impl CommitState {
    /// Loads the chunks of `next` and the batches after it, unless that was done. The caller has the right to accept, and is registered as accepting: functions of the host that upgrade chunks run here.
    pub(super) fn read_ahead(&self, next: &Submitted) {
        let up_to = &self.read_ahead.up_to;
        let is_due = next.number() > up_to.load(Ordering::Relaxed) && self.read.cache.max_bytes() > 0;
        if !is_due || !self.read.is_over_network() {
            return;
        }
        let mut places: BTreeSet<ChunkAt> = BTreeSet::new();
        let mut last = next.number();
        for submitted in self.queue.first_submitted(BATCHES) {
            submitted.batch.add_places(&mut places);
            last = submitted.number();
            if places.len() >= CHUNKS {
                break;
            }
        }
        let places: Vec<_> = places.into_iter().take(CHUNKS).collect();
        up_to.store(last, Ordering::Relaxed);
        // What cannot be read is read again by the batch that needs it, and reported there. So is a panic of a function
        // of the host that upgrades a chunk.
        let _read = caught(|| self.read.stored_many(&places));
    }
}
