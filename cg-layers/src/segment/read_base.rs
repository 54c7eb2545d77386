//! A segmented world that is only read, as the base of arenas that are verified.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, ChunkSource, EntityId, Lookup, RecordId, SchemaView};
use cg_registry::{Catalog, Name, UpgradeFunctions};
use cg_store::engine::Level;
use cg_store::layer::{Base, Found, Identity};
use cg_store::objects::{ObjectKey, ObjectPage, StoredObject};
use cg_store::records::{RecordQuery, RecordShape};
use cg_store::{Error, Property, World};

use super::closed::ClosedWorld;
use super::origin::of_life;
use super::pos::SegmentPos;

/// The worlds of a segmented world that no process has open. A segment is opened when a chunk of it is read.
#[derive(Clone)]
pub(super) struct ReadBase(Arc<Worlds>);

struct Worlds {
    closed: ClosedWorld,
    segments: BTreeMap<SegmentPos, OnceLock<World>>,
}

impl ReadBase {
    pub(super) fn new(closed: ClosedWorld) -> Self {
        let segments = closed.segments().into_iter().map(|segment| (segment, OnceLock::new())).collect();
        Self(Arc::new(Worlds { closed, segments }))
    }

    fn root(&self) -> &World {
        self.0.closed.root()
    }

    fn segment_of(&self, at: ChunkAt) -> Result<Option<&World>, Error> {
        let segment = SegmentPos::of(at, self.0.closed.side_chunks());
        let Some(opened) = self.0.segments.get(&segment) else { return Ok(None) };
        if let Some(world) = opened.get() {
            return Ok(Some(world));
        }
        let world = self.0.closed.segment(segment)?;
        Ok(Some(opened.get_or_init(|| world)))
    }
}

impl ChunkSource for ReadBase {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        Ok(self.find_chunk(at)?.map(|(chunk, _)| chunk))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        at.iter().map(|at| self.lookup(*at)).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }
}

/// Chunks are those of the segments, all else is the root's. The verification of arenas reads nothing else of segments.
impl Base for ReadBase {
    fn identity(&self) -> Identity {
        self.root().identity()
    }

    fn layers(&self) -> u32 {
        0
    }

    fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
        cg_store::layer::spawn(self.root(), job);
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        self.root().upgrades()
    }

    fn find_property(&self, property: &Property) -> Result<Found<Vec<u8>>, Error> {
        self.root().find_property(property)
    }

    /// Omits the engine's own, which store where everything is.
    fn named_properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        let mut all = self.root().named_properties(prefix)?;
        all.retain(|name, _| !name.as_str().starts_with(':'));
        Ok(all)
    }

    fn find_object(&self, key: &ObjectKey) -> Result<Found<StoredObject>, Error> {
        self.root().find_object(key)
    }

    fn list_objects(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        self.root().list_objects(prefix, position, max_count)
    }

    fn find_record(&self, id: RecordId) -> Result<Found<Arc<Record>>, Error> {
        self.root().find_record(id)
    }

    fn record_shape(&self) -> RecordShape {
        self.root().record_shape()
    }

    fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.root().records_in(query)
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.root().catalog()
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        match self.segment_of(at)? {
            Some(world) => Ok(of_life(world, world.find_chunk(at)?)),
            None => Ok(Lookup::NotFound),
        }
    }

    fn has_origin(&self, at: ChunkAt, origin: Origin) -> Result<bool, Error> {
        let world = self.segment_of(at)?;
        world.map_or(Ok(false), |world| world.has_origin(at, origin))
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        self.root().find_entity(id)
    }

    fn keep_found(&self, _: Level) -> Result<(), Error> {
        Ok(())
    }
}
