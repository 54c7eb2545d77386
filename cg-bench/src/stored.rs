//! Worlds whose chunks all lie in one tier, closed on disk, and a copy of each for RocksDB alone.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use cg_anvil::import::{ImportOptions, import};
use cg_format::cluster::{Slot, StoredCluster};
use cg_format::codec::decompress;
use cg_format::frame::{Codec, Draft};
use cg_format::{
    Chunk, ChunkAt, ChunkBox, ChunkPos, ClusterTier, Dimension, Limits, Space, Tier, frame, key,
};
use cg_registry::Schema;
use cg_store::Resources;
use cg_store::view::Area;
use cg_store::{Error, World, WorldOptions};
use tempfile::TempDir;

use crate::fill::fill;
use crate::raw::{self, Db, family};
use crate::settled::{options, settle};
use crate::world::{Generator, Scene};

/// The seed of what is generated.
pub const SEED: u64 = 7;
/// Memory for the engine, of which a half is RocksDB's block cache and a quarter its blob cache: all that is read fits.
const ENGINE_BYTES: usize = 256 << 20;
/// Chunks of a column, and columns along each side of a view.
const HEIGHT: i64 = 24;
const VIEW: i64 = 11;
/// The lowest chunk of a column of a real save.
const SAVED_BOTTOM: i64 = -4;

/// Contents of a stored world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    /// Generated hills in all of [`area`].
    Hills,
    /// Chunks of air alone in all of [`area`].
    Empty,
    /// The chunks of a region file.
    Save(PathBuf),
}

/// A world that is settled and closed.
#[derive(Debug)]
pub struct Stored {
    /// Where all its chunks lie.
    pub tier: Tier,
    /// The only dimension.
    pub dimension: Dimension,
    /// The schema of every chunk.
    pub schema: Schema,
    /// 11×11 columns of 24 chunks, all stored: of a save those with the most chunks of more than one kind of block.
    pub view: ChunkBox,
    /// The closed world.
    pub world: PathBuf,
    /// A database of the same rows.
    pub copy: PathBuf,
    _dir: TempDir,
}

/// Chunks by the row that has them, ascending by key.
pub type Rows = Vec<([u8; key::CHUNK_LEN_BYTES], Vec<ChunkAt>)>;

/// The area that is generated: 16×24×16 chunks, which cut the cubes of 16³ in half on one axis.
pub fn area() -> ChunkBox {
    ChunkBox::new(ChunkPos::constant(-8, -12, -8), ChunkPos::constant(7, 11, 7))
}

/// The part of [`area`] that is asked for: 11×11 columns of 24 chunks around the middle.
pub fn view() -> ChunkBox {
    ChunkBox::new(ChunkPos::constant(-5, -12, -5), ChunkPos::constant(5, 11, 5))
}

