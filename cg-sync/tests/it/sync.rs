//! A world as the cache of another: what is asked, what is answered, what is kept.

mod cost;
mod hostile;
mod left_out;
mod made;
mod messages;
mod order;
mod overtaken;
mod restored;
mod socket;
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

over_both_engines! {
    what_changed_comes_and_what_did_not_does_not
    two_clients_that_were_offline_converge
    every_block_has_its_name_whatever_the_order_of_ids
    versions_survive_moves_between_tiers
    an_area_whose_deletions_are_forgotten_is_listed_whole
    damage_is_neither_gone_nor_sent
}

/// The cache of a server in a world of its own, whose ids are others.
fn client() -> SyncClient {
    let world = in_memory();
    world.registry().register_blocks(["client:own", "game:machine2", "game:stone"]).expect("registers");
    world.registry().register_dimension("client:lobby").expect("registers");
    world.registry().register_dimension("game:overworld").expect("registers");
    SyncClient::open(world).expect("opens")
}

fn here(cache: &SyncClient, pos: [i64; 3]) -> ChunkAt {
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
fn exchange(
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
fn ask(server: &World, cache: &SyncClient, at: &[ChunkAt]) -> SyncOutcome {
    exchange(server, cache, &cache.request(at).expect("asks"), &SyncServerLimits::default())
}

#[track_caller]
fn delete(world: &World, at: ChunkAt) {
    let deleted = world.transaction(|tx| {
        tx.delete(at);
        Ok::<_, Error>(())
    });
    deleted.expect("deletes");
}

fn area() -> ChunkBox {
    let corner = |c| ChunkPos::new(c, c, c).expect("inside the world");
    ChunkBox::new(corner(-6), corner(5))
}

/// Brings an area up to date; returns what its listing said, and how many chunks came.
#[track_caller]
fn catch_up(server: &World, cache: &SyncClient) -> (SyncOutcome, u64) {
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
fn is_same(server: &World, cache: &SyncClient) {
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
fn machine(world: &World, ids: &Ids, power: u8) -> Chunk {
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

fn what_changed_comes_and_what_did_not_does_not(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    let all = [[0, 0, 0], [1, 0, 0], [-3, 7, 2]];
    save(server, [(ids.at(0, 0, 0), machine(server, &ids, 5)), (ids.at(1, 0, 0), marked(server, &ids, 9))]);
    let wanted = all.map(|pos| here(&cache, pos));

    let first = ask(server, &cache, &wanted);
    assert_eq!((first.updated, first.gone, first.up_to_date), (2, 1, 0));
    assert_eq!(
        cache.version(wanted[0]).expect("reads"),
        server.load_versioned(ids.at(0, 0, 0)).unwrap().map(|it| it.1)
    );
    is_same(server, &cache);

    let before = cache.world().last_commit();
    let again = ask(server, &cache, &wanted);
    assert_eq!((again.updated, again.gone, again.up_to_date), (0, 1, 2));
    assert_eq!(cache.world().last_commit(), before, "nothing was written");

    save(server, [(ids.at(0, 0, 0), machine(server, &ids, 6))]);
    delete(server, ids.at(1, 0, 0));
    let changed = ask(server, &cache, &wanted);
    assert_eq!((changed.updated, changed.gone, changed.up_to_date), (1, 2, 0));
    assert_eq!(cache.world().load(wanted[1]).expect("reads"), None);
    assert_eq!(cache.version(wanted[1]).expect("reads"), None);
    is_same(server, &cache);
}

fn two_clients_that_were_offline_converge(server: &World) {
    let ids = Ids::register(server);
    let clients = [client(), client()];
    save(server, (0..40).map(|i| (ids.at(i % 8 - 4, i / 8, 0), machine(server, &ids, i as u8))));
    assert_eq!(catch_up(server, &clients[0]).1, 40);
    for round in 0..4_u16 {
        // One of them sees each state, the other every second.
        save(
            server,
            (0..9).map(|i| (ids.at(i - 4, i64::from(round), 1), marked(server, &ids, round * 9 + 1))),
        );
        server
            .transaction(|tx| {
                tx.delete(ids.at(i64::from(round) - 4, 0, 0));
                tx.set_block(
                    ids.overworld,
                    BlockPos::new(3, 3, 3),
                    [ids.air, ids.glass][usize::from(round % 2)],
                )
                .map(drop)
            })
            .expect("commits");
        for (index, cache) in clients.iter().enumerate() {
            if index == 0 || round % 2 == 1 {
                catch_up(server, cache);
                is_same(server, cache);
            }
        }
    }
    let (listed, came) = catch_up(server, &clients[1]);
    assert_eq!((listed.stale, listed.gone, came), (0, 0, 0), "nothing changed since");
}

fn every_block_has_its_name_whatever_the_order_of_ids(server: &World) {
    let names: Vec<_> = (0..500).map(|i| format!("state:s{i}")).collect();
    let register = |world: &World, order: &mut dyn Iterator<Item = &String>| {
        let blocks = order.map(|text| BlockOffer::new(name(text))).collect();
        world.registry().register(&Registration { blocks, ..Registration::default() }).expect("registers");
    };
    let blocks = names.iter().map(|text| BlockOffer::new(name(text))).collect();
    server.registry().register(&Registration { blocks, ..Registration::default() }).expect("registers");
    let ids = Ids::register(server);
    let cache = client();
    register(cache.world(), &mut names.iter().rev().step_by(2));
    let schema = server.catalog().current_schema();
    let mut chunk = filled(server, ids.air);
    for (cell, text) in (0..).zip(&names) {
        let block = server.catalog().block_id(text).expect("is registered");
        chunk.set_block(LocalPos::from_index(cell).unwrap(), block, &schema).unwrap();
    }
    save(server, [(ids.at(0, 0, 0), chunk)]);
    let at = here(&cache, [0, 0, 0]);
    assert_eq!(ask(server, &cache, &[at]).updated, 1);
    let (catalog, came) = (cache.world().catalog(), cache.world().load(at).unwrap().expect("came"));
    for (cell, text) in (0..).zip(&names) {
        let block = came.block(LocalPos::from_index(cell).unwrap());
        assert_eq!(catalog.block_name(block).map(Name::as_str), Some(text.as_str()));
    }
    is_same(server, &cache);
    // A name that comes later comes alone.
    let [late] = server.registry().register_blocks(["state:late"]).expect("registers");
    save(server, [(ids.at(0, 0, 0), filled(server, late))]);
    let request = cache.request(&[at]).expect("asks");
    let reply = answer(server, &request, &SyncServerLimits::default()).expect("answers");
    assert!(reply.encode().len() < 300, "{} bytes for one name and a uniform chunk", reply.encode().len());
    cache.apply(&request, &reply).expect("applies");
    is_same(server, &cache);
}

fn versions_survive_moves_between_tiers(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    let all: Vec<_> = (0..6).map(|x| ids.at(x, 0, 0)).collect();
    save(server, all.iter().map(|at| (*at, machine(server, &ids, at.pos.x() as u8))));
    catch_up(server, &cache);
    demote(server, ClusterTier::L1, &all[..4], false);
    demote(server, ClusterTier::L2, &all[4..], false);
    server.cache().clear();
    // A neighbour that changed makes the server look at the others, which did not.
    save(server, [(ids.at(0, 1, 0), marked(server, &ids, 1)), (ids.at(4, 1, 0), marked(server, &ids, 2))]);
    let (listed, came) = catch_up(server, &cache);
    assert_eq!((listed.stale, came), (2, 2));
    let wanted: Vec<_> = (0..6).map(|x| here(&cache, [x, 0, 0])).collect();
    assert_eq!(ask(server, &cache, &wanted).up_to_date, 6);
    is_same(server, &cache);
    // A client that comes new finds the cold ones too.
    let late = client();
    assert_eq!(catch_up(server, &late).1, 8);
    is_same(server, &late);
}

fn an_area_whose_deletions_are_forgotten_is_listed_whole(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    save(server, (0..5).map(|x| (ids.at(x, 0, 0), machine(server, &ids, x as u8))));
    catch_up(server, &cache);
    delete(server, ids.at(2, 0, 0));
    server.tiers().purge_tombstones_before(server.last_commit().next()).expect("forgets");
    save(server, [(ids.at(3, 0, 0), marked(server, &ids, 3))]);
    // As maintenance leaves it: nothing tells of the deletion any more.
    let mark = cg_format::key::chunk(ids.at(2, 0, 0)).to_vec();
    plant(server, [(cg_format::Space::ChunkL0, mark, None)]);
    let (listed, came) = catch_up(server, &cache);
    assert_eq!(
        (listed.gone, listed.stale, came),
        (1, 1, 1),
        "what was listed again and is known does not come"
    );
    is_same(server, &cache);
}

fn damage_is_neither_gone_nor_sent(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    let at = ids.at(0, 0, 0);
    save(server, [(at, machine(server, &ids, 1)), (ids.at(4, 0, 0), machine(server, &ids, 2))]);
    catch_up(server, &cache);
    save(server, [(ids.at(1, 0, 0), machine(server, &ids, 3))]);
    plant(
        server,
        [(cg_format::Space::ChunkL0, cg_format::key::chunk(at).to_vec(), Some(plain(b"nonsense")))],
    );
    server.cache().clear();
    let wanted = [here(&cache, [0, 0, 0]), here(&cache, [4, 0, 0])];
    let applied = ask(server, &cache, &wanted);
    assert_eq!((applied.damaged, applied.up_to_date, applied.gone), (vec![wanted[0]], 1, 0));
    assert!(cache.world().load(wanted[0]).expect("reads").is_some(), "the cache keeps what it has");
}

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
