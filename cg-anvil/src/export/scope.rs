//! The part of a world that is written: all of it, a dimension, or columns of one.

use std::ops::RangeInclusive;

use cg_format::{BlockBox, ChunkBox, ChunkPos, Dimension};
use cg_store::view::Area;

use crate::region::{ColumnPos, RegionPos};

/// The part of a world that is written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope<'a> {
    /// All dimensions.
    World,
    /// One of them.
    Dimension(Dimension),
    /// Columns of one.
    Columns(Dimension, &'a Columns),
}

/// The columns that boxes touch, as rectangles that do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Columns(Vec<Rectangle>);

/// Columns, first and last included.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rectangle {
    x: RangeInclusive<i32>,
    z: RangeInclusive<i32>,
}

impl Scope<'_> {
    /// Whether a dimension, or a part of it, is written.
    pub(super) fn has(self, dimension: Dimension) -> bool {
        match self {
            Self::World => true,
            Self::Dimension(only) | Self::Columns(only, _) => only == dimension,
        }
    }

    /// The only dimension.
    pub(super) const fn dimension(self) -> Option<Dimension> {
        match self {
            Self::World => None,
            Self::Dimension(only) | Self::Columns(only, _) => Some(only),
        }
    }

    /// The columns, unless whole dimensions are written.
    pub(super) const fn columns(&self) -> Option<&Columns> {
        match self {
            Self::Columns(_, columns) => Some(columns),
            Self::World | Self::Dimension(_) => None,
        }
    }

    /// Whether a column of a dimension that is written is written too.
    pub(super) fn has_column(self, column: ColumnPos) -> bool {
        self.columns().is_none_or(|columns| columns.contains(column))
    }

    /// The places of chunks, none twice.
    pub(super) fn areas(self) -> Vec<Area<'static>> {
        let Self::Columns(dimension, columns) = self else { return vec![Area::World] };
        let corner = |x: i32, y, z: i32| {
            ChunkPos::new(x.into(), y, z.into()).expect("an i32 is inside the world on every axis")
        };
        let chunks = |Rectangle { x, z }: &Rectangle| {
            let first = corner(*x.start(), ChunkPos::MIN, *z.start());
            ChunkBox::new(first, corner(*x.end(), ChunkPos::MAX, *z.end()))
        };
        columns.0.iter().map(|rectangle| Area::Box(dimension, chunks(rectangle))).collect()
    }
}

impl Columns {
    /// The columns that these boxes touch at any height, and that region files reach.
    pub(super) fn of(boxes: &[BlockBox]) -> Self {
        let mut columns = Self::default();
        for area in boxes {
            let range = |first: i64, last: i64| {
                let (first, last) = ((first >> 4).max(i32::MIN.into()), (last >> 4).min(i32::MAX.into()));
                Some(i32::try_from(first).ok()?..=i32::try_from(last).ok()?)
            };
            let (min, max) = (area.min(), area.max());
            if let Some((x, z)) = range(min.x, max.x).zip(range(min.z, max.z)) {
                columns.add(Rectangle { x, z });
            }
        }
        columns
    }

    pub(super) fn contains(&self, column: ColumnPos) -> bool {
        self.0.iter().any(|rectangle| rectangle.x.contains(&column.x) && rectangle.z.contains(&column.z))
    }

    /// Whether a region has some of the columns.
    pub(super) fn touch(&self, region: RegionPos) -> bool {
        let side = |at: i32| at * 32..=at * 32 + 31;
        let region = Rectangle { x: side(region.x()), z: side(region.z()) };
        self.0.iter().any(|rectangle| rectangle.overlaps(&region))
    }

    fn add(&mut self, new: Rectangle) {
        let mut parts = vec![new];
        for taken in &self.0 {
            parts = parts.into_iter().flat_map(|part| part.without(taken)).collect();
        }
        self.0.append(&mut parts);
    }
}

impl Rectangle {
    fn overlaps(&self, other: &Self) -> bool {
        let meet =
            |a: &RangeInclusive<i32>, b: &RangeInclusive<i32>| a.start() <= b.end() && b.start() <= a.end();
        meet(&self.x, &other.x) && meet(&self.z, &other.z)
    }

    /// Parts of the rectangle that are outside of another.
    fn without(self, other: &Self) -> Vec<Self> {
        if !self.overlaps(other) {
            return vec![self];
        }
        let (x, z) = (&self.x, &self.z);
        let inner = *x.start().max(other.x.start())..=*x.end().min(other.x.end());
        let mut parts = Vec::new();
        if x.start() < inner.start() {
            parts.push(Self { x: *x.start()..=inner.start() - 1, z: z.clone() });
        }
        if inner.end() < x.end() {
            parts.push(Self { x: inner.end() + 1..=*x.end(), z: z.clone() });
        }
        if z.start() < other.z.start() {
            parts.push(Self { x: inner.clone(), z: *z.start()..=other.z.start() - 1 });
        }
        if other.z.end() < z.end() {
            parts.push(Self { x: inner, z: other.z.end() + 1..=*z.end() });
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use cg_format::BlockPos;

    use super::*;

    fn area(x: [i64; 2], z: [i64; 2]) -> BlockBox {
        BlockBox::new(BlockPos::new(x[0], 5, z[0]), BlockPos::new(x[1], 6, z[1]))
    }

    #[test]
    fn boxes_are_the_columns_that_they_touch_and_no_column_twice() {
        let boxes = [
            area([0, 40], [-1, 20]),
            area([15, 16], [-100, 100]),
            area([20, 20], [0, 0]),
            area([-70, 90], [10, 31]),
            area([0, 40], [-1, 20]),
        ];
        let columns = Columns::of(&boxes);
        for x in -10..10 {
            for z in -10..10 {
                let touches = |area: &BlockBox| {
                    let inside = |min: i64, max: i64, at: i32| ((min >> 4)..=(max >> 4)).contains(&at.into());
                    inside(area.min().x, area.max().x, x) && inside(area.min().z, area.max().z, z)
                };
                let count =
                    columns.0.iter().filter(|part| part.x.contains(&x) && part.z.contains(&z)).count();
                assert_eq!(count, usize::from(boxes.iter().any(touches)), "({x}, {z})");
            }
        }
        assert!(
            columns.touch(ColumnPos::new(-5, 1).region()) && !columns.touch(ColumnPos::new(64, 0).region())
        );
    }

    #[test]
    fn a_box_without_end_is_cut_to_what_regions_reach_and_one_outside_is_nothing() {
        let all = Columns::of(&[area([i64::MIN, i64::MAX], [i64::MIN, i64::MAX])]);
        assert!(all.contains(ColumnPos::new(i32::MIN, i32::MAX)) && all.contains(ColumnPos::default()));
        let outside = Columns::of(&[area([1 << 40, 1 << 41], [0, 0])]);
        assert_eq!(outside, Columns::default());
    }
}
