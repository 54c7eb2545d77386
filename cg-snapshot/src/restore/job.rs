//! One restore: section by section, straight from the packed bits.
//!
//! A section whose live chunk has the bytes of the snapshot is passed over without being decoded. Of any other, the new
//! chunk is put together from both, the cells that differ are told to the host, and the chunk is saved once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::{BlockId, ChunkAt, Dimension, Editor, EntityId, LocalPos, SchemaView};
use cg_registry::Catalog;

use super::options::{Merge, RestoreOptions, Unverifiable};
use super::report::{BlockChange, RestoreReport};
use crate::arrival::{ArrivalReport, Arriving};
use crate::error::{RestoreError, SnapshotError};
use crate::kept::KeptSection;
use crate::region::{Region, Section};
use crate::section::{Outside, all_blocks, remove_sides, spliced, without_references};
use crate::snapshot::{Place, Snapshot};

/// Sections whose live chunks are read at once.
const SECTIONS_AT_ONCE: usize = 256;

/// A section that is to be restored: a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    index: usize,
    /// In the snapshot.
    pub(super) from: Section,
    /// In the target.
    pub(crate) to: Section,
}

/// A restore under way. Each step handles one section whole, so it can stop between any two.
pub struct RestoreJob {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) options: RestoreOptions,
    pub(super) target: Region,
    /// Whether the target is where the snapshot was taken, whatever the numbers of the dimension.
    pub(super) is_own_place: bool,
    pieces: Box<dyn Iterator<Item = Piece> + Send>,
    /// By the chunk that owned them: places in the snapshot's list.
    pub(super) entities: BTreeMap<ChunkAt, Vec<usize>>,
    /// The ids that the snapshot's entities have in the target.
    pub(super) ids: BTreeSet<EntityId>,
    /// Chunks that an entity was taken out of since they were read with others: what was read is no longer so.
    pub(super) let_go: BTreeSet<ChunkAt>,
    pub(super) report: RestoreReport,
    scratch: Vec<u8>,
}

/// What one section needs beside the job.
pub(super) struct Work<'w, E, F> {
    pub(super) editor: &'w mut E,
    schema: &'w (dyn SchemaView + Send + Sync),
    observe: &'w mut F,
    pub(super) piece: Piece,
}

impl RestoreJob {
    /// Prepares a restore into a target whose ids a catalog issued.
    ///
    /// Reads nothing of the target. A snapshot with other ids [arrives](Snapshot::arrive) first.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownNames`] if the catalog lacks some; [`SnapshotError::OutsideWorld`].
    pub fn new(
        snapshot: Arc<Snapshot>,
        catalog: &Catalog,
        options: RestoreOptions,
    ) -> Result<Self, SnapshotError> {
        let own = catalog.dimension(snapshot.info().dimension.as_str());
        let (snapshot, arrival) = match Arriving::begin(&snapshot, catalog, options.dimension)? {
            None => (snapshot, ArrivalReport::default()),
            Some(arriving) => {
                let (arrived, report) = arriving.run(catalog)?;
                (Arc::new(arrived), report)
            }
        };
        Self::of_arrived(snapshot, own, arrival, options)
    }

    /// As [`new`](Self::new), of a snapshot that has the target's ids, and the dimension there that has the name of the
    /// snapshot's own.
    pub(super) fn of_arrived(
        snapshot: Arc<Snapshot>,
        own: Option<Dimension>,
        arrival: ArrivalReport,
        options: RestoreOptions,
    ) -> Result<Self, SnapshotError> {
        let by = options.by_chunks;
        let dimension = options.dimension.unwrap_or(snapshot.region().dimension());
        let is_own_place = by == [0; 3] && own == Some(dimension);
        let target = snapshot.region().moved(dimension, by).ok_or(SnapshotError::OutsideWorld)?;
        let pieces = snapshot
            .region()
            .sections()
            .enumerate()
            .filter_map(move |(index, from)| Some(Piece { index, from, to: from.moved(dimension, by)? }));
        let mut job = Self {
            options,
            target,
            is_own_place,
            pieces: Box::new(pieces),
            entities: BTreeMap::new(),
            ids: BTreeSet::new(),
            let_go: BTreeSet::new(),
            report: RestoreReport { arrival, ..RestoreReport::default() },
            scratch: Vec::new(),
            snapshot,
        };
        for (index, (id, entity)) in job.snapshot.entities().iter().enumerate() {
            if let cg_format::entity::Owner::Chunk(at) = entity.owner {
                job.entities.entry(at).or_default().push(index);
                job.ids.insert(job.id_there(*id));
            }
        }
        Ok(job)
    }

    /// The box that is restored, in the target.
    pub const fn target(&self) -> Region {
        self.target
    }

