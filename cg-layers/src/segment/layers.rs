//! A segmented world as a source of chunks, as the base of an overlay, and as the target of a merge.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::{ChunkAt, ChunkSource, EntityId, Lookup, SchemaView};
use cg_registry::{Catalog, Registration};
use cg_store::engine::Level;
use cg_store::layer::{Base, Found};
use cg_store::{Error, World};

use super::home::SegmentHome;
use super::world::SegmentedWorld;
use crate::merge::{MergeLock, MergeTarget, Merged, OverlayMerge};

/// The calls of [`Base`] that a segmented world answers from its root, where properties, objects and records are stored.
macro_rules! answer_from_root {
    () => {
        fn identity(&self) -> cg_store::layer::Identity {
            self.root().identity()
        }

        fn layers(&self) -> u32 {
            0
        }

        fn spawn(&self, job: Box<dyn FnOnce() + Send>) {
            cg_store::layer::spawn(self.root(), job);
        }

        fn upgrades(&self) -> ::std::sync::Arc<cg_registry::UpgradeFunctions> {
            self.root().upgrades()
        }

        fn find_property(&self, property: &cg_store::Property) -> Result<Found<Vec<u8>>, Error> {
            self.root().find_property(property)
        }

        /// Omits the engine's own, which store where everything is.
        fn named_properties(
            &self,
            prefix: &str,
        ) -> Result<::std::collections::BTreeMap<cg_registry::Name, Vec<u8>>, Error> {
            let mut all = self.root().named_properties(prefix)?;
            all.retain(|name, _| !name.as_str().starts_with(':'));
            Ok(all)
        }

        fn find_object(
            &self,
            key: &cg_store::objects::ObjectKey,
        ) -> Result<Found<cg_store::objects::StoredObject>, Error> {
            self.root().find_object(key)
        }

        fn list_objects(
            &self,
            prefix: &[u8],
            position: Option<&cg_store::objects::ObjectKey>,
            max_count: usize,
        ) -> Result<cg_store::objects::ObjectPage, Error> {
            self.root().list_objects(prefix, position, max_count)
        }

        fn find_record(
            &self,
            id: cg_format::RecordId,
        ) -> Result<Found<::std::sync::Arc<cg_format::record::Record>>, Error> {
            self.root().find_record(id)
        }

        fn record_shape(&self) -> cg_store::records::RecordShape {
            self.root().record_shape()
        }

        fn records_in(
            &self,
            query: &cg_store::records::RecordQuery,
        ) -> Result<Vec<(cg_format::RecordId, cg_format::record::Record)>, Error> {
            self.root().records_in(query)
        }
    };
}
#[cfg(feature = "rocks")]
pub(super) use answer_from_root;

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

impl<H: SegmentHome> Base for SegmentedWorld<H> {
    answer_from_root!();

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
        let found = self.parts.at_rest(id, |world| Ok(of_life(world, world.find_entity(id)?)))?;
        Ok(found.unwrap_or(Lookup::NotFound))
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

/// Makes versions of earlier drafts distinct between the lives of a segment. A segment that was deleted and created again, or
/// restored from a checkpoint, counts versions anew. Versions that have an opening are distinct by that. The results are only
/// compared for equality.
pub(super) fn of_life<T>(world: &World, found: Found<T>) -> Found<T> {
    found.map(|(value, origin)| {
        if origin.opening != 0 {
            return (value, origin);
        }
        let (high, low) = world.identity().incarnation.as_u64_pair();
        (value, Origin { version: origin.version ^ high ^ low, ..origin })
    })
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
