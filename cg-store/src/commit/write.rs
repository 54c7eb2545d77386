//! The stages of a commit from its changes to the engine and to readers, and which parts of the store hear of each.
//!
//! | stage | what it is | who hears of it |
//! |---|---|---|
//! | announced | the commit has its number | the cache: no load that began before keeps what it read |
//! | encoded | its rows have their number | the index of deltas: a load that finds no delta there reads the row alone |
//! | written | its rows are in the engine | the index of deltas; maintenance: rows to move, tiles to fold |
//! | accepted | readers see it | maintenance: accesses and the trace; the cache |
//! | published | later transactions begin after it | the commit log |
//!
//! If the caller waits for the write and the queue is empty, [`enter`](CommitState::enter) takes a commit through all
//! stages. Otherwise it puts the commit into the queue, where readers find it once it is accepted. It is
//! [encoded](CommitState::encode_run) and [written](CommitState::write_run) later.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::ChunkAt;
use cg_tiering::CubeAt;

use crate::commit::commit_log::{Begun, Committing};
use crate::commit::queue::{Admission, Queued};
use crate::commit::state::CommitState;
use crate::commit::transaction::{Changes, Prepared, Rows};
use crate::engine::{Batch, CommitSeq, EngineError, Level};
use crate::kinds::opacity::{TileKey, patched_tiles};
use crate::rt::pool::caught;
use crate::rt::stats::Counters;
use crate::storage::error::{ConflictKey, Error};
use crate::storage::recent_puts::{Puts, RecentPuts};

/// Maintenance, as commits see it.
pub(crate) trait CommitObserver: Send + Sync {
    /// Called when rows are in the engine.
    fn written(&self, rows: PutRows);

    /// Called when a commit is about to become visible to readers.
    fn accepted(&self, changes: &Changes);

    /// Called when the engine was opened again: rows may exist that no call reported, and reported rows may be missing.
    fn reopened(&self);
}

/// The rows of a commit that maintenance must visit later.
#[derive(Debug)]
pub(crate) struct PutRows {
    /// The hot rows, by cube.
    pub(crate) hot: Vec<(CubeAt, Puts)>,
    /// The tiles of the opacity map that got patches, with the number of patches.
    pub(crate) patched: BTreeMap<TileKey, u32>,
}

impl PutRows {
    fn of(batch: &Batch) -> Self {
        Self { hot: RecentPuts::of(batch), patched: patched_tiles(batch) }
    }
}

/// The batch of a commit, and what is reported when it is in the engine.
struct Encoded {
    seq: u64,
    batch: Batch,
    len_bytes: u64,
    row_count: u64,
    /// The chunks that are saved or deleted as a whole.
    whole: Vec<ChunkAt>,
    put: PutRows,
}

/// Consecutive commits that were taken out of the queue to be written, with their rows.
pub(super) struct Run {
    commits: Vec<Queued>,
    rows: RunRows,
}

/// The rows of a run.
enum RunRows {
    /// One batch for each commit.
    Batches(Vec<Encoded>),
    /// Those of the commit with this number, which may take more than one batch. They do not have it yet.
    InParts(Rows, u64),
    /// None, for this reason.
    None(EngineError),
}

impl Run {
    /// Whether it is one commit that may take more than one batch.
    pub(super) const fn is_in_parts(&self) -> bool {
        matches!(self.rows, RunRows::InParts(..))
    }
}

/// The outcome of writing a run.
#[derive(Debug)]
pub(super) struct Ran {
    /// The number of commits that the engine was given, counted from the first.
    pub(super) given: usize,
    /// The number of those that are in the engine.
    pub(super) written: usize,
    /// Why the next commit was not written.
    pub(super) ended: Result<(), EngineError>,
}

