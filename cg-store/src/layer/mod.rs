//! Interfaces for a crate that puts a layer over worlds, as `cg-layers` does. A game needs none of them.
//!
//! A layer keeps rows of its own in an engine and reads through to a [`Base`]. Its rows have the frames, the checks and the
//! large commits of a world's, and its transactions are [`Tx`] over a [`TxStore`] of its own. What is here may
//! change in every release.

mod base;
pub mod batch;
pub mod columns;
mod content_sum;
pub mod values;

use std::ops::ControlFlow;
#[cfg(feature = "rocks")]
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cg_registry::Catalog;
use cg_tiering::{GameTick, PlayerAt};

#[cfg(feature = "rocks")]
pub use crate::admin::quarantine::salvage_in;
pub use crate::commit::submit::{DeferredOutcome, DeferredTicket, DefersBatches};
pub use crate::commit::transaction::{
    Check, Checked, ChunkChange, ChunkWrites, Ground, KeepsCommits, Resolved, TxStore, ValueStore, Writes,
    reason, resolve_ownership,
};
pub use crate::kinds::entity::upgrade as upgrade_entity;
pub use crate::kinds::kind;
pub use crate::kinds::object::{ObjectWrite, behind_all, range};
pub use crate::kinds::record::{decode as decode_record, leaf_of, scan_area};
pub use crate::maintain::tick::CompactionSteps;
pub use crate::read::cache::Stored;
pub use crate::read::chunk::check_height;
pub use crate::read::chunk::decode::decode;
pub use crate::read::delta::worth_a_delta;
pub use crate::rt::lock_order::{
    Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, host, rank,
};
pub use crate::storage::apply_latch::{ApplyGuard, ApplyLatch, Applying};
#[cfg(feature = "rocks")]
pub use crate::storage::claim::{claim, sync_parent};
pub use crate::storage::meta::{Identity, MetaRow, open_row, read_catalog, registry_rows};
pub use crate::storage::options::MAX_BATCH_BYTES;
pub use crate::storage::recovery::finish as finish_commits;
pub use crate::storage::staged::{TooLong, check as check_parts};
pub use crate::storage::value_check::ValueGuard;
pub use base::{Base, Found, origin_of, without_deletion};
pub use content_sum::ContentSum;

use cg_format::ChunkAt;
use cg_format::lineage::{HistoryPoint, Lineage};

use crate::api::read_view::ReadView;
use crate::api::world::World;
use crate::commit::disk_guard::Reserve;
use crate::commit::transaction::{Committed, Transaction, Tx};
#[cfg(feature = "rocks")]
use crate::engine::{Access, RocksEngine, RocksOptions};
use crate::engine::{CommitSeq, Engine, EngineError};
use crate::kinds::object::{Object, StoredObject};
use crate::maintain::tick::TickReport;
use crate::read::chunk::Area;
use crate::storage::error::Error;
#[cfg(feature = "rocks")]
use crate::storage::error::OpenError;
use crate::storage::history::{self, HistoryEngine};
use crate::storage::object_key::ObjectKey;
use crate::storage::options::{Durability, WorldOptions};
use crate::storage::resources::Resources;

/// A transaction of a store that has written nothing yet.
pub fn begin<S: TxStore>(store: S, catalog: Arc<Catalog>) -> Tx<S> {
    Tx::new(store, catalog)
}

/// The store of a transaction, its names and what it wrote.
pub fn end<S>(tx: Tx<S>) -> (S, Arc<Catalog>, Writes) {
    let Tx { store, catalog, writes } = tx;
    (store, catalog, writes)
}

/// The store of a transaction.
pub const fn store_of<S>(tx: &Tx<S>) -> &S {
    &tx.store
}

/// The same, to be read.
pub const fn store_of_mut<S>(tx: &mut Tx<S>) -> &mut S {
    &mut tx.store
}

/// Has a transaction write this, and nothing that it wrote before.
pub fn replace_writes<S: TxStore>(tx: &mut Tx<S>, writes: Writes) {
    tx.write_all(writes);
}

