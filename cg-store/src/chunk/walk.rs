//! Walking all live chunks of a view, each once whatever its tier.
//!
//! The walk goes from one 16³ cube to the next. Inside a cube it shows the hot chunks, then those of warm clusters
//! that no hot row shadows, then those of the cold cluster that neither shadows. All three families keep a cube in
//! one range of keys, so a cube costs three seeks and its rows; of a cube that lies in the area only in part, the
//! 4³ cubes outside are passed over by further seeks.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};

use cg_format::cluster::{Slot, SlotInfo, StoredCluster};
use cg_format::{
    ChunkAt, ChunkBox, ClusterPos, ClusterTier, DecodeError, Dimension, Limits, Lookup, Space, key,
};

use super::StoredChunk;
use super::cubes::{Area, Cubes, keys_of};
use super::find::hot;
use crate::engine::{Engine, ReadView};
use crate::error::{Damage, Error};
use crate::stats::Counters;
use crate::world::Inner;

impl<E: Engine> Inner<E> {
    /// The stored chunks of a box, in no particular order.
    ///
    /// Tells them from keys and from the directories of clusters: no chunk is decoded and no group decompressed.
    pub(crate) fn positions_in(&self, dimension: Dimension, area: ChunkBox) -> Result<Vec<ChunkAt>, Error> {
        let mut found = Vec::new();
        let area = Area::Box(dimension, area);
        let failed = walk_rows(&self.settled_engine()?.snapshot(), &self.counters, area, |row| match row {
            Ok(Row::Hot(chunk)) => {
                found.push(chunk.at);
                ControlFlow::Continue(())
            }
            Ok(Row::Cluster { live, .. }) => {
                found.extend(live.into_iter().map(|(at, ..)| at));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })?;
        failed.map_or(Ok(found), Err)
    }
}

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
    walk_rows(view, counters, area, |row| match row {
        Ok(Row::Hot(chunk)) => visit(Ok(chunk)),
        Ok(Row::Cluster { tier, key, cluster, live }) => {
            cluster_chunks(counters, tier, key, cluster, live, &mut visit)
        }
        Err(error) => visit(Err(error)),
    })
}

/// A row that holds live chunks of an area.
enum Row<'r> {
    /// A hot chunk.
    Hot(StoredChunk<'r>),
    /// A cluster, opened up to its directory.
    Cluster {
        tier: ClusterTier,
        key: &'r [u8],
        cluster: &'r StoredCluster<'r>,
        /// The chunks that no hotter tier shadows, at least one.
        live: Vec<(ChunkAt, Slot, SlotInfo)>,
    },
}

