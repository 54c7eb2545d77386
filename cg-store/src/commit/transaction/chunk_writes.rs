//! The chunk writes of a transaction, by place.
//!
//! A host saves some dozens of chunks, mostly in order. A sorted list takes them at a tenth of the cost of a tree. If
//! many come out of order, the list becomes a tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use cg_format::ChunkAt;
use cg_format::chunk::Chunk;

/// A chunk to store; `None` is a deletion.
type Write = Option<Arc<Chunk>>;

/// The last write of each chunk, in ascending order.
#[derive(Debug, Clone, Default)]
pub struct ChunkWrites {
    /// Ascending. Empty if the tree is used.
    listed: Vec<(ChunkAt, Write)>,
    tree: BTreeMap<ChunkAt, Write>,
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
        match self.place(at) {
            Ok(place) => self.listed.get(place).map(|(_, write)| write),
            Err(_) => self.tree.get(at),
        }
    }

    pub(crate) fn get_mut(&mut self, at: &ChunkAt) -> Option<&mut Write> {
        match self.place(at) {
            Ok(place) => self.listed.get_mut(place).map(|(_, write)| write),
            Err(_) => self.tree.get_mut(at),
        }
    }

    /// Whether a chunk is written.
    pub fn contains_key(&self, at: &ChunkAt) -> bool {
        self.get(at).is_some()
    }

    /// Sets the write of a chunk. Returns the previous one.
    pub(crate) fn insert(&mut self, at: ChunkAt, write: Write) -> Option<Write> {
        if !self.tree.is_empty() {
            return self.tree.insert(at, write);
        }
        match self.place(&at) {
            Ok(place) => self.listed.get_mut(place).map(|(_, before)| std::mem::replace(before, write)),
            Err(place) if self.listed.len() - place <= MOVED_AT_MOST => {
                self.listed.insert(place, (at, write));
                None
            }
            Err(_) => {
                self.tree = std::mem::take(&mut self.listed).into_iter().collect();
                self.tree.insert(at, write)
            }
        }
    }

    /// Each chunk with its write, ascending by position.
    pub fn iter(&self) -> impl Iterator<Item = (&ChunkAt, &Write)> {
        self.listed.iter().map(|(at, write)| (at, write)).chain(&self.tree)
    }

    /// The chunks that are written, ascending by position.
    pub fn keys(&self) -> impl Iterator<Item = &ChunkAt> {
        self.iter().map(|(at, _)| at)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Write> {
        self.iter().map(|(_, write)| write)
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
    use cg_format::{ChunkPos, Dimension};
    use proptest::prelude::*;

    /// Whether both are absent, or both present and equal in being deletions.
    fn is_same(ours: Option<&Write>, naive: Option<&bool>) -> bool {
        ours.map(Option::is_none) == naive.copied()
    }

    proptest! {
        #[test]
        fn it_is_a_map_whatever_the_order(places in prop::collection::vec((0_i64..300, any::<bool>()), 0..600)) {
            let chunk = Arc::new(Chunk::filled(cg_format::BlockId::new(0), &cg_format::schema::NoComponents).unwrap());
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
