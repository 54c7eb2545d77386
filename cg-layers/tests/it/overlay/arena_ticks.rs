//! Arenas that clean up by themselves, within the budgets of ticks.

use std::time::Duration;

use cg_format::key::{self, Family};
use cg_layers::{ArenaPolicy, ArenaReport, OverlayError};

use super::*;
use crate::surviving::{Fuse, Surviving};

/// Longer than any of these ticks takes.
const ENOUGH: Duration = Duration::from_secs(600);

const POLICY: ArenaPolicy =
    ArenaPolicy { end_after_ticks: Some(100), reclaim_after_ticks: Some(50), remove_after_ticks: Some(200) };

fn now(ticks: u64) -> GameTick {
    GameTick::new(ticks)
}

/// A tick without an error, and what it counted: ended, reclaimed, removed, swept.
#[track_caller]
fn tick(arenas: &Arenas<World>, at: u64) -> (u32, u32, u32, u64) {
    let report = arenas.tick(now(at), &POLICY, ENOUGH).expect("ticks");
    assert!(!report.work_left && report.kept_for_merge == 0, "{report:?}");
    (report.ended, report.reclaimed, report.removed, report.rows_swept)
}

#[track_caller]
fn assert_released<T: std::fmt::Debug>(result: Result<T, Error>, arena: u32) {
    let expected = Some(&OverlayError::Released { arena });
    assert_eq!(result.as_ref().err().and_then(Error::layer), expected, "{result:?}");
}

/// Runs a test in memory, where an opening finds what a killed process had committed, and on disk. It gets the base and a
/// function that opens the arenas.
fn on_both(test: impl Fn(&World, &Ids, &dyn Fn() -> Arenas<World>)) {
    let (base, ids) = template();
    let engine = Surviving::new(&Fuse::new());
    test(&base, &ids, &|| Arenas::over(engine.clone(), base.clone(), &options()).expect("opens"));
    let disk = Disk::new();
    let dir = disk.root().join("arenas");
    drop(Arenas::create(&dir, base.clone(), &options()).expect("an empty directory"));
    test(&base, &ids, &|| Arenas::open(&dir, base.clone(), &options()).expect("opens"));
}

/// Three chunks.
fn play<S: Base>(overlay: &Overlay<S>, base: &World, ids: &Ids) {
    write(overlay, (7..10).map(|x| (ids.at(x, 0, 0), Some(filled(base, ids.stone)))));
}

fn holders(arenas: &Arenas<World>) -> Vec<Option<String>> {
    arenas.list().into_iter().map(|info| info.holder).collect()
}

#[test]
fn leases_end_unless_they_are_renewed_and_their_rows_go() {
    on_both(|base, ids, open| {
        let arenas = open();
        let [ada, grace] = ["ada", "grace"].map(|name| arenas.lease(name, now(0)).expect("leases"));
        for overlay in [&ada, &grace] {
            play(overlay, base, ids);
        }
        grace.renew(now(60)).expect("renews");
        assert_eq!(tick(&arenas, 99), (0, 0, 0, 0));
        assert_eq!(tick(&arenas, 100), (1, 0, 0, 3));
        assert_eq!(holders(&arenas), [None, Some("grace".into())]);
        assert_released(ada.load(ids.at(7, 0, 0)), 0);
        assert_released(ada.transaction(|_| Ok::<_, Error>(())), 0);
        assert_released(ada.renew(now(100)), 0);
        assert_released(ada.release(now(100)), 0);
        drop((grace, arenas));

        let arenas = open();
        let grace = arenas.resume(1).expect("is leased");
        assert_eq!(tick(&arenas, 159), (0, 0, 0, 0), "it counts from the renewal");
        assert!(grace.load(ids.at(7, 0, 0)).expect("loads").is_some());
        assert_eq!(tick(&arenas, 160), (1, 0, 0, 3));
        assert_released(grace.load(ids.at(7, 0, 0)), 1);
        drop((grace, arenas));

        let arenas = open();
        assert_eq!(tick(&arenas, 299), (0, 0, 0, 0));
        assert_eq!(tick(&arenas, 300), (0, 0, 1, 0));
        assert_eq!(tick(&arenas, 360), (0, 0, 1, 0));
        assert_eq!(arenas.list(), []);
        let next = arenas.lease("alan", now(360)).expect("leases");
        assert_eq!(next.load(ids.at(7, 0, 0)).expect("loads"), None);
    });
}

