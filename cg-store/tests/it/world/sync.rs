//! A world as the cache of another: what is asked, what is answered, what is kept.

use super::tier::demote;
use super::*;
use cg_format::ClusterTier;
use cg_store::{
    AnswerLimits, Applied, MessageError, SyncClient, SyncError, SyncLimits, SyncReply, SyncRequest,
};
use expect_test::expect;

over_both_engines! {
    what_changed_comes_and_what_did_not_does_not
    two_clients_that_were_offline_converge
    every_block_has_its_name_whatever_the_order_of_ids
    versions_survive_moves_between_tiers
    an_area_whose_deletions_are_forgotten_is_listed_whole
    what_does_not_fit_into_a_reply_comes_later
    cost_follows_what_changed
    damage_is_neither_gone_nor_sent
    replies_out_of_order_change_nothing
    a_late_reply_hides_no_change_of_an_area
    an_area_costs_what_changed_in_it
    what_is_remembered_of_changes_is_what_the_rows_say
}

/// The cache of a server in a world of its own, whose ids are others.
fn client() -> SyncClient<MemEngine> {
    let world = in_memory();
    world.register_blocks(["client:own", "game:machine2", "game:stone"]).expect("registers");
    world.register_dimension("client:lobby").expect("registers");
    world.register_dimension("game:overworld").expect("registers");
    SyncClient::open(world).expect("opens")
}

fn here<E: Engine>(cache: &SyncClient<E>, pos: [i64; 3]) -> ChunkAt {
    let overworld = cache.world().dimension("game:overworld").expect("is registered");
    ChunkAt::new(overworld, ChunkPos::new(pos[0], pos[1], pos[2]).expect("inside the world"))
}

/// A message there and a message back, as bytes.
#[track_caller]
fn exchange<S: Engine, E: Engine>(
    server: &World<S>,
    cache: &SyncClient<E>,
    request: &SyncRequest,
    limits: &AnswerLimits,
) -> Applied {
    let limit = SyncLimits::default();
    let asked = SyncRequest::decode(&request.encode(), limit).expect("decodes");
    assert_eq!(&asked, request);
    let reply = server.answer(&asked, limits).expect("answers");
    let reply = SyncReply::decode(&reply.encode(), limit).expect("decodes");
    cache.apply(request, &reply).expect("applies")
}

#[track_caller]
fn ask<S: Engine, E: Engine>(server: &World<S>, cache: &SyncClient<E>, at: &[ChunkAt]) -> Applied {
    exchange(server, cache, &cache.request(at).expect("asks"), &AnswerLimits::default())
}

