//! A stretch of hills whose chunks all lie in one tier, and a copy of it for RocksDB alone.

use std::path::{Path, PathBuf};

use cg_bench::fill::fill;
use cg_bench::raw::{self, Db};
use cg_bench::settled::{options, settle};
use cg_bench::world::{Generator, Scene};
use cg_format::cluster::{Slot, StoredCluster};
use cg_format::{Chunk, ChunkAt, ChunkBox, ChunkPos, ClusterTier, Limits, Space, Tier, frame, key};
use cg_store::engine::Resources;
use cg_store::{World, WorldOptions};
use tempfile::TempDir;

const SEED: u64 = 7;
/// Memory for the engine, of which a half is RocksDB's block cache and a quarter its blob cache: all that is read fits.
const ENGINE_BYTES: usize = 256 << 20;

pub(crate) struct Stored {
    pub(crate) tier: Tier,
    pub(crate) generator: Generator,
    /// Closed.
    pub(crate) world: PathBuf,
    /// Of the same rows.
    pub(crate) copy: PathBuf,
    _dir: TempDir,
}

/// What is stored: 16×24×16 chunks, which cut the cubes of 16³ in half on one axis.
pub(crate) fn area() -> ChunkBox {
    ChunkBox::new(ChunkPos::constant(-8, -12, -8), ChunkPos::constant(7, 11, 7))
}

/// What is asked for: 11×11 columns of 24 chunks around the middle.
pub(crate) fn view() -> ChunkBox {
    ChunkBox::new(ChunkPos::constant(-5, -12, -5), ChunkPos::constant(5, 11, 5))
}

impl Stored {
    /// A world that is filled, settled and closed.
    pub(crate) fn in_tier(tier: Tier) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (path, copy) = (dir.path().join("world"), dir.path().join("copy"));
        let world = World::create(&path, &[], &world_options(tier)).expect("an empty directory");
        let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
        fill(&world, &generator, area(), |_| {}).expect("a new world takes any chunk");
        settle(&world).expect("the disk has room");
        let census = world.census().expect("sound");
        assert_eq!(u128::from(census.tier(tier).chunks), area().count(), "all chunks lie in {tier:?}");
        world.close().expect("the disk has room");
        drop(world);
        let world = World::open(&path, &[], &world_options(tier)).expect("just closed");
        world.checkpoint(&copy).expect("an empty directory");
        drop(world);
        Self { tier, generator, world: path, copy, _dir: dir }
    }

    /// The world, with nothing in any cache.
    pub(crate) fn open(&self) -> World {
        World::open(&self.world, &[], &world_options(self.tier)).expect("just closed")
    }

    /// RocksDB on the copy, with nothing in any cache.
    pub(crate) fn open_raw(&self) -> Db {
        open_raw(&self.copy)
    }

    pub(crate) fn at(&self, pos: ChunkPos) -> ChunkAt {
        ChunkAt::new(self.generator.dimension(), pos)
    }

    /// Fetches and decodes chunks of one row: a chunk's own, or the cluster that has all of them.
    pub(crate) fn decode_row(&self, row: &[u8], at: &[ChunkAt], mut take: impl FnMut(ChunkAt, Chunk)) {
        let decode = |value: &[u8]| Chunk::decode(value, self.generator.schema()).expect("a sound chunk");
        let Some(tier) = cluster_tier(self.tier) else {
            return take(at[0], decode(&row[frame::LEN_BYTES..]));
        };
        let cluster = StoredCluster::open(tier, &self.row_key(at[0]), row).expect("a sound cluster");
        let mut sorted: Vec<_> = at.iter().map(|at| (Slot::of(at.pos, tier), *at)).collect();
        sorted.sort_unstable_by_key(|(slot, _)| slot.group());
        for members in sorted.chunk_by(|(a, _), (b, _)| a.group() == b.group()) {
            let group = cluster.group(members[0].0.group(), &mut Limits::default());
            let group = group.expect("a sound group").expect("a group with chunks");
            for (slot, at) in members {
                take(*at, decode(group.chunk(*slot).expect("a stored chunk")));
            }
        }
    }

    /// The space of the tier, and the key of the row that has a chunk there.
    pub(crate) fn row_key(&self, at: ChunkAt) -> [u8; key::CHUNK_LEN_BYTES] {
        match cluster_tier(self.tier) {
            None => key::chunk(at),
            Some(tier) => key::cluster(at.dimension, at.pos.cluster(tier)),
        }
    }

    pub(crate) fn space(&self) -> Space {
        cluster_tier(self.tier).map_or(Space::ChunkL0, Space::of_cluster)
    }
}

pub(crate) fn cluster_tier(tier: Tier) -> Option<ClusterTier> {
    match tier {
        Tier::L0 => None,
        Tier::L1 => Some(ClusterTier::L1),
        Tier::L2 => Some(ClusterTier::L2),
    }
}

/// Chunks are not kept in memory, and the caches of no other world are shared.
pub(crate) fn world_options(tier: Tier) -> WorldOptions {
    let resources = Some(Resources::new(ENGINE_BYTES, 2));
    options(tier, WorldOptions { cache_bytes: 0, resources, ..WorldOptions::process() })
}

pub(crate) fn open_raw(world: &Path) -> Db {
    raw::open(world, ENGINE_BYTES / 4 * 3).expect("RocksDB's own files")
}
