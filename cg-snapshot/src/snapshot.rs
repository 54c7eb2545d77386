//! A snapshot: the state of a region, in memory.

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, ComponentId, DecodeError, Dimension, EntityId, Problem};
use cg_registry::portable::{Names, Used};
use cg_registry::{Catalog, ListKind, Name, Registration};
use rayon::prelude::*;

use crate::error::SnapshotError;
use crate::kept::{Kept, KeptSection};
use crate::places::{LOST, Places};
use crate::region::{Region, Section};
use crate::section::Contents;

/// The maximum number of sections of a snapshot: 2^24, which is 68 thousand million blocks.
pub(crate) const MAX_SECTIONS: u64 = 1 << 24;

/// The head of a snapshot: its name, box, contents and sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its name, at most 65,535 bytes.
    pub name: String,
    /// The box.
    pub region: Region,
    /// The name of the dimension.
    pub dimension: Name,
    /// The time of the capture as the caller gave it: milliseconds since 1970.
    pub created_ms: u64,
    /// The contents that were captured in addition to the blocks.
    pub contents: Contents,
    /// The number of sections of the box.
    pub section_count: u64,
    /// The number of sections that had a chunk.
    pub present_count: u64,
    /// The number of different sections, which are stored.
    pub unique_count: u64,
    /// The bytes of the stored sections.
    pub unique_bytes: u64,
    /// The number of entities.
    pub entity_count: u64,
}

/// The content of one section of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'s> {
    /// There was no chunk.
    Absent,
    /// The section could not be read from the snapshot's file.
    Lost,
    /// The part of the chunk in the box.
    Kept(KeptSection<'s>),
}

/// The state of a region: its sections, equal ones stored once, and its entities.
///
/// A section is stored as the canonical bytes of a chunk: palette and packed bits. A snapshot is immutable and is
/// shared between threads as an `Arc`; a clone shares the sections. In addition to the bytes a stored section takes 12
/// bytes. Each place of the box takes as many bits as the number of stored sections needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub(crate) info: SnapshotInfo,
    pub(crate) names: Names,
    pub(crate) places: Places,
    pub(crate) kept: Kept,
    /// Ascending by id.
    pub(crate) entities: Vec<(EntityId, Entity)>,
    /// What a conversion left of the entities' components, ascending by entity. A file does not have it.
    pub(crate) aside: Vec<Aside>,
}

/// Bytes of an entity's component that a conversion left.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Aside {
    pub(crate) entity: EntityId,
    /// The component of the catalog.
    pub(crate) component: ComponentId,
    pub(crate) bytes: Vec<u8>,
}

impl Snapshot {
    /// Its head.
    pub const fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// The box.
    pub const fn region(&self) -> Region {
        self.info.region
    }

    /// The names of its ids.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The entities, ascending by id.
    pub fn entities(&self) -> &[(EntityId, Entity)] {
        &self.entities
    }

    /// Every section with its content, in the order of [`Region::sections`].
    pub fn sections(&self) -> impl Iterator<Item = (Section, Place<'_>)> {
        self.region().sections().zip(self.places.iter()).map(|(section, place)| (section, self.place(place)))
    }

