//! Edits a chunk.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::MAX_UPPER_LAYERS;
use super::blocks::Blocks;
use super::column::Column;
use super::components::known_shape;
use super::instances::CellLayer;
use super::layers::Upper;
use super::owned::Chunk;
use super::palette::{FirstMet, Palette};
use crate::side;
use crate::wire::bits;
use crate::{BlockId, ComponentId, ComponentShape, EntityId, LocalPos, SchemaView, SideKind};

/// Why a chunk was not edited. After an error it is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The schema does not know the block, so its components are unknown.
    #[error("block {} is unknown to the schema; register it first", .block.get())]
    UnknownBlock {
        /// The block.
        block: BlockId,
    },
    /// The schema gives a block a component and has no shape for it.
    #[error("component {:#x} of a block has no shape in the schema", .component.get())]
    UnknownComponent {
        /// The component.
        component: ComponentId,
    },
    /// An index of a cell is past the palette that was given with it.
    #[error("a cell has index {index} in a palette of {count}")]
    NoPaletteEntry {
        /// The largest index.
        index: u16,
        /// Entries of the palette.
        count: usize,
    },
    /// The chunk contains component data that its schema does not explain, and this edit would change which blocks own
    /// that data. Restore the pack of that data, or drop it with [`Chunk::discard_unread_components`].
    #[error("block {} may own component data that the schema does not explain", .block.get())]
    UnreadComponents {
        /// The block that would be added or removed.
        block: BlockId,
    },
    /// The cell has no such layer.
    #[error("cell {:?} has {count} layers, none numbered {}", .at.cell, .at.layer)]
    NoLayer {
        /// The requested block.
        at: CellLayer,
        /// The layers that the cell has.
        count: usize,
    },
    /// The cell has the maximum number of layers.
    #[error("cell {cell:?} has 256 layers, which is the most")]
    TooManyLayers {
        /// The cell.
        cell: LocalPos,
    },
    /// The block does not have the component.
    #[error("the block at {:?} layer {} has no component {:#x}", .at.cell, .at.layer, .component.get())]
    NoComponent {
        /// The requested block.
        at: CellLayer,
        /// The component.
        component: ComponentId,
    },
    /// The bytes do not have the width of a fixed-size component.
    #[error("component {:#x} takes {width_bytes} bytes, not {found}", .component.get())]
    WrongWidth {
        /// The component.
        component: ComponentId,
        /// The width of the component.
        width_bytes: u32,
        /// The length of the given bytes.
        found: usize,
    },
    /// The components that a schema gives to the chunk's blocks would take too much memory.
    #[error("with component {:#x} the chunk's components take more than {limit_bytes} bytes", .component.get())]
    TooManyBytes {
        /// The component that exceeded the limit.
        component: ComponentId,
        /// [`Chunk::MAX_COMPONENT_BYTES`].
        limit_bytes: usize,
    },
}

/// The treatment of components that both the old and the new block have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shared {
    Reset,
    Keep,
}

impl Chunk {
    /// The maximum bytes of components where only a schema determines them: eight times a world's default limit of a
    /// whole chunk. Without it, a few bytes of blocks and a schema with large defaults would need gigabytes.
    pub const MAX_COMPONENT_BYTES: usize = 128 << 20;

