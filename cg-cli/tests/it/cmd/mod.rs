//! The `cg` binary on small worlds: what it prints, what it exits with, what it leaves alone.

mod accept_loss;
mod archive;
mod archive_segments;
mod checkpoint;
mod codes;
mod compact;
pub(crate) mod copy;
mod damage;
mod dump;
mod get;
mod hash;
mod import;
mod info;
mod kept;
mod map;
mod object;
mod opacity;
mod overlay;
mod pack;
mod pack_values;
mod prune;
mod quarantine;
mod records;
mod registry;
mod renamed;
mod schem;
mod segments;
mod segments_read;
mod settings;
mod snapshot;
mod tiers;
mod unpack_archive;
mod usage;
mod verify;

use std::path::{Path, PathBuf};
use std::process::Command;

use cg_format::cluster::{ClusterBuilder, Slot, SlotInfo};
use cg_format::frame::{Codec, Draft, FrameHeader, FrameView};
use cg_format::{ClusterTier, Limits, Space, key};
use cg_registry::{ComponentOffer, Registration};
use cg_store::directory;
use cg_store::engine::{Batch, Budget, Engine, Level, Readable as _, RocksEngine, RocksOptions, Stamp};
use cg_store::prelude::*;
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

/// Result of a run of `cg`.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.out.lines().count(), 1, "JSON is one line: {self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Standard output of a run that ended well and complained of nothing.
    #[track_caller]
    pub(crate) fn good(self) -> String {
        assert_eq!((self.code, self.err.as_str()), (0, ""), "{}", self.out);
        self.out
    }
}

/// A world in a temporary directory.
pub(crate) struct Sample {
    dir: TempDir,
}

/// The entity that the sample's chunk holds.
pub(crate) const SHEEP: EntityId = EntityId::new(Uuid::from_u128(0x5ee9));

/// Where the sample's full chunk lies.
pub(crate) const GROUND: ChunkPos = ChunkPos::constant(0, 4, -1);

/// Replaces a row of a world by one whose frame is sound and whose payload is not.
pub(crate) fn spoil(world: &Path, space: Space, key: &[u8], payload: &'static [u8]) {
    let draft = Draft::plain(Codec::None, 0, |out| out.extend(payload));
    let engine = engine_of(world);
    let mut batch = Batch::new();
    batch.put(space, key, draft, Stamp::Commit);
    engine.commit(batch, &[], Level::Power).expect("the disk takes it");
    engine.close().expect("the disk takes it");
}

fn engine_of(world: &Path) -> Box<dyn Engine> {
    let options = RocksOptions::new(Budget::new(16 << 20, 1));
    let engine = RocksEngine::open(&directory::engine_dir(world), &options).expect("it is sound");
    cg_store::layer::with_history(Box::new(engine)).expect("it is sound").0
}

impl Sample {
    /// Two chunks in the overworld, one on the moon; a chest with contents, a waterlogged slab, side data, an entity in
    /// a chunk and a detached one.
    pub(crate) fn new() -> Self {
        let sample = Self { dir: TempDir::new().expect("a temporary directory") };
        let world = World::builder().create(sample.path()).expect("the directory is empty");
        fill(&world).expect("the sample is sound");
        world.close().expect("the disk takes it");
        sample
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("world")
    }

    /// A place beside the world.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn open(&self) -> World {
        World::builder().open(self.path()).expect("the world is sound")
    }

    /// Runs `cg VERB WORLD ARGS…`; a verb may be two words.
    #[track_caller]
    pub(crate) fn cg(&self, verb: &str, args: &[&str]) -> Said {
        let path = self.path();
        let words = verb.split(' ').chain([text(&path)]).chain(args.iter().copied());
        run(&words.collect::<Vec<_>>())
    }

    /// Replaces a row by one whose frame is sound and whose payload is not.
    pub(crate) fn spoil(&self, space: Space, key: &[u8], payload: &'static [u8]) {
        spoil(&self.path(), space, key, payload);
    }

    /// Replaces the row of the full chunk by bytes that are no chunk.
    pub(crate) fn spoil_ground(&self) -> String {
        let row = key::chunk(ChunkAt::new(Dimension::new(0), GROUND));
        self.spoil(Space::ChunkL0, &row, b"\x01\0\0\0\0\0\0\0not a chunk");
        row.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Moves the full chunk into a cluster of a colder tier, as it is.
    pub(crate) fn cool_ground(&self, tier: ClusterTier) {
        let at = ChunkAt::new(Dimension::new(0), GROUND);
        let hot = key::chunk(at);
        let engine = engine_of(&self.path());
        let mut batch = Batch::new();
        {
            let row = engine.get(Space::ChunkL0, &hot).expect("it is readable").expect("it is stored");
            let frame = FrameView::open(Space::ChunkL0, &hot, &row).expect("it is sound");
            let FrameHeader { version, schema_generation, .. } = frame.header();
            let mut cluster = ClusterBuilder::new(tier);
            let info = SlotInfo { version, schema_generation };
            cluster.put(
                Slot::of(GROUND, tier),
                info,
                frame.raw_payload(&mut Limits::default()).expect("it is sound").into_owned(),
            );
            let draft = cluster.finish(&mut Limits::default()).expect("it is small").expect("it has a chunk");
            let key = key::cluster(at.dimension, GROUND.cluster(tier));
            batch.put(Space::of_cluster(tier), key, draft, Stamp::Commit);
        }
        batch.delete(Space::ChunkL0, hot);
        engine.commit(batch, &[], Level::Power).expect("the disk takes it");
        engine.close().expect("the disk takes it");
    }

    /// Every file of the world with its bytes, to see that nothing was changed.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn add(dir: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in std::fs::read_dir(dir).expect("it is a directory") {
                let path = entry.expect("it is readable").path();
                if path.is_dir() {
                    add(&path, all);
                } else {
                    let bytes = std::fs::read(&path).expect("it is readable");
                    all.push((path, bytes));
                }
            }
        }
        let mut all = Vec::new();
        add(&self.path(), &mut all);
        all.sort();
        all
    }
}