    /// The different sections, in the order of their first place.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = KeptSection<'_>> + Clone {
        self.kept.iter()
    }

    /// The section at a place of [`sections`](Self::sections).
    pub fn section(&self, index: usize) -> Place<'_> {
        self.places.get(index).map_or(Place::Absent, |place| self.place(place))
    }

    fn place(&self, place: u32) -> Place<'_> {
        match place {
            0 => Place::Absent,
            LOST => Place::Lost,
            place => self.kept.get(place as usize - 1).map_or(Place::Lost, Place::Kept),
        }
    }

    /// Sections that could not be read from the snapshot's file.
    pub fn lost_count(&self) -> u64 {
        self.places.iter().filter(|place| *place == LOST).count() as u64
    }

    /// Decodes a section after checking its bytes.
    ///
    /// # Errors
    /// [`SnapshotError::Unverifiable`], [`SnapshotError::NoChunk`] or [`SnapshotError::NoName`], which name the chunk.
    pub fn decode(&self, at: ChunkAt, kept: KeptSection<'_>) -> Result<Chunk, SnapshotError> {
        self.decode_at(|| at, kept)
    }

    /// As [`decode`](Self::decode). The chunk's position is computed only for an error.
    pub(crate) fn decode_at(
        &self,
        at: impl Fn() -> ChunkAt,
        kept: KeptSection<'_>,
    ) -> Result<Chunk, SnapshotError> {
        let (found, expected) = (kept.computed(), kept.checksum());
        if found != expected {
            return Err(SnapshotError::Unverifiable { at: at(), found, expected });
        }
        let no_chunk = |error| SnapshotError::NoChunk { at: at(), error };
        let chunk = Chunk::decode(kept.bytes(), &self.names).map_err(no_chunk)?;
        // A capture never writes these. A file with them would make a restore take entities from other owners, or put
        // blocks with another meaning.
        let references = chunk.entities().len() as u64;
        if references > 0 {
            let problem = Problem::NotZero { field: "references to entities", found: references };
            return Err(no_chunk(DecodeError::new(cg_format::Section::Entities, 0, problem)));
        }
        if let Some(id) = chunk.kinds().into_iter().find(|id| !self.names.blocks.contains_key(id)) {
            return Err(SnapshotError::NoName { at: at(), list: ListKind::Blocks, id: id.get() });
        }
        let mut sides = chunk.sides().map(|(kind, _)| kind);
        if let Some(kind) = sides.find(|kind| !self.names.sides.contains_key(kind)) {
            return Err(SnapshotError::NoName { at: at(), list: ListKind::Sides, id: kind.get().into() });
        }
        drop(sides);
        Ok(chunk)
    }

    /// Checks the checksum of every stored section, and that it is a chunk. Returns an error for each damaged one, with
    /// its first place.
    ///
    /// Runs in the caller's rayon pool.
    pub fn verify(&self) -> Vec<SnapshotError> {
        let firsts = self.first_places();
        let check = |(index, at): (usize, &ChunkAt)| self.decode(*at, self.kept.get(index)?).err();
        firsts.par_iter().enumerate().filter_map(check).collect()
    }

    /// As [`verify`](Self::verify), but stops at the first damaged section, so that only one error is in memory.
    ///
    /// # Errors
    /// As [`decode`](Self::decode).
    pub fn check(&self) -> Result<(), SnapshotError> {
        let firsts = self.first_places();
        let check = |(index, at): (usize, &ChunkAt)| self.decode(*at, self.kept.get(index)?).err();
        firsts.par_iter().enumerate().find_map_first(check).map_or(Ok(()), Err)
    }

    /// Removes unused names. A capture has none. A foreign file may have any number, and each would be
    /// [registered](Self::registration) permanently.
    ///
    /// Decodes every stored section, in the caller's rayon pool. A section that does not decode uses no names.
    pub fn forget_unused_names(&mut self) {
        let firsts = self.first_places();
        let decoded = |(index, at): (usize, &ChunkAt)| self.decode(*at, self.kept.get(index)?).ok();
        let chunks = firsts.par_iter().enumerate().filter_map(decoded);
        let of_chunk = |mut used: Used, chunk: Chunk| {
            used.blocks.extend(chunk.kinds());
            used.sides.extend(chunk.sides().map(|(kind, _)| kind));
            used.add_kept(&chunk);
            used
        };
        let both = |mut used: Used, other: Used| {
            used.blocks.extend(other.blocks);
            used.sides.extend(other.sides);
            used.components.extend(other.components);
            used
        };
        let mut used = chunks.fold(Used::default, of_chunk).reduce(Used::default, both);
        for (_, entity) in &self.entities {
            used.entities.insert(entity.kind);
            used.components.extend(entity.components().map(|(component, _)| component));
        }
        used.dimensions.insert(self.region().dimension());
        self.names = self.names.only(&used);
    }

    /// The first place of each stored section.
    fn first_places(&self) -> Vec<ChunkAt> {
        let mut firsts = Vec::with_capacity(self.kept.len());
        for (section, place) in self.region().sections().zip(self.places.iter()) {
            if place != LOST && place as usize > firsts.len() {
                firsts.push(section.at);
            }
        }
        firsts.resize(self.kept.len(), ChunkAt::default());
        firsts
    }

    /// The first place of one stored section.
    pub(crate) fn first_place(&self, index: usize) -> ChunkAt {
        let mut places = self.region().sections().zip(self.places.iter());
        let first = places.find(|(_, place)| *place as usize == index + 1);
        first.map(|(section, _)| section.at).unwrap_or_default()
    }

    /// The memory that it takes, including this value. Sections that it shares with other snapshots count; the texts of
    /// names, which are shared with the catalog or not at all, do not.
    pub fn memory_bytes(&self) -> usize {
        let entities: usize = self.entities.iter().map(|(_, entity)| entity_bytes(entity)).sum();
        size_of::<Self>()
            + self.info.name.len()
            + self.names.memory_bytes()
            + self.kept.memory_bytes()
            + self.places.memory_bytes()
            + entities
            + self.aside.iter().map(|left| size_of::<Aside>() + left.bytes.len()).sum::<usize>()
    }

    /// The memory that it takes in addition to another snapshot with which it [shares](Self::share_with) its content.
    pub fn memory_beside(&self, other: &Self) -> usize {
        let names = self.names.memory_bytes() - self.names.memory_beside(&other.names);
        self.memory_bytes() - names - self.kept.shared_bytes(&other.kept)
    }

    /// Shares the memory of sections and names that another snapshot also has. Returns the bytes of the shared
    /// sections.
    ///
    /// Use it for successive snapshots of one box. Ids are compared directly, so both must come from one registry.
    /// Memory is shared in pieces of 32 KiB. A piece stays in memory as long as one snapshot uses it.
    pub fn share_with(&mut self, other: &Self) -> u64 {
        self.names.share_with(&other.names);
        self.kept.share_with(&other.kept)
    }

    /// The catalog's dimension with the name of the snapshot's dimension, or else with one of its other names.
    pub fn dimension_in(&self, catalog: &Catalog) -> Option<Dimension> {
        let (list, id) = (ListKind::Dimensions, self.region().dimension().get());
        self.names.find(catalog, list, id, &self.info.dimension).map(Dimension::new)
    }

    /// The names that must be registered before it can [arrive](Self::arrive) in a catalog, including its dimension;
    /// empty if nothing is missing.
    pub fn registration(&self, catalog: &Catalog) -> Registration {
        let dimension = &self.info.dimension;
        let is_new = self.dimension_in(catalog).is_none();
        let dimensions = is_new.then(|| dimension.clone()).into_iter().collect();
        Registration { dimensions, ..self.names.registration(catalog) }
    }
}

