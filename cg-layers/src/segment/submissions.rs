//! Submission: a tick thread submits writes to a segment and continues, whether or not the segment is open.
//!
//! A batch of chunks alone goes to the world of its segment at once, if that is open and nothing waits for it. Every other
//! batch waits here. A background thread opens the segment, or creates it, and gives it the batches in order: those of
//! chunks to its queue, those with entities, properties, objects or records as [transactions](super::transaction), which
//! claim the places of these in the root. A caller that reads before that gives them first, on its own thread.
//!
//! | the segment | its batches |
//! |---|---|
//! | opens | are given in the order of their submission |
//! | cannot be opened, or refuses the content | are refused; their tickets report it |
//! | has no room on its disk | are refused when they are submitted; what was taken is given all the same |
//! | cannot be written or reached now | wait; readers of the segment get the reason; every tick, read and flush tries again |
//! | is closed for lack of room | it is closed when all that it was given is synced; what waits here opens it again |
//! | is deleted | are given before it, or refused if that fails |
//!
//! **Invariant**: what was submitted to a segment before a call of this world began is seen by that call. So every public
//! call first [applies](Submissions::apply) what waits, before it takes a lock that giving needs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::task::Waker;

use cg_format::ChunkAt;
use cg_store::engine::EngineError;
use cg_store::error::ConflictKey;
use cg_store::layer::{DeferredOutcome, DeferredTicket, DefersBatches, batch, spawn};
use cg_store::{Error, Refused, World, WriteBatch, WriteTicket};

use super::acceptance::may_pass;
use super::borders::Borders;
use super::error::SegmentError;
use super::home::SegmentHome;
use super::open::OpenSegments;
use super::pos::SegmentPos;
use super::transfers::Transfers;
use super::waiting::{WaitingBatch, WaitingBatches};

/// The work that calls functions of a host, as errors name it.
const ACCEPTING: &str = "accepting what was submitted";

/// The batches that were submitted, as far as no segment has them.
pub(super) struct Submissions<H: SegmentHome> {
    open: Arc<OpenSegments<H>>,
    borders: Arc<Borders<H>>,
    transfers: Arc<Transfers<H>>,
    waiting: WaitingBatches,
}

/// The batches of a segment, as tickets know them.
struct Issuer<H: SegmentHome> {
    submissions: Weak<Submissions<H>>,
    segment: SegmentPos,
}

/// What is woken and dropped without a lock: both may be code of the host.
#[derive(Default)]
struct Done {
    wakers: Vec<Waker>,
    batches: Vec<WriteBatch>,
    /// Keys that the segment has deleted.
    deleted: Vec<ConflictKey>,
}

