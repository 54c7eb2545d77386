//! The part of an import that one thread does, in order: names become ids, prepared columns become transactions.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use cg_format::chunk::{Chunk, EditError};
use cg_format::entity::Entity;
use cg_format::{BlockId, ChunkAt, Dimension, EntityId, SchemaView};
use cg_registry::{Catalog, Name, Registration};
use cg_store::engine::Engine;
use cg_store::prelude::{Durability, Property};
use cg_store::{Error, ObjectKey, World};
use uuid::Uuid;

use super::prepare::{
    Content, Job, LocalState, Prepared, PreparedColumn, PreparedEntities, list_block_entities,
};
use super::progress::{self, Earlier, FileProgress, Head, Stored};
use super::source::Source;
use super::{ImportError, ImportReport, Merge};
use crate::anvil::column::Column;
use crate::anvil::region::Slot;
use crate::anvil::save::{RegionFile, RegionKind};
use crate::anvil::{nbt, write};
use crate::mapping::layout::LevelDigest;
use crate::mapping::{Ids, kind, name, place};

/// About how many bytes a transaction takes before the next one is begun. Far below what any world refuses.
pub(super) const TRANSACTION_BYTES: usize = 12 << 20;
/// Why what was read of a file may be of no one time.
pub(super) const CHANGED: &str = "its length or time changed while it was read; stop the server, or import a copy that it does not write to";
/// Sections that a save can have, and so the chunks of a column that can come from one.
const SECTION_Y: std::ops::RangeInclusive<i32> = -128..=127;

/// A stored chunk and the commit that last changed it.
type Versioned = (Arc<Chunk>, u64);

/// An import's only writer.
pub(super) struct Importer<'a, E: Engine> {
    pub(super) world: &'a World<E>,
    pub(super) ids: Ids,
    pub(super) head: Head,
    pub(super) source: &'a Source,
    pub(super) file: usize,
    pub(super) dimension: Dimension,
    pub(super) dimension_name: String,
    pub(super) progress: FileProgress,
    /// What earlier files of the dimension brought.
    pub(super) earlier: Earlier,
    pub(super) pending: Pending,
    /// The entities that the world had and that this import replaced or kept.
    pub(super) met: HashSet<Uuid>,
    /// What the save's `level.dat` is known by, once it was read.
    pub(super) level: Option<LevelDigest>,
    transactions: u64,
    stop_after: Option<u64>,
    columns: u64,
}

/// What the next transaction will write.
#[derive(Default)]
pub(super) struct Pending {
    pub(super) chunks: BTreeMap<ChunkAt, Chunk>,
    pub(super) entities: BTreeMap<EntityId, Entity>,
    /// Entities of replaced chunks.
    pub(super) deleted: BTreeSet<EntityId>,
    pub(super) properties: BTreeMap<Name, Option<Vec<u8>>>,
    /// What is new among the [met](Importer::met).
    pub(super) met: Vec<Uuid>,
    /// `None` for those that go.
    pub(super) objects: BTreeMap<ObjectKey, Option<Vec<u8>>>,
    /// About how many bytes all this takes.
    pub(super) len_bytes: usize,
}

impl<'a, E: Engine> Importer<'a, E> {
    pub(super) fn new(
        world: &'a World<E>,
        source: &'a Source,
        ids: Ids,
        head: Head,
        stop_after: Option<u64>,
    ) -> Result<Self, ImportError> {
        Ok(Self {
            met: progress::met(world)?.into_values().flatten().collect(),
            world,
            ids,
            head,
            source,
            file: 0,
            dimension: Dimension::new(0),
            dimension_name: String::new(),
            progress: FileProgress::default(),
            earlier: Earlier::default(),
            pending: Pending::default(),
            level: None,
            transactions: 0,
            stop_after,
            columns: 0,
        })
    }

    /// Begins a file, or goes on with it.
    pub(super) fn open(&mut self, file: usize) -> Result<(), ImportError> {
        if file > 0 && self.source.files()[file - 1].dimension == self.source.files()[file].dimension {
            self.earlier.add(&self.progress);
        } else {
            // Files come by dimension.
            self.earlier = Earlier::default();
        }
        self.file = file;
        self.progress = progress::file(self.world, file)?;
        let name = name::of(&self.region().dimension).map_err(Error::from)?;
        self.dimension_name = name::text(name.as_str());
        self.dimension = self.world.register_dimension(name.as_str())?;
        Ok(())
    }

    pub(super) const fn next_slot(&self) -> u16 {
        self.progress.next_slot
    }

    pub(super) const fn columns(&self) -> u64 {
        self.columns
    }

