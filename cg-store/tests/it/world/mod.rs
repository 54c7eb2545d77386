//! Worlds as a host uses them, in memory and on disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cg_format::frame::{Codec, Draft, Stamp};
use cg_format::key::Family;
use cg_registry::ListKind;
use cg_store::engine::{Batch, Engine, Level, MemEngine, ReadableExt as _, RocksEngine};
use cg_store::prelude::*;
use cg_store::{MoveCounts, TracePart, VerifyDepth, engine};
use tempfile::TempDir;

mod boxes;
mod calls;
mod close;
mod damage;
mod deltas;
mod durability;
mod faulty;
mod full_disk;
mod hash;
mod history;
mod iterate;
mod limits;
mod linearizable;
mod load;
mod low_disk;
mod memory;
mod moves;
mod objects;
mod opacity;
mod opacity_ticks;
mod open;
mod ownership;
mod prefetch;
mod property;
mod quarantine;
mod quarantine_values;
mod queue;
mod records;
mod registry;
mod scale;
mod snapshots;
mod staged;
mod submit;
mod sync;
mod sync_seeds;
mod tier;
mod transaction;
mod unknown;
mod unreadable;
mod value_history;
mod verify;

/// Runs the same tests over a world in memory and over one on disk.
macro_rules! over_both_engines {
    ($($name:ident)*) => {
        mod in_memory {
            $(#[test] fn $name() { super::$name(&$crate::world::in_memory()); })*
        }
        mod on_disk {
            $(#[test] fn $name() { super::$name(&$crate::world::Disk::new().create(&[])); })*
        }
    };
}
pub(crate) use over_both_engines;

/// Small caches, and no waiting for the disk: what a test waits for it says itself.
pub(crate) fn options() -> WorldOptions {
    WorldOptions { cache_bytes: 4 << 20, engine_bytes: 16 << 20, ..WorldOptions::process() }
}

pub(crate) fn in_memory() -> World {
    World::in_memory(&[], &options()).expect("a world in memory")
}

/// A directory for a world, gone with the value.
pub(crate) struct Disk(TempDir);

impl Disk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory for the test"))
    }

    /// A copy of a closed world.
    pub(crate) fn copy_of(other: &Self) -> Self {
        let copy = Self::new();
        copy_dir(&other.path(), &copy.path());
        copy
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
        World::create(self.path(), packs, &options()).expect("is created")
    }

    #[track_caller]
    pub(crate) fn open(&self, packs: &[PackManifest]) -> World {
        World::open(self.path(), packs, &options()).expect("opens")
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

    /// Opens the closed world's rows without the engine, which would seal every row that it writes.
    pub(crate) fn raw(&self) -> Raw {
        let families = Family::ALL.map(Family::name);
        let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), self.path().join("db"), families);
        Raw(db.expect("the world is closed"))
    }
}

/// The rows of a closed world.
pub(crate) struct Raw(rocksdb::DB);

impl Raw {
    fn family(&self, family: Family) -> std::sync::Arc<rocksdb::BoundColumnFamily<'_>> {
        self.0.cf_handle(family.name()).expect("every family is open")
    }

    #[track_caller]
    pub(crate) fn get(&self, family: Family, key: impl AsRef<[u8]>) -> Vec<u8> {
        self.0.get_cf(&self.family(family), key).expect("reads").expect("the row is there")
    }

    pub(crate) fn put(&self, family: Family, key: impl AsRef<[u8]>, row: &[u8]) {
        self.0.put_cf(&self.family(family), key, row).expect("writes");
    }

    pub(crate) fn delete(&self, family: Family, key: impl AsRef<[u8]>) {
        self.0.delete_cf(&self.family(family), key).expect("writes");
    }

    /// The keys of a family, and its largest file with rows of it.
    pub(crate) fn keys_and_file(&self, family: Family) -> (Vec<Vec<u8>>, PathBuf) {
        let rows = self.0.iterator_cf(&self.family(family), rocksdb::IteratorMode::Start);
        let keys = rows.map(|row| row.expect("is sound").0.to_vec()).collect();
        let mut files = self.0.live_files().expect("lists");
        files.retain(|file| file.column_family_name == family.name());
        let largest = files.iter().max_by_key(|file| file.size).expect("the family has a file");
        (keys, self.0.path().join(largest.name.trim_start_matches('/')))
    }

    pub(crate) fn drop_family(&self, family: Family) {
        self.0.drop_cf(family.name()).expect("drops");
    }

    /// Flips one bit of a row.
    #[track_caller]
    pub(crate) fn flip(&self, family: Family, key: impl AsRef<[u8]>, byte: usize) {
        let mut row = self.get(family, &key);
        row[byte] ^= 0x10;
        self.put(family, key, &row);
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

/// What [`Ids`] stands for.
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
pub(crate) fn save(world: &World, chunks: impl IntoIterator<Item = (ChunkAt, Chunk)>) -> u64 {
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

/// Writes rows past the world. The frames are sealed, so only what they hold can be wrong.
#[track_caller]
pub(crate) fn plant(
    world: &World,
    rows: impl IntoIterator<Item = (cg_format::Space, Vec<u8>, Option<Draft>)>,
) {
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

/// What a full verification finds.
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

/// Every row of the engine except the commit sequence, whose row changes with every commit.
pub(crate) fn rows(world: &World) -> BTreeMap<(Family, Vec<u8>), Vec<u8>> {
    let mut rows = BTreeMap::new();
    for family in Family::ALL {
        let shown = world.engine().scan(family, engine::ALL_KEYS, |key, row| {
            if key != engine::COMMIT_SEQUENCE_KEY {
                rows.insert((family, key.to_vec()), row.to_vec());
            }
            std::ops::ControlFlow::<()>::Continue(())
        });
        shown.expect("scans");
    }
    rows
}

/// How many names a list holds.
pub(crate) fn issued(world: &World, list: ListKind) -> u64 {
    world.catalog().list(list).len() as u64
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