#[track_caller]
fn delete<E: Engine>(world: &World<E>, at: ChunkAt) {
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
fn catch_up<S: Engine, E: Engine>(server: &World<S>, cache: &SyncClient<E>) -> (Applied, u64) {
    let overworld = cache.world().dimension("game:overworld").expect("is registered");
    let request = cache.request_area(overworld, area()).expect("asks");
    let listed = exchange(server, cache, &request, &AnswerLimits::default());
    let mut came = 0;
    while let Some(request) = cache.request_stale(100).expect("asks") {
        came += exchange(server, cache, &request, &AnswerLimits::default()).updated;
    }
    (listed, came)
}

#[track_caller]
fn is_same<S: Engine, E: Engine>(server: &World<S>, cache: &SyncClient<E>) {
    let hash = |world: &World<S>| {
        world.content_hash_of(world.dimension("game:overworld").expect("there"), area()).expect("hashes")
    };
    let own = cache.world();
    let own = own.content_hash_of(own.dimension("game:overworld").expect("there"), area()).expect("hashes");
    assert_eq!(own, hash(server));
}

/// A machine with components and light, among stone.
fn machine<E: Engine>(world: &World<E>, ids: &Ids, power: u8) -> Chunk {
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

fn what_changed_comes_and_what_did_not_does_not<E: Engine>(server: &World<E>) {
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

fn two_clients_that_were_offline_converge<E: Engine>(server: &World<E>) {
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

fn every_block_has_its_name_whatever_the_order_of_ids<E: Engine>(server: &World<E>) {
    let names: Vec<_> = (0..500).map(|i| format!("state:s{i}")).collect();
    let register = |world: &World<_>, order: &mut dyn Iterator<Item = &String>| {
        let blocks = order.map(|text| BlockOffer::new(name(text))).collect();
        world.register(&Registration { blocks, ..Registration::default() }).expect("registers");
    };
    let blocks = names.iter().map(|text| BlockOffer::new(name(text))).collect();
    server.register(&Registration { blocks, ..Registration::default() }).expect("registers");
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
    let [late] = server.register_blocks(["state:late"]).expect("registers");
    save(server, [(ids.at(0, 0, 0), filled(server, late))]);
    let request = cache.request(&[at]).expect("asks");
    let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
    assert!(reply.encode().len() < 300, "{} bytes for one name and a uniform chunk", reply.encode().len());
    cache.apply(&request, &reply).expect("applies");
    is_same(server, &cache);
}

fn versions_survive_moves_between_tiers<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    let all: Vec<_> = (0..6).map(|x| ids.at(x, 0, 0)).collect();
    save(server, all.iter().map(|at| (*at, machine(server, &ids, at.pos.x() as u8))));
    catch_up(server, &cache);
    demote(server, ClusterTier::L1, &all[..4], false);
    demote(server, ClusterTier::L2, &all[4..], false);
    server.forget_chunks();
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

fn an_area_whose_deletions_are_forgotten_is_listed_whole<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    save(server, (0..5).map(|x| (ids.at(x, 0, 0), machine(server, &ids, x as u8))));
    catch_up(server, &cache);
    delete(server, ids.at(2, 0, 0));
    server.forget_before(server.last_commit() + 1).expect("forgets");
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

fn what_does_not_fit_into_a_reply_comes_later<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    save(server, (0..5).map(|x| (ids.at(x, 0, 0), machine(server, &ids, x as u8))));
    let limits = AnswerLimits { chunk_bytes: 1, listed_chunks: 4, ..AnswerLimits::default() };
    let mut wanted: Vec<_> = (0..5).map(|x| here(&cache, [x, 0, 0])).collect();
    for left in (0..5).rev() {
        let applied = exchange(server, &cache, &cache.request(&wanted).expect("asks"), &limits);
        assert_eq!((applied.updated, applied.later.len()), (1, left));
        wanted = applied.later;
    }
    is_same(server, &cache);
    let other = client();
    let request = other.request_area(here(&other, [0, 0, 0]).dimension, area()).expect("asks");
    let applied = exchange(server, &other, &request, &limits);
    assert_eq!((applied.too_large_areas, applied.stale), (1, 0));
}

fn cost_follows_what_changed<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    let at = |i: i64| [i % 25, i / 625, i / 25 % 25];
    let place = |i| {
        let [x, y, z] = at(i);
        ids.at(x, y, z)
    };
    save(server, (0..10_000).map(|i| (place(i), filled(server, ids.stone))));
    let wanted: Vec<_> = (0..10_000).map(|i| here(&cache, at(i))).collect();
    assert_eq!(ask(server, &cache, &wanted).updated, 10_000);
    save(server, (0..100).map(|i| (ids.at(i % 5, i / 25, i / 5 % 5), marked(server, &ids, i as u16))));
    server.forget_chunks();

    let request = cache.request(&wanted).expect("asks");
    let before = server.stats();
    let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
    let cost = server.stats() - before;
    // 196 cubes of 4³ have a mark each; the 100 chunks lie in 4 of them.
    assert_eq!(cost.chunks_decoded, 100);
    assert_eq!(cost.keys_scanned, 4 * 64, "the rows of the cubes that changed");
    assert_eq!(cost.engine_reads, 196 + 4 * 2 + 100);
    assert_eq!((cost.clusters_read, cost.bytes_decompressed), (0, 0));
    let applied = cache.apply(&request, &reply).expect("applies");
    assert_eq!((applied.updated, applied.up_to_date), (100, 9_900));
    // And what is told once is known: now the marks alone are read.
    let request = cache.request(&wanted).expect("asks");
    let before = server.stats();
    server.answer(&request, &AnswerLimits::default()).expect("answers");
    let cost = server.stats() - before;
    assert_eq!((cost.engine_reads, cost.keys_scanned, cost.chunks_decoded), (196, 0, 0));
}

/// One chunk of each of some full cubes changes, in any way that it can.
fn an_area_costs_what_changed_in_it<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    save(server, (0..512).map(|i| (ids.at(i % 8, i / 64, i / 8 % 8), machine(server, &ids, 1))));
    catch_up(server, &cache);
    let cost = |expected: u64| {
        let overworld = cache.world().dimension("game:overworld").expect("is registered");
        let request = cache.request_area(overworld, area()).expect("asks");
        let before = server.stats();
        let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
        let cost = server.stats() - before;
        let visited = cost.engine_reads + cost.keys_scanned;
        assert!(visited <= 2 * expected, "{visited} rows for {expected} changes");
        assert_eq!(cost.chunks_decoded, 0);
        let applied = cache.apply(&request, &reply).expect("applies");
        assert_eq!(applied.gone + applied.stale, expected);
        catch_up(server, &cache);
        is_same(server, &cache);
    };
    cost(0);
    save(server, [(ids.at(0, 0, 0), machine(server, &ids, 2)), (ids.at(5, 5, 5), machine(server, &ids, 2))]);
    cost(2);
    delete(server, ids.at(3, 3, 3));
    save(server, [(ids.at(3, 3, 3), machine(server, &ids, 4))]);
    delete(server, ids.at(0, 0, 0));
    cost(2);
    // Beside the area, in the same cube and in another.
    save(
        server,
        [(ids.at(6, 0, 0), machine(server, &ids, 5)), (ids.at(0, 0, 200), machine(server, &ids, 5))],
    );
    cost(0);
}

/// What the answers say is the same whether or not the changes are remembered, moved and changed again in between.
fn what_is_remembered_of_changes_is_what_the_rows_say<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    save(server, (0..64).map(|i| (ids.at(i % 4, i / 16, i / 4 % 4), machine(server, &ids, 1))));
    catch_up(server, &cache);
    for turn in 0..20_u8 {
        let x = i64::from(turn % 4);
        match turn % 5 {
            0 => drop(save(server, [(ids.at(x, 0, 0), machine(server, &ids, turn))])),
            1 => delete(server, ids.at(x, 1, 0)),
            2 => demote(server, ClusterTier::L1, &[ids.at(x, 0, 0)], false),
            3 => {
                save(server, [(ids.at(x, 2, 0), machine(server, &ids, turn))]);
                demote(server, ClusterTier::L2, &[ids.at(x, 2, 0)], false);
            }
            _ => drop(save(server, (0..4).map(|y| (ids.at(x, y, 3), marked(server, &ids, turn.into()))))),
        }
        catch_up(server, &cache);
        is_same(server, &cache);
    }
}

