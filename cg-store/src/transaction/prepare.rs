//! Preparing a commit: reads what is replaced, settles owners, and encodes every row of the batch.
//!
//! | rows of one commit | how many |
//! |---|---|
//! | chunk or tombstone | one per changed chunk |
//! | opacity patch | one per chunk whose outline changed |
//! | change mark | one per touched 4³ and per touched 16³ cube |
//! | entity | one per changed entity |
//! | property | one per changed property |
//! | commit sequence | one, by the engine |

use std::collections::BTreeSet;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::Entity;
use cg_format::frame::{Codec, Draft};
use cg_format::{
    ChunkAt, ClusterTier, ComponentShape, Dimension, EntityId, Lookup, SchemaView as _, Space, key,
};
use cg_registry::{Catalog, ListKind};

use super::Writes;
use super::ownership::{ChunkChange, settle};
use crate::engine::{Batch, Engine, Stamp};
use crate::error::{ConflictKey, Error};
use crate::opacity::{self, TileKey};
use crate::options::StoreLimits;
use crate::property::Property;
use crate::world::Inner;

/// A batch that is ready to be committed, if nothing it is built on has changed.
pub(super) struct Prepared {
    pub(super) batch: Batch,
    /// The chunks that the commit makes visible; `None` is a deletion.
    pub(super) chunks: Vec<(ChunkAt, Option<Arc<Chunk>>)>,
    /// The opacity tiles that get patches.
    pub(super) patched: BTreeSet<TileKey>,
    /// What the commit changes.
    pub(super) written: Vec<ConflictKey>,
    /// The commit behind which the stored state was read.
    pub(super) since: u64,
    /// What of the stored state the batch depends on.
    pub(super) consulted: Vec<ConflictKey>,
}

/// Turns what a transaction wants to change into a batch.
pub(super) fn prepare<E: Engine>(world: &Inner<E>, writes: &Writes) -> Result<Prepared, Error> {
    let since = world.commits.published();
    let catalog = world.registry.catalog();
    let limits = *world.limits.read();
    let settled = settle(world, writes)?;
    let (cubes, patched) = (BTreeSet::new(), BTreeSet::new());
    let mut builder = Builder { world, limits, catalog: &catalog, batch: Batch::new(), cubes, patched };
    let mut consulted: Vec<_> = settled.chunks.keys().copied().map(ConflictKey::Chunk).collect();
    consulted.extend(settled.consulted.into_iter().map(ConflictKey::Entity));
    let (mut chunks, mut written) = (Vec::new(), Vec::new());
    for (at, change) in settled.chunks {
        if builder.chunk(at, &change)? {
            written.push(ConflictKey::Chunk(at));
            chunks.push((at, change.new));
        }
    }
    builder.change_marks();
    for (id, entity) in settled.entities {
        builder.entity(id, entity.as_ref())?;
        written.push(ConflictKey::Entity(id));
    }
    for (property, bytes) in &writes.properties {
        builder.property(property, bytes.as_deref())?;
        written.push(property.conflict_key());
    }
    let Builder { batch, patched, .. } = builder;
    let limit_bytes = limits.batch_bytes.min(world.engine.caps().max_batch_bytes);
    check_limit(limit_bytes, batch.len_bytes(), || "the transaction".into())?;
    Ok(Prepared { batch, chunks, patched, written, since, consulted })
}

struct Builder<'w, E: Engine> {
    world: &'w Inner<E>,
    limits: StoreLimits,
    catalog: &'w Catalog,
    batch: Batch,
    /// Changed chunks, by the chunk in the corner of their 4³ cube.
    cubes: BTreeSet<ChunkAt>,
    patched: BTreeSet<TileKey>,
}

