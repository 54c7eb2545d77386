//! A segmented world that is only read, as the base of arenas that are verified.

use std::collections::BTreeMap;
use std::path::Path;
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
use cg_store::{Error, Property, World, WorldOptions};

use super::disk::OnDisk;
use super::error::SegmentError;
use super::home::SegmentHome as _;
use super::origin::of_life;
use super::pos::SegmentPos;
use super::rows::SegmentState;

/// The worlds of a segmented world that no process has open. A segment is opened when a chunk of it is read.
#[derive(Clone)]
pub(super) struct ReadBase(Arc<Worlds>);

struct Worlds {
    root: World,
    home: OnDisk,
    side_chunks: u32,
    segments: BTreeMap<SegmentPos, OnceLock<World>>,
    options: WorldOptions,
}

impl ReadBase {
    pub(super) fn new(
        dir: &Path,
        root: World,
        side_chunks: u32,
        known: &BTreeMap<SegmentPos, SegmentState>,
        options: &WorldOptions,
    ) -> Self {
        let there = known.iter().filter(|(_, state)| **state == SegmentState::There);
        let segments = there.map(|(segment, _)| (*segment, OnceLock::new())).collect();
        let home = OnDisk::new(dir);
        Self(Arc::new(Worlds { root, home, side_chunks, segments, options: options.clone() }))
    }

    fn root(&self) -> &World {
        &self.0.root
    }

    fn segment(&self, segment: SegmentPos) -> Result<Option<&World>, Error> {
        let Some(opened) = self.0.segments.get(&segment) else { return Ok(None) };
        if let Some(world) = opened.get() {
            return Ok(Some(world));
        }
        let path = self.0.home.path(segment);
        if !self.0.home.has(segment)? {
            return Err(SegmentError::Lost { segment, at: path.into() }.into());
        }
        let world = World::builder().options(&self.0.options).open_read_only(&path)?;
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
        match self.segment(SegmentPos::of(at, self.0.side_chunks))? {
            Some(world) => Ok(of_life(world, world.find_chunk(at)?)),
            None => Ok(Lookup::NotFound),
        }
    }

    fn has_origin(&self, at: ChunkAt, origin: Origin) -> Result<bool, Error> {
        let world = self.segment(SegmentPos::of(at, self.0.side_chunks))?;
        world.map_or(Ok(false), |world| world.has_origin(at, origin))
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        self.root().find_entity(id)
    }

    fn keep_found(&self, _: Level) -> Result<(), Error> {
        Ok(())
    }
}
