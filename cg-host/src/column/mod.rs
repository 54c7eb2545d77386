//! Columns as hosts hold them.

mod cells;

use cg_format::entity::EntityPos;
use cg_format::{BlockPos, ChunkAt, EntityId};

pub(crate) use cells::Unpacked;
pub use cells::{Cells, Form};

use crate::error::Error;
use crate::place::ColumnAt;
use crate::problem::ColumnProblem;

/// A column of sections with everything in it, in the numbers of a [binding](crate::Binding).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// Its place and heights.
    pub at: ColumnAt,
    /// The tick to which `due` of the scheduled ones is relative.
    pub tick: i64,
    /// Ascending by height.
    pub sections: Vec<Section>,
    /// Each in a cell of a section.
    pub block_entities: Vec<BlockEntity>,
    /// Each with an id of its own.
    pub entities: Vec<ColumnEntity>,
    /// In any order.
    pub scheduled: Vec<Scheduled>,
    /// Of a load: blocks, block entities and entities that the host does not know. Not read by a save.
    pub kept: u64,
    /// Of a load: heights that cannot be read, ascending. A save does not touch them.
    pub damaged: Vec<i32>,
}

/// A section: a chunk as a host holds it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Section {
    /// The chunk's height.
    pub y: i32,
    /// Numbers of blocks. Without a layer each cell is air.
    pub layers: Vec<Cells>,
    /// Numbers of biomes. `None`: stored ones stay.
    pub biomes: Option<Cells>,
    /// 2,048 bytes. `None`: stored ones stay.
    pub block_light: Option<Box<[u8]>>,
    /// 2,048 bytes. `None`: stored ones stay.
    pub sky_light: Option<Box<[u8]>>,
}

/// The data of a block that has more than its state.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BlockEntity {
    /// The block.
    pub at: BlockPos,
    /// Bytes that are not looked into: NBT, of the game's kind.
    pub nbt: Vec<u8>,
}

/// An entity in a column.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnEntity {
    /// Its id.
    pub id: EntityId,
    /// The host's number of its kind.
    pub kind: u32,
    /// Where it is.
    pub position: EntityPos,
    /// Bytes that are not looked into: NBT, of the game's kind.
    pub nbt: Vec<u8>,
}

impl Eq for ColumnEntity {}

impl std::hash::Hash for ColumnEntity {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.id, self.kind, self.position.dimension(), self.position.block()).hash(state);
        self.position.fraction().map(f32::to_bits).hash(state);
        self.nbt.hash(state);
    }
}

/// A block that is to be updated at a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scheduled {
    /// The block.
    pub at: BlockPos,
    /// The tick.
    pub due: i64,
    /// The host's number of the block for which it was scheduled.
    pub block: u32,
    /// Lower ones come first within a tick.
    pub priority: i32,
}

impl Column {
    /// A column without content.
    pub const fn new(at: ColumnAt) -> Self {
        Self {
            at,
            tick: 0,
            sections: Vec::new(),
            block_entities: Vec::new(),
            entities: Vec::new(),
            scheduled: Vec::new(),
            kept: 0,
            damaged: Vec::new(),
        }
    }

    /// Sorts what has no order, so that equal columns are equal: a host may keep it in a map.
    pub(crate) fn sort(&mut self) {
        self.block_entities.sort_unstable_by_key(|one| one.at);
        self.entities.sort_unstable_by_key(|one| one.id);
        self.scheduled.sort_unstable_by_key(|one| (one.due, one.priority, one.at, one.block));
    }

    /// About the memory that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let cells = |cells: &Cells| {
            cells.words.len()
                + cells.palette.as_ref().map_or(0, |palette| 4 * palette.len())
                + size_of::<Cells>()
        };
        let section = |section: &Section| {
            let light = [&section.block_light, &section.sky_light];
            section.layers.iter().chain(&section.biomes).map(cells).sum::<usize>()
                + light.into_iter().flatten().map(|light| light.len()).sum::<usize>()
                + size_of::<Section>()
        };
        self.sections.iter().map(section).sum::<usize>()
            + self.block_entities.iter().map(|one| one.nbt.len() + size_of::<BlockEntity>()).sum::<usize>()
            + self.entities.iter().map(|one| one.nbt.len() + size_of::<ColumnEntity>()).sum::<usize>()
            + self.scheduled.len() * size_of::<Scheduled>()
            + size_of::<Self>()
    }

    /// Checks what needs no world: order of sections, positions, lengths.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Self { at, .. } = self;
        at.chunks()?;
        let mut before = None;
        for section in &self.sections {
            let y = section.y;
            if !(at.min_y..=at.max_y).contains(&y) {
                return Err(at.refuse(ColumnProblem::Height { y, min_y: at.min_y, max_y: at.max_y }));
            }
            if before.is_some_and(|before| before >= y) {
                return Err(at.refuse(ColumnProblem::SectionOrder { y }));
            }
            before = Some(y);
            for light in [&section.block_light, &section.sky_light].into_iter().flatten() {
                if light.len() != 2048 {
                    return Err(at.refuse(ColumnProblem::Light { y, found: light.len() }));
                }
            }
        }
        for BlockEntity { at: block, .. } in &self.block_entities {
            self.check_placed(*block, "a block entity", "a block entity without a section")?;
        }
        let mut blocks: Vec<BlockPos> = self.block_entities.iter().map(|one| one.at).collect();
        blocks.sort_unstable();
        if let Some((block, _)) = blocks.iter().zip(blocks.iter().skip(1)).find(|(one, next)| one == next) {
            return Err(at.refuse(ColumnProblem::BlockTwice { block: *block }));
        }
        if let Some(other) = self.entities.iter().find(|one| one.position.dimension() != at.dimension) {
            let dimension = other.position.dimension().get();
            return Err(at.refuse(ColumnProblem::OtherDimension { id: other.id, dimension }));
        }
        for Scheduled { at: block, .. } in &self.scheduled {
            self.check_placed(*block, "a scheduled tick", "a scheduled tick without a section")?;
        }
        let mut ids: Vec<EntityId> = self.entities.iter().map(|entity| entity.id).collect();
        ids.sort_unstable();
        let mut pairs = ids.iter().zip(ids.iter().skip(1));
        if let Some((id, _)) = pairs.find(|(one, next)| one == next) {
            let id = *id;
            return Err(at.refuse(ColumnProblem::EntityTwice { id }));
        }
        if self.sections.is_empty() && !self.entities.is_empty() {
            return Err(at.refuse(ColumnProblem::NoSection));
        }
        Ok(())
    }

    /// Checks that a block is in a section of the column.
    fn check_placed(&self, block: BlockPos, what: &'static str, without: &'static str) -> Result<(), Error> {
        let chunk = block.chunk();
        if !self.at.has(ChunkAt::new(self.at.dimension, chunk)) {
            return Err(self.at.refuse(ColumnProblem::Outside { what, block }));
        }
        match self.sections.binary_search_by_key(&chunk.y(), |section| section.y.into()) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.at.refuse(ColumnProblem::Outside { what: without, block })),
        }
    }
}
