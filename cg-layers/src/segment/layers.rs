//! A segmented world as a source of chunks, as the base of an overlay, and as the target of a merge.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, RecordId, SchemaView};
use cg_registry::{Catalog, Name, Registration, UpgradeFunctions};
use cg_store::engine::Level;
use cg_store::error::ConflictKey;
use cg_store::layer::kind::{Kind as _, Objects, Properties, Records};
use cg_store::layer::{Base, Found, Identity};
use cg_store::objects::{ObjectKey, ObjectPage, StoredObject};
use cg_store::records::{RecordQuery, RecordShape};
use cg_store::{Error, Property};

use super::home::SegmentHome;
use super::origin::of_life;
use super::rows::is_of_the_world;
use super::world::SegmentedWorld;
use crate::merge::{MergeLock, MergeTarget, Merged, OverlayMerge};

impl<H: SegmentHome> ChunkSource for SegmentedWorld<H> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        self.parts.look_up(at, |world| world.lookup(at))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        self.parts.look_up_many(at, ChunkSource::lookup_many)
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }
}

impl<H: SegmentHome> EntitySource for SegmentedWorld<H> {
    type Error = Error;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        SegmentedWorld::entity(self, id)
    }
}

impl<H: SegmentHome> Base for SegmentedWorld<H> {
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

    fn catalog(&self) -> Arc<Catalog> {
        Self::catalog(self)
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        self.parts.look_up(at, |world| Ok(of_life(world, world.find_chunk(at)?)))
    }

    fn find_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Found<Arc<Chunk>>, Error>> {
        self.parts.look_up_many(at, |world, at| {
            let found = world.find_chunks(at);
            found.into_iter().map(|found| Ok(of_life(world, found?))).collect()
        })
    }

    fn peek_chunk(&self, at: ChunkAt) -> Option<Found<Arc<Chunk>>> {
        self.peek_in(at, |world| Some(of_life(world, world.peek_chunk(at)?)))
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        let found = self
            .parts
            .at_rest(&ConflictKey::Entity(id), |world| Ok(of_life(world, world.find_entity(id)?)))?;
        Ok(found.unwrap_or(Lookup::NotFound))
    }

    fn find_property(&self, property: &Property) -> Result<Found<Vec<u8>>, Error> {
        if is_of_the_world(property) {
            return self.root().find_property(property);
        }
        self.parts.value_at(&Properties::conflict_key(property))?.find_value::<Properties>(property)
    }

    /// Omits the engine's own, which store where everything is.
    fn named_properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        let mut all = self.root().named_properties(prefix)?;
        all.retain(|name, _| !name.as_str().starts_with(':'));
        all.append(&mut self.parts.values().placed_properties(prefix)?);
        Ok(all)
    }

    fn find_object(&self, key: &ObjectKey) -> Result<Found<StoredObject>, Error> {
        self.parts.value_at(&Objects::conflict_key(key))?.find_object(key)
    }

    fn list_objects(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        self.parts.values().list_objects(prefix, position, max_count.max(1))
    }

    fn find_record(&self, id: RecordId) -> Result<Found<Arc<Record>>, Error> {
        self.parts.value_at(&Records::conflict_key(&id))?.find_value::<Records>(&id)
    }

    fn record_shape(&self) -> RecordShape {
        self.root().record_shape()
    }

    fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.parts.values().records_in(query)
    }

    fn has_origin(&self, at: ChunkAt, origin: Origin) -> Result<bool, Error> {
        self.parts.submissions.apply_for(&[at])?;
        let found = self.parts.open.with_stored(self.segment_of(at), |world| world.has_origin(at, origin))?;
        Ok(found.unwrap_or(false))
    }

    /// Includes the root and every open segment. A closed segment was synced.
    fn keep_found(&self, level: Level) -> Result<(), Error> {
        self.root().keep_found(level)?;
        self.parts.open.for_each_open(|world| world.keep_found(level))
    }
}

impl<H: SegmentHome> MergeTarget for SegmentedWorld<H> {
    fn merge_lock(&self) -> Result<Option<&MergeLock>, Error> {
        self.parts.open.refuse_inside()?;
        Ok(Some(self.parts.borders.moving()))
    }

    /// Finishes a transfer: entities in transit cannot be compared.
    fn begin_merge(&self) -> Result<(), Error> {
        self.parts.submissions.apply_all()?;
        self.parts.transfers.resolve()
    }

    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.register(new)
    }

    fn apply(&self, merge: OverlayMerge, merged: &mut Merged<'_>) -> Result<u64, Error> {
        self.merge(merge, merged)
    }
}