#[test]
fn an_arena_without_a_handle_is_reclaimed_after_a_while_without_one() {
    let leave = |ticks| ArenaPolicy { end_after_ticks: None, reclaim_after_ticks: Some(ticks), ..POLICY };
    on_both(|base, ids, open| {
        let arenas = open();
        for name in ["ada", "grace"] {
            play(&arenas.lease(name, now(0)).expect("leases"), base, ids);
        }
        let reclaimed = |arenas: &Arenas<World>, at| {
            let report = arenas.tick(now(at), &leave(50), ENOUGH).expect("ticks");
            assert_eq!(report.rows_swept, u64::from(report.reclaimed) * 3);
            report.reclaimed
        };
        assert_eq!(reclaimed(&arenas, 40), 0);
        drop(arenas);
        // The server was away, and its clock went on.
        let arenas = open();
        assert_eq!(reclaimed(&arenas, 1000), 0, "it counts from the first tick after the opening");
        assert_eq!(reclaimed(&arenas, 1049), 0);
        // Resumed between two ticks: no tick has seen the handle.
        drop(arenas.resume(1).expect("is leased"));
        assert_eq!(reclaimed(&arenas, 1050), 1);
        assert_eq!(holders(&arenas), [None, Some("grace".into())]);
        assert_eq!(reclaimed(&arenas, 1099), 0);
        let held = arenas.resume(1).expect("is leased");
        assert_eq!(reclaimed(&arenas, 1100), 0, "it has a handle");
        assert!(held.load(ids.at(7, 0, 0)).expect("loads").is_some());
        drop(held);
        assert_eq!(reclaimed(&arenas, 1101), 0);
        assert_eq!(reclaimed(&arenas, 1151), 1);
        assert_eq!(holders(&arenas), [None, None]);
    });
}

#[test]
fn what_is_off_is_left_alone() {
    on_both(|base, ids, open| {
        let arenas = open();
        play(&arenas.lease("ada", now(0)).expect("leases"), base, ids);
        let overlay = arenas.lease("grace", now(0)).expect("leases");
        play(&overlay, base, ids);
        overlay.release(now(0)).expect("gives back");
        let report = arenas.tick(now(u64::MAX), &ArenaPolicy::default(), ENOUGH).expect("ticks");
        assert_eq!((report.ended, report.reclaimed, report.removed, report.rows_swept), (0, 0, 0, 3));
        assert_eq!(holders(&arenas), [Some("ada".into()), None]);
    });
}

