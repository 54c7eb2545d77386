//! The shape of the record tree: finds the path of a position in the tree, and the leaves that cover an area.
//!
//! Pure: no I/O, no engine. It names rows.
//!
//! ```text
//! table   roots_per_table trees beside each other, a cube of them
//! └ root  tree_degree children, a cube of them; num_levels levels from the root to the leaves, both counted
//!   └ …
//!     └ leaf   a cube of leaf_square_size blocks
//! ```
//! All sides follow from the side of a leaf. Every place is found by division that rounds down, so negative coordinates
//! are not special.

use std::cmp::Ordering;

use cg_format::key::{RECORD_MAX_LEVELS, RecordLeaf, RecordPath};
use cg_format::{BlockBox, BlockPos, Dimension, morton};

use crate::storage::record_settings::RecordSettings;

/// Settings that do not make a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A number of children or roots that is not a cube number.
    #[error("{setting} is {found}, which is no cube; allowed are {allowed}")]
    NotCubic {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: u32,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A setting too small or too large.
    #[error("{setting} is {found}, allowed is {allowed}")]
    OutOfRange {
        /// The setting.
        setting: &'static str,
        /// Its value.
        found: u32,
        /// The allowed values.
        allowed: &'static str,
    },
    /// Tables that are too large to number the positions inside one.
    #[error("a table would have a side of {side_blocks} blocks, at most 2^62 are allowed: {settings}")]
    TooLarge {
        /// The side of a table.
        side_blocks: u128,
        /// The settings.
        settings: RecordSettings,
    },
}

/// The largest side of a table.
const MAX_TABLE_SIDE_BLOCKS: u128 = 1 << 62;

/// A tree whose settings were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordShape {
    settings: RecordSettings,
    /// Children of a node along one axis.
    node_axis: u32,
    /// Roots of a table along one axis.
    table_axis: u32,
    /// Leaves of a root along one axis.
    root_side_leaves: i64,
}

impl Default for RecordShape {
    fn default() -> Self {
        Self::new(RecordSettings::default()).expect("WorldQL's own example")
    }
}

impl RecordShape {
    /// Checks settings.
    ///
    /// # Errors
    /// [`ShapeError`] names the first invalid setting.
    pub fn new(settings: RecordSettings) -> Result<Self, ShapeError> {
        let RecordSettings { leaf_square_size, tree_degree, num_levels, roots_per_table } = settings;
        if leaf_square_size == 0 {
            let (setting, found) = ("leaf_square_size", leaf_square_size);
            return Err(ShapeError::OutOfRange { setting, found, allowed: "1 and up" });
        }
        let node_axis = cube_root("tree_degree", tree_degree, 2, "8, 27, 64 and so on")?;
        if !(1..=RECORD_MAX_LEVELS as u32).contains(&num_levels) {
            let (setting, found) = ("num_levels", num_levels);
            return Err(ShapeError::OutOfRange { setting, found, allowed: "1 to 16" });
        }
        let table_axis = cube_root("roots_per_table", roots_per_table, 1, "1, 8, 27 and so on")?;
        let root_side_leaves = u128::from(node_axis).saturating_pow(num_levels - 1);
        let table_side_leaves = root_side_leaves.saturating_mul(table_axis.into());
        let side_blocks = table_side_leaves.saturating_mul(leaf_square_size.into());
        if side_blocks > MAX_TABLE_SIDE_BLOCKS {
            return Err(ShapeError::TooLarge { side_blocks, settings });
        }
        Ok(Self { settings, node_axis, table_axis, root_side_leaves: root_side_leaves as i64 })
    }

    /// The settings.
    pub const fn settings(&self) -> RecordSettings {
        self.settings
    }

    /// The side of a leaf.
    pub fn leaf_side_blocks(&self) -> i64 {
        self.settings.leaf_square_size.into()
    }

    /// The side of a root.
    pub fn root_side_blocks(&self) -> i64 {
        self.root_side_leaves * self.leaf_side_blocks()
    }

    /// The side of a table.
    pub fn table_side_blocks(&self) -> i64 {
        self.table_side_leaves() * self.leaf_side_blocks()
    }

