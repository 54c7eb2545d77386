//! Servers of caches whose worlds are in a database: the tests of cg-sync over that engine, readers as servers, and caches in
//! a database.

#[path = "../../../cg-sync/tests/it/sync/chunks.rs"]
mod chunks;
#[path = "../../../cg-sync/tests/it/sync/cost.rs"]
mod cost;
#[path = "../../../cg-sync/tests/it/sync/left_out.rs"]
mod left_out;
#[path = "../../../cg-sync/tests/it/sync/order.rs"]
mod order;
#[path = "../../../cg-sync/tests/it/sync/overtaken.rs"]
mod overtaken;
#[path = "../../../cg-sync/tests/it/sync/support.rs"]
mod support;
#[path = "../../../cg-sync/tests/it/sync/values.rs"]
mod values;
#[path = "../../../cg-sync/tests/it/sync/waiting.rs"]
mod waiting;

use cg_format::ClusterTier;
use cg_postgres::{Options, PostgresEngine};
use cg_store::prelude::*;
use cg_sync::{
    SyncClient, SyncError, SyncLimits, SyncOutcome, SyncReply, SyncRequest, SyncServer, SyncServerLimits,
};
use support::*;
use values::{all, follow, is_equal, put, server_of};

use crate::fixture::*;
use crate::postgres::TestWorld;

/// Runs the tests of cg-sync over a world in a database, where those run them over one in memory and one on disk.
macro_rules! over_a_database {
    ($($name:ident)*) => {
        mod in_a_database {
            $(#[test] fn $name() { $crate::postgres_sync::over(super::$name); })*
        }
    };
}
use over_a_database as over_both_engines;

fn over(test: fn(&World)) {
    let Some(home) = crate::postgres::world() else { return };
    let world = create(&home);
    test(&world);
    world.close().expect("closes");
}

fn create(home: &TestWorld) -> World {
    let engine = PostgresEngine::create(&home.address, &Options::default()).expect("the server answers");
    World::builder().options(&options()).over(engine).expect("begins")
}

fn open(home: &TestWorld) -> World {
    let engine = PostgresEngine::open(&home.address, &Options::default()).expect("it is free");
    World::builder().options(&options()).over(engine).expect("opens")
}

/// Chunks and values of a turn.
fn play(world: &World, ids: &Ids, turn: u8) {
    save(
        world,
        [
            (ids.at(turn.into(), 0, 0), machine(world, ids, turn)),
            (ids.at(1, 0, 0), marked(world, ids, turn.into())),
        ],
    );
    for kind in cg_sync::ValueKind::ALL {
        put(world, ids, kind, turn % 3, Some(turn));
        put(world, ids, kind, turn % 2, None);
    }
}

/// Brings a cache up to date in all. Returns the chunks that came, and the values that came and went.
#[track_caller]
fn bring(server: &World, cache: &SyncClient) -> [u64; 3] {
    let (listed, came) = catch_up(server, cache);
    assert!(!listed.is_restart);
    let [updated, gone, _] =
        follow(&SyncServer::new(server.clone(), SyncServerLimits::default()), cache, &all(), u64::MAX);
    is_same(server, cache);
    is_equal(server, cache);
    [came, updated, gone]
}

#[test]
fn a_cache_goes_on_with_a_server_that_was_closed_and_opened() {
    let Some(home) = crate::postgres::world() else { return };
    let (world, cache) = (create(&home), client());
    let ids = Ids::register(&world);
    server_of(&world);
    play(&world, &ids, 2);
    let [came, updated, _] = bring(&world, &cache);
    assert_eq!((came, updated), (2, 4));
    world.close().expect("closes");
    drop(world);
    let world = open(&home);
    assert_eq!(bring(&world, &cache), [0; 3], "nothing comes twice");
    play(&world, &ids, 3);
    assert_eq!(bring(&world, &cache)[0], 2);
    world.close().expect("closes");
}

#[test]
fn a_cache_may_be_in_a_database_too() {
    let (Some(home), Some(own)) = (crate::postgres::world(), crate::postgres::world()) else { return };
    let (server, world) = (create(&home), create(&own));
    let ids = Ids::register(&server);
    world.registry().register_blocks(["client:own"]).expect("registers");
    world.registry().register_dimension("game:overworld").expect("registers");
    server_of(&server);
    let cache = SyncClient::open(world).expect("opens");
    for turn in 0..6 {
        play(&server, &ids, turn);
        bring(&server, &cache);
    }
    cache.world().close().expect("closes");
    drop(cache);
    let cache = SyncClient::open(open(&own)).expect("opens");
    assert_eq!(bring(&server, &cache), [0; 3], "nothing comes twice");
    assert_sound(cache.world());
    for world in [cache.world(), &server] {
        world.close().expect("closes");
    }
}

#[test]
fn a_reader_answers_what_it_shows() {
    let Some(home) = crate::postgres::world() else { return };
    let (writer, cache) = (create(&home), client());
    let ids = Ids::register(&writer);
    server_of(&writer);
    play(&writer, &ids, 1);
    let engine = PostgresEngine::open_read_only(&home.address, &Options::default()).expect("is there");
    let reader = World::builder().options(&options()).open_read_only_over(engine).expect("opens");
    bring(&reader, &cache);
    for turn in 2..6 {
        play(&writer, &ids, turn);
        assert_eq!(bring(&reader, &cache), [0; 3], "until it is refreshed");
        reader.refresh().expect("refreshes");
        assert_eq!(bring(&reader, &cache)[0], 2);
        // The two are one server.
        assert_eq!(bring(&writer, &cache), [0; 3]);
    }
    reader.close().expect("closes");
    writer.close().expect("closes");
}
