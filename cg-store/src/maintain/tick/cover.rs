//! The keys of the rows of an area, as few ranges that contain them.

use std::ops::RangeInclusive;

use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension};

use crate::read::chunk::Area;

/// An area is covered by at most this many cubes. A cube whose corner and side are multiples of a power of two is one
/// range of keys.
const MOST_CUBES: u64 = 64;

/// The families in which keys are places of chunks.
const PLACED_FAMILIES: [Family; 4] = [Family::ChunkL0, Family::ChunkL1, Family::ChunkL2, Family::ChunkDelta];

/// Ranges of keys of a family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FamilyKeys {
    pub(super) family: Family,
    /// In their order. `None`: all keys.
    pub(super) ranges: Option<Vec<RangeInclusive<Vec<u8>>>>,
}

/// The families that have rows of an area, and ranges that contain these rows.
pub(super) fn families_of(area: Area<'_>) -> Vec<FamilyKeys> {
    let Some((dimension, boxes)) = area.boxes() else {
        return Family::ALL.map(|family| FamilyKeys { family, ranges: None }).into();
    };
    let cubes = cubes_over(&boxes);
    let ranges = |family| {
        let ranges = cubes.iter().map(|[first, last]| keys_between(family, dimension, *first, *last));
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable_by(|a, b| a.start().cmp(b.start()));
        ranges.dedup();
        FamilyKeys { family, ranges: Some(ranges) }
    };
    PLACED_FAMILIES.map(ranges).into()
}

/// The first and last chunks of the smallest cubes that cover the boxes and are few.
fn cubes_over(boxes: &[ChunkBox]) -> Vec<[ChunkPos; 2]> {
    let of_cold_cube = ClusterTier::L2.shift_chunks();
    let are_few = |shift: &u32| {
        let counts = boxes.iter().map(|bounds| {
            let sides = axes(bounds).map(|[min, max]| ((max >> shift) - (min >> shift)).unsigned_abs() + 1);
            sides.iter().fold(1, |count: u64, side| count.saturating_mul(*side))
        });
        counts.fold(0, u64::saturating_add) <= MOST_CUBES
    };
    // Two cubes on each axis cover every box.
    let largest = i64::BITS - 1;
    let shift = (of_cold_cube..largest).find(are_few).unwrap_or(largest);
    let mut cubes = Vec::new();
    for bounds in boxes {
        let [x, y, z] = axes(bounds).map(|[min, max]| (min >> shift)..=(max >> shift));
        for x in x {
            for y in y.clone() {
                for z in z.clone() {
                    cubes.push([x, y, z].map(|at| edge(at, shift)));
                }
            }
        }
    }
    let pos = |at: [i64; 3]| ChunkPos::new(at[0], at[1], at[2]).expect("both edges are inside the world");
    cubes.iter().map(|cube| [pos(cube.map(|edge| edge[0])), pos(cube.map(|edge| edge[1]))]).collect()
}

fn axes(bounds: &ChunkBox) -> [[i64; 2]; 3] {
    let (min, max) = (bounds.min(), bounds.max());
    [[min.x(), max.x()], [min.y(), max.y()], [min.z(), max.z()]]
}

/// The first and the last chunk of a cube on an axis, inside the world.
fn edge(at: i64, shift: u32) -> [i64; 2] {
    let first = i128::from(at) << shift;
    let last = first + (1_i128 << shift) - 1;
    let (min, max) = (i128::from(ChunkPos::MIN), i128::from(ChunkPos::MAX));
    [first, last].map(|chunk| chunk.clamp(min, max) as i64)
}

fn keys_between(
    family: Family,
    dimension: Dimension,
    first: ChunkPos,
    last: ChunkPos,
) -> RangeInclusive<Vec<u8>> {
    let chunk = |pos| ChunkAt::new(dimension, pos);
    let cluster = |tier| {
        let key = |pos: ChunkPos| key::cluster(dimension, pos.cluster(tier)).to_vec();
        key(first)..=key(last)
    };
    match family {
        Family::ChunkL1 => cluster(ClusterTier::L1),
        Family::ChunkL2 => cluster(ClusterTier::L2),
        Family::ChunkDelta => {
            key::delta(chunk(first), 0).to_vec()..=key::delta(chunk(last), u64::MAX).to_vec()
        }
        _ => key::chunk(chunk(first)).to_vec()..=key::chunk(chunk(last)).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pos(at: [i64; 3]) -> ChunkPos {
        ChunkPos::new(at[0], at[1], at[2]).unwrap()
    }

    fn near_or_far() -> impl Strategy<Value = [i64; 3]> {
        let axis = prop_oneof![
            -300..300_i64,
            ChunkPos::MIN..=ChunkPos::MAX,
            Just(ChunkPos::MIN),
            Just(ChunkPos::MAX)
        ];
        prop::array::uniform3(axis)
    }

    proptest! {
        #[test]
        fn every_row_of_a_box_is_in_a_range(a in near_or_far(), b in near_or_far(), part in prop::array::uniform3(0.0..=1.0_f64)) {
            let bounds = ChunkBox::new(pos(a), pos(b));
            let dimension = Dimension::new(7);
            let inside = axes(&bounds).map(|[min, max]| (min, max));
            let at = [0, 1, 2].map(|axis: usize| {
                let (min, max) = inside[axis];
                let (min, max) = (i128::from(min), i128::from(max));
                let steps = ((max - min) as f64 * part[axis]) as i128;
                (min + steps).clamp(min, max) as i64
            });
            let at = ChunkAt::new(dimension, pos(at));
            for FamilyKeys { family, ranges } in families_of(Area::Box(dimension, bounds)) {
                let ranges = ranges.unwrap();
                prop_assert!(ranges.len() <= MOST_CUBES as usize);
                let key = match family {
                    Family::ChunkL0 => key::chunk(at).to_vec(),
                    Family::ChunkL1 => key::cluster(dimension, at.pos.cluster(ClusterTier::L1)).to_vec(),
                    Family::ChunkL2 => key::cluster(dimension, at.pos.cluster(ClusterTier::L2)).to_vec(),
                    Family::ChunkDelta => key::delta(at, 5).to_vec(),
                    other => panic!("{other:?}"),
                };
                prop_assert!(ranges.iter().any(|range| range.contains(&key)));
                prop_assert!(ranges.windows(2).all(|pair| pair[0].end() < pair[1].start()));
            }
        }
    }

    #[test]
    fn a_small_box_is_its_cubes_and_nothing_more() {
        let dimension = Dimension::new(1);
        let bounds = ChunkBox::new(pos([-1, 0, 0]), pos([0, 15, 15]));
        let families = families_of(Area::Box(dimension, bounds));
        let keys = |pos| key::chunk(ChunkAt::new(dimension, pos)).to_vec();
        let cube = |first, last| keys(pos(first))..=keys(pos(last));
        let two = vec![cube([-16, 0, 0], [-1, 15, 15]), cube([0, 0, 0], [15, 15, 15])];
        assert_eq!(families[0], FamilyKeys { family: Family::ChunkL0, ranges: Some(two) });
        assert_eq!(families.len(), 4);
        let all = families_of(Area::World);
        assert!(all.len() == Family::ALL.len() && all.iter().all(|keys| keys.ranges.is_none()));
    }
}