fn damage_is_neither_gone_nor_sent<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    let at = ids.at(0, 0, 0);
    save(server, [(at, machine(server, &ids, 1)), (ids.at(4, 0, 0), machine(server, &ids, 2))]);
    catch_up(server, &cache);
    save(server, [(ids.at(1, 0, 0), machine(server, &ids, 3))]);
    plant(
        server,
        [(cg_format::Space::ChunkL0, cg_format::key::chunk(at).to_vec(), Some(plain(b"nonsense")))],
    );
    server.forget_chunks();
    let wanted = [here(&cache, [0, 0, 0]), here(&cache, [4, 0, 0])];
    let applied = ask(server, &cache, &wanted);
    assert_eq!((applied.damaged, applied.up_to_date, applied.gone), (vec![wanted[0]], 1, 0));
    assert!(cache.world().load(wanted[0]).expect("reads").is_some(), "the cache keeps what it has");
}

fn replies_out_of_order_change_nothing<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    let at = here(&cache, [0, 0, 0]);
    let turn = |cell| {
        save(server, [(ids.at(0, 0, 0), marked(server, &ids, cell))]);
        let request = cache.request(&[at]).expect("asks");
        let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
        (request, reply)
    };
    let (old, new) = (turn(1), turn(2));
    let error = cache.apply(&old.0, &new.1).expect_err("is another's");
    assert!(matches!(error, SyncError::NotTheReply), "{error}");
    assert_eq!(cache.apply(&new.0, &new.1).expect("applies").updated, 1);
    is_same(server, &cache);
    for late in [&old, &new] {
        assert_eq!(cache.apply(&late.0, &late.1).expect("applies").updated, 0);
        is_same(server, &cache);
    }
    let other = in_memory();
    Ids::register(&other);
    let request = cache.request(&[at]).expect("asks");
    let reply = other.answer(&request, &AnswerLimits::default()).expect("answers");
    let error = cache.apply(&request, &reply).expect_err("is another's");
    assert!(
        matches!(error, SyncError::OtherServer { expected, found } if expected == server.uuid() && found == other.uuid())
    );
}

