//! A segmented world serves by segments: each is a world of its own, with caches of its own.

use cg_layers::{SegmentOptions, SegmentedWorld};
use cg_registry::{BlockOffer, Name, Registration};
use cg_store::prelude::*;
use cg_store::view::Area;
use cg_sync::{SyncClient, SyncServer, SyncServerLimits};

/// Brings a box of a cache up to date with a segment. Returns how many chunks came.
fn catch_up(segment: &World, cache: &SyncClient, area: ChunkBox) -> u64 {
    let server = SyncServer::new(segment.clone(), SyncServerLimits::default());
    let overworld = |world: &World| world.catalog().dimension("game:overworld").expect("is registered");
    let request = cache.request_area(overworld(cache.world()), area).expect("asks");
    let reply = server.answer(&request).expect("answers");
    let listed = cache.apply(&request, &reply).expect("applies");
    assert!(!listed.is_restart, "it is the segment that the cache knows");
    let mut came = 0;
    while let Some(request) = cache.request_stale(100).expect("asks") {
        came += cache.apply(&request, &server.answer(&request).expect("answers")).expect("applies").updated;
    }
    let [own, theirs] = [cache.world(), segment]
        .map(|world| world.content_hash(Area::Box(overworld(world), area)).expect("hashes"));
    assert_eq!(own, theirs);
    came
}

fn name(text: &str) -> Name {
    Name::new(text).expect("is a name")
}

fn client() -> SyncClient {
    let world = World::builder().in_memory().expect("is made");
    world.registry().register_blocks(["client:own", "game:stone"]).expect("registers");
    world.registry().register_dimension("game:overworld").expect("registers");
    SyncClient::open(world).expect("opens")
}

#[test]
fn each_segment_serves_its_own_caches_whenever_it_is_open() {
    let dir = tempfile::tempdir().expect("a directory");
    // One is closed for the other.
    let options = SegmentOptions { side_chunks: 16, max_open: 1, ..SegmentOptions::default() };
    let world = SegmentedWorld::create(dir.path(), &[], &options).expect("created");
    let names = Registration {
        blocks: ["game:stone", "game:glass"].map(|block| BlockOffer::new(name(block))).into(),
        dimensions: vec![name("game:overworld")],
        ..Registration::default()
    };
    let catalog = world.register(&names).expect("registers");
    let overworld = catalog.dimension("game:overworld").expect("is registered");
    let at = |x| ChunkAt::new(overworld, ChunkPos::new(x, 0, 0).expect("inside the world"));
    let save = |x, block| {
        let block = catalog.block_id(block).expect("is registered");
        let chunk = Chunk::filled(block, &catalog.current_schema()).expect("is registered");
        let saved = world.transaction(at(x), |tx| {
            tx.save(at(x), chunk);
            Ok::<_, Error>(())
        });
        saved.expect("commits");
    };
    // On both sides of a border, inside the area of the caches.
    let [west, east] = [-1, 0].map(|x| (world.segment_of(at(x)), client()));
    let area = ChunkBox::new(at(-6).pos, at(5).pos);
    let came = |(segment, cache): &(_, SyncClient)| {
        world.segments().with(*segment, |world| Ok(catch_up(world, cache, area))).expect("is open")
    };
    (-3..4).for_each(|x| save(x, "game:stone"));
    assert_eq!([came(&west), came(&east)], [3, 4]);
    save(-2, "game:glass");
    assert_eq!([came(&west), came(&east)], [1, 0]);
    save(2, "game:glass");
    let deleted = world.transaction(at(1), |tx| {
        tx.delete(at(1));
        Ok::<_, Error>(())
    });
    deleted.expect("commits");
    assert_eq!([came(&west), came(&east)], [0, 1]);
    assert_eq!(world.segments().open_count(), 1, "each was closed for the other");
    let there = |(_, cache): &(_, SyncClient)| {
        (-6..6).filter(|x| cache.world().load(at(*x)).expect("reads").is_some()).collect::<Vec<_>>()
    };
    assert_eq!([there(&west), there(&east)], [vec![-3, -2, -1], vec![0, 2, 3]]);
}
