//! Costs of coming back, and the writes of only passing by, by counters.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cg_anvil::import::{ImportOptions, import};
use cg_bench::fill::fill;
use cg_bench::world::{Generator, Scene};
use cg_format::{BlockPos, ChunkAt, ChunkBox, ChunkPos, EntityId, Tier};
use cg_store::Resources;
use cg_store::tiers::MoveCounts;
use cg_store::{World, WorldOptions};
use cg_tiering::{CubeAt, GameTick, PlayerAt};

const ENOUGH: Duration = Duration::from_secs(600);
const MINUTE: u64 = 60 * GameTick::PER_SECOND;
const DAY: u64 = 24 * 60 * MINUTE;

fn player(dimension: cg_format::Dimension, block: BlockPos) -> PlayerAt {
    PlayerAt { id: EntityId::from_bytes([1; 16]), dimension, block }
}

/// Threads of the store.
const THREADS: usize = 2;
/// So many promotions go on beside each other in the background.
const UNDER_WAY: usize = 8 * THREADS;

/// A settled world to which a player has just come back: he stands in the middle and has asked for what he sees.
struct Return {
    world: World,
    player: PlayerAt,
    view: Vec<ChunkAt>,
}

impl Return {
    fn new() -> Self {
        let resources = Some(Resources::new(64 << 20, THREADS));
        let options = WorldOptions { cache_bytes: 0, resources, ..WorldOptions::default() };
        let world = World::builder().options(&options).in_memory().expect("in memory");
        let generator = Generator::in_world(Scene::Hills, 7, &world).expect("registers");
        let area = ChunkBox::new(ChunkPos::constant(-8, -4, -8), ChunkPos::constant(7, 7, 7));
        fill(&world, &generator, area, |_| {}).expect("fills");
        world.tiers().demote_all(DAY, |_| {}).expect("settles");
        let player = player(generator.dimension(), BlockPos::new(3, 70, 5));
        let view = ChunkBox::new(ChunkPos::constant(-5, -1, -5), ChunkPos::constant(5, 7, 5));
        let view: Vec<_> = view.iter().map(|pos| ChunkAt::new(generator.dimension(), pos)).collect();
        world.tick(GameTick::new(1), &[player], ENOUGH).expect("ticks");
        let served = world.load_many(&view);
        assert!(served.iter().all(|chunk| matches!(chunk, Ok(Some(_)))), "clusters serve at once");
        Self { world, player, view }
    }

    /// A tick when he has stayed long enough.
    fn tick(&self, budget: Duration) -> MoveCounts {
        self.world.tick(GameTick::new(3 * MINUTE), &[self.player], budget).expect("ticks").moves
    }

    /// The cubes in view whose chunks are not all hot, with the distance of each to the player.
    fn not_hot(&self) -> BTreeMap<CubeAt, u64> {
        self.not_hot_of(|_| true)
    }

    /// The same, of some cubes.
    fn not_hot_of(&self, asked: impl Fn(&CubeAt) -> bool) -> BTreeMap<CubeAt, u64> {
        let mut waiting = BTreeMap::new();
        for at in self.view.iter().filter(|at| asked(&CubeAt::of(**at))) {
            let tier = self
                .world
                .tiers()
                .with_stored_bytes(*at, |stored| Ok(stored.tier))
                .expect("sound")
                .expect("stored");
            if tier != Tier::L0 {
                let distance = distance_blocks(CubeAt::of(*at), self.player.block);
                waiting.insert(CubeAt::of(*at), distance);
            }
        }
        waiting
    }
}

/// Blocks from a cube to a place, on the axis where they are farthest apart.
fn distance_blocks(cube: CubeAt, block: BlockPos) -> u64 {
    let blocks = cube.chunks().blocks();
    let axis = |min: i64, max: i64, at: i64| (min - at).max(at - max).max(0);
    let (min, max) = (blocks.min(), blocks.max());
    [axis(min.x, max.x, block.x), axis(min.y, max.y, block.y), axis(min.z, max.z, block.z)]
        .into_iter()
        .max()
        .unwrap_or_default() as u64
}

/// The cost of moves: the bytes of all rows that they read and wrote.
fn work(moves: &MoveCounts) -> u64 {
    moves.bytes_read + moves.bytes_written
}