fn a_late_reply_hides_no_change_of_an_area<E: Engine>(server: &World<E>) {
    let (ids, cache) = (Ids::register(server), client());
    let overworld = cache.world().dimension("game:overworld").expect("is registered");
    let at = here(&cache, [0, 0, 0]);
    let about_chunk = || {
        let request = cache.request(&[at]).expect("asks");
        let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
        (request, reply)
    };
    let about_area = || {
        let request = cache.request_area(overworld, area()).expect("asks");
        let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
        (request, reply)
    };
    let apply = |(request, reply): &(SyncRequest, SyncReply)| cache.apply(request, reply).expect("applies");
    let absent = (about_chunk(), about_area());
    catch_up(server, &cache);
    save(server, [(ids.at(0, 0, 0), marked(server, &ids, 1))]);
    let first = (about_chunk(), about_area());
    save(server, [(ids.at(0, 0, 0), marked(server, &ids, 2))]);
    // That there is a newer one is known; what comes late is older than that.
    for (cell, late) in [(3, &absent), (4, &first)] {
        apply(&about_area());
        apply(&late.0);
        apply(&late.1);
        catch_up(server, &cache);
        is_same(server, &cache);
        save(server, [(ids.at(0, 0, 0), marked(server, &ids, cell))]);
    }
    catch_up(server, &cache);
    // That it is gone is known, and no late reply brings it back.
    delete(server, ids.at(0, 0, 0));
    catch_up(server, &cache);
    for late in [&first, &absent] {
        apply(&late.0);
        apply(&late.1);
        catch_up(server, &cache);
        is_same(server, &cache);
        assert_eq!(cache.world().load(at).expect("reads"), None);
    }
}

#[test]
fn a_reply_to_a_request_of_another_session_is_refused() {
    let server = in_memory();
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let cache = client();
    let request = cache.request(&[here(&cache, [0, 0, 0])]).expect("asks");
    let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
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
    server.checkpoint(copies.path()).expect("copies");
    // Lost with the world: another name, another content, a chunk that the copy does not have.
    let [lost] = server.register_blocks(["game:lost"]).expect("registers");
    save(&server, [(ids.at(0, 0, 0), filled(&server, lost)), (ids.at(5, 0, 0), filled(&server, lost))]);
    assert_eq!(catch_up(&server, &cache).1, 5);
    drop(server);

    let server = copies.open(&[]);
    let [other] = server.register_blocks(["game:other"]).expect("registers");
    save(&server, [(ids.at(1, 0, 0), filled(&server, other))]);
    let (listed, came) = catch_up(&server, &cache);
    assert!(listed.is_restart, "the client is told");
    assert_eq!((listed.gone, listed.stale, came), (1, 4, 4));
    is_same(&server, &cache);
    // The names of the life that ended are not taken for those of this one, after reopening either.
    let again = SyncClient::open(cache.world().clone()).expect("opens");
    assert_eq!(catch_up(&server, &again), (Applied::default(), 0));
    let [newest] = server.register_blocks(["game:newest"]).expect("registers");
    save(&server, [(ids.at(2, 0, 0), filled(&server, newest))]);
    assert_eq!(catch_up(&server, &again).1, 1);
    is_same(&server, &again);
}

#[test]
fn versions_survive_reopening() {
    let (disk, server) = (Disk::new(), in_memory());
    let ids = Ids::register(&server);
    save(&server, (0..4).map(|x| (ids.at(x, 0, 0), machine(&server, &ids, x as u8))));
    let world = disk.create(&[]);
    let overworld = world.register_dimension("game:overworld").expect("registers");
    let cache = SyncClient::open(world).expect("opens");
    let request = cache.request_area(overworld, area()).expect("asks");
    assert_eq!(exchange(&server, &cache, &request, &AnswerLimits::default()).stale, 4);
    cache.world().close().expect("closes");
    drop(cache);
    // What was listed and not fetched is not forgotten.
    let cache = SyncClient::open(disk.open(&[])).expect("opens");
    assert_eq!(catch_up(&server, &cache).1, 4);
    cache.world().close().expect("closes");
    drop(cache);
    let cache = SyncClient::open(disk.open(&[])).expect("opens");
    assert_eq!(cache.server(), Some((server.uuid(), server.incarnation())));
    let wanted: Vec<_> = (0..4).map(|x| here(&cache, [x, 0, 0])).collect();
    assert_eq!(ask(&server, &cache, &wanted).up_to_date, 4);
    is_same(&server, &cache);
}