/// As [`World::transaction_at`], of a commit without which others are not whole, or that was promised: it may use the room of
/// the disk that is to stay free.
///
/// # Errors
/// As [`World::transaction_at`], but for [`Error::LowDiskSpace`].
pub fn promised_transaction<T, X: From<Error>>(
    world: &World,
    durability: Durability,
    body: impl FnOnce(&mut Transaction<'_>) -> Result<T, X>,
) -> Result<Committed<T>, X> {
    world.rooms().commit.transaction(durability, Reserve::Uses, body)
}

/// Checks that a world's disk has room for a commit.
///
/// # Errors
/// [`Error::LowDiskSpace`] if it has not.
pub fn check_room(world: &World) -> Result<(), Error> {
    world.rooms().commit.check_room()
}

/// Writes an object at the version that it has elsewhere, or deletes it.
///
/// # Errors
/// [`Error::VersionGoesBack`] if the store has a newer version.
pub fn write_stored_object<S: ValueStore>(
    tx: &mut Tx<S>,
    key: ObjectKey,
    object: &StoredObject,
) -> Result<(), Error> {
    tx.write_stored_object(key, object)
}

/// Writes an object at the version that it has elsewhere, whatever is stored. For caches of a store whose history may have
/// ended and gone on from before.
///
/// # Errors
/// [`Error::NegativeVersion`].
pub fn replace_stored_object<S: ValueStore>(
    tx: &mut Tx<S>,
    key: ObjectKey,
    object: &Object,
) -> Result<(), Error> {
    tx.replace_stored_object(key, object)
}

/// What the commits of a world do about illegal values.
pub fn values_of(world: &World) -> &ValueGuard {
    &world.rooms().shared.values
}

/// Waits until a world has a commit after this one, until a moment at most. Returns its newest commit.
///
/// # Errors
/// [`Error::Closed`] if the world is closed meanwhile.
pub fn wait_for_commit(world: &World, after: CommitSeq, until: Option<Instant>) -> Result<CommitSeq, Error> {
    world.rooms().commit.wait_for_commit(after.get(), until).map(CommitSeq::new)
}

/// As [`WorldBuilder::create`](crate::WorldBuilder::create), with the names of another world.
///
/// # Errors
/// As [`WorldBuilder::create`](crate::WorldBuilder::create).
#[cfg(feature = "rocks")]
pub fn create_world(dir: &Path, names: Catalog, options: &WorldOptions) -> Result<World, Error> {
    World::create_with(dir, names, options)
}

/// As [`WorldBuilder::open`](crate::WorldBuilder::open), with the stored names changed by a function, which may refuse them.
///
/// # Errors
/// As [`WorldBuilder::open`](crate::WorldBuilder::open), and those of the function.
#[cfg(feature = "rocks")]
pub fn open_world(
    dir: &Path,
    options: &WorldOptions,
    change: impl FnOnce(&mut Catalog) -> Result<(), Error>,
) -> Result<World, Error> {
    World::open_with(dir, options, change)
}

/// As [`WorldBuilder::over`](crate::WorldBuilder::over), with the stored names changed by a function, which may refuse
/// them.
///
/// # Errors
/// As [`WorldBuilder::over`](crate::WorldBuilder::over), and those of the function.
pub fn world_over(
    engine: impl Engine,
    options: &WorldOptions,
    change: impl FnOnce(&mut Catalog) -> Result<(), Error>,
) -> Result<World, Error> {
    World::over(Box::new(engine), options, change)
}

/// Begins an opening of an engine that holds no world: its rows carry the opening that made their commit.
///
/// # Errors
/// [`Error::Corrupt`] if a row of the openings is damaged; the errors of the engine.
pub fn with_history(engine: Box<dyn Engine>) -> Result<(Box<dyn Engine>, Arc<Lineage>), Error> {
    let lineage = history::read(&engine)?;
    let engine = HistoryEngine::begin(engine, lineage);
    let lineage = Arc::clone(engine.lineage());
    Ok((Box::new(engine), lineage))
}

/// Opens the engine of a directory that holds no world, after a check that its logs are of its history.
///
/// # Errors
/// [`OpenError::Engine`], with [`EngineError::OtherHistory`] for a log of another history; [`Error::Corrupt`] if a row of the
/// openings is damaged.
#[cfg(feature = "rocks")]
pub fn open_with_history(
    dir: &Path,
    engine_dir: &Path,
    options: &RocksOptions,
) -> Result<RocksEngine, Error> {
    let refused = |source| OpenError::Engine { at: dir.into(), source };
    let check = |engine: &RocksEngine| {
        let lineage = history::read(engine)?;
        Ok::<_, Error>(engine.check_history(&lineage).map_err(refused)?)
    };
    if options.access == Access::ReadOnly {
        let engine = RocksEngine::open(engine_dir, options).map_err(refused)?;
        check(&engine)?;
        return Ok(engine);
    }
    let examined = RocksEngine::examine(engine_dir, options).map_err(refused)?;
    check(examined.reader())?;
    Ok(examined.open().map_err(refused)?)
}

/// The openings that made the commits of a world, with this one if it takes commits.
pub fn lineage(world: &World) -> Arc<Lineage> {
    world.rooms().shared.lineage()
}

/// The newest commit of a world that is known to survive a power cut.
pub fn newest_synced(world: &World) -> HistoryPoint {
    let [_, synced] = world.rooms().shared.slot.reached();
    world.rooms().shared.lineage().at(synced.get())
}

/// The newest commit of a world, for a ticket of everything up to it.
pub fn newest_commit(world: &World) -> Committed<()> {
    Committed::new(world.rooms().commit.weak_world.clone(), (), world.last_commit().get())
}

/// Whether a world has a commit of some history. Nothing is asked of one that was made before openings were stored.
pub fn has_point(world: &World, point: HistoryPoint) -> bool {
    point.opening == 0
        || point.commit <= world.last_commit().get() && world.rooms().shared.lineage().has(point)
}

/// Gives a world the names of another one under the same ids.
///
/// # Errors
/// [`Error::Registry`] if the world has other names under those ids; what storing them fails with.
pub fn adopt_names(world: &World, names: &Arc<Catalog>) -> Result<(), Error> {
    world.applied()?.commit.adopt_names(names)
}

/// Waits until a commit survives a power cut, and syncs if it does not yet: before another process is told of it.
///
/// # Errors
/// If writing or syncing fails; the world is read-only from then on. [`EngineError::LostCommits`] if the world no longer has
/// the commit.
pub fn sync_to(world: &World, commit: CommitSeq) -> Result<(), Error> {
    let [_, synced] = world.rooms().shared.slot.reached();
    if synced >= commit {
        return Ok(());
    }
    let engine = world.applied()?.commit.drained_engine()?;
    let last = engine.last_commit();
    if last < commit {
        // The world was opened again meanwhile, without it.
        return Err(EngineError::LostCommits { floor: commit, found: last }.into());
    }
    if !engine.caps().read_only && engine.last_synced() < commit {
        engine.sync()?;
    }
    Ok(())
}

/// As [`ReadView::for_each_property`](crate::view::ReadView::for_each_property), after a name.
///
/// # Errors
/// If the engine fails.
pub fn for_each_property_behind<B>(
    view: &ReadView<'_>,
    prefix: &str,
    behind: Option<&str>,
    visit: impl FnMut(Result<(&str, &[u8]), Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    view.for_each_property_behind(prefix, behind, visit)
}

/// Runs something on the threads of a world.
pub fn spawn(world: &World, job: impl FnOnce() + Send + 'static) {
    world.rooms().shared.pool.spawn(job);
}

/// The threads and the memory of a world, to be shared with another one.
pub fn resources(world: &World) -> Option<Resources> {
    world.rooms().shared.options.resources.clone()
}

/// Tells a world the time and the positions of all players, as [`World::tick`] does, and leaves its work to
/// [`work_tick`]. Returns the world's time. Waits for no tick, and calls no engine.
pub fn note_tick(world: &World, now: GameTick, players: &[PlayerAt]) -> GameTick {
    world.rooms().maintain.note_tick(now, players)
}

/// Does the work of a tick whose time and players were [noted](note_tick). Returns `None` without waiting if another
/// tick or [`Tiers::demote_all`](crate::tiers::Tiers::demote_all) runs. `players` are those whose chunks are prefetched.
///
/// # Errors
/// As [`World::tick`].
pub fn work_tick(world: &World, players: &[PlayerAt], budget: Duration) -> Result<Option<TickReport>, Error> {
    world.rooms().maintain.work_tick(players, budget)
}

/// Begins a compaction of a world, which is run by [`run_compaction`]. It keeps the world neither open nor borrowed.
///
/// # Errors
/// As [`Tiers::compaction`](crate::tiers::Tiers::compaction).
pub fn begin_compaction(world: &World, area: Area<'_>) -> Result<CompactionSteps, Error> {
    world.applied()?.maintain.compaction_steps(area)
}

/// Runs a compaction of a world for about as long as the budget. Returns whether something is left.
///
/// # Errors
/// As [`Compaction::run`](crate::tiers::Compaction::run).
pub fn run_compaction(world: &World, steps: &mut CompactionSteps, budget: Duration) -> Result<bool, Error> {
    steps.run(&world.applied()?.maintain, budget)
}

/// The report of a tick that has done nothing and knows of nothing, to which the reports of several worlds are added.
pub fn empty_report(now: GameTick) -> TickReport {
    TickReport { work_left: false, ..TickReport::at(now) }
}

/// Writes a world's clock, if it stores another time, so that a killed process leaves it. Otherwise it is written with
/// the accesses of chunks and when the world is closed.
///
/// # Errors
/// If the engine fails.
pub fn keep_clock(world: &World) -> Result<(), Error> {
    world.rooms().maintain.keep_clock()
}

/// Has ticks of a world prefetch only chunks that it may have by this function. The first call counts.
pub fn prefetch_only(world: &World, may_have: impl Fn(ChunkAt) -> bool + Send + Sync + 'static) {
    if let Some(prefetch) = &world.rooms().maintain.activity.prefetch {
        prefetch.only(may_have);
    }
}

/// Sets the memory of a world for decoded chunks: [`WorldOptions::cache_bytes`] was set for its opening. What is known of
/// absent cubes keeps a 64th of that. With 0 nothing is kept but the areas of
/// [`WorldCache::pin`](crate::cache::WorldCache::pin).
pub fn set_cache_bytes(world: &World, cache_bytes: u64) {
    world.rooms().read.cache.set_limit(cache_bytes);
}