#[test]
fn who_comes_back_has_hot_chunks_by_little_more_work_than_without_budgets_the_nearest_first() {
    let at_once = Return::new();
    let mut unbudgeted = 0;
    while !at_once.not_hot().is_empty() {
        unbudgeted += work(&at_once.tick(ENOUGH));
    }

    let sliced = Return::new();
    let (mut budgeted, mut ticks) = (0, 0);
    let mut waiting = sliced.not_hot();
    assert!(waiting.len() >= 27, "{} cubes", waiting.len());
    while !waiting.is_empty() {
        budgeted += work(&sliced.tick(Duration::from_millis(1)));
        let left = sliced.not_hot_of(|cube| waiting.contains_key(cube));
        let done = waiting.iter().filter(|(cube, _)| !left.contains_key(cube)).map(|(_, distance)| *distance);
        if let Some(farthest) = done.max().filter(|_| !left.is_empty()) {
            // They are begun in order, and those under way end in any.
            let passed = left.values().filter(|distance| **distance < farthest).count();
            assert!(passed <= UNDER_WAY, "{farthest} blocks away went before {passed} nearer ones");
            ticks += 1;
        }
        waiting = left;
    }
    assert_eq!(sliced.not_hot(), BTreeMap::new(), "what was hot stayed hot");
    assert!(ticks >= 2, "the budget cut the work into {ticks} pieces");
    assert!(budgeted * 10 <= unbudgeted * 13, "{budgeted} bytes in slices, {unbudgeted} at once");
}

/// A region of a real save with terrain in all of its columns; `None`, loudly, when there is none.
fn region() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/worlds");
    let folder = std::env::var_os("CG_WORLDS").map_or_else(beside, PathBuf::from);
    let file = folder.join("mca/1.18.2_querz_terrain_r.0.0.mca");
    if file.is_file() {
        return Some(file);
    }
    let message = format!("no save at {}: set CG_WORLDS to the folder of `mca`", file.display());
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("\n*** NOT TESTED, flying over a real world: {message} ***\n");
    None
}

#[test]
fn flying_over_a_settled_real_world_writes_a_tenth_of_what_it_reads_at_most() {
    let Some(region) = region() else { return };
    let dir = tempfile::tempdir().expect("a temporary directory");
    let options = WorldOptions { cache_bytes: 0, ..WorldOptions::process() };
    let world = World::builder().options(&options).create(dir.path().join("world")).expect("creates");
    let imported = import(&region, &world, &ImportOptions::default(), |_| {}).expect("imports");
    assert!(imported.imported_chunks > 5_000, "{} chunks", imported.imported_chunks);
    world.tiers().demote_all(DAY, |_| {}).expect("settles");
    let census = world.tiers().census().expect("counts");
    assert_eq!(census.tier(Tier::L2).chunks, imported.imported_chunks, "the whole world is cold");
    let hash = world.content_hash(cg_store::view::Area::World).expect("hashes");

    let dimension = world.catalog().dimension("minecraft:overworld").expect("the save has it");
    let (before, mut now, mut seen) =
        (world.metrics().stats, 0, ChunkBox::around(ChunkPos::constant(-99, 0, -99), 0).expect("small"));
    // Four lanes over the region, 30 blocks in a second, and four ticks in it.
    for lane in 0..4_i64 {
        for step in 0..68_i64 {
            now += GameTick::PER_SECOND / 4;
            let along = if lane % 2 == 0 { step * 15 / 2 } else { 511 - step * 15 / 2 };
            let here = BlockPos::new(along, 100, 64 + lane * 128);
            world.tick(GameTick::new(now), &[player(dimension, here)], ENOUGH).expect("ticks");
            let column = here.chunk();
            let view = ChunkBox::new(
                ChunkPos::constant(column.x() - 5, -4, column.z() - 5),
                ChunkPos::constant(column.x() + 5, 19, column.z() + 5),
            );
            let new: Vec<_> = view
                .iter()
                .filter(|pos| !seen.contains(*pos))
                .map(|pos| ChunkAt::new(dimension, pos))
                .collect();
            assert!(world.load_many(&new).into_iter().all(|chunk| chunk.is_ok()));
            seen = view;
        }
    }
    let flown = world.metrics().stats - before;
    // What the flight left behind is done while nobody is there.
    for _ in 0..40 {
        now += MINUTE;
        world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
    }
    let work = world.metrics().stats - before;
    // Chunks that are alike are decoded once.
    assert!(flown.chunks_decoded > 4_000, "{} chunks were seen", flown.chunks_decoded);
    let (read, written) = (work.bytes_read, work.bytes_written);
    println!(
        "{} chunks seen, {read} bytes read, {written} written, {} moves",
        work.chunks_decoded, work.moves
    );
    assert!(written * 10 <= read, "{written} bytes written, {read} read");
    assert_eq!(world.content_hash(cg_store::view::Area::World).expect("hashes"), hash);
}