    /// Sets the block in layer 0 of a cell and returns the old one.
    ///
    /// The new block's components have their default bytes; those of the old block are lost. Setting the same block
    /// changes nothing. Costs a search of the palette. Now and then all cells are visited once: if the palette outgrows
    /// its width, or many kinds may have no blocks any more.
    ///
    /// # Errors
    /// [`EditError::UnknownBlock`], [`EditError::UnknownComponent`] or [`EditError::UnreadComponents`].
    pub fn set_block(
        &mut self,
        cell: LocalPos,
        block: BlockId,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<BlockId, EditError> {
        self.replace(CellLayer::base(cell), block, Shared::Reset, schema)
    }

    /// Sets the block in an existing layer, as [`set_block`](Self::set_block) does in layer 0.
    ///
    /// # Errors
    /// As [`set_block`](Self::set_block), and [`EditError::NoLayer`].
    pub fn set_layer(
        &mut self,
        at: CellLayer,
        block: BlockId,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<BlockId, EditError> {
        self.replace(at, block, Shared::Reset, schema)
    }

    /// Changes the kind of a block that keeps its identity: a chest is turned, a furnace is lit.
    ///
    /// Components that both kinds have keep their bytes; the rest is as in [`set_block`](Self::set_block).
    ///
    /// # Errors
    /// As [`set_block`](Self::set_block), and [`EditError::NoLayer`].
    pub fn change_kind(
        &mut self,
        at: CellLayer,
        block: BlockId,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<BlockId, EditError> {
        self.replace(at, block, Shared::Keep, schema)
    }

    /// Adds a block above all others of a cell and returns its layer.
    ///
    /// # Errors
    /// As [`set_block`](Self::set_block), and [`EditError::TooManyLayers`].
    pub fn push_layer(
        &mut self,
        cell: LocalPos,
        block: BlockId,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<u8, EditError> {
        let layer = self.layer_count(cell);
        if layer > MAX_UPPER_LAYERS {
            return Err(EditError::TooManyLayers { cell });
        }
        let at = CellLayer::new(cell, layer as u8);
        let new = self.new_instances(block, schema)?;
        self.count_palette_before(block);
        let local = self.palette.acquire(block);
        let place = self.upper.partition_point(|entry| entry.cell <= cell);
        self.upper.insert(place, Upper { cell, local });
        for column in new {
            self.insert_instance(at, column);
        }
        self.has_canonical_blocks = false;
        Ok(at.layer)
    }

    /// Removes the block at a layer of 1 or more; the layers above it move down by one.
    ///
    /// # Errors
    /// [`EditError::NoLayer`] for layer 0 or one that the cell does not have, or [`EditError::UnreadComponents`].
    pub fn remove_layer(&mut self, cell: LocalPos, layer: u8) -> Result<BlockId, EditError> {
        let at = CellLayer::new(cell, layer);
        let place = self.upper_place(at).ok_or(EditError::NoLayer { at, count: self.layer_count(cell) })?;
        let old = self.local(at).map(|local| self.palette.get(local)).unwrap_or_default();
        self.may_change(old)?;
        self.count_palette_of_unread();
        let entry = self.upper.remove(place);
        self.palette.release(entry.local);
        self.remove_instances(at, &[]);
        for column in &mut self.columns {
            column.close_gap(at);
        }
        self.has_canonical_blocks = false;
        self.pack_if_mostly_dead();
        Ok(old)
    }

    /// Replaces the bytes of a component that a block has.
    ///
    /// # Errors
    /// [`EditError::NoComponent`] if the block does not have it (or it could not be read), or
    /// [`EditError::WrongWidth`].
    pub fn set_component(
        &mut self,
        at: CellLayer,
        component: ComponentId,
        bytes: &[u8],
    ) -> Result<(), EditError> {
        let column = self.columns.iter_mut().find(|column| column.component == component);
        let Some((column, rank)) = column.and_then(|column| column.rank(at).map(|rank| (column, rank)))
        else {
            return Err(EditError::NoComponent { at, component });
        };
        check_width(component, column.shape(), bytes)?;
        column.set(rank, bytes);
        Ok(())
    }

    /// Adds a reference to an entity. Returns `false` if it existed already.
    pub fn add_entity(&mut self, entity: EntityId) -> bool {
        let place = self.entities.binary_search(&entity);
        if let Err(place) = place {
            self.entities.insert(place, entity);
        }
        place.is_err()
    }

    /// Removes a reference to an entity. Returns `false` if there was none.
    pub fn remove_entity(&mut self, entity: EntityId) -> bool {
        let place = self.entities.binary_search(&entity);
        if let Ok(place) = place {
            self.entities.remove(place);
        }
        place.is_ok()
    }

    /// Sets the side data of one kind and returns the old data.
    ///
    /// # Panics
    /// If the data is longer than [`side::MAX_LEN_BYTES`].
    pub fn set_side(&mut self, kind: SideKind, data: Vec<u8>) -> Option<Vec<u8>> {
        assert!(data.len() <= side::MAX_LEN_BYTES, "side data is at most 4 GiB − 1 long");
        match self.sides.binary_search_by_key(&kind, |(kind, _)| *kind) {
            Ok(place) => self.sides.get_mut(place).map(|(_, old)| core::mem::replace(old, data)),
            Err(place) => {
                self.sides.insert(place, (kind, data));
                None
            }
        }
    }

    /// Removes the side data of one kind and returns it.
    pub fn remove_side(&mut self, kind: SideKind) -> Option<Vec<u8>> {
        let place = self.sides.binary_search_by_key(&kind, |(kind, _)| *kind).ok()?;
        Some(self.sides.remove(place).1)
    }

    /// Replaces every block id with the result of a function: for chunks from another registry.
    ///
    /// Calls the function once per kind, and changes the cells only if two kinds become one. Components stay with their
    /// blocks, so the new kinds must have the same components.
    pub fn remap_blocks(&mut self, mut new: impl FnMut(BlockId) -> BlockId) {
        self.pack();
        let mut merged = FirstMet::new();
        let new_locals: Vec<u32> = self.palette.ids().iter().map(|block| merged.local(new(*block))).collect();
        let ids = merged.into_ids();
        if let Some(unread) = &mut self.unread {
            for owner in &mut unread.owners {
                *owner = new(*owner);
            }
        }
        if ids.len() == self.palette.ids().len() {
            self.palette.ids_mut().copy_from_slice(&ids);
            return;
        }
        self.merge_kinds(ids, &new_locals);
    }

    /// Returns the same blocks, entities and side data with the components of another schema.
    ///
    /// Calls `bytes` for each block and each of its components in the new schema, blocks and components ascending. It
    /// returns the data, or `None` for the default. This is how a chunk is upgraded.
    ///
    /// # Errors
    /// [`EditError::UnreadComponents`] if this chunk has data that its own schema did not explain;
    /// [`EditError::UnknownBlock`] or [`EditError::UnknownComponent`] if the new schema does not know something;
    /// [`EditError::WrongWidth`] if `bytes` returns a wrong length; [`EditError::TooManyBytes`] for more than
    /// [`MAX_COMPONENT_BYTES`](Self::MAX_COMPONENT_BYTES).
    pub fn with_components<'b>(
        &self,
        to: &(impl SchemaView + ?Sized),
        bytes: impl FnMut(CellLayer, BlockId, ComponentId) -> Option<Cow<'b, [u8]>>,
    ) -> Result<Self, EditError> {
        if self.has_unread_components() {
            let block = self.palette.ids().first().copied().unwrap_or_default();
            return Err(EditError::UnreadComponents { block });
        }
        let mut chunk = self.clone();
        chunk.unread = None;
        chunk.pack();
        chunk.columns = chunk.columns_for(to, bytes)?;
        Ok(chunk)
    }
}

impl Chunk {
    /// Sets the block in an existing layer, or adds a layer directly above the top one of its cell.
    pub(crate) fn put(
        &mut self,
        at: CellLayer,
        block: BlockId,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<(), EditError> {
        if usize::from(at.layer) == self.layer_count(at.cell) {
            self.push_layer(at.cell, block, schema).map(drop)
        } else {
            self.replace(at, block, Shared::Reset, schema).map(drop)
        }
    }

    /// Drops the component data that the schema did not explain. The blocks that may have owned it keep the components
    /// that were read.
    ///
    /// The chunk's schema must explain the rest, or the chunk does not validate.
    pub fn discard_unread_components(&mut self) {
        self.unread = None;
    }

    fn replace(
        &mut self,
        at: CellLayer,
        block: BlockId,
        shared: Shared,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<BlockId, EditError> {
        let count = self.layer_count(at.cell);
        let old_local = self.local(at).ok_or(EditError::NoLayer { at, count })?;
        let old = self.palette.get(old_local);
        if old == block {
            return Ok(old);
        }
        self.may_change(old)?;
        let new = self.new_instances(block, schema)?;
        self.count_palette_before(block);
        self.palette.release(old_local);
        let local = self.palette.acquire(block);
        if at.layer == 0 {
            self.blocks.set(at.cell, local);
        } else if let Some(entry) = self.upper_place(at).and_then(|place| self.upper.get_mut(place)) {
            entry.local = local;
        }
        self.has_canonical_blocks = false;

        let kept: Vec<ComponentId> = match shared {
            Shared::Reset => Vec::new(),
            Shared::Keep => new.iter().map(|new| new.column.component).collect(),
        };
        self.remove_instances(at, &kept);
        for column in new {
            self.insert_instance(at, column);
        }
        self.pack_if_mostly_dead();
        Ok(old)
    }

    /// Whether a block may be removed: not if it may own unread data.
    fn may_change(&self, old: BlockId) -> Result<(), EditError> {
        match &self.unread {
            Some(unread) if !unread.bytes.is_empty() && unread.owners.contains(&old) => {
                Err(EditError::UnreadComponents { block: old })
            }
            _ => Ok(()),
        }
    }

    /// Prepares a column with one default instance for each component of a new block.
    fn new_instances(
        &mut self,
        block: BlockId,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<Vec<NewColumn>, EditError> {
        let components = schema.components_of(block).ok_or(EditError::UnknownBlock { block })?;
        if let Some(unread) = &self.unread {
            let is_settled =
                unread.bytes.is_empty() && !unread.owners.iter().any(|owner| self.palette.is_alive(*owner));
            if is_settled {
                self.unread = None;
            } else if components.iter().any(|component| *component >= unread.from) {
                return Err(EditError::UnreadComponents { block });
            }
        }
        let mut new = Vec::with_capacity(components.len());
        for component in components {
            new.push(NewColumn::new(*component, schema)?);
        }
        Ok(new)
    }

    fn insert_instance(&mut self, at: CellLayer, new: NewColumn) {
        match self.columns.binary_search_by_key(&new.column.component, |column| column.component) {
            Ok(place) => {
                if let Some(column) = self.columns.get_mut(place) {
                    column.insert(at, &new.default);
                }
            }
            Err(place) => {
                let mut column = new.column;
                column.push(at, &new.default);
                self.columns.insert(place, column);
            }
        }
    }

    fn remove_instances(&mut self, at: CellLayer, except: &[ComponentId]) {
        self.columns.retain_mut(|column| {
            if !except.contains(&column.component) {
                column.remove(at);
            }
            !column.instances.is_empty()
        });
    }

    /// Counts the blocks of each kind, once, before the first edit that would widen the ids: a kind without blocks may
    /// give its id to the new one.
    fn count_palette_before(&mut self, block: BlockId) {
        let kinds = self.palette.ids().len();
        let is_full = kinds >> self.blocks.width() > 0;
        // A single kind has all blocks.
        if is_full && kinds > 1 && !self.palette.is_counted() && self.palette.find(block).is_none() {
            self.count_palette();
        }
        self.count_palette_of_unread();
    }

    /// Counts the blocks of each kind, once, if unread components are left: whether their owners are left decides which
    /// edits are refused.
    fn count_palette_of_unread(&mut self) {
        if self.unread.is_some() {
            self.count_palette();
        }
    }

    fn count_palette(&mut self) {
        if !self.palette.is_counted() {
            let ids = self.blocks.unpacked();
            self.palette.count(&ids, self.upper.iter().map(|entry| entry.local));
        }
    }

    fn pack_if_mostly_dead(&mut self) {
        if self.palette.is_mostly_dead() {
            self.count_palette();
        }
        if self.palette.is_mostly_dead() {
            self.pack();
        }
    }

    /// Replaces the palette with a shorter one, in which some local ids are merged.
    fn merge_kinds(&mut self, ids: Vec<BlockId>, new_locals: &[u32]) {
        let new = |local: u32| new_locals.get(local as usize).copied().unwrap_or(0);
        let mut locals = self.blocks.unpacked();
        for local in locals.iter_mut() {
            *local = new(*local);
        }
        for entry in &mut self.upper {
            entry.local = new(entry.local);
        }
        self.blocks = Blocks::pack(&locals, bits::width_for(ids.len() as u64));
        self.palette = Palette::new(ids);
    }
}

/// A column under construction, with the default bytes of its component.
#[derive(Debug)]
pub(super) struct NewColumn {
    pub(super) column: Column,
    shape: ComponentShape,
    default: Vec<u8>,
}

impl NewColumn {
    pub(super) fn new(
        component: ComponentId,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<Self, EditError> {
        let shape = known_shape(schema, component).ok_or(EditError::UnknownComponent { component })?;
        let default = schema.default_bytes(component);
        check_width(component, shape, default)?;
        Ok(Self { column: Column::new(component, shape), shape, default: default.to_vec() })
    }

    /// Adds an instance after all others, and returns its length in bytes.
    pub(super) fn push(&mut self, at: CellLayer, bytes: Option<&[u8]>) -> Result<usize, EditError> {
        let bytes = bytes.unwrap_or(&self.default);
        check_width(self.column.component, self.shape, bytes)?;
        self.column.push(at, bytes);
        Ok(bytes.len())
    }
}

fn check_width(component: ComponentId, shape: ComponentShape, bytes: &[u8]) -> Result<(), EditError> {
    match shape {
        ComponentShape::Fixed { width_bytes } if bytes.len() != width_bytes as usize => {
            Err(EditError::WrongWidth { component, width_bytes, found: bytes.len() })
        }
        _ => Ok(()),
    }
}
