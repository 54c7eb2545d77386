//! Caches whose packs differ from the server's: other layouts of components.

use cg_registry::{KeptComponents, STALE};
use cg_store::prelude::*;
use cg_sync::{SyncClient, SyncError, SyncOutcome, SyncServer, SyncServerLimits};

const BASE: &str = r#"{"pack":"base","version":"1","namespaces":["","g"],
    "blocks":[{"name":":air"},{"name":"g:stone"}],"dimensions":["g:over"]}"#;

fn world(pack: &str) -> World {
    let packs = [BASE, pack].map(|json| PackManifest::from_json(json).expect("sound"));
    World::builder().packs(&packs).in_memory().expect("the packs are accepted")
}

fn here(world: &World) -> ChunkAt {
    let dimension = world.catalog().dimension("g:over").expect("offered");
    ChunkAt::new(dimension, ChunkPos::new(0, 0, 0).expect("inside"))
}

/// Asks a server about the chunk.
fn sync(server: &World, cache: &World) -> SyncOutcome {
    let client = SyncClient::open(cache.clone()).expect("opens");
    let request = client.request(&[here(cache)]).expect("asks");
    let server = SyncServer::new(server.clone(), SyncServerLimits::default());
    client.apply(&request, &server.answer(&request).expect("answers")).expect("applies")
}

fn boilers(tank: &str) -> String {
    format!(
        r#"{{"pack":"mod","version":"1","namespaces":["mod"],"components":[{{"name":"mod:tank",{tank}}}],
            "blocks":[{{"name":"mod:boiler","components":["mod:tank"]}}]}}"#
    )
}

const V1: &str = r#""size":8,"fields":[{"name":"level","width_bytes":4},{"name":"max","width_bytes":4}]"#;
const V2: &str = r#""size":13,"fields":[{"name":"kind","width_bytes":1,"default":"07"},
    {"name":"level","width_bytes":8},{"name":"max","width_bytes":4}]"#;

#[test]
fn components_of_another_layout_are_converted_by_field_names() {
    let (cell, full) = (CellLayer::base(LocalPos::new(2, 2, 3)), [42, 0, 0, 0, 9, 0, 0, 0]);
    let server = world(&boilers(V1));
    let [boiler] = ["mod:boiler"].map(|name| server.catalog().block_id(name).expect("offered"));
    let tank = server.catalog().component_id("mod:tank").expect("offered");
    let made = server.transaction(|tx| {
        let chunk = tx.new_chunk(boiler)?;
        tx.save(here(&server), chunk);
        tx.set_component(here(&server), cell, tank, &full).map(drop)
    });
    made.expect("is saved");
    let held = |cache: &World| {
        let tank = cache.catalog().component_id("mod:tank").expect("offered");
        let chunk = cache.load(here(cache)).expect("reads").expect("is there");
        (chunk.component(cell, tank).map(<[u8]>::to_vec), chunk.side(STALE).map(<[u8]>::to_vec))
    };

    let newer = world(&boilers(V2));
    let outcome = sync(&server, &newer);
    assert_eq!((outcome.updated, outcome.components_left.len()), (1, 0));
    assert_eq!(held(&newer), (Some(vec![7, 42, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0]), None));

    // What the layout has no place for is kept with its own bytes.
    let smaller = world(&boilers(r#""size":4,"fields":[{"name":"level","width_bytes":4}]"#));
    let outcome = sync(&server, &smaller);
    assert_eq!(outcome.components_left.into_iter().collect::<Vec<_>>(), [("mod:tank".to_owned(), 4096)]);
    let (level, stale) = held(&smaller);
    assert_eq!(level, Some(vec![42, 0, 0, 0]));
    let stale = KeptComponents::decode(&stale.expect("is kept"), None).expect("sound");
    let kept = stale.iter().find(|(owner, _)| owner.at == cell).map(|(_, bytes)| bytes.to_vec());
    assert_eq!((kept, stale.iter().count()), (Some(full.to_vec()), 4096));
}

const V1_ORE: &str = r#"{"pack":"mod","version":"1","namespaces":["mod"],"components":[{"name":"mod:inv","size":"variable"}],
    "blocks":[{"name":"mod:ore","components":["mod:inv"]}],"dimensions":["mod:below"]}"#;
const V2_ORE: &str = r#"{"pack":"mod","version":"2","namespaces":["mod"],"components":[{"name":"mod:bag","size":"variable"}],
    "blocks":[{"name":"mod:rich_ore","components":["mod:bag"]}],"dimensions":["mod:deep"],
    "renamed":[{"list":"blocks","old":"mod:ore","new":"mod:rich_ore"},{"list":"components","old":"mod:inv","new":"mod:bag"},
        {"list":"dimensions","old":"mod:below","new":"mod:deep"}]}"#;

fn packs(pack: &str) -> [PackManifest; 2] {
    [BASE, pack].map(|json| PackManifest::from_json(json).expect("sound"))
}

/// The chunk of the renamed dimension, by either name.
fn below(world: &World) -> ChunkAt {
    let catalog = world.catalog();
    let dimension = catalog.dimension("mod:below").or(catalog.dimension("mod:deep")).expect("offered");
    ChunkAt::new(dimension, ChunkPos::new(0, 0, 0).expect("inside"))
}

