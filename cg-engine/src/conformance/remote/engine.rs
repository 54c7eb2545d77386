//! The engine, which is a client of the server.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::network::Network;
use super::server::{Owner, Progress, Refused, Server};
use super::view::{Kept, Reads};
use crate::{
    Batch, Caps, CommitSeq, Engine, EngineError, Failure, Family, FamilyUsage, Fence, Found, Guard, KeyRange,
    Latency, Level, Reopen, Reopened, SealedRow, Snapshot, Usage, check_load,
};

/// The limit on a batch.
const MAX_BATCH_BYTES: u64 = 64 << 20;

/// Rows on a [`Server`], reached over a [`Network`].
#[derive(Debug)]
pub struct Remote {
    pub(super) reads: Reads,
    /// `None` if it is open for reading only.
    owner: Option<Owner>,
    /// The number of the last writing request. One is sent at a time.
    requests: Mutex<u64>,
    last_synced: AtomicU64,
    batches: AtomicU64,
    failed: OnceLock<Failure>,
}

impl Remote {
    /// Connects to a server for writing. It fences the engine that had the rows before.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] if the server does not answer.
    pub fn take(server: &Arc<Server>, network: &Arc<Network>) -> Result<Self, EngineError> {
        let (owner, progress) = network.call(|| server.take())?;
        Ok(Self::connected(server, network, Some(owner), progress))
    }

    /// Connects to a server for reading only, beside the engine that writes.
    ///
    /// # Errors
    /// [`EngineError::Unavailable`] if the server does not answer.
    pub fn read(server: &Arc<Server>, network: &Arc<Network>) -> Result<Self, EngineError> {
        let progress = network.call(|| server.connect())?;
        Ok(Self::connected(server, network, None, progress))
    }

    fn connected(
        server: &Arc<Server>,
        network: &Arc<Network>,
        owner: Option<Owner>,
        progress: Progress,
    ) -> Self {
        Self {
            reads: Reads::new(server, network, progress.last_commit),
            owner,
            requests: Mutex::new(0),
            last_synced: AtomicU64::new(progress.last_synced.get()),
            batches: AtomicU64::new(0),
            failed: OnceLock::new(),
        }
    }

    fn check_writable(&self) -> Result<Owner, EngineError> {
        self.reads.check_open()?;
        match self.failed.get() {
            Some(failure) => Err(EngineError::ReadOnly { cause: Arc::clone(failure.cause()) }),
            None => self.owner.ok_or(EngineError::OpenedReadOnly),
        }
    }

    /// Sends batches as the commits from `first` on, or from the next one on. Repeats the request until the server
    /// answers.
    fn send(
        &self,
        first: Option<CommitSeq>,
        mut batches: Vec<Batch>,
        guards: &[Guard],
    ) -> Result<CommitSeq, EngineError> {
        let mut requests = self.requests.lock();
        let owner = self.check_writable()?;
        let first = first.unwrap_or_else(|| self.last_commit().next());
        *requests += 1;
        let request = (owner, *requests);
        let (server, guards) = (Arc::clone(&self.reads.server), guards.to_vec());
        let applied = self.reads.network.commit(move || server.commit(request, first, &mut batches, &guards));
        let (last, count) = match applied {
            Ok(Ok(applied)) => applied,
            Ok(Err(Refused::Fenced(why))) => return Err(self.fenced(why)),
            Ok(Err(Refused::Conflict { guard: Guard { space, key, expected, .. }, found })) => {
                return Err(EngineError::Conflict { space, key, expected, found });
            }
            Ok(Err(Refused::Stalled)) => {
                let message = "the commit reached one node alone".to_owned();
                let cause = self.fail(EngineError::Unavailable { message });
                return Err(EngineError::WriteFailed { cause });
            }
            Err(unanswered) => return Err(EngineError::WriteFailed { cause: self.fail(unanswered) }),
        };
        self.reads.last_commit.store(last.get(), Ordering::Release);
        self.batches.store(count, Ordering::Release);
        Ok(last)
    }

    /// Ends writing. A new connection finds out what the server has stored.
    fn fail(&self, unanswered: EngineError) -> Arc<EngineError> {
        let cause = Arc::new(unanswered);
        // The first failure stays the cause.
        let _ = self.failed.set(Failure::Write(Arc::clone(&cause)));
        cause
    }

    /// The error of a call by an engine that is not the owner. It never writes again.
    fn fenced(&self, why: Fence) -> EngineError {
        if matches!(why, Fence::Owner { .. }) {
            let cause = Arc::new(EngineError::Fenced { why: why.clone() });
            // The first failure stays the cause.
            let _ = self.failed.set(Failure::Write(cause));
        }
        EngineError::Fenced { why }
    }

    fn reach(&self, level: Level, seq: CommitSeq) -> Result<CommitSeq, EngineError> {
        if level == Level::Power {
            self.sync().map_err(|error| error.of_applied(seq))?;
        }
        Ok(seq)
    }
}

