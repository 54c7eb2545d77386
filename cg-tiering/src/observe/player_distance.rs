//! The distance to the nearest player.

use std::collections::BTreeMap;

use cg_format::{BlockBox, BlockPos, Dimension};

use super::motion::{Path, PlayerAt, distance_between, distance_to_box};

/// The players' paths at the latest check, by dimension.
///
/// Distances are Chebyshev distances: blocks on the axis with the greatest distance, all three axes alike. For a moving
/// player the nearest point of its path counts.
///
/// A lookup costs two comparisons of boxes for each player of the dimension, some nanoseconds.
///
/// ```
/// use cg_format::{BlockBox, BlockPos, Dimension, EntityId};
/// use cg_tiering::{Path, PlayerAt, PlayerDistance};
/// let id = EntityId::from_bytes([1; 16]);
/// let player = PlayerAt { id, dimension: Dimension::new(0), block: BlockPos::new(10, 64, 0) };
/// let mut distance = PlayerDistance::default();
/// distance.check([(player, Path::still(player.block))]);
/// let house = BlockBox::new(BlockPos::new(40, 64, 0), BlockPos::new(50, 70, 90));
/// assert_eq!(distance.nearest_blocks(Dimension::new(0), &house), Some(30));
/// assert_eq!(distance.nearest_blocks(Dimension::new(1), &house), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct PlayerDistance {
    ways: BTreeMap<Dimension, Ways>,
}

/// The paths of one dimension, as points, so that a lookup needs no division.
#[derive(Debug, Clone, Default)]
struct Ways {
    /// The box around each path, and the end of its points in `points`.
    bounds: Vec<(BlockBox, usize)>,
    points: Vec<BlockPos>,
}

impl PlayerDistance {
    /// Replaces all players and their paths.
    pub fn check(&mut self, players: impl IntoIterator<Item = (PlayerAt, Path)>) {
        for ways in self.ways.values_mut() {
            ways.bounds.clear();
            ways.points.clear();
        }
        for (player, path) in players {
            let ways = self.ways.entry(player.dimension).or_default();
            ways.points.extend(path.points());
            ways.bounds.push((path.bounds(), ways.points.len()));
        }
        self.ways.retain(|_, ways| !ways.bounds.is_empty());
    }

    /// Blocks from a box to the nearest player, on the axis with the greatest distance; `None` without players in the
    /// dimension.
    pub fn nearest_blocks(&self, dimension: Dimension, place: &BlockBox) -> Option<u64> {
        let ways = self.ways.get(&dimension)?;
        // The path with the nearest box comes first, because it excludes most of the others.
        let promising = (0..ways.bounds.len()).min_by_key(|way| ways.at_least(*way, place))?;
        let mut nearest = ways.distance(promising, place);
        for way in 0..ways.bounds.len() {
            if way != promising && ways.at_least(way, place) < nearest {
                nearest = nearest.min(ways.distance(way, place));
            }
        }
        Some(nearest)
    }

    /// The number of players in all dimensions.
    pub fn player_count(&self) -> usize {
        self.ways.values().map(|ways| ways.bounds.len()).sum()
    }
}

impl Ways {
    fn at_least(&self, way: usize, place: &BlockBox) -> u64 {
        self.bounds.get(way).map_or(u64::MAX, |(bounds, _)| distance_between(bounds, place))
    }

    fn distance(&self, way: usize, place: &BlockBox) -> u64 {
        let end = |way: usize| self.bounds.get(way).map_or(0, |(_, end)| *end);
        let start = way.checked_sub(1).map_or(0, end);
        let points = self.points.get(start..end(way)).unwrap_or(&[]);
        points.iter().map(|point| distance_to_box(*point, place)).min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::EntityId;
    use proptest::prelude::*;

    fn corner([x, y, z]: [i64; 3]) -> BlockPos {
        BlockPos::new(x, y, z)
    }

    fn any_corner() -> impl Strategy<Value = [i64; 3]> {
        let ends = prop_oneof![Just(i64::MIN), Just(i64::MAX), any::<i64>()];
        prop_oneof![prop::array::uniform3(-3000..3000_i64), prop::array::uniform3(ends)]
    }

    proptest! {
        #[test]
        fn the_nearest_of_all_is_found(
            ways in prop::collection::vec((0..2_u64, any_corner(), any_corner()), 0..12),
            place in (any_corner(), any_corner()),
        ) {
            let place = BlockBox::new(corner(place.0), corner(place.1));
            let ways: Vec<_> = ways
                .into_iter()
                .map(|(dimension, from, to)| {
                    let (id, dimension) = (EntityId::from_bytes([0; 16]), Dimension::new(dimension));
                    let path = Path { from: corner(from), to: corner(to) };
                    (PlayerAt { id, dimension, block: path.from }, path)
                })
                .collect();
            let mut distance = PlayerDistance::default();
            distance.check([(PlayerAt { id: EntityId::from_bytes([9; 16]), dimension: Dimension::new(5), block: corner([0; 3]) }, Path::still(corner([0; 3])))]);
            distance.check(ways.clone());
            prop_assert_eq!(distance.player_count(), ways.len());
            prop_assert_eq!(distance.nearest_blocks(Dimension::new(5), &place), None, "he is gone");
            for dimension in [0, 1].map(Dimension::new) {
                let there = ways.iter().filter(|(player, _)| player.dimension == dimension);
                let naive = there.map(|(_, path)| path.distance_blocks(&place)).min();
                prop_assert_eq!(distance.nearest_blocks(dimension, &place), naive);
            }
        }
    }
}