pub(crate) fn entity_bytes(entity: &Entity) -> usize {
    let components: usize = entity.components().map(|(_, bytes)| bytes.len() + 64).sum();
    size_of::<(EntityId, Entity)>() + components
}

/// An entity that a chunk owns, moved by whole chunks into the dimension of a region.
pub(crate) fn moved_entity(entity: &Entity, to: Region, by_chunks: [i64; 3]) -> Option<Entity> {
    let Owner::Chunk(at) = entity.owner else { return None };
    let [x, y, z] = by_chunks;
    let at = ChunkAt::new(to.dimension(), at.pos.offset(x, y, z)?);
    let block = entity.position.block();
    let far = |from: i64, chunks: i64| from.checked_add(chunks.checked_mul(16)?);
    let block = cg_format::BlockPos::new(far(block.x, x)?, far(block.y, y)?, far(block.z, z)?);
    let position = cg_format::entity::EntityPos::new(to.dimension(), block, entity.position.fraction());
    let mut moved = entity.clone().owned_by(Owner::Chunk(at));
    moved.position = position.ok()?;
    Some(moved)
}

impl Snapshot {
    /// Combines the parts and counts them.
    pub(crate) fn new(
        info: SnapshotInfo,
        names: Names,
        places: Places,
        kept: Kept,
        entities: Vec<(EntityId, Entity)>,
    ) -> Self {
        let info = SnapshotInfo {
            section_count: places.len() as u64,
            present_count: places.iter().filter(|place| *place != 0).count() as u64,
            unique_count: kept.len() as u64,
            unique_bytes: kept.iter().map(|kept| kept.bytes().len() as u64).sum(),
            entity_count: entities.len() as u64,
            ..info
        };
        Self { info, names, places, kept, entities, aside: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
