//! The chunk writes of a transaction, by place.
//!
//! A host saves some dozens of chunks, mostly in order. A sorted list takes them at a tenth of the cost of a tree. If
//! many come out of order, the list becomes a tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::chunk::{Chunk, EditError};
use cg_format::{BlockId, ChunkAt, LocalPos, SchemaView};

use super::named_cells::NamedCells;

/// A chunk to store; `None` is a deletion.
type Write = Option<Arc<Chunk>>;

/// A write, with the cells that were named if nothing else was changed.
#[derive(Debug, Clone)]
struct Entry {
    write: Write,
    named: Option<Arc<NamedCells>>,
}

/// The last write of each chunk, in ascending order.
#[derive(Debug, Clone, Default)]
pub struct ChunkWrites {
    /// Ascending. Empty if the tree is used.
    listed: Vec<(ChunkAt, Entry)>,
    tree: BTreeMap<ChunkAt, Entry>,
}

/// The maximum number of entries that are moved to insert one between them.
const MOVED_AT_MOST: usize = 64;

impl ChunkWrites {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many chunks are written.
    pub fn len(&self) -> usize {
        self.listed.len() + self.tree.len()
    }

    pub(crate) fn get(&self, at: &ChunkAt) -> Option<&Write> {
        let entry = match self.place(at) {
            Ok(place) => self.listed.get(place).map(|(_, entry)| entry),
            Err(_) => self.tree.get(at),
        };
        entry.map(|entry| &entry.write)
    }

    /// The write of a chunk, for any change. Forgets the cells that were named.
    pub(crate) fn get_mut(&mut self, at: &ChunkAt) -> Option<&mut Write> {
        let entry = self.entry_mut(at)?;
        entry.named = None;
        Some(&mut entry.write)
    }

    /// Sets a block of a chunk that is written, and names its cell. `None` if the chunk is not written or deleted.
    pub(super) fn set_block(
        &mut self,
        at: ChunkAt,
        cell: LocalPos,
        block: BlockId,
        schema: &impl SchemaView,
    ) -> Option<Result<BlockId, EditError>> {
        let Entry { write, named } = self.entry_mut(&at)?;
        let chunk = write.as_mut()?;
        if named.as_mut().is_some_and(|named| !Arc::make_mut(named).add(cell)) {
            *named = None;
        }
        Some(Arc::make_mut(chunk).set_block(cell, block, schema))
    }

    /// Whether a chunk is written.
    pub fn contains_key(&self, at: &ChunkAt) -> bool {
        self.get(at).is_some()
    }

    /// Sets the write of a chunk. Returns the previous one.
    pub(crate) fn insert(&mut self, at: ChunkAt, write: Write) -> Option<Write> {
        self.insert_entry(at, Entry { write, named: None })
    }

    /// Writes a chunk as it is stored, to be changed from here on.
    pub(super) fn insert_stored(&mut self, at: ChunkAt, stored: Arc<Chunk>) {
        let named = Some(Arc::new(NamedCells::of(Arc::clone(&stored))));
        self.insert_entry(at, Entry { write: Some(stored), named });
    }

    /// Each chunk with its write, ascending by position.
    pub fn iter(&self) -> impl Iterator<Item = (&ChunkAt, &Write)> {
        self.entries().map(|(at, entry)| (at, &entry.write))
    }

    /// As [`iter`](Self::iter), with the cells that were named if nothing else was changed.
    pub(super) fn with_names(&self) -> impl Iterator<Item = (&ChunkAt, &Write, Option<&Arc<NamedCells>>)> {
        self.entries().map(|(at, entry)| (at, &entry.write, entry.named.as_ref()))
    }

