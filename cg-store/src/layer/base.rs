//! The interface that an overlay needs of the layer below it: chunks, entities, properties, objects and records with
//! where they come from, names, and an identity.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::lineage::HistoryPoint;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, ChunkSource, EntityId, Lookup, RecordId};
use cg_registry::{Catalog, Name, UpgradeFunctions};

use super::sync_to;
use crate::api::world::World;
use crate::engine::Level;
use crate::kinds::object::{ObjectPage, StoredObject};
use crate::kinds::property::Property;
use crate::kinds::record::RecordQuery;
use crate::read::cache::Stored;
use crate::storage::error::Error;
use crate::storage::meta::Identity;
use crate::storage::object_key::ObjectKey;
use crate::storage::record_shape::RecordShape;

/// A chunk or an entity with where it came from.
pub type Found<T> = Lookup<(T, Origin)>;

/// A layer that an overlay can lie over. It is read and never written, and handles to it are cheap to clone.
///
/// Implemented by [`World`]; in `cg-layers` by `Overlay` and `SegmentedWorld`.
pub trait Base: ChunkSource<Error = Error> + Clone + Send + Sync + 'static {
    /// Which layer it is.
    fn identity(&self) -> Identity;

    /// How many overlays it consists of; 0 for a world.
    fn layers(&self) -> u32;

    /// Its names.
    fn catalog(&self) -> Arc<Catalog>;

    /// The host's functions that carry old components.
    fn upgrades(&self) -> Arc<UpgradeFunctions>;

    /// A chunk and its origin, at the cost of [`ChunkSource::lookup`].
    ///
    /// # Errors
    /// As [`ChunkSource::lookup`].
    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error>;

    /// A chunk and its origin, if memory has it; `None` if memory does not say. Never waits for the disk.
    fn peek_chunk(&self, at: ChunkAt) -> Option<Found<Arc<Chunk>>> {
        let _ = at;
        None
    }

    /// Writes what was submitted to the layer and those below it before, as its reads do. A layer whose reads find no old
    /// content while something waits needs none.
    ///
    /// # Errors
    /// Why it still waits.
    fn apply_submitted(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Runs something after what was submitted to the layer and those below it before is written, or tells it why that
    /// still waits. That is on this thread, or on another if the layer is changed meanwhile: this waits for no closure of
    /// a host.
    fn when_applied(&self, job: Box<dyn FnOnce(Result<(), Error>) + Send>) {
        job(Ok(()));
    }

    /// Runs something in the background.
    fn spawn(&self, job: Box<dyn FnOnce() + Send>);

    /// Whether the origin of a chunk is certainly of this layer's history, so that what the layer has now was made of it.
    /// Not so where the layer was put back from a copy. Reads no row, but may open the world of a segment.
    ///
    /// # Errors
    /// If that fails.
    fn has_origin(&self, at: ChunkAt, origin: Origin) -> Result<bool, Error>;

    /// Many chunks, one result per position in the order asked; a damaged one fails alone.
    fn find_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Found<Arc<Chunk>>, Error>> {
        at.iter().map(|at| self.find_chunk(*at)).collect()
    }

    /// An entity and its origin. One key read for each layer.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error>;

    /// A property and its origin. One key read for each layer.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    fn find_property(&self, property: &Property) -> Result<Found<Vec<u8>>, Error>;

    /// The named properties that begin with a text. Reads their rows in each layer.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first that is damaged.
    fn named_properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error>;

    /// The stored state of an object, of a deleted one too, and its origin. One key read for each layer.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    fn find_object(&self, key: &ObjectKey) -> Result<Found<StoredObject>, Error>;

    /// A part of the objects whose keys begin with a prefix, as [`Objects::list`](crate::objects::Objects::list).
    ///
    /// # Errors
    /// As [`Objects::list`](crate::objects::Objects::list).
    fn list_objects(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error>;

    /// A spatial record and its origin. Two key reads for each layer.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    fn find_record(&self, id: RecordId) -> Result<Found<Arc<Record>>, Error>;

    /// The shape of its tree of records.
    fn record_shape(&self) -> RecordShape;

    /// The records that a query asks for, as [`Records::in_leaves`](crate::records::Records::in_leaves).
    ///
    /// # Errors
    /// As [`Records::in_leaves`](crate::records::Records::in_leaves).
    fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error>;

    /// Makes everything that was found so far as durable as a level says: written, and synced for [`Level::Power`]. What an
    /// overlay remembers of its base must not be lost before the overlay's own row: another commit would get its number.
    ///
    /// Costs the writing of what is queued, and a sync if something is not synced.
    ///
    /// # Errors
    /// If writing or syncing fails.
    fn keep_found(&self, level: Level) -> Result<(), Error>;
}

/// A value that a world has, with the commit that wrote it.
fn found<T>(world: &World, stored: Option<(T, u64)>) -> Found<T> {
    match stored {
        Some((value, version)) => Lookup::Found((value, origin(world, version))),
        None => Lookup::NotFound,
    }
}

/// A chunk that a world has, with the commit that wrote it.
fn with_origin(world: &World, stored: Lookup<Stored>) -> Found<Arc<Chunk>> {
    stored.map(|stored| (stored.chunk, origin(world, stored.version)))
}

fn origin(world: &World, version: u64) -> Origin {
    Origin { layer: 0, version, opening: world.rooms().shared.lineage().opening_of(version) }
}

/// The origin of what was found, which a later look can be compared with.
pub fn origin_of<T>(found: &Found<T>) -> Origin {
    match found {
        Lookup::Found((_, origin)) => *origin,
        Lookup::Tombstone | Lookup::NotFound => Origin::ABSENT,
    }
}

/// An object as it was found; one that was deleted counts on, and is no origin that a later look could be compared with: its
/// deletion may be forgotten at any time.
pub fn without_deletion(found: Found<StoredObject>) -> Found<StoredObject> {
    found.map(|(object, origin)| {
        let origin = if object.bytes.is_some() { origin } else { Origin::ABSENT };
        (object, origin)
    })
}

impl Base for World {
    fn identity(&self) -> Identity {
        Self::identity(self)
    }

    fn layers(&self) -> u32 {
        0
    }

    fn catalog(&self) -> Arc<Catalog> {
        Self::catalog(self)
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        Arc::clone(&self.rooms().shared.options.upgrades)
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        let stored = self.applied_for(&[at])?.read.stored(at)?;
        Ok(with_origin(self, stored))
    }

    fn peek_chunk(&self, at: ChunkAt) -> Option<Found<Arc<Chunk>>> {
        Some(with_origin(self, self.peek_stored(at)?))
    }

    fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
        self.rooms().shared.pool.spawn(job);
    }

    fn has_origin(&self, _: ChunkAt, origin: Origin) -> Result<bool, Error> {
        let point = HistoryPoint { opening: origin.opening, commit: origin.version };
        Ok(origin.layer == 0 && self.rooms().shared.lineage().has(point))
    }

    fn find_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Found<Arc<Chunk>>, Error>> {
        let stored = self.rooms().commit.stored_many_applied(at);
        stored.into_iter().map(|stored| stored.map(|stored| with_origin(self, stored))).collect()
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        Ok(found(self, self.applied()?.read.found_entity(id)?))
    }

    fn find_property(&self, property: &Property) -> Result<Found<Vec<u8>>, Error> {
        Ok(found(self, self.applied()?.read.found_property(property)?))
    }

    fn named_properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        let mut all = BTreeMap::new();
        let failed = self.read_view(|view| {
            view.for_each_property(prefix, |property| {
                let add = || -> Result<(), Error> {
                    let (name, bytes) = property?;
                    all.insert(Name::new(name)?, bytes.to_vec());
                    Ok(())
                };
                match add() {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(error) => ControlFlow::Break(error),
                }
            })
        })?;
        failed.map_or(Ok(all), Err)
    }

    fn find_object(&self, key: &ObjectKey) -> Result<Found<StoredObject>, Error> {
        Ok(without_deletion(found(self, self.applied()?.read.found_object(key)?)))
    }

    fn list_objects(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        self.objects().list(prefix, position, max_count)
    }

    fn find_record(&self, id: RecordId) -> Result<Found<Arc<Record>>, Error> {
        Ok(found(self, self.applied()?.read.found_record(id)?))
    }

    fn record_shape(&self) -> RecordShape {
        self.rooms().shared.record_shape
    }

    fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.records().in_leaves(query)
    }

    fn keep_found(&self, level: Level) -> Result<(), Error> {
        match level {
            Level::Power => sync_to(self, self.last_commit()),
            Level::Process => self.applied()?.commit.drain(),
        }
    }
}