/// Runs `cg` with some arguments.
#[track_caller]
pub(crate) fn run(args: &[&str]) -> Said {
    let output =
        Command::new(env!("CARGO_BIN_EXE_cg")).args(args).output().expect("cg is built with the tests");
    let text = |bytes| String::from_utf8(bytes).expect("cg prints UTF-8");
    Said {
        code: output.status.code().expect("cg ends by itself"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary directories have UTF-8 names")
}

fn fill(world: &World) -> Result<(), Box<dyn std::error::Error>> {
    let overworld = world.registry().register_dimension("game:overworld")?;
    let moon = world.registry().register_dimension("game:moon")?;
    let light = world.registry().register_side("game:light")?;
    let sheep = world.registry().register_entity("game:sheep")?;
    let items = Name::new("game:items")?;
    let chest = BlockOffer { components: vec![items.clone()], ..BlockOffer::new(Name::new("game:chest")?) };
    let slab = BlockOffer { opaque: false, ..BlockOffer::new(Name::new("game:oak_slab[type=bottom]")?) };
    world.registry().register(&Registration {
        components: vec![ComponentOffer::variable(items)],
        ..Registration::default()
    })?;
    let [air, stone, grass, water] =
        world.registry().register_blocks([":air", "game:stone", "game:grass_block", "game:water"])?;
    let catalog =
        world.registry().register(&Registration { blocks: vec![chest, slab], ..Registration::default() })?;
    let id = |name: &str| catalog.block_id(name).ok_or("it was just registered");
    let (chest, slab) = (id("game:chest")?, id("game:oak_slab[type=bottom]")?);
    let items = catalog.component_id("game:items").ok_or("it was just registered")?;
    let schema = catalog.current_schema();

    let mut ground = Chunk::filled(air, &schema)?;
    for cell in LocalPos::all() {
        let block = match cell.y() {
            0..=5 => stone,
            6 => grass,
            _ => continue,
        };
        ground.set_block(cell, block, &schema)?;
    }
    let place = LocalPos::new(3, 7, 5);
    ground.set_block(place, chest, &schema)?;
    ground.set_component(CellLayer::base(place), items, b"3 apples")?;
    let wet = LocalPos::new(9, 7, 9);
    ground.set_block(wet, slab, &schema)?;
    ground.push_layer(wet, water, &schema)?;
    ground.set_side(light, vec![15; 40]);

    let at = ChunkAt::new(overworld, GROUND);
    let position = EntityPos::new(overworld, BlockPos::new(4, 71, -9), [0.5, 0.0, 0.25])?;
    world.transaction(|tx| {
        tx.save(at, ground);
        tx.save(ChunkAt::new(overworld, ChunkPos::constant(0, 5, -1)), Chunk::filled(air, &schema)?);
        tx.save(ChunkAt::new(moon, ChunkPos::constant(-7, 0, 2)), Chunk::filled(stone, &schema)?);
        tx.put_entity(SHEEP, Entity::new(sheep, Owner::Chunk(at), position));
        let away = Owner::Detached(cg_format::entity::Reason::new("offline")?);
        tx.put_entity(EntityId::new(Uuid::from_u128(2)), Entity::new(sheep, away, position));
        Ok::<_, Box<dyn std::error::Error>>(())
    })?;
    Ok(())
}
