//! A host's column into a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner, Reason};
use cg_format::{ChunkAt, EntityId, LocalPos};
use cg_store::Transaction;

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
    /// The longest chunk that the world takes.
    pub(crate) max_bytes: u64,
}

impl Save<'_> {
    /// Writes the chunks and the entities of the column. Those that are gone are deleted by [`Save::delete_gone`], when all
    /// columns of the transaction have put theirs. Returns whether anything differs from what is stored.
    pub(crate) fn put(&self, tx: &mut Transaction<'_>) -> Result<bool, Error> {
        let (binding, at) = (self.binding, &self.column.at);
        let places: Vec<ChunkAt> =
            at.chunks()?.into_iter().filter(|place| !self.is_damaged(*place)).collect();
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
            let place = at.chunk(section.y)?;
            if self.is_damaged(place) {
                continue;
            }
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
    fn is_damaged(&self, place: ChunkAt) -> bool {
        let is_damaged = |y: &i32| self.damaged.contains(y) || self.column.damaged.contains(y);
        i32::try_from(place.pos.y()).is_ok_and(|y| is_damaged(&y))
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
            self.check_len(place, &chunk)?;
            tx.save_blocks(place, chunk).map_err(|error| Error::of_chunk(place, error))?;
        }
        Ok(changed)
    }

    /// Refuses a chunk that the world would refuse, with its place.
    fn check_len(&self, place: ChunkAt, chunk: &Chunk) -> Result<(), Error> {
        let max_bytes = self.max_bytes;
        if chunk.max_len_bytes() as u64 <= max_bytes {
            return Ok(());
        }
        match chunk.to_bytes().len() as u64 {
            len_bytes if len_bytes > max_bytes => {
                Err(Error::TooLarge { at: Some(place), what: place.to_string(), len_bytes, max_bytes })
            }
            _ => Ok(()),
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
        let heights: Vec<i32> = self
            .column
            .sections
            .iter()
            .map(|section| section.y)
            .filter(|y| !self.damaged.contains(y) && !self.column.damaged.contains(y))
            .collect();
        let mut changed = false;
        for entity in &self.column.entities {
            let stored = tx.entity(entity.id)?;
            let new = entities::of_world(self.binding, at, entity, stored.clone(), &heights)?;
            if stored.as_ref() != Some(&new) {
                tx.put_entity(entity.id, new);
                changed = true;
            }
        }
        Ok(changed)
    }

    /// Deletes entities that the host was shown in the column and that it no longer has, if they are still in a section that it
    /// lists, or in none that it could list. Returns whether there are any.
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
                && !self.is_damaged(owner)
                && (!self.is_part || is_listed(owner))
            {
                tx.delete_entity(id);
                deleted = true;
            }
        }
        Ok(deleted)
    }
}
