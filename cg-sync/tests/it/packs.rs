//! Caches whose packs differ from the server's: other layouts of components.

use cg_registry::{KeptComponents, STALE};
use cg_store::prelude::*;
use cg_sync::{SyncClient, SyncOutcome, SyncServer, SyncServerLimits};

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
