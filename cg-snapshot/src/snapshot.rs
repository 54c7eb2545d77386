//! A snapshot: a region as it was, in memory.

use std::collections::{BTreeMap, HashMap};

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{ChunkAt, DecodeError, EntityId, Problem};
use cg_registry::travel::{Arrival, Names, UnknownId, Used};
use cg_registry::{Catalog, ListKind, Name, Registration};
use rayon::prelude::*;

use crate::arrival::ArrivalReport;
use crate::error::SnapshotError;
use crate::region::{Region, Section};
use crate::section::{Contents, KeptSection, Prepared};

/// The sections of the largest region that a snapshot holds: 2^24, which is 68 thousand million blocks.
pub(crate) const MAX_SECTIONS: u64 = 1 << 24;

/// What a snapshot is of and how large it is: what the head of its file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its name, at most 65,535 bytes.
    pub name: String,
    /// The box.
    pub region: Region,
    /// The name of the dimension.
    pub dimension: Name,
    /// When it was captured, as the caller said: milliseconds since 1970.
    pub created_ms: u64,
    /// What was captured beside the blocks.
    pub contents: Contents,
    /// Sections of the box.
    pub section_count: u64,
    /// Sections of which there was a chunk.
    pub present_count: u64,
    /// Sections that differ from each other: those that are kept.
    pub unique_count: u64,
    /// The bytes of the sections that are kept.
    pub unique_bytes: u64,
    /// Entities.
    pub entity_count: u64,
}

/// What a snapshot holds of one section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'s> {
    /// There was no chunk.
    Absent,
    /// Its file could not be read there.
    Lost,
    /// The part of the chunk that lies in the box.
    Kept(&'s KeptSection),
}

/// A region as it was: its sections, each kept once however often it is there, and its entities.
///
/// Sections are kept as the canonical bytes of a chunk: palette and packed bits. A snapshot is immutable and is shared
/// between threads as an `Arc`.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    pub(crate) info: SnapshotInfo,
    pub(crate) names: Names,
    /// By section, in the order of [`Region::sections`]: 0 absent, [`LOST`], else one more than the place in `kept`.
    pub(crate) places: Vec<u32>,
    pub(crate) kept: Vec<KeptSection>,
    /// Ascending by id.
    pub(crate) entities: Vec<(EntityId, Entity)>,
}

/// The place of a section that was not readable.
pub(crate) const LOST: u32 = u32::MAX;

impl Snapshot {
    /// What it is of and how large it is.
    pub const fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// The box.
    pub const fn region(&self) -> Region {
        self.info.region
    }

    /// What its ids mean.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    /// The entities, ascending by id.
    pub fn entities(&self) -> &[(EntityId, Entity)] {
        &self.entities
    }

    /// Every section with what is held of it, in the order of [`Region::sections`].
    pub fn sections(&self) -> impl Iterator<Item = (Section, Place<'_>)> {
        self.region().sections().zip(&self.places).map(|(section, place)| (section, self.place(*place)))
    }

    /// The sections that differ from each other, in the order in which they are first met.
    pub fn kept(&self) -> &[KeptSection] {
        &self.kept
    }

