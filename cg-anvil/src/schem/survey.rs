//! The first way through a box: which states and biomes it shows, how often, and what else is in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{
    BlockBox, BlockId, BlockPos, CellOrder, ChunkAt, ChunkPos, ChunkSource as _, Dimension, EntityId,
    EntitySource as _, LocalPos, Lookup,
};
use cg_minecraft::{name, water};
use cg_registry::{Catalog, ListKind};
use cg_snapshot::schem::{BlockEntity, MAX_STATES, SchemEntity, SchemError};
use cg_store::Error;
use cg_store::view::ReadView;

use super::biomes::Biomes;
use super::slab::{Part, Slab};
use super::{block_entity, entity};
use crate::mapping::block_entities::listed_block_entities;
use crate::mapping::{Ids, Origin, place};

/// Chunks that are read at once.
const PARTS_AT_ONCE: usize = 256;

/// Names that cells show, numbered in the order in which they are met.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) names: Vec<Arc<str>>,
    pub(super) counts: Vec<u64>,
    numbers: HashMap<Arc<str>, u16>,
}

impl Shown {
    /// The number of a name, which is numbered if it is new.
    pub(super) fn number(&mut self, name: &str) -> Result<u16, SchemError> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let Ok(number) = u16::try_from(self.names.len()) else {
            let limit = MAX_STATES as u64;
            return Err(SchemError::DoesNotFit { what: "the number of states", found: limit + 1, limit });
        };
        let name: Arc<str> = name.into();
        self.names.push(Arc::clone(&name));
        self.counts.push(0);
        self.numbers.insert(name, number);
        Ok(number)
    }

    fn count(&mut self, number: u16, cells: u64) {
        if let Some(count) = self.counts.get_mut(usize::from(number)) {
            *count += cells;
        }
    }
}

/// Contents of a box.
pub(super) struct Survey<'s, 'w> {
    view: &'s ReadView<'w>,
    catalog: Arc<Catalog>,
    ids: Ids,
    dimension: Dimension,
    area: BlockBox,
    pub(super) states: Shown,
    kinds: HashMap<(BlockId, Option<BlockId>), u16>,
    pub(super) biomes: Shown,
    /// Cells without a stated biome.
    pub(super) without_biome: u64,
    pub(super) block_entities: Vec<BlockEntity>,
    pub(super) data_version: Option<i32>,
    /// Chunks that are not stored.
    pub(super) absent_chunks: u64,
    damaged: HashSet<ChunkPos>,
    pub(super) missed: BTreeMap<String, u64>,
}

impl<'s, 'w> Survey<'s, 'w> {
    pub(super) fn new(view: &'s ReadView<'w>, dimension: Dimension, area: BlockBox) -> Self {
        let catalog = Arc::clone(view.catalog());
        let ids = Ids::find(&catalog);
        Self {
            view,
            catalog,
            ids,
            dimension,
            area,
            states: Shown::default(),
            kinds: HashMap::new(),
            biomes: Shown::default(),
            without_biome: 0,
            block_entities: Vec::new(),
            data_version: None,
            absent_chunks: 0,
            damaged: HashSet::new(),
            missed: BTreeMap::new(),
        }
    }

