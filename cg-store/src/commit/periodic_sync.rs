//! The periodic sync: a commit that did not wait for the disk is synced about a second later.
//!
//! So a power cut loses at most the last second of commits at [`Durability::Process`](crate::Durability::Process).

use std::thread;
use std::time::Duration;

use crate::commit::state::CommitState;
use crate::engine::{Engine, EngineError};
use crate::rt::pool::lower_priority;
use crate::rt::weak_world::WeakWorld;
use crate::storage::durability::Durability;
use crate::storage::error::Error;

/// The longest time a commit waits for its sync, without the time of the sync itself.
const EVERY: Duration = Duration::from_secs(1);

impl CommitState {
    /// Starts the thread that syncs, unless nothing survives the process, nothing is written, or the host wants no
    /// syncs.
    pub(crate) fn start_syncing(&self) -> Result<(), Error> {
        let caps = self.shared.engine()?.caps();
        let can_sync = caps.durable && caps.levels_apart && !caps.read_only;
        if !can_sync || self.shared.options.durability == Durability::Fast {
            return Ok(());
        }
        let work = |_: &_, world: &_| sync_periodically(world);
        self.start_thread(|threads| &mut threads.syncing, "cg-store-sync", work)
    }
}

/// Syncs until the world ends.
fn sync_periodically(world: &WeakWorld<CommitState>) {
    lower_priority();
    let mut has_told = false;
    loop {
        // Waking early only makes the sync earlier.
        thread::park_timeout(EVERY);
        match world.with_world(|world| step(&*world.shared.engine()?)) {
            Ok(Ok(())) => has_told = false,
            // The engine never retries a failed sync, and refuses commits from now on. Resuming may replace the engine.
            Ok(Err(error)) if !has_told => {
                tracing::error!(%error, "no sync comes by itself until the world is resumed");
                has_told = true;
            }
            Ok(Err(_)) => {}
            Err(_) => return,
        }
    }
}

/// Syncs if there are commits that are not synced.
fn step(engine: &dyn Engine) -> Result<(), EngineError> {
    if engine.last_commit() <= engine.last_synced() {
        return Ok(());
    }
    match engine.sync() {
        // The host closed the world, and closing has synced it.
        Err(EngineError::Closed) => Ok(()),
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Batch, Level, MemEngine};

    #[test]
    fn a_step_syncs_what_was_committed() {
        let engine = MemEngine::new();
        let seq = engine.commit(Batch::new(), &[], Level::Process).unwrap();
        assert!(engine.last_synced() < seq);
        step(&engine).unwrap();
        assert_eq!(engine.last_synced(), seq);
        engine.close().unwrap();
        assert!(step(&engine).is_ok(), "a closed engine has nothing left to sync");
    }

    #[test]
    #[cfg(feature = "rocks")]
    fn a_commit_at_process_level_becomes_durable_without_being_asked() {
        use crate::{Durability, Error, Property, World, WorldOptions};
        let home = tempfile::tempdir().unwrap();
        let options = WorldOptions { durability: Durability::Process, ..WorldOptions::default() };
        let world = World::builder().options(&options).create(home.path().join("world")).unwrap();
        let committed = world
            .transaction(|tx| {
                tx.set_property(Property::Time, Some(vec![7; 8]));
                Ok::<_, Error>(())
            })
            .unwrap();
        let ticket = committed.durable();
        let polls = (0..600).take_while(|_| {
            thread::sleep(Duration::from_millis(50));
            !ticket.is_durable()
        });
        assert!(polls.count() < 600, "it is synced within a second, and this waits for thirty");
    }
}
