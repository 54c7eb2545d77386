//! A segmented world.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, ChunkSource as _, EntityId};
use cg_registry::{Catalog, PackManifest, Registration};
use cg_store::error::ConflictKey;
use cg_store::layer::{Base as _, adopt_names};
use cg_store::tiers::TickReport;
use cg_store::{Error, Property, World};
use cg_tiering::{GameTick, PlayerAt};

#[cfg(feature = "rocks")]
use super::disk::OnDisk;
use super::error::SegmentError;
use super::home::{InMemory, SegmentHome};
use super::options::SegmentOptions;
use super::parts::Parts;
use super::pos::SegmentPos;
use super::rows::check_side;
#[cfg(feature = "rocks")]
use super::rows::side_property;
use super::segments::Segments;

/// One world in segments. Cheap to clone; every clone is the same world.
///
/// ```
/// use cg_store::prelude::*;
/// use cg_layers::{SegmentOptions, SegmentedWorld};
/// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
/// let names = world.register(&Registration {
///     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
///     dimensions: vec![Name::new("game:overworld")?],
///     ..Registration::default()
/// })?;
/// let stone = names.block_id("game:stone").expect("just registered");
/// let overworld = names.dimension("game:overworld").expect("just registered");
/// let at = ChunkAt::new(overworld, ChunkPos::new(100, 0, -100)?);
/// world.transaction(at, |tx| {
///     let chunk = Chunk::filled(stone, &tx.catalog().current_schema())?;
///     tx.save(at, chunk);
///     Ok::<_, Box<dyn std::error::Error>>(())
/// })?;
/// assert!(world.load(at)?.is_some());
/// assert_eq!(world.segment_of(at).to_string(), "segment 3 0 -4 of dimension 0");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SegmentedWorld<H: SegmentHome> {
    pub(super) parts: Arc<Parts<H>>,
}

impl SegmentedWorld<InMemory> {
    /// Creates a segmented world in memory.
    ///
    /// # Errors
    /// [`SegmentError::Side`], and as
    /// [`WorldBuilder::in_memory`](cg_store::WorldBuilder::in_memory).
    pub fn in_memory(packs: &[PackManifest], options: &SegmentOptions) -> Result<Self, Error> {
        check_side(options.side_chunks)?;
        let root = InMemory::root(packs, &options.world)?;
        Self::begin(InMemory::default(), root, Some(options.side_chunks), options)
    }
}

#[cfg(feature = "rocks")]
impl SegmentedWorld<OnDisk> {
    /// Creates a segmented world in an empty or missing directory.
    ///
    /// # Errors
    /// [`SegmentError::Side`], and as
    /// [`WorldBuilder::create`](cg_store::WorldBuilder::create).
    pub fn create(
        dir: impl AsRef<std::path::Path>,
        packs: &[PackManifest],
        options: &SegmentOptions,
    ) -> Result<Self, Error> {
        check_side(options.side_chunks)?;
        cg_store::layer::claim(dir.as_ref())?;
        let home = OnDisk::new(dir.as_ref());
        let root = World::builder().packs(packs).options(&options.world).create(home.root_dir())?;
        cg_store::layer::sync_parent(dir.as_ref())?;
        Self::begin(home, root, Some(options.side_chunks), options)
    }

