//! Servers and clients of the tests, and what they say to each other.

use super::*;

/// The cache of a server in a world of its own, whose ids are others.
pub(super) fn client() -> SyncClient {
    let world = in_memory();
    world.registry().register_blocks(["client:own", "game:machine2", "game:stone"]).expect("registers");
    world.registry().register_dimension("client:lobby").expect("registers");
    world.registry().register_dimension("game:overworld").expect("registers");
    SyncClient::open(world).expect("opens")
}

pub(super) fn here(cache: &SyncClient, pos: [i64; 3]) -> ChunkAt {
    let overworld = cache.world().catalog().dimension("game:overworld").expect("is registered");
    ChunkAt::new(overworld, ChunkPos::new(pos[0], pos[1], pos[2]).expect("inside the world"))
}

/// The reply of a server that has a world.
pub(crate) fn answer(
    world: &World,
    request: &SyncRequest,
    limits: &SyncServerLimits,
) -> Result<SyncReply, SyncError> {
    SyncServer::new(world.clone(), *limits).answer(request)
}

/// A message there and a message back, as bytes.
#[track_caller]
pub(super) fn exchange(
    server: &World,
    cache: &SyncClient,
    request: &SyncRequest,
    limits: &SyncServerLimits,
) -> SyncOutcome {
    let limit = SyncLimits::default();
    let asked = SyncRequest::decode(&request.encode(), limit).expect("decodes");
    assert_eq!(&asked, request);
    let reply = answer(server, &asked, limits).expect("answers");
    let reply = SyncReply::decode(&reply.encode(), limit).expect("decodes");
    cache.apply(request, &reply).expect("applies")
}

#[track_caller]
pub(super) fn ask(server: &World, cache: &SyncClient, at: &[ChunkAt]) -> SyncOutcome {
    exchange(server, cache, &cache.request(at).expect("asks"), &SyncServerLimits::default())
}

#[track_caller]
pub(super) fn delete(world: &World, at: ChunkAt) {
    let deleted = world.transaction(|tx| {
        tx.delete(at);
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
}

pub(super) fn area() -> ChunkBox {
    let corner = |c| ChunkPos::new(c, c, c).expect("inside the world");
    ChunkBox::new(corner(-6), corner(5))
}

/// Brings an area up to date; returns what its listing said, and how many chunks came.
#[track_caller]
pub(super) fn catch_up(server: &World, cache: &SyncClient) -> (SyncOutcome, u64) {
    let overworld = cache.world().catalog().dimension("game:overworld").expect("is registered");
    let request = cache.request_area(overworld, area()).expect("asks");
    let listed = exchange(server, cache, &request, &SyncServerLimits::default());
    let mut came = 0;
    while let Some(request) = cache.request_stale(100).expect("asks") {
        came += exchange(server, cache, &request, &SyncServerLimits::default()).updated;
    }
    (listed, came)
}

#[track_caller]
pub(super) fn is_same(server: &World, cache: &SyncClient) {
    let hash = |world: &World| {
        world
            .content_hash(cg_store::view::Area::Box(
                world.catalog().dimension("game:overworld").expect("there"),
                area(),
            ))
            .expect("hashes")
    };
    let own = cache.world();
    let own = own
        .content_hash(cg_store::view::Area::Box(
            own.catalog().dimension("game:overworld").expect("there"),
            area(),
        ))
        .expect("hashes");
    assert_eq!(own, hash(server));
}

/// A machine with components and light, among stone.
pub(super) fn machine(world: &World, ids: &Ids, power: u8) -> Chunk {
    let schema = world.catalog().current_schema();
    let mut chunk = filled(world, ids.stone);
    let cell = LocalPos::new(1, 2, 3);
    chunk.set_block(cell, ids.machine, &schema).expect("is registered");
    let at = CellLayer { cell, layer: 0 };
    chunk.set_component(at, ids.power, &[power, 0, 0, 1]).expect("fits");
    chunk.set_component(at, ids.items, b"pickaxe").expect("fits");
    chunk.set_side(ids.light, vec![power; 7]);
    chunk
}
