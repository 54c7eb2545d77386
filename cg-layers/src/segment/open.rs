//! The open segments: a bounded number, unless more are in use.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cg_store::layer::{Mutex, RwLock, rank};
use cg_store::{Error, World};

use super::SegmentPos;

/// The worlds of segments, open or not. A user of a world holds its lock shared; closing it takes the lock
/// exclusively.
#[derive(Debug)]
pub(super) struct OpenSegments {
    slots: Mutex<HashMap<SegmentPos, Arc<Slot>>, rank::SegmentSlots>,
    clock: AtomicU64,
    max_open: usize,
    /// Set before everything is closed, and never cleared.
    closed: AtomicBool,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) world: RwLock<Option<World>, rank::SegmentWorld>,
    used: AtomicU64,
}

impl OpenSegments {
    pub(super) fn new(max_open: usize) -> Self {
        let (slots, clock, closed) = Default::default();
        Self { slots, clock, max_open: max_open.max(1), closed }
    }

    /// The slot of a segment. Marks it as used now.
    pub(super) fn slot(&self, segment: SegmentPos) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        let new = || Arc::new(Slot { world: RwLock::new(None), used: AtomicU64::default() });
        let slot = Arc::clone(slots.entry(segment).or_insert_with(new));
        slot.used.store(self.clock.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        slot
    }

    /// The slot of a segment, if it was used before.
    pub(super) fn find(&self, segment: SegmentPos) -> Option<Arc<Slot>> {
        self.slots.lock().get(&segment).map(Arc::clone)
    }

    pub(super) fn all(&self) -> Vec<(SegmentPos, Arc<Slot>)> {
        self.slots.lock().iter().map(|(segment, slot)| (*segment, Arc::clone(slot))).collect()
    }

    /// How many segments are open.
    pub(super) fn count(&self) -> usize {
        let is_open = |slot: &Arc<Slot>| slot.world.try_read().is_none_or(|world| world.is_some());
        self.slots.lock().values().filter(|slot| is_open(slot)).count()
    }

    /// Refuses calls after [`close`](Self::close). A caller that fills a slot checks while it holds the slot.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Closes the least recently used segments until there is room for one more. Segments in use stay open. So do
    /// those whose accepted commits cannot be written, as closing would lose the commits. Their users get the reason
    /// as an error.
    pub(super) fn make_room(&self, close: impl Fn(World) -> Result<(), Error>) {
        let mut slots = self.all();
        slots.sort_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
        let mut open = self.count();
        for (segment, slot) in slots {
            if open < self.max_open {
                break;
            }
            let Some(mut world) = slot.world.try_write() else { continue };
            if let Some(error) = world.as_ref().and_then(|world| world.flush().err())
                && !matches!(error, Error::Closed)
            {
                tracing::warn!(%error, %segment, "a segment stays open because it cannot be written");
                continue;
            }
            if let Some(unused) = world.take() {
                open -= 1;
                if let Err(error) = close(unused) {
                    tracing::warn!(%error, %segment, "closing a segment failed; all that it accepted was synced");
                }
            }
        }
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