    /// The section at a place of [`sections`](Self::sections).
    pub fn section(&self, index: usize) -> Place<'_> {
        self.places.get(index).map_or(Place::Absent, |place| self.place(*place))
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
        self.places.iter().filter(|place| **place == LOST).count() as u64
    }

    /// Decodes a section after checking its bytes.
    ///
    /// # Errors
    /// [`SnapshotError::Unverifiable`], [`SnapshotError::NoChunk`] or [`SnapshotError::NoName`], which name the chunk.
    pub fn decode(&self, at: ChunkAt, kept: &KeptSection) -> Result<Chunk, SnapshotError> {
        let (found, expected) = (kept.computed(), kept.checksum());
        if found != expected {
            return Err(SnapshotError::Unverifiable { at, found, expected });
        }
        let no_chunk = |error| SnapshotError::NoChunk { at, error };
        let chunk = Chunk::decode(kept.bytes(), &self.names).map_err(no_chunk)?;
        // A capture writes neither of these. Whoever does wants a restore to take entities from others, or to put blocks
        // that mean something else where it is restored.
        let references = chunk.entities().len() as u64;
        if references > 0 {
            let problem = Problem::NotZero { field: "references to entities", found: references };
            return Err(no_chunk(DecodeError::new(cg_format::Section::Entities, 0, problem)));
        }
        if let Some(id) = chunk.kinds().into_iter().find(|id| !self.names.blocks.contains_key(id)) {
            return Err(SnapshotError::NoName { at, list: ListKind::Blocks, id: id.get() });
        }
        let mut sides = chunk.sides().map(|(kind, _)| kind);
        if let Some(kind) = sides.find(|kind| !self.names.sides.contains_key(kind)) {
            return Err(SnapshotError::NoName { at, list: ListKind::Sides, id: kind.get().into() });
        }
        drop(sides);
        Ok(chunk)
    }

    /// Checks every section that is kept: its checksum, and that it is a chunk. The first of each damaged one is named.
    ///
    /// Runs in the caller's rayon pool.
    pub fn verify(&self) -> Vec<SnapshotError> {
        let firsts = self.first_places();
        let check = |(at, kept): (&ChunkAt, &KeptSection)| self.decode(*at, kept).err();
        firsts.par_iter().zip(&self.kept).filter_map(check).collect()
    }

    /// Forgets names that nothing uses. A capture has none; in a file that another wrote there may be any number, and each
    /// would be [registered](Self::registration) for ever.
    ///
    /// Decodes every kept section, in the caller's rayon pool. Those that do not decode use nothing.
    pub fn forget_unused_names(&mut self) {
        let firsts = self.first_places();
        let chunks = firsts.par_iter().zip(&self.kept).filter_map(|(at, kept)| self.decode(*at, kept).ok());
        let of_chunk = |mut used: Used, chunk: Chunk| {
            used.blocks.extend(chunk.kinds());
            used.sides.extend(chunk.sides().map(|(kind, _)| kind));
            used
        };
        let both = |mut used: Used, other: Used| {
            used.blocks.extend(other.blocks);
            used.sides.extend(other.sides);
            used
        };
        let mut used = chunks.fold(Used::default, of_chunk).reduce(Used::default, both);
        for (_, entity) in &self.entities {
            used.entities.insert(entity.kind);
            used.components.extend(entity.components().map(|(component, _)| component));
        }
        self.names = self.names.only(&used);
    }

    /// Where each kept section is met first.
    fn first_places(&self) -> Vec<ChunkAt> {
        let mut firsts = Vec::with_capacity(self.kept.len());
        for (section, place) in self.region().sections().zip(&self.places) {
            if *place != LOST && *place as usize > firsts.len() {
                firsts.push(section.at);
            }
        }
        firsts.resize(self.kept.len(), ChunkAt::default());
        firsts
    }

    /// The memory that it takes, this value included. Sections that it shares with other snapshots count as well.
    pub fn memory_bytes(&self) -> usize {
        // Before the bytes of an `Arc` stand its two counts.
        const ARC_BYTES: usize = 16;
        let kept: usize = self.kept.iter().map(|kept| kept.bytes().len() + ARC_BYTES).sum();
        let entities: usize = self.entities.iter().map(|(_, entity)| entity_bytes(entity)).sum();
        size_of::<Self>()
            + kept
            + self.kept.capacity() * size_of::<KeptSection>()
            + self.places.capacity() * size_of::<u32>()
            + entities
    }

    /// Lets sections that another snapshot also holds share its memory; returns the bytes that were freed.
    ///
    /// For successive snapshots of one place. Ids are compared as they are, so both must come from one registry.
    pub fn share_with(&mut self, other: &Self) -> u64 {
        let theirs: HashMap<&[u8], &KeptSection> =
            other.kept.iter().map(|kept| (kept.bytes(), kept)).collect();
        let mut freed = 0;
        for kept in &mut self.kept {
            let Some(same) = theirs.get(kept.bytes()).filter(|same| !kept.is_shared_with(same)) else {
                continue;
            };
            freed += kept.bytes().len() as u64;
            *kept = KeptSection::clone(same);
        }
        freed
    }

    /// What to register so that it can [arrive](Self::arrive) in a catalog, its dimension included; empty if nothing is
    /// missing.
    pub fn registration(&self, catalog: &Catalog) -> Registration {
        let dimension = &self.info.dimension;
        let is_new = catalog.dimension(dimension.as_str()).is_none();
        let dimensions = is_new.then(|| dimension.clone()).into_iter().collect();
        Registration { dimensions, ..self.names.registration(catalog) }
    }

    /// The same snapshot by the ids of a catalog, found by names.
    ///
    /// Costs nothing if the catalog means the same by every id; otherwise every kept section is decoded and written anew,
    /// in the caller's rayon pool. Component data whose component has another shape there, or that the block does not have
    /// there, stays behind and is counted. A dimension of the catalog that has the snapshot's name becomes its own.
    ///
    /// # Errors
    /// [`SnapshotError::UnknownNames`] if names are not registered: register what [`Names::registration`] says, or tell.
    pub fn arrive(self, catalog: &Catalog) -> Result<(Self, ArrivalReport), SnapshotError> {
        let dimension = catalog.dimension(self.info.dimension.as_str()).ok_or_else(|| {
            let names = vec![(ListKind::Dimensions, self.info.dimension.clone())];
            SnapshotError::UnknownNames { names }
        });
        let is_home = self.names.are_those_of(catalog);
        if is_home && dimension.as_ref().ok() == Some(&self.region().dimension()) {
            return Ok((self, ArrivalReport::default()));
        }
        let dimension = dimension?;
        let arrival =
            Arrival::new(&self.names, catalog).map_err(|names| SnapshotError::UnknownNames { names })?;
        let schema = catalog.current_schema();
        let region = Region::new(dimension, self.region().area());
        let firsts = self.first_places();
        let arrived: Result<Vec<_>, _> = firsts
            .par_iter()
            .zip(&self.kept)
            .map(|(at, kept)| {
                let old = self.decode(*at, kept)?;
                let section = |error| SnapshotError::Section { at: *at, error };
                let (new, left) = arrival.chunk(&old, &schema).map_err(section)?;
                Ok::<_, SnapshotError>((Prepared::new(&new), left))
            })
            .collect();
        let mut report = ArrivalReport { is_remapped: true, ..ArrivalReport::default() };
        let mut builder = Builder::new(self.info.clone(), region);
        let mut new_places = Vec::with_capacity(self.kept.len());
        for (prepared, left) in arrived? {
            new_places.push(builder.keep(prepared));
            for (component, count) in left {
                let name = self.names.components.get(&component).map(|it| it.name.to_string());
                *report.components_left.entry(name.unwrap_or_default()).or_default() += count;
            }
        }
        for place in &self.places {
            let place = match place {
                0 | &LOST => *place,
                place => new_places.get(*place as usize - 1).copied().unwrap_or(LOST),
            };
            builder.push(place);
        }
        for (id, entity) in &self.entities {
            builder.entity(*id, arrived_entity(entity, region, &arrival, &self.names, &mut report));
        }
        Ok((builder.finish(catalog)?, report))
    }
}