    /// The leaf that holds a block.
    ///
    /// ```
    /// use cg_format::{BlockPos, Dimension};
    /// use cg_store::records::RecordShape;
    /// let shape = RecordShape::default();
    /// let leaf = |x| shape.leaf(Dimension::new(0), BlockPos::new(x, 0, 0));
    /// assert_eq!(leaf(-16), leaf(-1));
    /// assert_ne!(leaf(-17), leaf(-16));
    /// // The second root along x of the table before the origin, and its last leaf along x.
    /// assert_eq!((leaf(-1).table, leaf(-1).path.numbers()), ([-1, 0, 0], &[4, 448][..]));
    /// ```
    pub fn leaf(&self, dimension: Dimension, block: BlockPos) -> RecordLeaf {
        let leaf = self.leaf_of(block);
        let side = self.table_side_leaves();
        let table = leaf.map(|axis| axis.div_euclid(side));
        let mut within = leaf.map(|axis| axis.rem_euclid(side));
        let mut path = RecordPath::EMPTY;
        for level in self.levels() {
            let number = level.number(within.map(|axis| axis / level.child_side_leaves));
            path = path.child(number).expect("no more levels than a key can name");
            within = within.map(|axis| axis % level.child_side_leaves);
        }
        RecordLeaf { dimension, table, path }
    }

    fn leaf_of(&self, block: BlockPos) -> [i64; 3] {
        [block.x, block.y, block.z].map(|axis| axis.div_euclid(self.leaf_side_blocks()))
    }

    fn table_side_leaves(&self) -> i64 {
        self.root_side_leaves * i64::from(self.table_axis)
    }

    /// The levels from the roots down.
    fn levels(&self) -> impl Iterator<Item = Level> {
        let roots = Level { axis: self.table_axis.into(), child_side_leaves: self.root_side_leaves };
        let node_axis = i64::from(self.node_axis);
        let below = (1..self.settings.num_levels).scan(self.root_side_leaves, move |side, _| {
            *side /= node_axis;
            Some(Level { axis: node_axis, child_side_leaves: *side })
        });
        std::iter::once(roots).chain(below)
    }
}

/// The side of a cube with `found` elements.
fn cube_root(setting: &'static str, found: u32, from: u32, allowed: &'static str) -> Result<u32, ShapeError> {
    // 1625³ is the last cube below 2^32.
    let side = (1..=1625_u32).find(|side| side.pow(3) >= found);
    match side {
        Some(side) if side.pow(3) == found && side >= from => Ok(side),
        Some(side) if side.pow(3) == found && found > 0 => {
            Err(ShapeError::OutOfRange { setting, found, allowed })
        }
        _ => Err(ShapeError::NotCubic { setting, found, allowed }),
    }
}

/// One level of the tree: a node, or a table, and its children.
#[derive(Debug, Clone, Copy)]
struct Level {
    /// Children along one axis.
    axis: i64,
    child_side_leaves: i64,
}

impl Level {
    /// The number of a child: x slowest, z fastest.
    fn number(self, [x, y, z]: [i64; 3]) -> u32 {
        ((x * self.axis + y) * self.axis + z) as u32
    }

    fn child(self, number: i64) -> [i64; 3] {
        [number / self.axis / self.axis, number / self.axis % self.axis, number % self.axis]
    }

    /// The first child in a box of children with at least this number.
    fn first_from(self, number: i64, min: [i64; 3], max: [i64; 3]) -> Option<i64> {
        let [x, y, z] = self.child(number);
        let [x, y, z] = if x < min[0] {
            min
        } else if y < min[1] {
            [x, min[1], min[2]]
        } else if y <= max[1] && z < min[2] {
            [x, y, min[2]]
        } else if y < max[1] && z > max[2] {
            [x, y + 1, min[2]]
        } else if y > max[1] || z > max[2] {
            [x + 1, min[1], min[2]]
        } else {
            [x, y, z]
        };
        (x <= max[0]).then(|| (x * self.axis + y) * self.axis + z)
    }
}

