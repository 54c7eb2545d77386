//! A world as a server holds it: columns in its own numbers, groups of saves, and what the disk does not take yet.

mod batch;
mod damage;
mod group;
mod reads;
mod seen;
mod writes;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use cg_store::World;
use cg_store::prelude::{CommitSeq, Durability, Property};
use parking_lot::{Condvar, Mutex};

use crate::binding::{Binding, Known};
use crate::column::load;
use crate::column::{Column, ColumnAt};
use crate::error::Error;
use batch::Batch;
use damage::Verdicts;
use seen::Seen;

pub use writes::Writes;

/// The property that says of which game a world is.
pub const GAME: &str = "cherrygrove:game";

/// The answer to a damaged chunk in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnDamage {
    /// The column is not loaded.
    #[default]
    Refuse,
    /// The other sections are loaded; a damaged one shows the placeholder, and is never written.
    Partial,
}

/// How a host uses a world.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The game whose names the host uses: `java`, `bedrock` or a word of the host. A world is of one game. `None`: any.
    pub game: Option<String>,
    /// How long submitted columns are collected for one commit. Default 50 ms.
    pub group: Duration,
    /// Memory for what was submitted and the world does not take. Default 256 MiB.
    pub held_bytes: usize,
    /// What a load does if a chunk is damaged.
    pub on_damage: OnDamage,
    /// The durability that the world was opened with: at the safe levels a submitted column is saved at once.
    pub durability: Durability,
}

impl Default for HostOptions {
    fn default() -> Self {
        Self {
            game: None,
            group: Duration::from_millis(50),
            held_bytes: 256 << 20,
            on_damage: OnDamage::Refuse,
            durability: Durability::Balanced,
        }
    }
}

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

/// What submitted columns are doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostMetrics {
    /// Columns and lists of writes that are accepted and not committed.
    pub pending: u64,
    /// Their memory.
    pub pending_bytes: u64,
    /// The same, of those that the world refused to take for now.
    pub held: u64,
    /// Saves that equal what was stored.
    pub unchanged: u64,
    /// Groups that were committed.
    pub groups: u64,
    /// Columns of groups that the world refused for good. Each is in the log.
    pub refused: u64,
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
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What the thread of groups shares with the handle.
#[derive(Debug)]
struct Inner {
    world: World,
    options: HostOptions,
    /// Serialises commits of groups, so that they are in the order of acceptance.
    committing: Mutex<()>,
    state: Mutex<State>,
    /// Wakes the thread of groups.
    wake: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// What is collected.
    open: Batch,
    /// What is committed now, or is held because the world refused it for now.
    taken: Option<Arc<Batch>>,
    /// Why the last commit of a group failed, if the world may take it later.
    held: Option<Arc<Error>>,
    seen: Seen,
    verdicts: Verdicts,
    is_closed: bool,
    metrics: HostMetrics,
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

    /// Forgets what columns looked like when they were saved or loaded, so that the next save of each compares it with what is
    /// stored.
    pub fn forget(&self) {
        self.inner.state.lock().seen.forget_content();
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
        let taken = state.taken.as_ref().map_or((0, 0), |batch| (batch.len(), batch.memory_bytes()));
        HostMetrics {
            pending: (state.open.len() + taken.0) as u64,
            pending_bytes: (state.open.memory_bytes() + taken.1) as u64,
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
            Ok(pending) => return Ok(Some(pending)),
            Err(epoch) => epoch,
        };
        if let Some(verdict) = self.inner.state.lock().verdicts.find(&at) {
            return Err(verdict);
        }
        let loaded = load::load(self.world(), binding, at, self.inner.options.on_damage);
        let mut state = self.inner.state.lock();
        match loaded {
            Ok(Some(column)) => {
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

    /// As [`load`](Self::load), from memory alone.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn peek(&self, binding: &Arc<Binding>, at: ColumnAt) -> Result<Peeked, Error> {
        if let Ok(pending) = self.inner.pending_column(binding, at)? {
            return Ok(Peeked::Here(Box::new(pending)));
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
        let mut writes = Writes::new();
        writes.column(binding, column, is_part)?;
        self.submit_writes(writes)
    }

    /// Ends the group, and waits until all that was accepted is on the disk.
    ///
    /// # Errors
    /// Why the world takes no commits; what the store says.
    pub fn flush(&self) -> Result<(), Error> {
        self.inner.commit_group()?;
        Ok(self.world().flush()?)
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
        let committed = self.inner.commit_group();
        self.inner.state.lock().is_closed = true;
        self.inner.wake.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // The thread has no panic of its own to pass on: it catches those of commits.
            let _ended = thread.join();
        }
        let closed = self.world().close();
        committed?;
        Ok(closed?)
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

/// The property that says of which game a world is.
pub(crate) fn game_property() -> Property {
    Property::Named(cg_registry::Name::new(GAME).expect("a literal name"))
}
