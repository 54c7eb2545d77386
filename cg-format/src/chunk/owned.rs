//! The owned, editable chunk.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::blocks::Blocks;
use super::canonical::Canonical;
use super::column::Column;
use super::components;
use super::edit::EditError;
use super::header::Header;
use super::instances::CellLayer;
use super::layers::{self, Upper};
use super::palette::{self, FirstMet, Palette, PaletteEntry};
use super::view::{ChunkView, number_layers, scatter};
use crate::side;
use crate::wire::{Writer, bits};
use crate::{BlockId, CellOrder, ComponentId, DecodeError, EntityId, LocalPos, SchemaView, SideKind};

/// A chunk in memory that can be read and edited.
///
/// It is packed, as on disk: a uniform chunk takes a few hundred bytes, a terrain chunk a few kilobytes. Edits keep
/// everything sorted, and give each block the components that the schema defines. A kind without blocks may stay in the
/// palette until its place is needed; [`encode`](Self::encode) always writes canonical bytes.
///
/// ```
/// use cg_format::chunk::Chunk;
/// use cg_format::schema::NoComponents;
/// use cg_format::{BlockId, LocalPos};
///
/// let (stone, water) = (BlockId::new(1), BlockId::new(2));
/// let mut chunk = Chunk::filled(stone, &NoComponents)?;
/// assert_eq!(chunk.to_bytes().len(), 56);
///
/// let cell = LocalPos::new(0, 15, 0);
/// chunk.push_layer(cell, water, &NoComponents)?;
/// assert_eq!((chunk.block(cell), chunk.layer(cell, 1)), (stone, Some(water)));
///
/// let bytes = chunk.to_bytes();
/// assert_eq!(Chunk::decode(&bytes, &NoComponents)?, chunk);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Chunk {
    pub(super) palette: Palette,
    pub(super) blocks: Blocks,
    /// By cell, then layer.
    pub(super) upper: Vec<Upper>,
    /// Components ascending, none without instances.
    pub(super) columns: Vec<Column>,
    pub(super) unread: Option<Unread>,
    /// Ascending.
    pub(super) entities: Vec<EntityId>,
    /// Kinds ascending.
    pub(super) sides: Vec<(SideKind, Vec<u8>)>,
    /// Whether palette, blocks and upper layers are in canonical form.
    pub(super) has_canonical_blocks: bool,
}

/// The part of a component section that the schema did not explain, stored unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unread {
    /// The unread part contains the columns from this component on.
    pub(super) from: ComponentId,
    pub(super) bytes: Box<[u8]>,
    /// The kinds in the chunk that may own a part of it.
    pub(super) owners: Vec<BlockId>,
}

impl Chunk {
    /// A chunk with one block in every cell; the block's components have their default bytes.
    ///
    /// # Errors
    /// [`EditError::UnknownBlock`] if the schema does not know the block, [`EditError::TooManyBytes`].
    pub fn filled(block: BlockId, schema: &(impl SchemaView + ?Sized)) -> Result<Self, EditError> {
        Self::from_packed(alloc::vec![block], Blocks::uniform(), schema)
    }

