//! Walks one 16³ cube: its hot rows, its warm clusters and its cold cluster merged in the order of keys.
//!
//! The cold cluster is one row and is read first. The warm clusters are scanned. The hot rows are scanned between two
//! warm clusters, and inside each. Between two hot rows the walk visits the chunks of clusters that no hotter tier
//! shadows. So each row is visited once, and at most two of them are held at a time, each with the decompressed groups
//! of one 4³ cube: one of a cold cluster, and up to four of a warm one.

use std::borrow::Cow;
use std::ops::{Bound, ControlFlow, Range};

use cg_format::cluster::{GroupBytes, Slot, SlotInfo, StoredCluster};
use cg_format::{
    ChunkAt, ChunkPos, ClusterPos, ClusterTier, DecodeError, Dimension, Limits, Lookup, Space, key,
};

use super::cubes::{Area, keys_of};
use super::hot::open_hot;
use super::walk::Live;
use crate::engine::{EngineError, Met, Readable, scan_skipping_damage};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// The chunks of a 4³ cube, which are one range of keys.
const CUBE_CHUNKS: u16 = 64;

/// Visits every live chunk, and all damage, in a cube's part of an area, until `visit` breaks.
///
/// Costs one read, and for each key range of the area in the cube one seek for the warm clusters and one for the hot
/// rows. Each warm cluster costs one more seek for its hot rows.
pub(crate) fn walk_cube<B>(
    view: &dyn Readable,
    counters: &Counters,
    area: Area<'_>,
    (dimension, cube): (Dimension, ClusterPos),
    mut visit: impl FnMut(Result<Live<'_, '_>, Error>) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, Error> {
    let cold_key = key::cluster(dimension, cube);
    let (row, damage) = match view.get(Space::of_cluster(ClusterTier::L2), &cold_key) {
        Ok(row) => (row, None),
        Err(error @ EngineError::Corrupt { .. }) => (None, Some(Error::from(error))),
        Err(error) => return Err(error.into()),
    };
    Counters::add(&counters.keys_scanned, u64::from(row.is_some()));
    Counters::add(&counters.clusters_read, u64::from(row.is_some()));
    let cold = row.as_deref().map(|row| OpenCluster::open(cube, &cold_key, row)).transpose();
    let cold = match damage.map_or(cold, Err) {
        Ok(cold) => cold,
        Err(error) => match visit(Err(error)) {
            ControlFlow::Continue(()) => None,
            stopped @ ControlFlow::Break(_) => return Ok(stopped),
        },
    };
    let mut walk = CubeWalk { view, counters, area, dimension, cube, cold, buffer: Vec::new(), visit };
    let mut parts = area.parts_of(dimension, cube).into_iter();
    match parts.try_for_each(|[first, last]| walk.part(rank(first)..rank(last) + 1)) {
        ControlFlow::Continue(()) => Ok(ControlFlow::Continue(())),
        ControlFlow::Break(stopped) => stopped.map(ControlFlow::Break),
    }
}

/// A step of a walk: it continues, the visitor breaks, or the engine has failed.
type Flow<B> = ControlFlow<Result<B, Error>>;

struct CubeWalk<'v, F> {
    view: &'v dyn Readable,
    counters: &'v Counters,
    area: Area<'v>,
    dimension: Dimension,
    cube: ClusterPos,
    cold: Option<OpenCluster<'v>>,
    /// The last decompressed hot row.
    buffer: Vec<u8>,
    visit: F,
}

/// Clusters below the hot rows of a range of keys.
enum Below<'b, 'r> {
    /// The cold cluster alone.
    Cold,
    /// A warm cluster, and below it the cold one.
    Warm(&'b mut OpenCluster<'r>),
    /// Unreadable clusters. Their chunks are unknown, so no chunk of a colder tier may count as live.
    Hidden,
}

