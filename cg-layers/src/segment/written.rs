//! What a transaction of a segment may write.

use cg_format::ChunkAt;
use cg_format::entity::{EntityPos, Owner};
use cg_store::error::ConflictKey;
use cg_store::layer::kind::{Entities, Kind, Objects, Properties, Records};
use cg_store::layer::{ObjectWrite, ValueStore as _, Writes, store_of_mut};
use cg_store::{Error, Property};

use super::borders::Borders;
use super::error::SegmentError;
use super::home::SegmentHome;
use super::places::Put;
use super::reads::SegmentReads;
use super::rows::is_of_the_world;

impl<H: SegmentHome> Borders<H> {
    /// Checks what a transaction of a segment writes, and claims what it puts until the guard is dropped. Returns the keys
    /// that are deleted and leave nothing. A deletion is guarded too: what is read and then goes elsewhere must not have been
    /// deleted in between.
    ///
    /// # Errors
    /// Of writes that are another segment's or the root's, and as [`put`](Self::put).
    pub(super) fn claim_written(
        &self,
        reads: &mut SegmentReads<'_, '_>,
        writes: &mut Writes,
    ) -> Result<(Option<Put<'_>>, Vec<ConflictKey>), Error> {
        let [put, deleted] = check_writes(reads, writes)?;
        if put.is_empty() && deleted.is_empty() {
            return Ok((None, deleted));
        }
        let mut begun = self.put(reads.segment, &put)?;
        begun.count_on(writes, |key| store_of_mut(reads.tx).object(key))?;
        Ok((Some(begun), deleted))
    }
}

/// Refuses writes that are another segment's or the root's. Returns the keys that are put, and those that are deleted and
/// leave nothing. What is put may still be elsewhere.
fn check_writes(reads: &mut SegmentReads<'_, '_>, writes: &Writes) -> Result<[Vec<ConflictKey>; 2], Error> {
    for at in writes.chunks.keys() {
        reads.check(*at)?;
    }
    let (mut put, mut deleted) = (Vec::new(), Vec::new());
    for (id, entity) in &writes.entities {
        if let Some(Owner::Chunk(at)) = entity.as_ref().map(|entity| &entity.owner) {
            reads.check(*at)?;
        }
        let keys = if entity.is_some() { &mut put } else { &mut deleted };
        keys.push(Entities::conflict_key(id));
    }
    for (property, bytes) in &writes.properties {
        refuse_others(property)?;
        if bytes.is_some() {
            put.push(Properties::conflict_key(property));
        } else if reads.property(property)?.is_some() {
            deleted.push(Properties::conflict_key(property));
        }
    }
    for (key, write) in &writes.objects {
        if matches!(write, ObjectWrite::Delete) {
            // A deleted object stays, as its version counts on.
            reads.object(key)?;
        } else {
            put.push(Objects::conflict_key(key));
        }
    }
    for (id, record) in &writes.records {
        if let Some(record) = record {
            reads.check(chunk_of(&record.position))?;
            put.push(Records::conflict_key(id));
        } else if reads.record(*id)?.is_some() {
            deleted.push(Records::conflict_key(id));
        }
    }
    Ok([put, deleted])
}

/// The chunk of a position, which says the segment of a record.
pub(super) fn chunk_of(position: &EntityPos) -> ChunkAt {
    ChunkAt { dimension: position.dimension(), pos: position.block().chunk() }
}

/// Refuses properties that hosts do not put into segments.
fn refuse_others(property: &Property) -> Result<(), SegmentError> {
    if property.is_engines() {
        return Err(SegmentError::EnginesProperty { property: property.to_string() });
    }
    if is_of_the_world(property) {
        return Err(SegmentError::elsewhere(&Properties::conflict_key(property), None));
    }
    Ok(())
}
