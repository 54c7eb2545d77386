//! A running operation: its tickets, and its work on the next chunk.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;
use std::sync::Arc;

use cg_format::{ChunkAt, ChunkPos, Dimension};
use cg_registry::{Catalog, UpgradeFunctions};

use super::job::RestoreJob;
use super::operation::{Operation, OperationId, Outcome, Shared};
use super::options::RestoreOptions;
use super::piece::Piece;
use super::queue::{Host, Stepped};
use super::reading::{Kept, Reading};
use crate::capture::Capture;
use crate::copied::Copied;
use crate::error::{RestoreError, SnapshotError};
use crate::region::{Region, Section};
use crate::remap::{RemapReport, Remapping};
use crate::snapshot::Snapshot;

/// An operation of the queue.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) id: OperationId,
    pub(super) shared: Arc<Shared>,
    pub(super) region: Region,
    work: Work,
    pub(super) has_started: bool,
    /// The next chunks, in the order of work.
    window: VecDeque<Ahead>,
    /// The number of chunks at the front of the window that have a ticket.
    held: usize,
    /// The first of them was not ready at the last step.
    waits: bool,
    /// A call of the host is in progress. If this is still set at the next step, the host panicked.
    is_in_host: bool,
}

/// One chunk of an operation.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ahead {
    Read(Section),
    Restore(Piece),
    Relight(ChunkAt),
}

enum Work {
    /// Not begun: the target is known only with the catalog of the tick.
    Waiting(Operation),
    Read {
        reading: Reading,
        sections: Box<dyn Iterator<Item = Section> + Send>,
        /// The last chunk that was read.
        last: Option<ChunkPos>,
        /// The earlier state of chunks that changed before they were read.
        kept: HashMap<ChunkAt, Arc<Kept>>,
    },
    /// The snapshot is being converted to the host's ids.
    Remapping {
        arriving: Box<Remapping>,
        /// The host's dimension with the name of the snapshot's dimension.
        own: Option<Dimension>,
        options: RestoreOptions,
        relight: bool,
    },
    Restore {
        job: Box<RestoreJob>,
        relight: bool,
        changed: VecDeque<ChunkAt>,
    },
    Relight {
        chunks: Box<dyn Iterator<Item = ChunkAt> + Send>,
    },
}

/// The result of one step of an operation.
pub(super) enum Step {
    Done,
    /// A section of its snapshot was converted to the host's ids.
    Remapped,
    /// Its next chunk is not ready, or it may take no more tickets.
    Waits,
    /// The host cannot write now.
    Later,
    Ended(Outcome),
}

impl Running {
    /// Creates a waiting operation.
    pub(super) fn new(id: OperationId, shared: Arc<Shared>, operation: Operation) -> Self {
        let region = operation.own_region();
        shared.expect(u64::try_from(region.section_count()).unwrap_or(u64::MAX));
        let (work, window) = (Work::Waiting(operation), VecDeque::new());
        Self {
            id,
            shared,
            region,
            work,
            has_started: false,
            window,
            held: 0,
            waits: false,
            is_in_host: false,
        }
    }

    /// The number of its tickets.
    pub(super) const fn held(&self) -> usize {
        self.held
    }

    /// The number of its tickets while it waits for a chunk.
    pub(super) const fn held_in_vain(&self) -> usize {
        if self.waits { self.held } else { 0 }
    }

    /// Releases the tickets of the last chunks, down to this many. They are taken again later.
    pub(super) fn give_back<H: Host>(&mut self, host: &mut H, left: usize) {
        // The host may have panicked in this operation before.
        let was_in_host = std::mem::replace(&mut self.is_in_host, true);
        while self.held > left {
            self.held -= 1;
            if let Some(ahead) = self.window.get(self.held) {
                host.release_ticket(ahead.at());
            }
        }
        self.is_in_host = was_in_host;
    }

    /// Sets the region of a waiting operation to its target, so that overlaps are found.
    pub(super) fn locate(&mut self, catalog: &Catalog) {
        if let Work::Waiting(operation) = &self.work {
            self.region = operation.region(catalog);
        }
    }