    fn missed(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.missed.entry(what.into()).or_default() += count;
        }
    }

    /// Numbers the states of a slab into `out`, in the order of a schematic.
    pub(super) fn states(&mut self, slab: &Slab, out: &mut Vec<u16>, pass: Pass) -> Result<(), Trouble> {
        out.resize(slab.cells(), 0);
        self.each_part(slab, pass, |survey, part, chunk| survey.part_states(&part, chunk, out, pass))
    }

    fn part_states(
        &mut self,
        part: &Part,
        chunk: Option<Arc<Chunk>>,
        out: &mut [u16],
        pass: Pass,
    ) -> Result<(), Trouble> {
        let Some(chunk) = chunk else {
            let air = self.states.number(name::AIR)?;
            self.put_all(part, air, out, pass);
            return Ok(());
        };
        if let [only] = chunk.palette().as_slice()
            && chunk.upper_layers().next().is_none()
        {
            let number = self.kind(only.block, None)?;
            self.put_all(part, number, out, pass);
        } else {
            self.mixed(&chunk, part, out, pass)?;
        }
        if pass == Pass::Count {
            self.beside(&chunk, part);
        }
        Ok(())
    }

    /// Shows the parts of a slab with their chunks, of which a few hundred are read at once. Damage is noted when counting.
    fn each_part(
        &mut self,
        slab: &Slab,
        pass: Pass,
        mut visit: impl FnMut(&mut Self, Part, Option<Arc<Chunk>>) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut parts = slab.parts();
        loop {
            let some: Vec<Part> = parts.by_ref().take(PARTS_AT_ONCE).collect();
            if some.is_empty() {
                return Ok(());
            }
            let at: Vec<ChunkAt> = some.iter().map(|part| ChunkAt::new(self.dimension, part.pos)).collect();
            for (part, found) in some.into_iter().zip(self.view.lookup_many(&at)) {
                let chunk = self.found(&part, found.map(Lookup::here), pass)?;
                visit(self, part, chunk)?;
            }
        }
    }

    /// Numbers the biomes of a slab into `out`; a cell without one gets the box's most common one.
    pub(super) fn biomes(&mut self, slab: &Slab, out: &mut Vec<u16>, pass: Pass) -> Result<(), Trouble> {
        out.resize(slab.cells(), 0);
        let most = self.most_common_biome();
        // Damage was noted with the blocks.
        self.each_part(slab, Pass::Write, |survey, part, chunk| {
            let found = chunk.and_then(|chunk| Biomes::read(&chunk, &survey.ids));
            for (first, count, at) in part.rows() {
                let row = out.get_mut(at..at + count).unwrap_or_default();
                let Some(found) = &found else {
                    row.fill(most);
                    survey.without_biome += if pass == Pass::Count { count as u64 } else { 0 };
                    continue;
                };
                for (number, x) in row.iter_mut().zip(first.x()..) {
                    let biome = found.at(LocalPos::new(x, first.y(), first.z()));
                    *number = biome.map_or(Ok(most), |biome| survey.biomes.number(biome))?;
                    match (pass, biome) {
                        (Pass::Count, Some(_)) => survey.biomes.count(*number, 1),
                        (Pass::Count, None) => survey.without_biome += 1,
                        (Pass::Write, _) => {}
                    }
                }
            }
            Ok(())
        })
    }

    /// The number of the biome that most cells show.
    pub(super) fn most_common_biome(&self) -> u16 {
        (0..).zip(&self.biomes.counts).max_by_key(|(_, count)| **count).map_or(0, |(number, _)| number)
    }

    /// Result of reading a chunk; a damaged chunk counts as absent, in both ways through the box, and is noted once,
    /// however many parts it has.
    fn found(
        &mut self,
        part: &Part,
        found: Result<Option<Arc<Chunk>>, Error>,
        pass: Pass,
    ) -> Result<Option<Arc<Chunk>>, Trouble> {
        let pos = part.pos;
        if pass == Pass::Write {
            return match found {
                _ if self.damaged.contains(&pos) => Ok(None),
                // It was sound before: what was counted does not hold any more.
                found => Ok(found?),
            };
        }
        match found {
            Ok(found) => {
                self.absent_chunks += u64::from(found.is_none() && part.is_lowest);
                Ok(found)
            }
            Err(Error::Corrupt(_) | Error::NotUpgraded { .. }) => {
                if self.damaged.insert(pos) {
                    self.missed(format!("damaged: {}", ChunkAt::new(self.dimension, pos)), 1);
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn put_all(&mut self, part: &Part, number: u16, out: &mut [u16], pass: Pass) {
        let mut cells = 0;
        for (_, count, at) in part.rows() {
            out.get_mut(at..at + count).unwrap_or_default().fill(number);
            cells += count as u64;
        }
        if pass == Pass::Count {
            self.states.count(number, cells);
        }
    }

    fn mixed(&mut self, chunk: &Chunk, part: &Part, out: &mut [u16], pass: Pass) -> Result<(), Trouble> {
        let mut cells: Box<[BlockId; LocalPos::COUNT]> =
            vec![BlockId::new(0); LocalPos::COUNT].try_into().expect("it was made with this length");
        chunk.unpack(CellOrder::Yzx, &mut cells);
        let mut upper = HashMap::new();
        for (at, block) in chunk.upper_layers().filter(|(at, _)| part.contains(at.cell)) {
            if at.layer == 1 {
                upper.insert(at.cell, block);
            } else if pass == Pass::Count {
                self.missed("blocks in a third layer or above", 1);
            }
        }
        // Neighbours are mostly of one kind.
        let mut last = None;
        for (first, count, at) in part.rows() {
            let from = usize::from(CellOrder::Yzx.index(first));
            let row = out.get_mut(at..at + count).unwrap_or_default();
            for ((number, block), x) in row.iter_mut().zip(cells.iter().skip(from)).zip(first.x()..) {
                let above = if upper.is_empty() {
                    None
                } else {
                    upper.get(&LocalPos::new(x, first.y(), first.z())).copied()
                };
                let kind = (*block, above);
                *number = match last {
                    Some((before, number)) if before == kind => number,
                    _ => self.kind(*block, above)?,
                };
                last = Some((kind, *number));
                if pass == Pass::Count {
                    self.states.count(*number, 1);
                }
            }
        }
        Ok(())
    }

    /// The number of the state that says both layers, or layer 0 alone when none does.
    fn kind(&mut self, block: BlockId, above: Option<BlockId>) -> Result<u16, SchemError> {
        if let Some(number) = self.kinds.get(&(block, above)) {
            return Ok(*number);
        }
        let dry = name::of_block(&self.catalog, block);
        let above_name = above.map(|above| name::of_block(&self.catalog, above));
        let joined = above_name.as_ref().map(|above| water::join(&dry, above));
        if let (Some(above), Some(None)) = (&above_name, &joined) {
            self.missed(format!("states with {above} in the same cell as {dry}"), 1);
        }
        let number = self.states.number(joined.flatten().as_deref().unwrap_or(&dry))?;
        self.kinds.insert((block, above), number);
        Ok(number)
    }

    /// Takes what a chunk holds beside its blocks.
    fn beside(&mut self, chunk: &Chunk, part: &Part) {
        let corner = self.area.min();
        let mut others = 0;
        let mut found = Vec::new();
        for (component, at, bytes) in chunk.components().filter(|(_, at, _)| part.contains(at.cell)) {
            if Some(component) != self.ids.block_entity || at.layer > 0 {
                others += u64::from(!bytes.is_empty());
            } else if !bytes.is_empty() {
                found.push((part.pos.block(at.cell), bytes));
            }
        }
        if let Some(side) = self.ids.block_entities.and_then(|kind| chunk.side(kind)) {
            match listed_block_entities(side) {
                Some(listed) => {
                    let placed = listed.into_iter().filter_map(|raw| Some((block_entity::place(raw)?, raw)));
                    let here = |at: BlockPos| at.chunk() == part.pos && part.contains(at.local());
                    found.extend(placed.filter(|(at, _)| here(*at)));
                }
                None => self.missed("lists of block entities that are none", u64::from(part.is_lowest)),
            }
        }
        self.missed("components that are no block entities", others);
        for (at, raw) in found {
            match block_entity::from_world(raw, at, corner) {
                Ok(Some(entity)) => self.block_entities.push(entity),
                Ok(None) => self.missed("block entities without a kind", 1),
                Err(_) => self.missed("block entities that are no NBT", 1),
            }
        }
        let version = self.ids.data_version.and_then(|kind| chunk.side(kind)).and_then(place::data_version);
        self.data_version = self.data_version.max(version);
        let Ids { biomes, block_light, sky_light, status, block_entities, column, .. } = self.ids;
        let Ids { data_version, block_biomes, .. } = self.ids;
        // Light is made again, and what a column says of itself is no matter of a schematic.
        let known =
            [biomes, block_light, sky_light, status, block_entities, column, data_version, block_biomes];
        for (kind, _) in chunk.sides().filter(|(kind, _)| !known.contains(&Some(*kind))) {
            let name = self.catalog.list(ListKind::Sides).name(kind.get().into());
            let what = format!("side data `{}`", name.map_or("", |name| name.as_str()));
            self.missed(what, u64::from(part.is_lowest));
        }
    }

    /// The entities that stand in the box, in the order in which they came, each with its riders.
    pub(super) fn entities(&mut self) -> Result<Vec<SchemEntity>, Trouble> {
        let mut roots: Vec<(u32, EntityId)> = Vec::new();
        let (dimension, area, ids) = (self.dimension, self.area, self.ids);
        let mut damaged = 0;
        self.view.for_each_entity(|found| {
            match found {
                Ok((id, entity)) => {
                    let position = entity.position;
                    if position.dimension() == dimension && area.contains(position.block()) {
                        let origin = self::origin(&ids, &entity);
                        roots.push((origin.map_or(u32::MAX, |origin| origin.index), id));
                    }
                }
                Err(_) => damaged += 1,
            }
            ControlFlow::<()>::Continue(())
        })?;
        self.missed("entities that are damaged", damaged);
        roots.sort_unstable();
        let mut out = Vec::new();
        for (_, id) in roots {
            let Some(entity) = self.view.entity(id)? else { continue };
            let whole = crate::codec::whole_entity(self.view, &self.catalog, id, &entity)?;
            let nbt = match whole {
                crate::codec::Whole::Rides | crate::codec::Whole::Player => continue,
                crate::codec::Whole::NoNbt => {
                    self.missed("entities without NBT", 1);
                    continue;
                }
                crate::codec::Whole::Nbt(nbt) => nbt,
            };
            let origin = origin(&ids, &entity);
            if let Some(origin) = &origin {
                self.data_version = self.data_version.max(Some(origin.data_version));
            }
            match entity::from_world(&nbt, entity.position, origin.as_ref(), area.min()) {
                Ok(entity) => out.push(entity),
                Err(_) => self.missed("entities whose NBT is none", 1),
            }
        }
        Ok(out)
    }
}

/// Purpose of a way through a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Everything is counted and noted.
    Count,
    /// Only the numbers are wanted.
    Write,
}

/// Why a box could not be read through.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    #[error(transparent)]
    Store(#[from] Error),
    #[error(transparent)]
    Schem(#[from] SchemError),
}

fn origin(ids: &Ids, entity: &cg_format::entity::Entity) -> Option<Origin> {
    Origin::decode(entity.component(ids.entity_origin?)?).ok()
}
