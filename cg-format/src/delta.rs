//! A delta: the changes of a chunk since its last full save.
//!
//! | offset | width | field |
//! |---|---|---|
//! | 0 | 1 | `delta version`: 1 |
//! | 1 | 4 | `set count` |
//! | 5 | 11 each | `set cell` (u16), `set layer` (u8), `set block` (u64), ascending by cell, then layer |
//! | … | 4 | `added count` |
//! | … | 16 each | `added`: entity UUIDs, ascending |
//! | … | 4 | `removed count` |
//! | … | 16 each | `removed`: entity UUIDs, ascending |
//!
//! An entity that crosses a border rewrites no chunk: a delta removes the reference from one chunk, another adds it to
//! the next.

mod difference;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::chunk::{CellLayer, Chunk, EditError};
use crate::wire::{Reader, Span, Trace, Writer};
use crate::{BlockId, DecodeError, EntityId, LocalPos, Problem, SchemaView, Section};

/// The layout that this release writes, and the newest that it reads.
const DELTA_VERSION: u8 = 1;
/// Bytes of one block set.
const SET_LEN_BYTES: usize = 2 + 1 + 8;

/// Blocks set, and entity references added and removed.
///
/// It describes the new state and not the old one, so applying it twice has the same result as once. No reference is
/// both added and removed: the later change counts.
///
/// A delta contains no component data. It may set only blocks without components, in places where the old block has
/// none; [`apply`](Self::apply) refuses others. It cannot remove a layer. For other changes the whole chunk is saved.
///
/// ```
/// use cg_format::chunk::CellLayer;
/// use cg_format::delta::Delta;
/// use cg_format::{BlockId, LocalPos};
///
/// let mut delta = Delta::new();
/// delta.set_block(CellLayer::new(LocalPos::new(1, 2, 3), 0), BlockId::new(7));
/// let mut bytes = Vec::new();
/// delta.encode(&mut bytes);
/// assert_eq!(bytes.len(), 24);
/// assert_eq!(Delta::decode(&bytes)?, delta);
/// # Ok::<(), cg_format::DecodeError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delta {
    sets: BTreeMap<CellLayer, BlockId>,
    added: BTreeSet<EntityId>,
    removed: BTreeSet<EntityId>,
}

/// Why a delta was not applied. The chunk is unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ApplyError {
    /// A block with components would be set or replaced, and a delta contains no component data.
    #[error(
        "block {} at {:?} layer {} carries components, which a delta cannot set or replace; save the whole chunk",
        .block.get(), .at.cell, .at.layer
    )]
    CarriesComponents {
        /// The place of the block.
        at: CellLayer,
        /// The block with components: the new or the old one.
        block: BlockId,
    },
    /// The chunk refuses the edit.
    #[error(transparent)]
    Edit(#[from] EditError),
}

impl Delta {
    /// Creates a delta without changes.
    pub const fn new() -> Self {
        Self { sets: BTreeMap::new(), added: BTreeSet::new(), removed: BTreeSet::new() }
    }