impl<E: Engine> Builder<'_, E> {
    /// Adds the rows of a changed chunk; `false` if nothing changes.
    fn chunk(&mut self, at: ChunkAt, change: &ChunkChange) -> Result<bool, Error> {
        let generation = self.catalog.current_generation();
        let row = key::chunk(at);
        let old = match &change.old {
            Lookup::Here(stored) => Some(&stored.chunk),
            Lookup::Deleted | Lookup::NotHere => None,
        };
        match (&change.new, old) {
            (None, None) => return Ok(false),
            (Some(new), Some(old)) if Arc::ptr_eq(new, old) || new == old => return Ok(false),
            (None, Some(_)) => {
                self.batch.put(Space::ChunkL0, row, Draft::tombstone(generation), Stamp::Commit);
            }
            (Some(new), _) => {
                self.check(at, new)?;
                let draft = Draft::plain(Codec::None, generation, |out| new.encode(out));
                let len_bytes = draft.len_bytes() as u64;
                check_limit(self.limits.chunk_bytes, len_bytes, || at.to_string())?;
                self.batch.put(Space::ChunkL0, row, draft, Stamp::Commit);
            }
        }
        if self.world.options.opacity {
            let schema = self.catalog.current_schema();
            if let Some(patch) = opacity::patch(old.map(|old| &**old), change.new.as_deref(), &schema) {
                self.batch.put(Space::OpacityPatch, key::opacity_patch(at), patch, Stamp::Commit);
                self.patched.insert(key::opacity_tile(at));
            }
        }
        self.cubes.insert(ChunkAt { pos: at.pos.cluster(ClusterTier::L1).min_chunk(), ..at });
        Ok(true)
    }

    /// Refuses a chunk that could not be decoded again, or that says something that has no name.
    fn check(&self, at: ChunkAt, chunk: &Chunk) -> Result<(), Error> {
        self.check_dimension(at.dimension)?;
        let issued = self.issued(ListKind::Blocks);
        if let Some(id) = chunk.kinds().into_iter().find(|block| block.get() >= issued) {
            return Err(Error::UnknownBlock { at, id, issued });
        }
        let issued = self.issued(ListKind::Sides);
        if let Some((kind, _)) = chunk.sides().find(|(kind, _)| u64::from(kind.get()) >= issued) {
            return Err(Error::UnknownSide { at, kind, issued });
        }
        let schema = self.catalog.current_schema();
        chunk.conforms_to(&schema).map_err(|why| Error::WrongSchema { at, why })
    }

    /// Refuses an entity that says something that has no name.
    fn check_entity(&self, id: EntityId, entity: &Entity) -> Result<(), Error> {
        self.check_dimension(entity.position.dimension())?;
        let (kind, issued) = (entity.kind, self.issued(ListKind::Entities));
        if kind.get() >= issued {
            return Err(Error::UnknownEntityType { id, kind, issued });
        }
        let schema = self.catalog.current_schema();
        for (component, bytes) in entity.components() {
            match schema.shape(component) {
                None => return Err(Error::UnknownComponent { id, component }),
                Some(ComponentShape::Fixed { width_bytes }) if bytes.len() != width_bytes as usize => {
                    let found = bytes.len();
                    return Err(Error::WrongComponentWidth { id, component, width_bytes, found });
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    fn check_dimension(&self, dimension: Dimension) -> Result<(), Error> {
        let (found, issued) = (dimension.get(), self.issued(ListKind::Dimensions));
        if found < issued { Ok(()) } else { Err(Error::UnknownDimension { found, issued }) }
    }

    fn issued(&self, list: ListKind) -> u64 {
        self.catalog.list(list).len() as u64
    }

    /// One mark per touched cube of each cluster tier: what makes "changed since" visit only what changed.
    fn change_marks(&mut self) {
        let warm = self.cubes.iter().map(|at| (at.dimension, at.pos.cluster(ClusterTier::L1)));
        let cold: BTreeSet<_> =
            self.cubes.iter().map(|at| (at.dimension, at.pos.cluster(ClusterTier::L2))).collect();
        for (dimension, cluster) in warm.chain(cold) {
            let mark = Draft::plain(Codec::None, 0, |_| {});
            self.batch.put(Space::ChangeMark, key::change_mark(dimension, cluster), mark, Stamp::Commit);
        }
    }

    fn entity(&mut self, id: EntityId, entity: Option<&Entity>) -> Result<(), Error> {
        let row = key::entity(id);
        let Some(entity) = entity else {
            self.batch.delete(Space::Entity, row);
            return Ok(());
        };
        self.check_entity(id, entity)?;
        let draft = Draft::plain(Codec::None, self.catalog.current_generation(), |out| entity.encode(out));
        let len_bytes = draft.len_bytes() as u64;
        check_limit(self.limits.entity_bytes, len_bytes, || format!("entity {id}"))?;
        self.batch.put(Space::Entity, row, draft, Stamp::Commit);
        Ok(())
    }

    fn property(&mut self, property: &Property, bytes: Option<&[u8]>) -> Result<(), Error> {
        let (space, row) = property.row();
        let Some(bytes) = bytes else {
            self.batch.delete(space, row);
            return Ok(());
        };
        check_limit(self.limits.property_bytes, bytes.len() as u64, || property.to_string())?;
        self.batch.put(space, row, Draft::plain(Codec::None, 0, |out| out.extend(bytes)), Stamp::Commit);
        Ok(())
    }
}

fn check_limit(limit_bytes: u64, len_bytes: u64, what: impl FnOnce() -> String) -> Result<(), Error> {
    if len_bytes > limit_bytes {
        return Err(Error::TooLarge { what: what(), len_bytes, limit_bytes });
    }
    Ok(())
}