impl Stored {
    /// Hills that lie in a tier.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn in_tier(tier: Tier) -> Self {
        Self::new(&Contents::Hills, tier)
    }

    /// A world that is filled, settled and closed.
    ///
    /// # Panics
    /// When the disk is full, or a save cannot be read or has no 11×11 columns that touch.
    #[must_use]
    pub fn new(contents: &Contents, tier: Tier) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (path, copy) = (dir.path().join("world"), dir.path().join("copy"));
        let world = World::builder().options(&world_options(tier)).create(&path).expect("an empty directory");
        let (dimension, schema, view) = match contents {
            Contents::Hills | Contents::Empty => {
                let generator = Generator::in_world(Scene::Hills, SEED, &world).expect("new names");
                if *contents == Contents::Hills {
                    fill(&world, &generator, area(), |_| {}).expect("a new world takes any chunk");
                } else {
                    fill_with_air(&world, &generator).expect("a new world takes any chunk");
                }
                (generator.dimension(), generator.schema().clone(), view())
            }
            Contents::Save(file) => {
                import(file, &world, &ImportOptions::default(), |_| {}).expect("a sound save");
                let (dimension, view) = fullest_view(&world);
                (dimension, world.catalog().current_schema(), view)
            }
        };
        settle(&world).expect("the disk has room");
        let census = world.tiers().census().expect("sound");
        let elsewhere = Tier::ALL.into_iter().filter(|other| *other != tier);
        let elsewhere: u64 = elsewhere.map(|other| census.tier(other).chunks).sum();
        assert!(elsewhere == 0 && census.tier(tier).chunks > 0, "all chunks lie in {tier:?}");
        world.close().expect("the disk has room");
        drop(world);
        let world = World::builder().options(&world_options(tier)).open(&path).expect("just closed");
        world.checkpoint(&copy, cg_store::CheckpointFiles::Linked).expect("an empty directory");
        drop(world);
        Self { tier, dimension, schema, view, world: path, copy, _dir: dir }
    }

    /// The world, with nothing in any cache and room for all in the engine's.
    ///
    /// # Panics
    /// If it is open already.
    #[must_use]
    pub fn open(&self) -> World {
        World::builder().options(&world_options(self.tier)).open(&self.world).expect("just closed")
    }

    /// RocksDB on the copy, with nothing in any cache and room for all.
    ///
    /// # Panics
    /// If it is open already.
    #[must_use]
    pub fn open_raw(&self) -> Db {
        open_raw(&self.copy)
    }

    /// A place of the only dimension.
    #[must_use]
    pub fn at(&self, pos: ChunkPos) -> ChunkAt {
        ChunkAt::new(self.dimension, pos)
    }

    /// The rows that have these chunks.
    #[must_use]
    pub fn rows(&self, chunks: &[ChunkAt]) -> Rows {
        let mut rows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for at in chunks {
            rows.entry(self.row_key(*at)).or_default().push(*at);
        }
        rows.into_iter().collect()
    }

    /// Rows fetched by RocksDB, and what was asked for decoded: hot rows in one call, clusters one by one.
    ///
    /// # Panics
    /// If a row is absent or damaged.
    pub fn fetch(&self, raw: &Db, rows: &Rows, mut take: impl FnMut(ChunkAt, Chunk)) {
        let family = family(raw, self.space());
        if self.tier == Tier::L0 {
            for rows in rows.chunks(1024) {
                let found = raw.batched_multi_get_cf(family, rows.iter().map(|(key, _)| key), false);
                for ((_, at), row) in rows.iter().zip(found) {
                    self.decode_row(&row.expect("sound files").expect("a stored row"), at, &mut take);
                }
            }
            return;
        }
        for (key, at) in rows {
            let row = raw.get_pinned_cf(family, key).expect("sound files").expect("a stored row");
            self.decode_row(&row, at, &mut take);
        }
    }

    /// Decodes chunks of one row: a chunk's own, or the cluster that has all of them.
    ///
    /// # Panics
    /// If the row is damaged or does not have them.
    pub fn decode_row(&self, row: &[u8], at: &[ChunkAt], mut take: impl FnMut(ChunkAt, Chunk)) {
        let decode = |value: &[u8]| Chunk::decode(value, &self.schema).expect("a sound chunk");
        let Some(tier) = cluster_tier(self.tier) else {
            return take(at[0], decode(&hot_value(row)));
        };
        let cluster = StoredCluster::open(tier, &self.row_key(at[0]), row).expect("a sound cluster");
        let mut sorted: Vec<_> = at.iter().map(|at| (Slot::of(at.pos, tier), *at)).collect();
        let group_of = |(slot, _): &(Slot, ChunkAt)| cluster.group_of(*slot);
        sorted.sort_unstable_by_key(group_of);
        for members in sorted.chunk_by(|a, b| group_of(a) == group_of(b)) {
            let group = cluster.group(group_of(&members[0]), &mut Limits::default());
            let group = group.expect("a sound group").expect("a group with chunks");
            for (slot, at) in members {
                take(*at, decode(&group.chunk(*slot).expect("a stored chunk")));
            }
        }
    }

    /// The key of the row that has a chunk of this tier there.
    #[must_use]
    pub fn row_key(&self, at: ChunkAt) -> [u8; key::CHUNK_LEN_BYTES] {
        match cluster_tier(self.tier) {
            None => key::chunk(at),
            Some(tier) => key::cluster(at.dimension, at.pos.cluster(tier)),
        }
    }

    /// The space of the tier.
    #[must_use]
    pub fn space(&self) -> Space {
        cluster_tier(self.tier).map_or(Space::ChunkL0, Space::of_cluster)
    }
}

/// The row of a chunk, as a world stores it.
#[must_use]
pub fn hot_row(chunk: &Chunk) -> Draft {
    let value = chunk.to_bytes();
    let codec = if value.len() < 256 { Codec::None } else { Codec::Lz4 };
    Draft::plain(codec, 0, |out| out.extend(value))
}

