//! A model of the store: the copies of chunks, their rows, and the cost of each.

use std::collections::{BTreeMap, BTreeSet};

use cg_format::{ChunkAt, ClusterTier, Tier, cluster::Slot};

use crate::{ClusterAt, CubeAt, ShadowedSlots};

/// The sizes of rows, and the work of the store in one tick.
///
/// The defaults are the sizes of terrain from a seed. `cg tiers` prints those of an existing world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoreModel {
    /// Bytes of a stored chunk in each tier, per 1,000 bytes before compression.
    pub stored_permille: [u32; 3],
    /// Bytes of a row in addition to its chunks, in each tier: key, frame, directory.
    pub row_bytes: [u32; 3],
    /// Bytes of a directory for each chunk of a cluster.
    pub slot_bytes: u32,
    /// Bytes of the cache of cluster rows. A row in the cache is not fetched.
    pub row_cache_bytes: u64,
    /// The budget of a tick.
    pub budget: crate::Budget,
    /// The number of cubes that a tick checks.
    pub scan_cubes: usize,
}

impl Default for StoreModel {
    fn default() -> Self {
        Self {
            stored_permille: [450, 400, 280],
            row_bytes: [56, 88, 1650],
            slot_bytes: 12,
            row_cache_bytes: 64 << 20,
            budget: crate::Budget { bytes: 4 << 20, chunks: 512 },
            scan_cubes: 64,
        }
    }
}

/// No copy.
const NONE: u32 = u32::MAX;
/// The number of chunks of a cube.
const SLOTS: usize = 64;

/// The copies of a cube's chunks: for each, its bytes in each tier.
type Copies = Box<[[u32; 3]; SLOTS]>;

/// The rows of a store.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    cubes: BTreeMap<CubeAt, Copies>,
    /// The cubes with rows in L0 or L1, which can be demoted.
    hot: BTreeSet<CubeAt>,
    cold: BTreeMap<ClusterAt, ColdRow>,
}

/// The state of an L2 row in addition to the copies in its cubes.
#[derive(Debug, Clone, Copy, Default)]
struct ColdRow {
    /// Chunks from before the trace that the trace has not named yet, and the bytes of each.
    unheard: u32,
    unheard_bytes: u32,
}

/// A sum over the chunks of one cube in one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lying {
    pub(super) chunks: u32,
    /// Before compression.
    pub(super) bytes: u64,
}

impl Rows {
    /// The tier of a chunk's live copy, and its bytes.
    pub(super) fn find(&self, chunk: ChunkAt) -> Option<(Tier, u32)> {
        live(self.cubes.get(&CubeAt::of(chunk))?.get(place(chunk))?)
    }

    /// Puts a chunk's newest copy into L0.
    pub(super) fn save(&mut self, chunk: ChunkAt, len_bytes: u32) {
        let cube = CubeAt::of(chunk);
        if let Some(copies) = entry(&mut self.cubes, cube).get_mut(place(chunk)) {
            copies[0] = len_bytes;
        }
        self.hot.insert(cube);
    }

    /// Adds a chunk that was in L2 when the trace began, with its cluster, full of chunks of the same size.
    pub(super) fn settled(&mut self, chunk: ChunkAt, len_bytes: u32) {
        let cube = CubeAt::of(chunk);
        let unheard = ColdRow { unheard: ClusterTier::L2.slot_count() as u32, unheard_bytes: len_bytes };
        let row = self.cold.entry(cube.cluster(ClusterTier::L2)).or_insert(unheard);
        let is_new = !self.cubes.contains_key(&cube);
        let copies = entry(&mut self.cubes, cube);
        if is_new && row.unheard > 0 {
            row.unheard = row.unheard.saturating_sub(SLOTS as u32);
            **copies = [[NONE, NONE, len_bytes]; SLOTS];
        }
        if let Some(copies) = copies.get_mut(place(chunk)) {
            copies[2] = len_bytes;
        }
    }

