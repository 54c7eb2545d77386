//! Replies that come late, or one before the other.

use super::*;

over_both_engines! {
    replies_out_of_order_change_nothing
    a_late_reply_hides_no_change_of_an_area
}

fn replies_out_of_order_change_nothing(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    let at = here(&cache, [0, 0, 0]);
    let turn = |cell| {
        save(server, [(ids.at(0, 0, 0), marked(server, &ids, cell))]);
        let request = cache.request(&[at]).expect("asks");
        let reply = answer(server, &request, &SyncServerLimits::default()).expect("answers");
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
    let reply = answer(&other, &request, &SyncServerLimits::default()).expect("answers");
    let error = cache.apply(&request, &reply).expect_err("is another's");
    assert!(
        matches!(error, SyncError::OtherServer { expected, found } if expected == server.identity().uuid && found == other.identity().uuid)
    );
}

fn a_late_reply_hides_no_change_of_an_area(server: &World) {
    let (ids, cache) = (Ids::register(server), client());
    let overworld = cache.world().catalog().dimension("game:overworld").expect("is registered");
    let at = here(&cache, [0, 0, 0]);
    let about_chunk = || {
        let request = cache.request(&[at]).expect("asks");
        let reply = answer(server, &request, &SyncServerLimits::default()).expect("answers");
        (request, reply)
    };
    let about_area = || {
        let request = cache.request_area(overworld, area()).expect("asks");
        let reply = answer(server, &request, &SyncServerLimits::default()).expect("answers");
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
