//! Batches of writes, as a layer gives them to its worlds.

use std::sync::Arc;

use cg_format::ChunkAt;

use super::base::Base;
use crate::api::world::World;
use crate::commit::disk_guard::Reserve;
use crate::commit::submit::{Refused, WriteBatch, WriteTicket};
use crate::commit::transaction::{Committed, KeepsCommits, Tx, ValueStore, Writes};
use crate::engine::CommitSeq;
#[cfg(doc)]
use crate::engine::EngineError;
use crate::read::chunk::{LoadResult, LoadTicket, panicked};
use crate::rt::answer::answer;
use crate::rt::pool::caught;
use crate::storage::error::Error;

/// Calls a function with the places that a batch is known to touch: of each chunk, of the lowest and the highest chunk of
/// each column, and of the owner of each entity that it puts.
pub fn for_each_place(batch: &WriteBatch, place: impl FnMut(ChunkAt)) {
    batch.for_each_place(place);
}

/// Whether a batch has more than chunks: entities, properties, objects or records.
pub fn has_values(batch: &WriteBatch) -> bool {
    batch.touches_entities() || batch.has_values()
}

/// Whether a batch concerns a chunk, as far as that is known without reading.
pub fn may_concern(batch: &WriteBatch, at: ChunkAt) -> bool {
    batch.may_concern(at)
}

/// About the memory that a batch holds.
pub fn memory_bytes(batch: &WriteBatch) -> u64 {
    batch.memory_bytes()
}

/// Repeats the writes of a batch in a transaction that has none yet.
///
/// # Errors
/// As a transaction of these writes, and those of the host's functions.
pub fn write_batch<S: ValueStore>(batch: &WriteBatch, tx: &mut Tx<S>) -> Result<(), Error> {
    batch.write_to(tx)
}

/// Checks that a world would take a batch now, if its queue has room. Waits for nothing.
///
/// # Errors
/// As [`World::submit`], but for [`Error::Busy`].
pub fn check_takes(world: &World, batch: &WriteBatch) -> Result<(), Error> {
    world.rooms().commit.check_takes(batch, batch.memory_bytes(), Reserve::Leaves)
}

/// As [`World::submit`] of a batch whose caller was promised its commit: it may use the room of the disk that is to stay free.
///
/// # Errors
/// As [`World::submit`], but for [`Error::LowDiskSpace`].
pub fn submit_promised(world: &World, batch: WriteBatch) -> Result<WriteTicket, Box<Refused>> {
    world.rooms().commit.submit(batch, Reserve::Uses)
}

/// Runs work that calls functions of the host, and makes its panic an error.
///
/// # Errors
/// [`EngineError::Panicked`], and those of the work.
pub fn catch_panic<T>(operation: &'static str, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    crate::rt::pool::catch_panic(operation, work)
}

/// The commit that a batch became in a layer.
pub fn committed(layer: Arc<dyn KeepsCommits>, seq: CommitSeq) -> Committed<()> {
    Committed::of_layer(layer, (), seq.get())
}

/// Takes from a transaction what it has written.
pub fn take_writes<S>(tx: &mut Tx<S>) -> Writes {
    std::mem::take(&mut tx.writes)
}

/// Loads chunks by a function on the threads of a layer, as
/// [`World::load_in_background`](crate::World::load_in_background). `None` means that there is no layer any more.
pub fn load_in_background(
    layer: &impl Base,
    at: &[ChunkAt],
    load: impl FnOnce(&[ChunkAt]) -> Option<Vec<LoadResult>> + Send + 'static,
) -> LoadTicket {
    load_by(|job| layer.spawn(Box::new(|| job(Ok(())))), at, |at, _| load(at))
}

/// As [`load_in_background`], with a function that runs the load. It tells the load why it cannot be.
pub fn load_by(
    spawn: impl FnOnce(Box<dyn FnOnce(Result<(), Error>) + Send>),
    at: &[ChunkAt],
    load: impl FnOnce(&[ChunkAt], Result<(), Error>) -> Option<Vec<LoadResult>> + Send + 'static,
) -> LoadTicket {
    let (giver, answer) = answer();
    let (at, count) = (at.to_vec(), at.len());
    spawn(Box::new(move |begins| match caught(|| load(&at, begins)) {
        Ok(Some(found)) => giver.give(found),
        Ok(None) => {}
        Err(message) => giver.give(panicked(&at, &message)),
    }));
    LoadTicket::new(answer, count)
}
