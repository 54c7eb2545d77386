//! A host's column into a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner, Reason};
use cg_format::{ChunkAt, EntityId, LocalPos};
use cg_store::{StoreLimits, Transaction};

use super::entities;
use super::section::Saving;
use super::ticks::Ticks;
use crate::binding::Binding;
use crate::column::Column;
use crate::error::Error;

/// Why an entity is detached whose column lost its last chunk.
const NO_CHUNK: &str = "no chunk here";

/// A column that is saved.
pub(crate) struct Save<'s> {
    pub(crate) binding: &'s Binding,
    pub(crate) column: &'s Column,
    /// Whether sections that are not listed stay.
    pub(crate) is_part: bool,
    /// Entities that the host was shown in it, or has saved in it, ascending.
    pub(crate) shown: &'s [EntityId],
    /// Heights that the host was shown as damaged, ascending: they are not written.
    pub(crate) damaged: &'s [i32],
    /// What the world takes at most.
    pub(crate) limits: StoreLimits,
}

impl Save<'_> {
    /// Writes the chunks and the entities of the column. Those that are gone are deleted by [`Save::delete_gone`], when all
    /// columns of the transaction have put theirs. Returns whether anything differs from what is stored.
    pub(crate) fn put(&self, tx: &mut Transaction<'_>) -> Result<bool, Error> {
        let (binding, at) = (self.binding, &self.column.at);
        let mut places = at.chunks()?;
        places.retain(|place| !self.is_damaged(height(*place)));
        let mut stored = Vec::with_capacity(places.len());
        for (place, found) in places.iter().zip(tx.load_many(&places)) {
            if let Some(chunk) = found.map_err(|error| Error::of_chunk(*place, error))? {
                stored.push((*place, chunk));
            }
        }
        let mut block_entities: Vec<(ChunkAt, LocalPos, &[u8])> = Vec::new();
        for one in &self.column.block_entities {
            let place = ChunkAt::new(at.dimension, one.at.chunk());
            block_entities.push((place, one.at.local(), &one.nbt));
        }
        block_entities.sort_unstable_by_key(|(place, cell, _)| (*place, *cell));
        let catalog = tx.current_catalog();
        let schema = catalog.current_schema();
        let mut new = BTreeMap::new();
        for section in &self.column.sections {
            if self.is_damaged(section.y) {
                continue;
            }
            let place = at.chunk(section.y)?;
            let old = stored.binary_search_by_key(&place, |(place, _)| *place).ok();
            let old = old.and_then(|index| stored.get(index)).map(|(_, chunk)| &**chunk);
            let first = block_entities.partition_point(|(of, ..)| *of < place);
            let here = block_entities.iter().skip(first).take_while(|(of, ..)| *of == place);
            let block_entities = here.map(|(_, cell, nbt)| (*cell, *nbt)).collect();
            let (column, schema) = (at, &schema);
            let ticks = self.ticks(place)?;
            let saving = Saving { binding, schema, column, at: place, section, old, block_entities, ticks };
            new.insert(place, saving.chunk()?);
        }
        let changed = self.write(tx, &stored, new)?;
        Ok(self.put_entities(tx)? | changed)
    }

    /// Whether the host was shown a height as damaged, also if it has been repaired since: the host has a placeholder there.
    fn is_damaged(&self, y: i32) -> bool {
        self.damaged.contains(&y) || self.column.damaged.contains(&y)
    }

    /// What the host has scheduled in a chunk.
    fn ticks(&self, place: ChunkAt) -> Result<Ticks, Error> {
        let mut ticks = Ticks { tick: self.column.tick, scheduled: Vec::new() };
        for one in self.column.scheduled.iter().filter(|one| one.at.chunk() == place.pos) {
            ticks.scheduled.push((*one, self.binding.block_in(&self.column.at, one.block)?));
        }
        Ok(ticks)
    }

    fn write(
        &self,
        tx: &mut Transaction<'_>,
        stored: &[(ChunkAt, Arc<Chunk>)],
        new: BTreeMap<ChunkAt, Chunk>,
    ) -> Result<bool, Error> {
        let mut changed = false;
        let lowest = new.keys().next().copied();
        for (place, chunk) in stored {
            if self.is_part || new.contains_key(place) {
                continue;
            }
            changed = true;
            self.move_unshown(tx, chunk, lowest)?;
            tx.delete(*place);
        }
        for (place, mut chunk) in new {
            let old = stored.binary_search_by_key(&place, |(place, _)| *place).ok();
            let old = old.and_then(|index| stored.get(index)).map(|(_, chunk)| chunk);
            if let Some(old) = old {
                for id in old.entities() {
                    chunk.add_entity(*id);
                }
                if **old == chunk {
                    continue;
                }
            }
            changed = true;
            self.check_chunk(place, &chunk)?;
            tx.save_blocks(place, chunk).map_err(|error| Error::of_chunk(place, error))?;
        }
        Ok(changed)
    }

    /// Refuses a chunk that the world would refuse, with its place.
    fn check_chunk(&self, place: ChunkAt, chunk: &Chunk) -> Result<(), Error> {
        let max_bytes = self.limits.chunk_bytes;
        // Encoding is left to the store unless the bound is near.
        let len_bytes = match chunk.max_len_bytes() as u64 {
            most if most <= max_bytes => return Ok(()),
            _ => chunk.to_bytes().len() as u64,
        };
        let too_large = || Error::TooLarge { at: Some(place), what: place.to_string(), len_bytes, max_bytes };
        if len_bytes > max_bytes { Err(too_large()) } else { Ok(()) }
    }

    /// Refuses an entity that the world would refuse, with its column.
    fn check_entity(&self, id: EntityId, entity: &Entity) -> Result<(), Error> {
        /// More than an entity takes beside the bytes of its components, with a number and a length for each.
        const BESIDE_BYTES: usize = 256;
        let max_bytes = self.limits.entity_bytes;
        let most: usize = entity.components().map(|(_, bytes)| bytes.len() + 16).sum();
        if (most + BESIDE_BYTES) as u64 <= max_bytes {
            return Ok(());
        }
        let mut bytes = Vec::new();
        entity.encode(&mut bytes);
        let len_bytes = bytes.len() as u64;
        let at = self.column.at.chunk(self.column.at.min_y).ok();
        let what = || format!("entity {} in {}", id.get(), self.column.at);
        if len_bytes > max_bytes {
            Err(Error::TooLarge { at, what: what(), len_bytes, max_bytes })
        } else {
            Ok(())
        }
    }

    /// Gives entities that the host was not shown to another chunk of the column, before theirs is deleted.
    fn move_unshown(
        &self,
        tx: &mut Transaction<'_>,
        chunk: &Chunk,
        to: Option<ChunkAt>,
    ) -> Result<(), Error> {
        for id in chunk.entities() {
            if self.shown.binary_search(id).is_err() {
                let nowhere = || Owner::Detached(Reason::new(NO_CHUNK).expect("a short text"));
                tx.move_entity(*id, to.map_or_else(nowhere, Owner::Chunk))?;
            }
        }
        Ok(())
    }

    fn put_entities(&self, tx: &mut Transaction<'_>) -> Result<bool, Error> {
        if self.column.entities.is_empty() {
            return Ok(false);
        }
        let at = &self.column.at;
        let heights = self.column.sections.iter().map(|section| section.y);
        let heights: Vec<i32> = heights.filter(|y| !self.is_damaged(*y)).collect();
        let mut changed = false;
        for entity in &self.column.entities {
            let stored = tx.entity(entity.id)?;
            let new = entities::of_world(self.binding, at, entity, stored.clone(), &heights)?;
            if stored.as_ref() != Some(&new) {
                self.check_entity(entity.id, &new)?;
                tx.put_entity(entity.id, new);
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Deletes entities that the host was shown in the column and that it no longer has, if the column still owns them. Of a part
    /// only its sections own any. Returns whether there are any.
    pub(crate) fn delete_gone(
        &self,
        tx: &mut Transaction<'_>,
        shown: impl IntoIterator<Item = EntityId>,
    ) -> Result<bool, Error> {
        let at = &self.column.at;
        let is_listed = |place: ChunkAt| {
            let y = place.pos.y();
            self.column.sections.binary_search_by_key(&y, |section| section.y.into()).is_ok()
        };
        let mut deleted = false;
        for id in shown {
            if self.column.entities.binary_search_by_key(&id, |entity| entity.id).is_ok() {
                continue;
            }
            // One of a kind that the host does not know was shown by another binding.
            if let Some(Entity { owner: Owner::Chunk(owner), kind, .. }) = tx.entity(id)?
                && self.binding.kind_number(kind).is_some()
                && at.has(owner)
                && !self.is_damaged(height(owner))
                && (!self.is_part || is_listed(owner))
            {
                tx.delete_entity(id);
                deleted = true;
            }
        }
        Ok(deleted)
    }
}

/// The height of a chunk of a column, whose heights are `i32`.
fn height(place: ChunkAt) -> i32 {
    place.pos.y() as i32
}
