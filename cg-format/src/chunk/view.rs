//! A chunk that is read in place.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::blocks::{self, BlocksView};
use super::components::{self, ColumnView, UnreadView};
use super::entities::EntitiesView;
use super::header::Header;
use super::instances::CellLayer;
use super::layers::LayersView;
use super::palette::PaletteView;
use crate::side::Sides;
use crate::wire::{Reader, Span, Trace};
use crate::{
    BlockId, CellOrder, ComponentId, DecodeError, EntityId, LocalPos, SchemaView, Section, SideKind,
};

/// A stored chunk, checked once. Its blocks, components, references and side data are then read in place.
///
/// Creating one costs a pass over the packed ids. It allocates only rank tables for the components of the chunk's
/// blocks. After that no access allocates, and none decodes more than it returns.
///
/// ```
/// use cg_format::chunk::{Chunk, ChunkView};
/// use cg_format::schema::NoComponents;
/// use cg_format::{BlockId, LocalPos};
///
/// let mut chunk = Chunk::filled(BlockId::new(7), &NoComponents)?;
/// chunk.set_block(LocalPos::new(1, 2, 3), BlockId::new(9), &NoComponents)?;
/// let bytes = chunk.to_bytes();
///
/// let view = ChunkView::new(&bytes, &NoComponents)?;
/// assert_eq!(view.block(LocalPos::new(1, 2, 3)), BlockId::new(9));
/// assert_eq!(view.block(LocalPos::new(3, 2, 1)), BlockId::new(7));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChunkView<'a> {
    pub(super) palette: PaletteView<'a>,
    pub(super) blocks: BlocksView<'a>,
    pub(super) layers: LayersView<'a>,
    pub(super) columns: Vec<ColumnView<'a>>,
    pub(super) unread: Option<UnreadView<'a>>,
    pub(super) entities: EntitiesView<'a>,
    pub(super) sides: Sides<'a>,
    /// Whether palette and local ids are in canonical form.
    pub(super) has_canonical_blocks: bool,
    chunk_len_bytes: usize,
}

impl<'a> ChunkView<'a> {
    /// Checks a stored value: the chunk's bytes and the side data after them, to the end.
    ///
    /// The schema is the generation with which the chunk was encoded. The chunk's frame contains that generation.
    ///
    /// # Errors
    /// A [`DecodeError`] with section, offset and value. Content that the schema does not know is not an error: see
    /// [`has_unread_components`](Self::has_unread_components).
    pub fn new(value: &'a [u8], schema: &(impl SchemaView + ?Sized)) -> Result<Self, DecodeError> {
        Self::read(Reader::new(value, Section::ChunkHeader), schema)
    }

    /// Reads the layout. Decoding, viewing and tracing all use this function.
    fn read(mut reader: Reader<'a>, schema: &(impl SchemaView + ?Sized)) -> Result<Self, DecodeError> {
        let start = reader.offset_bytes();
        let header = Header::read(&mut reader)?;
        let palette = PaletteView::read(&mut reader, header.palette_count)?;
        let kinds = palette.count() as u32;
        let blocks_offset = reader.offset_bytes();
        let blocks = BlocksView::read(&mut reader, header.width())?;
        let mut unpacked;
        let (ids, is_in_order) = if blocks.width == 0 {
            // One kind takes no bits, so there is nothing to check.
            (&blocks::ALL_OF_ONE, true)
        } else {
            unpacked = [0; LocalPos::COUNT];
            blocks.unpack(&mut unpacked);
            let is_in_order = blocks::check(&unpacked, kinds, blocks.width, blocks_offset)?;
            (&unpacked, is_in_order)
        };
        let layers = LayersView::read(&mut reader, header.layered_count, header.width(), kinds)?;

        let columns_len = header.entity_offset_bytes - header.component_offset_bytes;
        let section = split(&mut reader, columns_len)?;
        let expected = components::expected_instances(&palette, ids, &layers, schema);
        let (columns, unread) = components::read_section(section, expected, &palette, ids, &layers, schema)?;

        let entities = EntitiesView::read(&mut reader)?;
        let chunk_len_bytes = (reader.offset_bytes() - start) as usize;
        let sides = Sides::read(&mut reader)?;
        let has_canonical_blocks =
            if layers.count() == 0 { is_in_order } else { is_first_met_order(ids, &layers, kinds) };
        Ok(Self {
            palette,
            blocks,
            layers,
            columns,
            unread,
            entities,
            sides,
            has_canonical_blocks,
            chunk_len_bytes,
        })
    }

    /// The lowest block of a cell.
    #[inline]
    pub fn block(&self, cell: LocalPos) -> BlockId {
        self.kind(self.blocks.get(cell))
    }

    /// The block at a layer of a cell, or `None` if the cell has fewer layers.
    pub fn layer(&self, cell: LocalPos, layer: u8) -> Option<BlockId> {
        if layer == 0 {
            return Some(self.block(cell));
        }
        self.layers.layer(cell, layer).map(|entry| self.kind(entry.local))
    }

    /// The number of blocks of a cell, at least 1.
    pub fn layer_count(&self, cell: LocalPos) -> usize {
        1 + self.layers.count_at(cell)
    }

