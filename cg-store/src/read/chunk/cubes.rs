//! Finds the 16³ cubes of an area that may contain chunks, in the order of their keys.
//!
//! Keys are in Morton order, so a box is not one range of them. The cubes of a small box are listed one by one. In a
//! large box the stored keys are followed, and the keys between two parts of the box are skipped with one seek per
//! tier.

use std::ops::{Bound, ControlFlow};

use cg_format::cluster::Slot;
use cg_format::key::Family;
use cg_format::{BlockArea, ChunkAt, ChunkBox, ChunkPos, ClusterPos, ClusterTier, Dimension, key, morton};

use crate::engine::{Met, Readable, scan_skipping_damage};
use crate::rt::stats::Counters;
use crate::storage::error::Error;

/// The chunks that a walk visits.
#[derive(Debug, Clone, Copy)]
pub enum Area<'a> {
    /// All of them.
    World,
    /// Those of a box in one dimension.
    Box(Dimension, ChunkBox),
    /// Those in one dimension that contain a block of an area, each once.
    Blocks(Dimension, &'a BlockArea),
}

impl Area<'_> {
    /// Whether a chunk is in the area.
    pub(crate) fn contains(self, at: ChunkAt) -> bool {
        match self {
            Self::World => true,
            Self::Box(dimension, area) => at.dimension == dimension && area.contains(at.pos),
            Self::Blocks(dimension, area) => {
                at.dimension == dimension && area.chunks().any(|area| area.contains(at.pos))
            }
        }
    }

    /// Whether a cluster has a chunk in the area.
    pub(super) fn meets(self, dimension: Dimension, cluster: ClusterPos) -> bool {
        let chunks = ChunkBox::new(cluster.min_chunk(), cluster.max_chunk());
        match self {
            Self::World => true,
            Self::Box(wanted, area) => dimension == wanted && area.intersects(&chunks),
            Self::Blocks(wanted, area) => {
                dimension == wanted && area.chunks().any(|area| area.intersects(&chunks))
            }
        }
    }

    /// The dimension and the boxes, which may overlap; `None` for everything.
    pub(crate) fn boxes(self) -> Option<(Dimension, Vec<ChunkBox>)> {
        match self {
            Self::World => None,
            Self::Box(dimension, area) => Some((dimension, vec![area])),
            Self::Blocks(dimension, area) => Some((dimension, area.chunks().collect())),
        }
    }

    /// The parts of a 16³ cube that have chunks in the area, by their first and last chunk in the order of keys. The
    /// minimum number of parts that contains no 4³ cube outside the area.
    pub(super) fn parts_of(self, dimension: Dimension, cube: ClusterPos) -> Vec<[ChunkPos; 2]> {
        if let Self::World = self {
            return vec![[cube.min_chunk(), cube.max_chunk()]];
        }
        let place = |place| Slot::in_cube_of(ClusterTier::L2, place, 0).and_then(|slot| slot.chunk(cube));
        let mut cubes: Vec<_> =
            (0..64).filter_map(place).map(|first| first.cluster(ClusterTier::L1)).collect();
        cubes.sort_unstable_by_key(|cube| key::cluster(dimension, *cube));
        let runs = cubes.chunk_by(|a, b| self.meets(dimension, *a) == self.meets(dimension, *b));
        runs.filter_map(|run| match run {
            [first, ..] if self.meets(dimension, *first) => {
                Some([first.min_chunk(), run[run.len() - 1].max_chunk()])
            }
            _ => None,
        })
        .collect()
    }
}

/// The clusters of a tier that overlap a box.
pub(crate) fn clusters_of(bounds: ChunkBox, tier: ClusterTier) -> impl Iterator<Item = ClusterPos> {
    let (min, max) = (bounds.min().cluster(tier), bounds.max().cluster(tier));
    (min.x()..=max.x()).flat_map(move |x| {
        (min.y()..=max.y()).flat_map(move |y| {
            (min.z()..=max.z())
                .map(move |z| ClusterPos::new(tier, x, y, z).expect("between two clusters of the world"))
        })
    })
}

/// Boxes of at most this many cubes are listed without a search.
const NAMED_CUBES: usize = 64;