/// Shows every row of an area that holds live chunks, or is damaged.
fn walk_rows<V: ReadView, B>(
    view: &V,
    counters: &Counters,
    area: Area,
    mut visit: impl FnMut(Result<Row<'_>, Error>) -> ControlFlow<B>,
) -> Result<Option<B>, Error> {
    let mut cubes = Cubes::of(area);
    while let Some((dimension, cube)) = cubes.next(view, counters)? {
        let stopped = cube_rows(view, counters, area, (dimension, cube), &mut visit)?;
        if let ControlFlow::Break(value) = stopped {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

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

/// Shows the rows of one cube.
fn cube_rows<V: ReadView, B>(
    view: &V,
    counters: &Counters,
    area: Area,
    (dimension, cube): (Dimension, ClusterPos),
    visit: &mut impl FnMut(Result<Row<'_>, Error>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, Error> {
    let mut shadow = Shadow([0; 64]);
    let parts = area.parts_of(dimension, cube);
    let whole = [[cube.min_chunk(), cube.max_chunk()]];
    for (tier, parts) in
        [(None, &parts[..]), (Some(ClusterTier::L1), &parts), (Some(ClusterTier::L2), &whole)]
    {
        for part in parts {
            let [first, last] = keys_of(tier, dimension, *part);
            let space = tier.map_or(Space::ChunkL0, Space::of_cluster);
            let range = (Bound::Included(&first[..]), Bound::Included(&last[..]));
            let stopped = view.scan(space.family(), range, |key, row| {
                Counters::add(&counters.keys_scanned, 1);
                match tier {
                    None => hot_row(area, key, row, &mut shadow, visit),
                    Some(tier) => {
                        Counters::add(&counters.clusters_read, 1);
                        cluster_row(area, tier, key, row, &mut shadow, visit)
                    }
                }
            })?;
            if let Some(value) = stopped {
                return Ok(ControlFlow::Break(value));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Shows a hot row, unless it marks a deleted chunk.
fn hot_row<B>(
    area: Area,
    key: &[u8],
    row: &[u8],
    shadow: &mut Shadow,
    visit: &mut impl FnMut(Result<Row<'_>, Error>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Ok(at) = key::decode_chunk(key) else { return ControlFlow::Continue(()) };
    shadow.cast(at);
    if !area.contains(at) {
        return ControlFlow::Continue(());
    }
    match hot(at, key, row) {
        Ok(Lookup::Here(chunk)) => visit(Ok(Row::Hot(chunk))),
        Ok(Lookup::Deleted | Lookup::NotHere) => ControlFlow::Continue(()),
        Err(error) => visit(Err(error)),
    }
}

/// Shows a cluster's row with the chunks of the area that no hotter tier shadows.
fn cluster_row<B>(
    area: Area,
    tier: ClusterTier,
    key: &[u8],
    row: &[u8],
    shadow: &mut Shadow,
    visit: &mut impl FnMut(Result<Row<'_>, Error>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let Ok((dimension, pos)) = key::decode_cluster(tier, key) else { return ControlFlow::Continue(()) };
    if !area.meets(dimension, pos) {
        return ControlFlow::Continue(());
    }
    let cluster = match StoredCluster::open(tier, key, row) {
        Ok(cluster) => cluster,
        Err(problem) => {
            // Nobody can tell which chunks it hides, so none of a colder tier may pass for the live one.
            for chunk in ChunkBox::new(pos.min_chunk(), pos.max_chunk()).iter() {
                shadow.cast(ChunkAt { dimension, pos: chunk });
            }
            return visit(Err(damage(tier, key, pos, problem)));
        }
    };
    let mut live = Vec::new();
    for (slot, info) in cluster.slots() {
        // A position outside the world has no chunk; the directory of a cluster at the rim cannot be trusted there.
        let Some(chunk) = slot.chunk(pos) else { continue };
        let at = ChunkAt { dimension, pos: chunk };
        if shadow.cast(at) && area.contains(at) {
            live.push((at, slot, info));
        }
    }
    if live.is_empty() {
        return ControlFlow::Continue(());
    }
    visit(Ok(Row::Cluster { tier, key, cluster: &cluster, live }))
}

/// Shows live chunks of a cluster, each group decompressed once.
fn cluster_chunks<B>(
    counters: &Counters,
    tier: ClusterTier,
    key: &[u8],
    cluster: &StoredCluster<'_>,
    live: Vec<(ChunkAt, Slot, SlotInfo)>,
    visit: &mut impl FnMut(Result<StoredChunk<'_>, Error>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    let mut groups: BTreeMap<u8, Vec<_>> = BTreeMap::new();
    for (at, slot, info) in live {
        groups.entry(slot.group()).or_default().push((at, slot, info));
    }
    for (index, live) in groups {
        let group = match cluster.group(index, &mut Limits::default()) {
            Ok(group) => group.expect("the directory has slots of the group"),
            Err(problem) => {
                let pos = live.first().map(|(at, ..)| at.pos.cluster(tier));
                let pos = pos.expect("a group is made with its first chunk");
                visit(Err(damage(tier, key, pos, problem)))?;
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

fn damage(tier: ClusterTier, key: &[u8], pos: ClusterPos, problem: DecodeError) -> Error {
    Damage::of_row(Space::of_cluster(tier), key, pos.to_string(), problem)
}
