//! A schematic into a world.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::entity::{Entity, Owner};
use cg_format::{BlockBox, BlockId, BlockPos, ChunkAt, ChunkPos, Dimension, EntityId};
use cg_minecraft::{name, water};
use cg_registry::Catalog;
use cg_snapshot::schem::{Cells, Grid, GridShape};
use cg_store::prelude::Durability;
use cg_store::{Error, World};
use serde::Serialize;

use super::biomes::Biomes;
use super::block_entity;
use super::file::{SchemFile, SchemFileError};
use super::paste::{Inside, Paste, PasteError};
use super::slab::{Slab, Slabs, TooWide};
use super::standing::Standing;
use crate::mapping::Ids;

/// About how many bytes a transaction takes before the next one is begun. Far below what any world refuses.
const TRANSACTION_BYTES: usize = 12 << 20;

/// Report of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ImportReport {
    /// Blocks that were put, those of air too.
    pub blocks: u64,
    /// Chunks that were written.
    pub chunks: u64,
    /// States that the world had no block for.
    pub new_states: u64,
    /// Block entities that arrived.
    pub block_entities: u64,
    /// Of these, block entities whose block cannot own one: they are beside it in the chunk.
    pub beside_their_block: u64,
    /// Entities that arrived, those without a chunk too.
    pub entities: u64,
    /// Entities with another UUID than the schematic gives them, because another entity has that one or there was none.
    pub rekeyed: u64,
    /// Blocks, or columns of them, whose biome arrived.
    pub biomes: u64,
    /// In how many transactions: one is all or nothing.
    pub transactions: u64,
    /// Content that the schematic holds and the world does not: in words, and how often.
    pub not_carried: BTreeMap<String, u64>,
}

/// Why an import ended early. What was committed before stays; the same import again makes it whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The file cannot be read, or changed since it was.
    #[error(transparent)]
    File(#[from] SchemFileError),
    /// The world refused something.
    #[error(transparent)]
    Store(Error),
    /// The box would reach beyond the world.
    #[error("at ({}, {}, {}) the schematic would reach beyond the world", .0.x, .0.y, .0.z)]
    OutOfWorld(BlockPos),
    /// The schematic is too wide.
    #[error(transparent)]
    TooWide(#[from] TooWide),
    /// A chunk cannot be changed.
    #[error("chunk {at}: {why}")]
    Chunk {
        /// The chunk.
        at: ChunkAt,
        /// Why.
        why: String,
    },
}

impl From<Error> for ImportError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Puts a schematic into a dimension, its lowest corner at a block; `watch` is told how many blocks are there so far.
///
/// Its `Offset` is not applied. Every block of its box replaces what was there, air too, with the block's components;
/// entities that are there stay. A chunk that was not there is air outside of the box. What fits one transaction
/// arrives all or nothing; a larger schematic arrives in several, from the lowest layer to the highest, each chunk with
/// the entities that stand in it, and those without a chunk last. Everything is on the disk when this returns, whatever the
/// world's own durability.
///
/// The same schematic at the same place again replaces its entities as well as its blocks: their UUIDs follow from the
/// file and the place. So an import that was stopped is made whole by doing it again.
///
/// Holds at most sixteen layers of the schematic, its block entities and entities in memory.
///
/// # Errors
/// [`ImportError`].
pub fn import(
    file: &SchemFile,
    world: &World,
    dimension: Dimension,
    corner: BlockPos,
    mut watch: impl FnMut(u64),
) -> Result<ImportReport, ImportError> {
    let area = area(corner, file.schematic.size()).ok_or(ImportError::OutOfWorld(corner))?;
    let slabs = Slabs::new(area)?;
    let ids = Ids::register_for_schematic(world)?;
    let mut importer = Importer {
        file,
        world,
        dimension,
        area,
        ids,
        pending: Pending::default(),
        report: ImportReport::default(),
        inside: HashMap::new(),
        standing: BTreeMap::new(),
        written: HashSet::new(),
    };
    importer.take_block_entities();
    let catalog = importer.register()?;
    importer.note_not_carried();
    importer.take_entities(&catalog)?;
    importer.blocks(slabs, &catalog, &mut watch)?;
    importer.note_left_over();
    importer.put_other_entities()?;
    importer.commit()?;
    world.flush()?;
    importer.report.chunks = importer.written.len() as u64;
    Ok(importer.report)
}

/// Looks whether a schematic can be put with its lowest corner at a block, before a world is made for it.
///
/// # Errors
/// [`ImportError::OutOfWorld`], [`ImportError::TooWide`].
pub fn check_place(file: &SchemFile, corner: BlockPos) -> Result<(), ImportError> {
    let area = area(corner, file.schematic.size()).ok_or(ImportError::OutOfWorld(corner))?;
    Slabs::new(area)?;
    Ok(())
}

/// The box of a schematic whose lowest corner is a block.
fn area(corner: BlockPos, size: [u16; 3]) -> Option<BlockBox> {
    let [x, y, z] = size.map(|side| i64::from(side) - 1);
    let far = BlockPos::new(corner.x.checked_add(x)?, corner.y.checked_add(y)?, corner.z.checked_add(z)?);
    Some(BlockBox::new(corner, far))
}

pub(super) struct Importer<'a> {
    pub(super) file: &'a SchemFile,
    pub(super) world: &'a World,
    pub(super) dimension: Dimension,
    pub(super) area: BlockBox,
    pub(super) ids: Ids,
    pub(super) pending: Pending,
    pub(super) report: ImportReport,
    /// Block entities that wait for their chunk.
    pub(super) inside: HashMap<ChunkPos, Vec<Inside>>,
    /// Entities that wait for their chunk.
    pub(super) standing: BTreeMap<ChunkAt, Vec<Standing>>,
    written: HashSet<ChunkPos>,
}