impl CommitState {
    /// Numbers prepared changes, writes or queues them, and makes them visible to readers. Returns their number.
    pub(super) fn enter(
        &self,
        mut committing: Committing<'_>,
        begun: Option<&Begun<'_>>,
        prepared: Prepared,
        room: Admission,
    ) -> Result<u64, Error> {
        let Prepared { changes, rows, written, .. } = prepared;
        if changes.is_empty() {
            return Ok(self.log.published());
        }
        let seq = self.next_number()?;
        let announced = self.read.cache.announce(changes.chunks.iter().map(|(at, _)| *at));
        // The map or the log of changes began or ended, or blocks changed their opacity, after the rows were encoded.
        let names = || self.shared.registry.catalog().current_generation();
        let outlines = self.shared.map.gets_patches().then(names);
        let is_logged = self.shared.change_log.is_kept();
        match rows.filter(|rows| rows.outlines() == outlines && rows.is_logged() == is_logged) {
            // Queued commits were accepted before this one. A staged commit must be in the queue until all its rows are in
            // place.
            Some(rows)
                if room == Admission::Bypass
                    && self.queue.is_empty()
                    && rows.max_len_bytes() <= self.shared.batch_limit()? =>
            {
                self.write(rows, seq)
                    .inspect_err(|error| self.note_failure(error, written.iter().cloned()))?;
            }
            rows => {
                let commit = Queued::new(seq, Arc::clone(&changes), rows);
                self.queue.push(commit, room).inspect_err(|error| self.count_busy(error))?;
            }
        }
        Counters::add(&self.shared.counters.commits, 1);
        if changes.properties.iter().any(|(property, _)| property.is_setting()) {
            self.settings_file.outdate();
        }
        self.observer.accepted(&changes);
        for (at, change) in &changes.chunks {
            announced.publish(*at, change.stored_as(seq));
        }
        drop(announced);
        committing.publish_last_of(begun, seq, written);
        Ok(seq)
    }

    /// The number of the next commit, if the world takes one. The caller holds the commit lock.
    fn next_number(&self) -> Result<u64, Error> {
        // Closing has written the queue. A commit added after that would never be written.
        self.shared.check_open()?;
        let engine = self.shared.engine()?;
        self.queue.check()?;
        if engine.caps().read_only {
            // Queued, the commit would never be written, and every reader would wait for it.
            return Err(EngineError::OpenedReadOnly.into());
        }
        // Only tests write to the engine without the world.
        Ok(self.log.published().max(engine.last_commit().get()) + 1)
    }

    /// Encodes changes into rows according to the options of the world.
    pub(super) fn encode(&self, changes: &Changes) -> Rows {
        let names = self.shared.map.gets_patches().then(|| self.shared.registry.catalog());
        let options = &self.shared.options;
        let deltas = options.deltas.then_some(&self.read.deltas);
        changes.encode(names.as_deref(), deltas, options.hot_codec(), self.shared.change_log.is_kept())
    }

    /// Gives rows their number. Their deltas enter the index.
    fn number(&self, rows: Rows, seq: u64) -> Encoded {
        let (batch, whole) = rows.numbered(seq, &self.read.deltas, &self.shared.counters);
        let (len_bytes, row_count) = (batch.len_bytes(), batch.op_count() as u64);
        Encoded { seq, len_bytes, row_count, whole, put: PutRows::of(&batch), batch }
    }

    /// Reports that a commit is in the engine.
    fn tell_written(&self, commit: Encoded) {
        self.read.deltas.wrote(commit.seq);
        for at in commit.whole {
            self.read.deltas.forget_up_to(at, commit.seq);
        }
        self.observer.written(commit.put);
        Counters::add(&self.shared.counters.rows_written, commit.row_count);
        Counters::add(&self.shared.counters.bytes_written, commit.len_bytes);
    }

    /// Writes the rows of one commit. `seq` must be the engine's next number, so no other commit may run meanwhile.
    fn write(&self, rows: Rows, seq: u64) -> Result<(), EngineError> {
        let mut commit = self.number(rows, seq);
        let (batch, limit_bytes) = (std::mem::take(&mut commit.batch), self.shared.batch_limit()?);
        let (engine, seq) = (self.shared.engine()?, CommitSeq::new(seq));
        if commit.len_bytes > limit_bytes {
            // Readers find in the queue what is not in the engine yet.
            let rolled_forward =
                self.shared.slot.apply_latch().write_in_parts(&*engine, batch, seq, limit_bytes)?;
            // The counter must be current when the latch opens, because waiting threads read it then.
            Counters::add(&self.shared.counters.commits_staged, 1);
            rolled_forward.open();
        } else {
            engine.commit_run(seq, vec![batch], Level::Process)?;
        }
        drop(engine);
        self.tell_written(commit);
        Ok(())
    }