    pub(super) fn region(&self) -> &RegionFile {
        &self.source.files()[self.file]
    }

    pub(super) fn file_name(&self) -> &str {
        &self.source.names[self.file]
    }

    /// Takes what a job read. Jobs come in order.
    pub(super) fn apply(&mut self, job: Job, prepared: Prepared) -> Result<(), ImportError> {
        if self.progress.is_done() {
            return Ok(());
        }
        let Prepared { states, slots, broken } = prepared;
        if let Some(reason) = broken {
            let file = &self.source.names[self.file];
            self.progress.report.note_unreadable(file, None, reason);
            self.progress.next_slot = Slot::COUNT;
            return self.commit();
        }
        if slots.is_empty() {
            self.progress.next_slot = job.end_slot;
            return Ok(());
        }
        let catalog = self.register(&states, &slots)?;
        let blocks: Vec<BlockId> = states
            .iter()
            .map(|state| catalog.block_id(state.name.as_str()).expect("it was just registered"))
            .collect();
        for (slot, content) in slots {
            match content {
                Content::Unreadable(reason) => {
                    // Only a slot of blocks may have held a column.
                    let may_be_column =
                        matches!(self.region().kind, RegionKind::Blocks | RegionKind::ByContent);
                    let pos = self.region().pos.filter(|_| may_be_column);
                    if let Some((x, z)) = pos.map(|region| region.column(slot)) {
                        self.progress.unread.insert(x, z);
                    }
                    self.unreadable(slot, reason);
                }
                Content::OldSlot(column, bytes) => self.old_slot(slot, column, bytes)?,
                Content::PointsOfInterest(column, points) => self.points_of_interest(slot, column, points)?,
                Content::NoPlace(what) => self.progress.report.note_not_carried(what),
                Content::Entities(mut entities) => {
                    if self.fits(slot, entities.len_bytes()) {
                        let (column, left) = (entities.column, entities.left.take());
                        self.entities(slot, &catalog, entities)?;
                        if let Some(left) = left {
                            self.put_entity_slot(column, left)?;
                        }
                    }
                }
                Content::Column(column) => self.column(slot, &catalog, &blocks, *column)?,
            }
            self.progress.next_slot = slot.index() + 1;
            if self.pending.len_bytes > TRANSACTION_BYTES {
                self.commit()?;
            }
        }
        self.progress.next_slot = job.end_slot;
        self.commit()
    }

    /// Ends a file.
    pub(super) fn close(&mut self) -> Result<(), ImportError> {
        if self.source.is_changed(self.file) {
            let file = &self.source.names[self.file];
            self.progress.report.note_unreadable(file, None, CHANGED.to_owned());
        }
        let stored = progress::file(self.world, self.file)?;
        if stored == self.progress { Ok(()) } else { self.commit() }
    }

    /// Gives entities to chunks that came after them, takes the other files, and forgets the progress.
    pub(super) fn finish(mut self) -> Result<ImportReport, ImportError> {
        let mut report = ImportReport::default();
        for file in 0..self.source.files().len() {
            self.open(file)?;
            while self.has_waiting()? {
                self.adopt()?;
                self.commit()?;
            }
            report.add(std::mem::take(&mut self.progress.report));
        }
        self.files(&mut report)?;
        self.end(&mut report)?;
        Ok(report)
    }

    pub(super) fn unreadable(&mut self, slot: Slot, reason: String) {
        let file = &self.source.names[self.file];
        self.progress.report.note_unreadable(file, Some(slot.index()), reason);
    }

    /// Registers what a job met and the world has no name of yet: by name, so that the order is always the same.
    fn register(
        &self,
        states: &[LocalState],
        slots: &[(Slot, Content)],
    ) -> Result<Arc<Catalog>, ImportError> {
        let catalog = self.world.catalog();
        let mut new = Registration::default();
        for state in states {
            if catalog.block_id(state.name.as_str()).is_none() {
                new.blocks.push(kind::offer(state.name.clone(), state.owns, state.is_opaque));
            }
        }
        new.blocks.sort_by(|a, b| a.name.cmp(&b.name));
        let groups = slots.iter().flat_map(|(_, content)| match content {
            Content::Column(column) => column.entities.groups.as_slice(),
            Content::Entities(entities) => entities.groups.as_slice(),
            Content::OldSlot(..)
            | Content::PointsOfInterest(..)
            | Content::NoPlace(_)
            | Content::Unreadable(_) => &[],
        });
        let kinds: BTreeSet<&str> = groups.flatten().map(|record| record.kind.as_str()).collect();
        for kind in kinds {
            let name = name::of_entity_kind(kind);
            if catalog.entity_type(name.as_str()).is_none() {
                new.entities.push(name);
            }
        }
        if new == Registration::default() { Ok(catalog) } else { Ok(self.world.register(&new)?) }
    }

