//! Rows of 16³ cubes that are read together: over a network a call costs more than a row.
//!
//! The hot rows of a 16³ cube are one scan. The heat of its 4³ cubes and what is asked of its clusters are one call for
//! all 16³ cubes.
//!
//! **Invariant**: what is gathered was read after the last report of written rows was taken, and before any move of the
//! cube that is not recorded. So the index learns from it what it would learn from the engine.

use std::collections::{BTreeSet, HashMap};
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::Ordering;

use cg_format::key::{self, Family};
use cg_format::{ChunkAt, ClusterTier, Space, frame};
use cg_tiering::{ClusterAt, CubeAt};

use super::Work;
use super::heat::heat_key;
use crate::engine::{EngineError, ErrorKind, Readable, ReadableExt as _, RowSlice, RowVisitor, Scan, Value};
use crate::maintain::move_tier::{hot_keys, row_of};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// Rows of more bytes are dropped before others are gathered.
const MOST_BYTES: usize = 32 << 20;

/// The key of a hot row or a cluster.
type RowKey = [u8; key::CHUNK_LEN_BYTES];

/// The gathered rows, by the cold cluster around them.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    clusters: HashMap<ClusterAt, ClusterRows>,
    /// Bytes of the rows.
    bytes: usize,
}

/// Rows in a 16³ cube.
#[derive(Debug, Default)]
struct ClusterRows {
    /// All hot rows, in the order of their keys; `None` if they were not read.
    hot: Option<Vec<(RowKey, Vec<u8>)>>,
    /// Other rows; `None` if there is none.
    rows: HashMap<(Space, Vec<u8>), Option<Vec<u8>>>,
    /// Which 4³ cubes have a warm cluster.
    warm: HashMap<CubeAt, bool>,
    /// Bytes of the rows.
    bytes: usize,
    /// The tombstone horizon before the hot rows were read.
    tombstone_horizon: u64,
}

/// The 4³ cubes of a cold cluster.
pub(super) fn cubes_of(cluster: ClusterAt) -> impl Iterator<Item = CubeAt> {
    let min = cluster.pos.min_chunk();
    let sides = (0..4).flat_map(|x| (0..4).flat_map(move |y| (0..4).map(move |z| [x, y, z])));
    sides.filter_map(move |[x, y, z]| {
        let chunk = min.offset(4 * x, 4 * y, 4 * z)?;
        Some(CubeAt::of(ChunkAt::new(cluster.dimension, chunk)))
    })
}

impl Gathered {
    /// Drops the rows of a cold cluster, because something in it was moved.
    pub(super) fn forget(&mut self, cluster: ClusterAt) {
        self.bytes -= self.clusters.remove(&cluster).map_or(0, |rows| rows.bytes);
    }

    /// The gathered rows of a cold cluster over all others.
    pub(super) fn over<'v>(&'v self, cluster: ClusterAt, beyond: &'v dyn Readable) -> GatheredView<'v> {
        GatheredView { cluster, rows: self.clusters.get(&cluster), beyond }
    }

    /// Whether the hot rows of a cold cluster are there.
    pub(super) fn has_hot(&self, cluster: ClusterAt) -> bool {
        self.clusters.get(&cluster).is_some_and(|rows| rows.hot.is_some())
    }

    /// Whether more rows are dropped before others are gathered.
    pub(super) const fn is_full(&self) -> bool {
        self.bytes > MOST_BYTES
    }

    /// The tombstone horizon before the hot rows of a cold cluster were read, if they were.
    pub(super) fn tombstone_horizon(&self, cluster: ClusterAt) -> Option<u64> {
        self.clusters.get(&cluster).filter(|rows| rows.hot.is_some()).map(|rows| rows.tombstone_horizon)
    }

    /// Whether a cube has a warm cluster, if that was read.
    pub(super) fn has_warm(&self, cube: CubeAt) -> Option<bool> {
        self.clusters.get(&cube.cluster(ClusterTier::L2))?.warm.get(&cube).copied()
    }

