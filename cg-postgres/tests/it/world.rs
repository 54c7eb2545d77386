//! Worlds over the engine.

use cg_engine::MemEngine;
use cg_format::{ChunkPos, LocalPos};
use cg_store::prelude::*;
use cg_store::view::Area;

use crate::database::database;

fn registration() -> Registration {
    let name = |text| Name::new(text).expect("a name");
    Registration {
        blocks: vec![BlockOffer::new(name(":air")), BlockOffer::new(name("game:stone"))],
        dimensions: vec![name("game:overworld")],
        ..Registration::default()
    }
}

/// Saves some chunks. Returns their places.
fn save(world: &World) -> Vec<(ChunkAt, u16)> {
    world.registry().register(&registration()).expect("registers");
    let catalog = world.catalog();
    let (air, stone) =
        (catalog.block_id(":air").expect("a block"), catalog.block_id("game:stone").expect("a block"));
    let (dimension, schema) =
        (catalog.dimension("game:overworld").expect("a dimension"), catalog.current_schema());
    let places: Vec<_> = (0..40_u16)
        .map(|n| {
            let pos = ChunkPos::new(i64::from(n) - 20, 0, i64::from(n % 3)).expect("inside the world");
            (ChunkAt::new(dimension, pos), n * 7)
        })
        .collect();
    for part in places.chunks(8) {
        let saved = world.transaction(|tx| {
            for (at, cell) in part {
                let mut chunk = Chunk::filled(air, &schema).expect("is registered");
                let cell = LocalPos::from_index(*cell).expect("below 4096");
                chunk.set_block(cell, stone, &schema).expect("is registered");
                tx.save(*at, chunk);
            }
            Ok::<_, Error>(())
        });
        saved.expect("saves");
    }
    places
}

#[test]
fn a_world_has_the_hash_of_the_same_world_in_memory() {
    let Some(database) = database() else { return };
    let test = database.world();
    let build = || World::builder();
    let in_memory = build().over(MemEngine::new()).expect("begins");
    let places = save(&in_memory);
    let expected = in_memory.content_hash(Area::World).expect("hashes");
    let world = build().over(test.create()).expect("begins");
    assert_eq!(save(&world), places);
    assert_eq!(world.content_hash(Area::World).expect("hashes"), expected);
    world.close().expect("closes");
    let world = build().over(test.open().expect("opens")).expect("begins");
    assert_eq!(world.content_hash(Area::World).expect("hashes"), expected);
    let stone = world.catalog().block_id("game:stone").expect("a block");
    for (at, cell) in places {
        let chunk = world.load(at).expect("loads").expect("is there");
        assert_eq!(chunk.block(LocalPos::from_index(cell).expect("below 4096")), stone, "{at}");
    }
    world.close().expect("closes");
}

#[test]
fn a_follower_shows_new_names_edits_and_chunks_at_its_next_refresh() {
    let Some(database) = database() else { return };
    let test = database.world();
    let options = WorldOptions { deltas: true, ..WorldOptions::default() };
    let build = || World::builder().options(&options);
    let writer = build().over(test.create()).expect("begins");
    let places = save(&writer);
    let follower = build().open_read_only_over(test.read()).expect("begins");
    let hash = |world: &World| world.content_hash(Area::World).expect("hashes");
    let loaded = |world: &World| -> Vec<_> {
        places.iter().map(|(at, _)| world.load(*at).expect("loads").expect("is there")).collect()
    };
    assert_eq!((hash(&follower), loaded(&follower)), (hash(&writer), loaded(&writer)));
    let before = (hash(&follower), follower.last_commit());

    let [glass] = writer.registry().register_blocks(["game:glass"]).expect("registers");
    let (at, _) = places[3];
    let set = writer.transaction(|tx| tx.set_block(at.dimension, at.pos.min_block(), glass));
    set.expect("sets");
    writer.tiers().demote_all(u64::MAX / 2, |_| {}).expect("moves");
    let set =
        writer.transaction(|tx| tx.set_block(at.dimension, at.pos.block(LocalPos::new(1, 0, 0)), glass));
    set.expect("sets");

    assert_eq!((hash(&follower), follower.last_commit()), before, "until the refresh");
    let shown = follower.read_view(|view| {
        follower.refresh()?;
        Ok::<_, Error>(view.commit())
    });
    assert_eq!(shown.expect("refreshes"), before.1, "an older view stays");
    assert_eq!(follower.last_commit(), writer.last_commit());
    assert_eq!((hash(&follower), loaded(&follower)), (hash(&writer), loaded(&writer)));
    assert_eq!(follower.refresh().expect("refreshes"), writer.last_commit());
    follower.close().expect("closes");
    writer.close().expect("closes");
}
