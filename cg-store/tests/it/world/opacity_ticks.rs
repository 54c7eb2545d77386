//! Folding of the opacity map by ticks, and when it happens.

use std::time::Duration;

use super::*;
use cg_store::CheckpointFiles;
use cg_tiering::GameTick;

over_both_engines! {
    a_tile_that_changes_in_every_tick_is_folded_now_and_then
    a_tile_with_many_patches_does_not_wait
}

/// The key of the row of unfolded tiles.
const UNFOLDED: &str = "unfoldedTiles";
const FRAME_LEN_BYTES: usize = cg_format::frame::LEN_BYTES;
const ENOUGH: Duration = Duration::from_secs(600);

/// The rows of patches.
fn patches(world: &World) -> usize {
    let is_patch = |key: &[u8]| {
        cg_format::Space::of_row(Family::OpacityMap, key) == Some(cg_format::Space::OpacityPatch)
    };
    rows(world).keys().filter(|(family, key)| *family == Family::OpacityMap && is_patch(key)).count()
}

fn a_tile_that_changes_in_every_tick_is_folded_now_and_then(world: &World) {
    let ids = Ids::register(world);
    let (busy, quiet) = (ids.at(0, 0, 0), ids.at(40, 0, 0));
    save(world, [(quiet, filled(world, ids.stone))]);
    for now in 0..220 {
        let y = i64::try_from(now % 2).expect("is small");
        save(world, [(ids.at(0, y, 0), filled(world, ids.stone))]);
        let deleted = world.transaction(|tx| {
            tx.delete(ids.at(0, 1 - y, 0));
            Ok::<_, Error>(())
        });
        deleted.expect("deletes");
        let report = world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
        assert!(!report.work_left, "what rests is no work: {report:?}");
        let column = world.opacity().column(ids.overworld, 3, 3).expect("reads");
        assert_eq!(column.runs(), [16 * y..=16 * y + 15], "{now}");
    }
    assert_eq!(world.load(busy).expect("loads"), None);
    // At the ticks 0, 100 and 200; and the quiet one once.
    assert_eq!(
        (world.metrics().stats.tiles_folded, world.metrics().tiles_waiting, patches(world)),
        (4, 1, 2)
    );
    let report = world.tick(GameTick::new(299), &[], ENOUGH).expect("ticks");
    assert_eq!((report.tiles_folded, patches(world)), (0, 2));
    let report = world.tick(GameTick::new(300), &[], ENOUGH).expect("ticks");
    assert_eq!((report.tiles_folded, patches(world), world.metrics().tiles_waiting), (1, 0, 0));
    assert_sound(world);
}

fn a_tile_with_many_patches_does_not_wait(world: &World) {
    let ids = Ids::register(world);
    let mut folded = Vec::new();
    for now in 0..16_i64 {
        // A layer of the tile's sixteen columns of chunks, so that 256 patches are there after sixteen ticks.
        let layer = (0..16).map(|n| (ids.at(n / 4, now, n % 4), filled(world, ids.stone)));
        save(world, layer);
        let report = world.tick(GameTick::new(now.unsigned_abs()), &[], ENOUGH).expect("ticks");
        folded.push(report.tiles_folded);
    }
    assert_eq!(folded, [vec![1], vec![0; 15]].concat());
    assert_eq!(patches(world), 15 * 16);
    save(world, (0..16).map(|n| (ids.at(n / 4, 16, n % 4), filled(world, ids.stone))));
    assert_eq!(world.tick(GameTick::new(16), &[], ENOUGH).expect("ticks").tiles_folded, 1);
    assert_eq!(patches(world), 0);
    assert_eq!(world.opacity().column(ids.overworld, 3, 3).expect("reads").runs(), [0..=17 * 16 - 1]);
    assert_sound(world);
}

/// The tiles that wait right after opening, those that the first ticks fold, and the keys that these ticks scan.
fn after_opening(world: &World) -> (u64, usize, u64) {
    let waiting = world.metrics().tiles_waiting;
    let begin = world.tiers().clock().now().get();
    let mut folded = 0;
    for tick in 1..=MANY_TICKS {
        let report = world.tick(GameTick::new(begin + tick), &[], ENOUGH).expect("ticks");
        folded += report.tiles_folded;
    }
    assert_eq!((world.metrics().tiles_waiting, patches(world)), (0, 0));
    (waiting, folded, world.metrics().stats.keys_scanned)
}

/// The search for cubes scans some 300 keys after opening, and that of the map scans each of its rows.
const SEARCHED: u64 = 400;

/// Enough to search the map, and for each tile to end its rest.
const MANY_TICKS: u64 = 120;