fn sum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The message of a kind that has these fields, whatever they say.
fn sealed(kind: u8, fields: &[u8]) -> Vec<u8> {
    let computed = sum(&[&[2, kind], fields].concat());
    [&[2, kind][..], &computed.to_le_bytes(), fields].concat()
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    let server = in_memory();
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let cache = client();
    let request = cache.request(&[here(&cache, [0, 0, 0])]).expect("asks");
    let reply = server.answer(&request, &AnswerLimits::default()).expect("answers").encode();
    let limits = SyncLimits::default();
    let refused = |bytes: &[u8], limits| SyncReply::decode(bytes, limits).expect_err("is refused");
    assert_eq!(
        refused(&reply, SyncLimits { reply_bytes: 10, ..limits }),
        MessageError::TooLong { len_bytes: reply.len(), limit_bytes: 10 }
    );
    let asked = request.encode();
    assert_eq!(
        SyncRequest::decode(&asked, SyncLimits { request_bytes: 10, ..limits }),
        Err(MessageError::TooLong { len_bytes: asked.len(), limit_bytes: 10 })
    );
    let four_mib = vec![0; (4 << 20) + 1];
    assert_eq!(
        SyncRequest::decode(&four_mib, limits),
        Err(MessageError::TooLong { len_bytes: (4 << 20) + 1, limit_bytes: 4 << 20 })
    );
    assert_eq!(refused(&asked, limits), MessageError::Kind { found: 1, expected: 2 });
    assert_eq!(refused(&[7, 2, 0, 0, 0, 0], limits), MessageError::Version { found: 7, expected: 2 });
    let (fields, stored) = (&reply[6..], u32::from_le_bytes(*reply[2..].first_chunk().expect("a sum")));
    let longer = sealed(2, &[fields, &[0]].concat());
    assert_eq!(refused(&longer, limits), MessageError::Behind { extra_bytes: 1 });
    for len in 0..reply.len() {
        let cut = &reply[..len];
        if len < 6 {
            assert_eq!(refused(cut, limits), MessageError::Ends, "{len} bytes");
            continue;
        }
        let computed = sum(&[&cut[..2], &cut[6..]].concat());
        assert_eq!(refused(cut, limits), MessageError::Checksum { stored, computed }, "{len} bytes");
        assert_eq!(refused(&sealed(2, &cut[6..]), limits), MessageError::Ends, "{len} bytes");
    }
    // A request whose list of dimensions claims 2^60 entries.
    let claim = sealed(1, &[&[0, 0, 253][..], &(1_u64 << 60).to_le_bytes()].concat());
    assert_eq!(SyncRequest::decode(&claim, limits), Err(MessageError::Ends));
    // No changed byte passes; and where the sum is that of the changed bytes, what they say is checked before anything is
    // written.
    for (index, flip) in (0..reply.len()).flat_map(|index| [1, 0x80, 0xff].map(|flip| (index, flip))) {
        let mut bytes = reply.clone();
        bytes[index] ^= flip;
        let error = refused(&bytes, limits);
        let is_told = match index {
            0 => matches!(error, MessageError::Version { .. }),
            1 => matches!(error, MessageError::Kind { .. }),
            _ => matches!(error, MessageError::Checksum { .. }),
        };
        assert!(is_told, "byte {index}: {error}");
        if index >= 6
            && let Ok(reply) = SyncReply::decode(&sealed(2, &bytes[6..]), limits)
            && index % 7 == 0
        {
            let cache = client();
            let request = cache.request(&[here(&cache, [0, 0, 0])]).expect("asks");
            let before = cache.world().objects().list(b"", None, 1).expect("lists");
            if cache.apply(&request, &reply).is_err() {
                assert_eq!(cache.world().objects().list(b"", None, 1).expect("lists"), before);
                assert_eq!(cache.world().load(here(&cache, [0, 0, 0])).expect("reads"), None);
            }
        }
    }
    let error = server.answer(
        &SyncRequest::decode(&sealed(1, &[0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0]), limits).expect("decodes"),
        &AnswerLimits::default(),
    );
    expect!["the message says what cannot be: it has no name for a dimension"]
        .assert_eq(&error.expect_err("is refused").to_string());
}

