//! The worlds of segments that are open: a bounded number, unless more are in use.
//!
//! They share one memory for decoded chunks, and each has an equal part of it. So a single open segment has all of it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cg_store::layer::{Mutex, RwLock, rank, set_cache_bytes};
use cg_store::{Error, World};

use super::pos::SegmentPos;

/// The worlds of segments, open or not. A user of a world holds its lock shared; closing it takes the lock
/// exclusively.
#[derive(Debug)]
pub(super) struct Slots {
    all: RwLock<HashMap<SegmentPos, Arc<Slot>>, rank::SegmentSlots>,
    clock: AtomicU64,
    max_open: usize,
    /// The memory of all segments together.
    cache_bytes: u64,
    /// Held while it is divided.
    dividing: Mutex<(), rank::SegmentDividing>,
    /// Refusals of what was submitted that no ticket and no flush of the host has reported.
    refusals: Mutex<Option<Error>, rank::SegmentRefusals>,
    /// Set before everything is closed, and never cleared.
    closed: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) world: RwLock<Option<World>, rank::SegmentWorld>,
    used: AtomicU64,
}

impl Slot {
    /// Whether the segment is open, being opened or being closed.
    pub(super) fn is_open(&self) -> bool {
        self.world.try_read().is_none_or(|world| world.is_some())
    }
}

impl Slots {
    pub(super) fn new(max_open: usize, cache_bytes: u64) -> Self {
        let (all, clock, dividing, refusals, closed) = Default::default();
        Self { all, clock, max_open: max_open.max(1), cache_bytes, dividing, refusals, closed }
    }

    /// The slot of a segment. Marks it as used now.
    pub(super) fn slot(&self, segment: SegmentPos) -> Arc<Slot> {
        let slot = self.find(segment).unwrap_or_else(|| {
            let new = || Arc::new(Slot { world: RwLock::new(None), used: AtomicU64::default() });
            Arc::clone(self.all.write().entry(segment).or_insert_with(new))
        });
        self.mark(&slot);
        slot
    }

    /// The slot of a segment, if it was used before.
    pub(super) fn find(&self, segment: SegmentPos) -> Option<Arc<Slot>> {
        self.all.read().get(&segment).map(Arc::clone)
    }

    /// Marks a slot as used now.
    pub(super) fn mark(&self, slot: &Slot) {
        slot.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(super) fn all(&self) -> Vec<(SegmentPos, Arc<Slot>)> {
        self.all.read().iter().map(|(segment, slot)| (*segment, Arc::clone(slot))).collect()
    }

    /// The segments that are open or locked exclusively, ascending.
    pub(super) fn list(&self) -> Vec<SegmentPos> {
        let all = self.all.read();
        let open = all.iter().filter(|(_, slot)| slot.is_open());
        let mut open: Vec<_> = open.map(|(segment, _)| *segment).collect();
        open.sort_unstable();
        open
    }

    /// What a segment has of the memory when it is opened, before the memory is divided again.
    pub(super) fn first_cache_bytes(&self) -> u64 {
        self.cache_bytes / self.max_open as u64
    }

    /// Divides the memory among the open segments. Called after every call that locked a slot exclusively, whether or
    /// not it opened or closed anything, and never while it holds the slot.
    ///
    /// A slot that is locked exclusively counts as open. Its holder calls this afterwards, and the last caller finds no
    /// such slot and the final number: then no more than the memory is divided. Before that, the sum of the limits may
    /// exceed it: by the first part of a segment that is being opened, by the part of one whose deletion waits for its
    /// users, and while this call raises some before it lowers others.
    pub(super) fn divide(&self) {
        let _one_at_a_time = self.dividing.lock();
        let part = self.cache_bytes / self.count().max(1) as u64;
        for (_, slot) in self.all() {
            // Does not wait: the holder may wait for a lock that this thread holds.
            if let Some(world) = slot.world.try_read().as_deref().and_then(Option::as_ref) {
                set_cache_bytes(world, part);
            }
        }
    }

    /// How many segments are open.
    pub(super) fn count(&self) -> usize {
        self.all.read().values().filter(|slot| slot.is_open()).count()
    }

    /// Refuses calls after [`close`](Self::close). A caller that fills a slot checks while it holds the slot.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Stores a refusal of what was submitted that no ticket has reported.
    pub(super) fn note_refusal(&self, refusal: Error) {
        let mut refusals = self.refusals.lock();
        let (new, count) = match refusal {
            Error::DeferredWrite { error, others } => (error, others + 1),
            refusal => (Box::new(refusal), 1),
        };
        match &mut *refusals {
            Some(Error::DeferredWrite { others, .. }) => *others += count,
            none => *none = Some(Error::DeferredWrite { error: new, others: count - 1 }),
        }
    }

    /// Reports all such refusals, as one error.
    pub(super) fn check_refusals(&self) -> Result<(), Error> {
        self.refusals.lock().take().map_or(Ok(()), Err)
    }

    /// Closes the least recently used segments until there is room for one more. Segments in use and those that are kept stay open. So do
    /// those whose accepted commits cannot be written, as closing would lose the commits. Their users get the reason
    /// as an error. The caller [divides](Self::divide) the memory afterwards. Returns whether there is room.
    pub(super) fn make_room(
        &self,
        is_kept: impl Fn(SegmentPos) -> bool,
        close: impl Fn(World) -> Result<(), Error>,
    ) -> bool {
        let mut slots = self.all();
        slots.sort_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
        let mut open = self.count();
        for (segment, slot) in slots {
            if open < self.max_open {
                break;
            }
            if is_kept(segment) {
                continue;
            }
            let Some(mut world) = slot.world.try_write() else { continue };
            match world.as_ref().map_or(Ok(()), World::flush) {
                Ok(()) | Err(Error::Closed) => {}
                // It was flushed all the same.
                Err(refusal @ Error::DeferredWrite { .. }) => self.note_refusal(refusal),
                Err(error) => {
                    tracing::warn!(%error, %segment, "a segment stays open because it cannot be written");
                    continue;
                }
            }
            if let Some(unused) = world.take() {
                open -= 1;
                // Who still has a handle, as a home in memory does, keeps no chunks with it.
                set_cache_bytes(&unused, 0);
                if let Err(error) = close(unused) {
                    tracing::warn!(%error, %segment, "closing a segment failed; all that it accepted was synced");
                }
            }
        }
        open < self.max_open
    }

    /// Closes everything for good. Returns the first error after all are closed.
    pub(super) fn close(&self, close: impl Fn(World) -> Result<(), Error>) -> Result<(), Error> {
        self.closed.store(true, Ordering::Release);
        let mut outcome = Ok(());
        for (_, slot) in self.all() {
            if let Some(world) = slot.world.write().take() {
                outcome = outcome.and(close(world));
            }
        }
        outcome
    }
}