/// The leaves that a box of blocks touches, in the order of their keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cover {
    shape: RecordShape,
    dimension: Dimension,
    /// The first and the last leaf along each axis.
    min: [i64; 3],
    max: [i64; 3],
    /// The last leaf in the order of the keys: that of the corner with the highest coordinates, because numbers of
    /// tables and of children rise along each axis.
    pub(crate) last: RecordLeaf,
}

impl Cover {
    pub(crate) fn new(shape: RecordShape, dimension: Dimension, area: &BlockBox) -> Self {
        let [min, max] = [area.min(), area.max()].map(|corner| shape.leaf_of(corner));
        Self { shape, dimension, min, max, last: shape.leaf(dimension, area.max()) }
    }

    /// The first leaf.
    pub(crate) fn first(&self) -> Option<RecordLeaf> {
        let side = self.shape.table_side_leaves();
        let table = self.min.map(|axis| axis.div_euclid(side));
        self.in_table(table, &[])
    }

    /// The first covered leaf that is not before `leaf`; `leaf` itself if it is covered.
    ///
    /// Costs one step at each level, whatever the size of the box.
    pub(crate) fn first_from(&self, leaf: &RecordLeaf) -> Option<RecordLeaf> {
        match leaf.dimension.cmp(&self.dimension) {
            Ordering::Less => return self.first(),
            Ordering::Greater => return None,
            Ordering::Equal => {}
        }
        let side = self.shape.table_side_leaves();
        let (min, max) =
            (self.min.map(|axis| axis.div_euclid(side)), self.max.map(|axis| axis.div_euclid(side)));
        let table = morton::first_in_box(leaf.table, min, max)?;
        if table != leaf.table {
            return self.in_table(table, &[]);
        }
        let here = self.in_table(table, leaf.path.numbers());
        here.or_else(|| {
            let next = morton::first_in_box(morton::next_3d(table)?, min, max)?;
            self.in_table(next, &[])
        })
    }

    /// The first covered leaf of a covered table whose path is not before `from`.
    fn in_table(&self, table: [i64; 3], from: &[u32]) -> Option<RecordLeaf> {
        let side = i128::from(self.shape.table_side_leaves());
        let within =
            |axis: i64, table: i64| (i128::from(axis) - i128::from(table) * side).clamp(0, side - 1) as i64;
        let [x, y, z] = table;
        let min = [within(self.min[0], x), within(self.min[1], y), within(self.min[2], z)];
        let max = [within(self.max[0], x), within(self.max[1], y), within(self.max[2], z)];
        let levels: Vec<_> = self.shape.levels().collect();
        let path = below(&levels, RecordPath::EMPTY, min, max, from)?;
        Some(RecordLeaf { dimension: self.dimension, table, path })
    }
}

/// The path of the first leaf in a box that is not before `from`. The box is counted in leaves inside a node.
fn below(
    levels: &[Level],
    path: RecordPath,
    min: [i64; 3],
    max: [i64; 3],
    from: &[u32],
) -> Option<RecordPath> {
    let Some((level, deeper)) = levels.split_first() else { return Some(path) };
    let side = level.child_side_leaves;
    let (first, last) = (min.map(|axis| axis / side), max.map(|axis| axis / side));
    let (wanted, from) = from.split_first().map_or((0, from), |(wanted, rest)| (i64::from(*wanted), rest));
    let mut number = wanted;
    loop {
        number = level.first_from(number, first, last)?;
        let [x, y, z] = level.child(number).map(|axis| axis * side);
        let inside = |axis: i64, corner: i64| (axis - corner).clamp(0, side - 1);
        let child_min = [inside(min[0], x), inside(min[1], y), inside(min[2], z)];
        let child_max = [inside(max[0], x), inside(max[1], y), inside(max[2], z)];
        let from = if number == wanted { from } else { &[] };
        let path = path.child(number as u32)?;
        if let Some(found) = below(deeper, path, child_min, child_max, from) {
            return Some(found);
        }
        number += 1;
    }
}

#[cfg(test)]
mod tests;
