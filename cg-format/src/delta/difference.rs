//! The delta from one chunk to another.

use super::{Delta, carries_components};
use crate::SchemaView;
use crate::chunk::{CellLayer, ChangedBlock, Chunk};

impl Delta {
    /// The delta from one chunk to another, with at most a limited number of blocks without components, and references.
    /// `None` if components, side data or more blocks differ, or a layer was removed.
    ///
    /// Costs at most one comparison of every cell.
    pub fn between(
        old: &Chunk,
        new: &Chunk,
        schema: &(impl SchemaView + ?Sized),
        max_sets: usize,
    ) -> Option<Self> {
        if !old.is_equal_beside_blocks(new) {
            return None;
        }
        let mut delta = Self::new();
        for changed in old.blocks_changed_in(new, max_sets)? {
            delta.set_changed(changed, schema)?;
        }
        delta.change_references(old, new);
        Some(delta)
    }

    /// The delta from one chunk to another, as [`between`](Self::between) finds it, if the blocks of only these cells may
    /// differ. A cell may be named twice, and its block may be the same in both chunks.
    ///
    /// Compares the named blocks, components, side data and references. So the cost does not depend on the number of
    /// cells of a chunk.
    ///
    /// The caller must name every block that differs: the delta contains no other. Builds with debug assertions check
    /// that, and panic.
    ///
    /// ```
    /// use cg_format::chunk::{CellLayer, Chunk};
    /// use cg_format::delta::Delta;
    /// use cg_format::schema::NoComponents;
    /// use cg_format::{BlockId, LocalPos};
    ///
    /// let before = Chunk::filled(BlockId::new(1), &NoComponents)?;
    /// let (mut after, cell) = (before.clone(), LocalPos::new(1, 2, 3));
    /// after.set_block(cell, BlockId::new(7), &NoComponents)?;
    /// let delta = Delta::of_blocks(&before, &after, [CellLayer::base(cell)], &NoComponents);
    /// assert_eq!(delta, Delta::between(&before, &after, &NoComponents, 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn of_blocks(
        old: &Chunk,
        new: &Chunk,
        named: impl IntoIterator<Item = CellLayer>,
        schema: &(impl SchemaView + ?Sized),
    ) -> Option<Self> {
        let delta = Self::of_named(old, new, named, schema);
        debug_assert_eq!(
            delta,
            Self::between(old, new, schema, usize::MAX),
            "a block that differs was not named"
        );
        delta
    }

    fn of_named(
        old: &Chunk,
        new: &Chunk,
        named: impl IntoIterator<Item = CellLayer>,
        schema: &(impl SchemaView + ?Sized),
    ) -> Option<Self> {
        if !old.is_equal_beside_blocks(new) {
            return None;
        }
        let mut delta = Self::new();
        for at in named {
            let [before, after] = [old, new].map(|chunk| chunk.layer(at.cell, at.layer));
            if before != after {
                // No block now: the layer was removed.
                delta.set_changed(ChangedBlock { at, old: before, new: after? }, schema)?;
            }
        }
        delta.change_references(old, new);
        Some(delta)
    }

    /// Sets a block that differs; `None` if the old or the new one has components.
    fn set_changed(&mut self, changed: ChangedBlock, schema: &(impl SchemaView + ?Sized)) -> Option<()> {
        let ChangedBlock { at, old, new } = changed;
        let is_plain = [Some(new), old].into_iter().flatten().all(|block| !carries_components(block, schema));
        is_plain.then(|| self.set_block(at, new))
    }

    fn change_references(&mut self, old: &Chunk, new: &Chunk) {
        let (before, after) = (old.entities(), new.entities());
        if before != after {
            self.added = after.iter().filter(|id| before.binary_search(id).is_err()).copied().collect();
            self.removed = before.iter().filter(|id| after.binary_search(id).is_err()).copied().collect();
        }
    }
}

#[cfg(test)]
mod tests;