/// A closed world whose map has 200 tiles, folded and searched. Returns a chunk of one of the tiles.
fn folded_and_closed(disk: &Disk) -> ChunkAt {
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, (0..200).map(|x| (ids.at(x * 4, 0, 0), filled(&world, ids.stone))));
    assert_eq!(after_opening(&world).1, 200);
    drop(world);
    ids.at(4, 0, 0)
}

fn above(at: ChunkAt, chunks: i64) -> ChunkAt {
    ChunkAt::new(at.dimension, ChunkPos::new(at.pos.x(), at.pos.y() + chunks, at.pos.z()).expect("is inside"))
}

#[test]
fn a_closed_world_knows_its_patches_and_no_tick_searches_for_them() {
    let disk = Disk::new();
    let at = folded_and_closed(&disk);
    let world = disk.open(&[]);
    let (waiting, folded, scanned) = after_opening(&world);
    assert_eq!((waiting, folded), (0, 0));
    assert!(scanned < SEARCHED, "{scanned} keys are more than the search for cubes scans");
    let stone = world.load(at).expect("loads").expect("is stored");
    save(&world, [(above(at, 1), Chunk::clone(&stone))]);
    drop(world);
    let world = disk.open(&[]);
    let (waiting, folded, scanned) = after_opening(&world);
    assert_eq!((waiting, folded), (1, 1));
    assert!(scanned < SEARCHED, "{scanned} keys are more than the search for cubes scans");
    assert_sound(&world);
}

#[test]
fn patches_of_a_world_that_was_not_closed_are_searched_for() {
    let disk = Disk::new();
    let at = folded_and_closed(&disk);
    let world = disk.open(&[]);
    let stone = world.load(at).expect("loads").expect("is stored");
    save(&world, [(above(at, 1), Chunk::clone(&stone))]);
    let copies = tempfile::tempdir().expect("a directory");
    let killed = copies.path().join("killed");
    world.checkpoint(&killed, CheckpointFiles::Linked).expect("copies");
    let world = World::builder().options(&options()).open(&killed).expect("opens");
    let (waiting, folded, scanned) = after_opening(&world);
    assert_eq!((waiting, folded), (0, 1));
    assert!(scanned >= SEARCHED, "{scanned} keys are too few for every tile");
    assert_sound(&world);
}

#[test]
fn a_session_that_did_not_finish_the_search_leaves_it_to_the_next() {
    let disk = Disk::new();
    let world = disk.create(&[]);
    let ids = Ids::register(&world);
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.stone))]);
    drop(world);
    let world = disk.open(&[]);
    let (waiting, folded, _) = after_opening(&world);
    assert_eq!((waiting, folded), (0, 1));
    drop(world);
    let row = disk.raw().get(Family::WorldMeta, UNFOLDED);
    assert_eq!(row.len(), FRAME_LEN_BYTES + 8, "no tile has patches");
}

#[test]
fn a_damaged_row_of_unfolded_tiles_costs_a_search() {
    let disk = Disk::new();
    let at = folded_and_closed(&disk);
    let world = disk.open(&[]);
    let stone = world.load(at).expect("loads").expect("is stored");
    save(&world, [(above(at, 1), Chunk::clone(&stone))]);
    drop(world);
    disk.raw().flip(Family::WorldMeta, UNFOLDED, FRAME_LEN_BYTES + 9);
    let world = disk.open(&[]);
    let report = world.verify(VerifyDepth::Full, |_| {}).expect("verifies");
    let problems: Vec<_> = report.findings.iter().map(|finding| finding.what.as_str()).collect();
    let [problem] = problems[..] else { panic!("{problems:?}") };
    let (_, said) = problem.split_once(", the bytes give 0x").expect("a checksum");
    let expected = ": damaged, or stored under a wrong key (at byte 4); closing the world writes it anew";
    assert_eq!(&said[8..], expected);
    let (waiting, folded, scanned) = after_opening(&world);
    assert_eq!((waiting, folded), (0, 1));
    assert!(scanned >= SEARCHED, "{scanned} keys are too few for every tile");
    drop(world);
    let world = disk.open(&[]);
    assert!(after_opening(&world).2 < SEARCHED, "closing wrote the row anew");
    assert_sound(&world);
}

#[test]
fn where_lost_commits_are_accepted_the_map_is_drawn_again() {
    let disk = Disk::new();
    let at = folded_and_closed(&disk);
    let accepting = WorldOptions { accept_lost_commits: true, ..options() };
    let world = World::builder().options(&accepting).open(disk.path()).expect("opens");
    assert!(world.load(at).expect("loads").is_some());
    world.close().expect("closes before a tick");
    drop(world);
    let world = disk.open(&[]);
    assert!(after_opening(&world).2 < SEARCHED, "it was drawn again");
    assert_sound(&world);
}
