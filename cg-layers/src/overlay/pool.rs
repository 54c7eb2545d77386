//! What the arenas of a pool share: their rows, and the list of them.

use std::sync::atomic::Ordering;

use cg_store::engine::{Engine, Level};
use cg_store::layer::{Base, Mutex, finish_commits, rank};
use cg_store::{Error, WorldOptions};

use super::arena_list::ArenaList;
use super::submitted::Room;
use super::sweeping::Sweeping;
use crate::store::{OverlayError, RowEngine, Store, StoreNames};

/// A pool of arenas over one base.
#[derive(Debug)]
pub(super) struct Pool<S> {
    pub(super) store: Store<S>,
    pub(super) arenas: ArenaList,
    /// Held by the running tick.
    pub(super) ticking: Mutex<Sweeping, rank::OverlayTicking>,
    /// The memory of what was submitted.
    pub(super) room: Room,
    /// Refusals of what was submitted that no ticket has reported.
    pub(super) refusals: Mutex<Option<Error>, rank::OverlayRefusals>,
}

impl<S: Base> Pool<S> {
    /// Opens an engine that is empty or holds arenas over this base. Writes nothing before the base is known to fit.
    pub(super) fn open(engine: Box<dyn Engine>, base: S, options: &WorldOptions) -> Result<Self, Error> {
        let layers = base.layers() + 1;
        let layer = u8::try_from(layers).map_err(|_| OverlayError::TooDeep { layers })?;
        let catalog = base.catalog();
        let level = if options.durability.is_synced() { Level::Power } else { Level::Process };
        let rows = RowEngine::open(engine, level)?;
        let names = StoreNames::read(rows.engine(), &base, &catalog)?;
        finish_commits(rows.engine())?;
        let arenas = ArenaList::read(rows.engine())?;
        let store = Store::new(base, rows, names, layer, options);
        let met = arenas.damaged.lock().count() as u64;
        store.counts.damage_met.store(met, Ordering::Relaxed);
        if !store.rows.engine().caps().read_only {
            store.names.store(&store.rows, catalog)?;
        }
        let (room, refusals) = (Room::new(options.queue_bytes), Mutex::default());
        Ok(Self { store, arenas, ticking: Mutex::default(), room, refusals })
    }
}
