//! One restore: section by section, straight from the packed bits.
//!
//! A section whose live chunk has the bytes of the snapshot is passed over without being decoded. Of any other, the new
//! chunk is put together from both, the cells that differ are told to the host, and the chunk is saved once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::{BlockId, BlockPos, ChunkAt, Dimension, Editor, EntityId, LocalPos, SchemaView};
use cg_registry::{Catalog, ListKind};

use crate::arrival::ArrivalReport;
use crate::capture::stands_in;
use crate::error::{RestoreError, SnapshotError};
use crate::region::{Region, Section};
use crate::section::{KeptSection, Outside, remove_sides, spliced, without_references};
use crate::snapshot::{Place, Snapshot, moved_entity};

/// Sections whose live chunks are read at once.
const SECTIONS_AT_ONCE: usize = 256;

/// A block that is another one now, or whose components are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockChange {
    /// The dimension.
    pub dimension: Dimension,
    /// The block's position.
    pub pos: BlockPos,
    /// Its layer; 0 is the lowest.
    pub layer: u8,
    /// The kind that was there; `None` if the cell had no such layer, or there was no chunk.
    pub old: Option<BlockId>,
    /// The kind that is there now; `None` if the cell has no such layer any more. If it is the old one, only the components
    /// of the block have changed.
    pub new: Option<BlockId>,
}

/// What happens at a section whose bytes are not those that were captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unverifiable {
    /// The restore ends with an error.
    #[default]
    Fail,
    /// The section stays as it is and is reported; the rest is restored.
    Skip,
}

/// What happens where the target has something already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    /// The snapshot replaces it; a chunk that was absent in the snapshot is deleted.
    #[default]
    Replace,
    /// It stays: a chunk that is there keeps its content and its entities, and an entity that is there stays where it is.
    Keep,
}

/// How a snapshot is put back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoreOptions {
    /// Whether the entities of the region are replaced by those of the snapshot, if it has any to say. Default: yes.
    ///
    /// At its own place an entity keeps its UUID. Elsewhere it gets another one, which follows from its own and from the
    /// place, so that the same restore again finds the same entity.
    pub entities: bool,
    /// What happens at damaged sections. Default: the restore ends.
    pub unverifiable: Unverifiable,
    /// Another dimension. Default: the snapshot's own.
    pub dimension: Option<Dimension>,
    /// So many chunks further along x, y and z. Default: at its own place.
    pub by_chunks: [i64; 3],
    /// What happens where something is. Default: it is replaced.
    pub merge: Merge,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            entities: true,
            unverifiable: Unverifiable::Fail,
            dimension: None,
            by_chunks: [0; 3],
            merge: Merge::Replace,
        }
    }
}

/// What a restore has done so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RestoreReport {
    /// Sections looked at.
    pub sections: u64,
    /// Sections that were as in the snapshot.
    pub unchanged: u64,
    /// Sections that were saved.
    pub changed: u64,
    /// Chunks that were made, which count as changed sections.
    pub created: u64,
    /// Chunks that were deleted because there was none when the snapshot was taken.
    pub deleted: u64,
    /// Parts of chunks that could not be restored: there is no chunk now to hold the rest, or there was none then.
    pub left_alone: u64,
    /// Sections that could not be verified and stayed as they are.
    pub unverifiable: Vec<ChunkAt>,
    /// Blocks that are of another kind now, in all layers.
    pub blocks: u64,
    /// Blocks of which only the components are other ones.
    pub components: u64,
    /// Sections that stayed as they are because there was a chunk and [`Merge::Keep`] was asked for.
    pub kept: u64,
    /// Entities that stayed as they are for the same reason.
    pub entities_kept: u64,
    /// Entities that were put back.
    pub entities_put: u64,
    /// Entities that were deleted.
    pub entities_deleted: u64,
    /// What was left behind because the target's registry differs.
    pub arrival: ArrivalReport,
}

/// A section that is to be restored: a unit of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    index: usize,
    /// In the snapshot.
    from: Section,
    /// In the target.
    pub(crate) to: Section,
}

/// A restore under way. Each step handles one section whole, so it can stop between any two.
pub struct RestoreJob {
    snapshot: Arc<Snapshot>,
    options: RestoreOptions,
    target: Region,
    pieces: Box<dyn Iterator<Item = Piece> + Send>,
    /// By the chunk that owned them: places in the snapshot's list.
    entities: BTreeMap<ChunkAt, Vec<usize>>,
    /// The ids that the snapshot's entities have in the target.
    ids: BTreeSet<EntityId>,
    report: RestoreReport,
    scratch: Vec<u8>,
}

