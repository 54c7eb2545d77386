//! The handle of a host.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread::JoinHandle;

use cg_store::World;
use cg_store::prelude::CommitSeq;
use parking_lot::{Condvar, Mutex};

use super::group::{GROUP_BYTES, GROUP_LEN};
use super::pending::Pending;
use super::state::{HostMetrics, HostOptions, Inner, State, game_property};
use super::writes::Writes;
use crate::binding::{Binding, Known};
use crate::codec;
use crate::column::Column;
use crate::error::Error;
use crate::place::ColumnAt;

/// What a save did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// Something was committed, as this commit.
    Changed(CommitSeq),
    /// It was accepted, and is committed with its group.
    Accepted,
    /// The column is what was stored. Nothing was written.
    Unchanged,
}

/// The answer of [`Host::peek`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peeked {
    /// Memory has the column.
    Here(Box<Column>),
    /// No chunk of it is stored.
    Absent,
    /// Something would have to be read.
    NotLoaded,
}

/// A world as a server holds it. Usable from any thread.
///
/// Columns cross in the server's own numbers, through a [`Binding`]. What the server cannot say stays: see
/// [`save`](Self::save).
///
/// ```
/// use std::sync::Arc;
/// use cg_format::CellOrder;
/// use cg_host::{Cells, Column, ColumnAt, Form, Host, HostOptions, Known, KnownBlock, Section};
/// use cg_store::prelude::*;
///
/// let world = World::builder().in_memory()?;
/// let dimension = world.registry().register_dimension("game:overworld")?;
/// let host = Host::new(world, HostOptions::default())?;
/// let block = |name| Ok::<_, cg_registry::NameError>(KnownBlock {
///     name: Name::new(name)?, is_opaque: true, owns_block_entity: false,
/// });
/// let form = Form { order: CellOrder::Yzx, word_bits: 64, widths: 0 };
/// let known = Known {
///     blocks: vec![block("game:air")?, block("game:stone")?, block("game:unknown")?],
///     biomes: Vec::new(),
///     entities: Vec::new(),
///     placeholder: 2,
///     air: 0,
///     biome_placeholder: 0,
///     layer_count: 1,
///     form,
///     biome_side_log2: 2,
/// };
/// let binding = host.bind(known)?;
/// let at = ColumnAt { dimension, x: 0, z: 0, min_y: -4, max_y: 19 };
/// assert_eq!(host.load(&binding, at)?, None);
///
/// let mut column = Column::new(at);
/// let (layers, biomes) = (vec![Cells::uniform(1, form, 4)], None);
/// column.sections.push(Section { y: 0, layers, biomes, block_light: None, sky_light: None });
/// host.submit(&binding, column.clone(), false)?;
/// assert_eq!(host.load(&binding, at)?, Some(column));
/// host.close()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Host {
    pub(super) inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Host {
    /// Takes a world for a server.
    ///
    /// A world without a game becomes one of the options' game.
    ///
    /// # Errors
    /// [`Error::OtherGame`], and what the store says.
    pub fn new(world: World, options: HostOptions) -> Result<Self, Error> {
        if let Some(game) = &options.game {
            let property = game_property();
            match world.property(&property)? {
                Some(stored) if stored == game.as_bytes() => {}
                Some(stored) => {
                    let world = String::from_utf8_lossy(&stored).into_owned();
                    return Err(Error::OtherGame { world, host: game.clone() });
                }
                None => {
                    let named = world.transaction(|tx| {
                        tx.set_property(property.clone(), Some(game.as_bytes().to_vec()));
                        Ok::<_, cg_store::Error>(())
                    });
                    match named {
                        Err(error) if error.kind() == cg_store::ErrorKind::ReadOnly => {}
                        named => drop(named?),
                    }
                }
            }
        }
        let inner = Inner {
            world,
            options,
            committing: Mutex::new(()),
            state: Mutex::new(State::default()),
            wake: Condvar::new(),
        };
        Ok(Self { inner: Arc::new(inner), thread: Mutex::new(None) })
    }

    /// The world. What is written past the host is not compared with what the host has seen: call
    /// [`forget`](Self::forget) afterwards.
    pub fn world(&self) -> &World {
        &self.inner.world
    }

    /// Forgets what columns looked like when they were saved or loaded, and which were damaged. The next save of each compares
    /// it with what is stored.
    pub fn forget(&self) {
        let mut state = self.inner.state.lock();
        state.seen.forget_content();
        state.verdicts.clear();
    }

    /// Binds the host's numbers to the world's names. Registers those that the world does not have, in one commit.
    ///
    /// # Errors
    /// [`Error::Binding`], and what the store says.
    pub fn bind(&self, known: Known) -> Result<Arc<Binding>, Error> {
        Binding::new(self.world(), known).map(Arc::new)
    }

    /// What submitted columns are doing.
    pub fn metrics(&self) -> HostMetrics {
        let state = self.inner.state.lock();
        let held = state.taken.as_ref().filter(|_| state.held.is_some()).map_or(0, |batch| batch.len());
        let taken = state.taken.as_ref().map_or(0, |batch| batch.len());
        HostMetrics {
            pending: (state.open.len() + taken) as u64,
            pending_bytes: state.pending_bytes() as u64,
            held: held as u64,
            ..state.metrics
        }
    }

    /// Loads a column; `None` if no chunk of it is stored. Waits for reads of what memory does not have.
    ///
    /// # Errors
    /// Of kind [`Damaged`](cg_store::ErrorKind::Damaged) if something of it cannot be read; the verdict is remembered for 30
    /// seconds. What the store says.
    pub fn load(&self, binding: &Arc<Binding>, at: ColumnAt) -> Result<Option<Column>, Error> {
        let epoch = match self.inner.pending_column(binding, at)? {
            Pending::Column(mut column) => {
                self.inner.without_moved(&mut column);
                self.inner.state.lock().seen.also_shown(&column);
                return Ok(Some(*column));
            }
            Pending::Not { epoch } => epoch,
        };
        if let Some(verdict) = self.inner.state.lock().verdicts.find(&at) {
            return Err(verdict);
        }
        let loaded = codec::load(self.world(), binding, at, self.inner.options.on_damage);
        let mut state = self.inner.state.lock();
        match loaded {
            Ok(Some(mut column)) => {
                let count = column.entities.len();
                drop(state);
                self.inner.without_moved(&mut column);
                let mut state = self.inner.state.lock();
                // With an entity that waits elsewhere it is not what is stored.
                let epoch = if column.entities.len() == count { Some(epoch) } else { None };
                state.seen.loaded(binding, &column, epoch);
                Ok(Some(column))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                state.verdicts.remember(at, &error);
                Err(error)
            }
        }
    }

    /// As [`load`](Self::load), from memory alone. Of a column that was submitted and is not committed it says
    /// [`Peeked::NotLoaded`].
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn peek(&self, binding: &Arc<Binding>, at: ColumnAt) -> Result<Peeked, Error> {
        if self.inner.is_pending(&at) {
            return Ok(Peeked::NotLoaded);
        }
        let is_known = |place| !matches!(self.world().peek(place), cg_store::Peek::NotLoaded);
        if !at.chunks()?.into_iter().all(is_known) {
            return Ok(Peeked::NotLoaded);
        }
        // Its entities may still have to be read: a few rows.
        Ok(self.load(binding, at)?.map_or(Peeked::Absent, |column| Peeked::Here(Box::new(column))))
    }

    /// Saves a column in a commit of its own. `is_part`: sections that are not listed stay; otherwise they are deleted.
    ///
    /// - Components of cells whose block did not change stay, also those that the host does not know.
    /// - Where a cell has the placeholder and the stored block is one that the host does not know, the stored block stays,
    ///   with everything in it.
    /// - An entity is deleted if the host was shown it in this column, and the column no longer has it. One that the host was
    ///   not shown stays.
    ///
    /// # Errors
    /// [`Error::Column`]; of kind [`Damaged`](cg_store::ErrorKind::Damaged) if a stored chunk of it cannot be read: it is never
    /// overwritten. What the store says.
    pub fn save(&self, binding: &Arc<Binding>, column: Column, is_part: bool) -> Result<Saved, Error> {
        self.inner.check_writable()?;
        let mut writes = Writes::new();
        writes.column(binding, column, is_part)?;
        self.commit(&mut writes, None)
    }

    /// Accepts a column: every load sees it from now on, and it is committed together with what is submitted within the
    /// [group](HostOptions::group).
    ///
    /// While the world takes no commits, because the disk is full for example, it is held in memory, and the world is resumed
    /// every five seconds. At the safe durabilities this is [`save`](Self::save).
    ///
    /// # Errors
    /// [`Error::Column`], [`Error::TooLarge`] and [`Error::Held`]. The column was not accepted then.
    pub fn submit(&self, binding: &Arc<Binding>, column: Column, is_part: bool) -> Result<Saved, Error> {
        self.inner.check_writable()?;
        let mut writes = Writes::new();
        writes.column(binding, column, is_part)?;
        self.submit_writes(writes)
    }

    /// Ends the group, and waits until all that was accepted is on the disk.
    ///
    /// # Errors
    /// Why the world takes no commits; what the store says. The first error of something that was accepted since the last flush
    /// and that the world refused for good; all others are on the disk then.
    pub fn flush(&self) -> Result<(), Error> {
        self.inner.commit_group()?;
        self.world().flush()?;
        self.inner.state.lock().refused.take().map_or(Ok(()), Err)
    }

    /// Makes the world writable again, and commits what is held.
    ///
    /// # Errors
    /// As [`World::resume`], and as [`flush`](Self::flush).
    pub fn resume(&self) -> Result<(), Error> {
        self.world().resume()?;
        self.inner.commit_group()
    }

    /// Commits all that was accepted, syncs, and closes the world. Calls after it fail.
    ///
    /// # Errors
    /// Why something could not be written; it is lost when the process ends. The world is closed all the same.
    pub fn close(&self) -> Result<(), Error> {
        // What is submitted from here on is refused, so nothing comes after the last group.
        self.inner.state.lock().is_closed = true;
        let committed = self.inner.commit_group();
        self.inner.wake.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // The thread has no panic of its own to pass on: it catches those of commits.
            let _ended = thread.join();
        }
        let closed = self.world().close();
        committed?;
        closed?;
        self.inner.state.lock().refused.take().map_or(Ok(()), Err)
    }

    /// Accepts a list of writes into the group, as [`submit`](Self::submit) accepts a column.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a list with expectations; [`Error::TooLarge`]; [`Error::Held`].
    pub fn submit_writes(&self, mut writes: Writes) -> Result<Saved, Error> {
        self.accept(&mut writes)
    }

    /// As [`submit_writes`](Self::submit_writes), and empties the list.
    ///
    /// # Errors
    /// As [`submit_writes`](Self::submit_writes). The list keeps its writes.
    pub fn accept(&self, writes: &mut Writes) -> Result<Saved, Error> {
        if !(writes.chunks.is_empty() && writes.entities.is_empty()) {
            let text = "a list of writes that expects versions cannot be submitted: commit it";
            return Err(Error::Invalid(text.into()));
        }
        if writes.is_of_chunks() {
            let text = "chunks, their entities and components of entities cannot be submitted: commit them";
            return Err(Error::Invalid(text.into()));
        }
        self.inner.check_writable()?;
        self.inner.check_sizes(writes)?;
        if self.inner.options.durability.is_synced() {
            return self.commit(writes, None);
        }
        self.start_thread()?;
        let mut state = self.inner.state.lock();
        if state.is_closed {
            return Err(Error::Closed("the world"));
        }
        if state.is_unchanged(writes) {
            *writes = Writes::new();
            return Ok(Saved::Unchanged);
        }
        if let Some(verdict) = state.verdict(writes) {
            return Err(verdict);
        }
        if state.pending_bytes() + writes.memory_bytes() > self.inner.options.held_bytes {
            // Nothing comes in faster than the world takes it.
            drop(state);
            let committed = self.inner.commit_group();
            state = self.inner.state.lock();
            let held_bytes = state.pending_bytes();
            if held_bytes > 0 && held_bytes + writes.memory_bytes() > self.inner.options.held_bytes {
                let full = Error::QueueFull { capacity: self.inner.options.held_bytes };
                let cause = state.held.clone().or_else(|| committed.err().map(Arc::new));
                return Err(cause.map_or(full, |cause| Error::Held { held_bytes, cause }));
            }
            if state.is_closed {
                return Err(Error::Closed("the world"));
            }
        }
        state.recall(writes);
        let epoch = state.seen.epoch();
        state.note(writes, epoch);
        state.open.push(std::mem::take(writes));
        let is_full = state.open.len() >= GROUP_LEN || state.open.memory_bytes() >= GROUP_BYTES;
        if state.open.len() == 1 || is_full {
            self.inner.wake.notify_all();
        }
        Ok(Saved::Accepted)
    }

    /// Commits a list of writes, and empties it. `durability`: of this commit, or that of the world.
    ///
    /// # Errors
    /// [`Error::Expected`]; what the store says. Nothing was written then, and the list keeps its writes.
    pub fn commit(
        &self,
        writes: &mut Writes,
        durability: Option<cg_store::Durability>,
    ) -> Result<Saved, Error> {
        self.inner.check_writable()?;
        self.inner.check_sizes(writes)?;
        // What was accepted before comes before it.
        self.inner.commit_group()?;
        let _committing = self.inner.committing.lock();
        let epoch = {
            let mut state = self.inner.state.lock();
            if state.is_closed {
                return Err(Error::Closed("the world"));
            }
            if state.is_unchanged(writes) || writes.is_empty() {
                *writes = Writes::new();
                drop(state);
                self.inner.reach(durability)?;
                return Ok(Saved::Unchanged);
            }
            state.recall(writes);
            state.seen.epoch()
        };
        let done = match self.inner.run(&[&*writes], &BTreeSet::new(), durability) {
            Ok(done) => done,
            Err(refusal) => {
                // It may be stored all the same, if it is in doubt.
                self.inner.state.lock().forget(writes);
                return Err(refusal.error);
            }
        };
        let mut state = self.inner.state.lock();
        state.note(writes, epoch);
        state.metrics.unchanged += u64::from(!done.changed);
        *writes = Writes::new();
        drop(state);
        if done.changed {
            return Ok(Saved::Changed(done.seq));
        }
        self.inner.reach(durability)?;
        Ok(Saved::Unchanged)
    }

    fn start_thread(&self) -> Result<(), Error> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let inner = Arc::clone(&self.inner);
            let builder = std::thread::Builder::new().name("cg-host-group".into());
            let started = builder.spawn(move || inner.commit_groups());
            *thread = Some(started.map_err(|error| Error::Thread(Arc::new(error)))?);
        }
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Err(error) = self.close()
            && error.kind() != cg_store::ErrorKind::Closed
        {
            tracing::error!(%error, "a world was dropped, and not all that was submitted is stored");
        }
    }
}
