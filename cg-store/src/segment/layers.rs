//! A segmented world as a source of chunks, as the base of an overlay, and as what an overlay is merged into.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::{ChunkAt, ChunkSource, EntityId, Lookup, SchemaView};
use cg_registry::{Catalog, Registration, UpgradeFunctions};

use super::{SegmentError, SegmentHome, SegmentPos, SegmentedWorld};
use crate::error::Error;
use crate::overlay::{Base, Found, Identity, PromoteTarget, Promotion};

impl<H: SegmentHome> ChunkSource for SegmentedWorld<H> {
    type Error = Error;

    fn lookup(&self, at: ChunkAt) -> Result<Lookup<Arc<Chunk>>, Error> {
        Ok(self.find_chunk(at)?.map(|(chunk, _)| chunk))
    }

    fn lookup_many(&self, at: &[ChunkAt]) -> Vec<Result<Lookup<Arc<Chunk>>, Error>> {
        let found = self.find_chunks(at);
        found.into_iter().map(|found| Ok(found?.map(|(chunk, _)| chunk))).collect()
    }

    fn schema(&self) -> Arc<dyn SchemaView + Send + Sync> {
        Arc::new(self.catalog().current_schema())
    }
}

impl<H: SegmentHome> Base for SegmentedWorld<H> {
    fn identity(&self) -> Identity {
        self.root().identity()
    }

    fn layers(&self) -> u32 {
        0
    }

    fn catalog(&self) -> Arc<Catalog> {
        Self::catalog(self)
    }

    fn upgrades(&self) -> Arc<UpgradeFunctions> {
        self.root().upgrades()
    }

    fn find_chunk(&self, at: ChunkAt) -> Result<Found<Arc<Chunk>>, Error> {
        let found = self.with_stored(self.segment_of(at), |world| world.find_chunk(at))?;
        Ok(found.unwrap_or(Lookup::NotHere))
    }

    fn find_chunks(&self, at: &[ChunkAt]) -> Vec<Result<Found<Arc<Chunk>>, Error>> {
        let mut by_segment: BTreeMap<SegmentPos, Vec<usize>> = BTreeMap::new();
        for (index, at) in at.iter().enumerate() {
            by_segment.entry(self.segment_of(*at)).or_default().push(index);
        }
        let mut found: Vec<_> = at.iter().map(|_| Ok(Lookup::NotHere)).collect();
        for (segment, indexes) in by_segment {
            let places: Vec<_> = indexes.iter().filter_map(|index| at.get(*index).copied()).collect();
            let in_segment = match self.with_stored(segment, |world| Ok(world.find_chunks(&places))) {
                Ok(Some(in_segment)) => in_segment,
                Ok(None) => continue,
                // Each place says what is wrong with its segment.
                Err(_) => places.iter().map(|at| self.find_chunk(*at)).collect(),
            };
            for (index, chunk) in indexes.into_iter().zip(in_segment) {
                if let Some(slot) = found.get_mut(index) {
                    *slot = chunk;
                }
            }
        }
        found
    }

    fn find_entity(&self, id: EntityId) -> Result<Found<Entity>, Error> {
        self.try_to_settle();
        let _none_crosses = self.shared.borders.read_recursive();
        self.refuse_on_its_way(id)?;
        let Some(segment) = self.claimed(id)? else { return Ok(Lookup::NotHere) };
        let found = self.with_stored(segment, |world| world.find_entity(id))?;
        Ok(found.unwrap_or(Lookup::NotHere))
    }
}

impl<H: SegmentHome> PromoteTarget for SegmentedWorld<H> {
    fn register_names(&self, new: &Registration) -> Result<Arc<Catalog>, Error> {
        self.register(new)
    }

    /// A promotion is one transaction, so everything that is promoted must lie in one segment, else it is refused as
    /// [`SegmentError::TwoSegments`].
    fn apply(&self, promotion: &Promotion) -> Result<u64, Error> {
        let chunks = promotion.chunks.keys().map(|at| self.segment_of(*at));
        let owners = promotion.entities.iter().map(|(id, promoting)| {
            Ok(match promoting.new.as_ref().map(|entity| &entity.owner) {
                Some(cg_format::entity::Owner::Chunk(at)) => Some(self.segment_of(*at)),
                _ => self.claimed(*id)?,
            })
        });
        let owners = owners.collect::<Result<Vec<_>, Error>>()?;
        let mut segments: Vec<_> = chunks.chain(owners.into_iter().flatten()).collect();
        segments.sort_unstable();
        segments.dedup();
        match *segments {
            [] => Ok(0),
            [segment] => self.promote_in(segment, promotion),
            [first, second, ..] => Err(SegmentError::TwoSegments { first, second }.into()),
        }
    }
}
