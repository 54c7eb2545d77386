//! A world as the cache of another: what is asked, what is answered, what is kept.

mod chunks;
mod cost;
mod hostile;
mod left_out;
mod made;
mod messages;
mod order;
mod overtaken;
mod restored;
mod socket;
pub(crate) mod support;
mod values;
mod waiting;

use crate::fixture::*;
use cg_format::ClusterTier;
use cg_store::engine::Engine;
use cg_store::prelude::*;
use cg_sync::{
    MessageError, SyncClient, SyncError, SyncLimits, SyncOutcome, SyncReply, SyncRequest, SyncServer,
    SyncServerLimits,
};
use expect_test::expect;
use support::*;

#[test]
fn a_reply_to_a_request_of_another_session_is_refused() {
    let server = in_memory();
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let cache = client();
    let request = cache.request(&[here(&cache, [0, 0, 0])]).expect("asks");
    let reply = answer(&server, &request, &SyncServerLimits::default()).expect("answers");
    let again = SyncClient::open(cache.world().clone()).expect("opens");
    let error = again.apply(&request, &reply).expect_err("nobody here asked that");
    assert!(matches!(error, SyncError::NotTheReply), "{error}");
    assert_eq!(cache.apply(&request, &reply).expect("applies").updated, 1);
}

#[test]
fn a_restored_backup_sends_everything_again() {
    let (disk, copies) = (Disk::new(), Disk::new());
    let server = disk.create(&[]);
    let (ids, cache) = (Ids::register(&server), client());
    save(&server, (0..4).map(|x| (ids.at(x, 0, 0), machine(&server, &ids, x as u8))));
    server.checkpoint(copies.path(), cg_store::CheckpointFiles::Linked).expect("copies");
    // Lost with the world: another name, another content, a chunk that the copy does not have.
    let [lost] = server.registry().register_blocks(["game:lost"]).expect("registers");
    save(&server, [(ids.at(0, 0, 0), filled(&server, lost)), (ids.at(5, 0, 0), filled(&server, lost))]);
    assert_eq!(catch_up(&server, &cache).1, 5);
    drop(server);

    let server = copies.open(&[]);
    let [other] = server.registry().register_blocks(["game:other"]).expect("registers");
    save(&server, [(ids.at(1, 0, 0), filled(&server, other))]);
    let (listed, came) = catch_up(&server, &cache);
    assert!(listed.is_restart, "the client is told");
    assert_eq!((listed.gone, listed.stale, came), (1, 4, 4));
    is_same(&server, &cache);
    // The names of the life that ended are not taken for those of this one, after reopening either.
    let again = SyncClient::open(cache.world().clone()).expect("opens");
    assert_eq!(catch_up(&server, &again), (SyncOutcome::default(), 0));
    let [newest] = server.registry().register_blocks(["game:newest"]).expect("registers");
    save(&server, [(ids.at(2, 0, 0), filled(&server, newest))]);
    assert_eq!(catch_up(&server, &again).1, 1);
    is_same(&server, &again);
}

#[test]
fn a_plain_copy_that_is_put_back_sends_everything_again() {
    let (disk, cache) = (Disk::new(), client());
    let server = disk.create(&[]);
    let ids = Ids::register(&server);
    let at = ids.at(0, 0, 0);
    save(&server, [(at, filled(&server, ids.stone)), (ids.at(1, 0, 0), filled(&server, ids.stone))]);
    server.close().expect("closes");
    drop(server);
    let copy = Disk::copy_of(&disk);

    let server = disk.open(&[]);
    let lost = save(&server, [(at, machine(&server, &ids, 1))]);
    assert_eq!(catch_up(&server, &cache).1, 2);
    is_same(&server, &cache);
    server.close().expect("closes");
    drop(server);

    let server = copy.open(&[]);
    let own = save(&server, [(at, machine(&server, &ids, 2))]);
    // Without the openings, the client's version would be taken for the newest.
    assert_eq!(own, lost);
    let answered = ask(&server, &cache, &[here(&cache, [0, 0, 0])]);
    assert_eq!((answered.is_restart, answered.updated), (true, 1));
    let (listed, came) = catch_up(&server, &cache);
    assert_eq!((listed.is_restart, came), (false, 1), "the rest is asked for again");
    is_same(&server, &cache);
    // The client goes on with this history, also when the server and the client are opened again.
    server.close().expect("closes");
    drop(server);
    let server = copy.open(&[]);
    let again = SyncClient::open(cache.world().clone()).expect("opens");
    assert_eq!(catch_up(&server, &again), (SyncOutcome::default(), 0));
    save(&server, [(at, machine(&server, &ids, 3))]);
    assert_eq!(catch_up(&server, &again).1, 1);
    is_same(&server, &again);
}

#[test]
fn versions_survive_reopening() {
    let (disk, server) = (Disk::new(), in_memory());
    let ids = Ids::register(&server);
    save(&server, (0..4).map(|x| (ids.at(x, 0, 0), machine(&server, &ids, x as u8))));
    let world = disk.create(&[]);
    let overworld = world.registry().register_dimension("game:overworld").expect("registers");
    let cache = SyncClient::open(world).expect("opens");
    let request = cache.request_area(overworld, area()).expect("asks");
    assert_eq!(exchange(&server, &cache, &request, &SyncServerLimits::default()).stale, 4);
    cache.world().close().expect("closes");
    drop(cache);
    // What was listed and not fetched is not forgotten.
    let cache = SyncClient::open(disk.open(&[])).expect("opens");
    assert_eq!(catch_up(&server, &cache).1, 4);
    cache.world().close().expect("closes");
    drop(cache);
    let cache = SyncClient::open(disk.open(&[])).expect("opens");
    assert_eq!(cache.server().map(|(uuid, _)| uuid), Some(server.identity().uuid));
    let wanted: Vec<_> = (0..4).map(|x| here(&cache, [x, 0, 0])).collect();
    assert_eq!(ask(&server, &cache, &wanted).up_to_date, 4);
    is_same(&server, &cache);
}

#[test]
fn a_reply_tells_of_nothing_that_a_power_cut_takes_back() {
    let (disk, cache) = (Disk::new(), client());
    // Nobody syncs this world but who is asked to.
    let server = World::builder().options(&WorldOptions::fast()).create(disk.path()).expect("is created");
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let synced = |world: &World| Engine::last_synced(&*world.engine());
    assert!(synced(&server) < server.last_commit());
    ask(&server, &cache, &[here(&cache, [0, 0, 0])]);
    assert_eq!(synced(&server), server.last_commit());
}