    fn column(
        &mut self,
        slot: Slot,
        catalog: &Catalog,
        blocks: &[BlockId],
        column: PreparedColumn,
    ) -> Result<(), ImportError> {
        let PreparedColumn { x, z, chunks, rest, left, entities, problems, len_bytes } = column;
        for problem in problems {
            self.unreadable(slot, problem);
        }
        if self.is_brought(x, z) {
            self.unreadable(slot, format!("column ({x}, {z}) was met before in this save"));
            return Ok(());
        }
        if !self.fits(slot, len_bytes) {
            return Ok(());
        }
        self.progress.brought.insert(x, z);
        if self.keeps_old_slot(x, z)? {
            self.progress.kept.insert(x, z);
            self.progress.report.kept_chunks += chunks.len() as u64;
            return self.entities(slot, catalog, entities);
        }
        let at = |y: i32| place::chunk_at(self.dimension, x, y, z);
        let stored = self.stored_column(x, z, chunks.iter().map(|(y, _)| at(*y)))?;
        let property = name::column_property(&self.dimension_name, x, z).map_err(Error::from)?;
        let schema = catalog.current_schema();
        let mut new = BTreeMap::new();
        for (y, mut chunk) in chunks {
            if let Some((old, _)) = stored.get(&at(y)) {
                if self.head.choices.merge == Some(Merge::Keep) {
                    self.progress.report.kept_chunks += 1;
                    continue;
                }
                self.pending.deleted.extend(old.entities());
            }
            chunk.remap_blocks(|block| *blocks.get(block.get() as usize).expect("the job numbered it"));
            let chunk = conform(chunk, &schema, &self.ids).map_err(Error::from)?;
            new.insert(at(y), chunk);
        }
        self.progress.report.imported_columns += 1;
        self.columns += 1;
        self.drop_too_large(slot, &mut new);
        self.progress.report.imported_chunks += new.len() as u64;
        let lowest = new.first_key_value().map(|(_, chunk)| chunk);
        let rest = if self.rest_fits(slot, lowest, &rest) {
            rest
        } else {
            // The record says that the column is there, if nothing else.
            write::column(&Column::new(x, z, entities.data_version)).expect("an empty column can be written")
        };
        if self.put_rest(&stored, &mut new, property, rest)? {
            self.put_leftovers(x, z, left)?;
            self.drop_old_slot(x, z)?;
        } else {
            self.progress.kept.insert(x, z);
        }
        self.pending.chunks.append(&mut new);
        self.pending.len_bytes += len_bytes;
        self.entities(slot, catalog, entities)
    }

    /// What the world has of a column: the chunks that are asked for, and when merging all that a save can have.
    pub(super) fn stored_column(
        &self,
        x: i32,
        z: i32,
        wanted: impl Iterator<Item = ChunkAt>,
    ) -> Result<BTreeMap<ChunkAt, Versioned>, ImportError> {
        let all = SECTION_Y.map(|y| place::chunk_at(self.dimension, x, y, z));
        let wanted: Vec<_> = if self.head.choices.merge.is_some() { all.collect() } else { wanted.collect() };
        let mut stored = BTreeMap::new();
        for at in wanted {
            if let Some(found) = self.world.load_versioned(at)? {
                stored.insert(at, found);
            }
        }
        Ok(stored)
    }

    /// Puts what no chunk of a column holds behind the lowest chunk, or into a property when there is none, unless the world
    /// keeps its own. Says whether what is left over of the column belongs to what the world has of it now.
    fn put_rest(
        &mut self,
        stored: &BTreeMap<ChunkAt, Versioned>,
        new: &mut BTreeMap<ChunkAt, Chunk>,
        property: Name,
        rest: Vec<u8>,
    ) -> Result<bool, ImportError> {
        let Some(side) = self.ids.column else { return Ok(true) };
        if new.is_empty() && !stored.is_empty() {
            // No chunk of the column is another, so the column is as it was.
            return Ok(false);
        }
        let has_rest = |(_, (chunk, _)): &(&ChunkAt, &Versioned)| chunk.side(side).is_some();
        let before: Vec<_> = stored.iter().filter(has_rest).collect();
        if self.head.choices.merge == Some(Merge::Keep) {
            let is_bare = self.world.property(&Property::Named(property.clone()))?.is_some();
            if is_bare || !before.is_empty() {
                return Ok(false);
            }
        }
        for (at, (chunk, _)) in before {
            // The lowest chunk may be another one now.
            if !new.contains_key(at) {
                let mut chunk = Chunk::clone(chunk);
                chunk.remove_side(side);
                self.pending.chunks.insert(*at, chunk);
            }
        }
        match new.first_entry() {
            Some(mut lowest) => {
                lowest.get_mut().set_side(side, rest);
                if self.head.choices.merge.is_some() {
                    self.pending.properties.insert(property, None);
                }
            }
            None => {
                self.pending.properties.insert(property, Some(rest));
            }
        }
        Ok(self.head.choices.merge != Some(Merge::Keep) || stored.is_empty())
    }