#[test]
fn a_renamed_entry_is_the_same_on_both_sides() {
    let cell = CellLayer::base(LocalPos::new(2, 2, 3));
    let dir = tempfile::tempdir().expect("a folder");
    let (path, cached) = (dir.path().join("server"), dir.path().join("cache"));
    let server = World::builder().packs(&packs(V1_ORE)).create(&path).expect("the packs are accepted");
    let catalog = server.catalog();
    let ore = catalog.block_id("mod:ore").expect("offered");
    let inv = catalog.component_id("mod:inv").expect("offered");
    let made = server.transaction(|tx| {
        let chunk = tx.new_chunk(ore)?;
        tx.save(below(&server), chunk);
        tx.set_component(below(&server), cell, inv, b"gems").map(drop)
    });
    made.expect("is saved");
    server.close().expect("closes");
    drop(server);
    let server = World::builder().packs(&packs(V2_ORE)).open(&path).expect("the packs are accepted");

    let sync = |cache: &World| {
        let client = SyncClient::open(cache.clone()).expect("opens");
        let request = client.request(&[below(cache)]).expect("asks");
        let server = SyncServer::new(server.clone(), SyncServerLimits::default());
        client.apply(&request, &server.answer(&request).expect("answers")).expect("applies")
    };
    let check = |cache: &World, block: &str, component: &str| {
        let outcome = sync(cache);
        assert_eq!((outcome.updated, outcome.gone, outcome.components_left.len()), (1, 0, 0));
        let (catalog, chunk) = (cache.catalog(), cache.load(below(cache)).expect("reads").expect("is there"));
        assert_eq!(Some(chunk.block(cell.cell)), catalog.block_id(block));
        let component = catalog.component_id(component).expect("offered");
        assert_eq!(chunk.component(cell, component), Some(&b"gems"[..]));
    };
    // A new cache with the new pack, which opens again.
    let cache = World::builder().packs(&packs(V2_ORE)).create(&cached).expect("the packs are accepted");
    check(&cache, "mod:rich_ore", "mod:bag");
    let blocks = cache.catalog().list(cg_registry::ListKind::Blocks).len();
    assert_eq!(blocks, 3, "no block was registered twice");
    cache.close().expect("closes");
    drop(cache);
    World::builder().packs(&packs(V2_ORE)).open(&cached).expect("opens").close().expect("closes");
    // One that has the old pack still.
    let old = World::builder().packs(&packs(V1_ORE)).in_memory().expect("the packs are accepted");
    check(&old, "mod:ore", "mod:inv");
}

#[test]
fn names_of_before_a_change_of_packs_do_not_displace_those_after_it() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("server");
    let server = World::builder().packs(&packs(V1_ORE)).create(&path).expect("the packs are accepted");
    let ore = server.catalog().block_id("mod:ore").expect("offered");
    let save = |server: &World, turn: u8| {
        let catalog = server.catalog();
        let bag = ["mod:inv", "mod:bag"].into_iter().find_map(|name| catalog.component_id(name));
        let saved = server.transaction(|tx| {
            let mut chunk = tx.new_chunk(ore)?;
            let cell = CellLayer::base(LocalPos::new(1, 1, 1));
            chunk.set_component(cell, bag.expect("offered"), &[turn]).expect("fits");
            tx.save(below(server), chunk);
            Ok::<_, Error>(())
        });
        saved.expect("is saved");
    };
    save(&server, 1);
    let cache = World::builder().packs(&packs(V2_ORE)).in_memory().expect("the packs are accepted");
    let client = SyncClient::open(cache.clone()).expect("opens");
    let exchange = |server: &World| {
        let request = client.request(&[below(&cache)]).expect("asks");
        let reply = SyncServer::new(server.clone(), SyncServerLimits::default()).answer(&request);
        (request, reply.expect("answers"))
    };
    let first = exchange(&server);
    assert_eq!(client.apply(&first.0, &first.1).expect("applies").updated, 1);
    save(&server, 2);
    let overtaken = exchange(&server);
    server.close().expect("closes");
    drop(server);
    let server = World::builder().packs(&packs(V2_ORE)).open(&path).expect("the packs are accepted");
    save(&server, 3);
    let second = exchange(&server);
    assert_eq!(client.apply(&second.0, &second.1).expect("applies").updated, 1);
    save(&server, 4);
    let third = exchange(&server);
    // All names of before: of use for its own chunks alone.
    assert_eq!(client.apply(&first.0, &first.1).expect("applies").updated, 0);
    // Some of before, without those that they follow.
    let error = client.apply(&overtaken.0, &overtaken.1).expect_err("has too few names");
    assert!(matches!(error, SyncError::Outdated), "{error}");
    assert_eq!(client.apply(&third.0, &third.1).expect("applies").updated, 1);
    let again = SyncClient::open(cache.clone()).expect("opens");
    let request = again.request(&[below(&cache)]).expect("asks");
    let reply = SyncServer::new(server.clone(), SyncServerLimits::default()).answer(&request);
    assert_eq!(again.apply(&request, &reply.expect("answers")).expect("applies").up_to_date, 1);
}
