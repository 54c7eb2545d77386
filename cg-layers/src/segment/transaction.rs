//! Transactions of a segmented world: each in one segment.
//!
//! Where entities, properties, objects and records are is stored in the root, see [`places`](super::places).

use cg_format::ChunkAt;
use cg_store::engine::Level;
use cg_store::error::ConflictKey;
use cg_store::layer::{Base as _, begin, end, replace_writes};
use cg_store::{Durability, Error, Tx};

use super::home::SegmentHome;
use super::pos::SegmentPos;
use super::reads::SegmentReads;
use super::world::SegmentedWorld;

/// A running transaction in one segment. Access to another is [`SegmentError::TwoSegments`](crate::SegmentError::TwoSegments): a read fails at once, a
/// write when the closure has ended. An entity that another segment contains is [`SegmentError::EntityElsewhere`](crate::SegmentError::EntityElsewhere)
/// then.
///
/// Properties, objects and records are put into this segment too, whatever their keys say. One that another segment or
/// the root contains is [`SegmentError::Elsewhere`](crate::SegmentError::Elsewhere): a read and a deletion that do not find it here look there. The
/// position of a record must be in the segment. An object that was deleted elsewhere counts on here.
///
/// An entity without a chunk stays in this segment. The root deletes the place of what was deleted in a commit of its own,
/// after the segment's commit is on disk.
pub type SegmentTransaction<'t, 'w> = Tx<SegmentReads<'t, 'w>>;

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Runs a closure once, as [`World::transaction`](cg_store::World::transaction) does, in the segment of a chunk. A
    /// segment that is not stored yet is created first, and stays if the closure fails or writes nothing.
    ///
    /// Costs a world's transaction if the segment is open. A transaction that puts entities, properties, objects or records
    /// also looks them up in the root. It commits there first if any of them is new to the segment: one commit, synced
    /// unless the durability is [`Process`](Durability::Process) or [`Fast`](Durability::Fast).
    ///
    /// # Errors
    /// As [`World::transaction`](cg_store::World::transaction); [`SegmentError::TwoSegments`](crate::SegmentError::TwoSegments),
    /// [`SegmentError::EntityElsewhere`](crate::SegmentError::EntityElsewhere) and [`SegmentError::Elsewhere`](crate::SegmentError::Elsewhere); [`SegmentError::EnginesProperty`](crate::SegmentError::EnginesProperty);
    /// [`SegmentError::LongPropertyName`](crate::SegmentError::LongPropertyName); the errors of opening the segment.
    pub fn transaction<T, X: From<Error>>(
        &self,
        at: ChunkAt,
        body: impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<T, X>,
    ) -> Result<T, X> {
        self.transaction_at(self.parts.root.durability(), self.segment_of(at), body)
    }

    pub(super) fn transaction_at<T, X: From<Error>>(
        &self,
        durability: Durability,
        segment: SegmentPos,
        body: impl FnOnce(&mut SegmentTransaction<'_, '_>) -> Result<T, X>,
    ) -> Result<T, X> {
        let parts = &*self.parts;
        parts.submissions.apply(segment)?;
        parts.submissions.apply_values();
        parts.transfers.try_to_resolve();
        let elsewhere = |key: &ConflictKey| Ok(parts.borders.find_free(segment, key)?.deleted);
        let (mut putting, mut deleted) = (None, Vec::new());
        parts.open.check_room_for(segment)?;
        let committed = parts.open.with_made(segment, |world| {
            let committed = world.transaction_at(durability, |tx| {
                let catalog = tx.current_catalog();
                let side_chunks = parts.root.side_chunks();
                let has_dead = parts.borders.is_unfinished();
                let reads = SegmentReads { tx, segment, side_chunks, elsewhere: &elsewhere, has_dead };
                let mut inner = begin(reads, catalog);
                let value = parts.open.inside(|| body(&mut inner))?;
                let (mut reads, _, mut writes) = end(inner);
                // Held until the segment has committed.
                (putting, deleted) = parts.borders.claim_written(&mut reads, &mut writes)?;
                if durability == Durability::Safe && parts.root.level() != Durability::Safe {
                    // The root's places must be as durable as the segment.
                    parts.root.world().keep_found(Level::Power)?;
                }
                replace_writes(reads.tx, writes);
                Ok::<_, X>(value)
            })?;
            drop(putting.take());
            Ok::<_, X>(committed)
        })?;
        if !deleted.is_empty() {
            parts.borders.purge_later(segment, deleted);
        }
        Ok(committed.value)
    }
}