impl Drop for Done {
    fn drop(&mut self) {
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

impl<H: SegmentHome> Submissions<H> {
    pub(super) fn new(
        open: Arc<OpenSegments<H>>,
        borders: Arc<Borders<H>>,
        transfers: Arc<Transfers<H>>,
    ) -> Self {
        let waiting = WaitingBatches::new(open.queue_bytes());
        Self { open, borders, transfers, waiting }
    }

    /// See [`SegmentedWorld::submit`](crate::SegmentedWorld::submit).
    pub(super) fn submit(
        self: &Arc<Self>,
        segment: SegmentPos,
        batch: WriteBatch,
    ) -> Result<WriteTicket, Box<Refused>> {
        if let Err(error) = self.check(segment, &batch) {
            return Err(Box::new(Refused { error, batch }));
        }
        let batch = match self.submit_if_open(segment, batch) {
            ControlFlow::Break(submitted) => return submitted,
            ControlFlow::Continue(batch) => batch,
        };
        // What is taken may use the room that is to stay free.
        if let Err(error) = self.check_takes(segment, &batch) {
            return Err(Box::new(Refused { error, batch }));
        }
        let issuer = Issuer { submissions: Arc::downgrade(self), segment };
        let (ticket, reports) = DeferredTicket::new(Arc::new(issuer));
        if self.waiting.push(segment, batch, reports)? {
            self.start_job(segment);
        }
        Ok(ticket)
    }

    /// Gives a batch to the queue of its segment, if that is open and the batch does not have to wait. Does not wait.
    fn submit_if_open(
        &self,
        segment: SegmentPos,
        batch: WriteBatch,
    ) -> ControlFlow<Result<WriteTicket, Box<Refused>>, WriteBatch> {
        if batch::has_values(&batch) || self.waiting.has(segment) {
            return ControlFlow::Continue(batch);
        }
        let Some(slot) = self.open.find(segment) else { return ControlFlow::Continue(batch) };
        match slot.world.try_read().as_deref() {
            Some(Some(world)) => {
                self.open.mark(&slot);
                ControlFlow::Break(world.submit(batch))
            }
            _ => ControlFlow::Continue(batch),
        }
    }

    /// Checks that a segment would take a batch now, or the root if the segment is not open.
    fn check_takes(&self, segment: SegmentPos, batch: &WriteBatch) -> Result<(), Error> {
        let by_segment = self.open.use_if_open(segment, |world| batch::check_takes(world, batch));
        by_segment.unwrap_or_else(|| batch::check_takes(self.open.root().world(), batch))
    }

    fn check(&self, segment: SegmentPos, batch: &WriteBatch) -> Result<(), Error> {
        self.open.check()?;
        let mut outside = None;
        let side_chunks = self.open.root().side_chunks();
        batch::for_each_place(batch, |at| {
            if !segment.has(at, side_chunks) {
                outside.get_or_insert(at);
            }
        });
        outside.map_or(Ok(()), |at| Err(self.two_segments(segment, at)))
    }

    fn two_segments(&self, first: SegmentPos, at: ChunkAt) -> Error {
        SegmentError::TwoSegments { first, second: self.open.root().segment_of(at) }.into()
    }

    fn start_job(self: &Arc<Self>, segment: SegmentPos) {
        let weak = Arc::downgrade(self);
        spawn(self.open.root().world(), move || {
            let Some(submissions) = weak.upgrade() else { return };
            submissions.waiting.begin_job(segment);
            if let Err(error) = submissions.apply(segment) {
                tracing::warn!(%error, %segment, "what was submitted to a segment still waits");
            }
        });
    }

    /// Tries again, in the background, what segments did not take.
    pub(super) fn try_again(self: &Arc<Self>) {
        for segment in self.waiting.schedule_all() {
            self.start_job(segment);
        }
    }

    /// Whether what waits may concern a chunk of a segment.
    pub(super) fn may_concern(&self, segment: SegmentPos, at: ChunkAt) -> bool {
        self.waiting.may_concern(segment, at)
    }

    /// Whether nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// How many batches wait for each segment, and the memory that they hold.
    pub(super) fn waiting(&self) -> (BTreeMap<SegmentPos, u64>, u64) {
        self.waiting.counts()
    }

    /// Gives a segment what was submitted to it before this call.
    ///
    /// # Errors
    /// Why it still waits.
    pub(super) fn apply(&self, segment: SegmentPos) -> Result<(), Error> {
        let Some((turn, until)) = self.waiting.turn(segment) else { return Ok(()) };
        let mut done = Done::default();
        let Some(right) = turn.take() else { return Ok(()) };
        self.transfers.try_to_resolve();
        let opened =
            self.open.with_made(segment, |world| Ok(self.give_all(segment, world, until, &mut done)));
        let given = opened.unwrap_or_else(|error| self.refuse_or_keep(segment, until, &error, &mut done));
        if matches!(given, Err(Error::Nested)) {
            return Ok(());
        }
        if let Err(error) = &given {
            let why = || SegmentError::not_accepted(segment, error).into();
            self.waiting.for_each_ticket(segment, |ticket| done.wakers.extend(ticket.put_off(why)));
        }
        drop(right);
        if !done.deleted.is_empty() {
            self.borders.purge_later(segment, std::mem::take(&mut done.deleted));
        }
        given
    }

    /// Gives the segments of some chunks what was submitted to them.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), of the first that fails.
    pub(super) fn apply_for(&self, at: &[ChunkAt]) -> Result<(), Error> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let mut segments: Vec<_> = at.iter().map(|at| self.open.root().segment_of(*at)).collect();
        segments.sort_unstable();
        segments.dedup();
        segments.into_iter().try_for_each(|segment| self.apply(segment))
    }

    /// Gives every segment what was submitted to it.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), of the first that fails. The others have theirs.
    pub(super) fn apply_all(&self) -> Result<(), Error> {
        self.apply_each().into_values().next().map_or(Ok(()), Err)
    }

    /// Gives every segment what was submitted to it. Returns why what still waits does.
    pub(super) fn apply_each(&self) -> BTreeMap<SegmentPos, Error> {
        let failed = |segment| Some((segment, self.apply(segment).err()?));
        self.waiting.segments().into_iter().filter_map(failed).collect()
    }

    /// Gives segments what has more than chunks, for callers that look for a value by its key. A segment that takes nothing
    /// now is not waited for: what waits there is not stored, and its readers get the reason.
    pub(super) fn apply_values(&self) {
        for segment in self.waiting.segments_with_values() {
            if let Err(error) = self.apply(segment) {
                tracing::debug!(%error, %segment, "what was submitted to a segment still waits");
            }
        }
    }

    /// Gives a segment that will be deleted what was submitted to it, and refuses the rest.
    pub(super) fn apply_before_deletion(&self, segment: SegmentPos) {
        if let Err(error) = self.apply(segment) {
            self.refuse(segment, || SegmentError::not_accepted(segment, &error).into());
        }
    }

    /// Takes no more batches, gives what waits, and refuses the rest.
    ///
    /// # Errors
    /// As [`apply_all`](Self::apply_all).
    pub(super) fn close(&self) -> Result<(), Error> {
        self.waiting.close();
        let applied = self.apply_all();
        for segment in self.waiting.segments() {
            tracing::error!(%segment, "the world is closed before a batch that was submitted could be accepted: it is lost");
            self.refuse(segment, || Error::Closed);
        }
        applied
    }

    fn refuse(&self, segment: SegmentPos, why: impl Fn() -> Error) {
        let Some((turn, until)) = self.waiting.turn(segment) else { return };
        let mut done = Done::default();
        let Some(_right) = turn.take() else { return };
        while let Some(next) = self.waiting.take_next(segment, until) {
            self.leave(segment, next, DeferredOutcome::Refused(why()), &mut done);
        }
    }

    /// What becomes of the batches of a segment that cannot be opened.
    fn refuse_or_keep(
        &self,
        segment: SegmentPos,
        until: u64,
        error: &Error,
        done: &mut Done,
    ) -> Result<(), Error> {
        let why = || SegmentError::not_accepted(segment, error).into();
        if matches!(error, Error::Nested) {
            // This thread runs a transaction of the root: the batches come after it.
            return Err(Error::Nested);
        }
        if may_pass(error) || matches!(error, Error::Closed) {
            return Err(why());
        }
        while let Some(next) = self.waiting.take_next(segment, until) {
            tracing::error!(%error, %segment, "a batch that was submitted is refused, as its segment cannot be opened");
            self.leave(segment, next, DeferredOutcome::Refused(why()), done);
        }
        Ok(())
    }

    fn give_all(&self, segment: SegmentPos, world: &World, until: u64, done: &mut Done) -> Result<(), Error> {
        while let Some(mut next) = self.waiting.take_next(segment, until) {
            let accepted = batch::catch_panic(ACCEPTING, || {
                self.borders.accept(segment, world, &mut next.batch, &mut done.deleted)
            });
            // A panic of the host's code refuses the batch, as any other error of that.
            let accepted = match accepted {
                Err(error @ Error::Engine(EngineError::Panicked { .. })) => {
                    Ok(DeferredOutcome::Refused(error))
                }
                accepted => accepted,
            };
            match accepted {
                Ok(outcome) => {
                    if let DeferredOutcome::Refused(error) = &outcome {
                        tracing::error!(%error, %segment, "a batch that was submitted is refused, and nothing of it is written");
                    }
                    self.leave(segment, next, outcome, done);
                }
                Err(error) => {
                    self.waiting.put_back(segment, next);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Reports the outcome of a batch.
    fn leave(&self, segment: SegmentPos, taken: WaitingBatch, outcome: DeferredOutcome, done: &mut Done) {
        let bytes = taken.bytes();
        let WaitingBatch { batch, ticket, .. } = taken;
        done.batches.push(batch);
        done.wakers.extend(ticket.give(outcome));
        self.waiting.leave(segment, bytes);
    }
}

impl<H: SegmentHome> DefersBatches for Issuer<H> {
    fn apply(&self) -> Result<(), Error> {
        self.submissions.upgrade().map_or(Ok(()), |submissions| submissions.apply(self.segment))
    }

    fn report(&self, refusal: Error) {
        if let Some(submissions) = self.submissions.upgrade() {
            submissions.open.note_refusal(refusal);
        }
    }
}

impl<H: SegmentHome> Drop for Submissions<H> {
    /// What waits is given to its segments, as a world accepts what waits when its last handle is dropped.
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(%error, "what was submitted to a segment is lost");
        }
    }
}