fn check_len(batches: &[Batch]) -> Result<(), EngineError> {
    let longest = batches.iter().map(Batch::len_bytes).max().unwrap_or_default();
    if longest > MAX_BATCH_BYTES {
        return Err(EngineError::TooLarge { len_bytes: longest, max_bytes: MAX_BATCH_BYTES });
    }
    Ok(())
}

impl Engine for Remote {
    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        let batches = vec![batch];
        check_len(&batches)?;
        let seq = self.send(None, batches, guards)?;
        self.reach(level, seq)
    }

    fn commit_run(
        &self,
        first: CommitSeq,
        batches: Vec<Batch>,
        level: Level,
    ) -> Result<CommitSeq, EngineError> {
        check_len(&batches)?;
        let seq = self.send(Some(first), batches, &[])?;
        self.reach(level, seq)
    }

    fn load(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        let _one_request = self.requests.lock();
        let owner = self.check_writable()?;
        let seq = check_load(&rows, self.last_commit(), MAX_BATCH_BYTES)?;
        let loaded = self
            .reads
            .network
            .call(|| self.reads.server.load(owner, &rows, seq))
            .map_err(|unanswered| EngineError::WriteFailed { cause: self.fail(unanswered) })?;
        let count = loaded.map_err(|why| self.fenced(why))?;
        self.reads.last_commit.store(seq.get(), Ordering::Release);
        self.batches.store(count, Ordering::Release);
        Ok(())
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        self.follow()
    }

    fn follow(&self) -> Result<Snapshot<'static>, EngineError> {
        Ok(Box::new(Kept::new(&self.reads)?))
    }

    fn sync(&self) -> Result<(), EngineError> {
        let owner = self.check_writable()?;
        let synced = self.reads.network.call(|| self.reads.server.sync(owner)).map_err(|unanswered| {
            let (seq, cause) = (self.last_commit(), self.fail(unanswered));
            EngineError::SyncFailed { seq, cause }
        })?;
        let synced = synced.map_err(|why| self.fenced(why))?;
        self.last_synced.fetch_max(synced.get(), Ordering::AcqRel);
        Ok(())
    }

    fn last_commit(&self) -> CommitSeq {
        CommitSeq::new(self.reads.last_commit.load(Ordering::Acquire))
    }

    fn batch_count(&self) -> u64 {
        self.batches.load(Ordering::Acquire)
    }

    fn last_synced(&self) -> CommitSeq {
        CommitSeq::new(self.last_synced.load(Ordering::Acquire))
    }

    fn checkpoint(&self, _: &Path) -> Result<(), EngineError> {
        Err(EngineError::Unsupported { what: "write a checkpoint" })
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.sync()
    }

    fn compact(&self, _: Family, _: KeyRange<'_>) -> Result<(), EngineError> {
        self.check_writable().map(drop)
    }

    fn close(&self) -> Result<(), EngineError> {
        if self.reads.closed.load(Ordering::Acquire) {
            return Ok(());
        }
        let synced = if self.check_writable().is_ok() { self.sync() } else { Ok(()) };
        self.reads.closed.store(true, Ordering::Release);
        synced
    }

    fn failure(&self) -> Option<Failure> {
        self.failed.get().cloned()
    }

    fn reopening(&self) -> Reopen {
        let (server, network, owner) =
            (Arc::clone(&self.reads.server), Arc::clone(&self.reads.network), self.owner);
        Box::new(move |expects| {
            let owner = owner.ok_or(EngineError::OpenedReadOnly)?;
            let again = network.call(|| server.take_again(owner))?;
            let (owner, progress) = again.map_err(|why| EngineError::Fenced { why })?;
            let reader = Self::connected(&server, &network, None, progress);
            if expects(&Found { last_commit: progress.last_commit, rows: &reader })? {
                let engine = Self::connected(&server, &network, Some(owner), progress);
                Ok(Reopened::Writable(Box::new(engine)))
            } else {
                Ok(Reopened::Unexpected(Box::new(reader)))
            }
        })
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn address(&self) -> String {
        "a simulated server".into()
    }

    fn caps(&self) -> Caps {
        let mut caps = Caps::new(MAX_BATCH_BYTES);
        (caps.is_shared, caps.latency, caps.read_only) = (true, Latency::Network, self.owner.is_none());
        caps
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        self.reads.check_open()?;
        let counts = self.reads.network.call(|| self.reads.server.count())?;
        let family = |(family, (row_count, table_bytes)): (Family, (u64, u64))| FamilyUsage {
            row_count,
            table_bytes,
            ..FamilyUsage::new(family)
        };
        let families = Family::ALL.into_iter().zip(counts).map(family).collect();
        Ok(Usage { families, ..Usage::default() })
    }
}