    /// The next cubes after one that have rows in L0 or L1; starts again at the first one.
    pub(super) fn hot_cubes_after(&self, after: Option<CubeAt>, count: usize) -> Vec<CubeAt> {
        use std::ops::Bound::{Excluded, Included, Unbounded};
        let Some(after) = after else { return self.hot.iter().copied().take(count).collect() };
        let behind = self.hot.range((Excluded(after), Unbounded));
        behind.chain(self.hot.range((Unbounded, Included(after)))).copied().take(count).collect()
    }

    pub(super) fn hot_count(&self) -> usize {
        self.hot.len()
    }

    /// The chunks of a cube whose live copies are in a tier.
    pub(super) fn lying(&self, cube: CubeAt, tier: Tier) -> Lying {
        let mut sum = Lying::default();
        for (found, bytes) in
            self.cubes.get(&cube).into_iter().flat_map(|copies| copies.iter().filter_map(live))
        {
            if found == tier {
                sum.chunks += 1;
                sum.bytes += u64::from(bytes);
            }
        }
        sum
    }

    /// Copies each live chunk of a cube from its cluster to L0. Returns what was copied.
    pub(super) fn promote(&mut self, cube: CubeAt) -> Lying {
        let mut sum = Lying::default();
        let Some(copies) = self.cubes.get_mut(&cube) else { return sum };
        for copies in copies.iter_mut() {
            if let Some((Tier::L1 | Tier::L2, bytes)) = live(copies) {
                copies[0] = bytes;
                sum.chunks += 1;
                sum.bytes += u64::from(bytes);
            }
        }
        self.hot.insert(cube);
        sum
    }

    /// Merges a cube's rows of L0 into its L1 row. Returns what moved.
    pub(super) fn demote_to_l1(&mut self, cube: CubeAt) -> Lying {
        let mut sum = Lying::default();
        for copies in self.cubes.get_mut(&cube).into_iter().flat_map(|copies| copies.iter_mut()) {
            if copies[0] != NONE {
                sum.chunks += 1;
                sum.bytes += u64::from(copies[0]);
                copies[1] = std::mem::replace(&mut copies[0], NONE);
            }
        }
        sum
    }

    /// Merges the rows of cubes of one cluster into its L2 row, and drops the slots that its other cubes shadow.
    pub(super) fn demote_to_l2(&mut self, cluster: ClusterAt, cubes: &[CubeAt]) -> Lying {
        let mut sum = Lying::default();
        for cube in cubes {
            for copies in self.cubes.get_mut(cube).into_iter().flat_map(|copies| copies.iter_mut()) {
                if let Some((Tier::L0 | Tier::L1, bytes)) = live(copies) {
                    *copies = [NONE, NONE, bytes];
                    sum.chunks += 1;
                    sum.bytes += u64::from(bytes);
                }
            }
            self.hot.remove(cube);
        }
        self.drop_shadowed(cluster);
        self.cold.entry(cluster).or_default();
        sum
    }

    /// Rewrites an L2 row without its shadowed slots.
    pub(super) fn drop_shadowed(&mut self, cluster: ClusterAt) {
        for cube in cubes_of(cluster) {
            for copies in self.cubes.get_mut(&cube).into_iter().flat_map(|copies| copies.iter_mut()) {
                if copies[0] != NONE || copies[1] != NONE {
                    copies[2] = NONE;
                }
            }
        }
        if self.l2_slots(cluster).present == 0 {
            self.cold.remove(&cluster);
        }
    }

    /// Rewrites an L1 row without its shadowed slots.
    pub(super) fn drop_shadowed_l1(&mut self, cube: CubeAt) {
        for copies in self.cubes.get_mut(&cube).into_iter().flat_map(|copies| copies.iter_mut()) {
            if copies[0] != NONE {
                copies[1] = NONE;
            }
        }
    }

    /// Chunks of an L2 row that the trace has not named.
    pub(super) fn unheard(&self, cluster: ClusterAt) -> u32 {
        self.cold.get(&cluster).map_or(0, |row| row.unheard)
    }

    pub(super) fn l1_slots(&self, cube: CubeAt) -> ShadowedSlots {
        let mut slots = ShadowedSlots::default();
        for copies in self.cubes.get(&cube).into_iter().flat_map(|copies| copies.iter()) {
            slots.present += u32::from(copies[1] != NONE);
            slots.shadowed += u32::from(copies[1] != NONE && copies[0] != NONE);
        }
        slots
    }