/// What one section needs beside the job.
struct Work<'w, E, F> {
    editor: &'w mut E,
    schema: &'w (dyn SchemaView + Send + Sync),
    observe: &'w mut F,
    piece: Piece,
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
        let (snapshot, arrival) = at_home(snapshot, catalog, options.dimension)?;
        let dimension = options.dimension.unwrap_or(snapshot.region().dimension());
        let by = options.by_chunks;
        let target = snapshot.region().moved(dimension, by).ok_or(SnapshotError::OutsideWorld)?;
        let pieces = snapshot
            .region()
            .sections()
            .enumerate()
            .filter_map(move |(index, from)| Some(Piece { index, from, to: from.moved(dimension, by)? }));
        let mut job = Self {
            options,
            target,
            pieces: Box::new(pieces),
            entities: BTreeMap::new(),
            ids: BTreeSet::new(),
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

    /// Restores all that is left.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run<E: Editor>(
        &mut self,
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
    ) -> Result<RestoreReport, RestoreError<E::Error>> {
        let schema = editor.schema();
        loop {
            let pieces: Vec<Piece> = self.pieces.by_ref().take(SECTIONS_AT_ONCE).collect();
            if pieces.is_empty() {
                return Ok(self.report.clone());
            }
            let at: Vec<ChunkAt> = pieces.iter().map(|piece| piece.to.at).collect();
            let live = editor.load_many(&at);
            for (piece, live) in pieces.into_iter().zip(live) {
                let at = piece.to.at;
                let live = live.map_err(|error| RestoreError::Target { at, error })?;
                self.perform(piece, live, &*schema, editor, observe)?;
            }
        }
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
        kept: &KeptSection,
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
        kept: &KeptSection,
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
    fn has_bytes_of(&mut self, kept: &KeptSection, live: &Chunk) -> bool {
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

    /// Deletes the chunk's entities that stand in the region and are not the snapshot's, and puts the snapshot's.
    fn replace_entities<E: Editor, F>(
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
            }
        }
        let Some(owned) = self.entities.get(&work.piece.from.at) else { return Ok(()) };
        for (id, entity) in owned.iter().filter_map(|index| self.snapshot.entities().get(*index)) {
            let Some(entity) = moved_entity(entity, self.target, self.options.by_chunks) else { continue };
            let id = self.id_there(*id);
            let there = work.editor.entity(id).map_err(target)?;
            if self.options.merge == Merge::Keep && there.is_some() {
                self.report.entities_kept += 1;
            } else if there.as_ref() != Some(&entity) {
                work.editor.put_entity(id, entity).map_err(target)?;
                self.report.entities_put += 1;
            }
        }
        Ok(())
    }

    /// The id of a captured entity in the target.
    fn id_there(&self, id: EntityId) -> EntityId {
        if self.target == self.snapshot.region() {
            return id;
        }
        // A UUID of its own kind (version 8) from the old one and the place, by the mixing steps of SplitMix64.
        let min = self.target.area().min();
        let place = [self.target.dimension().get(), min.x as u64, min.y as u64, min.z as u64];
        let [low, high] = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03].map(|seed: u64| {
            let mut mixed = seed;
            let bytes = id.to_bytes();
            let (halves, _) = bytes.as_chunks::<8>();
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
        EntityId::from_bytes(bytes)
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

/// Every block of a chunk: layer 0 by cell, then the upper layers.
fn all_blocks(chunk: &Chunk) -> impl Iterator<Item = (CellLayer, BlockId)> {
    LocalPos::all().map(|cell| (CellLayer::base(cell), chunk.block(cell))).chain(chunk.upper_layers())
}

/// The snapshot by the ids of a catalog.
fn at_home(
    snapshot: Arc<Snapshot>,
    catalog: &Catalog,
    dimension: Option<Dimension>,
) -> Result<(Arc<Snapshot>, ArrivalReport), SnapshotError> {
    let own = catalog.dimension(snapshot.info().dimension.as_str());
    let has_its_place = dimension.is_some() || own == Some(snapshot.region().dimension());
    if has_its_place && snapshot.names().are_those_of(catalog) {
        return Ok((snapshot, ArrivalReport::default()));
    }
    let mut coming = Snapshot::clone(&snapshot);
    if let Some(dimension) = dimension {
        let id = dimension.get();
        let name = catalog.list(ListKind::Dimensions).name(id);
        coming.info.dimension =
            name.ok_or(SnapshotError::UnknownId { list: ListKind::Dimensions, id })?.clone();
    }
    let (arrived, report) = coming.arrive(catalog)?;
    Ok((Arc::new(arrived), report))
}

impl std::fmt::Debug for RestoreJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestoreJob")
            .field("target", &self.target)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