    /// Writes everything pending with the progress, in one transaction.
    pub(super) fn commit(&mut self) -> Result<(), ImportError> {
        if self.progress.waiting.len() > progress::WAITING {
            let page = progress::page_bytes(&std::mem::take(&mut self.progress.waiting));
            self.pending.properties.insert(progress::page_name(self.file, self.progress.pages), Some(page));
            self.progress.pages += 1;
        }
        for (page, met) in (0..).zip(std::mem::take(&mut self.pending.met).chunks(progress::WAITING)) {
            let name = progress::met_name(self.file, self.progress.next_slot, page);
            self.pending.properties.insert(name, Some(progress::page_bytes(met)));
        }
        let Pending { chunks, entities, deleted, properties, objects, .. } =
            std::mem::take(&mut self.pending);
        let (file, progress) = (self.file, &self.progress);
        self.world.transaction_at(Durability::Process, |tx| {
            for id in deleted {
                tx.delete_entity(id);
            }
            for (at, chunk) in chunks {
                tx.save(at, chunk);
            }
            for (id, entity) in entities {
                tx.put_entity(id, entity);
            }
            for (name, bytes) in properties {
                tx.set_property(Property::Named(name), bytes);
            }
            for (key, bytes) in objects {
                match bytes {
                    Some(bytes) => tx.put_object(key, bytes)?,
                    None => tx.delete_object(key)?,
                }
            }
            progress::put_file(tx, file, progress);
            Stored::Ok(())
        })?;
        self.count_transaction()
    }

    /// Counts a transaction, and stops if no more were asked for.
    pub(super) const fn count_transaction(&mut self) -> Result<(), ImportError> {
        self.transactions += 1;
        match self.stop_after {
            Some(count) if self.transactions >= count => Err(ImportError::Stopped(self.transactions)),
            _ => Ok(()),
        }
    }

    fn entities(
        &mut self,
        slot: Slot,
        catalog: &Catalog,
        entities: PreparedEntities,
    ) -> Result<(), ImportError> {
        for name in &entities.not_carried {
            self.progress.report.note_not_carried(name);
        }
        self.put_entities(slot, catalog, entities)
    }
}

/// Makes a chunk fit the world's schema, where the world registered a kind otherwise than the job took it to be.
///
/// Block entities whose block cannot own them any more go beside it.
fn conform(chunk: Chunk, schema: &impl SchemaView, ids: &Ids) -> Result<Chunk, EditError> {
    if chunk.conforms_to(schema).is_ok() {
        return Ok(chunk);
    }
    let mut beside: Vec<Vec<u8>> = Vec::new();
    for (component, at, bytes) in chunk.components() {
        let block = chunk.layer(at.cell, at.layer).unwrap_or_default();
        let owns = schema.components_of(block).is_some_and(|owned| owned.contains(&component));
        if !owns && !bytes.is_empty() {
            beside.push(bytes.to_vec());
        }
    }
    let mut fitting = chunk
        .with_components(schema, |at, _, component| chunk.component(at, component).map(Cow::Borrowed))?;
    if let Some(side) = ids.block_entities.filter(|_| !beside.is_empty()) {
        let before = fitting.remove_side(side).unwrap_or_default();
        beside.extend(listed_block_entities(&before).unwrap_or_default().into_iter().map(<[u8]>::to_vec));
        fitting.set_side(side, list_block_entities(beside.iter().map(Vec::as_slice)));
    }
    Ok(fitting)
}

/// The block entities of the side data that lists those without an owner; `None` when it is no such list.
pub(crate) fn listed_block_entities(side: &[u8]) -> Option<Vec<&[u8]>> {
    let list = nbt::Compound::parse(side, &nbt::Limits::default()).ok()?.list("block_entities")?;
    Some(list.compounds().map(nbt::Compound::raw).collect())
}
