//! Columns as chunks, with the job's own numbers for block states.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::{BlockId, CellOrder, ComponentId, ComponentShape, LocalPos, SchemaView};
use cg_minecraft::{kind, name, water};
use cg_registry::NameError;

use super::prepared::{LocalState, PreparedColumn, PreparedEntities};
use super::slot::groups_of;
use crate::column::{Blocks, Column, Fault, Place, cell};
use crate::mapping::block_entities::list_block_entities;
use crate::mapping::kept::Mask;
use crate::mapping::origin::ListedIn;
use crate::mapping::{Ids, Leftovers};
use crate::write;

/// A block entity of a section: the cell at which it is the first, and its NBT.
type Inside = (Option<u16>, Vec<u8>);

/// The chunks of a job's columns, and the block states that were met in them.
pub(crate) struct Builder<'a> {
    ids: &'a Ids,
    /// Blocks of other namespaces that are seen with a block entity.
    seen: HashSet<String>,
    states: Vec<LocalState>,
    numbers: HashMap<Arc<str>, u64>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(ids: &'a Ids, seen: HashSet<String>) -> Self {
        Self { ids, seen, states: Vec::new(), numbers: HashMap::new() }
    }

    /// The block states by the job's own numbers.
    pub(crate) fn into_states(self) -> Vec<LocalState> {
        self.states
    }

    /// A column that was just read, and written at this time.
    pub(crate) fn column(&mut self, mut column: Column, timestamp: u32) -> PreparedColumn {
        let left = Leftovers::take(&mut column, timestamp).encode();
        let places = column.block_entity_places();
        let status = column.status();
        let Column { pos, data_version, sections, block_entities, entities, carried, .. } = column;
        let Column { not_carried, problems, .. } = column;
        let mut is_torn = problems.iter().any(|problem| !matches!(problem.fault, Fault::LightLength { .. }));
        let mut problems: Vec<_> = problems.iter().map(ToString::to_string).collect();
        problems.extend(not_carried.iter().map(|name| format!("{name}: it is not as the game writes it")));
        let mut mask = Mask::default();
        let mut rest = Column { carried, ..Column::new(pos, data_version) };
        // By section: the component of a cell, or one more that no block can own.
        let mut inside: HashMap<usize, Vec<Inside>> = HashMap::new();
        for (block_entity, place) in block_entities.into_iter().zip(places) {
            match place {
                Place::Cell { section, cell } => {
                    inside.entry(section).or_default().push((Some(cell), block_entity.nbt));
                }
                Place::Doubled { section, .. } => {
                    inside.entry(section).or_default().push((None, block_entity.nbt));
                }
                Place::NoSection | Place::Elsewhere => rest.block_entities.push(block_entity),
            }
        }
        let mut chunks = Vec::new();
        let mut len_bytes = 0;
        for (index, mut section) in sections.into_iter().enumerate() {
            let Some(blocks) = section.blocks.take() else {
                rest.sections.push(section);
                continue;
            };
            match self.chunk(&blocks, inside.remove(&index).unwrap_or_default()) {
                Ok(mut chunk) => {
                    let sides = [
                        (self.ids.biomes, section.biomes),
                        (self.ids.block_light, section.block_light),
                        (self.ids.sky_light, section.sky_light),
                        (self.ids.status, status.clone().map(String::into_bytes)),
                    ];
                    for (kind, bytes) in sides {
                        if let (Some(kind), Some(bytes)) = (kind, bytes) {
                            chunk.set_side(kind, bytes);
                        }
                    }
                    len_bytes += chunk.memory_bytes();
                    chunks.push((section.y, chunk));
                }
                Err(error) => {
                    problems.push(format!("section {}: {error}", section.y));
                    mask.heights.insert(section.y);
                    is_torn = true;
                }
            }
        }
        let rest = write::column(&rest).unwrap_or_else(|error| {
            problems.push(format!("what stands beside the sections: {error}"));
            mask.is_bare = true;
            write::column(&Column::new(pos, data_version)).expect("an empty column can be written")
        });
        let groups = groups_of(&entities);
        let (place, column) = (ListedIn::Column, pos);
        let entities = PreparedEntities { place, column, data_version, groups, left: None };
        len_bytes += rest.len() + left.len() + entities.len_bytes();
        let kept = None;
        PreparedColumn { pos, chunks, rest, left, entities, problems, is_torn, mask, kept, len_bytes }
    }

    /// A section's blocks with the block entities in it, each with the cell at which it is the first.
    fn chunk(&mut self, blocks: &Blocks, block_entities: Vec<Inside>) -> Result<Chunk, SectionError> {
        // What no cell shows is not there: a palette entry without cells gets no id.
        let kinds: Result<Vec<_>, _> = blocks
            .palette
            .iter()
            .zip(blocks.counts())
            .map(|(state, count)| if count == 0 { Ok((BlockId::new(0), false)) } else { self.kind(state) })
            .collect();
        let kinds = kinds?;
        let kind_of = |cell: u16| {
            let index = usize::from(blocks.index(cell));
            *kinds.get(index).expect("the decoder checked every index against the palette")
        };
        let any_wet = kinds.iter().any(|(_, wet)| *wet);
        let water = if any_wet { Some(self.number(&Arc::from(water::WATER))?) } else { None };
        let schema = LocalSchema::new(&self.states, self.ids.block_entity);
        let mut chunk = if blocks.indices.is_none() {
            Chunk::filled(kind_of(0).0, &schema)?
        } else {
            let mut cells: Box<[BlockId; LocalPos::COUNT]> =
                vec![BlockId::new(0); LocalPos::COUNT].try_into().expect("it was made with this length");
            for (block, cell) in cells.iter_mut().zip(0..) {
                *block = kind_of(cell).0;
            }
            Chunk::from_blocks(&cells, CellOrder::Yzx, &schema)?
        };
        if let Some(water) = water {
            for cell in LocalPos::all().filter(|cell| kind_of(CellOrder::Yzx.index(*cell)).1) {
                chunk.push_layer(cell, water, &schema)?;
            }
        }
        let mut beside = Vec::new();
        for (at, nbt) in block_entities {
            let cell = at.and_then(|at| CellOrder::Yzx.cell(at));
            let owner = cell.filter(|cell| self.owns(chunk.block(*cell)));
            match (owner, self.ids.block_entity) {
                (Some(cell), Some(component)) => {
                    chunk.set_component(CellLayer::base(cell), component, &nbt)?;
                }
                _ => beside.push(nbt),
            }
        }
        if let Some(side) = self.ids.block_entities.filter(|_| !beside.is_empty()) {
            chunk.set_side(side, list_block_entities(beside.iter().map(Vec::as_slice)));
        }
        Ok(chunk)
    }

    /// The job's number of a state's layer 0, and whether water belongs into layer 1.
    fn kind(&mut self, state: &Arc<str>) -> Result<(BlockId, bool), NameError> {
        Ok(match water::split(state) {
            Some(dry) => (self.number(&Arc::from(dry))?, true),
            None => (self.number(state)?, false),
        })
    }

    fn number(&mut self, state: &Arc<str>) -> Result<BlockId, NameError> {
        if let Some(number) = self.numbers.get(state) {
            return Ok(BlockId::new(*number));
        }
        let number = self.states.len() as u64;
        let owns = kind::owns_block_entity(state) || self.seen.contains(kind::base(state));
        self.states.push(LocalState { name: name::of(state)?, is_opaque: kind::is_opaque(state), owns });
        self.numbers.insert(Arc::clone(state), number);
        Ok(BlockId::new(number))
    }

    fn owns(&self, block: BlockId) -> bool {
        self.states.get(block.get() as usize).is_some_and(|state| state.owns)
    }
}

/// Why a section's blocks make no chunk.
#[derive(Debug, thiserror::Error)]
enum SectionError {
    #[error("a block state's name: {0}")]
    Name(#[from] NameError),
    #[error(transparent)]
    Edit(#[from] EditError),
}

/// The schema of a job's own numbers.
struct LocalSchema<'a> {
    states: &'a [LocalState],
    block_entity: Option<ComponentId>,
}

impl<'a> LocalSchema<'a> {
    const fn new(states: &'a [LocalState], block_entity: Option<ComponentId>) -> Self {
        Self { states, block_entity }
    }
}

impl SchemaView for LocalSchema<'_> {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        let owns = self.states.get(block.get() as usize)?.owns;
        Some(if owns { self.block_entity.as_slice() } else { &[] })
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        (Some(component) == self.block_entity).then_some(ComponentShape::Variable)
    }

    fn default_bytes(&self, _: ComponentId) -> &[u8] {
        &[]
    }

    fn is_opaque(&self, _: BlockId) -> bool {
        true
    }
}

const _: () = assert!(cell(0, 1, 0) == 256 && cell(0, 0, 1) == 16, "the game's order is CellOrder::Yzx");