/// Writes of the next transaction.
#[derive(Default)]
pub(super) struct Pending {
    chunks: BTreeMap<ChunkAt, Chunk>,
    pub(super) entities: BTreeMap<EntityId, Entity>,
    /// About how many bytes all this takes.
    pub(super) len_bytes: usize,
}

impl Importer<'_> {
    pub(super) fn not_carried(&mut self, what: impl Into<String>, count: u64) {
        if count > 0 {
            *self.report.not_carried.entry(what.into()).or_default() += count;
        }
    }

    fn note_not_carried(&mut self) {
        let schematic = &self.file.schematic;
        if schematic.metadata().len() > 1 {
            self.not_carried("Metadata", 1);
        }
        for (field, count) in schematic.unknown_fields() {
            self.not_carried(field.as_str(), *count);
        }
    }

    /// Names the block entities that no chunk took: those of a schematic without blocks.
    fn note_left_over(&mut self) {
        let left = self.inside.values().map(|inside| inside.len() as u64).sum();
        self.not_carried("block entities without a block", left);
    }

    /// Gives each block entity to the chunk in which it will be.
    fn take_block_entities(&mut self) {
        let corner = self.area.min();
        let (mut outside, mut damaged) = (0, 0);
        for entity in self.file.schematic.block_entities() {
            let [x, y, z] = entity.pos.map(i64::from);
            let at = [corner.x.checked_add(x), corner.y.checked_add(y), corner.z.checked_add(z)];
            let at = if let [Some(x), Some(y), Some(z)] = at { Some(BlockPos::new(x, y, z)) } else { None };
            let Some(at) = at.filter(|at| self.area.contains(*at)) else {
                outside += 1;
                continue;
            };
            match block_entity::to_world(&entity, at) {
                Ok(nbt) => self.inside.entry(at.chunk()).or_default().push((at.local(), nbt)),
                Err(_) => damaged += 1,
            }
        }
        self.not_carried("block entities outside of its box", outside);
        self.not_carried("block entities nested too deeply", damaged);
    }

    /// Puts all blocks and biomes, slab by slab.
    fn blocks(
        &mut self,
        slabs: Slabs,
        catalog: &Catalog,
        watch: &mut impl FnMut(u64),
    ) -> Result<(), ImportError> {
        let schematic = &self.file.schematic;
        let schema = catalog.current_schema();
        let kinds = self.kinds(catalog)?;
        let water = catalog.block_id(water::WATER).unwrap_or_default();
        let paste =
            Paste { schema: &schema, ids: self.ids, kinds: &kinds, air: block(catalog, name::AIR), water };
        let palette: HashMap<u16, Arc<str>> = schematic
            .biomes()
            .into_iter()
            .flat_map(Grid::states)
            .map(|(index, biome, _)| (index, biome.into()))
            .collect();
        let mut cells = schematic.blocks().map(|grid| self.file.open(grid)).transpose()?;
        let mut biomes = schematic.biomes().map(|grid| self.file.open(grid)).transpose()?;
        let of_columns = schematic.biomes().is_some_and(|grid| grid.shape() == GridShape::Columns);
        if cells.is_none() && biomes.is_none() {
            return Ok(());
        }
        let (mut slab_cells, mut slab_biomes) = (Vec::new(), Vec::new());
        for slab in slabs.iter() {
            if let Some(cells) = &mut cells {
                self.fill(cells, &mut slab_cells, slab.cells())?;
                self.report.blocks += slab.cells() as u64;
            }
            if let Some(biomes) = biomes.as_mut().filter(|biomes| biomes.left() > 0) {
                let count = if of_columns { slab.layer_cells() } else { slab.cells() };
                self.fill(biomes, &mut slab_biomes, count)?;
                self.report.biomes += count as u64;
            }
            if of_columns {
                // One layer says it for all.
                while slab_biomes.len() < slab.cells() {
                    slab_biomes.extend_from_within(..slab.layer_cells());
                }
            }
            let found =
                (cells.is_some().then_some(&slab_cells[..]), biomes.is_some().then_some(&slab_biomes[..]));
            self.slab(&slab, &paste, found, &palette)?;
            watch(self.report.blocks);
        }
        Ok(())
    }

    fn slab<S: cg_format::SchemaView>(
        &mut self,
        slab: &Slab,
        paste: &Paste<'_, S>,
        (cells, biomes): (Option<&[u16]>, Option<&[u16]>),
        palette: &HashMap<u16, Arc<str>>,
    ) -> Result<(), ImportError> {
        for part in slab.parts() {
            let at = ChunkAt::new(self.dimension, part.pos);
            let failed = |error: PasteError| ImportError::Chunk { at, why: error.to_string() };
            let pending = self.pending.chunks.remove(&at);
            self.pending.len_bytes -= pending.as_ref().map_or(0, Chunk::memory_bytes);
            let stored = if pending.is_some() { None } else { self.world.load(at)? };
            let old = pending.as_ref().or(stored.as_deref());
            let mut chunk = match (cells, old) {
                (Some(cells), _) => {
                    let inside = self.inside.get_mut(&part.pos).map(|all| {
                        let here = |(cell, _): &mut Inside| part.contains(*cell);
                        all.extract_if(.., here).collect::<Vec<_>>()
                    });
                    let inside = inside.unwrap_or_default();
                    let count = inside.len() as u64;
                    let beside = beside(old, &self.ids);
                    let chunk = paste.chunk(old, &part, cells, inside).map_err(failed)?;
                    self.report.block_entities += count;
                    self.report.beside_their_block +=
                        self::beside(Some(&chunk), &self.ids).saturating_sub(beside);
                    chunk
                }
                (None, Some(old)) => old.clone(),
                (None, None) => {
                    Chunk::filled(paste.air, paste.schema).map_err(|error| failed(error.into()))?
                }
            };
            if let Some(biomes) = biomes {
                Biomes::paste(&mut chunk, &self.ids, &part, biomes, palette);
            }
            if let Some(kind) = self.ids.data_version {
                chunk.set_side(kind, self.file.schematic.data_version().to_string().into_bytes());
            }
            self.pending.len_bytes += chunk.memory_bytes();
            self.pending.chunks.insert(at, chunk);
            self.written.insert(part.pos);
            self.put_entities(at, &Owner::Chunk(at))?;
            self.commit_if_full()?;
        }
        Ok(())
    }

    /// Writes what is pending if it is enough for a transaction.
    pub(super) fn commit_if_full(&mut self) -> Result<(), ImportError> {
        if self.pending.len_bytes > TRANSACTION_BYTES { self.commit() } else { Ok(()) }
    }

    /// Writes everything pending in one transaction.
    fn commit(&mut self) -> Result<(), ImportError> {
        let Pending { chunks, entities, .. } = std::mem::take(&mut self.pending);
        if chunks.is_empty() && entities.is_empty() {
            return Ok(());
        }
        self.world.transaction_at(Durability::Process, |tx| {
            for (at, chunk) in chunks {
                tx.save(at, chunk);
            }
            for (id, entity) in entities {
                tx.put_entity(id, entity);
            }
            Ok::<_, Error>(())
        })?;
        self.report.transactions += 1;
        Ok(())
    }

    /// Reads the cells that come next.
    pub(super) fn fill(
        &self,
        cells: &mut Cells<File>,
        out: &mut Vec<u16>,
        count: usize,
    ) -> Result<(), ImportError> {
        out.resize(count, 0);
        cells.read(out).map_err(|error| self.file.failed(error))?;
        Ok(())
    }
}

/// The block of a name that was registered.
pub(super) fn block(catalog: &Catalog, name: &str) -> BlockId {
    catalog.block_id(name).expect("it was just registered")
}

/// Block entities of a chunk that no block owns.
fn beside(chunk: Option<&Chunk>, ids: &Ids) -> u64 {
    let side = chunk.zip(ids.block_entities).and_then(|(chunk, kind)| chunk.side(kind));
    side.and_then(crate::mapping::block_entities::listed_block_entities)
        .map_or(0, |listed| listed.len() as u64)
}