    /// All blocks above layer 0, by cell, then layer.
    pub fn upper_layers(&self) -> impl Iterator<Item = (CellLayer, BlockId)> {
        number_layers(self.layers.iter().map(|entry| (entry.cell, entry.local)))
            .map(|(at, local)| (at, self.kind(local)))
    }

    /// The ids in the palette, in stored order. A foreign writer may have left unused ids.
    pub fn palette(&self) -> impl ExactSizeIterator<Item = BlockId> + use<'a> {
        self.palette.iter()
    }

    /// The lowest block of every cell, in the given order.
    pub fn unpack(&self, order: CellOrder, out: &mut [BlockId; LocalPos::COUNT]) {
        let mut ids = [0; LocalPos::COUNT];
        self.blocks.unpack(&mut ids);
        let palette: Box<[BlockId]> = self.palette.iter().collect();
        scatter(order, &ids, &palette, out);
    }

    /// The bytes of a component of a block, or `None` if the block does not have it or it could not be read.
    #[inline]
    pub fn component(&self, at: CellLayer, component: ComponentId) -> Option<&'a [u8]> {
        self.columns.iter().find(|column| column.component == component)?.get(at)
    }

    /// All instances of all components: components ascending, then blocks ascending.
    pub fn components(&self) -> impl Iterator<Item = (ComponentId, CellLayer, &'a [u8])> {
        self.columns.iter().flat_map(|column| {
            let instances = column.instances.to_vec();
            instances.into_iter().filter_map(|at| Some((column.component, at, column.get(at)?)))
        })
    }

    /// Whether a part of the component section could not be read because the schema does not explain it.
    ///
    /// Blocks, references and side data can still be read, and the unread bytes are preserved.
    pub fn has_unread_components(&self) -> bool {
        !self.unread_components().is_empty()
    }

    /// The end of the component section that the schema does not explain; empty if it explains everything.
    pub fn unread_components(&self) -> &'a [u8] {
        self.unread.as_ref().map_or(&[], |unread| unread.bytes)
    }

    /// References to the chunk's entities, in stored order.
    pub fn entities(&self) -> impl ExactSizeIterator<Item = EntityId> + use<'a> {
        self.entities.iter()
    }

    /// The side data of one kind.
    pub fn side(&self, kind: SideKind) -> Option<&'a [u8]> {
        self.sides.get(kind)
    }

    /// All side data, kinds ascending.
    pub fn sides(&self) -> impl Iterator<Item = (SideKind, &'a [u8])> + use<'a> {
        self.sides.iter()
    }

    /// The length of the chunk's own bytes. The rest of the value is side data.
    pub const fn chunk_len_bytes(&self) -> usize {
        self.chunk_len_bytes
    }

    fn kind(&self, local: u32) -> BlockId {
        self.palette.get(local).expect("local ids lie in the palette: checked when the view was made")
    }
}

/// Explains a stored value: every field that the decoder reads, up to the end or to the first error.
pub fn trace(value: &[u8], schema: &(impl SchemaView + ?Sized)) -> (Vec<Span>, Result<(), DecodeError>) {
    let trace = Trace::default();
    let reader = Reader::new(value, Section::ChunkHeader).traced(Some(&trace));
    let result = ChunkView::read(reader, schema).map(drop);
    (trace.take(), result)
}

/// Takes the next bytes as a separate part.
fn split<'a>(reader: &mut Reader<'a>, len_bytes: u64) -> Result<Reader<'a>, DecodeError> {
    reader.enter(Section::Components);
    let trace = reader.trace();
    let offset_bytes = reader.offset_bytes();
    let mut untraced = reader.clone().traced(None);
    let bytes = untraced.take_long("component section", len_bytes)?;
    *reader = untraced.traced(trace);
    Ok(Reader::at_offset(bytes, offset_bytes, Section::Components).traced(trace))
}

/// Whether local ids first appear in the order 0, 1, 2… over all layers, and all appear.
fn is_first_met_order(ids: &blocks::LocalIds, layers: &LayersView<'_>, kinds: u32) -> bool {
    let mut upper = layers.iter().peekable();
    let mut next = 0;
    let mut meet = |local: u32| {
        let is_ascending = local <= next;
        next = next.max(local + 1);
        is_ascending
    };
    for (cell, local) in LocalPos::all().zip(ids) {
        if !meet(*local) {
            return false;
        }
        while let Some(entry) = upper.next_if(|entry| entry.cell == cell) {
            if !meet(entry.local) {
                return false;
            }
        }
    }
    next == kinds
}

/// Assigns layer numbers to entries that are sorted by cell.
pub(super) fn number_layers<T>(
    entries: impl Iterator<Item = (LocalPos, T)>,
) -> impl Iterator<Item = (CellLayer, T)> {
    let mut last: Option<CellLayer> = None;
    entries.map(move |(cell, entry)| {
        let layer = last.filter(|last| last.cell == cell).map_or(1, |last| last.layer + 1);
        let at = CellLayer::new(cell, layer);
        last = Some(at);
        (at, entry)
    })
}

/// Writes the kind of each cell into an array of another order.
pub(super) fn scatter(
    order: CellOrder,
    ids: &blocks::LocalIds,
    palette: &[BlockId],
    out: &mut [BlockId; LocalPos::COUNT],
) {
    let kind = |local: u32| palette.get(local as usize).copied().unwrap_or_default();
    order.out_of_storage(ids, out, |out, local| *out = kind(local));
}
