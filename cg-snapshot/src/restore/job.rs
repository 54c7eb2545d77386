//! One restore: its progress and its report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cg_format::{ChunkAt, Dimension, Editor, EntityId};
use cg_registry::{Catalog, UpgradeFunctions};

use super::held::Held;
use super::options::RestoreOptions;
use super::piece::{Piece, pieces};
use super::report::{BlockChange, RestoreReport};
use crate::error::{RestoreError, SnapshotError};
use crate::region::Region;
use crate::remap::{RemapReport, Remapping};
use crate::snapshot::Snapshot;

/// Sections whose live chunks are read in one call.
const SECTIONS_AT_ONCE: usize = 256;

/// A restore in progress. Each step handles a whole section, so the caller can stop between any two.
pub struct RestoreJob {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) options: RestoreOptions,
    pub(super) target: Region,
    /// Whether the target is the box of the capture: no distance, and the dimension of the same name.
    pub(super) is_own_place: bool,
    pieces: Box<dyn Iterator<Item = Piece> + Send>,
    /// The number of pieces that were taken.
    taken: usize,
    /// Indices of the snapshot's entities, by the chunk that owned them.
    pub(super) entities: BTreeMap<ChunkAt, Vec<usize>>,
    /// The ids that the snapshot's entities have in the target.
    pub(super) ids: BTreeSet<EntityId>,
    /// Chunks that lost an entity after they were read in the same batch. They must be read again.
    pub(super) let_go: BTreeSet<ChunkAt>,
    pub(super) report: RestoreReport,
    pub(super) held: Held,
    /// The state before the last call that can be taken back.
    before: Before,
    /// Buffer for the bytes of a live chunk.
    pub(super) scratch: Vec<u8>,
}

/// The progress of a job.
#[derive(Debug, Clone, Default)]
struct Before {
    taken: usize,
    tally: Tally,
}

/// The counters of a job.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) report: RestoreReport,
    held: Held,
}

impl RestoreJob {
    /// Prepares a restore into a target whose ids a catalog issued.
    ///
    /// Reads nothing of the target. A snapshot with other ids is [converted](Snapshot::arrive) first.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownNames`] if the catalog lacks some; [`SnapshotError::OutsideWorld`].
    pub fn new(
        snapshot: Arc<Snapshot>,
        catalog: &Catalog,
        options: RestoreOptions,
    ) -> Result<Self, SnapshotError> {
        Self::with_functions(snapshot, catalog, &Arc::default(), options)
    }

