//! The handle of a host.

use std::sync::Arc;
use std::thread::JoinHandle;

use cg_minecraft::content::GAME;
use cg_registry::Name;
use cg_store::World;
use cg_store::prelude::Property;
use parking_lot::{Condvar, Mutex};

use super::pending::Pending;
use super::state::{HostMetrics, HostOptions, Inner, State};
use crate::binding::{Binding, Known};
use crate::codec;
use crate::column::Column;
use crate::error::Error;
use crate::place::ColumnAt;

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
    pub(super) thread: Mutex<Option<JoinHandle<()>>>,
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
            let property = Property::Named(Name::new(GAME).expect("a literal name"));
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

    /// As [`load`](Self::load), of what memory has. Only entities may still have to be read, a row for each.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn peek(&self, binding: &Arc<Binding>, at: ColumnAt) -> Result<Peeked, Error> {
        let is_known = |place| !matches!(self.world().peek(place), cg_store::Peek::NotLoaded);
        if !at.chunks()?.into_iter().all(is_known) {
            return Ok(Peeked::NotLoaded);
        }
        Ok(self.load(binding, at)?.map_or(Peeked::Absent, |column| Peeked::Here(Box::new(column))))
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
