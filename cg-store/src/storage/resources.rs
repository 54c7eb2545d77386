//! Memory and threads that the worlds of a process share.

use std::sync::{Arc, Weak};

use rayon::ThreadPoolBuildError;

use crate::engine::Budget;
use crate::rt::lock_order::{Mutex, rank};
use crate::rt::pool::Pool;

/// Memory and threads, shared by all worlds that are opened with clones of one value.
///
/// There is [one of the process](Self::of_process), which every world uses unless its options have another. The memory
/// is that of the engines' [budget](Self::budget).
///
/// The threads load chunks, move them between tiers and fold the opacity map. They end with the last world that uses
/// them. Dropping that world waits for them.
///
/// ```
/// use cg_store::{Resources, WorldOptions};
/// // Two worlds that leave the memory of the others alone.
/// let apart = Resources::new(64 << 20, 2);
/// let options = WorldOptions { resources: Some(apart.clone()), ..WorldOptions::default() };
/// assert_eq!(options.resources.map(|shared| shared.budget().memory_bytes()), Some(64 << 20));
/// ```
#[derive(Debug, Clone)]
pub struct Resources(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    budget: Budget,
    /// Started with the first world.
    pool: Mutex<Option<Arc<Pool>>, rank::Pool>,
}

/// The resources of the process, while any user exists.
static OF_PROCESS: Mutex<Weak<Shared>, rank::Resources> = Mutex::new(Weak::new());

impl Resources {
    /// Creates resources with at least 16 MiB of memory and at least two threads.
    pub fn new(memory_bytes: usize, thread_count: usize) -> Self {
        Self::within(Budget::new(memory_bytes, thread_count))
    }

    /// The resources of the process, with the engines' [budget of the process](Budget::of_process).
    ///
    /// The first call creates them with the given memory. They exist as long as they are used. Later calls return the
    /// same ones, whatever memory they give.
    pub fn of_process(memory_bytes: usize) -> Self {
        let mut known = OF_PROCESS.lock();
        if let Some(shared) = known.upgrade() {
            return Self(shared);
        }
        let made = Self::within(Budget::of_process(memory_bytes));
        *known = Arc::downgrade(&made.0);
        made
    }

    /// The part of the engines, for engines that share it with worlds.
    pub fn budget(&self) -> &Budget {
        &self.0.budget
    }

    fn within(budget: Budget) -> Self {
        Self(Arc::new(Shared { budget, pool: Mutex::default() }))
    }

    /// The threads.
    pub(crate) fn pool(&self) -> Result<Arc<Pool>, ThreadPoolBuildError> {
        let mut pool = self.0.pool.lock();
        match &*pool {
            Some(pool) => Ok(Arc::clone(pool)),
            None => Ok(Arc::clone(pool.insert(Arc::new(Pool::start(self.0.budget.thread_count())?)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{World, WorldOptions};

    #[test]
    fn the_threads_are_shared_by_clones() {
        let all = Resources::new(0, 3);
        let pool = all.pool().unwrap();
        assert!(Arc::ptr_eq(&pool, &all.clone().pool().unwrap()));
        assert!(!Arc::ptr_eq(&pool, &Resources::new(0, 3).pool().unwrap()));
    }

    #[test]
    fn worlds_share_until_the_last_is_gone() {
        let apart = Resources::new(0, 2);
        let options = WorldOptions { resources: Some(apart.clone()), ..WorldOptions::default() };
        let worlds = [0, 1].map(|_| World::builder().options(&options).in_memory().unwrap());
        let pools = [&worlds[0], &worlds[1]].map(|world| Arc::clone(&world.rooms().shared.pool));
        assert!(Arc::ptr_eq(&pools[0], &pools[1]));
        let ours = World::builder().in_memory().unwrap();
        assert!(!Arc::ptr_eq(&pools[0], &ours.rooms().shared.pool), "the process's own are others");
        let of_process = World::builder().in_memory().unwrap();
        assert!(Arc::ptr_eq(&ours.rooms().shared.pool, &of_process.rooms().shared.pool));
        drop((worlds, pools, options));
        assert_eq!(Arc::strong_count(&apart.0), 1, "nothing of a world is left");
    }
}