    /// Whether it has no changes. Such a delta need not be stored.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty() && self.added.is_empty() && self.removed.is_empty()
    }

    /// Sets a block. Replaces an earlier change of the same place.
    pub fn set_block(&mut self, at: CellLayer, block: BlockId) {
        self.sets.insert(at, block);
    }

    /// Adds an entity's reference to the chunk.
    pub fn add_entity(&mut self, id: EntityId) {
        self.removed.remove(&id);
        self.added.insert(id);
    }

    /// Removes an entity's reference from the chunk.
    pub fn remove_entity(&mut self, id: EntityId) {
        self.added.remove(&id);
        self.removed.insert(id);
    }

    /// The blocks set, by cell, then layer.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = (CellLayer, BlockId)> {
        self.sets.iter().map(|(at, block)| (*at, *block))
    }

    /// The references added, ascending.
    pub fn added(&self) -> impl ExactSizeIterator<Item = EntityId> {
        self.added.iter().copied()
    }

    /// The references removed, ascending.
    pub fn removed(&self) -> impl ExactSizeIterator<Item = EntityId> {
        self.removed.iter().copied()
    }

    /// Adds a later delta. The result is the same as applying both in order.
    pub fn merge(&mut self, later: &Self) {
        self.sets.extend(later.sets());
        for id in later.added() {
            self.add_entity(id);
        }
        for id in later.removed() {
            self.remove_entity(id);
        }
    }

    /// Applies the delta to a chunk. A layer directly above the top one of its cell is added.
    ///
    /// Blocks are set in a copy of the chunk, so that an error leaves it unchanged. A delta with references only copies
    /// nothing.
    ///
    /// # Errors
    /// [`ApplyError::CarriesComponents`], or the error of an edit, for example [`EditError::NoLayer`] for a layer
    /// further up.
    pub fn apply(&self, chunk: &mut Chunk, schema: &(impl SchemaView + ?Sized)) -> Result<(), ApplyError> {
        if !self.sets.is_empty() {
            let mut edited = chunk.clone();
            for (at, block) in self.sets() {
                set_plain(&mut edited, at, block, schema)?;
            }
            *chunk = edited;
        }
        for id in self.removed() {
            chunk.remove_entity(id);
        }
        for id in self.added() {
            chunk.add_entity(id);
        }
        Ok(())
    }

    /// Appends the stored form. Equal deltas give equal bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let references = self.added.len() + self.removed.len();
        let len_bytes = 1 + 3 * 4 + SET_LEN_BYTES * self.sets.len() + EntityId::LEN_BYTES * references;
        out.reserve(len_bytes);
        let mut writer = Writer::new(out);
        writer.u8(DELTA_VERSION);
        writer.u32(self.sets.len() as u32);
        for (at, block) in &self.sets {
            writer.u16(at.cell.index());
            writer.u8(at.layer);
            writer.u64(block.get());
        }
        for references in [&self.added, &self.removed] {
            // A chunk has at most 2^20 blocks, and 2^32 references would take 64 GiB, so neither count overflows.
            writer.u32(references.len() as u32);
            for id in references {
                writer.bytes(&id.to_bytes());
            }
        }
    }

    /// Reads the stored form. Allocates at most a small multiple of its length.
    ///
    /// # Errors
    /// [`DecodeError`] in [`Section::Delta`] for another version, counts that the bytes cannot hold, cells outside
    /// the chunk, entries that do not ascend, and a reference that is both added and removed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        DeltaView::new(bytes).map(|view| Self::from(&view))
    }

    /// Explains the stored form: the fields that [`decode`](Self::decode) reads, up to the first error.
    pub fn trace(bytes: &[u8]) -> (Vec<Span>, Result<Self, DecodeError>) {
        let trace = Trace::default();
        let result = DeltaView::read(Reader::new(bytes, Section::Delta).traced(Some(&trace)));
        let result = result.map(|view| Self::from(&view));
        (trace.into_inner(), result)
    }
}

impl From<&DeltaView<'_>> for Delta {
    fn from(view: &DeltaView<'_>) -> Self {
        Self { sets: view.sets().collect(), added: view.added().collect(), removed: view.removed().collect() }
    }
}

/// A stored delta, checked once and read in place.
///
/// ```
/// use cg_format::chunk::{CellLayer, Chunk};
/// use cg_format::delta::{Delta, DeltaView};
/// use cg_format::schema::NoComponents;
/// use cg_format::{BlockId, LocalPos};
///
/// let (cell, glass) = (LocalPos::new(1, 2, 3), BlockId::new(7));
/// let mut delta = Delta::new();
/// delta.set_block(CellLayer::base(cell), glass);
/// let mut bytes = Vec::new();
/// delta.encode(&mut bytes);
///
/// let mut chunk = Chunk::filled(BlockId::new(1), &NoComponents)?;
/// DeltaView::new(&bytes)?.fold_into(&mut chunk, &NoComponents)?;
/// assert_eq!(chunk.block(cell), glass);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeltaView<'a> {
    sets: &'a [[u8; SET_LEN_BYTES]],
    added: &'a [[u8; EntityId::LEN_BYTES]],
    removed: &'a [[u8; EntityId::LEN_BYTES]],
}