    /// How many sections it has.
    pub fn section_count(&self) -> u64 {
        self.snapshot.info().section_count
    }

    /// What was done so far.
    pub const fn report(&self) -> &RestoreReport {
        &self.report
    }

    /// Restores one section, if one is left; `false` if not. Changes of blocks are shown in the order of layers and cells.
    ///
    /// # Errors
    /// [`RestoreError::Target`] if the target refuses; [`RestoreError::Snapshot`] if the section cannot be verified and is
    /// not to be skipped. The section stays as it was, and the job goes on with the next.
    pub fn step<E: Editor>(
        &mut self,
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
    ) -> Result<bool, RestoreError<E::Error>> {
        let Some(piece) = self.pull() else { return Ok(false) };
        let at = piece.to.at;
        let live = editor.load(at).map_err(|error| RestoreError::Target { at, error })?;
        let schema = editor.schema();
        self.perform(piece, live, &*schema, editor, observe).map(|()| true)
    }

    /// Restores all that is left. The job itself holds the live chunks of 256 sections at a time; a transaction holds all
    /// that changes until it is committed: in a world's, for each section that changes, both chunks, the row and some 0.8 KiB.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run<E: Editor>(
        &mut self,
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
    ) -> Result<RestoreReport, RestoreError<E::Error>> {
        while self.run_some(editor, observe, SECTIONS_AT_ONCE)? {}
        Ok(self.report.clone())
    }

    /// Restores so many sections of what is left, whose chunks are read by one call; `false` if nothing was left.
    ///
    /// # Errors
    /// As [`step`](Self::step); the sections behind the one that failed are not restored by this job.
    pub fn run_some<E: Editor>(
        &mut self,
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
        section_count: usize,
    ) -> Result<bool, RestoreError<E::Error>> {
        let pieces: Vec<Piece> = self.pieces.by_ref().take(section_count).collect();
        if pieces.is_empty() {
            return Ok(false);
        }
        let schema = editor.schema();
        let at: Vec<ChunkAt> = pieces.iter().map(|piece| piece.to.at).collect();
        self.let_go.clear();
        let live = editor.load_many(&at);
        for (piece, live) in pieces.into_iter().zip(live) {
            let at = piece.to.at;
            let live = if self.let_go.remove(&at) { editor.load(at) } else { live };
            let live = live.map_err(|error| RestoreError::Target { at, error })?;
            self.perform(piece, live, &*schema, editor, observe)?;
        }
        Ok(true)
    }

    /// Takes the next section to be performed.
    pub(crate) fn pull(&mut self) -> Option<Piece> {
        self.pieces.next()
    }

    /// Restores a section that was pulled, over the chunk that is there.
    pub(crate) fn perform<E: Editor>(
        &mut self,
        piece: Piece,
        live: Option<Arc<Chunk>>,
        schema: &(dyn SchemaView + Send + Sync),
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
    ) -> Result<(), RestoreError<E::Error>> {
        self.report.sections += 1;
        let snapshot = Arc::clone(&self.snapshot);
        let mut work = Work { editor, schema, observe, piece };
        if self.options.merge == Merge::Keep && live.is_some() {
            self.report.kept += 1;
            return Ok(());
        }
        let blocks = match (snapshot.section(piece.index), live.as_deref()) {
            (Place::Lost, _) => Err(SnapshotError::Lost { at: piece.to.at }.into()),
            (Place::Absent, None) => {
                self.report.unchanged += 1;
                Ok(false)
            }
            (Place::Absent, Some(live)) => self.delete(live, &mut work),
            (Place::Kept(kept), None) => self.create(kept, &mut work),
            (Place::Kept(kept), Some(live)) => self.replace(kept, live, &mut work),
        };
        let there_is_a_chunk = match blocks {
            Err(RestoreError::Snapshot(_)) if self.options.unverifiable == Unverifiable::Skip => {
                self.report.unverifiable.push(piece.to.at);
                return Ok(());
            }
            blocks => blocks?,
        };
        if there_is_a_chunk && self.options.entities && self.snapshot.info().contents.entities {
            let references = live.as_deref().map_or(&[][..], Chunk::entities);
            self.replace_entities(references, &mut work)?;
        }
        Ok(())
    }

    fn delete<E: Editor, F: FnMut(BlockChange)>(
        &mut self,
        live: &Chunk,
        work: &mut Work<'_, E, F>,
    ) -> Result<bool, RestoreError<E::Error>> {
        if !work.piece.to.is_whole() {
            self.report.left_alone += 1;
            return Ok(false);
        }
        for (at, old) in all_blocks(live) {
            self.report.blocks += 1;
            work.tell(at, Some(old), None);
        }
        self.report.deleted += 1;
        let at = work.piece.to.at;
        work.editor.delete(at).map_err(|error| RestoreError::Target { at, error })?;
        Ok(false)
    }

    fn create<E: Editor, F: FnMut(BlockChange)>(
        &mut self,
        kept: KeptSection<'_>,
        work: &mut Work<'_, E, F>,
    ) -> Result<bool, RestoreError<E::Error>> {
        if !work.piece.to.is_whole() {
            self.report.left_alone += 1;
            return Ok(false);
        }
        let new = self.snapshot.decode(work.piece.to.at, kept)?;
        for (at, block) in all_blocks(&new) {
            self.report.blocks += 1;
            work.tell(at, None, Some(block));
        }
        self.report.changed += 1;
        self.report.created += 1;
        work.save(new)?;
        Ok(true)
    }

    fn replace<E: Editor, F: FnMut(BlockChange)>(
        &mut self,
        kept: KeptSection<'_>,
        live: &Chunk,
        work: &mut Work<'_, E, F>,
    ) -> Result<bool, RestoreError<E::Error>> {
        let at = work.piece.to.at;
        if work.piece.to.is_whole() && self.has_bytes_of(kept, live) {
            self.report.unchanged += 1;
            return Ok(true);
        }
        let saved = self.snapshot.decode(at, kept)?;
        let new = self.put_together(saved, live, work);
        let new = new.map_err(|error| SnapshotError::Section { at, error })?;
        let (mut blocks, mut components) = (0, 0);
        live.for_each_difference(&new, |place, old, new| {
            blocks += 1;
            work.tell(place, old, new);
        });
        for (component, place, bytes) in new.components() {
            let kind = new.layer(place.cell, place.layer);
            let was_there = live.layer(place.cell, place.layer) == kind;
            if was_there && live.component(place, component) != Some(bytes) {
                components += 1;
                work.tell(place, kind, kind);
            }
        }
        self.report.blocks += blocks;
        self.report.components += components;
        if blocks + components == 0 && live.sides().eq(new.sides()) {
            self.report.unchanged += 1;
        } else {
            self.report.changed += 1;
            work.save(new)?;
        }
        Ok(true)
    }

    /// Whether a whole live chunk has the bytes of a section, references aside.
    fn has_bytes_of(&mut self, kept: KeptSection<'_>, live: &Chunk) -> bool {
        self.scratch.clear();
        live.encode(&mut self.scratch);
        let (Some((live, live_sides)), Some((saved, saved_sides))) =
            (without_references(&self.scratch), without_references(kept.bytes()))
        else {
            return false;
        };
        live == saved && (!self.snapshot.info().contents.sides || live_sides == saved_sides)
    }

    /// The chunk that is to be there: the snapshot's part, and of the live chunk what the snapshot does not say.
    fn put_together<E, F>(
        &self,
        saved: Chunk,
        live: &Chunk,
        work: &Work<'_, E, F>,
    ) -> Result<Chunk, EditError> {
        let contents = self.snapshot.info().contents;
        let section = &work.piece.to;
        if !contents.components && live.has_unread_components() {
            // It cannot be told which of it belongs to blocks that stay.
            return Err(EditError::UnreadComponents { block: live.block(LocalPos::default()) });
        }
        let mut new = if section.is_whole() {
            let mut new = saved;
            if !contents.sides {
                remove_sides(&mut new);
                for (kind, data) in live.sides() {
                    new.set_side(kind, data.to_vec());
                }
            }
            new
        } else {
            spliced(&Outside::Chunk(live), &saved, section, work.schema)?
        };
        if !contents.components && live.components().next().is_some() {
            new = new.with_components(work.schema, |at, block, component| {
                let is_same = live.layer(at.cell, at.layer) == Some(block);
                let bytes = if is_same { live.component(at, component) } else { None };
                bytes.map(std::borrow::Cow::Borrowed)
            })?;
        }
        for id in live.entities() {
            new.add_entity(*id);
        }
        Ok(new)
    }
}

impl<E: Editor, F: FnMut(BlockChange)> Work<'_, E, F> {
    fn tell(&mut self, at: CellLayer, old: Option<BlockId>, new: Option<BlockId>) {
        let ChunkAt { dimension, pos } = self.piece.to.at;
        (self.observe)(BlockChange { dimension, pos: pos.block(at.cell), layer: at.layer, old, new });
    }

    fn save(&mut self, chunk: Chunk) -> Result<(), RestoreError<E::Error>> {
        let at = self.piece.to.at;
        self.editor.save(at, Arc::new(chunk)).map_err(|error| RestoreError::Target { at, error })
    }
}

impl std::fmt::Debug for RestoreJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestoreJob")
            .field("target", &self.target)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