    /// The 4³ cubes of a cold cluster with hot rows or heat rows, if these were read.
    pub(super) fn cubes(&self, cluster: ClusterAt) -> Option<BTreeSet<CubeAt>> {
        let rows = self.clusters.get(&cluster)?;
        let hot = rows.hot.as_ref()?.iter().filter_map(|(row_key, _)| key::decode_chunk(row_key).ok());
        let has_heat = |cube: &CubeAt| {
            rows.rows.get(&(Space::Heat, heat_key(*cube).to_vec())).is_none_or(Option::is_some)
        };
        Some(hot.map(CubeAt::of).chain(cubes_of(cluster).filter(has_heat)).collect())
    }

    /// Scans the hot rows of a cold cluster, unless they are there. What is damaged is left to the reads of its cubes.
    pub(super) fn read_hot(
        &mut self,
        view: &dyn Readable,
        cluster: ClusterAt,
        tombstone_horizon: u64,
    ) -> Result<(), EngineError> {
        if self.has_hot(cluster) {
            return Ok(());
        }
        let (mut hot, [first, last]) = (Vec::new(), hot_keys(cluster));
        let mut bytes = 0;
        let keys = (Bound::Included(&first[..]), Bound::Included(&last[..]));
        let scanned = view.scan(Family::ChunkL0, keys, |key, row| {
            // Another length is no key of a chunk, and no chunk is in it.
            if let Ok(key) = key.try_into() {
                bytes += row.len();
                hot.push((key, row.to_vec()));
            }
            ControlFlow::<()>::Continue(())
        });
        match scanned {
            Err(error) if error.kind() == ErrorKind::Damaged => return Ok(()),
            scanned => drop(scanned?),
        }
        self.bytes += bytes;
        let rows = self.clusters.entry(cluster).or_default();
        rows.bytes += bytes;
        (rows.hot, rows.tombstone_horizon) = (Some(hot), tombstone_horizon);
        Ok(())
    }

    /// Reads the heat of the cubes of cold clusters, and whether they have warm clusters, in one call.
    fn read_heads(&mut self, view: &dyn Readable, clusters: &[ClusterAt]) -> Result<(), EngineError> {
        let cubes: Vec<_> = clusters.iter().flat_map(|cluster| cubes_of(*cluster)).collect();
        let keys: Vec<_> =
            cubes.iter().map(|cube| (heat_key(*cube), row_of(cube.cluster(ClusterTier::L1)).1)).collect();
        let slices: Vec<_> = keys
            .iter()
            .flat_map(|(heat, warm)| {
                let heat = RowSlice { space: Space::Heat, key: heat, bytes: 0..usize::MAX };
                // A header shows that there is a row.
                let warm = RowSlice { space: Space::ClusterL1, key: warm, bytes: 0..frame::LEN_BYTES };
                [heat, warm]
            })
            .collect();
        let mut found = view.get_slices(&slices).into_iter();
        for (cube, (heat_key, _)) in cubes.iter().zip(&keys) {
            let rows = self.clusters.entry(cube.cluster(ClusterTier::L2)).or_default();
            let (heat, warm) = (found.next(), found.next());
            if let Some(heat) = heat.and_then(sound) {
                rows.rows.insert((Space::Heat, heat_key.to_vec()), heat?.map(|row| row.to_vec()));
            }
            if let Some(warm) = warm.and_then(sound) {
                rows.warm.insert(*cube, warm?.is_some());
            }
        }
        Ok(())
    }

