//! Worlds as a host uses them, in memory and on disk, for the tests of the store and of the crates above it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo, StoredCluster};
use cg_format::frame::{Codec, Draft, FrameView, Stamp};
use cg_format::{ClusterTier, Limits, Space, key};
use cg_store::engine::{Batch, Level};
use cg_store::prelude::*;
use cg_store::verify::VerifyDepth;
use tempfile::TempDir;

/// Runs the same tests over a world in memory and over one on disk.
macro_rules! over_both_engines {
    ($($name:ident)*) => {
        mod in_memory {
            $(#[test] fn $name() { super::$name(&$crate::fixture::in_memory()); })*
        }
        mod on_disk {
            $(#[test] fn $name() { super::$name(&$crate::fixture::Disk::new().create(&[])); })*
        }
    };
}
pub(crate) use over_both_engines;

/// Small caches, and no waiting for the disk: what a test waits for it says itself. With a map of opacity, so that it is
/// checked by every test that verifies a world.
pub(crate) fn options() -> WorldOptions {
    WorldOptions {
        cache_bytes: 4 << 20,
        engine_bytes: 16 << 20,
        opacity: cg_store::opacity::Keep::On,
        ..WorldOptions::process()
    }
}

pub(crate) fn in_memory() -> World {
    World::builder().options(&options()).in_memory().expect("a world in memory")
}

/// A directory for a world, gone with the value.
pub(crate) struct Disk(TempDir);

impl Disk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory for the test"))
    }

    /// A copy of a world as it is at one moment. It may be open; then it must be idle but for RocksDB's background work.
    pub(crate) fn copy_of(other: &Self) -> Self {
        loop {
            let before = other.lengths();
            let copy = Self::new();
            copy_dir(&other.path(), &copy.path());
            // Files that RocksDB made or deleted meanwhile would make a copy of no moment.
            if copy.lengths() == before && other.lengths() == before {
                return copy;
            }
        }
    }

    /// The length of each file below the world's directory.
    fn lengths(&self) -> BTreeMap<PathBuf, u64> {
        let (mut files, root) = (BTreeMap::new(), self.path());
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("lists") {
                let path = entry.expect("lists").path();
                match fs::metadata(&path) {
                    Ok(found) if found.is_dir() => folders.push(path),
                    Ok(found) => {
                        let name = path.strip_prefix(&root).expect("it is below").to_path_buf();
                        files.insert(name, found.len());
                    }
                    // Deleted since the listing.
                    Err(_) => {}
                }
            }
        }
        files
    }

    /// The directory around the world's.
    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    /// The world's directory.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("world")
    }

    #[track_caller]
    pub(crate) fn create(&self, packs: &[PackManifest]) -> World {
        World::builder().packs(packs).options(&options()).create(self.path()).expect("is created")
    }

    #[track_caller]
    pub(crate) fn open(&self, packs: &[PackManifest]) -> World {
        World::builder().packs(packs).options(&options()).open(self.path()).expect("opens")
    }

    /// Every file below the world's directory with its bytes.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).expect("lists") {
                let path = entry.expect("lists").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(path.clone(), fs::read(path).expect("reads"));
                }
            }
        }
        files
    }
}

/// The ids that the tests use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    pub(crate) air: BlockId,
    pub(crate) stone: BlockId,
    pub(crate) glass: BlockId,
    /// A block with components `power` and `items`.
    pub(crate) machine: BlockId,
    pub(crate) power: ComponentId,
    pub(crate) items: ComponentId,
    pub(crate) cow: EntityTypeId,
    pub(crate) light: SideKind,
    pub(crate) overworld: Dimension,
    pub(crate) nether: Dimension,
}

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

/// The registration of the names that [`Ids`] stands for.
pub(crate) fn registration() -> Registration {
    let block = |text| BlockOffer::new(name(text));
    Registration {
        components: vec![
            ComponentOffer::fixed(name("game:power"), 4),
            ComponentOffer::variable(name("game:items")),
        ],
        blocks: vec![
            BlockOffer { opaque: false, ..block(":air") },
            block("game:stone"),
            BlockOffer { opaque: false, ..block("game:glass") },
            BlockOffer { components: vec![name("game:power"), name("game:items")], ..block("game:machine") },
        ],
        entities: vec![name("game:cow")],
        sides: vec![name("game:light")],
        dimensions: vec![name("game:overworld"), name("game:nether")],
        ..Registration::default()
    }
}

impl Ids {
    /// Registers everything in a world.
    pub(crate) fn register(world: &World) -> Self {
        world.registry().register(&registration()).expect("registers");
        Self::of(world)
    }

    /// Finds everything in a world that has it.
    pub(crate) fn of(world: &World) -> Self {
        let catalog = world.catalog();
        let block = |text| catalog.block_id(text).expect("a block");
        let component = |text| catalog.component_id(text).expect("a component");
        let dimension = |text| catalog.dimension(text).expect("a dimension");
        Self {
            air: block(":air"),
            stone: block("game:stone"),
            glass: block("game:glass"),
            machine: block("game:machine"),
            power: component("game:power"),
            items: component("game:items"),
            cow: catalog.entity_type("game:cow").expect("an entity type"),
            light: catalog.side_kind("game:light").expect("a side kind"),
            overworld: dimension("game:overworld"),
            nether: dimension("game:nether"),
        }
    }