    /// Opens a segmented world, and finishes the transfers and deletions that a crash interrupted. An interrupted
    /// merge continues when it is called again.
    ///
    /// # Errors
    /// [`SegmentError::NotSegmented`],
    /// [`SegmentError::DamagedRoot`],
    /// [`SegmentError::UnfinishedMerge`], and as
    /// [`WorldBuilder::open`](cg_store::WorldBuilder::open). Segments without unfinished work are not read before they
    /// are needed.
    pub fn open(
        dir: impl AsRef<std::path::Path>,
        packs: &[PackManifest],
        options: &SegmentOptions,
    ) -> Result<Self, Error> {
        let home = OnDisk::new(dir.as_ref());
        if !home.root_dir().is_dir() {
            let why = "it has no directory `root`";
            return Err(SegmentError::NotSegmented { path: dir.as_ref().into(), why }.into());
        }
        let root = World::builder().packs(packs).options(&options.world).open(home.root_dir())?;
        if root.property(&side_property()?)?.is_none() {
            let why = "its root says nothing of segments";
            return Err(SegmentError::NotSegmented { path: dir.as_ref().into(), why }.into());
        }
        Self::begin(home, root, None, options)
    }
}

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Begins with a root, which is new if there is a `new_side`. For tests and for the other constructors.
    #[doc(hidden)]
    pub fn begin(
        home: H,
        root: World,
        new_side: Option<u32>,
        options: &SegmentOptions,
    ) -> Result<Self, Error> {
        Ok(Self { parts: Arc::new(Parts::begin(home, root, new_side, options)?) })
    }

    /// The world that owns the names, and has the world's own [properties](cg_store::Property). Other properties, objects
    /// and records that are of no segment can be put into it; a key that a segment has must not be.
    pub fn root(&self) -> &World {
        self.parts.root.world()
    }

    /// The side of a segment in chunks.
    pub fn side_chunks(&self) -> u32 {
        self.parts.root.side_chunks()
    }

    /// The segment of a chunk, whether or not it is stored.
    pub fn segment_of(&self, at: ChunkAt) -> SegmentPos {
        self.parts.root.segment_of(at)
    }

    /// The segments: those that are stored, each as a world, and what is done with a whole one.
    pub fn segments(&self) -> Segments<'_, H> {
        Segments::of(&self.parts)
    }

    /// The names of all segments.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.root().catalog()
    }

    /// Issues ids for names, in the root first and then in every open segment. A closed segment gets them when it is
    /// opened.
    ///
    /// Unlike [`WorldRegistry::register`](cg_store::WorldRegistry::register) this waits for the disk, because the root
    /// and the segments are synced separately.
    ///
    /// # Errors
    /// As [`WorldRegistry::register`](cg_store::WorldRegistry::register).
    pub fn register(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        let adopt = |names: &_| self.parts.open.for_each_open(|world| adopt_names(world, names));
        self.parts.root.register(new, adopt)
    }

    /// A chunk, or `None` if it is not stored. Opens its segment if there is one.
    ///
    /// # Errors
    /// As [`World::load`]; [`SegmentError`](crate::SegmentError) if the segment does not match the root.
    pub fn load(&self, at: ChunkAt) -> Result<Option<Arc<Chunk>>, Error> {
        Ok(self.lookup(at)?.here())
    }

    /// Many chunks, one result per position in the order asked. Those of one segment are read in one call.
    pub fn load_many(&self, at: &[ChunkAt]) -> Vec<Result<Option<Arc<Chunk>>, Error>> {
        self.lookup_many(at).into_iter().map(|found| Ok(found?.here())).collect()
    }

    /// An entity, or `None` if no segment contains it. One key read in the root and one in the segment.
    ///
    /// # Errors
    /// As [`World::entity`], and as [`load`](Self::load).
    pub fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        Ok(self.parts.at_rest(&ConflictKey::Entity(id), |world| world.entity(id))?.flatten())
    }

    /// A property, or `None` if it was never set. One key read in the root and one in the segment that has it; two in the
    /// root if none has. The world's own are the root's.
    ///
    /// # Errors
    /// As [`World::property`], and as [`load`](Self::load).
    pub fn property(&self, property: &Property) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.find_property(property)?.here().map(|(bytes, _)| bytes))
    }

    /// Transfers entities to the chunks that own them now, within a segment or to another one. Each arrives as it is
    /// given here, and is gone from where it was. All of one call are transferred together. If an entity is given
    /// twice, the later one counts.
    ///
    /// After any crash an entity is in exactly one place. Readers of chunks may see a reference in both for a moment;
    /// readers of entities wait. Costs two commits in the root and one in each segment that is left or entered. They
    /// are synced, unless the world's durability is [`Process`](cg_store::Durability::Process) or
    /// [`Fast`](cg_store::Durability::Fast):
    /// then this holds for a killed process and not for a power cut. If all stay in one segment it costs a transaction
    /// there.
    ///
    /// # Errors
    /// [`SegmentError::NoOwner`],
    /// [`SegmentError::NoEntity`] and [`Error::OwnerAbsent`], after which nothing was
    /// changed; the errors of the segments' transactions. After a failure of the storage, the transfer is finished as
    /// soon as the storage can be written again, at the latest when the world is opened. Until then its entities are
    /// [`SegmentError::InTransit`], and the next transfer fails as this one did. If the
    /// row of an entity in transit is damaged, its reads return the damage until it is
    /// [quarantined](cg_store::quarantine::Quarantine::entity). Other transfers do not wait for it. [`Error::Nested`]
    /// inside a closure of [`transaction`](Self::transaction) or [`Segments::with`].
    pub fn transfer_entities(
        &self,
        entities: impl IntoIterator<Item = (EntityId, Entity)>,
    ) -> Result<(), Error> {
        self.parts.open.refuse_inside()?;
        let entities: BTreeMap<_, _> = entities.into_iter().collect();
        let mut waits = self.parts.submissions.apply_each();
        let _alone = self.parts.borders.moving().lock();
        self.parts.transfers.resolve()?;
        let entered: Vec<_> = entities.values().filter_map(|entity| self.segment_of_owner(entity)).collect();
        let left = entities.keys().map(|id| self.parts.root.segment_with(&ConflictKey::Entity(*id)));
        for segment in entered.into_iter().map(|segment| Ok(Some(segment))).chain(left.collect::<Vec<_>>()) {
            // What waits for other segments does not matter.
            if let Some(error) = segment?.and_then(|segment| waits.remove(&segment)) {
                return Err(error);
            }
        }
        let transferred = self.parts.transfers.transfer(entities);
        match (transferred, waits.into_values().next()) {
            // It may be put by what waits.
            (Err(error), Some(why)) if matches!(error.layer(), Some(SegmentError::NoEntity { .. })) => {
                Err(why)
            }
            (transferred, _) => transferred,
        }
    }

    fn segment_of_owner(&self, entity: &Entity) -> Option<SegmentPos> {
        if let Owner::Chunk(at) = entity.owner { Some(self.segment_of(at)) } else { None }
    }

    /// Tells the world the time and the positions of all players, and works for about as long as the budget: see
    /// [`World::tick`]. The report is the sum over the segments.
    ///
    /// Every open segment is told the time and the players, whatever the budget. So a player at a border keeps the
    /// chunks on both sides hot. Then segments work, one after the other: each gets an equal part of the time that is
    /// left, at least a quarter of the budget. If the budget ends before all had their turn, the next tick continues
    /// there, so each of hundreds gets its turn. Segments whose part was too short share what is left of the budget.
    ///
    /// With [`WorldOptions::prefetch`](cg_store::WorldOptions::prefetch), the stored segments that players will reach are
    /// opened in the background, somewhat before their chunks are wanted; then they prefetch too. At most
    /// [`max_open`](crate::SegmentOptions::max_open) are open for that: the least recently used segment is closed for one,
    /// but none near a player, none that a player will reach, none in use and none with a pinned area. If there is no room,
    /// nothing is opened until the player has gone on. Nothing is created.
    ///
    /// Otherwise no segment is opened, and none is kept open. A segment that is closed, by a lack of room or with the world,
    /// stores when its chunks were last accessed. When it is opened next it learns the time first, and the next ticks move
    /// what was left alone meanwhile. What is never opened stays as it is on the disk.
    ///
    /// Exceeds the budget as `World::tick` does, by the work of one 4³ cube or one chunk at most, and by what it takes to
    /// tell the open segments: a distance for each player and each segment of its dimension, and what `World::tick` does
    /// with the players near that segment.
    /// Writes the root's clock once in a minute of game time. Waits for another tick of this world, and for nothing that
    /// is done with one segment: a segment that is opened, closed or deleted meanwhile, or in which
    /// [`demote_all`](cg_store::tiers::Tiers::demote_all) runs, loses its turn. Then [work is left](TickReport::work_left).
    ///
    /// A time before that of the last tick counts as that one. To set the clock back, call
    /// [`set_clock`](cg_store::tiers::Tiers::set_clock) for the [root](Self::root) and, by [`Segments::with`], for every
    /// segment.
    ///
    /// # Errors
    /// [`Error::Closed`], and as `World::tick`. A segment that fails does not stop the others: the error comes after their
    /// turns, and the next tick reports what they did.
    ///
    /// ```
    /// use std::time::Duration;
    /// use cg_store::prelude::*;
    /// use cg_layers::{SegmentOptions, SegmentedWorld};
    /// let world = SegmentedWorld::in_memory(&[], &SegmentOptions::default())?;
    /// let names = world.register(&Registration {
    ///     blocks: vec![BlockOffer::new(Name::new("game:stone")?)],
    ///     dimensions: vec![Name::new("game:overworld")?],
    ///     ..Registration::default()
    /// })?;
    /// let stone = names.block_id("game:stone").expect("just registered");
    /// let overworld = names.dimension("game:overworld").expect("just registered");
    /// let at = ChunkAt::new(overworld, ChunkPos::new(0, 0, 0)?);
    /// world.transaction(at, |tx| {
    ///     tx.save(at, tx.new_chunk(stone)?);
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })?;
    /// // No player comes for ten minutes of 20 ticks a second.
    /// let mut cooled = 0;
    /// for minute in 1..=10 {
    ///     let now = GameTick::new(minute * 60 * 20);
    ///     cooled += world.tick(now, &[], Duration::from_millis(500))?.moves.cooled;
    /// }
    /// assert_eq!(cooled, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tick(&self, now: GameTick, players: &[PlayerAt], budget: Duration) -> Result<TickReport, Error> {
        self.parts.submissions.try_again();
        self.parts.ticks.tick(now, players, budget)
    }

    /// Waits until everything that was committed or submitted survives a power cut.
    ///
    /// # Errors
    /// As [`World::flush`]; why a segment does not take what was submitted to it. The other segments are flushed.
    pub fn flush(&self) -> Result<(), Error> {
        let parts = &*self.parts;
        let applied = parts.submissions.apply_all();
        // All of them do their work before anything is reported.
        let mut flushed = parts.open.flush(self.root());
        parts.open.for_each_open(|world| {
            let other = parts.open.flush(world);
            flushed = std::mem::replace(&mut flushed, Ok(())).and(other);
            Ok(())
        })?;
        flushed?;
        parts.borders.forget_left(usize::MAX);
        applied.and_then(|()| parts.open.check_refusals())
    }

    /// Closes every segment and then the root. Later calls on any handle fail with [`Error::Closed`].
    ///
    /// # Errors
    /// The first error of closing any of them. All are closed. [`Error::Nested`] inside a closure of
    /// [`transaction`](Self::transaction), of [`Segments::with`] or of a walk, whose segment stays open as long as it runs;
    /// nothing is closed then.
    pub fn close(&self) -> Result<(), Error> {
        self.parts.open.refuse_inside()?;
        let applied = self.parts.submissions.close();
        let closed = self.parts.open.close();
        let refused = self.parts.open.check_refusals();
        let root = self.root().close();
        applied.and(closed).and(refused).and(root)
    }
}

impl<H: SegmentHome> Clone for SegmentedWorld<H> {
    fn clone(&self) -> Self {
        Self { parts: Arc::clone(&self.parts) }
    }
}

impl<H: SegmentHome> fmt::Debug for SegmentedWorld<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SegmentedWorld")
            .field("root", self.root())
            .field("side_chunks", &self.side_chunks())
            .finish_non_exhaustive()
    }
}
