//! An engine that counts the calls it delegates, for tests that pin calls instead of time.

use std::collections::HashMap;
use std::fmt;
use std::ops::{Range, Sub};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, ThreadId};

use cg_format::Space;
use cg_format::key::Family;
use parking_lot::Mutex;

use crate::{
    Batch, Caps, ColumnsVisitor, CommitSeq, Engine, EngineError, Guard, KeyRange, Level, Readable, Reopen,
    RowSlice, RowVisitor, Scan, SealedRow, Snapshot, Usage, Value,
};

/// A kind of call. Over a network each call is at least one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Call {
    /// [`Readable::get`] and [`Engine::may_have`].
    Get,
    /// [`Readable::get_many`].
    GetMany,
    /// [`Readable::get_slices`].
    GetSlices,
    /// [`Readable::scan_rows`] and the calls that replace several of them, whatever the number of rows.
    Scan,
    /// [`Engine::snapshot`] and [`Engine::follow`]. Reads from the snapshot are counted as reads.
    Snapshot,
    /// [`Engine::commit`].
    Commit,
    /// [`Engine::commit_run`], whatever the number of batches.
    CommitRun,
    /// [`Engine::sync`].
    Sync,
    /// [`Engine::flush`], [`compact`](Engine::compact), [`checkpoint`](Engine::checkpoint), [`usage`](Engine::usage)
    /// and [`close`](Engine::close).
    Upkeep,
}

impl Call {
    const ALL: [Self; 9] = [
        Self::Get,
        Self::GetMany,
        Self::GetSlices,
        Self::Scan,
        Self::Snapshot,
        Self::Commit,
        Self::CommitRun,
        Self::Sync,
        Self::Upkeep,
    ];
}

/// The number of calls of each kind.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Calls([u64; Call::ALL.len()]);

impl Calls {
    /// The number of calls of one kind.
    pub const fn of(&self, call: Call) -> u64 {
        self.0[call as usize]
    }

    /// The number of calls that read rows.
    pub fn reads(&self) -> u64 {
        [Call::Get, Call::GetMany, Call::GetSlices, Call::Scan].iter().map(|call| self.of(*call)).sum()
    }

    /// The number of calls of all kinds.
    pub fn all(&self) -> u64 {
        self.0.iter().sum()
    }
}

impl Sub for Calls {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self(std::array::from_fn(|call| self.0[call] - before.0[call]))
    }
}

impl fmt::Debug for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = Call::ALL.iter().filter(|call| self.of(**call) > 0);
        f.debug_map().entries(made.map(|call| (call, self.of(*call)))).finish()
    }
}

/// The count of calls. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<Mutex<HashMap<ThreadId, Calls>>>);

impl Counter {
    /// The calls of all threads.
    pub fn calls(&self) -> Calls {
        let mut sum = Calls::default();
        for calls in self.0.lock().values() {
            for (sum, count) in sum.0.iter_mut().zip(calls.0) {
                *sum += count;
            }
        }
        sum
    }

    /// Counts the calls that this thread makes while `act` runs.
    pub fn during<T>(&self, act: impl FnOnce() -> T) -> (T, Calls) {
        let before = self.calls_here();
        let value = act();
        (value, self.calls_here() - before)
    }

    fn calls_here(&self) -> Calls {
        self.0.lock().get(&thread::current().id()).copied().unwrap_or_default()
    }

    fn note(&self, call: Call) {
        self.0.lock().entry(thread::current().id()).or_default().0[call as usize] += 1;
    }
}

/// An engine that wraps another one and counts its calls. Calls that need only memory, such as
/// [`last_commit`](Engine::last_commit) and [`caps`](Engine::caps), are not counted.
///
/// ```
/// use cg_engine::conformance::{Call, Counting};
/// use cg_engine::{MemEngine, Readable as _, Space};
///
/// let (engine, counter) = Counting::over(MemEngine::new());
/// let (_, calls) = counter.during(|| engine.get_many(&[(Space::Object, b"a"), (Space::Object, b"b")]).len());
/// assert_eq!((calls.of(Call::GetMany), calls.all()), (1, 1));
/// ```
#[derive(Debug)]
pub struct Counting {
    engine: Box<dyn Engine>,
    caps: Caps,
    counter: Counter,
}

impl Counting {
    /// Wraps an engine, and returns the counter too.
    pub fn over(engine: impl Engine) -> (Self, Counter) {
        let (caps, counter) = (engine.caps(), Counter::default());
        (Self { engine: Box::new(engine), caps, counter: counter.clone() }, counter)
    }

    /// Changes the capabilities that it reports.
    #[must_use]
    pub fn with_caps(self, change: impl FnOnce(&mut Caps)) -> Self {
        let mut caps = self.caps;
        change(&mut caps);
        Self { caps, ..self }
    }
}

