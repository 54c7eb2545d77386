//! The part of an import that one thread does, in order: names become ids, prepared columns become transactions.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, Dimension, EntityId};
use cg_minecraft::name;
use cg_registry::{Catalog, Name};
use cg_store::objects::ObjectKey;
use cg_store::prelude::{Durability, Property};
use cg_store::{Error, World};
use uuid::Uuid;

use super::choices::Merge;
use super::error::ImportError;
use super::ledger::{Ledger, Part};
use super::players::Players;
use super::prepare::{Content, Job, Prepared};
use super::progress::{self, FileProgress, Head, Stored};
use super::report::ImportReport;
use super::source::Source;
use super::stored::{ByColumn, RegionChunks, without_chunk};
use crate::codec::{self, LocalState};
use crate::mapping::Ids;
use crate::mapping::layout::LevelDigest;
use crate::region::Slot;
use crate::save::RegionFile;

/// About how many bytes a transaction takes before the next one is begun. Far below what any world refuses.
pub(super) const TRANSACTION_BYTES: usize = 12 << 20;
/// Why what was read of a file may be of no one time.
pub(super) const CHANGED: &str = "its length or time changed while it was read; stop the server, or import a copy that it does not write to";
/// Why what an earlier run read of a file may be of another time than the rest.
const CHANGED_BETWEEN: &str = "its length or time changed since an earlier run of this import began to read it; when the import is done, one with the merge mode `replace` brings it as it is";
/// Why the rest of a file is missing.
const GONE: &str =
    "it is gone since an earlier run of this import began to read it, and was not read to its end";
/// An import's only writer.
pub(super) struct Importer<'a> {
    pub(super) world: &'a World,
    pub(super) ids: Ids,
    pub(super) head: Head,
    pub(super) source: &'a Source,
    pub(super) file: usize,
    /// The number of the file's progress.
    pub(super) number: usize,
    /// The files that were begun, by name.
    numbers: BTreeMap<String, usize>,
    pub(super) dimension: Dimension,
    pub(super) dimension_name: String,
    pub(super) progress: FileProgress,
    /// The columns that were met. The [progress](Self::progress) has those of the file as they were last stored.
    pub(super) ledger: Ledger,
    pub(super) pending: Pending,
    /// The chunks of the region whose column was asked for last.
    pub(super) chunks: Option<RegionChunks>,
    /// The entities without a chunk that the world had, if its columns are replaced.
    pub(super) without_chunk: ByColumn,
    /// The entities that the world had and that this import replaced or kept.
    pub(super) met: HashSet<Uuid>,
    /// Digest of the save's `level.dat`, once it was read.
    pub(super) level: Option<LevelDigest>,
    /// The players of the save, and which of them wait for their column.
    pub(super) players: Players,
    transactions: u64,
    stop_after: Option<u64>,
    pub(super) columns: u64,
}

/// Writes of the next transaction.
#[derive(Default)]
pub(super) struct Pending {
    /// `None` for those that go.
    pub(super) chunks: BTreeMap<ChunkAt, Option<Chunk>>,
    pub(super) entities: BTreeMap<EntityId, Entity>,
    /// Entities of replaced chunks.
    pub(super) deleted: BTreeSet<EntityId>,
    pub(super) properties: BTreeMap<Name, Option<Vec<u8>>>,
    /// Entities that are new among the [met](Importer::met).
    pub(super) met: Vec<Uuid>,
    /// `None` for those that go.
    pub(super) objects: BTreeMap<ObjectKey, Option<Vec<u8>>>,
    /// About how many bytes all this takes.
    pub(super) len_bytes: usize,
}

impl<'a> Importer<'a> {
    pub(super) fn new(
        world: &'a World,
        source: &'a Source,
        ids: Ids,
        head: Head,
        stop_after: Option<u64>,
    ) -> Result<Self, ImportError> {
        let (mut numbers, mut ledger) = (BTreeMap::new(), Ledger::default());
        while let Some(begun) = progress::file(world, numbers.len())? {
            ledger.add(&begun.dimension, &begun.met);
            numbers.insert(begun.name, numbers.len());
        }
        let merge = head.choices.merge;
        let replaces = merge == Some(Merge::Replace);
        let without_chunk = if replaces { without_chunk(world)? } else { ByColumn::new() };
        Ok(Self {
            met: progress::met(world)?,
            world,
            ids,
            head,
            source,
            file: 0,
            number: 0,
            numbers,
            dimension: Dimension::new(0),
            dimension_name: String::new(),
            progress: FileProgress::default(),
            ledger,
            pending: Pending::default(),
            chunks: None,
            without_chunk,
            level: None,
            players: Players::find(world, source, merge),
            transactions: 0,
            stop_after,
            columns: 0,
        })
    }

