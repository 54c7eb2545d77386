//! Walking all live chunks of a view, each once whatever its tier.
//!
//! The walk goes from one 16³ cube to the next. Inside a cube it shows the hot chunks, then those of warm clusters
//! that no hot row shadows, then those of the cold cluster that neither shadows. All three families keep a cube in
//! one range of keys, so a cube costs three seeks and its rows.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::cluster::{SlotInfo, StoredCluster};
use cg_format::key::Family;
use cg_format::{ChunkAt, ChunkBox, ClusterPos, ClusterTier, Dimension, Limits, Lookup, Space, key};

use super::StoredChunk;
use super::find::hot;
use crate::engine::{Engine, ReadView};
use crate::error::{Damage, Error};
use crate::stats::Counters;
use crate::world::Inner;

impl<E: Engine> Inner<E> {
    /// The stored chunks of a box, in no particular order.
    pub(crate) fn positions_in(&self, dimension: Dimension, area: ChunkBox) -> Result<Vec<ChunkAt>, Error> {
        let mut found = Vec::new();
        let view = self.engine.snapshot();
        let failed = walk(&view, &self.counters, Area::Box(dimension, area), |chunk| match chunk {
            Ok(chunk) => {
                found.push(chunk.at);
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })?;
        failed.map_or(Ok(found), Err)
    }
}

/// Which chunks a walk visits.
#[derive(Debug, Clone, Copy)]
pub enum Area {
    /// All of them.
    World,
    /// Those of a box in one dimension.
    Box(Dimension, ChunkBox),
}

impl Area {
    fn contains(self, at: ChunkAt) -> bool {
        match self {
            Self::World => true,
            Self::Box(dimension, area) => at.dimension == dimension && area.contains(at.pos),
        }
    }

