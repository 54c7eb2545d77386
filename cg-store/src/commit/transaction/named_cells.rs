//! The cells that a host names when it changes a chunk block by block, so that the commit compares only these.

use std::sync::Arc;

use cg_format::chunk::Chunk;
use cg_format::{LocalPos, Lookup};

use crate::read::cache::Stored;
use crate::read::delta::MAX_SETS;

/// The named cells of a written chunk, at most [`MAX_SETS`].
///
/// **Invariant**: the written chunk differs from the one that it began as only in the blocks of layer 0 of these cells,
/// in their components, and in references to entities.
#[derive(Debug, Clone)]
pub(super) struct NamedCells {
    began_as: Arc<Chunk>,
    count: usize,
    /// The first `count` are named.
    cells: [LocalPos; MAX_SETS],
}

impl NamedCells {
    /// Of a chunk in which nothing is changed yet.
    pub(super) fn of(began_as: Arc<Chunk>) -> Self {
        Self { began_as, count: 0, cells: [LocalPos::default(); MAX_SETS] }
    }

    /// Names a cell. Returns `false` if there are too many.
    pub(super) fn add(&mut self, cell: LocalPos) -> bool {
        if self.cells().contains(&cell) {
            return true;
        }
        let free = self.cells.get_mut(self.count);
        let has_room = free.is_some();
        if let Some(free) = free {
            *free = cell;
            self.count += 1;
        }
        has_room
    }

    /// Each once, in the order in which they were named.
    pub(super) fn cells(&self) -> &[LocalPos] {
        self.cells.get(..self.count).unwrap_or_default()
    }

    /// Whether what is stored is the very chunk that the written one began as. An equal chunk that was read again is not:
    /// to know that it is equal takes a comparison.
    pub(super) fn begin_with(&self, stored: &Lookup<Stored>) -> bool {
        matches!(stored, Lookup::Found(stored) if Arc::ptr_eq(&stored.chunk, &self.began_as))
    }

    /// Whether a named block differs in the written chunk.
    pub(super) fn differ_in(&self, written: &Chunk) -> bool {
        self.cells().iter().any(|cell| self.began_as.block(*cell) != written.block(*cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::BlockId;
    use cg_format::schema::NoComponents;

    fn chunk() -> Arc<Chunk> {
        Arc::new(Chunk::filled(BlockId::new(0), &NoComponents).unwrap())
    }

    #[test]
    fn as_many_cells_as_a_delta_sets_are_named_and_each_once() {
        let cells: Vec<_> = LocalPos::all().rev().take(MAX_SETS).collect();
        let mut named = NamedCells::of(chunk());
        for cell in cells.iter().chain(&cells) {
            assert!(named.add(*cell));
        }
        assert_eq!(named.cells(), cells);
        assert!(!named.add(LocalPos::new(0, 0, 0)));
        assert_eq!(named.cells(), cells);
    }

    #[test]
    fn an_equal_chunk_that_was_read_again_is_not_the_one_it_began_as() {
        let (began_as, again) = (chunk(), chunk());
        let named = NamedCells::of(Arc::clone(&began_as));
        let stored = |chunk| Lookup::Found(Stored { chunk, version: 1, is_current: true });
        assert!(named.begin_with(&stored(began_as)));
        assert!(!named.begin_with(&stored(again)));
        assert!(!named.begin_with(&Lookup::Tombstone) && !named.begin_with(&Lookup::NotFound));
    }

    #[test]
    fn one_named_block_that_differs_is_a_change() {
        let [one, other] = [1, 2].map(|x| LocalPos::new(x, 0, 0));
        let (mut named, mut written) = (NamedCells::of(chunk()), Chunk::clone(&chunk()));
        named.add(one);
        written.set_block(other, BlockId::new(1), &NoComponents).unwrap();
        assert!(!named.differ_in(&written), "it is not named");
        named.add(other);
        assert!(named.differ_in(&written));
        written.set_block(other, BlockId::new(0), &NoComponents).unwrap();
        assert!(!named.differ_in(&written));
    }
}
