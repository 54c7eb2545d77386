//! Columns of a save into a world: each as a whole, or not at all.
//!
//! What the world has of a column is kept as it is, or goes with everything that belongs to it: a column of two saves
//! would be of neither, and of a column that says of itself that it was only begun the game generates all blocks anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{BlockId, ChunkAt};
use cg_minecraft::name;
use cg_registry::Catalog;
use cg_store::Error;

use super::Untested;
use super::apply::Importer;
use super::choices::Merge;
use super::error::ImportError;
use super::ledger::Part;
use super::stored::StoredColumn;
use crate::codec::{self, PreparedColumn};
use crate::column::Column;
use crate::mapping::kept::Folder;
use crate::region::{ColumnPos, Slot};
use crate::write;

/// The chunks of a column that the world has.
type Old = BTreeMap<ChunkAt, Arc<Chunk>>;

impl Importer<'_> {
    /// Takes a column.
    pub(super) fn column(
        &mut self,
        slot: Slot,
        catalog: &Catalog,
        blocks: &[BlockId],
        column: PreparedColumn,
    ) -> Result<(), ImportError> {
        let PreparedColumn { pos, chunks, rest, left, entities, problems, .. } = column;
        let PreparedColumn { is_torn, mut mask, kept, len_bytes, .. } = column;
        for problem in problems {
            self.unreadable(slot, problem);
        }
        if self.is_brought(pos) {
            self.unreadable(slot, format!("column {pos} was met before in this save"));
            return Ok(());
        }
        if !self.fits(len_bytes) {
            return self.unread_again(slot, Folder::Region, self.too_large(len_bytes));
        }
        self.ledger.note(Part::Column, pos);
        let untested = Untested::of(entities.data_version, 1);
        self.progress.report.untested = Untested::and(self.progress.report.untested, untested);
        let (count, met) = (chunks.len(), mask.clone());
        let mut replaced = self.replaceable(slot, pos, count)?;
        let mut new = BTreeMap::new();
        if replaced.is_some() {
            let (place, schema) = ((self.dimension, pos), catalog.current_schema());
            new = codec::placed(chunks, place, blocks, &schema, &self.ids).map_err(Error::from)?;
            mask.heights.extend(self.drop_too_large(slot, &mut new));
            // Half of a column takes the place of none.
            let is_torn = is_torn || new.len() < count;
            replaced = replaced.filter(|(stored, _)| !(is_torn && stored.is_there()));
        }
        let keeps = self.head.choices.merge == Some(Merge::Keep);
        if let Some((_, old)) = replaced.as_ref().filter(|(stored, _)| keeps && stored.is_there()) {
            let added = self.complete(slot, old, new, rest);
            if added > 0 {
                self.drop_old_slot(pos);
            }
            self.ledger.note(Part::Kept, pos);
            self.progress.report.kept_chunks += (count - added) as u64;
            return self.put_entities(slot, catalog, entities).map(drop);
        }
        let Some((stored, old)) = replaced else {
            self.ledger.note(Part::Kept, pos);
            self.progress.report.kept_chunks += count as u64;
            return self.put_entities(slot, catalog, entities).map(drop);
        };
        self.progress.report.imported_columns += 1;
        self.columns += 1;
        let lowest = new.first_key_value().map(|(_, chunk)| chunk);
        let rest = if self.rest_fits(slot, lowest, &rest) {
            rest
        } else {
            mask.is_bare = true;
            // The record says that the column is there, if nothing else.
            write::column(&Column::new(pos, entities.data_version)).expect("an empty column can be written")
        };
        self.put_rest(pos, &stored, &mut new, rest)?;
        self.count_chunks(&old, &new);
        self.remove_old(pos, old)?;
        self.put_leftovers(pos, left)?;
        if stored.is_old {
            self.drop_old_slot(pos);
        }
        self.pending.chunks.extend(new.into_iter().map(|(at, chunk)| (at, Some(chunk))));
        self.pending.len_bytes += len_bytes;
        mask.entities = self.put_entities(slot, catalog, entities)?;
        let is_masked_since = mask != met;
        if kept.is_some() || is_masked_since {
            self.keep_torn(slot, pos, kept, &mask, is_masked_since)?;
        }
        self.put_players_of(pos)
    }

    /// Adds to a column that the world keeps the chunks that it lacks, which were quarantined or deleted, if all that it has
    /// are the save's: the column is never one of two saves. Returns how many.
    fn complete(&mut self, slot: Slot, old: &Old, mut new: BTreeMap<ChunkAt, Chunk>, rest: Vec<u8>) -> usize {
        if !self.rest_fits(slot, new.first_key_value().map(|(_, chunk)| chunk), &rest) {
            return 0;
        }
        if let (Some(side), Some(mut lowest)) = (self.ids.column, new.first_entry()) {
            lowest.get_mut().set_side(side, rest);
        }
        let is_part =
            |(at, chunk): (&ChunkAt, &Arc<Chunk>)| new.get(at).is_some_and(|new| is_same(chunk, new));
        if !old.iter().all(is_part) {
            return 0;
        }
        new.retain(|at, _| !old.contains_key(at));
        let added = new.len();
        self.progress.report.imported_chunks += added as u64;
        self.progress.report.new_chunks += added as u64;
        self.pending.chunks.extend(new.into_iter().map(|(at, chunk)| (at, Some(chunk))));
        added
    }

    /// Column of the world that may be replaced or completed by one of this many chunks; `None` if the world keeps
    /// it, which is reported if it is because of damage.
    fn replaceable(
        &mut self,
        slot: Slot,
        column: ColumnPos,
        chunk_count: usize,
    ) -> Result<Option<(StoredColumn, Old)>, ImportError> {
        let keeps = self.head.choices.merge == Some(Merge::Keep);
        let lacks_none =
            |stored: &StoredColumn| stored.chunks.is_empty() || stored.chunks.len() >= chunk_count;
        let found = match self.stored(column)? {
            Ok(stored) if keeps && stored.is_there() && (!stored.is_readable() || lacks_none(&stored)) => {
                return Ok(None);
            }
            Ok(stored) => self.load_column(&stored)?.map(|old| (stored, old)),
            Err(why) => Err(why),
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(why) => {
                self.damaged_column(slot, column, &why);
                Ok(None)
            }
        }
    }

    /// Reports a column that stays as it is because the world's is damaged.
    pub(super) fn damaged_column(&mut self, slot: Slot, column: ColumnPos, why: &str) {
        let reason = format!("the world keeps its column {column}, of which a part is damaged: {why}");
        self.unreadable(slot, reason);
    }

    /// Puts what no chunk of a column holds after the lowest chunk, or into a property when there is none.
    fn put_rest(
        &mut self,
        column: ColumnPos,
        stored: &StoredColumn,
        new: &mut BTreeMap<ChunkAt, Chunk>,
        rest: Vec<u8>,
    ) -> Result<(), ImportError> {
        let Some(side) = self.ids.column else { return Ok(()) };
        let property =
            name::column_property(&self.dimension_name, column.x, column.z).map_err(Error::from)?;
        match new.first_entry() {
            Some(mut lowest) => {
                lowest.get_mut().set_side(side, rest);
                if stored.has_record {
                    self.pending.properties.insert(property, None);
                }
            }
            None => drop(self.pending.properties.insert(property, Some(rest))),
        }
        Ok(())
    }

    /// Counts what a column changes.
    fn count_chunks(&mut self, old: &Old, new: &BTreeMap<ChunkAt, Chunk>) {
        let report = &mut self.progress.report;
        report.imported_chunks += new.len() as u64;
        for (at, chunk) in new {
            let count = match old.get(at) {
                None => &mut report.new_chunks,
                Some(old) if is_same(old, chunk) => &mut report.unchanged_chunks,
                Some(_) => &mut report.replaced_chunks,
            };
            *count += 1;
        }
        report.removed_chunks += old.keys().filter(|at| !new.contains_key(at)).count() as u64;
    }

    /// Takes the chunks of a column out of the world, with their entities and those that are there without a chunk.
    fn remove_old(&mut self, column: ColumnPos, old: Old) -> Result<(), ImportError> {
        for id in self.without_chunk.remove(&(self.dimension, column)).unwrap_or_default() {
            if !self.pending.entities.contains_key(&id) && !self.has_brought(id)? {
                self.pending.deleted.insert(id);
            }
        }
        for (at, chunk) in old {
            for id in chunk.entities() {
                // An entity that came with this import waits for the chunk that takes the place.
                let came = self.has_brought(*id)?;
                let entity = if came { self.world.entity(*id)? } else { None };
                match entity {
                    Some(entity) => {
                        self.pending.entities.insert(*id, entity.owned_by(codec::without_chunk()));
                        self.progress.waiting.push(id.get());
                        self.progress.report.detached += 1;
                    }
                    None => drop(self.pending.deleted.insert(*id)),
                }
            }
            self.pending.chunks.insert(at, None);
        }
        Ok(())
    }
}

/// Whether two chunks differ in nothing but their entities.
fn is_same(old: &Arc<Chunk>, new: &Chunk) -> bool {
    if old.entities().is_empty() {
        return **old == *new;
    }
    let mut old = Chunk::clone(old);
    for id in old.entities().to_vec() {
        old.remove_entity(id);
    }
    old == *new
}
