//! Memory and threads that the engines of a process share.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

#[cfg(feature = "rocks")]
mod memory;
#[cfg(feature = "rocks")]
mod startup;

#[cfg(feature = "rocks")]
use memory::Memory;

#[cfg(feature = "rocks")]
use crate::EngineError;

/// The memory of engines that are opened without a [`Budget`] of their own: 256 MiB.
pub const DEFAULT_MEMORY_BYTES: usize = 256 << 20;
/// The write buffers of one engine need at least this much.
const MIN_MEMORY_BYTES: usize = 16 << 20;

/// Memory and threads, shared by all engines that are opened with clones of one value.
///
/// Every engine uses the [budget of the process](Self::of_process) unless its options carry another. A quarter of the
/// memory is for writes that are not in a file yet, and a quarter for large values (clusters). The rest is for blocks
/// of small values. Pending writes also count against the blocks. Memory is allocated when it is needed.
///
/// The threads flush and compact. They belong to RocksDB, which keeps one pool of them per process. They idle when no
/// engine is open.
///
/// ```
/// let own = cg_engine::Budget::new(64 << 20, 2);
/// assert_eq!((own.memory_bytes(), own.thread_count()), (64 << 20, 2));
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Shared>);

struct Shared {
    memory_bytes: usize,
    thread_count: usize,
    /// Created with the first engine on disk.
    #[cfg(feature = "rocks")]
    rocks: std::sync::OnceLock<Memory>,
}

/// The budget of the process, while it is in use.
static OF_PROCESS: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

impl Budget {
    /// A budget of at least 16 MiB and at least two threads.
    pub fn new(memory_bytes: usize, thread_count: usize) -> Self {
        Self(Arc::new(Shared {
            memory_bytes: memory_bytes.max(MIN_MEMORY_BYTES),
            thread_count: thread_count.max(2),
            #[cfg(feature = "rocks")]
            rocks: std::sync::OnceLock::new(),
        }))
    }

    /// The budget of the process, with one thread per processor.
    ///
    /// The first call creates it with the size that it asks for. The budget exists while something uses it, and later
    /// calls return it, whatever size they ask for. [`memory_bytes`](Self::memory_bytes) is its size.
    pub fn of_process(memory_bytes: usize) -> Self {
        let mut known = OF_PROCESS.lock();
        if let Some(shared) = known.upgrade() {
            return Self(shared);
        }
        let thread_count = std::thread::available_parallelism().map_or(2, usize::from);
        let made = Self::new(memory_bytes, thread_count);
        *known = Arc::downgrade(&made.0);
        made
    }

    /// The size of the memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes
    }

    /// The number of threads that flush and compact.
    pub fn thread_count(&self) -> usize {
        self.0.thread_count
    }

    /// The memory that engines on disk use now.
    pub fn used_bytes(&self) -> u64 {
        #[cfg(feature = "rocks")]
        return self.0.rocks.get().map_or(0, Memory::used_bytes);
        #[cfg(not(feature = "rocks"))]
        0
    }

    /// Checks that the process can get what RocksDB allocates when it starts, unless it has started.
    #[cfg(feature = "rocks")]
    pub(crate) fn check_startup(&self) -> Result<(), EngineError> {
        if self.0.rocks.get().is_some() {
            return Ok(());
        }
        startup::check(self.0.memory_bytes, self.0.thread_count)
    }

    #[cfg(feature = "rocks")]
    pub(crate) fn rocks(&self) -> &Memory {
        self.0.rocks.get_or_init(|| Memory::new(self.0.memory_bytes, self.0.thread_count))
    }
}

impl Default for Budget {
    /// The budget of the process, created with 256 MiB if there is none yet.
    fn default() -> Self {
        Self::of_process(DEFAULT_MEMORY_BYTES)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("memory_bytes", &self.memory_bytes())
            .field("thread_count", &self.thread_count())
            .field("used_bytes", &self.used_bytes())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two budgets are clones of one.
    fn same(a: &Budget, b: &Budget) -> bool {
        Arc::ptr_eq(&a.0, &b.0)
    }

    #[test]
    fn a_process_has_one_as_long_as_it_is_used() {
        let first = Budget::of_process(48 << 20);
        let second = Budget::of_process(999 << 20);
        assert!(same(&first, &second) && same(&first, &Budget::default()));
        assert_eq!(second.memory_bytes(), first.memory_bytes());
        assert!(!same(&first, &Budget::new(48 << 20, 2)), "one's own is another");
    }

    #[test]
    fn too_little_is_raised() {
        let least = Budget::new(0, 0);
        assert_eq!((least.memory_bytes(), least.thread_count()), (16 << 20, 2));
        assert_eq!(least.used_bytes(), 0, "nothing is taken before it is needed");
    }

    #[cfg(feature = "rocks")]
    #[test]
    fn engines_of_one_budget_count_together() {
        use crate::{Batch, Engine, Level, RocksEngine, RocksOptions, Stamp};
        use cg_format::Space;
        use cg_format::frame::{Codec, Draft};
        let home = tempfile::tempdir().unwrap();
        let shared = Budget::new(64 << 20, 2);
        let options = RocksOptions::new(shared.clone());
        let engines = ["a", "b"].map(|name| RocksEngine::create(&home.path().join(name), &options).unwrap());
        let before = shared.used_bytes();
        for engine in &engines {
            let mut batch = Batch::new();
            let row = Draft::plain(Codec::None, 0, |out| out.resize(4 << 20, 7));
            batch.put(Space::Object, b"row", row, Stamp::Commit);
            engine.commit(batch, &[], Level::Process).unwrap();
        }
        let used = shared.used_bytes() - before;
        assert!(used >= 8 << 20, "{used} bytes for two rows of 4 MiB in two engines");
        for engine in &engines {
            assert!(engine.usage().unwrap().memory_bytes >= used, "each tells what all of them use");
        }
    }
}