    /// A chunk with the given blocks in layer 0; components have their default bytes.
    ///
    /// # Errors
    /// [`EditError::UnknownBlock`] if the schema does not know a block, [`EditError::TooManyBytes`].
    pub fn from_blocks(
        cells: &[BlockId; LocalPos::COUNT],
        order: CellOrder,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<Self, EditError> {
        let mut ids = [0; LocalPos::COUNT];
        let mut first_met = FirstMet::new();
        order.into_storage(cells, &mut ids, |id, block| *id = first_met.local(block));
        let palette = first_met.into_ids();
        let blocks = Blocks::pack(&ids, bits::width_for(palette.len() as u64));
        Self::from_packed(palette, blocks, schema)
    }

    pub(super) fn from_packed(
        palette: Vec<BlockId>,
        blocks: Blocks,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<Self, EditError> {
        let mut chunk = Self {
            palette: Palette::new(palette),
            blocks,
            upper: Vec::new(),
            columns: Vec::new(),
            unread: None,
            entities: Vec::new(),
            sides: Vec::new(),
            has_canonical_blocks: true,
        };
        chunk.columns = chunk.columns_for(schema, |_, _, _| None)?;
        Ok(chunk)
    }

    /// Decodes a stored value: a chunk and the side data after it, to the end.
    ///
    /// The schema is the generation with which the chunk was encoded. The chunk's frame contains that generation.
    ///
    /// # Errors
    /// A [`DecodeError`] with section, offset and value. Content that the schema does not know is not an error: see
    /// [`has_unread_components`](Self::has_unread_components).
    pub fn decode(value: &[u8], schema: &(impl SchemaView + ?Sized)) -> Result<Self, DecodeError> {
        ChunkView::new(value, schema).map(|view| Self::from(&view))
    }

    /// Appends the canonical bytes: equal chunks append equal bytes.
    ///
    /// If the blocks were not edited since the chunk was decoded, they are copied. Otherwise the ids are packed once.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.write(&self.canonical(), out);
    }

    /// The canonical bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }

    fn write(&self, canonical: &Canonical<'_>, out: &mut Vec<u8>) {
        let Canonical { ids, blocks, upper } = canonical;
        let start = out.len();
        let mut header = Header::of_blocks(ids.len() as u64, upper.len() as u64);
        let len_bytes = header.component_offset_bytes as usize + self.len_behind_blocks_bytes();
        out.reserve(len_bytes);

        let mut writer = Writer::new(out);
        header.write(&mut writer);
        for block in ids.iter() {
            writer.u64(block.get());
        }
        writer.bytes(blocks.as_bytes());
        layers::write(upper.iter().copied(), header.width(), out);
        debug_assert_eq!((out.len() - start) as u64, header.component_offset_bytes, "the header's own sum");

        let mut writer = Writer::new(out);
        for column in &self.columns {
            column.write(&mut writer);
        }
        writer.bytes(self.unread_components());
        header.entity_offset_bytes = header.component_offset_bytes + writer.offset_bytes();
        writer.u64(self.entities.len() as u64);
        for entity in &self.entities {
            writer.bytes(&entity.to_bytes());
        }
        for (kind, data) in &self.sides {
            side::write_entry(&mut writer, *kind, data);
        }
        // The entity offset is known only now. Its field is at byte 16.
        if let Some(place) = out.get_mut(start + 16..start + 24) {
            place.copy_from_slice(&header.entity_offset_bytes.to_le_bytes());
        }
        debug_assert_eq!(out.len() - start, len_bytes, "reserved once, for all of it");
    }

    /// The maximum number of bytes that [`encode`](Self::encode) appends. It is exact unless edits since the last
    /// [`pack`](Self::pack) left kinds without blocks. Visits no cells.
    pub fn max_len_bytes(&self) -> usize {
        let header = Header::of_blocks(self.palette.ids().len() as u64, self.upper.len() as u64);
        header.component_offset_bytes as usize + self.len_behind_blocks_bytes()
    }

    /// Bytes of components, entity references and side data.
    fn len_behind_blocks_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::len_bytes).sum();
        let sides: usize = self.sides.iter().map(|(_, data)| side::HEAD_LEN_BYTES + data.len()).sum();
        columns + self.unread_components().len() + 8 + 16 * self.entities.len() + sides
    }

    /// The lowest block of a cell.
    pub fn block(&self, cell: LocalPos) -> BlockId {
        self.palette.get(self.blocks.get(cell))
    }

    /// The block at a layer of a cell, or `None` if the cell has fewer layers.
    pub fn layer(&self, cell: LocalPos, layer: u8) -> Option<BlockId> {
        self.local(CellLayer::new(cell, layer)).map(|local| self.palette.get(local))
    }

    /// The number of blocks of a cell, at least 1.
    pub fn layer_count(&self, cell: LocalPos) -> usize {
        let first = self.upper.partition_point(|entry| entry.cell < cell);
        let above = self.upper.iter().skip(first).take_while(|entry| entry.cell == cell).count();
        1 + above
    }

    /// All blocks above layer 0, by cell, then layer.
    pub fn upper_layers(&self) -> impl Iterator<Item = (CellLayer, BlockId)> {
        number_layers(self.upper.iter().map(|entry| (entry.cell, self.palette.get(entry.local))))
    }

    /// The kinds of block in all layers with their counts, in the order of first appearance.
    pub fn palette(&self) -> Vec<PaletteEntry> {
        let Canonical { ids, blocks, upper } = self.canonical();
        let counts = palette::count(ids.len(), &blocks.unpacked(), upper.iter().map(|entry| entry.local));
        ids.iter().zip(counts).map(|(block, count)| PaletteEntry { block: *block, count }).collect()
    }

    /// The kinds of block in all layers, each once, in unspecified order.
    ///
    /// The cost depends on the length of the palette. A chunk that was edited, or comes from a foreign writer, may need a
    /// pass over its cells.
    pub fn kinds(&self) -> Vec<BlockId> {
        if self.has_canonical_blocks || self.palette.is_counted() {
            return self.palette.alive().collect();
        }
        self.first_met_kinds()
    }

    /// The first kind whose id is `first` or higher, for a check that all kinds are known. Allocates nothing and visits
    /// no cells unless there is one, or an edit has removed the blocks of one.
    pub fn kind_from(&self, first: BlockId) -> Option<BlockId> {
        let may_be = self.palette.ids().iter().any(|id| *id >= first);
        if may_be { self.kinds().into_iter().find(|id| *id >= first) } else { None }
    }

    /// The lowest block of every cell, in the given order.
    pub fn unpack(&self, order: CellOrder, out: &mut [BlockId; LocalPos::COUNT]) {
        let mut ids = [0; LocalPos::COUNT];
        self.blocks.unpack(&mut ids);
        scatter(order, &ids, self.palette.ids(), out);
    }

    /// The bytes of a component of a block, or `None` if the block does not have it or it could not be read.
    pub fn component(&self, at: CellLayer, component: ComponentId) -> Option<&[u8]> {
        let column = self.columns.iter().find(|column| column.component == component)?;
        column.get(column.rank(at)?)
    }

    /// All instances of all components: components ascending, then blocks ascending.
    pub fn components(&self) -> impl Iterator<Item = (ComponentId, CellLayer, &[u8])> {
        self.columns.iter().flat_map(|column| column.iter().map(|(at, bytes)| (column.component, at, bytes)))
    }

    /// Whether a part of the component section could not be read because the schema did not explain it.
    ///
    /// That part is stored unchanged. Edits that would change which blocks own its data are refused.
    pub fn has_unread_components(&self) -> bool {
        !self.unread_components().is_empty()
    }

    /// The end of the component section that the schema did not explain; empty if it explained everything.
    pub fn unread_components(&self) -> &[u8] {
        self.unread.as_ref().map_or(&[], |unread| &unread.bytes)
    }

    /// References to the chunk's entities, ascending.
    pub fn entities(&self) -> &[EntityId] {
        &self.entities
    }

    /// The side data of one kind.
    pub fn side(&self, kind: SideKind) -> Option<&[u8]> {
        self.sides().find(|(found, _)| *found == kind).map(|(_, data)| data)
    }

    /// All side data, kinds ascending.
    pub fn sides(&self) -> impl ExactSizeIterator<Item = (SideKind, &[u8])> {
        self.sides.iter().map(|(kind, data)| (*kind, data.as_slice()))
    }

    /// The memory of the chunk, including this value.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.palette.memory_bytes()
            + self.blocks.memory_bytes()
            + self.upper.capacity() * size_of::<Upper>()
            + self.columns.iter().map(Column::memory_bytes).sum::<usize>()
            + self.unread.as_ref().map_or(0, |unread| unread.bytes.len())
            + self.entities.capacity() * size_of::<EntityId>()
            + self.sides.capacity() * size_of::<(SideKind, Vec<u8>)>()
            + self.sides.iter().map(|(_, data)| data.capacity()).sum::<usize>()
    }

    /// The local id of a block, or `None` if the cell has fewer layers.
    pub(super) fn local(&self, at: CellLayer) -> Option<u32> {
        if at.layer == 0 {
            return Some(self.blocks.get(at.cell));
        }
        self.upper.get(self.upper_place(at)?).map(|entry| entry.local)
    }

    /// The position of a block above layer 0 in `upper`.
    pub(super) fn upper_place(&self, at: CellLayer) -> Option<usize> {
        let first = self.upper.partition_point(|entry| entry.cell < at.cell);
        let place = first + usize::from(at.layer).checked_sub(1)?;
        self.upper.get(place).filter(|entry| entry.cell == at.cell).map(|_| place)
    }

    /// The columns that a schema defines for the chunk's blocks, filled by a function or with the defaults.
    pub(super) fn columns_for<'b>(
        &self,
        schema: &(impl SchemaView + ?Sized),
        mut bytes: impl FnMut(CellLayer, BlockId, ComponentId) -> Option<alloc::borrow::Cow<'b, [u8]>>,
    ) -> Result<Vec<Column>, EditError> {
        let ids = self.palette.ids();
        if let Some(block) = ids.iter().find(|block| schema.components_of(**block).is_none()) {
            return Err(EditError::UnknownBlock { block: *block });
        }
        if ids.iter().all(|block| schema.components_of(*block).is_some_and(<[_]>::is_empty)) {
            return Ok(Vec::new());
        }
        let upper = self.upper.iter().map(|entry| (entry.cell, entry.local));
        let kinds = ids.iter().map(|block| schema.components_of(*block));
        let expected = components::instances_of(kinds, &self.blocks.unpacked(), upper).unwrap_or_default();
        let mut len_bytes = 0;
        let mut column = |(component, instances)| {
            let mut new = super::edit::NewColumn::new(component, schema)?;
            for at in instances {
                let block = self.local(at).map(|local| self.palette.get(local)).unwrap_or_default();
                len_bytes += new.push(at, bytes(at, block, component).as_deref())?;
                if len_bytes > Self::MAX_COMPONENT_BYTES {
                    return Err(EditError::TooManyBytes {
                        component,
                        limit_bytes: Self::MAX_COMPONENT_BYTES,
                    });
                }
            }
            Ok(new.column)
        };
        expected.into_iter().map(&mut column).collect()
    }
}