#[test]
fn game_time_that_goes_back_ends_nothing_early() {
    let (base, ids) = template();
    let arenas = Arenas::in_memory(base.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", now(1000)).expect("leases");
    play(&overlay, &base, &ids);
    assert_eq!(tick(&arenas, 0), (0, 0, 0, 0));
    let before = arenas.engine().last_commit();
    overlay.renew(now(50)).expect("renews");
    assert_eq!(arenas.engine().last_commit(), before, "it counts from a later moment already");
    assert_eq!(tick(&arenas, 150), (0, 0, 0, 0));
    assert_eq!(tick(&arenas, 1099), (0, 0, 0, 0));
    assert_eq!(tick(&arenas, 1100), (1, 0, 0, 3));
    // Free since 1100.
    assert_eq!(tick(&arenas, 900), (0, 0, 0, 0));
    assert_eq!(tick(&arenas, 1300), (0, 0, 0, 0), "its handle is there");
    drop(overlay);
    assert_eq!(tick(&arenas, 1299), (0, 0, 0, 0));
    assert_eq!(tick(&arenas, 1300), (0, 0, 1, 0));
}

#[test]
fn a_tick_waits_for_no_transaction() {
    let (base, ids) = template();
    let arenas = Arenas::in_memory(base.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", now(0)).expect("leases");
    let during = overlay.transaction(|tx| {
        tx.save(ids.at(7, 0, 0), filled(&base, ids.stone));
        arenas.tick(now(100), &POLICY, ENOUGH)
    });
    let report = during.expect("commits");
    assert_eq!((report.ended, report.work_left), (0, true), "it is in use");
    assert!(overlay.load(ids.at(7, 0, 0)).expect("loads").is_some());
    assert_eq!(tick(&arenas, 100), (1, 0, 0, 1));
    assert_released(overlay.load(ids.at(7, 0, 0)), 0);
}

/// Commits are counted: one for each lease, one for all removals, one for 256 rows.
#[test]
fn a_tick_does_one_step_and_none_when_its_budget_is_over() {
    let (base, ids) = template();
    let arenas = Arenas::in_memory(base.clone(), &options()).expect("a base");
    for name in ["a", "b", "c"] {
        let overlay = arenas.lease(name, now(0)).expect("leases");
        write(&overlay, (10..110).map(|x| (ids.at(x, 0, 0), Some(filled(&base, ids.stone)))));
    }
    let step = |at| {
        let before = arenas.engine().last_commit().get();
        let report = arenas.tick(now(at), &POLICY, Duration::ZERO).expect("ticks");
        (report, arenas.engine().last_commit().get() - before)
    };
    for _ in 0..3 {
        let (report, commits) = step(100);
        assert_eq!((report.ended, report.rows_swept, report.work_left, commits), (1, 0, true, 1));
    }
    let (report, commits) = step(100);
    assert_eq!((report.ended, report.rows_swept, report.work_left, commits), (0, 256, true, 1));
    let (report, commits) = step(100);
    assert_eq!((report.rows_swept, report.work_left, commits), (44, false, 1));
    let (report, commits) = step(300);
    assert_eq!((report.removed, report.work_left, commits), (3, false, 1));
    assert_eq!(step(301), (ArenaReport::default(), 0));
}

/// An arena that is in use is no step: the one behind it has its turn in a tick without time.
#[test]
fn an_arena_that_is_in_use_takes_no_other_s_turn() {
    let (base, _) = template();
    let arenas = Arenas::in_memory(base, &options()).expect("a base");
    let [ada, _grace] = ["ada", "grace"].map(|holder| arenas.lease(holder, now(0)).expect("leases"));
    let in_use = ada.transaction(|_| {
        let report = arenas.tick(now(100), &POLICY, Duration::ZERO)?;
        assert_eq!((report.ended, report.work_left), (1, true), "{report:?}");
        Ok::<_, Error>(())
    });
    in_use.expect("goes on");
    assert_eq!(holders(&arenas), [Some("ada".to_owned()), None]);
    let report = arenas.tick(now(100), &POLICY, Duration::ZERO).expect("ticks");
    assert_eq!(report.ended, 1, "{report:?}");
}

#[test]
fn a_tick_without_an_expired_lease_scans_nothing() {
    let (base, ids) = template();
    let engine = Surviving::new(&Fuse::new());
    let arenas = Arenas::over(engine.clone(), base.clone(), &options()).expect("a base");
    let [ada, grace] = ["ada", "grace"].map(|name| arenas.lease(name, now(0)).expect("leases"));
    for overlay in [&ada, &grace] {
        play(overlay, &base, &ids);
    }
    assert_eq!(tick(&arenas, 0), (0, 0, 0, 0), "the pass after the opening");
    // Every scan that comes here counts it.
    engine.spoil(Family::ChunkL0, key::overlay_chunk(1, ids.at(7, 0, 0)));
    assert_eq!((tick(&arenas, 1), arenas.stats().damage_met), ((0, 0, 0, 0), 0));
    ada.reset().expect("resets");
    assert_eq!((tick(&arenas, 2), arenas.stats().damage_met > 0), ((0, 0, 0, 2), true));
    assert!(grace.load(ids.at(7, 0, 0)).expect("loads").is_some());
}

/// The power goes at each commit of the ticks in turn.
#[test]
fn ticks_that_end_anywhere_go_on() {
    let (base, ids) = template();
    let at = ids.at(7, 0, 0);
    for commits in 0.. {
        let fuse = Fuse::new();
        let engine = Surviving::new(&fuse);
        let arenas = Arenas::over(engine.clone(), base.clone(), &options()).expect("a base");
        let overlays = ["a", "b"].map(|name| arenas.lease(name, now(0)).expect("leases"));
        for overlay in &overlays {
            play(overlay, &base, &ids);
        }
        fuse.set(commits);
        let outcome = arenas.tick(now(100), &POLICY, ENOUGH).and_then(|_| {
            drop(overlays);
            arenas.tick(now(300), &POLICY, ENOUGH)
        });
        assert_eq!(outcome.is_err(), fuse.is_burnt(), "{outcome:?}");
        drop(arenas);
        fuse.set(i64::MAX);

        let arenas = Arenas::over(engine, base.clone(), &options()).expect("opens");
        for (number, holder) in holders(&arenas).into_iter().enumerate().filter(|(_, it)| it.is_some()) {
            let overlay = arenas.resume(number as u32).expect("is leased");
            assert!(overlay.load(at).expect("loads").is_some(), "{holder:?} lost what it wrote");
        }
        tick(&arenas, 400);
        tick(&arenas, 600);
        assert_eq!((arenas.list(), arenas.sweep(100).expect("sweeps")), (vec![], 0), "{commits} commits");
        if outcome.is_ok() {
            assert_eq!(commits, 4, "two leases, a sweep and a removal");
            break;
        }
    }
}