/// An iterator over the cubes of an area.
#[derive(Debug)]
pub(crate) enum Cubes<'a> {
    /// All cubes of a small area, stored or not, in the order of their keys.
    Named(std::vec::IntoIter<(Dimension, ClusterPos)>),
    /// The cubes that have a row, found by their keys.
    Followed {
        /// The area.
        area: Area<'a>,
        /// Where the search continues; `None` at the end.
        from: Option<Start>,
    },
}

/// Where the search for the next cube begins. The keys of all three tiers sort cubes in the same order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start {
    Beginning,
    Cube(Dimension, ClusterPos),
    Behind(Dimension, ClusterPos),
}

impl<'a> Cubes<'a> {
    /// The cubes of an area.
    pub(crate) fn of(area: Area<'a>) -> Self {
        let Some((dimension, boxes)) = area.boxes() else {
            return Self::Followed { area, from: Some(Start::Beginning) };
        };
        let by_key = |cube: &ClusterPos| key::cluster(dimension, *cube);
        let cubes = boxes.iter().flat_map(|bounds| clusters_of(*bounds, ClusterTier::L2));
        let mut named: Vec<_> = cubes.take(NAMED_CUBES + 1).collect();
        if named.len() > NAMED_CUBES {
            let first = boxes.iter().map(|bounds| bounds.min().cluster(ClusterTier::L2)).min_by_key(by_key);
            return Self::Followed { area, from: first.map(|first| Start::Cube(dimension, first)) };
        }
        named.sort_unstable_by_key(by_key);
        named.dedup();
        let named: Vec<_> = named.into_iter().map(|cube| (dimension, cube)).collect();
        Self::Named(named.into_iter())
    }

    /// The first cube of an area that has a row in any tier.
    ///
    /// # Errors
    /// If the engine fails.
    pub(crate) fn first(
        view: &dyn Readable,
        counters: &Counters,
        dimension: Dimension,
        area: ChunkBox,
    ) -> Result<Option<ClusterPos>, Error> {
        let from = Some(Start::Cube(dimension, area.min().cluster(ClusterTier::L2)));
        let mut cubes = Self::Followed { area: Area::Box(dimension, area), from };
        Ok(cubes.next(view, counters)?.map(|(_, cube)| cube))
    }

    /// The next cube. Costs three seeks for each part of a large box, and nothing for a small one.
    ///
    /// # Errors
    /// If the engine fails.
    pub(crate) fn next(
        &mut self,
        view: &dyn Readable,
        counters: &Counters,
    ) -> Result<Option<(Dimension, ClusterPos)>, Error> {
        let mut damaged = Vec::new();
        let next = self.next_past_damage(view, counters, &mut damaged)?;
        damaged.into_iter().next().map_or(Ok(next), Err)
    }

    /// As [`next`](Self::next), but continues after damage. `damaged` gets the error of each unreadable range of keys,
    /// which may contain unknown cubes, before the next cube is returned.
    ///
    /// # Errors
    /// If the engine fails for another reason.
    pub(crate) fn next_past_damage(
        &mut self,
        view: &dyn Readable,
        counters: &Counters,
        damaged: &mut Vec<Error>,
    ) -> Result<Option<(Dimension, ClusterPos)>, Error> {
        let (area, from) = match self {
            Self::Named(cubes) => return Ok(cubes.next()),
            Self::Followed { area, from } => (*area, from),
        };
        // The cube of the corner with the largest coordinates has the last key of a box.
        let last = area.boxes().and_then(|(dimension, boxes)| {
            let last = boxes.iter().map(|bounds| bounds.max().cluster(ClusterTier::L2));
            Some((dimension, last.max_by_key(|cube| key::cluster(dimension, *cube))?))
        });
        while let Some(start) = from.take() {
            let Some((dimension, cube)) = next_stored(view, counters, start, last, damaged)? else { break };
            if area.meets(dimension, cube) {
                *from = Some(Start::Behind(dimension, cube));
                return Ok(Some((dimension, cube)));
            }
            *from = back_into(area, dimension, cube);
        }
        Ok(None)
    }
}