    /// Whether a cluster has a chunk in the area.
    fn meets(self, dimension: Dimension, cluster: ClusterPos) -> bool {
        let (min, max) = (cluster.min_chunk(), cluster.max_chunk());
        let overlap = |min: i64, max: i64, from: i64, to: i64| min <= to && from <= max;
        match self {
            Self::World => true,
            Self::Box(wanted, area) => {
                let (from, to) = (area.min(), area.max());
                dimension == wanted
                    && overlap(min.x(), max.x(), from.x(), to.x())
                    && overlap(min.y(), max.y(), from.y(), to.y())
                    && overlap(min.z(), max.z(), from.z(), to.z())
            }
        }
    }
}

/// Up to so many cubes are visited by name; a larger box is found by following the keys.
const NAMED_CUBES: u128 = 64;

/// Shows every live chunk of an area to `visit`, until it breaks.
///
/// A damaged row that holds chunks of the area is shown as an error, once, and the walk goes on behind it. Rows
/// outside the area are not opened.
///
/// # Errors
/// If the engine fails.
pub(crate) fn walk<V: ReadView, B>(
    view: &V,
    counters: &Counters,
    area: Area,
    mut visit: impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    if let Area::Box(dimension, bounds) = area {
        let (min, max) = (bounds.min().cluster(ClusterTier::L2), bounds.max().cluster(ClusterTier::L2));
        let side = |min: i64, max: i64| u128::from(max.abs_diff(min)) + 1;
        let cubes = side(min.x(), max.x())
            .saturating_mul(side(min.y(), max.y()))
            .saturating_mul(side(min.z(), max.z()));
        if cubes <= NAMED_CUBES {
            for x in min.x()..=max.x() {
                for y in min.y()..=max.y() {
                    for z in min.z()..=max.z() {
                        let cube = ClusterPos::new(ClusterTier::L2, x, y, z)
                            .expect("between two cubes of the world");
                        if let ControlFlow::Break(value) =
                            cube_chunks(view, counters, area, (dimension, cube), &mut visit)?
                        {
                            return Ok(Some(value));
                        }
                    }
                }
            }
            return Ok(None);
        }
    }
    let mut from = match area {
        Area::World => Start::Beginning,
        Area::Box(dimension, area) => Start::Cube(dimension, area.min().cluster(ClusterTier::L2)),
    };
    while let Some((dimension, cube)) = next_cube(view, counters, from)? {
        if let Area::Box(wanted, area) = area {
            let corner = |dimension, pos| key::chunk(ChunkAt { dimension, pos });
            if corner(dimension, cube.min_chunk()) > corner(wanted, area.max()) {
                break;
            }
        }
        if let ControlFlow::Break(value) = cube_chunks(view, counters, area, (dimension, cube), &mut visit)? {
            return Ok(Some(value));
        }
        from = Start::Behind(dimension, cube);
    }
    Ok(None)
}

/// Where the search for the next cube begins. Cubes sort the same way by the keys of all three tiers.
#[derive(Debug, Clone, Copy)]
enum Start {
    Beginning,
    Cube(Dimension, ClusterPos),
    Behind(Dimension, ClusterPos),
}

/// The first cube from a place on that has a row in any tier.
fn next_cube<V: ReadView>(
    view: &V,
    counters: &Counters,
    from: Start,
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
        let found = view.scan(family, (lower, Bound::Unbounded), |key, _| {
            Counters::add(&counters.keys_scanned, 1);
            // A key that is no position cannot be placed; verification reports it.
            cube_of(key).map_or(ControlFlow::Continue(()), ControlFlow::Break)
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
type KeyOf = fn(Dimension, cg_format::ChunkPos) -> [u8; key::CHUNK_LEN_BYTES];

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

/// The chunks of a cube that a hotter tier has shown or shadowed, one bit each.
struct Shadow([u64; 64]);

impl Shadow {
    /// Marks a chunk; `true` if it was not marked before.
    fn cast(&mut self, at: ChunkAt) -> bool {
        let bits = |c: i64| (c & 15) as usize;
        let slot = (bits(at.pos.x()) * 16 + bits(at.pos.y())) * 16 + bits(at.pos.z());
        let fresh = self.0[slot / 64] & (1 << (slot % 64)) == 0;
        self.0[slot / 64] |= 1 << (slot % 64);
        fresh
    }
}

/// Shows the live chunks of one cube.
fn cube_chunks<V: ReadView, B>(
    view: &V,
    counters: &Counters,
    area: Area,
    (dimension, cube): (Dimension, ClusterPos),
    visit: &mut impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, Error> {
    let mut shadow = Shadow([0; 64]);
    let range = |key_of: KeyOf| (key_of(dimension, cube.min_chunk()), key_of(dimension, cube.max_chunk()));
    let [(_, _, hot_key), (_, _, warm_key), (_, _, cold_key)] = TIERS;
    let (first, last) = range(hot_key);
    let stopped =
        view.scan(Family::ChunkL0, (Bound::Included(&first[..]), Bound::Included(&last[..])), |key, row| {
            Counters::add(&counters.keys_scanned, 1);
            let Ok(at) = key::decode_chunk(key) else { return ControlFlow::Continue(()) };
            shadow.cast(at);
            if !area.contains(at) {
                return ControlFlow::Continue(());
            }
            match hot(at, key, row) {
                Ok(Lookup::Here(chunk)) => visit(Ok(chunk)),
                Ok(Lookup::Deleted | Lookup::NotHere) => ControlFlow::Continue(()),
                Err(error) => visit(Err(error)),
            }
        })?;
    if let Some(value) = stopped {
        return Ok(ControlFlow::Break(value));
    }
    for (tier, key_of) in [(ClusterTier::L1, warm_key), (ClusterTier::L2, cold_key)] {
        let (first, last) = range(key_of);
        let family = Space::of_cluster(tier).family();
        let stopped =
            view.scan(family, (Bound::Included(&first[..]), Bound::Included(&last[..])), |key, row| {
                Counters::add(&counters.keys_scanned, 1);
                cluster_chunks(counters, area, tier, (key, row), &mut shadow, visit)
            })?;
        if let Some(value) = stopped {
            return Ok(ControlFlow::Break(value));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Shows the chunks of a cluster row that no hotter tier shadows.
fn cluster_chunks<B>(
    counters: &Counters,
    area: Area,
    tier: ClusterTier,
    (key, row): (&[u8], &[u8]),
    shadow: &mut Shadow,
    visit: &mut impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let space = Space::of_cluster(tier);
    let Ok((dimension, pos)) = key::decode_cluster(tier, key) else { return ControlFlow::Continue(()) };
    if !area.meets(dimension, pos) {
        return ControlFlow::Continue(());
    }
    let damage = |problem| Damage::of_row(space, key, pos.to_string(), problem);
    let cluster = match StoredCluster::open(tier, key, row) {
        Ok(cluster) => cluster,
        Err(problem) => return visit(Err(damage(problem))),
    };
    let mut live: BTreeMap<u8, Vec<_>> = BTreeMap::new();
    for (slot, info) in cluster.slots() {
        // A position outside the world has no chunk; the directory of a cluster at the rim cannot be trusted there.
        let Some(chunk) = slot.chunk(pos) else { continue };
        let at = ChunkAt { dimension, pos: chunk };
        if shadow.cast(at) && area.contains(at) {
            live.entry(slot.group()).or_default().push((at, slot, info));
        }
    }
    for (index, live) in live {
        let group = match cluster.group(index, &mut Limits::default()) {
            Ok(group) => group.expect("the directory has slots of the group"),
            Err(problem) => {
                visit(Err(damage(problem)))?;
                continue;
            }
        };
        Counters::add(&counters.bytes_decompressed, group.decompressed_bytes() as u64);
        for (at, slot, info) in live {
            let SlotInfo { version, schema_generation } = info;
            let value = group.chunk(slot).expect("the group holds what the directory says");
            visit(Ok(StoredChunk { at, version, schema_generation, tier: tier.tier(), value }))?;
        }
    }
    ControlFlow::Continue(())
}