/// A snapshot whose reads are counted.
struct CountingSnapshot<'e> {
    snapshot: Snapshot<'e>,
    counter: Counter,
}

macro_rules! counted_reads {
    ($field:ident) => {
        fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
            self.counter.note(Call::Get);
            self.$field.get(space, key)
        }

        fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
            self.counter.note(Call::GetMany);
            self.$field.get_many(keys)
        }

        fn get_slices(&self, slices: &[RowSlice<'_>]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
            self.counter.note(Call::GetSlices);
            self.$field.get_slices(slices)
        }

        fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
            self.counter.note(Call::Scan);
            self.$field.scan_rows(scan, visit)
        }

        fn scan_ranges(
            &self,
            family: Family,
            ranges: &[Range<Vec<u8>>],
            visit: &mut RowVisitor<'_>,
        ) -> Result<(), EngineError> {
            self.counter.note(Call::Scan);
            self.$field.scan_ranges(family, ranges, visit)
        }

        fn ranges_at_once(&self, family: Family) -> usize {
            self.$field.ranges_at_once(family)
        }

        fn is_empty(&self) -> Result<bool, EngineError> {
            self.counter.note(Call::Scan);
            self.$field.is_empty()
        }

        fn check_columns(&self, visit: &mut ColumnsVisitor<'_>) -> Result<(), EngineError> {
            self.counter.note(Call::Scan);
            self.$field.check_columns(visit)
        }
    };
}

impl Readable for Counting {
    counted_reads! { engine }
}

impl Readable for CountingSnapshot<'_> {
    counted_reads! { snapshot }
}

impl Engine for Counting {
    fn may_have(&self, space: Space, key: &[u8]) -> bool {
        self.counter.note(Call::Get);
        self.engine.may_have(space, key)
    }

    fn commit(&self, batch: Batch, guards: &[Guard], level: Level) -> Result<CommitSeq, EngineError> {
        self.counter.note(Call::Commit);
        self.engine.commit(batch, guards, level)
    }

    fn commit_run(
        &self,
        first: CommitSeq,
        batches: Vec<Batch>,
        level: Level,
    ) -> Result<CommitSeq, EngineError> {
        self.counter.note(Call::CommitRun);
        self.engine.commit_run(first, batches, level)
    }

    fn snapshot(&self) -> Result<Snapshot<'_>, EngineError> {
        self.counter.note(Call::Snapshot);
        let (snapshot, counter) = (self.engine.snapshot()?, self.counter.clone());
        Ok(Box::new(CountingSnapshot { snapshot, counter }))
    }

    fn follow(&self) -> Result<Snapshot<'static>, EngineError> {
        self.counter.note(Call::Snapshot);
        let (snapshot, counter) = (self.engine.follow()?, self.counter.clone());
        Ok(Box::new(CountingSnapshot { snapshot, counter }))
    }

    fn sync(&self) -> Result<(), EngineError> {
        self.counter.note(Call::Sync);
        self.engine.sync()
    }

    fn load(&self, rows: Vec<SealedRow>) -> Result<(), EngineError> {
        self.counter.note(Call::Upkeep);
        self.engine.load(rows)
    }

    fn checkpoint(&self, dir: &Path) -> Result<(), EngineError> {
        self.counter.note(Call::Upkeep);
        self.engine.checkpoint(dir)
    }

    fn flush(&self) -> Result<(), EngineError> {
        self.counter.note(Call::Upkeep);
        self.engine.flush()
    }

    fn compact(&self, family: Family, range: KeyRange<'_>) -> Result<(), EngineError> {
        self.counter.note(Call::Upkeep);
        self.engine.compact(family, range)
    }

    fn compact_next(&self, family: Family, range: KeyRange<'_>) -> Result<Option<Box<[u8]>>, EngineError> {
        self.counter.note(Call::Upkeep);
        self.engine.compact_next(family, range)
    }

    fn close(&self) -> Result<(), EngineError> {
        self.counter.note(Call::Upkeep);
        self.engine.close()
    }

    fn usage(&self) -> Result<Usage, EngineError> {
        self.counter.note(Call::Upkeep);
        self.engine.usage()
    }

    fn reopening(&self) -> Reopen {
        let (reopen, caps, counter) = (self.engine.reopening(), self.caps, self.counter.clone());
        let around = move |engine| Self { engine, caps, counter: counter.clone() };
        Box::new(move |expects| Ok(reopen(expects)?.map(&around)))
    }

    fn caps(&self) -> Caps {
        self.caps
    }

    crate::delegate! { engine => last_commit batch_count last_synced failure free_bytes disk_bytes address }
}