impl<F> CubeWalk<'_, F> {
    /// Walks a range of keys that begins and ends at 4³ cubes.
    fn part<B>(&mut self, part: Range<u16>) -> Flow<B>
    where
        F: FnMut(Result<Live<'_, '_>, Error>) -> ControlFlow<B>,
    {
        let mut next = part.start;
        let stopped = self.scan(Some(ClusterTier::L1), part.clone(), |walk, met| {
            let (key, row) = match met {
                Met::Row(key, row) => (key, row),
                Met::Gap { until, error } => {
                    (walk.visit)(Err(error.into())).map_break(Ok)?;
                    let until = until.and_then(|key| key::decode_cluster(ClusterTier::L1, key).ok());
                    let until = until.map_or(part.end, |(_, pos)| rank(pos.min_chunk()));
                    return walk.range(std::mem::replace(&mut next, until)..until, &mut Below::Hidden);
                }
            };
            let Ok((_, pos)) = key::decode_cluster(ClusterTier::L1, key) else {
                return ControlFlow::Continue(());
            };
            Counters::add(&walk.counters.clusters_read, 1);
            let first = rank(pos.min_chunk());
            walk.range(next..first, &mut Below::Cold)?;
            next = first + CUBE_CHUNKS;
            match OpenCluster::open(pos, key, row) {
                Ok(mut warm) => walk.range(first..next, &mut Below::Warm(&mut warm)),
                Err(error) => {
                    (walk.visit)(Err(error)).map_break(Ok)?;
                    walk.range(first..next, &mut Below::Hidden)
                }
            }
        });
        stopped?;
        self.range(next..part.end, &mut Below::Cold)
    }

    /// Walks the hot rows of a range, and the chunks below between them.
    fn range<B>(&mut self, range: Range<u16>, below: &mut Below<'_, '_>) -> Flow<B>
    where
        F: FnMut(Result<Live<'_, '_>, Error>) -> ControlFlow<B>,
    {
        if range.is_empty() {
            return ControlFlow::Continue(());
        }
        let mut next = range.start;
        let stopped = self.scan(None, range.clone(), |walk, met| {
            let (key, row) = match met {
                Met::Row(key, row) => (key, row),
                Met::Gap { until, error } => {
                    // Any chunk of the gap may have a hot copy there, so no colder one may count as live.
                    let until = until.and_then(|key| key::decode_chunk(key).ok());
                    next = until.map_or(range.end, |at| rank(at.pos));
                    return (walk.visit)(Err(error.into())).map_break(Ok);
                }
            };
            let Ok(at) = key::decode_chunk(key) else { return ControlFlow::Continue(()) };
            let here = rank(at.pos);
            walk.lower(next..here, below)?;
            next = here + 1;
            if !walk.area.contains(at) {
                return ControlFlow::Continue(());
            }
            let flow = match open_hot(at, key, row) {
                Ok(Lookup::Found(chunk)) => (walk.visit)(Ok(Live::Hot(chunk, &mut walk.buffer))),
                Ok(Lookup::Tombstone | Lookup::NotFound) => ControlFlow::Continue(()),
                Err(error) => (walk.visit)(Err(error)),
            };
            flow.map_break(Ok)
        });
        stopped?;
        self.lower(next..range.end, below)
    }

    /// Visits the chunks of clusters in a range without hot rows.
    fn lower<B>(&mut self, range: Range<u16>, below: &mut Below<'_, '_>) -> Flow<B>
    where
        F: FnMut(Result<Live<'_, '_>, Error>) -> ControlFlow<B>,
    {
        let has_nothing = match below {
            Below::Cold => self.cold.is_none(),
            Below::Warm(_) => false,
            Below::Hidden => true,
        };
        if has_nothing {
            return ControlFlow::Continue(());
        }
        for rank in range {
            let pos = chunk_at(self.cube, rank);
            let at = ChunkAt { dimension: self.dimension, pos };
            if !self.area.contains(at) {
                continue;
            }
            let counters = self.counters;
            let flow = if let Below::Warm(cluster) = below
                && let Some(info) = cluster.slot(pos)
            {
                (self.visit)(Ok(Live::Slot { at, info, cluster, counters }))
            } else if let Some(cluster) = &mut self.cold
                && let Some(info) = cluster.slot(pos)
            {
                (self.visit)(Ok(Live::Slot { at, info, cluster, counters }))
            } else {
                continue;
            };
            flow.map_break(Ok)?;
        }
        ControlFlow::Continue(())
    }

    /// Scans the rows of a tier in a range, until `each` breaks; `None` is the hottest tier.
    fn scan<B>(
        &mut self,
        tier: Option<ClusterTier>,
        range: Range<u16>,
        mut each: impl FnMut(&mut Self, Met<'_>) -> Flow<B>,
    ) -> Flow<B> {
        let corners = [range.start, range.end - 1].map(|rank| chunk_at(self.cube, rank));
        let [first, last] = keys_of(tier, self.dimension, corners);
        let space = tier.map_or(Space::ChunkL0, Space::of_cluster);
        let keys = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let (view, counters) = (self.view, self.counters);
        let stopped = scan_skipping_damage(view, space.family(), keys, |met| {
            Counters::add(&counters.keys_scanned, 1);
            each(self, met)
        });
        match stopped {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(stopped)) => ControlFlow::Break(stopped),
            Err(error) => ControlFlow::Break(Err(error.into())),
        }
    }
}