    /// Encodes commits that were taken out of the queue, as many as one call of the engine takes. Returns the others to the
    /// queue. The caller has the right to encode.
    pub(super) fn encode_run(&self, mut commits: Vec<Queued>) -> Run {
        let limit_bytes = match self.shared.batch_limit() {
            Ok(limit_bytes) => limit_bytes,
            Err(error) => return Run { commits, rows: RunRows::None(error) },
        };
        let mut encoded = Vec::with_capacity(commits.len());
        let mut first = None;
        for commit in &mut commits {
            // A panic here would lose commits that were taken out of the queue: no thread would write them, and readers
            // would wait for ever.
            match caught(|| self.number_queued(commit, limit_bytes)) {
                Ok(Ok(numbered)) => {
                    encoded.push(numbered);
                    continue;
                }
                Ok(Err(rows)) if encoded.is_empty() => first = Some(RunRows::InParts(*rows, commit.seq)),
                // The next run begins with this commit.
                Ok(Err(rows)) => commit.rows = Some(*rows),
                Err(message) if encoded.is_empty() => first = Some(RunRows::None(panicked(message))),
                Err(_) => {}
            }
            break;
        }
        self.queue.put_back(commits.split_off(encoded.len() + usize::from(first.is_some())));
        Run { commits, rows: first.unwrap_or(RunRows::Batches(encoded)) }
    }

    /// Writes the commits of a run, and takes those that are written out of the queue. The caller has the right to write.
    ///
    /// # Errors
    /// The error of this write, or of an earlier one.
    pub(super) fn write_run(&self, Run { commits, rows }: Run) -> Result<(), Error> {
        if let Err(error) = self.queue.check() {
            self.queue.put_back(commits);
            return Err(error);
        }
        let ran = match rows {
            RunRows::InParts(rows, seq) => {
                let ended = caught(|| self.write(rows, seq)).unwrap_or_else(|message| Err(panicked(message)));
                Ran { given: 1, written: usize::from(ended.is_ok()), ended }
            }
            RunRows::None(error) => Ran { given: 0, written: 0, ended: Err(error) },
            RunRows::Batches(run) => self.give(run),
        };
        self.queue.finish(commits, ran)
    }

    /// Encodes a queued commit. Returns its rows without a number if they may take more than one batch.
    fn number_queued(&self, commit: &mut Queued, limit_bytes: u64) -> Result<Encoded, Box<Rows>> {
        let rows = commit.rows.take().unwrap_or_else(|| self.encode(&commit.changes));
        if rows.max_len_bytes() > limit_bytes {
            Err(Box::new(rows))
        } else {
            Ok(self.number(rows, commit.seq))
        }
    }

    /// Writes consecutive commits with one call of the engine.
    fn give(&self, mut run: Vec<Encoded>) -> Ran {
        let given = run.len();
        let Some(first) = run.first().map(|commit| CommitSeq::new(commit.seq)) else {
            return Ran { given, written: 0, ended: Ok(()) };
        };
        let batches = run.iter_mut().map(|commit| std::mem::take(&mut commit.batch)).collect();
        let engine = match self.shared.engine() {
            Ok(engine) => engine,
            Err(error) => return Ran { given, written: 0, ended: Err(error) },
        };
        let commit = || engine.commit_run(first, batches, Level::Process).map(drop);
        let ended = caught(commit).unwrap_or_else(|message| Err(panicked(message)));
        let last = match &ended {
            Ok(()) => u64::MAX,
            // The engine's numbers are those of another writer.
            Err(EngineError::Fenced { .. }) => 0,
            Err(_) => engine.last_commit().get(),
        };
        drop(engine);
        run.retain(|commit| commit.seq <= last);
        let written = run.len();
        for commit in run {
            self.tell_written(commit);
        }
        Ran { given, written, ended }
    }

    /// Writes a batch past the queue, which is empty, as the next commit. Returns its number. `written` are the keys
    /// that it changes. The caller holds the commit lock.
    ///
    /// # Errors
    /// The error of the engine. If the engine takes no more commits, the world takes none either.
    pub(crate) fn commit_past_queue(
        &self,
        batch: Batch,
        written: impl IntoIterator<Item = ConflictKey>,
    ) -> Result<u64, EngineError> {
        let put = PutRows::of(&batch);
        let committed = self.shared.engine()?.commit(batch, &[], Level::Process);
        let seq = committed.inspect_err(|error| self.note_failure(error, written))?.get();
        self.observer.written(put);
        Ok(seq)
    }
}

fn panicked(message: String) -> EngineError {
    EngineError::Panicked { operation: "writing a queued commit", message }
}
