//! The content of one chunk in a snapshot: the canonical bytes of the part in the region, without references.
//!
//! **Invariant**: the bytes depend on nothing outside the region. Cells outside hold a filler that is derived from
//! those inside, so equal parts always have equal bytes.

use std::borrow::Cow;

use cg_format::chunk::{CellLayer, Chunk, EditError};
use cg_format::wire::Reader;
use cg_format::{BlockId, CellOrder, LocalPos, SchemaView, Section as Part, SideKind};
use cg_registry::portable::Used;
use cg_registry::{KeptComponents, LOST_COMPONENTS, STALE};

use crate::region::Section;

/// The contents that a capture includes in addition to blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// The components of blocks. Without them restored blocks have their defaults, and unchanged blocks keep their
    /// components.
    pub components: bool,
    /// Side data of chunks that are completely in the region. A part of a chunk has none.
    pub sides: bool,
    /// Entities that a chunk of the region owns and whose position is in the region.
    pub entities: bool,
}

impl Contents {
    /// Everything.
    pub const ALL: Self = Self { components: true, sides: true, entities: true };
    /// Only the blocks of all layers.
    pub const BLOCKS: Self = Self { components: false, sides: false, entities: false };

    pub(crate) const fn byte(self) -> u8 {
        self.components as u8 | (self.sides as u8) << 1 | (self.entities as u8) << 2
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        if byte > 7 {
            return None;
        }
        Some(Self { components: byte & 1 != 0, sides: byte & 2 != 0, entities: byte & 4 != 0 })
    }
}

/// A section that is ready to be stored, with the ids that it uses.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) bytes: Vec<u8>,
    pub(crate) checksum: u32,
    pub(crate) kinds: Vec<BlockId>,
    pub(crate) sides: Vec<SideKind>,
    /// The ids of component data without an owner.
    pub(crate) kept: Used,
}

impl Prepared {
    pub(crate) fn new(chunk: &Chunk) -> Self {
        let bytes = chunk.to_bytes();
        let checksum = crc32c::crc32c(&bytes);
        let sides = chunk.sides().map(|(kind, _)| kind).collect();
        let mut kept = Used::default();
        kept.add_kept(chunk);
        Self { checksum, bytes, kinds: chunk.kinds(), sides, kept }
    }
}

/// The part of a chunk that a snapshot stores.
///
/// # Errors
/// [`EditError`] if the schema does not explain a part of the chunk's components that would have to be cut.
pub(crate) fn portion<'c>(
    chunk: &'c Chunk,
    section: &Section,
    contents: Contents,
    schema: &(impl SchemaView + ?Sized),
) -> Result<Cow<'c, Chunk>, EditError> {
    let mut part = if section.is_whole() {
        Cow::Borrowed(chunk)
    } else {
        let fill = filling(chunk, section, schema);
        Cow::Owned(spliced(&Outside::Fill(fill), chunk, section, schema)?)
    };
    if !part.entities().is_empty() {
        let part = part.to_mut();
        for id in part.entities().to_vec() {
            part.remove_entity(id);
        }
    }
    if part.sides().len() > 0 && !contents.sides {
        remove_sides(part.to_mut());
    }
    if !contents.components && (part.has_unread_components() || part.components().next().is_some()) {
        part = Cow::Owned(part.with_components(schema, |_, _, _| None)?);
    }
    Ok(part)
}

pub(crate) fn remove_sides(chunk: &mut Chunk) {
    let kinds: Vec<_> = chunk.sides().map(|(kind, _)| kind).collect();
    for kind in kinds {
        chunk.remove_side(kind);
    }
}

/// Adds component data without an owner to a chunk: what another one keeps at cells of a section, and the chunk does not
/// keep yet.
pub(crate) fn keep_also(to: &mut Chunk, from: &Chunk, section: &Section) {
    for kind in [LOST_COMPONENTS, STALE] {
        let decoded = |chunk: &Chunk| KeptComponents::decode(chunk.side(kind)?, None).ok();
        let Some(coming) = decoded(from) else { continue };
        let coming = coming.iter().filter(|(owner, _)| section.contains(owner.at.cell));
        let coming = coming.map(|(owner, bytes)| (owner, bytes.to_vec()));
        add_kept(to, kind, coming);
    }
}

