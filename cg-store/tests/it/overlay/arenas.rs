//! The pool: lease, give back, reclaim after a crash, remove.

use cg_store::OverlayError;

use super::*;

fn now(ticks: u64) -> GameTick {
    GameTick::new(ticks)
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, expected: &OverlayError) {
    match result {
        Err(Error::Overlay(found)) => assert_eq!(found, *expected),
        other => panic!("{expected} is expected, not {other:?}"),
    }
}

#[test]
fn an_arena_that_is_given_back_is_empty_for_the_next() {
    let (base, ids) = template();
    let arenas = Arenas::temporary(base.clone(), &options()).expect("a base");
    let first = arenas.lease("ada", now(5)).expect("leases");
    let kept = first.clone();
    write(&first, [(ids.at(7, 0, 0), Some(filled(&base, ids.stone)))]);
    first.give_back(now(9)).expect("gives back");
    assert_refused(kept.load(ids.at(7, 0, 0)), &OverlayError::GivenBack { arena: 0 });
    assert_refused(kept.reset(), &OverlayError::GivenBack { arena: 0 });
    assert_refused(arenas.resume(0), &OverlayError::NotLeased { arena: 0 });
    assert_refused(arenas.resume(3), &OverlayError::UnknownArena { arena: 3 });
    let second = arenas.lease("grace", now(10)).expect("leases");
    assert_eq!((second.arena(), second.load(ids.at(7, 0, 0)).expect("loads")), (0, None));
    assert_eq!(arenas.lease("alan", now(11)).expect("leases").arena(), 1);
    let long = "x".repeat(65_536);
    assert_refused(arenas.lease(&long, now(12)), &OverlayError::HolderTooLong { len_bytes: 65_536 });
    let holders: Vec<_> = arenas.list().into_iter().map(|info| (info.holder, info.since)).collect();
    assert_eq!(holders, [(Some("grace".into()), now(10)), (Some("alan".into()), now(11))]);
}

#[test]
fn a_crash_leaves_arenas_leased_until_they_are_resumed_or_reclaimed() {
    let (base, ids) = template();
    let disk = Disk::new();
    let dir = disk.root().join("arenas");
    let arenas = Arenas::create(&dir, base.clone(), &options()).expect("an empty directory");
    let leased: Vec<_> = ["a", "b", "c"].map(|name| arenas.lease(name, now(1)).expect("leases")).into();
    for arena in &leased {
        write(arena, [(ids.at(7, 0, 0), Some(filled(&base, ids.stone)))]);
    }
    drop((leased, arenas));

    let arenas = Arenas::open(&dir, base.clone(), &options()).expect("opens");
    let resumed = arenas.resume(1).expect("is leased");
    assert_eq!(resumed.load(ids.at(7, 0, 0)).expect("loads").as_deref(), Some(&filled(&base, ids.stone)));
    assert_eq!(arenas.reclaim(now(20)).expect("reclaims"), 2, "nobody holds them");
    let holders: Vec<_> = arenas.list().into_iter().map(|info| info.holder).collect();
    assert_eq!(holders, [None, Some("b".into()), None]);
    assert_eq!(arenas.remove_free_since(now(20)).expect("removes"), 0);
    assert_eq!(arenas.remove_free_since(now(21)).expect("removes"), 2);
    assert_eq!(arenas.list().len(), 1);
    drop((resumed, arenas));

    // The rows of leases that were removed never come back.
    let arenas = Arenas::open(&dir, base.clone(), &options()).expect("opens");
    let fresh: Vec<_> = (0..6).map(|n| arenas.lease("d", now(30 + n)).expect("leases")).collect();
    assert!(fresh.iter().all(|arena| arena.load(ids.at(7, 0, 0)).expect("loads").is_none()));
    assert_eq!(arenas.sweep(1000).expect("sweeps"), 2, "of the two arenas that were reclaimed");
    let resumed = arenas.resume(1).expect("is leased");
    assert!(resumed.load(ids.at(7, 0, 0)).expect("loads").is_some(), "what is held is not swept");
}

#[test]
fn a_transaction_inside_another_is_refused_and_does_not_wait_for_ever() {
    let (base, _) = template();
    let overlay = over(&base);
    let nested = overlay.transaction(|_| overlay.reset());
    assert!(matches!(nested, Err(Error::Nested)), "{nested:?}");
    let other = over(&base);
    overlay.transaction(|_| other.reset()).expect("another overlay is another thing");
}
