//! The cost of an answer, and what is remembered to keep it low.

use super::*;

over_both_engines! {
    what_does_not_fit_into_a_reply_comes_later
    cost_follows_what_changed
    an_area_costs_what_changed_in_it
    what_is_remembered_of_changes_is_what_the_rows_say
}

fn what_does_not_fit_into_a_reply_comes_later(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    save(server, (0..5).map(|x| (ids.at(x, 0, 0), machine(server, &ids, x as u8))));
    let limits = SyncServerLimits { chunk_bytes: 1, listed_chunks: 4, ..SyncServerLimits::default() };
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

fn cost_follows_what_changed(server: &World) {
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
    server.cache().clear();

    let request = cache.request(&wanted).expect("asks");
    let before = server.metrics().stats;
    let reply = answer(server, &request, &SyncServerLimits::default()).expect("answers");
    let cost = server.metrics().stats - before;
    // 196 cubes of 4³ have a mark each; the 100 chunks lie in 4 of them.
    assert_eq!(cost.chunks_decoded, 100);
    assert_eq!(cost.keys_scanned, 4 * 64, "the rows of the cubes that changed");
    assert_eq!(cost.engine_reads, 196 + 4 * 2 + 100);
    assert_eq!((cost.clusters_read, cost.bytes_decompressed), (0, 0));
    let applied = cache.apply(&request, &reply).expect("applies");
    assert_eq!((applied.updated, applied.up_to_date), (100, 9_900));
    // And what is told once is known: now the marks alone are read.
    let request = cache.request(&wanted).expect("asks");
    let before = server.metrics().stats;
    answer(server, &request, &SyncServerLimits::default()).expect("answers");
    let cost = server.metrics().stats - before;
    assert_eq!((cost.engine_reads, cost.keys_scanned, cost.chunks_decoded), (196, 0, 0));
}

/// One chunk of each of some full cubes changes, in any way that it can.
fn an_area_costs_what_changed_in_it(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    save(server, (0..512).map(|i| (ids.at(i % 8, i / 64, i / 8 % 8), machine(server, &ids, 1))));
    catch_up(server, &cache);
    let cost = |expected: u64| {
        let overworld = cache.world().catalog().dimension("game:overworld").expect("is registered");
        let request = cache.request_area(overworld, area()).expect("asks");
        let before = server.metrics().stats;
        let reply = answer(server, &request, &SyncServerLimits::default()).expect("answers");
        let cost = server.metrics().stats - before;
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

/// Answers say the same whether or not the changes are remembered, moved and changed again in between.
fn what_is_remembered_of_changes_is_what_the_rows_say(server: &World) {
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