fn entity_bytes(entity: &Entity) -> usize {
    let components: usize = entity.components().map(|(_, bytes)| bytes.len() + 64).sum();
    size_of::<(EntityId, Entity)>() + components
}

fn arrived_entity(
    entity: &Entity,
    region: Region,
    arrival: &Arrival,
    names: &Names,
    report: &mut ArrivalReport,
) -> Entity {
    let kind = arrival.entity(entity.kind).unwrap_or(entity.kind);
    let mut new = Entity::new(kind, entity.owner.clone(), entity.position);
    for (component, bytes) in entity.components() {
        let there = arrival.component(component);
        if there.is_none_or(|there| new.set_component(there, bytes.to_vec()).is_err()) {
            let name = names.components.get(&component).map(|it| it.name.to_string());
            *report.components_left.entry(name.unwrap_or_default()).or_default() += 1;
        }
    }
    moved_entity(&new, region, [0; 3]).unwrap_or(new)
}

/// An entity that belongs to a chunk, so many chunks further in the dimension of a region.
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

/// A snapshot in the making: sections in their order, then entities.
pub(crate) struct Builder {
    info: SnapshotInfo,
    places: Vec<u32>,
    kept: Vec<KeptSection>,
    /// By checksum and length; what is equal in both is compared.
    known: HashMap<(u32, usize), Vec<u32>>,
    used: Used,
    entities: BTreeMap<EntityId, Entity>,
}

impl Builder {
    pub(crate) fn new(info: SnapshotInfo, region: Region) -> Self {
        Self {
            info: SnapshotInfo { region, ..info },
            places: Vec::new(),
            kept: Vec::new(),
            known: HashMap::new(),
            used: Used::default(),
            entities: BTreeMap::new(),
        }
    }

    /// Keeps a section, unless an equal one is kept already; its place.
    pub(crate) fn keep(&mut self, prepared: Prepared) -> u32 {
        let Prepared { bytes, checksum, kinds, sides } = prepared;
        let known = self.known.entry((checksum, bytes.len())).or_default();
        let is_equal =
            |place: &&u32| self.kept.get(**place as usize - 1).is_some_and(|kept| kept.bytes() == bytes);
        if let Some(place) = known.iter().find(is_equal) {
            return *place;
        }
        self.kept.push(KeptSection::new(bytes.into(), checksum));
        let place = self.kept.len() as u32;
        known.push(place);
        self.used.blocks.extend(kinds);
        self.used.sides.extend(sides);
        place
    }

    /// Gives the next section its place.
    pub(crate) fn push(&mut self, place: u32) {
        self.places.push(place);
    }

    pub(crate) fn entity(&mut self, id: EntityId, entity: Entity) {
        self.used.entities.insert(entity.kind);
        self.used.components.extend(entity.components().map(|(component, _)| component));
        self.entities.insert(id, entity);
    }

    pub(crate) fn section_count(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn finish(mut self, catalog: &Catalog) -> Result<Snapshot, SnapshotError> {
        self.places.shrink_to_fit();
        self.kept.shrink_to_fit();
        let names = Names::of(catalog, &self.used)
            .map_err(|UnknownId { list, id }| SnapshotError::UnknownId { list, id })?;
        Ok(Snapshot::new(self.info, names, self.places, self.kept, self.entities.into_iter().collect()))
    }
}

impl Snapshot {
    /// Puts the parts together and counts them.
    pub(crate) fn new(
        info: SnapshotInfo,
        names: Names,
        places: Vec<u32>,
        kept: Vec<KeptSection>,
        entities: Vec<(EntityId, Entity)>,
    ) -> Self {
        let info = SnapshotInfo {
            section_count: places.len() as u64,
            present_count: places.iter().filter(|place| **place != 0).count() as u64,
            unique_count: kept.len() as u64,
            unique_bytes: kept.iter().map(|kept| kept.bytes().len() as u64).sum(),
            entity_count: entities.len() as u64,
            ..info
        };
        Self { info, names, places, kept, entities }
    }
}

#[cfg(test)]
mod tests;