    /// The chunks that are written, ascending by position.
    pub fn keys(&self) -> impl Iterator<Item = &ChunkAt> {
        self.iter().map(|(at, _)| at)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Write> {
        self.iter().map(|(_, write)| write)
    }

    fn entries(&self) -> impl Iterator<Item = (&ChunkAt, &Entry)> {
        self.listed.iter().map(|(at, entry)| (at, entry)).chain(&self.tree)
    }

    fn entry_mut(&mut self, at: &ChunkAt) -> Option<&mut Entry> {
        match self.place(at) {
            Ok(place) => self.listed.get_mut(place).map(|(_, entry)| entry),
            Err(_) => self.tree.get_mut(at),
        }
    }

    fn insert_entry(&mut self, at: ChunkAt, entry: Entry) -> Option<Write> {
        let before = if self.tree.is_empty() {
            match self.place(&at) {
                Ok(place) => self.listed.get_mut(place).map(|(_, before)| std::mem::replace(before, entry)),
                Err(place) if self.listed.len() - place <= MOVED_AT_MOST => {
                    self.listed.insert(place, (at, entry));
                    None
                }
                Err(_) => {
                    self.tree = std::mem::take(&mut self.listed).into_iter().collect();
                    self.tree.insert(at, entry)
                }
            }
        } else {
            self.tree.insert(at, entry)
        };
        before.map(|entry| entry.write)
    }

    /// The place of a chunk in the list, or where it would be inserted.
    fn place(&self, at: &ChunkAt) -> Result<usize, usize> {
        match self.listed.last() {
            Some((last, _)) if last >= at => self.listed.binary_search_by(|(listed, _)| listed.cmp(at)),
            _ => Err(self.listed.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::schema::NoComponents;
    use cg_format::{ChunkPos, Dimension};
    use proptest::prelude::*;

    /// Whether both are absent, or both present and equal in being deletions.
    fn is_same(ours: Option<&Write>, naive: Option<&bool>) -> bool {
        ours.map(Option::is_none) == naive.copied()
    }

    #[test]
    fn cells_are_named_until_anything_else_changes_the_chunk() {
        let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(1, 2, 3));
        let air = Arc::new(Chunk::filled(BlockId::new(0), &NoComponents).unwrap());
        let cells: Vec<_> = LocalPos::all().take(65).collect();
        let mut writes = ChunkWrites::default();
        let set = |writes: &mut ChunkWrites, cell| writes.set_block(at, cell, BlockId::new(1), &NoComponents);
        let named = |writes: &ChunkWrites| {
            let (_, _, named) = writes.with_names().next()?;
            Some(named?.cells().to_vec())
        };
        assert_eq!(set(&mut writes, cells[0]), None, "it is not written");
        writes.insert_stored(at, Arc::clone(&air));
        assert_eq!(named(&writes), Some(Vec::new()));
        for (count, cell) in (1..65).zip(&cells) {
            assert_eq!(set(&mut writes, *cell), Some(Ok(BlockId::new(0))));
            assert_eq!(set(&mut writes, *cell), Some(Ok(BlockId::new(1))));
            assert_eq!(named(&writes).as_deref(), cells.get(..count));
        }
        let shared = writes.clone();
        assert_eq!(set(&mut writes, cells[64]), Some(Ok(BlockId::new(0))));
        assert_eq!(named(&writes), None, "too many");
        assert_eq!(named(&shared).as_deref(), cells.get(..64), "a copy keeps its own");
        writes.insert_stored(at, Arc::clone(&air));
        set(&mut writes, cells[0]);
        assert!(writes.get_mut(&at).is_some());
        assert_eq!(named(&writes), None, "it may be changed in any way");
        set(&mut writes, cells[0]);
        assert_eq!(named(&writes), None, "and was not named before");
        writes.insert_stored(at, Arc::clone(&air));
        writes.insert(at, Some(air));
        assert_eq!(named(&writes), None, "it is another chunk");
        writes.insert(at, None);
        assert_eq!(set(&mut writes, cells[0]), None, "it is deleted");
    }

    proptest! {
        #[test]
        fn it_is_a_map_whatever_the_order(places in prop::collection::vec((0_i64..300, any::<bool>()), 0..600)) {
            let chunk = Arc::new(Chunk::filled(cg_format::BlockId::new(0), &NoComponents).unwrap());
            let (mut ours, mut naive) = (ChunkWrites::default(), BTreeMap::new());
            for (x, deletes) in places {
                let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(x, 0, 0));
                let before = ours.insert(at, (!deletes).then(|| Arc::clone(&chunk)));
                let expected = naive.insert(at, deletes);
                prop_assert!(is_same(before.as_ref(), expected.as_ref()));
                prop_assert!(ours.contains_key(&at) && ours.get_mut(&at).is_some());
            }
            prop_assert_eq!(ours.len(), naive.len());
            prop_assert!(ours.keys().eq(naive.keys()));
            let mut both = ours.iter().zip(&naive);
            let all = both.all(|((at, write), (_, deletes))| write.is_none() == *deletes && is_same(ours.get(at), Some(deletes)));
            prop_assert!(all);
            let nowhere = ChunkAt::new(Dimension::new(1), ChunkPos::constant(0, 0, 0));
            prop_assert!(!ours.contains_key(&nowhere) && ours.is_empty() == naive.is_empty());
        }
    }
}
