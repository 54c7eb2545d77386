//! Arenas over a segmented world that clean up by themselves, while a merge of one has stopped.

use std::time::Duration;

use cg_layers::{ArenaPolicy, ArenaReport, Arenas, Base};
use cg_tiering::GameTick;

use super::merge::{content, edit, pave, shown};
use super::transfer::Crashing;
use super::*;

fn tick<S: Base>(arenas: &Arenas<S>) -> ArenaReport {
    let policy =
        ArenaPolicy { end_after_ticks: Some(10), reclaim_after_ticks: Some(0), remove_after_ticks: Some(0) };
    arenas.tick(GameTick::new(10), &policy, Duration::from_secs(600)).expect("ticks")
}

/// A merge into four segments stops at each of its commits in turn, with or without a restart, and the lease is over. What
/// is merged in part stays until the merge goes on; what is not merged at all goes.
#[test]
fn a_lease_that_is_over_keeps_what_a_stopped_merge_has_left() {
    for is_killed in [false, true] {
        let (mut kept, mut gone) = (0, 0);
        for commits in 0.. {
            let home = Crashing::new();
            let above = home.another();
            let mut world = home.open(true);
            let ids = register(&world);
            pave(&world, &ids);
            let before = content(&world, &ids);
            let mut arenas = Arenas::over(above.clone(), world.clone(), &options()).expect("a base");
            let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
            edit(&overlay, &ids);
            let after = shown(&overlay, &ids);
            home.fuse.set(commits);
            let is_whole = overlay.merge_into(&world).is_ok();
            home.fuse.set(i64::MAX);
            let mut held = Some(overlay);
            if is_killed {
                drop((held.take(), arenas, world));
                world = home.open(false);
                arenas = Arenas::over(above, world.clone(), &options()).expect("the same base");
            }
            let report = tick(&arenas);
            if report.kept_for_merge == 1 {
                assert_eq!((report.ended, report.reclaimed, report.removed), (0, 0, 0));
                let overlay = held.take().map_or_else(|| arenas.resume(0), Ok).expect("is leased");
                overlay.merge_into(&world).unwrap_or_else(|error| panic!("{commits} commits: {error}"));
                assert_eq!(content(&world, &ids), after, "{commits} commits");
                kept += 1;
                drop(overlay);
                assert_eq!(tick(&arenas).ended, 1, "the merge is over");
            } else {
                assert_eq!(report.ended, 1, "{report:?}");
                let expected = if is_whole { &after } else { &before };
                assert_eq!(&content(&world, &ids), expected, "{commits} commits");
                gone += u32::from(!is_whole);
            }
            if is_whole {
                break;
            }
        }
        assert!(kept >= 12 && gone >= 1, "{kept} were kept, {gone} had not begun");
    }
}

/// A batch over a border, which a segmented world refuses, is one transaction of an overlay over it.
#[test]
fn what_was_submitted_to_an_overlay_is_merged_into_segments() {
    let (world, ids) = in_memory();
    pave(&world, &ids);
    let overlay = Overlay::in_memory(world.clone(), &options()).expect("a base");
    let mut batch = WriteBatch::new();
    batch.set_block(ids.overworld, BlockPos::new(0, 0, 0), ids.glass);
    batch.set_block(ids.overworld, BlockPos::new(256, 0, 0), ids.glass);
    batch.set_property(Property::Named(name("game:rule")), Some(vec![7]));
    let ticket = overlay.submit(batch).expect("takes");
    assert_eq!(overlay.merge_into(&world).expect("merges").changes, 3);
    assert!(ticket.is_finished() && ticket.wait().is_ok());
    for x in [0, 16] {
        let chunk = world.load(ids.at(x, 0, 0)).expect("loads").expect("is there");
        assert_eq!(chunk.block(LocalPos::new(0, 0, 0)), ids.glass);
    }
}
