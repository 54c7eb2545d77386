//! A segmented world as a source of chunks, as the base of an overlay, and as the target of a merge.

use std::ops::Range;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::overlay::Origin;
use cg_format::{ChunkAt, ChunkSource, EntityId, Lookup, SchemaView};
use cg_registry::{Catalog, Registration};
use cg_store::engine::Level;
use cg_store::layer::{Base, Found};
use cg_store::{Error, World};

use super::{SegmentHome, SegmentPos, SegmentedWorld};
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
        self.find(at, |world| world.lookup(at))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        self.find_many(at, ChunkSource::lookup_many)
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
        self.find(at, |world| Ok(of_life(world, world.find_chunk(at)?)))
    }

    fn find_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Found<Arc<Chunk>>, Error>> {
        self.find_many(at, |world, at| {
            let found = world.find_chunks(at);
            found.into_iter().map(|found| Ok(of_life(world, found?))).collect()
        })
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        let found = self.at_rest(id, |world| Ok(of_life(world, world.find_entity(id)?)))?;
        Ok(found.unwrap_or(Lookup::NotFound))
    }

    fn has_origin(&self, at: ChunkAt, origin: Origin) -> Result<bool, Error> {
        let found = self.with_stored(self.segment_of(at), |world| world.has_origin(at, origin))?;
        Ok(found.unwrap_or(false))
    }

    /// Includes the root and every open segment. A closed segment was synced.
    fn keep_found(&self, level: Level) -> Result<(), Error> {
        self.root().keep_found(level)?;
        for (_, slot) in self.shared.open.all() {
            if let Some(world) = &*slot.world.read_recursive() {
                world.keep_found(level)?;
            }
        }
        Ok(())
    }
}

/// A segment, and the indexes of adjacent chunks of it.
type Run = (SegmentPos, Range<usize>);

impl<H: SegmentHome> SegmentedWorld<H> {
    /// Looks a chunk up in its segment.
    fn find<T>(
        &self,
        at: ChunkAt,
        find: impl FnOnce(&World) -> Result<Lookup<T>, Error>,
    ) -> Result<Lookup<T>, Error> {
        // Finishing an interrupted transfer changes chunks. So it is finished before the reads, not between two of
        // them.
        self.try_to_resolve();
        Ok(self.with_stored(self.segment_of(at), find)?.unwrap_or(Lookup::NotFound))
    }

    /// Looks many chunks up, those of one segment in one call of `find`.
    fn find_many<T>(
        &self,
        at: &[ChunkAt],
        find: impl Fn(&World, &[ChunkAt]) -> Vec<Result<Lookup<T>, Error>>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        self.try_to_resolve();
        let mut runs = self.runs(at);
        if let [(segment, _)] = runs[..] {
            return self.find_in(segment, at, &find);
        }
        runs.sort_by_key(|(segment, _)| *segment);
        let mut found: Vec<_> = at.iter().map(|_| Ok(Lookup::NotFound)).collect();
        for runs in runs.chunk_by(|(one, _), (next, _)| one == next) {
            let joined: Vec<_>;
            let (segment, places) = match runs {
                [(segment, run)] => (*segment, &at[run.clone()]),
                [(segment, _), ..] => {
                    joined = runs.iter().flat_map(|(_, run)| &at[run.clone()]).copied().collect();
                    (*segment, &joined[..])
                }
                [] => continue,
            };
            let indexes = runs.iter().flat_map(|(_, run)| run.clone());
            for (index, one) in indexes.zip(self.find_in(segment, places, &find)) {
                found[index] = one;
            }
        }
        found
    }

    /// The runs of adjacent chunks that are in one segment.
    fn runs(&self, at: &[ChunkAt]) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut begin = 0;
        while let Some(first) = at.get(begin) {
            let segment = self.segment_of(*first);
            let is_other = |at: &ChunkAt| !segment.has(*at, self.side_chunks());
            let end = at[begin..].iter().position(is_other).map_or(at.len(), |len| begin + len);
            runs.push((segment, begin..end));
            begin = end;
        }
        runs
    }

    /// Looks chunks of one segment up. If it cannot be opened, each gets an error of its own.
    fn find_in<T>(
        &self,
        segment: SegmentPos,
        at: &[ChunkAt],
        find: impl Fn(&World, &[ChunkAt]) -> Vec<Result<Lookup<T>, Error>>,
    ) -> Vec<Result<Lookup<T>, Error>> {
        match self.with_stored(segment, |world| Ok(find(world, at))) {
            Ok(Some(found)) => found,
            Ok(None) => at.iter().map(|_| Ok(Lookup::NotFound)).collect(),
            Err(_) => {
                let alone = |at: &ChunkAt| {
                    let found = self.with_stored(segment, |world| Ok(find(world, &[*at]).pop()))?;
                    found.flatten().unwrap_or(Ok(Lookup::NotFound))
                };
                at.iter().map(alone).collect()
            }
        }
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
        self.refuse_inside()?;
        Ok(Some(&self.shared.moving))
    }

    /// Finishes a transfer: entities in transit cannot be compared.
    fn begin_merge(&self) -> Result<(), Error> {
        self.resolve_transfer()
    }

    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.register(new)
    }

    fn apply(&self, merge: OverlayMerge, merged: &mut Merged<'_>) -> Result<u64, Error> {
        self.merge(merge, merged)
    }
}
