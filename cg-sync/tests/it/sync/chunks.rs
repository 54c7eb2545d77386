//! Chunks and areas: what comes, what is gone, what stays as it is.

use super::*;

over_both_engines! {
    what_changed_comes_and_what_did_not_does_not
    two_clients_that_were_offline_converge
    every_block_has_its_name_whatever_the_order_of_ids
    versions_survive_moves_between_tiers
    an_area_whose_deletions_are_forgotten_is_listed_whole
    damage_is_neither_gone_nor_sent
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