    /// A chunk of the overworld.
    #[track_caller]
    pub(crate) fn at(&self, x: i64, y: i64, z: i64) -> ChunkAt {
        ChunkAt::new(self.overworld, ChunkPos::new(x, y, z).expect("inside the world"))
    }

    /// An entity in the middle of a chunk, owned by it.
    pub(crate) fn cow_in(&self, at: ChunkAt) -> Entity {
        let block = at.pos.block(LocalPos::new(8, 0, 8));
        let position = EntityPos::new(at.dimension, block, [0.5, 0.0, 0.5]).expect("a position");
        Entity::new(self.cow, Owner::Chunk(at), position)
    }
}

/// A chunk of one block.
#[track_caller]
pub(crate) fn filled(world: &World, block: BlockId) -> Chunk {
    Chunk::filled(block, &world.catalog().current_schema()).expect("the block is registered")
}

/// A chunk of air whose block at `cell` tells it from others.
#[track_caller]
pub(crate) fn marked(world: &World, ids: &Ids, cell: u16) -> Chunk {
    let mut chunk = filled(world, ids.air);
    let cell = LocalPos::from_index(cell % 4096).expect("below 4096");
    chunk.set_block(cell, ids.stone, &world.catalog().current_schema()).expect("is registered");
    chunk
}

/// Saves chunks in one transaction.
#[track_caller]
pub(crate) fn save(world: &World, chunks: impl IntoIterator<Item = (ChunkAt, Chunk)>) -> CommitSeq {
    let saved = world.transaction(|tx| {
        for (at, chunk) in chunks {
            tx.save(at, chunk);
        }
        Ok::<_, Error>(())
    });
    saved.expect("saves").seq
}

/// The nth entity of a test.
pub(crate) fn uuid(n: u128) -> EntityId {
    EntityId::new(uuid::Uuid::from_u128(n))
}

/// The findings of a full verification.
pub(crate) fn findings(world: &World) -> Vec<String> {
    let report = world.verify(VerifyDepth::Full, |_| {}).expect("verifies");
    report
        .findings
        .into_iter()
        .map(|finding| format!("{}: {}", finding.family.name(), finding.what))
        .collect()
}

#[track_caller]
pub(crate) fn assert_sound(world: &World) {
    assert_eq!(findings(world), Vec::<String>::new());
}

/// Writes rows past the world. The frames are sealed, so only what they hold can be wrong.
#[track_caller]
pub(crate) fn plant(world: &World, rows: impl IntoIterator<Item = (Space, Vec<u8>, Option<Draft>)>) {
    let mut batch = Batch::new();
    for (space, key, draft) in rows {
        match draft {
            Some(draft) => batch.put(space, key, draft, Stamp::Commit),
            None => batch.delete(space, key),
        }
    }
    world.engine().commit(batch, &[], Level::Process).expect("commits");
}

pub(crate) fn plain(bytes: &[u8]) -> Draft {
    Draft::plain(Codec::None, 0, |out| out.extend_from_slice(bytes))
}

/// Copies chunks into the cluster of a tier, over what it holds. `keep_hot` leaves the rows in the hottest tier.
pub(crate) fn demote(world: &World, tier: ClusterTier, all: &[ChunkAt], keep_hot: bool) {
    let mut clusters: BTreeMap<Vec<u8>, Vec<ChunkAt>> = BTreeMap::new();
    for at in all {
        clusters.entry(key::cluster(at.dimension, at.pos.cluster(tier)).to_vec()).or_default().push(*at);
    }
    let space = Space::of_cluster(tier);
    let engine = world.engine();
    let mut moved = Vec::new();
    for (cluster, members) in clusters {
        let base = engine.get(space, &cluster).expect("reads").map(|row| row.to_vec());
        let base = base.as_deref().map(|row| StoredCluster::open(tier, &cluster, row).expect("is sound"));
        let mut builder = base.as_ref().map_or(ClusterBuilder::new(tier), ClusterBuilder::over);
        for at in members {
            let hot = key::chunk(at);
            let row = engine.get(Space::ChunkL0, &hot).expect("reads").expect("is hot").to_vec();
            let frame = FrameView::open(Space::ChunkL0, &hot, &row).expect("is sound");
            let (version, schema_generation) = (frame.header().version, frame.header().schema_generation);
            let info = SlotInfo { version, schema_generation };
            builder.put(
                Slot::of(at.pos, tier),
                info,
                frame.raw_payload(&mut Limits::default()).expect("is sound").into_owned(),
            );
            if !keep_hot {
                moved.push((Space::ChunkL0, hot.to_vec(), None));
            }
        }
        let draft = builder.finish(&mut Limits::default()).expect("is formed").expect("holds chunks");
        moved.push((space, cluster, Some(draft)));
    }
    plant(world, moved);
}

/// Copies a directory as it is now: what a kill would leave.
pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("makes");
    for entry in fs::read_dir(from).expect("lists") {
        let path = entry.expect("lists").path();
        let target = to.join(path.file_name().expect("has a name"));
        if path.is_dir() {
            copy_dir(&path, &target);
            continue;
        }
        match fs::copy(&path, &target) {
            // RocksDB has deleted what it no longer needs since the listing.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => drop(copied.expect("copies")),
        }
    }
}