impl From<&ChunkView<'_>> for Chunk {
    fn from(view: &ChunkView<'_>) -> Self {
        let mut entities: Vec<EntityId> = view.entities.iter().collect();
        entities.sort_unstable();
        Self {
            palette: Palette::new(view.palette.iter().collect()),
            blocks: view.blocks.into(),
            upper: view.layers.iter().collect(),
            columns: view.columns.iter().map(Column::from).collect(),
            unread: view.unread.as_ref().map(|unread| Unread {
                from: unread.from,
                bytes: unread.bytes.into(),
                owners: unread.owners.clone(),
            }),
            entities,
            sides: view.sides.iter().map(|(kind, data)| (kind, data.to_vec())).collect(),
            has_canonical_blocks: view.has_canonical_blocks,
        }
    }
}

/// Compares the content. The order of edits and unused palette entries of a foreign writer do not matter.
impl PartialEq for Chunk {
    fn eq(&self, other: &Self) -> bool {
        self.entities == other.entities
            && self.columns == other.columns
            // First, as most chunks have none: comparing empty bytes costs a call too.
            && ((self.unread.is_none() && other.unread.is_none())
                || self.unread_components() == other.unread_components())
            && self.has_blocks_of(other)
            && self.sides == other.sides
    }
}

impl Eq for Chunk {}

impl core::fmt::Debug for Chunk {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Chunk")
            .field("palette", &self.palette())
            .field("upper_layers", &self.upper.len())
            .field(
                "components",
                &self.columns.iter().map(|c| (c.component, c.instances.len())).collect::<Vec<_>>(),
            )
            .field("has_unread_components", &self.has_unread_components())
            .field("entities", &self.entities.len())
            .field("sides", &self.sides().map(|(kind, data)| (kind, data.len())).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