    /// Begins a file, or goes on with it.
    pub(super) fn open(&mut self, file: usize) -> Result<(), ImportError> {
        self.file = file;
        let (name, dimension) = (self.file_name().to_owned(), self.region().dimension.clone());
        let number = self.numbers.len();
        self.number = *self.numbers.entry(name.clone()).or_insert(number);
        self.ledger.open(&dimension);
        let stamp = self.source.stamp(file);
        let progress = progress::file(self.world, self.number)?;
        let new = || FileProgress { name, dimension, stamp, ..FileProgress::default() };
        self.resume(progress.unwrap_or_else(new));
        if self.progress.stamp != stamp {
            self.tell_change(CHANGED_BETWEEN);
        }
        let name = name::of(&self.region().dimension).map_err(Error::from)?;
        self.dimension_name = name::text(name.as_str());
        self.dimension = self.world.registry().register_dimension(name.as_str())?;
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
        let blocks = codec::blocks(&catalog, &states);
        for (slot, content) in slots {
            match content {
                Content::Unreadable(lost) => self.unread(slot, lost)?,
                Content::OldSlot(column, bytes) => self.keep_region_slot(slot, column, bytes, true)?,
                Content::PointsOfInterest(column, points) => self.points_of_interest(slot, column, points)?,
                Content::NoPlace(what) => self.unreadable(slot, what.to_owned()),
                Content::Entities(entities) => self.entity_slot(slot, &catalog, entities)?,
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
        if self.source.is_changed(self.file, self.progress.stamp) {
            self.tell_change(CHANGED);
        }
        self.progress.met.clone_from(self.ledger.of_file());
        if progress::file(self.world, self.number)?.as_ref() != Some(&self.progress) {
            self.commit()?;
        }
        self.ledger.close(&self.progress.dimension);
        Ok(())
    }

    /// Goes on with a file that came so far.
    fn resume(&mut self, progress: FileProgress) {
        self.ledger.resume(&progress.met);
        self.progress = progress;
    }

    /// Reports once that the file is not the one whose reading began.
    fn tell_change(&mut self, what: &str) {
        let FileProgress { name, report, is_change_told, .. } = &mut self.progress;
        if !*is_change_told {
            report.note_unreadable(name, None, what.to_owned());
            *is_change_told = true;
        }
    }

    /// Gives entities to chunks that came after them, takes the other files, and forgets the progress.
    pub(super) fn finish(mut self) -> Result<ImportReport, ImportError> {
        let mut report = ImportReport { has_no_column: self.source.save.is_all(), ..ImportReport::default() };
        for number in 0..self.numbers.len() {
            self.number = number;
            self.resume(progress::file(self.world, number)?.unwrap_or_default());
            if !self.progress.is_done() {
                self.tell_change(GONE);
                self.progress.next_slot = Slot::COUNT;
                self.commit()?;
            }
            while self.has_waiting()? {
                self.adopt()?;
                self.commit()?;
            }
            let met = self.ledger.of_file();
            report.has_no_column &= met.is_without(Part::Column) && met.is_without(Part::Unread);
            report.add(std::mem::take(&mut self.progress.report));
        }
        report.has_no_column &= report.unreadable.is_empty();
        self.files(&mut report)?;
        self.end(&mut report)?;
        Ok(report)
    }

    pub(super) fn unreadable(&mut self, slot: Slot, reason: String) {
        let file = &self.source.names[self.file];
        self.progress.report.note_unreadable(file, Some(slot.index()), reason);
    }

    /// Takes note of a loss of the file that is read.
    pub(super) fn lost(&mut self, reason: String) {
        self.progress.report.note_unreadable(&self.source.names[self.file], None, reason);
    }

    /// Registers what a job met and the world has no name of yet.
    fn register(
        &self,
        states: &[LocalState],
        slots: &[(Slot, Content)],
    ) -> Result<Arc<Catalog>, ImportError> {
        let groups = slots.iter().flat_map(|(_, content)| match content {
            Content::Column(column) => column.entities.groups.as_slice(),
            Content::Entities(entities) => entities.groups.as_slice(),
            Content::OldSlot(..)
            | Content::PointsOfInterest(..)
            | Content::NoPlace(_)
            | Content::Unreadable(_) => &[],
        });
        Ok(codec::register(self.world, states, groups.flatten())?)
    }

    /// Writes everything pending with the progress, in one transaction.
    pub(super) fn commit(&mut self) -> Result<(), ImportError> {
        if self.progress.waiting.len() > progress::WAITING {
            let page = progress::page_bytes(&std::mem::take(&mut self.progress.waiting));
            self.pending.properties.insert(progress::page_name(self.number, self.progress.pages), Some(page));
            self.progress.pages += 1;
        }
        for (page, met) in (0..).zip(std::mem::take(&mut self.pending.met).chunks(progress::WAITING)) {
            let name = progress::met_name(self.number, self.progress.next_slot, page);
            self.pending.properties.insert(name, Some(progress::page_bytes(met)));
        }
        let Pending { chunks, entities, deleted, properties, objects, .. } =
            std::mem::take(&mut self.pending);
        self.progress.met.clone_from(self.ledger.of_file());
        let (number, progress) = (self.number, &self.progress);
        self.world.transaction_at(Durability::Process, |tx| {
            for id in deleted {
                tx.delete_entity(id);
            }
            for (at, chunk) in chunks {
                match chunk {
                    Some(chunk) => tx.save(at, chunk),
                    None => tx.delete(at),
                }
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
            progress::put_file(tx, number, progress);
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
}
