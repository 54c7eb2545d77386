//! An overlay as a source of chunks and entities, and as the base of another.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::record::Record;
use cg_format::{ChunkAt, ChunkSource, EntityId, EntitySource, Lookup, RecordId, SchemaView};
use cg_registry::{Catalog, Name, UpgradeFunctions};
use cg_store::engine::Level;
use cg_store::layer::kind::{Chunks, Entities, Objects, Properties, Records};
use cg_store::layer::{Base, Found, Identity, without_deletion};
use cg_store::objects::{ObjectKey, ObjectPage, StoredObject};
use cg_store::records::{RecordQuery, RecordShape};
use cg_store::{Error, Property};
use uuid::Uuid;

use super::handle::Overlay;

impl<S: Base> ChunkSource for Overlay<S> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        Ok(self.layered::<Chunks>(&at)?.found.map(|(chunk, _)| chunk))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        let shown = self.layered_chunks(at);
        shown.into_iter().map(|shown| Ok(shown?.found.map(|(chunk, _)| chunk))).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.store().names.unchecked(self.base()).current_schema())
    }
}

impl<S: Base> EntitySource for Overlay<S> {
    type Error = Error;

    fn entity(&self, id: EntityId) -> Result<Option<Entity>, Error> {
        Overlay::entity(self, id)
    }
}

impl<S: Base> Base for Overlay<S> {
    /// A reset gives the overlay another identity: rows over its old content do not fit the new one.
    fn identity(&self) -> Identity {
        let head = self.store().names.head();
        let uuid = Uuid::from_u128(head.uuid.as_u128() ^ u128::from(self.arena.number));
        let incarnation = Uuid::from_u128(head.base.incarnation.as_u128() ^ u128::from(self.lease()));
        Identity { uuid, incarnation }
    }

    fn layers(&self) -> u32 {
        self.store().layer.into()
    }

    fn catalog(&self) -> Arc<Catalog> {
        self.store().names.unchecked(self.base())
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        self.store().base.upgrades()
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        Ok(self.layered::<Chunks>(&at)?.found)
    }

    fn find_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Found<Arc<Chunk>>, Error>> {
        self.layered_chunks(at).into_iter().map(|shown| Ok(shown?.found)).collect()
    }

    fn peek_chunk(&self, at: ChunkAt) -> Option<Found<Arc<Chunk>>> {
        self.peek_layered(at)
    }

    fn apply_submitted(&self) -> Result<(), Error> {
        self.apply_waiting()
    }

    fn when_applied(&self, job: Box<dyn FnOnce(Result<(), Error>) + Send>) {
        self.run_when_applied(job);
    }

    fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
        self.base().spawn(job);
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        Ok(self.layered::<Entities>(&id)?.found)
    }

    fn find_property(&self, property: &Property) -> Result<Found<Vec<u8>>, Error> {
        Ok(self.layered::<Properties>(property)?.found)
    }

    fn named_properties(&self, prefix: &str) -> Result<BTreeMap<Name, Vec<u8>>, Error> {
        self.properties(prefix)
    }

    fn find_object(&self, key: &ObjectKey) -> Result<Found<StoredObject>, Error> {
        Ok(without_deletion(self.layered::<Objects>(key)?.found))
    }

    fn list_objects(
        &self,
        prefix: &[u8],
        position: Option<&ObjectKey>,
        max_count: usize,
    ) -> Result<ObjectPage, Error> {
        Self::list_objects(self, prefix, position, max_count)
    }

    fn find_record(&self, id: RecordId) -> Result<Found<Arc<Record>>, Error> {
        Ok(self.layered::<Records>(&id)?.found)
    }

    fn record_shape(&self) -> RecordShape {
        self.store().base.record_shape()
    }

    fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        Self::records_in(self, query)
    }

    fn has_origin(&self, at: ChunkAt, origin: Origin) -> Result<bool, Error> {
        if origin.layer == self.store().layer {
            Ok(self.store().rows.has(origin))
        } else {
            self.store().base.has_origin(at, origin)
        }
    }

    fn keep_found(&self, level: Level) -> Result<(), Error> {
        self.store().keep_found(level)
    }
}