impl<'a> DeltaView<'a> {
    /// Checks the stored form. Allocates nothing.
    ///
    /// # Errors
    /// As [`Delta::decode`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        Self::read(Reader::new(bytes, Section::Delta))
    }

    /// The blocks set, by cell, then layer.
    pub fn sets(&self) -> impl ExactSizeIterator<Item = (CellLayer, BlockId)> + use<'a> {
        self.sets.iter().map(|set| {
            let [cell0, cell1, layer, block @ ..] = *set;
            let cell = LocalPos::from_index(u16::from_le_bytes([cell0, cell1]));
            let cell = cell.expect("checked when the view was made");
            (CellLayer::new(cell, layer), BlockId::new(u64::from_le_bytes(block)))
        })
    }

    /// The references added, ascending.
    pub fn added(&self) -> impl ExactSizeIterator<Item = EntityId> + use<'a> {
        self.added.iter().map(|id| EntityId::from_bytes(*id))
    }

    /// The references removed, ascending.
    pub fn removed(&self) -> impl ExactSizeIterator<Item = EntityId> + use<'a> {
        self.removed.iter().map(|id| EntityId::from_bytes(*id))
    }

    /// Applies the delta as [`Delta::apply`] does, for a caller that has just decoded the chunk.
    ///
    /// Copies nothing. The cost depends on the length of the delta, unless all cells are visited as in
    /// [`Chunk::set_block`]. A kind without blocks may stay in the palette; then each [`encode`](Chunk::encode) visits
    /// every cell, until the chunk is [packed](Chunk::pack).
    ///
    /// # Errors
    /// As [`Delta::apply`]. Then the chunk has a part of the delta: drop it.
    pub fn fold_into(
        &self,
        chunk: &mut Chunk,
        schema: &(impl SchemaView + ?Sized),
    ) -> Result<(), ApplyError> {
        for (at, block) in self.sets() {
            set_plain(chunk, at, block, schema)?;
        }
        for id in self.removed() {
            chunk.remove_entity(id);
        }
        for id in self.added() {
            chunk.add_entity(id);
        }
        Ok(())
    }

    /// Reads the layout. No other function does.
    fn read(mut reader: Reader<'a>) -> Result<Self, DecodeError> {
        reader.version_u8("delta version", DELTA_VERSION)?;
        let sets = read_sets(&mut reader)?;
        let added = read_references(&mut reader, "added count", "added", |_| false)?;
        let is_added = |id| added.binary_search_by_key(&id, |added| EntityId::from_bytes(*added)).is_ok();
        let removed = read_references(&mut reader, "removed count", "removed", is_added)?;
        reader.end("bytes after the references")?;
        Ok(Self { sets, added, removed })
    }
}

fn carries_components(block: BlockId, schema: &(impl SchemaView + ?Sized)) -> bool {
    schema.components_of(block).is_some_and(|components| !components.is_empty())
}

/// Sets a block if neither it nor the old one has components.
fn set_plain(
    chunk: &mut Chunk,
    at: CellLayer,
    block: BlockId,
    schema: &(impl SchemaView + ?Sized),
) -> Result<(), ApplyError> {
    let old = chunk.layer(at.cell, at.layer);
    let carries = |block: &BlockId| carries_components(*block, schema);
    if let Some(block) = [Some(block), old].into_iter().flatten().find(carries) {
        return Err(ApplyError::CarriesComponents { at, block });
    }
    Ok(chunk.put(at, block, schema)?)
}

fn read_sets<'a>(reader: &mut Reader<'a>) -> Result<&'a [[u8; SET_LEN_BYTES]], DecodeError> {
    let items = read_count(reader, "set count", "sets")?;
    let mut last = None;
    for _ in items {
        let here = reader.clone();
        let index = reader.u16("set cell")?;
        let Some(cell) = LocalPos::from_index(index) else {
            let (found, allowed) = (index.into(), "0 to 4095");
            return Err(here.error(Problem::OutOfRange { field: "set cell", found, allowed }));
        };
        let at = CellLayer::new(cell, reader.u8("set layer")?);
        if let Some(last) = last.replace(at).filter(|last| *last >= at) {
            let (field, found) = ("set cell", index.into());
            let problem = if last == at {
                Problem::Duplicate { field, found }
            } else {
                Problem::OutOfRange { field, found, allowed: "a cell and layer above those before them" }
            };
            return Err(here.error(problem));
        }
        reader.u64("set block")?;
    }
    Ok(items)
}

/// Reads ascending references; none may be excluded. Errors contain the first half of a UUID.
fn read_references<'a>(
    reader: &mut Reader<'a>,
    count_field: &'static str,
    field: &'static str,
    is_excluded: impl Fn(EntityId) -> bool,
) -> Result<&'a [[u8; EntityId::LEN_BYTES]], DecodeError> {
    let items = read_count(reader, count_field, field)?;
    let mut last = None;
    for _ in items {
        let here = reader.clone();
        let id = EntityId::from_bytes(reader.array(field)?);
        let (found, _) = id.get().as_u64_pair();
        if last == Some(id) || is_excluded(id) {
            return Err(here.error(Problem::Duplicate { field, found }));
        }
        if last > Some(id) {
            let allowed = "a UUID above the one before it";
            return Err(here.error(Problem::OutOfRange { field, found, allowed }));
        }
        last = Some(id);
    }
    Ok(items)
}

/// Reads a count, checks that the remaining bytes can hold it, and returns that many items without taking them.
fn read_count<'a, const WIDTH: usize>(
    reader: &mut Reader<'a>,
    count_field: &'static str,
    field: &'static str,
) -> Result<&'a [[u8; WIDTH]], DecodeError> {
    let here = reader.clone();
    let count = u64::from(reader.u32(count_field)?);
    let (width, left) = (WIDTH as u64, reader.left_bytes() as u64);
    let items = reader.clone().traced(None).take_items(field, count, width);
    let Ok(items) = items else {
        return Err(here.error(Problem::CountExceedsInput { field, count, width, left }));
    };
    Ok(items.as_chunks().0)
}

#[cfg(test)]
mod tests;