/// The value of a chunk's row. The row is not checked.
///
/// # Panics
/// If it does not decompress.
#[must_use]
pub fn hot_value(row: &[u8]) -> Cow<'_, [u8]> {
    let (head, payload) = row.split_at(frame::LEN_BYTES);
    let codec = Codec::from_byte(head[2]).expect("a sound row");
    if codec == Codec::None {
        return payload.into();
    }
    let (raw_len_bytes, block) = payload.split_first_chunk().expect("a sound row");
    let (raw_len_bytes, mut value) = (u32::from_le_bytes(*raw_len_bytes) as usize, Vec::new());
    decompress(codec, block, raw_len_bytes, &mut value).expect("a sound row");
    value.into()
}

/// The tier of clusters that a tier is; `None` of [`Tier::L0`].
#[must_use]
pub fn cluster_tier(tier: Tier) -> Option<ClusterTier> {
    match tier {
        Tier::L0 => None,
        Tier::L1 => Some(ClusterTier::L1),
        Tier::L2 => Some(ClusterTier::L2),
    }
}

/// Chunks are not kept in memory, and the caches of no other world are shared.
#[must_use]
pub fn world_options(tier: Tier) -> WorldOptions {
    let resources = Some(Resources::new(ENGINE_BYTES, 2));
    options(tier, WorldOptions { cache_bytes: 0, resources, ..WorldOptions::process() })
}

/// RocksDB on the files of a closed world, with room for all in its cache.
///
/// # Panics
/// If they are not RocksDB's files.
#[must_use]
pub fn open_raw(world: &Path) -> Db {
    raw::open(world, ENGINE_BYTES / 4 * 3).expect("RocksDB's own files")
}

/// Puts a chunk of air at every place of [`area`].
fn fill_with_air(world: &World, generator: &Generator) -> Result<(), Error> {
    let catalog = world.catalog();
    let air = catalog.block_id("minecraft:air").expect("the generator registered it");
    let air = Chunk::filled(air, generator.schema()).expect("a registered block");
    let places: Vec<_> = area().iter().collect();
    for together in places.chunks(256) {
        world.transaction(|tx| {
            for pos in together {
                tx.save(ChunkAt::new(generator.dimension(), *pos), air.clone());
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

/// The dimension of an imported save, and of all 11×11 columns whose chunks are all there those with the most chunks of
/// more than one kind of block.
fn fullest_view(world: &World) -> (Dimension, ChunkBox) {
    let mut places = Vec::new();
    let shown = world.read_view(|view| {
        view.for_each_place(Area::World, |stored| {
            places.push(stored.expect("sound").at);
            ControlFlow::<()>::Continue(())
        })
    });
    assert_eq!(shown.expect("sound"), None);
    let dimension = places.first().expect("it has columns").dimension;
    let there: BTreeSet<_> = places.iter().map(|at| at.pos).collect();
    let mut mixed = BTreeMap::<(i64, i64), u64>::new();
    for some in places.chunks(1024) {
        for (at, chunk) in some.iter().zip(world.load_many(some)) {
            let kinds = chunk.expect("sound").expect("it was shown").palette().len();
            *mixed.entry((at.pos.x(), at.pos.z())).or_default() += u64::from(kinds > 1);
        }
    }
    let view_from = |x: i64, z: i64| {
        let last = ChunkPos::new(x + VIEW - 1, SAVED_BOTTOM + HEIGHT - 1, z + VIEW - 1);
        ChunkBox::new(ChunkPos::new(x, SAVED_BOTTOM, z).expect("it is there"), last.expect("near it"))
    };
    let views = mixed.keys().map(|(x, z)| view_from(*x, *z));
    let views = views.filter(|view| view.iter().all(|pos| there.contains(&pos)));
    let fullness = |view: &ChunkBox| -> u64 {
        let columns = (0..VIEW * VIEW).map(|n| (view.min().x() + n / VIEW, view.min().z() + n % VIEW));
        columns.map(|column| mixed[&column]).sum()
    };
    (dimension, views.max_by_key(fullness).expect("11×11 columns that touch"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_tier_give_back_what_the_world_has() {
        for tier in Tier::ALL {
            let stored = Stored::new(&Contents::Empty, tier);
            let asked: Vec<_> = stored.view.iter().map(|pos| stored.at(pos)).collect();
            assert_eq!(asked.len(), 11 * 11 * 24);
            let world = stored.open();
            let ours = world.load_many(&asked).into_iter().map(|chunk| chunk.unwrap().unwrap());
            let ours: BTreeMap<_, _> = asked.iter().copied().zip(ours).collect();
            let mut fetched = BTreeMap::new();
            stored.fetch(&stored.open_raw(), &stored.rows(&asked), |at, chunk| {
                fetched.insert(at, chunk.into());
            });
            assert_eq!(ours, fetched, "{tier:?}");
        }
    }
}
