//! Memory and threads that the worlds of a process share.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rayon::ThreadPoolBuildError;

#[cfg(feature = "rocks")]
use super::{EngineError, rocks::Memory};
use crate::pool::Pool;

/// What worlds get unless somebody says otherwise: 256 MiB.
pub(crate) const DEFAULT_MEMORY_BYTES: usize = 256 << 20;
/// Less would not hold the write buffers of one world.
const MIN_MEMORY_BYTES: usize = 16 << 20;

/// Memory and threads, shared by all worlds that are opened with clones of one value.
///
/// There is [one of the process](Self::of_process), which every world uses unless its options carry another. Of the
/// memory a quarter is for writes that are not yet in a file, a quarter for large values (clusters), the rest for
/// blocks of small ones; the first also count against the last. Nothing is taken before it is needed.
///
/// The threads that load chunks end with the last world that uses them, and dropping that world waits for them.
/// Those that flush and compact are RocksDB's: it keeps one pool of them per process, and they idle when no world is
/// open.
///
/// ```
/// use cg_store::WorldOptions;
/// use cg_store::engine::Resources;
/// // Two worlds that leave the memory of the others alone.
/// let apart = Resources::new(64 << 20, 2);
/// let options = WorldOptions { resources: Some(apart.clone()), ..WorldOptions::default() };
/// assert_eq!(options.resources.map(|shared| shared.memory_bytes()), Some(64 << 20));
/// ```
#[derive(Clone)]
pub struct Resources(Arc<Shared>);

struct Shared {
    memory_bytes: usize,
    thread_count: usize,
    /// Started with the first world.
    pool: Mutex<Option<Arc<Pool>>>,
    /// Made with the first engine on disk.
    #[cfg(feature = "rocks")]
    rocks: std::sync::OnceLock<Memory>,
}

/// The process's own, as long as anything uses it.
static OF_PROCESS: Mutex<Weak<Shared>> = Mutex::new(Weak::new());

impl Resources {
    /// So much memory, not under 16 MiB, and so many threads, not under two.
    pub fn new(memory_bytes: usize, thread_count: usize) -> Self {
        Self(Arc::new(Shared {
            memory_bytes: memory_bytes.max(MIN_MEMORY_BYTES),
            thread_count: thread_count.max(2),
            pool: Mutex::default(),
            #[cfg(feature = "rocks")]
            rocks: std::sync::OnceLock::new(),
        }))
    }

    /// The process's own, with a thread per processor.
    ///
    /// It is made when somebody asks for it first, with the memory that is asked for then, and kept as long as
    /// something uses it. Whoever asks meanwhile gets the same, however much memory it asked for:
    /// [`memory_bytes`](Self::memory_bytes) says how much there is.
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

    /// The budget.
    pub fn memory_bytes(&self) -> usize {
        self.0.memory_bytes
    }

    /// How many threads load, and how many flush and compact.
    pub fn thread_count(&self) -> usize {
        self.0.thread_count
    }

    /// What engines on disk use of the memory now.
    pub fn used_bytes(&self) -> u64 {
        #[cfg(feature = "rocks")]
        return self.0.rocks.get().map_or(0, Memory::used_bytes);
        #[cfg(not(feature = "rocks"))]
        0
    }

    /// The threads that load chunks.
    pub(crate) fn pool(&self) -> Result<Arc<Pool>, ThreadPoolBuildError> {
        let mut pool = self.0.pool.lock();
        match &*pool {
            Some(pool) => Ok(Arc::clone(pool)),
            None => Ok(Arc::clone(pool.insert(Arc::new(Pool::start(self.0.thread_count)?)))),
        }
    }

    /// Looks whether the process may have what RocksDB takes when it starts, unless it has started.
    #[cfg(feature = "rocks")]
    pub(super) fn check_startup(&self) -> Result<(), EngineError> {
        if self.0.rocks.get().is_some() {
            return Ok(());
        }
        super::rocks::check_startup(self.0.memory_bytes, self.0.thread_count)
    }

    #[cfg(feature = "rocks")]
    pub(super) fn rocks(&self) -> &Memory {
        self.0.rocks.get_or_init(|| Memory::new(self.0.memory_bytes, self.0.thread_count))
    }
}

impl Default for Resources {
    /// The process's own, with 256 MiB if it is not there yet.
    fn default() -> Self {
        Self::of_process(DEFAULT_MEMORY_BYTES)
    }
}

impl fmt::Debug for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resources")
            .field("memory_bytes", &self.0.memory_bytes)
            .field("thread_count", &self.0.thread_count)
            .field("used_bytes", &self.used_bytes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether two are clones of one.
    fn same(a: &Resources, b: &Resources) -> bool {
        Arc::ptr_eq(&a.0, &b.0)
    }

    #[test]
    fn a_process_has_one_as_long_as_it_is_used() {
        let first = Resources::of_process(48 << 20);
        let second = Resources::of_process(999 << 20);
        assert!(same(&first, &second) && same(&first, &Resources::default()));
        assert_eq!(second.memory_bytes(), first.memory_bytes());
        assert!(!same(&first, &Resources::new(48 << 20, 2)), "one's own is another");
    }

    #[test]
    fn too_little_is_raised() {
        let least = Resources::new(0, 0);
        assert_eq!((least.memory_bytes(), least.thread_count()), (16 << 20, 2));
        assert_eq!(least.used_bytes(), 0, "nothing is taken before it is needed");
    }

    #[test]
    fn the_threads_are_shared_by_clones() {
        let all = Resources::new(0, 3);
        let pool = all.pool().unwrap();
        assert!(Arc::ptr_eq(&pool, &all.clone().pool().unwrap()));
        assert!(!Arc::ptr_eq(&pool, &Resources::new(0, 3).pool().unwrap()));
    }

    #[test]
    fn worlds_share_until_the_last_is_gone() {
        use crate::{World, WorldOptions};
        let apart = Resources::new(0, 2);
        let options = WorldOptions { resources: Some(apart.clone()), ..WorldOptions::default() };
        let worlds = [0, 1].map(|_| World::temporary(&[], &options).unwrap());
        let pools = [&worlds[0], &worlds[1]].map(|world| Arc::clone(&world.unsettled().pool));
        assert!(Arc::ptr_eq(&pools[0], &pools[1]));
        let ours = World::temporary(&[], &WorldOptions::default()).unwrap();
        assert!(!Arc::ptr_eq(&pools[0], &ours.unsettled().pool), "the process's own are others");
        let of_process = World::temporary(&[], &WorldOptions::default()).unwrap();
        assert!(Arc::ptr_eq(&ours.unsettled().pool, &of_process.unsettled().pool));
        drop((worlds, pools, options));
        assert_eq!(Arc::strong_count(&apart.0), 1, "nothing of a world is left");
    }

    #[cfg(feature = "rocks")]
    #[test]
    fn engines_of_one_budget_count_together() {
        use crate::engine::{Batch, Engine, Level, RocksEngine, RocksOptions, Stamp};
        use cg_format::Space;
        use cg_format::frame::{Codec, Draft};
        let home = tempfile::tempdir().unwrap();
        let shared = Resources::new(64 << 20, 2);
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
