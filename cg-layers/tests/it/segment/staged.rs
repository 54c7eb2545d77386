//! Segments whose commits and closings another thread acts before, and whose storage can be full.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use cg_registry::Catalog;
use cg_store::engine::{Fault, MemEngine};
use cg_store::error::Location;
use parking_lot::Mutex;

use super::*;

type Act = Box<dyn FnOnce() + Send>;

/// When something is to happen, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Before a segment, by its x, commits.
    Commits(i64),
    /// Before the root does.
    RootCommits,
    /// Before one is closed.
    Closes,
}

/// Segments in memory that say when they commit or are closed, and of which some can be full.
#[derive(Clone, Default)]
pub(super) struct Staged {
    worlds: Arc<Mutex<HashMap<SegmentPos, World>>>,
    act: Arc<Mutex<Option<(When, Act)>>>,
    pub(super) full: Arc<Mutex<Option<i64>>>,
}

impl Staged {
    pub(super) fn begin(&self) -> (SegmentedWorld<Self>, Ids) {
        let home = self.clone();
        let engine = MemEngine::new().with_fault(move |_| {
            home.happens(When::RootCommits);
            None
        });
        let root = World::builder().options(&options()).over(engine).expect("a root");
        let world = SegmentedWorld::begin(self.clone(), root, Some(16), &segments()).expect("begins");
        let ids = register(&world);
        (world, ids)
    }

    pub(super) fn meanwhile(&self, when: When, act: impl FnOnce() + Send + 'static) {
        *self.act.lock() = Some((when, Box::new(act)));
    }

    fn happens(&self, now: When) {
        let wanted = self.act.lock().take_if(|(when, _)| *when == now);
        if let Some((_, act)) = wanted {
            // Another thread does it, which holds no lock of this commit.
            std::thread::scope(|scope| drop(scope.spawn(act)));
        }
    }

    #[track_caller]
    pub(super) fn assert_happened(&self) {
        assert!(self.act.lock().is_none(), "it never happened");
    }
}

impl SegmentHome for Staged {
    fn location(&self, _: SegmentPos) -> Location {
        Location::Address("memory".into())
    }

    fn has(&self, segment: SegmentPos) -> Result<bool, Error> {
        Ok(self.worlds.lock().contains_key(&segment))
    }

    fn create(
        &self,
        segment: SegmentPos,
        names: Arc<Catalog>,
        options: &WorldOptions,
    ) -> Result<World, Error> {
        let home = self.clone();
        let engine = MemEngine::new().with_fault(move |_| {
            home.happens(When::Commits(segment.x));
            (*home.full.lock() == Some(segment.x)).then_some(Fault::NoSpace)
        });
        let take = |catalog: &mut Catalog| {
            *catalog = Catalog::clone(&names);
            Ok(())
        };
        let world = cg_store::layer::world_over(engine, options, take)?;
        self.worlds.lock().insert(segment, world.clone());
        Ok(world)
    }

    fn open(
        &self,
        segment: SegmentPos,
        _: Arc<Catalog>,
        _: &dyn Fn(&Catalog) -> Result<(), Error>,
        _: &WorldOptions,
    ) -> Result<World, Error> {
        Ok(self.worlds.lock().get(&segment).cloned().expect("was asked for"))
    }

    fn remove(&self, segment: SegmentPos) -> Result<(), Error> {
        self.worlds.lock().remove(&segment);
        Ok(())
    }

    fn close(&self, _: World) -> Result<(), Error> {
        // On another thread: this one holds the segment.
        thread::scope(|threads| drop(threads.spawn(|| self.happens(When::Closes))));
        Ok(())
    }
}

/// Stone in a chunk of each of so many segments.
pub(super) fn paved(world: &SegmentedWorld<Staged>, ids: &Ids, count: i64) -> Vec<ChunkAt> {
    let places: Vec<_> = (0..count).map(|x| ids.at(16 * x, 0, 0)).collect();
    for at in &places {
        save(world, *at, filled(world.root(), ids.stone));
    }
    places
}

/// Runs something on a thread of its own, which must come to an end.
#[track_caller]
pub(super) fn ends<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || drop(done.send(run())));
    wait.recv_timeout(Duration::from_secs(20)).expect("it waits for ever")
}