    /// Reads rows in one call, each in a cold cluster.
    pub(super) fn read_rows(
        &mut self,
        view: &dyn Readable,
        wanted: &BTreeSet<(ClusterAt, Space, Vec<u8>)>,
    ) -> Result<(), EngineError> {
        let keys: Vec<_> = wanted.iter().map(|(_, space, key)| (*space, &key[..])).collect();
        for ((cluster, space, key), row) in wanted.iter().zip(view.get_many(&keys)) {
            let Some(row) = sound(row) else { continue };
            let row = row?.map(|row| row.to_vec());
            let bytes = row.as_ref().map_or(0, Vec::len);
            self.bytes += bytes;
            let rows = self.clusters.entry(*cluster).or_default();
            rows.bytes += bytes;
            rows.rows.insert((*space, key.clone()), row);
        }
        Ok(())
    }
}

/// `None` for a damaged row, which is left to a read of its own.
fn sound<T>(row: Result<T, EngineError>) -> Option<Result<T, EngineError>> {
    let is_damaged = row.as_ref().is_err_and(|error| error.kind() == ErrorKind::Damaged);
    (!is_damaged).then_some(row)
}

/// The gathered rows of a cold cluster, and a view for all other rows.
#[derive(Clone, Copy)]
pub(super) struct GatheredView<'v> {
    cluster: ClusterAt,
    rows: Option<&'v ClusterRows>,
    beyond: &'v dyn Readable,
}

impl GatheredView<'_> {
    /// The gathered hot rows of a range; `None` if not all of it was gathered.
    fn hot_of(&self, scan: &Scan<'_>) -> Option<&[(RowKey, Vec<u8>)]> {
        let hot = self.rows?.hot.as_deref()?;
        let (Bound::Included(first), Bound::Included(last)) = scan.range else { return None };
        let cluster = |key| key::decode_chunk(key).ok().map(|at| CubeAt::of(at).cluster(ClusterTier::L2));
        if scan.family != Family::ChunkL0 || [first, last].map(cluster) != [Some(self.cluster); 2] {
            return None;
        }
        let from = hot.partition_point(|(key, _)| &key[..] < first);
        let to = hot.partition_point(|(key, _)| &key[..] <= last);
        hot.get(from..to)
    }
}

impl Readable for GatheredView<'_> {
    fn get(&self, space: Space, key: &[u8]) -> Result<Option<Value<'_>>, EngineError> {
        match self.rows.and_then(|rows| rows.rows.get(&(space, key.to_vec()))) {
            Some(row) => Ok(row.as_deref().map(Value::from)),
            None => self.beyond.get(space, key),
        }
    }

    fn get_many(&self, keys: &[(Space, &[u8])]) -> Vec<Result<Option<Value<'_>>, EngineError>> {
        self.beyond.get_many(keys)
    }

    fn scan_rows(&self, scan: Scan<'_>, visit: &mut RowVisitor<'_>) -> Result<(), EngineError> {
        let Some(hot) = self.hot_of(&scan) else { return self.beyond.scan_rows(scan, visit) };
        let _ended = hot.iter().take(scan.max_rows).try_for_each(|(key, row)| visit(key, row));
        Ok(())
    }
}

impl MaintainState {
    /// Gathers what a search or a selection asks of cold clusters, if each call is a message. The last ones replace the
    /// others if these take too much memory.
    pub(super) fn gather(&self, work: &mut Work, clusters: &[ClusterAt]) -> Result<(), Error> {
        if !self.is_over_network || clusters.iter().all(|cluster| work.gathered.has_hot(*cluster)) {
            return Ok(());
        }
        let tombstone_horizon = self.shared.tombstone_horizon.load(Ordering::Relaxed);
        let engine = self.shared.engine()?;
        let view = engine.snapshot_of_now()?;
        let mut read = Vec::new();
        for cluster in clusters {
            if work.gathered.has_hot(*cluster) {
                continue;
            }
            if work.gathered.is_full() {
                work.gathered = Gathered::default();
                read.clear();
            }
            work.gathered.read_hot(&view, *cluster, tombstone_horizon)?;
            read.push(*cluster);
        }
        Ok(work.gathered.read_heads(&view, &read)?)
    }
}
