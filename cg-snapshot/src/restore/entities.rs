//! Replaces the entities in the snapshot's box with those of the snapshot.

use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk};
use cg_format::entity::{EntityPos, Owner as EntityOwner};
use cg_format::record::Record;
use cg_format::{BlockPos, ComponentId, Editor, EntityId, RecordId};
use cg_registry::STALE;
use cg_registry::kept::Owner;

use super::job::RestoreJob;
use super::options::Merge;
use super::piece::Work;
use crate::capture::stands_in;
use crate::error::{RestoreError, SnapshotError};
use crate::section::add_kept;
use crate::snapshot::moved_entity;

impl RestoreJob {
    /// Deletes the chunk's entities in the region that are not in the snapshot, and puts those of the snapshot.
    pub(super) fn replace_entities<E: Editor + ?Sized, F>(
        &mut self,
        references: &[EntityId],
        work: &mut Work<'_, E, F>,
    ) -> Result<(), RestoreError<E::Error>> {
        let at = work.piece.to.at;
        let target = |error| RestoreError::Target { at, error };
        for id in references.iter().filter(|id| !self.ids.contains(id)) {
            let entity = work.editor.entity(*id).map_err(target)?;
            if entity.is_some_and(|entity| stands_in(&entity, self.target)) {
                work.editor.delete_entity(*id).map_err(target)?;
                self.report.entities_deleted += 1;
                self.held.entity(None);
            }
        }
        let Some(owned) = self.entities.get(&work.piece.from.at) else { return Ok(()) };
        let mut aside = Vec::new();
        for (captured, entity) in owned.iter().filter_map(|index| self.snapshot.entities().get(*index)) {
            let Some(entity) = moved_entity(entity, self.target, self.options.by_chunks) else { continue };
            let id = self.id_there(*captured);
            let there = work.editor.entity(id).map_err(target)?;
            if self.options.merge == Merge::Keep && there.is_some() {
                self.report.entities_kept += 1;
                continue;
            }
            let cell = CellLayer::base(entity.position.block().local());
            let all = &self.snapshot.aside;
            let left = all.iter().skip(all.partition_point(|left| left.entity < *captured));
            let left = left.take_while(|left| left.entity == *captured);
            aside.extend(left.map(|left| (cell, left.component, left.bytes.clone())));
            if there.as_ref() != Some(&entity) {
                if let Some(EntityOwner::Chunk(before)) =
                    there.map(|there| there.owner).filter(|owner| *owner != entity.owner)
                {
                    self.let_go.insert(before);
                }
                self.held.entity(Some(&entity));
                work.editor.put_entity(id, entity).map_err(target)?;
                self.report.entities_put += 1;
            }
        }
        if aside.is_empty() { Ok(()) } else { self.keep_aside(aside, work) }
    }

    /// Keeps data of entities that a conversion left in the side data of their chunk.
    fn keep_aside<E: Editor + ?Sized, F>(
        &mut self,
        aside: Vec<(CellLayer, ComponentId, Vec<u8>)>,
        work: &mut Work<'_, E, F>,
    ) -> Result<(), RestoreError<E::Error>> {
        let at = work.piece.to.at;
        let target = |error| RestoreError::Target { at, error };
        let Some(live) = work.editor.load(at).map_err(target)? else { return Ok(()) };
        let mut chunk = Chunk::clone(&live);
        let coming = aside.into_iter().map(|(at, component, bytes)| {
            let block = live.layer(at.cell, at.layer).unwrap_or_default();
            (Owner { at, block, component }, bytes)
        });
        add_kept(&mut chunk, STALE, coming);
        if chunk != *live {
            self.held.change(Some(&live), Some(&chunk));
            work.editor.save(at, Arc::new(chunk)).map_err(target)?;
        }
        Ok(())
    }

    /// A record of the snapshot's box as it is in the target: moved with the box. Like an entity, it keeps its UUID at
    /// its own place and gets another one elsewhere, the same each time.
    ///
    /// # Errors
    /// [`SnapshotError::OutsideWorld`] if it is not in the box.
    pub fn moved_record(&self, id: RecordId, record: Record) -> Result<(RecordId, Record), SnapshotError> {
        let block = record.position.block();
        if !self.snapshot.region().area().contains(block) {
            return Err(SnapshotError::OutsideWorld);
        }
        let [x, y, z] = self.options.by_chunks;
        // Inside: the whole box is.
        let far = |from: i64, chunks: i64| from.checked_add(chunks.checked_mul(16)?);
        let block = (far(block.x, x), far(block.y, y), far(block.z, z));
        let (Some(x), Some(y), Some(z)) = block else { return Err(SnapshotError::OutsideWorld) };
        let (dimension, fraction) = (self.target.dimension(), record.position.fraction());
        let position = EntityPos::new(dimension, BlockPos::new(x, y, z), fraction)
            .map_err(|_| SnapshotError::OutsideWorld)?;
        let id = RecordId::from_bytes(self.bytes_there(id.to_bytes()));
        Ok((id, record.moved_to(position)))
    }

    /// The id of a captured entity in the target.
    pub(super) fn id_there(&self, id: EntityId) -> EntityId {
        EntityId::from_bytes(self.bytes_there(id.to_bytes()))
    }

    /// The UUID in the target of what has this one in the snapshot.
    fn bytes_there(&self, id: [u8; 16]) -> [u8; 16] {
        if self.is_own_place {
            return id;
        }
        // A version 8 UUID from the old one and the place, mixed with the steps of SplitMix64.
        let min = self.target.area().min();
        let place = [self.target.dimension().get(), min.x as u64, min.y as u64, min.z as u64];
        let [low, high] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03].map(|seed: u64| {
            let mut mixed = seed;
            let (halves, _) = id.as_chunks::<8>();
            for word in halves.iter().map(|half| u64::from_le_bytes(*half)).chain(place) {
                mixed = (mixed ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^= mixed >> 31;
            }
            mixed
        });
        let mut bytes = [0; 16];
        for (byte, mixed) in bytes.iter_mut().zip(low.to_le_bytes().into_iter().chain(high.to_le_bytes())) {
            *byte = mixed;
        }
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        bytes
    }
}
