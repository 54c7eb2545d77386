//! `cg map`

use std::path::Path;
use std::time::Duration;

use cg_format::{BlockArea, ClusterTier, Space, Tier, key};
use cg_map::{Colours, MapError, MapOptions, paint_of, render};
use cg_store::prelude::*;
use cg_tiering::{GameTick, PlayerAt};
use serde_json::json;

use super::{Sample, text};

/// A world in memory with a hill of grass in a lake, drawn by a function of x and z: ground height, then water to 64.
fn island(size_chunks: i64, height: impl Fn(i64, i64) -> i64) -> (World, Dimension) {
    let world = World::builder().in_memory().expect("no pack can disagree");
    let dimension = world.registry().register_dimension("game:overworld").expect("a name");
    let [air, grass, sand, water] = world
        .registry()
        .register_blocks([":air", "game:grass_block", "game:sand", "game:water"])
        .expect("names");
    world
        .transaction(|tx| {
            let schema = tx.catalog().current_schema();
            for (x, z) in (0..size_chunks).flat_map(|x| (0..size_chunks).map(move |z| (x, z))) {
                for y in 0..6 {
                    let pos = ChunkPos::constant(x, y, z);
                    let mut chunk = Chunk::filled(air, &schema)?;
                    for cell in LocalPos::all() {
                        let at = pos.block(cell);
                        let ground = height(at.x, at.z);
                        let block = match at.y {
                            y if y <= ground && ground < 66 => sand,
                            y if y <= ground => grass,
                            y if y <= 64 => water,
                            _ => continue,
                        };
                        chunk.set_block(cell, block, &schema)?;
                    }
                    tx.save(ChunkAt::new(dimension, pos), chunk);
                }
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .expect("the chunks are sound");
    (world, dimension)
}

fn bare(dimension: Dimension) -> MapOptions {
    MapOptions { scale_blocks: Some(1), legend: false, ..MapOptions::of(dimension) }
}

#[test]
fn colours_are_real_water_darkens_and_slopes_are_lit_from_the_north_west() {
    let (world, dimension) = island(2, |x, _| if x < 16 { 40 + x } else { 60 + x - 16 });
    let map = render(&world, &bare(dimension), |_| {}).expect("something is stored");
    let zoom = map.zoom_px;
    let pixel = |x: u32, z: u32| map.image.get(x * zoom, z * zoom).expect("inside").map(i32::from);
    let brightness = |[r, g, b]: [i32; 3]| r + g + b;
    assert_eq!((map.min, map.max), ([0, 0], [31, 31]));

    let [red, green, blue] = pixel(2, 8);
    assert!(blue > green && green > red, "deep water is blue: {:?}", pixel(2, 8));
    assert!(brightness(pixel(2, 8)) < brightness(pixel(19, 8)), "deep water is darker than shallow");
    let flat = paint_of("game:grass_block").rgb().map(i32::from);
    assert!(brightness(pixel(28, 8)) > brightness(flat), "a rise to the east faces the light");
    let names: Vec<_> = map.surface.iter().map(|block| (block.name.as_str(), block.columns)).collect();
    assert_eq!(names, [("game:water", 20 * 32), ("game:grass_block", 10 * 32), ("game:sand", 2 * 32)]);
}

#[test]
fn a_box_cuts_the_map_and_shows_what_is_below_its_top() {
    let (world, dimension) = island(1, |_, _| 70);
    let area = BlockBox::new(BlockPos::new(2, 0, 3), BlockPos::new(5, 64, 4));
    let options = MapOptions { area: area.into(), ..bare(dimension) };
    let map = render(&world, &options, |_| {}).expect("something is stored");
    assert_eq!((map.min, map.max), ([2, 3], [5, 4]));
    assert_eq!((map.image.width_px(), map.image.height_px()), (4 * map.zoom_px, 2 * map.zoom_px));
    assert_eq!(map.surface[0].columns, 8);
    let nothing = BlockBox::new(BlockPos::new(500, 0, 0), BlockPos::new(600, 9, 9));
    let nothing = MapOptions { area: nothing.into(), ..bare(dimension) };
    assert!(matches!(render(&world, &nothing, |_| {}), Err(MapError::Empty)));
}

#[test]
fn several_boxes_are_drawn_as_their_union() {
    let (world, dimension) = island(1, |_, _| 70);
    let part = |x0, z0, x1, z1, top| BlockBox::new(BlockPos::new(x0, 0, z0), BlockPos::new(x1, top, z1));
    let drawn = |boxes: &[BlockBox]| {
        let options = MapOptions { area: BlockArea::union(boxes.iter().copied()), ..bare(dimension) };
        render(&world, &options, |_| {}).expect("something is stored")
    };
    let parts = [part(2, 3, 5, 4, 100), part(4, 3, 9, 3, 100), part(12, 8, 12, 8, 64)];
    let map = drawn(&parts);
    assert_eq!((map.min, map.max), ([2, 3], [12, 8]));
    let columns = map.surface.iter().map(|block| block.columns).sum::<u64>();
    assert_eq!(columns, 8 + 4 + 1, "a column of two boxes counts once");
    let other = drawn(&[parts[2], parts[1], parts[0], parts[1]]);
    assert_eq!((map.image, map.surface), (other.image, other.surface));
    let none = MapOptions { area: BlockArea::union([]), ..bare(dimension) };
    assert!(matches!(render(&world, &none, |_| {}), Err(MapError::Empty)), "no box is not everywhere");
}

#[test]
fn many_blocks_share_a_pixel_and_far_worlds_shrink() {
    let (world, dimension) = island(2, |x, z| 66 + (x + z) % 3);
    let options = MapOptions { scale_blocks: Some(8), ..bare(dimension) };
    let map = render(&world, &options, |_| {}).expect("something is stored");
    assert_eq!((map.image.width_px(), map.image.height_px()), (4, 4));
    for scale in [0, 3, 1 << 17] {
        let options = MapOptions { scale_blocks: Some(scale), ..bare(dimension) };
        assert!(matches!(render(&world, &options, |_| {}), Err(MapError::Scale { found }) if found == scale));
    }

    world
        .transaction(|tx| {
            let schema = tx.catalog().current_schema();
            let far = ChunkAt::new(dimension, ChunkPos::constant(-1_000_000, 4, 900));
            tx.save(far, Chunk::filled(tx.catalog().block_id("game:sand").expect("registered"), &schema)?);
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .expect("the chunk is sound");
    let refused = render(&world, &bare(dimension), |_| {}).map(drop);
    let refused = refused.expect_err("a picture of 16 million pixels from west to east").to_string();
    assert_eq!(
        refused,
        "at 1 blocks per pixel the map is 16000032×14416 pixels; draw a smaller box, or more blocks per pixel"
    );
    let options = MapOptions { legend: false, ..MapOptions::of(dimension) };
    let map = render(&world, &options, |_| {}).expect("something is stored");
    assert_eq!(map.scale_blocks, 4096);
    assert!(u64::from(map.image.width_px()) <= cg_map::MAX_SIDE_PX);
    let seen = map.surface.iter().map(|block| block.columns).sum::<u64>();
    assert_eq!(seen, 32 * 32 + 256, "every column counts");
}

#[test]
fn the_command_writes_a_new_file_and_never_over_one() {
    let sample = Sample::new();
    let file = sample.beside("map.png");
    let said = sample.cg("map", &["--out", text(&file), "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let found = said.json();
    assert_eq!((&found["min"], &found["max"]), (&json!([0, -16]), &json!([15, -1])));
    assert_eq!(found["surface"][0], json!({ "name": "game:grass_block", "columns": 254 }));
    assert_eq!(size_of_png(&file), (found["width_px"].as_u64(), found["height_px"].as_u64()));
    let written = std::fs::read(&file).expect("it is there");

    let said = sample.cg("map", &["--out", text(&file)]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert_eq!(said.err, format!("cg: {} is there already; delete it or choose another name\n", text(&file)));
    assert!(std::fs::read(&file).expect("it is there") == written);
}

#[test]
fn tiers_have_their_colours_and_a_legend() {
    let world = World::builder().in_memory().expect("no pack can disagree");
    let dimension = world.registry().register_dimension("game:overworld").expect("a name");
    let [air, grass, stone] =
        world.registry().register_blocks([":air", "game:grass_block", "game:stone"]).expect("names");
    // Three plains, each in a cube of its own; below each is a chunk that is not seen.
    let save = |x: i64, block: BlockId| {
        let saved = world.transaction(|tx| {
            let schema = tx.catalog().current_schema();
            for y in 0..2 {
                let at = ChunkAt::new(dimension, ChunkPos::constant(x, y, 0));
                tx.save(at, Chunk::filled(block, &schema)?);
            }
            tx.save(ChunkAt::new(dimension, ChunkPos::constant(x, 2, 0)), Chunk::filled(air, &schema)?);
            Ok::<_, Box<dyn std::error::Error>>(())
        });
        saved.expect("the chunks are sound");
    };
    let minute = 60 * GameTick::PER_SECOND;
    for x in [0, 4, 8] {
        save(x, grass);
    }
    world.tiers().demote_all(24 * 60 * minute, |_| {}).expect("settles");
    save(4, stone);
    let id = EntityId::new(uuid::Uuid::from_u128(1));
    let far_but_not_too_far = PlayerAt { id, dimension, block: BlockPos::new(400, 0, 0) };
    for now in [1, 5 * minute + 2, 5 * minute + 3, 5 * minute + 4] {
        world.tick(GameTick::new(now), &[far_but_not_too_far], Duration::from_secs(60)).expect("ticks");
    }
    save(8, stone);

    let options = MapOptions { colours: Colours::Tiers, ..bare(dimension) };
    let map = render(&world, &options, |_| {}).expect("something is stored");
    let columns: Vec<_> = map.tiers.iter().map(|seen| (seen.tier, seen.columns)).collect();
    assert_eq!(columns, [(Tier::L0, 256), (Tier::L1, 256), (Tier::L2, 256)]);
    let zoom = map.zoom_px;
    let pixel = |x: u32| map.image.get(x * zoom, 8 * zoom);
    let [hot, warm, cold] = [0, 1, 2].map(|tier: usize| Some(map.tiers[tier].rgb));
    assert_eq!([pixel(1), pixel(15)], [cold; 2], "what was left alone");
    assert_eq!([pixel(64), pixel(79)], [warm; 2], "what was saved a while ago");
    assert_eq!([pixel(128), pixel(143)], [hot; 2], "what was just saved");
    assert!(![hot, warm, cold].contains(&pixel(40)), "nothing is stored there");

    let blocks = render(&world, &bare(dimension), |_| {}).expect("something is stored");
    assert!(blocks.tiers.is_empty() && blocks.image != map.image, "they are drawn when asked for");

    let with_legend = render(&world, &MapOptions { legend: true, ..options }, |_| {}).expect("as before");
    let below = map.image.height_px()..with_legend.image.height_px();
    for rgb in [hot, warm, cold] {
        let of_colour = |y: u32| (0..640).filter(|x| with_legend.image.get(*x, y) == rgb).count();
        assert_eq!(below.clone().map(of_colour).sum::<usize>(), 12 * 12, "one swatch");
    }
}

#[test]
fn the_command_says_how_much_of_each_tier_is_seen() {
    let sample = Sample::new();
    sample.cool_ground(ClusterTier::L1);
    let said = sample.cg("map", &["--tiers", "--out", text(&sample.beside("map.png")), "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let (drawn, seen) = (said.json()["surface"].take(), said.json()["tiers"].take());
    let drawn: u64 =
        drawn.as_array().expect("a list").iter().filter_map(|block| block["columns"].as_u64()).sum();
    assert_eq!(seen, json!({ "l0": drawn - 256, "l1": 256, "l2": 0 }));
    let said = sample.cg("map", &["--tiers", "--out", text(&sample.beside("again.png"))]);
    assert!(said.out.contains("256 warm (L1), 0 cold (L2)"), "{said:?}");
}

#[test]
fn a_chunk_that_cannot_be_read_is_reported() {
    let sample = Sample::new();
    sample.spoil_ground();
    let said = sample.cg("map", &["--out", text(&sample.beside("map.png")), "--json"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.json()["unreadable"].as_array().map(Vec::len), Some(1));
    assert_eq!(said.json()["unreadable_columns"], 256);
}

#[test]
fn ground_that_a_damaged_cluster_may_hold_is_marked_as_unreadable() {
    let sample = Sample::new();
    let (overworld, top) = (Dimension::new(0), ChunkPos::constant(40, 16, 40));
    let world = sample.open();
    world
        .transaction(|tx| {
            let (catalog, below) = (tx.catalog().clone(), ChunkPos::constant(40, 15, 40));
            let schema = catalog.current_schema();
            for (pos, name) in [(top, "game:grass_block"), (below, "game:stone")] {
                let block = catalog.block_id(name).expect("registered");
                tx.save(ChunkAt::new(overworld, pos), Chunk::filled(block, &schema)?);
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .expect("the chunks are sound");
    world.tiers().demote_all(24 * 60 * 60 * GameTick::PER_SECOND, |_| {}).expect("settles");
    world.close().expect("the disk takes it");
    drop(world);
    let row = key::cluster(overworld, top.cluster(ClusterTier::L2));
    sample.spoil(Space::ClusterL2, &row, b"not a cluster");

    let file = sample.beside("map.png");
    let area = ["--box", "640", "0", "640", "655", "300", "655"];
    let said = sample.cg("map", &[&["--out", text(&file), "--json"], &area[..]].concat());
    let found = said.json();
    assert_eq!((said.code, &found["surface"], &found["unreadable_columns"]), (1, &json!([]), &json!(256)));
    let unreadable = found["unreadable"].as_array().expect("a list");
    assert_eq!(unreadable.len(), 1);
    let named = unreadable[0].as_str().expect("words");
    assert!(named.starts_with("L2 cluster 2, 1, 2 is damaged (ClusterL2 row "), "{named}");

    let world = sample.open();
    let area = BlockBox::new(BlockPos::new(640, 0, 640), BlockPos::new(655, 300, 655));
    let map = render(&world, &MapOptions { area: area.into(), ..bare(overworld) }, |_| {}).expect("drawn");
    assert_eq!(map.image.get(0, 0), Some([232, 0, 168]));
}

fn size_of_png(file: &Path) -> (Option<u64>, Option<u64>) {
    let bytes = std::fs::read(file).expect("it is there");
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    // The width and the height of the header chunk are the only big-endian numbers of these tests.
    let number = |at: usize| bytes[at..at + 4].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    (Some(number(16)), Some(number(20)))
}