/// A cluster with decoded directory, and the decompressed groups of the 4³ cube that was read last.
pub(crate) struct OpenCluster<'r> {
    pos: ClusterPos,
    key: &'r [u8],
    cluster: StoredCluster<'r>,
    cube: u8,
    /// By number. `None` is damaged, and that was reported. Keys take turns between the groups of a cube.
    groups: Vec<(u8, Option<GroupBytes<'r>>)>,
}

impl<'r> OpenCluster<'r> {
    fn open(pos: ClusterPos, key: &'r [u8], row: &'r [u8]) -> Result<Self, Error> {
        let cluster =
            StoredCluster::open(pos.tier(), key, row).map_err(|problem| damage(pos, key, problem))?;
        Ok(Self { pos, key, cluster, cube: 0, groups: Vec::new() })
    }

    pub(super) const fn tier(&self) -> ClusterTier {
        self.pos.tier()
    }

    fn slot(&self, chunk: ChunkPos) -> Option<SlotInfo> {
        self.cluster.chunk_info(Slot::of(chunk, self.tier()))
    }

    /// The bytes of a chunk in the directory; `None` if its group is damaged and that was reported before.
    pub(super) fn read(
        &mut self,
        chunk: ChunkPos,
        counters: &Counters,
    ) -> Result<Option<Cow<'_, [u8]>>, Error> {
        let slot = Slot::of(chunk, self.tier());
        if self.cube != slot.cube() {
            self.cube = slot.cube();
            self.groups.clear();
        }
        let index = self.cluster.group_of(slot);
        let held = self.groups.iter().position(|(group, _)| *group == index);
        let held = match held {
            Some(held) => held,
            None => self.open_group(index, counters)?,
        };
        let group = self.groups[held].1.as_ref();
        Ok(group.map(|group| group.chunk(slot).expect("the group holds what the directory says")))
    }

    /// Decompresses a group that has chunks, and returns where it is held.
    fn open_group(&mut self, index: u8, counters: &Counters) -> Result<usize, Error> {
        match self.cluster.group(index, &mut Limits::default()) {
            Ok(group) => {
                let group = group.expect("the directory has the slot, so it has its group");
                Counters::add(&counters.bytes_decompressed, group.decompressed_bytes() as u64);
                self.groups.push((index, Some(group)));
                Ok(self.groups.len() - 1)
            }
            Err(problem) => {
                self.groups.push((index, None));
                Err(damage(self.pos, self.key, problem))
            }
        }
    }
}

fn damage(pos: ClusterPos, key: &[u8], problem: DecodeError) -> Error {
    Damage::of_row(Space::of_cluster(pos.tier()), key, pos.to_string(), problem)
}

/// A chunk's place among the 4,096 of its cube in the order of keys: the low bits of x, y and z interleaved.
fn rank(chunk: ChunkPos) -> u16 {
    let bit = |value: i64, bit: u32| ((value >> bit) & 1) as u16;
    (0..4).rev().fold(0, |rank, level| {
        rank << 3 | bit(chunk.x(), level) << 2 | bit(chunk.y(), level) << 1 | bit(chunk.z(), level)
    })
}

/// The chunk at a place of a cube.
fn chunk_at(cube: ClusterPos, rank: u16) -> ChunkPos {
    let bit = |level: u16, axis: u16| i64::from(rank >> (3 * level + axis) & 1) << level;
    let along = |axis| (0..4).fold(0, |value, level| value | bit(level, axis));
    cube.min_chunk().offset(along(2), along(1), along(0)).expect("the world is made of whole cubes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_the_order_of_keys() {
        let cube = ClusterPos::new(ClusterTier::L2, -3, 0, 7).unwrap();
        let chunks: Vec<_> = (0..4096).map(|rank| chunk_at(cube, rank)).collect();
        assert!(chunks.iter().enumerate().all(|(index, chunk)| usize::from(rank(*chunk)) == index));
        let key = |pos: &ChunkPos| key::chunk(ChunkAt { dimension: Dimension::new(0), pos: *pos });
        assert!(chunks.is_sorted_by_key(key));
        assert_eq!((chunks[0], chunks[4095]), (cube.min_chunk(), cube.max_chunk()));
    }
}