#[test]
fn names_have_an_end() {
    let server = in_memory();
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let cache = client();
    let count = |world: &World<MemEngine>| -> usize {
        let catalog = world.catalog();
        cg_registry::ListKind::ALL.iter().map(|list| catalog.list(*list).len()).sum()
    };
    let at = [here(&cache, [0, 0, 0])];
    ask(&server, &cache, &at);
    let full = count(cache.world());
    let cache = cache.with_max_names(full + 9);
    let more = |from: u32, to: u32| {
        let names: Vec<_> = (from..to).map(|number| format!("hostile:{number}")).collect();
        let new = names.iter().map(|name| BlockOffer::new(Name::new(name).expect("a name"))).collect();
        server.register(&Registration { blocks: new, ..Registration::default() }).expect("registers");
        let request = cache.request(&at).expect("asks");
        let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
        cache.apply(&request, &reply)
    };
    more(0, 9).expect("is as many as allowed");
    let error = more(9, 10).expect_err("is one too many");
    let limit = full + 9;
    assert!(
        matches!(error, SyncError::TooManyNames { names, limit: found } if names == limit + 1 && found == limit),
        "{error}"
    );
    assert_eq!(count(cache.world()), limit);
    // Names that the world has, again and again under other numbers, are kept in memory all the same.
    let small = client().with_max_names(3);
    let request = small.request(&[here(&small, [0, 0, 0])]).expect("asks");
    let reply = server.answer(&request, &AnswerLimits::default()).expect("answers");
    let before = count(small.world());
    let error = small.apply(&request, &reply).expect_err("are more than three");
    assert!(matches!(error, SyncError::TooManyNames { limit: 3, .. }), "{error}");
    assert_eq!((count(small.world()), small.server()), (before, None));
}

#[test]
fn a_request_asks_for_no_more_than_is_allowed() {
    let server = in_memory();
    let cache = client();
    let limits = AnswerLimits { asked_cubes: 2, asked_areas: 0, ..AnswerLimits::default() };
    let request = |cubes: i64| {
        let at: Vec<_> = (0..cubes).map(|cube| here(&cache, [cube * 4, 0, 0])).collect();
        cache.request(&at).expect("asks")
    };
    assert!(server.answer(&request(2), &limits).is_ok());
    let refused =
        |request: &SyncRequest| server.answer(request, &limits).expect_err("is refused").to_string();
    expect!["the message asks about 3 cubes, 2 are allowed; ask in parts"].assert_eq(&refused(&request(3)));
    let overworld = cache.world().dimension("game:overworld").expect("is registered");
    let area = cache.request_area(overworld, area()).expect("asks");
    expect!["the message asks about 1 areas, 0 are allowed; ask in parts"].assert_eq(&refused(&area));
    // One cube in which the first place is asked about 65 times.
    let mut bytes = vec![0, 0, 1, 3, b'a', b':', b'b', 1, 0, 0, 0, 0, 0, 65];
    bytes.extend([0, 0].repeat(65));
    bytes.push(0);
    let many = SyncRequest::decode(&sealed(1, &bytes), SyncLimits::default()).expect("decodes");
    assert_eq!(many.chunk_count(), 65);
    expect!["the message says what cannot be: a 4³ cube has places 0 to 63, each once"]
        .assert_eq(&refused(&many));
}

#[test]
fn a_reply_tells_of_nothing_that_a_power_cut_takes_back() {
    let (disk, cache) = (Disk::new(), client());
    // Nobody syncs this world but who is asked to.
    let server = World::create(disk.path(), &[], &WorldOptions::fast()).expect("is created");
    let ids = Ids::register(&server);
    save(&server, [(ids.at(0, 0, 0), machine(&server, &ids, 1))]);
    let synced = |world: &World<_>| Engine::last_synced(&*world.engine()).get();
    assert!(synced(&server) < server.last_commit());
    ask(&server, &cache, &[here(&cache, [0, 0, 0])]);
    assert_eq!(synced(&server), server.last_commit());
}
