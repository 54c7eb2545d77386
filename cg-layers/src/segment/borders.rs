//! The borders between segments: the locks under which entities and values are put, looked up and transferred.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cg_format::EntityId;
use cg_store::Error;
use cg_store::error::ConflictKey;
use cg_store::layer::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, rank};

use super::error::SegmentError;
use super::held::Held;
use super::home::SegmentHome;
use super::open::OpenSegments;
use super::placed::Placed;
use super::pos::SegmentPos;
use super::putting::Putting;
use super::rows::{transfer_property, whole};
use super::transfer::{Transfer, decode};
use crate::merge::MergeLock;

/// The borders between the segments of a world. Its locks are ranked in the store's lock order.
#[derive(Debug)]
pub(super) struct Borders<H> {
    open: Arc<OpenSegments<H>>,
    /// Held by transfers, merges and deletions of segments: none sees another half done.
    moving: MergeLock,
    /// Held shared by calls that put or look up entities, exclusively while entities are transferred.
    crossing: RwLock<(), rank::SegmentBorders>,
    /// Transfers that wait because the row of the entity is damaged. Changed by transfers.
    stuck: Mutex<Vec<Transfer>, rank::SegmentStuck>,
    /// The keys that transactions are putting.
    pub(super) putting: Putting,
    /// Keys that segments have deleted and whose places the root still stores.
    pub(super) deleted: Mutex<BTreeMap<SegmentPos, Vec<ConflictKey>>, rank::SegmentDeleted>,
    /// Places that keys got while the world is copied.
    pub(super) placed: Placed,
    /// A transfer failed, and its record may be stored. It is finished before the next one begins.
    unfinished: AtomicBool,
}

impl<H: SegmentHome> Borders<H> {
    pub(super) fn new(open: Arc<OpenSegments<H>>) -> Self {
        Self {
            open,
            moving: Mutex::default(),
            crossing: RwLock::default(),
            stuck: Mutex::default(),
            putting: Putting::default(),
            deleted: Mutex::default(),
            placed: Placed::default(),
            unfinished: AtomicBool::default(),
        }
    }

    pub(super) fn open(&self) -> &OpenSegments<H> {
        &self.open
    }

    /// The lock of transfers, merges and deletions of segments.
    pub(super) const fn moving(&self) -> &MergeLock {
        &self.moving
    }

    /// Keeps entities from being transferred.
    pub(super) fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.crossing.read_recursive()
    }

    /// Keeps others from putting and looking up entities.
    pub(super) fn close(&self) -> RwLockWriteGuard<'_, ()> {
        self.crossing.write()
    }

    /// As [`close`](Self::close), if that needs no wait.
    pub(super) fn try_close(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.crossing.try_write()
    }

    /// Transfers that wait because the row of the entity is damaged.
    pub(super) fn stuck(&self) -> MutexGuard<'_, Vec<Transfer>> {
        self.stuck.lock()
    }

    /// Whether a transfer failed and is not finished.
    pub(super) fn is_unfinished(&self) -> bool {
        self.unfinished.load(Ordering::Acquire)
    }

    pub(super) fn set_unfinished(&self, unfinished: bool) {
        self.unfinished.store(unfinished, Ordering::Release);
    }

    /// What a segment has of a key.
    pub(super) fn held(&self, segment: SegmentPos, key: &ConflictKey) -> Result<Held, Error> {
        Ok(self.open.with_stored(segment, |world| Held::of(world, key))?.unwrap_or(Held::Absent))
    }

    /// The segment that contains a key, if any does.
    pub(super) fn home_of(&self, key: &ConflictKey) -> Result<Option<SegmentPos>, Error> {
        let Some(segment) = self.open.root().segment_with(key)? else { return Ok(None) };
        Ok(self.held(segment, key)?.is_live().then_some(segment))
    }

    /// Whether an entity is in the segment that it leaves, and in the one that it enters.
    pub(super) fn is_where(&self, transfer: &Transfer) -> Result<[bool; 2], Error> {
        let key = ConflictKey::Entity(transfer.id);
        let has = |segment| Ok::<_, Error>(self.held(segment, &key)?.is_live());
        Ok([has(transfer.from)?, has(self.open.root().segment_of(transfer.to))?])
    }

    /// Refuses an entity whose transfer is not finished. The caller keeps others from transferring entities.
    pub(super) fn refuse_in_transit(&self, id: EntityId) -> Result<(), Error> {
        if !self.is_unfinished() {
            return Ok(());
        }
        let root = self.open.root();
        let Some(bytes) = root.world().property(&transfer_property()?)? else { return Ok(()) };
        let transfers = whole("crossing", &bytes, decode)?;
        match transfers.into_iter().find(|transfer| transfer.id == id) {
            Some(transfer) => {
                // Returns the damage, if that is the reason.
                self.is_where(&transfer)?;
                let Transfer { from, to, .. } = transfer;
                Err(SegmentError::InTransit { id, from, to: root.segment_of(to) }.into())
            }
            None => Ok(()),
        }
    }
}