    /// As [`new`](Self::new), with the functions of the host that convert and fill components.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_functions(
        snapshot: Arc<Snapshot>,
        catalog: &Catalog,
        functions: &Arc<UpgradeFunctions>,
        options: RestoreOptions,
    ) -> Result<Self, SnapshotError> {
        let own = snapshot.dimension_in(catalog);
        let (snapshot, remap) = match Remapping::begin(&snapshot, catalog, functions, options.dimension)? {
            None => (snapshot, RemapReport::default()),
            Some(arriving) => {
                let (arrived, report) = arriving.run(catalog)?;
                (Arc::new(arrived), report)
            }
        };
        Self::of_arrived(snapshot, own, remap, options)
    }

    /// As [`new`](Self::new), for a snapshot that has the target's ids. `own` is the target's dimension with the name
    /// of the snapshot's dimension.
    pub(super) fn of_arrived(
        snapshot: Arc<Snapshot>,
        own: Option<Dimension>,
        remap: RemapReport,
        options: RestoreOptions,
    ) -> Result<Self, SnapshotError> {
        let by = options.by_chunks;
        let dimension = options.dimension.unwrap_or(snapshot.region().dimension());
        let is_own_place = by == [0; 3] && own == Some(dimension);
        let target = snapshot.region().moved(dimension, by).ok_or(SnapshotError::OutsideWorld)?;
        let mut job = Self {
            options,
            target,
            is_own_place,
            pieces: pieces(snapshot.region(), dimension, by),
            taken: 0,
            entities: BTreeMap::new(),
            ids: BTreeSet::new(),
            let_go: BTreeSet::new(),
            report: RestoreReport { remap, ..RestoreReport::default() },
            held: Held::default(),
            before: Before::default(),
            scratch: Vec::new(),
            snapshot,
        };
        for (index, (id, entity)) in job.snapshot.entities().iter().enumerate() {
            if let cg_format::entity::Owner::Chunk(at) = entity.owner {
                job.entities.entry(at).or_default().push(index);
                job.ids.insert(job.id_there(*id));
            }
        }
        job.before = job.now();
        Ok(job)
    }

    /// The box that is restored, in the target.
    pub const fn target(&self) -> Region {
        self.target
    }

    /// The number of its sections.
    pub fn section_count(&self) -> u64 {
        self.snapshot.info().section_count
    }

    /// The report up to now.
    pub const fn report(&self) -> &RestoreReport {
        &self.report
    }

    /// The approximate memory of a transaction around everything done so far, until it is committed. A changed section
    /// counts both chunks, the row and about 0.8 KiB. Any other section counts only its read.
    pub const fn held_bytes(&self) -> u64 {
        self.held.bytes()
    }

    /// Restores one section; `false` if none is left. `observe` gets the changed blocks in the order of layers and
    /// cells.
    ///
    /// # Errors
    /// [`RestoreError::Target`] if the target fails; [`RestoreError::Snapshot`] if the section cannot be verified and
    /// is not to be skipped. The section is unchanged, and the job continues with the next.
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

    /// Restores all remaining sections. The job itself holds the live chunks of 256 sections at a time. A transaction
    /// holds [all changes](Self::held_bytes) until it is committed; [`RestoreOptions::max_held_bytes`] bounds that.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub fn run<E: Editor>(
        &mut self,
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
    ) -> Result<RestoreReport, RestoreError<E::Error>> {
        self.before = self.now();
        while self.some(editor, observe, SECTIONS_AT_ONCE)? {}
        Ok(self.report.clone())
    }

    /// Restores at most this many of the remaining sections and reads their chunks in one call; `false` if none was
    /// left.
    ///
    /// If each call is a transaction of its own, it may conflict with another writer of the world and write nothing.
    /// Then [`take_back`](Self::take_back) the call and repeat it.
    ///
    /// # Errors
    /// As [`step`](Self::step); this job does not restore the sections after the one that failed.
    pub fn run_some<E: Editor>(
        &mut self,
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
        section_count: usize,
    ) -> Result<bool, RestoreError<E::Error>> {
        self.before = self.now();
        self.some(editor, observe, section_count)
    }

    /// Undoes the progress of the last [`run_some`](Self::run_some) or [`run`](Self::run), after its transaction failed
    /// to commit. The next call does the same sections again. The changes that it reported did not happen. Does nothing
    /// if the progress was undone already.
    ///
    /// Costs a walk over the places of the earlier sections.
    pub fn take_back(&mut self) {
        let Before { taken, tally } = self.before.clone();
        let all = pieces(self.snapshot.region(), self.target.dimension(), self.options.by_chunks);
        self.pieces = Box::new(all.skip(taken));
        self.taken = taken;
        self.set_tally(tally);
    }

    pub(super) fn tally(&self) -> Tally {
        Tally { report: self.report.clone(), held: self.held }
    }

    /// Resets the counters after a section whose changes were not written.
    pub(super) fn set_tally(&mut self, Tally { report, held }: Tally) {
        (self.report, self.held) = (report, held);
    }

    fn now(&self) -> Before {
        Before { taken: self.taken, tally: self.tally() }
    }

    fn some<E: Editor>(
        &mut self,
        editor: &mut E,
        observe: &mut impl FnMut(BlockChange),
        section_count: usize,
    ) -> Result<bool, RestoreError<E::Error>> {
        let pieces: Vec<Piece> = self.pieces.by_ref().take(section_count).collect();
        self.taken += pieces.len();
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

    /// Takes the next section.
    pub(crate) fn pull(&mut self) -> Option<Piece> {
        let piece = self.pieces.next();
        self.taken += usize::from(piece.is_some());
        piece
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