/// Adds entries to side data of component data without an owner, except those that are there. Side data that does not
/// decode stays as it is.
pub(crate) fn add_kept(
    to: &mut Chunk,
    kind: SideKind,
    coming: impl Iterator<Item = (cg_registry::kept::Owner, Vec<u8>)>,
) {
    let mut kept = match to.side(kind).map(|bytes| KeptComponents::decode(bytes, None)) {
        None => KeptComponents::default(),
        Some(Ok(kept)) => kept,
        Some(Err(_)) => return,
    };
    for (owner, bytes) in coming {
        let is_there = kept.iter().any(|(known, there)| known == owner && there == bytes);
        let has_place = kind != LOST_COMPONENTS || kept.get(owner).is_none();
        if !is_there && has_place {
            kept.push(owner, bytes);
        }
    }
    if !kept.is_empty() {
        to.set_side(kind, kept.encode());
    }
}

/// The block of the cells outside a region, independent of their content: the first kind inside without components, or
/// else the first kind inside.
fn filling(chunk: &Chunk, section: &Section, schema: &(impl SchemaView + ?Sized)) -> BlockId {
    let inside = || LocalPos::all().filter(|cell| section.contains(*cell)).map(|cell| chunk.block(cell));
    let is_plain = |block: &BlockId| schema.components_of(*block).is_some_and(<[_]>::is_empty);
    inside().find(is_plain).or_else(|| inside().next()).unwrap_or_default()
}

/// A heap buffer for the lowest block of every cell.
fn no_cells() -> Box<[BlockId; LocalPos::COUNT]> {
    let cells = vec![BlockId::default(); LocalPos::COUNT].into_boxed_slice();
    cells.try_into().expect("made as long")
}

/// The content of the cells outside a section.
pub(crate) enum Outside<'c> {
    /// One kind, with its default components.
    Fill(BlockId),
    /// The content of this chunk there.
    Chunk(&'c Chunk),
}

/// Combines two chunks: one inside a section, another outside. The result has the outer chunk's side data and no
/// references to entities.
///
/// # Errors
/// [`EditError::UnreadComponents`] if it is unknown where a part of the components belongs.
pub(crate) fn spliced(
    outside: &Outside<'_>,
    inside: &Chunk,
    section: &Section,
    schema: &(impl SchemaView + ?Sized),
) -> Result<Chunk, EditError> {
    let outer = match outside {
        Outside::Chunk(chunk) => Some(*chunk),
        Outside::Fill(_) => None,
    };
    for chunk in outer.into_iter().chain([inside]) {
        if chunk.has_unread_components() {
            return Err(EditError::UnreadComponents { block: chunk.block(LocalPos::default()) });
        }
    }
    let mut cells = no_cells();
    match outside {
        Outside::Fill(block) => cells.fill(*block),
        Outside::Chunk(chunk) => chunk.unpack(CellOrder::Xyz, &mut cells),
    }
    let mut inner = no_cells();
    inside.unpack(CellOrder::Xyz, &mut inner);
    for ((cell, to), from) in LocalPos::all().zip(cells.iter_mut()).zip(inner.iter()) {
        if section.contains(cell) {
            *to = *from;
        }
    }
    let mut chunk = Chunk::from_blocks(&cells, CellOrder::Xyz, schema)?;
    let outer_layers = outer.into_iter().flat_map(Chunk::upper_layers);
    let outer_layers = outer_layers.filter(|(at, _)| !section.contains(at.cell));
    let inner_layers = inside.upper_layers().filter(|(at, _)| section.contains(at.cell));
    for (at, block) in outer_layers.chain(inner_layers) {
        chunk.push_layer(at.cell, block, schema)?;
    }
    let mut chunk = chunk.with_components(schema, |at, _, component| {
        let from = if section.contains(at.cell) { Some(inside) } else { outer };
        from?.component(at, component).map(Cow::Borrowed)
    })?;
    if let Some(outer) = outer {
        for (kind, data) in outer.sides() {
            chunk.set_side(kind, data.to_vec());
        }
    }
    Ok(chunk)
}

/// Every block of a chunk: layer 0 by cell, then the upper layers.
pub(crate) fn all_blocks(chunk: &Chunk) -> impl Iterator<Item = (CellLayer, BlockId)> {
    LocalPos::all().map(|cell| (CellLayer::base(cell), chunk.block(cell))).chain(chunk.upper_layers())
}

/// The bytes of a stored chunk before its references, and its side data.
pub(crate) fn without_references(value: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(value, Part::ChunkHeader);
    reader.take("format version", 8).ok()?;
    reader.take("component offset", 8).ok()?;
    let entities = usize::try_from(reader.u64("entity offset").ok()?).ok()?;
    let (before, behind) = value.split_at_checked(entities)?;
    let mut reader = Reader::new(behind, Part::Entities);
    let count = reader.u64("entity count").ok()?;
    reader.take_items("entities", count, 16).ok()?;
    Some((before, reader.rest()))
}
