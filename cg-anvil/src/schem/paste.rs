//! One chunk with a schematic's blocks put over what was there.

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::{BlockId, CellOrder, ComponentId, LocalPos, SchemaView};

use super::block_entity;
use super::slab::Part;
use crate::mapping::Ids;
use crate::mapping::block_entities::{list_block_entities, listed_block_entities};

/// Block that a schematic's index becomes: that of layer 0, and whether water lies over it.
pub(super) type Kind = (BlockId, bool);

/// A block entity of a chunk: its cell and its NBT.
pub(super) type Inside = (LocalPos, Vec<u8>);

/// Puts blocks into chunks.
pub(super) struct Paste<'a, S: SchemaView> {
    pub(super) schema: &'a S,
    pub(super) ids: Ids,
    /// By index of the schematic.
    pub(super) kinds: &'a [Option<Kind>],
    /// Block that fills the rest of a chunk that was not there.
    pub(super) air: BlockId,
    pub(super) water: BlockId,
}

/// Why a chunk could not be pasted into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum PasteError {
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error("it has components that cannot be read and would be lost")]
    Unread,
}

impl<S: SchemaView> Paste<'_, S> {
    /// The chunk as it is afterwards. What the schematic does not cover stays as it was.
    ///
    /// Where it covers, blocks with all their layers, components and block entities are replaced; entities stay.
    /// Light is no longer right and goes.
    pub(super) fn chunk(
        &self,
        old: Option<&Chunk>,
        part: &Part,
        slab: &[u16],
        block_entities: Vec<Inside>,
    ) -> Result<Chunk, PasteError> {
        if old.is_some_and(Chunk::has_unread_components) {
            return Err(PasteError::Unread);
        }
        let kind =
            |index: u16| self.kinds.get(usize::from(index)).copied().flatten().unwrap_or((self.air, false));
        let only = if part.is_whole() { part.only(slab).map(kind).filter(|(_, wet)| !wet) } else { None };
        let mut chunk = match only {
            Some((block, _)) => Chunk::filled(block, self.schema)?,
            None => self.mixed(old, part, slab, kind)?,
        };
        if let Some(old) = old {
            self.keep(old, &mut chunk, part)?;
        }
        self.own(&mut chunk, block_entities)?;
        Ok(chunk)
    }

    fn mixed(
        &self,
        old: Option<&Chunk>,
        part: &Part,
        slab: &[u16],
        kind: impl Fn(u16) -> Kind,
    ) -> Result<Chunk, PasteError> {
        let mut cells: Box<[BlockId; LocalPos::COUNT]> =
            vec![self.air; LocalPos::COUNT].try_into().expect("it was made with this length");
        if let Some(old) = old {
            old.unpack(CellOrder::Yzx, &mut cells);
        }
        let mut wet = Vec::new();
        for (first, count, at) in part.rows() {
            let from = usize::from(CellOrder::Yzx.index(first));
            let row = slab.get(at..at + count).unwrap_or_default();
            for ((index, cell), x) in row.iter().zip(cells.iter_mut().skip(from)).zip(first.x()..) {
                let (block, is_wet) = kind(*index);
                *cell = block;
                if is_wet {
                    wet.push(LocalPos::new(x, first.y(), first.z()));
                }
            }
        }
        let mut chunk = Chunk::from_blocks(&cells, CellOrder::Yzx, self.schema)?;
        for cell in wet {
            chunk.push_layer(cell, self.water, self.schema)?;
        }
        Ok(chunk)
    }

    /// Carries over what the schematic does not replace.
    fn keep(&self, old: &Chunk, chunk: &mut Chunk, part: &Part) -> Result<(), PasteError> {
        for (at, block) in old.upper_layers().filter(|(at, _)| !part.contains(at.cell)) {
            debug_assert_eq!(usize::from(at.layer), chunk.layer_count(at.cell), "layers come from below");
            chunk.push_layer(at.cell, block, self.schema)?;
        }
        for (component, at, bytes) in old.components().filter(|(_, at, _)| !part.contains(at.cell)) {
            chunk.set_component(at, component, bytes)?;
        }
        for entity in old.entities() {
            chunk.add_entity(*entity);
        }
        let Ids { block_light, sky_light, block_entities, .. } = self.ids;
        for (kind, bytes) in old.sides() {
            if Some(kind) == block_entities {
                // Those in the part's blocks are replaced with them.
                let listed = listed_block_entities(bytes).unwrap_or_default();
                let stays = |raw: &&[u8]| {
                    let cell = block_entity::place(raw);
                    cell.is_none_or(|cell| cell.chunk() != part.pos || !part.contains(cell.local()))
                };
                let listed: Vec<_> = listed.into_iter().filter(stays).collect();
                if !listed.is_empty() {
                    chunk.set_side(kind, list_block_entities(listed.into_iter()));
                }
            } else if Some(kind) != block_light && Some(kind) != sky_light {
                chunk.set_side(kind, bytes.to_vec());
            }
        }
        Ok(())
    }

    /// Gives block entities to their blocks, or puts them beside those that cannot own one, or own one already.
    fn own(&self, chunk: &mut Chunk, block_entities: Vec<Inside>) -> Result<(), PasteError> {
        let mut beside: Vec<Vec<u8>> = Vec::new();
        let mut owned = std::collections::HashSet::new();
        for (cell, nbt) in block_entities {
            match self.ids.block_entity {
                Some(component) if self.owns(chunk.block(cell), component) && owned.insert(cell) => {
                    chunk.set_component(CellLayer::base(cell), component, &nbt)?;
                }
                _ => beside.push(nbt),
            }
        }
        if let Some(kind) = self.ids.block_entities.filter(|_| !beside.is_empty()) {
            let before = chunk.remove_side(kind).unwrap_or_default();
            let before = listed_block_entities(&before).unwrap_or_default();
            let all: Vec<_> = before.into_iter().chain(beside.iter().map(Vec::as_slice)).collect();
            chunk.set_side(kind, list_block_entities(all.into_iter()));
        }
        Ok(())
    }

    fn owns(&self, block: BlockId, component: ComponentId) -> bool {
        self.schema.components_of(block).is_some_and(|owned| owned.contains(&component))
    }
}