    pub(super) fn l2_slots(&self, cluster: ClusterAt) -> ShadowedSlots {
        let mut slots = ShadowedSlots { present: self.unheard(cluster), shadowed: 0 };
        for cube in cubes_of(cluster) {
            for copies in self.cubes.get(&cube).into_iter().flat_map(|copies| copies.iter()) {
                slots.present += u32::from(copies[2] != NONE);
                slots.shadowed += u32::from(copies[2] != NONE && (copies[0] != NONE || copies[1] != NONE));
            }
        }
        slots
    }

    /// The stored bytes of an L1 row; 0 if there is none.
    pub(super) fn l1_row_bytes(&self, model: &StoreModel, cube: CubeAt) -> u64 {
        let copies = self.cubes.get(&cube).into_iter().flat_map(|copies| copies.iter());
        let mut sum = Lying::default();
        sum.add_all(copies.map(|copies| copies[1]));
        model.row_of(Tier::L1, sum)
    }

    /// The stored bytes of an L2 row; 0 if there is none.
    pub(super) fn l2_row_bytes(&self, model: &StoreModel, cluster: ClusterAt) -> u64 {
        let Some(row) = self.cold.get(&cluster) else { return 0 };
        let copies =
            cubes_of(cluster).filter_map(|cube| self.cubes.get(&cube)).flat_map(|copies| copies.iter());
        let mut sum =
            Lying { chunks: row.unheard, bytes: u64::from(row.unheard) * u64::from(row.unheard_bytes) };
        sum.add_all(copies.map(|copies| copies[2]));
        model.row_of(Tier::L2, sum)
    }

    pub(super) fn cubes(&self) -> impl Iterator<Item = CubeAt> {
        self.cubes.keys().copied()
    }

    pub(super) fn cold_rows(&self) -> impl Iterator<Item = ClusterAt> {
        self.cold.keys().copied()
    }
}

impl StoreModel {
    /// The stored bytes of a chunk's own row.
    pub(super) fn l0_row_bytes(&self, lying: Lying) -> u64 {
        self.compressed(Tier::L0, lying.bytes) + u64::from(lying.chunks) * u64::from(self.row_bytes[0])
    }

    fn compressed(&self, tier: Tier, bytes: u64) -> u64 {
        bytes * u64::from(self.stored_permille[tier as usize]) / 1000
    }

    /// The stored bytes of a cluster's row; 0 without chunks.
    fn row_of(&self, tier: Tier, sum: Lying) -> u64 {
        let directory = u64::from(sum.chunks) * u64::from(self.slot_bytes);
        let row = u64::from(self.row_bytes[tier as usize]) + directory + self.compressed(tier, sum.bytes);
        if sum.chunks == 0 { 0 } else { row }
    }
}

impl Lying {
    fn add_all(&mut self, copies: impl Iterator<Item = u32>) {
        for bytes in copies.filter(|bytes| *bytes != NONE) {
            self.chunks += 1;
            self.bytes += u64::from(bytes);
        }
    }
}

fn live(copies: &[u32; 3]) -> Option<(Tier, u32)> {
    Tier::ALL.into_iter().zip(*copies).find(|(_, bytes)| *bytes != NONE)
}

fn place(chunk: ChunkAt) -> usize {
    usize::from(Slot::of(chunk.pos, ClusterTier::L1).index())
}

fn entry(cubes: &mut BTreeMap<CubeAt, Copies>, cube: CubeAt) -> &mut Copies {
    cubes.entry(cube).or_insert_with(|| Box::new([[NONE; 3]; SLOTS]))
}

/// The 64 cubes of an L2 cluster.
fn cubes_of(cluster: ClusterAt) -> impl Iterator<Item = CubeAt> {
    let [x, y, z] = [cluster.pos.x() << 2, cluster.pos.y() << 2, cluster.pos.z() << 2];
    (0..64).map(move |group| {
        CubeAt::within(cluster.dimension, [x + (group >> 4), y + (group >> 2 & 3), z + (group & 3)])
    })
}
