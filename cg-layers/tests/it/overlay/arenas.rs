//! The pool: lease, give back, reclaim after a crash, remove.

use cg_layers::OverlayError;

use super::*;
use crate::surviving::{Fuse, Surviving};
use cg_format::key::Family;

fn now(ticks: u64) -> GameTick {
    GameTick::new(ticks)
}

#[track_caller]
fn assert_refused<T: std::fmt::Debug>(result: Result<T, Error>, expected: &OverlayError) {
    assert_eq!(result.as_ref().err().and_then(Error::layer), Some(expected), "{result:?}");
}

#[test]
fn an_arena_that_is_given_back_is_empty_for_the_next() {
    let (base, ids) = template();
    let arenas = Arenas::in_memory(base.clone(), &options()).expect("a base");
    let first = arenas.lease("ada", now(5)).expect("leases");
    let kept = first.clone();
    write(&first, [(ids.at(7, 0, 0), Some(filled(&base, ids.stone)))]);
    first.release(now(9)).expect("gives back");
    assert_refused(kept.load(ids.at(7, 0, 0)), &OverlayError::Released { arena: 0 });
    assert_refused(kept.reset(), &OverlayError::Released { arena: 0 });
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

#[test]
fn an_overlay_that_was_just_created_survives_a_power_cut() {
    let (base, _) = template();
    let overlay = on_disk(&Disk::new(), &base);
    let arenas = overlay.arenas();
    assert_eq!(arenas.engine().last_synced(), arenas.engine().last_commit());
}

#[test]
fn a_damaged_block_is_swept_around() {
    let (base, ids) = template();
    let engine = Surviving::new(&Fuse::new());
    let arenas = Arenas::over(engine.clone(), base.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", now(0)).expect("leases");
    write(&overlay, (10..15).map(|x| (ids.at(x, 0, 0), Some(filled(&base, ids.glass)))));
    overlay.reset().expect("resets");
    write(&overlay, [(ids.at(10, 0, 0), Some(filled(&base, ids.stone)))]);
    overlay.reset().expect("resets");
    engine.spoil(Family::ChunkL0, cg_format::key::overlay_chunk(1, ids.at(11, 0, 0)));
    assert_eq!(arenas.sweep(100).expect("goes on after it"), 5, "of six");
    assert_eq!(arenas.stats().damage_met, 1);
    assert_eq!(arenas.sweep(100).expect("sweeps"), 0);
}

#[test]
fn a_damaged_arena_keeps_no_other_from_being_used() {
    let (base, ids) = template();
    let engine = Surviving::new(&Fuse::new());
    let arenas = Arenas::over(engine.clone(), base.clone(), &options()).expect("a base");
    let at = ids.at(7, 0, 0);
    for holder in ["ada", "grace", "alan"] {
        let overlay = arenas.lease(holder, now(0)).expect("leases");
        write(&overlay, [(at, Some(filled(&base, ids.glass)))]);
    }
    drop(arenas);
    for damaged in ["arena/00000001", "arena/00000002"] {
        engine.overwrite(cg_format::Space::WorldMeta, damaged);
    }
    let arenas = Arenas::over(engine, base, &options()).expect("the others are sound");
    let damaged = |arena: u32| match arenas.resume(arena) {
        Err(Error::Corrupt(damage)) => assert_eq!(damage.place, format!("arena {arena:08x}")),
        other => panic!("its row is damaged: {other:?}"),
    };
    damaged(1);
    damaged(2);
    assert_eq!((arenas.damaged(), arenas.stats().damage_met), (vec![1, 2], 2));
    let ada = arenas.resume(0).expect("is leased");
    assert!(ada.load(at).expect("loads").is_some());
    // Neither their numbers nor their leases are given again.
    let next = arenas.lease("edsger", now(1)).expect("leases");
    assert_eq!((next.arena(), next.load(at).expect("loads")), (3, None));
    next.reset().expect("resets");
    assert_eq!(arenas.sweep(100).expect("sweeps"), 0, "what a damaged arena holds is kept");
    assert_eq!(arenas.reclaim(now(2)).expect("reclaims"), 2, "nobody holds the damaged ones");
    assert_eq!(arenas.damaged(), [0; 0]);
    assert_eq!(arenas.sweep(100).expect("sweeps"), 2);
    assert!(ada.load(at).expect("loads").is_some());
    assert_eq!(arenas.lease("barbara", now(3)).expect("leases").arena(), 1);
}

/// Of an arena that was removed nothing is left but its rows and the number of the next lease.
#[test]
fn leases_are_not_given_again_though_their_number_is_damaged() {
    let (base, ids) = template();
    let engine = Surviving::new(&Fuse::new());
    let arenas = Arenas::over(engine.clone(), base.clone(), &options()).expect("a base");
    let at = ids.at(7, 0, 0);
    let overlay = arenas.lease("ada", now(0)).expect("leases");
    write(&overlay, [(at, Some(filled(&base, ids.glass)))]);
    overlay.release(now(1)).expect("gives back");
    assert_eq!(arenas.remove_free_since(now(9)).expect("removes"), 1);
    drop(arenas);
    engine.overwrite(cg_format::Space::WorldMeta, "leases");
    let arenas = Arenas::over(engine, base, &options()).expect("opens");
    let next = arenas.lease("grace", now(2)).expect("leases");
    assert_eq!(next.load(at).expect("loads"), None);
    assert_eq!(arenas.sweep(9).expect("sweeps"), 1);
}