    /// Handles the next section if its chunk is ready, and takes tickets for those after it.
    pub(super) fn step<H: Host>(&mut self, host: &mut H, catalog: &Catalog, may_take: usize) -> Step
    where
        H::Error: Display,
    {
        if self.is_in_host {
            let why = "the host panicked over one of its chunks; the rest was not touched";
            return Step::Ended(Outcome::Failed(why.into()));
        }
        if matches!(self.work, Work::Waiting(_))
            && let Err(why) = self.begin(catalog, &host.upgrades())
        {
            return Step::Ended(Outcome::Failed(why));
        }
        match self.arrive(catalog) {
            Ok(true) => return Step::Remapped,
            Ok(false) => {}
            Err(error) => return Step::Ended(Outcome::Failed(error.to_string())),
        }
        self.is_in_host = true;
        for _ in 0..may_take {
            // The window may be longer than the tickets: some were released.
            if self.window.len() == self.held {
                let Some(ahead) = self.next() else { break };
                self.window.push_back(ahead);
            }
            let Some(ahead) = self.window.get(self.held) else { break };
            host.take_ticket(ahead.at());
            self.held += 1;
        }
        self.is_in_host = false;
        let Some(ahead) = self.window.front().copied().filter(|_| self.held > 0) else {
            // Nothing is left, or no ticket may be taken.
            return match may_take {
                0 => Step::Waits,
                _ => Step::Ended(self.finish(catalog)),
            };
        };
        self.waits = !host.is_ready(ahead.at());
        if self.waits {
            return Step::Waits;
        }
        self.is_in_host = true;
        let handled = self.handle(ahead, host);
        if handled == Ok(Stepped::Later) {
            self.is_in_host = false;
            self.waits = true;
            return Step::Later;
        }
        self.window.pop_front();
        self.held -= 1;
        host.release_ticket(ahead.at());
        self.is_in_host = false;
        match handled {
            Ok(_) => Step::Done,
            Err(why) => Step::Ended(Outcome::Failed(why)),
        }
    }

    /// Where to store the state of a chunk that is about to change; `None` if it is not captured or copied, was read
    /// already, or is stored already.
    pub(super) fn capture_before(&mut self, at: ChunkAt) -> Option<&mut HashMap<ChunkAt, Arc<Kept>>> {
        let chunks = self.region.area().chunks();
        let is_met = self.region.dimension() == at.dimension && chunks.contains(at.pos);
        let Work::Read { last, kept, .. } = &mut self.work else { return None };
        // The order in which chunks are read.
        let order = |pos: ChunkPos| (pos.x(), pos.y(), pos.z());
        let is_done = last.is_some_and(|last| order(at.pos) <= order(last));
        (is_met && !is_done && !kept.contains_key(&at)).then_some(kept)
    }

    fn begin(&mut self, catalog: &Catalog, functions: &Arc<UpgradeFunctions>) -> Result<(), String> {
        let Work::Waiting(operation) = &self.work else { return Ok(()) };
        self.work = match operation {
            Operation::Capture { region, options } => {
                let capture = Capture::new(*region, catalog, options).map_err(|error| error.to_string())?;
                Work::read(Reading::Capture(Box::new(capture)), *region)
            }
            Operation::Copy { region } => {
                let copied = Copied::new(*region, catalog).map_err(|error| error.to_string())?;
                Work::read(Reading::Copy(Box::new(copied)), *region)
            }
            Operation::Restore { snapshot, options, relight } => {
                let own = snapshot.dimension_in(catalog);
                let (options, relight) = (*options, *relight);
                let arriving = Remapping::begin(snapshot, catalog, functions, options.dimension);
                if let Some(arriving) = arriving.map_err(|error| error.to_string())? {
                    Work::Remapping { arriving: Box::new(arriving), own, options, relight }
                } else {
                    let arrived = (Arc::clone(snapshot), RemapReport::default());
                    Work::restore(arrived, own, options, relight).map_err(|error| error.to_string())?
                }
            }
            Operation::Relight { region } => {
                Work::Relight { chunks: Box::new(region.sections().map(|section| section.at)) }
            }
        };
        Ok(())
    }

    /// Converts one section to the host's ids. `false` if none was left; then the restore begins.
    fn arrive(&mut self, catalog: &Catalog) -> Result<bool, SnapshotError> {
        let Work::Remapping { arriving, .. } = &mut self.work else { return Ok(false) };
        if arriving.step()? {
            return Ok(true);
        }
        let waiting = Work::Relight { chunks: Box::new(std::iter::empty()) };
        if let Work::Remapping { arriving, own, options, relight } =
            std::mem::replace(&mut self.work, waiting)
        {
            let (arrived, report) = arriving.finish(catalog)?;
            self.work = Work::restore((Arc::new(arrived), report), own, options, relight)?;
        }
        Ok(false)
    }

    /// The next chunk that needs a ticket. Light is computed only after the last block was restored.
    fn next(&mut self) -> Option<Ahead> {
        match &mut self.work {
            Work::Waiting(_) | Work::Remapping { .. } => None,
            Work::Read { sections, .. } => sections.next().map(Ahead::Read),
            Work::Relight { chunks } => chunks.next().map(Ahead::Relight),
            Work::Restore { job, relight, changed } => match job.pull() {
                Some(piece) => Some(Ahead::Restore(piece)),
                None if *relight && !self.window.iter().any(|it| matches!(it, Ahead::Restore(_))) => {
                    changed.pop_front().map(Ahead::Relight)
                }
                None => None,
            },
        }
    }