/// Where an area continues after a cube outside it; `None` if all of it is before.
fn back_into(area: Area<'_>, dimension: Dimension, outside: ClusterPos) -> Option<Start> {
    let (wanted, boxes) = area.boxes()?;
    if dimension > wanted {
        return None;
    }
    let corner = |chunk: ChunkPos| {
        let cube = chunk.cluster(ClusterTier::L2);
        [cube.x(), cube.y(), cube.z()]
    };
    let found = [outside.x(), outside.y(), outside.z()];
    let back = boxes.iter().filter_map(|bounds| {
        let [x, y, z] = morton::first_in_box(found, corner(bounds.min()), corner(bounds.max()))?;
        Some(cube(x, y, z))
    });
    Some(Start::Cube(wanted, back.min_by_key(|cube| key::cluster(wanted, *cube))?))
}

fn cube(x: i64, y: i64, z: i64) -> ClusterPos {
    ClusterPos::new(ClusterTier::L2, x, y, z).expect("it lies between two cubes of the world")
}

/// The first cube between two places that has a row in any tier.
fn next_stored(
    view: &dyn Readable,
    counters: &Counters,
    from: Start,
    last: Option<(Dimension, ClusterPos)>,
    damaged: &mut Vec<Error>,
) -> Result<Option<(Dimension, ClusterPos)>, Error> {
    let mut next: Option<(Dimension, ClusterPos)> = None;
    for (family, cube_of, key_of) in TIERS {
        let bound = match from {
            Start::Beginning => None,
            Start::Cube(dimension, cube) => Some((key_of(dimension, cube.min_chunk()), true)),
            Start::Behind(dimension, cube) => Some((key_of(dimension, cube.max_chunk()), false)),
        };
        let lower = match &bound {
            None => Bound::Unbounded,
            Some((key, true)) => Bound::Included(&key[..]),
            Some((key, false)) => Bound::Excluded(&key[..]),
        };
        let end = last.map(|(dimension, cube)| key_of(dimension, cube.max_chunk()));
        let upper = end.as_ref().map_or(Bound::Unbounded, |key| Bound::Included(&key[..]));
        let found = scan_skipping_damage(view, family, (lower, upper), |met| {
            Counters::add(&counters.keys_scanned, 1);
            match met {
                // A key that does not decode is skipped; verification reports it.
                Met::Row(key, _) => cube_of(key).map_or(ControlFlow::Continue(()), ControlFlow::Break),
                Met::Gap { error, .. } => {
                    damaged.push(error.into());
                    ControlFlow::Continue(())
                }
            }
        })?;
        let sort_key = |(dimension, cube): (Dimension, ClusterPos)| key::cluster(dimension, cube);
        next = match (next, found) {
            (Some(a), Some(b)) => Some(if sort_key(b) < sort_key(a) { b } else { a }),
            (a, b) => a.or(b),
        };
    }
    Ok(next)
}

type CubeOf = fn(&[u8]) -> Option<(Dimension, ClusterPos)>;
type KeyOf = fn(Dimension, ChunkPos) -> [u8; key::CHUNK_LEN_BYTES];

/// For each tier: its family, the cube of a key, and the key of the row that holds a chunk.
const TIERS: [(Family, CubeOf, KeyOf); 3] = [
    (
        Family::ChunkL0,
        |key| key::decode_chunk(key).ok().map(|at| (at.dimension, at.pos.cluster(ClusterTier::L2))),
        |dimension, pos| key::chunk(ChunkAt { dimension, pos }),
    ),
    (
        Family::ChunkL1,
        |key| {
            let (dimension, pos) = key::decode_cluster(ClusterTier::L1, key).ok()?;
            Some((dimension, pos.min_chunk().cluster(ClusterTier::L2)))
        },
        |dimension, pos| key::cluster(dimension, pos.cluster(ClusterTier::L1)),
    ),
    (
        Family::ChunkL2,
        |key| key::decode_cluster(ClusterTier::L2, key).ok(),
        |dimension, pos| key::cluster(dimension, pos.cluster(ClusterTier::L2)),
    ),
];

/// The first and the last key that the rows of a tier can have between two chunks; `None` is the hottest tier.
pub(crate) fn keys_of(
    tier: Option<ClusterTier>,
    dimension: Dimension,
    part: [ChunkPos; 2],
) -> [[u8; key::CHUNK_LEN_BYTES]; 2] {
    part.map(|pos| match tier {
        None => key::chunk(ChunkAt { dimension, pos }),
        Some(tier) => key::cluster(dimension, pos.cluster(tier)),
    })
}