    fn handle<H: Host>(&mut self, ahead: Ahead, host: &mut H) -> Result<Stepped, String>
    where
        H::Error: Display,
    {
        let at = ahead.at();
        match ahead {
            Ahead::Read(section) => self.read(&section, host),
            Ahead::Restore(piece) => self.restore(piece, host),
            Ahead::Relight(_) => {
                host.relight(at).map(|()| Stepped::Done).map_err(|error| format!("{at}: {error}"))
            }
        }
    }

    fn read<H: Host>(&mut self, section: &Section, host: &mut H) -> Result<Stepped, String>
    where
        H::Error: Display,
    {
        let at = section.at;
        let Work::Read { reading, last, kept, .. } = &mut self.work else { return Ok(Stepped::Done) };
        let mut read = None;
        let stepped = host.step(at, &mut |editor| {
            let state = match kept.get(&at) {
                Some(was) => Arc::clone(was),
                None => Kept::read(editor, at)
                    .map(Arc::new)
                    .map_err(|error| RestoreError::Target { at, error })?,
            };
            read = Some((state, editor.schema()));
            Ok(())
        });
        let stepped = stepped.map_err(|error| error.to_string())?;
        let (Stepped::Done, Some((state, schema))) = (stepped, read) else { return Ok(Stepped::Later) };
        *last = Some(at.pos);
        if !kept.is_empty() {
            kept.remove(&at);
        }
        reading.add(section, &state, schema).map_err(|error| error.to_string())?;
        Ok(Stepped::Done)
    }

    fn restore<H: Host>(&mut self, piece: Piece, host: &mut H) -> Result<Stepped, String>
    where
        H::Error: Display,
    {
        let at = piece.to.at;
        let Work::Restore { job, relight, changed } = &mut self.work else { return Ok(Stepped::Done) };
        let before = job.tally();
        let mut told = Vec::new();
        let stepped = host.step(at, &mut |editor| {
            job.set_tally(before.clone());
            told.clear();
            let live = editor.load(at).map_err(|error| RestoreError::Target { at, error })?;
            let schema = editor.schema();
            job.perform(piece, live, &*schema, editor, &mut |change| told.push(change))
        });
        if stepped.map_err(|error| error.to_string())? == Stepped::Later {
            job.set_tally(before);
            return Ok(Stepped::Later);
        }
        for change in told {
            host.changed(change);
        }
        if *relight && job.report().changed > before.report.changed {
            changed.push_back(at);
            self.shared.expect(1);
        }
        Ok(Stepped::Done)
    }

    fn finish(&mut self, catalog: &Catalog) -> Outcome {
        let waiting = Work::Relight { chunks: Box::new(std::iter::empty()) };
        match std::mem::replace(&mut self.work, waiting) {
            Work::Read { reading, .. } => reading.finish(catalog),
            Work::Restore { job, .. } => {
                let report = job.report().clone();
                if report.remap.components_left.is_empty() {
                    Outcome::Restored(report)
                } else {
                    Outcome::RestoredInPart(report)
                }
            }
            Work::Relight { .. } | Work::Waiting(_) | Work::Remapping { .. } => {
                Outcome::Relit(self.shared.done())
            }
        }
    }
}

impl Work {
    /// Begins to read a region.
    fn read(reading: Reading, region: Region) -> Self {
        Self::Read { reading, sections: Box::new(region.sections()), last: None, kept: HashMap::new() }
    }

    /// Begins the restore of a snapshot that has the host's ids.
    fn restore(
        (snapshot, remap): (Arc<Snapshot>, RemapReport),
        own: Option<Dimension>,
        options: RestoreOptions,
        relight: bool,
    ) -> Result<Self, SnapshotError> {
        let job = RestoreJob::of_arrived(snapshot, own, remap, options)?;
        Ok(Self::Restore { job: Box::new(job), relight, changed: VecDeque::new() })
    }
}

impl Ahead {
    pub(super) const fn at(&self) -> ChunkAt {
        match self {
            Self::Read(section) => section.at,
            Self::Restore(piece) => piece.to.at,
            Self::Relight(at) => *at,
        }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Waiting(_) => "Waiting",
            Self::Read { .. } => "Read",
            Self::Remapping { .. } => "Remapping",
            Self::Restore { .. } => "Restore",
            Self::Relight { .. } => "Relight",
        })
    }
}
