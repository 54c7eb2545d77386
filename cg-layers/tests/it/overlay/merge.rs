//! Merging an overlay into its base: everything or nothing, also when it is killed.

use cg_store::{StoreLimits, WorldOptions};
use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{assert_sound, name};
use crate::surviving::{Fuse, Surviving};

/// Everything in the box that the tests use.
fn content(world: &World, ids: &Ids) -> Vec<(i64, Option<Chunk>)> {
    (0..12).map(|x| (x, world.load(ids.at(x, 0, 0)).expect("loads").as_deref().cloned())).collect()
}

fn edit<S: Base>(overlay: &Overlay<S>, ids: &Ids) {
    let edited = overlay.transaction(|tx| {
        let schema = tx.catalog().current_schema();
        tx.delete(ids.at(2, 0, 0));
        tx.set_block(ids.overworld, BlockPos::new(17, 3, 3), ids.glass)?;
        tx.save(ids.at(9, 0, 0), Chunk::filled(ids.stone, &schema).expect("known"));
        tx.put_entity(uuid(2), ids.cow_in(ids.at(9, 0, 0)));
        tx.move_entity(uuid(1), Owner::Chunk(ids.at(3, 0, 0)))
    });
    assert!(edited.expect("edits"));
}

#[test]
fn a_promotion_gives_the_base_what_the_overlay_shows() {
    let (base, ids) = template();
    let overlay = over(&base);
    edit(&overlay, &ids);
    let shown: Vec<_> =
        (0..12).map(|x| (x, overlay.load(ids.at(x, 0, 0)).expect("loads").as_deref().cloned())).collect();
    let merged = overlay.merge_into(&base).expect("merges");
    assert_eq!(merged.changes, 7, "chunks 0, 1, 2, 3 and 9, and two entities");
    assert_eq!(content(&base, &ids), shown);
    assert!(overlay.diff().expect("compares").is_empty());
    assert_eq!(
        base.entity(uuid(2)).expect("reads").map(|cow| cow.owner),
        Some(Owner::Chunk(ids.at(9, 0, 0)))
    );
    assert_sound(&base);
    assert_eq!(overlay.merge_into(&base).expect("merges").changes, 0);
}

#[test]
fn names_of_the_overlay_are_the_bases_afterwards() {
    let (base, ids) = template();
    let overlay = over(&base);
    let own = Registration {
        components: vec![ComponentOffer::fixed(name("duel:score"), 2)],
        blocks: vec![BlockOffer {
            components: vec![name("duel:score")],
            opaque: false,
            ..BlockOffer::new(name("duel:flag"))
        }],
        dimensions: vec![name("duel:field")],
        ..Registration::default()
    };
    let flag = overlay.register(&own).expect("registers").block_id("duel:flag").expect("just registered");
    overlay
        .transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(1, 1, 1), flag))
        .expect("a chunk of the template");
    overlay.merge_into(&base).expect("merges");
    let catalog = base.catalog();
    assert_eq!(catalog.block_id("duel:flag"), Some(flag));
    assert_eq!(catalog.dimension("duel:field").map(Dimension::get), Some(2));
    let chunk = base.load(ids.at(0, 0, 0)).expect("loads").expect("is stored");
    assert_eq!(chunk.block(LocalPos::new(1, 1, 1)), flag);
    base.registry().register_dimension("game:moon").expect("registers");
    assert!(overlay.catalog().is_ok(), "it has no names of its own any more");
}

#[test]
fn what_the_base_changed_since_is_not_undone() {
    let (base, ids) = template();
    let overlay = over(&base);
    let at = ids.at(1, 0, 0);
    write(&overlay, [(at, Some(filled(&base, ids.glass))), (ids.at(0, 0, 0), None)]);
    save(&base, [(at, filled(&base, ids.stone))]);
    let before = content(&base, &ids);
    let refused = overlay.merge_into(&base).expect_err("is refused");
    check(
        &refused,
        expect![
            "chunk 1, 0, 0 of dimension 0 was version 4 when the overlay wrote over it, and is version 6 in the base now; decide which of both is to stay"
        ],
    );
    assert_eq!(content(&base, &ids), before, "nothing was merged");
    assert_eq!(
        overlay.load(at).expect("loads").as_deref(),
        Some(&filled(&base, ids.glass)),
        "nothing was lost"
    );
    // Once it is the same again, it is no conflict.
    write(&overlay, [(at, Some(filled(&base, ids.stone)))]);
    overlay.merge_into(&base).expect("merges");
    let overlay = over(&base);
    write(&overlay, [(ids.at(8, 0, 0), Some(filled(&base, ids.glass)))]);
    save(&base, [(ids.at(8, 0, 0), filled(&base, ids.stone))]);
    check(
        &overlay.merge_into(&base).expect_err("is refused"),
        expect![
            "chunk 8, 0, 0 of dimension 0 was absent when the overlay wrote over it, and is version 8 in the base now; decide which of both is to stay"
        ],
    );
}

#[track_caller]
fn check(error: &Error, expected: Expect) {
    expected.assert_eq(&error.to_string());
}

#[test]
fn a_promotion_may_be_larger_than_a_batch() {
    let limits = StoreLimits { batch_bytes: 20_000, ..StoreLimits::default() };
    let small = WorldOptions { limits, ..options() };
    let base = World::builder().options(&small).in_memory().expect("a world");
    let ids = Ids::register(&base);
    let overlay = over(&base);
    write(&overlay, (0..300).map(|x| (ids.at(x, 0, 0), Some(marked(&base, &ids, x as u16)))));
    assert_eq!(overlay.merge_into(&base).expect("merges").changes, 300);
    assert_eq!(base.metrics().stats.commits_staged, 1);
    assert!(overlay.diff().expect("compares").is_empty());
    for x in 0..300 {
        let chunk = base.load(ids.at(x, 0, 0)).expect("loads");
        assert_eq!(chunk.as_deref(), Some(&marked(&base, &ids, x as u16)));
    }
    assert_sound(&base);
}

/// An overlay takes a transaction that is larger than a batch whole or not at all, whichever of its commits is the last.
#[test]
fn a_large_transaction_of_an_overlay_is_whole_or_nothing() {
    let limits = StoreLimits { batch_bytes: 3000, ..StoreLimits::default() };
    let small = WorldOptions { limits, cache_bytes: 0, ..options() };
    let (base, ids) = template();
    let (mut nothing, mut whole) = (0, 0);
    for commits in 0.. {
        let fuse = Fuse::new();
        let above = Surviving::new(&fuse);
        let open = || Arenas::over(above.clone(), base.clone(), &small).expect("the same base");
        let arenas = open();
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        fuse.set(commits);
        let written = overlay.transaction(|tx| {
            for x in 0..40 {
                tx.save(ids.at(x, 0, 0), filled(&base, ids.glass));
            }
            tx.put_entity(uuid(7), ids.cow_in(ids.at(30, 0, 0)));
            Ok::<_, Error>(())
        });
        let is_burnt = fuse.is_burnt();
        assert_eq!(written.is_ok(), !is_burnt, "{written:?}");
        fuse.set(i64::MAX);
        // Who goes on to read hears of it, if half of it is in the rows; as before or as after otherwise.
        let seen = overlay.load(ids.at(39, 0, 0)).map(|chunk| chunk.is_some());
        let read = overlay.load(ids.at(30, 0, 0)).map(|chunk| chunk.is_some());
        assert!(
            matches!((&seen, &read), (Ok(a), Ok(b)) if a == b) || (seen.is_err() && read.is_err()),
            "{seen:?}, {read:?}"
        );
        drop((overlay, arenas));
        let overlay = open().resume(0).expect("is leased");
        let diff = overlay.diff().expect("compares");
        let is_whole = !diff.chunks.is_empty();
        assert_eq!((diff.chunks.len(), diff.entities.len()), if is_whole { (40, 2) } else { (0, 0) });
        *(if is_whole { &mut whole } else { &mut nothing }) += 1;
        assert!(is_whole || whole == 0);
        if !is_burnt {
            break;
        }
    }
    assert!(nothing > 2 && whole > 3, "{nothing} and {whole}");
}

#[test]
fn an_overlay_merges_into_an_overlay() {
    let (base, ids) = template();
    let lower = over(&base);
    let upper = over(&lower);
    write(&lower, [(ids.at(1, 0, 0), Some(filled(&base, ids.stone)))]);
    edit(&upper, &ids);
    upper.merge_into(&lower).expect("merges");
    assert_eq!(lower.load(ids.at(2, 0, 0)).expect("loads"), None);
    assert!(upper.diff().expect("compares").is_empty());
    lower.merge_into(&base).expect("merges");
    assert_eq!(base.load(ids.at(2, 0, 0)).expect("loads"), None);
    assert_sound(&base);
}

/// A promotion of which each commit fails in turn, in the base or in the overlay: when both are opened again the base has
/// all of it or nothing, and promoting again brings it to its end.
#[test]
fn a_promotion_that_ends_anywhere_is_whole_or_nothing() {
    // The base gets the names, the overlay notes it, and that a merge begins; the base gets the changes, the overlay is
    // emptied and notes that the merge has ended, at once.
    assert_eq!(ends_anywhere(&options()), [false, false, false, false, true, true]);
    let limits = StoreLimits { batch_bytes: 500, ..StoreLimits::default() };
    let in_parts = ends_anywhere(&WorldOptions { limits, ..options() });
    assert!(in_parts.len() > 8 && in_parts.is_sorted(), "{in_parts:?}");
}

fn ends_anywhere(options: &WorldOptions) -> Vec<bool> {
    let mut whole = Vec::new();
    for commits in 0.. {
        let fuse = Fuse::new();
        let (below, above) = (Surviving::new(&fuse), Surviving::new(&fuse));
        let open = || {
            fuse.set(i64::MAX);
            let base = World::builder().options(options).over(below.clone());
            let base = base.expect("a world");
            let arenas = Arenas::over(above.clone(), base.clone(), options).expect("the same base");
            (base, arenas)
        };
        let (base, arenas) = open();
        let ids = Ids::register(&base);
        save(&base, (0..4).map(|x| (ids.at(x, 0, 0), marked(&base, &ids, x as u16))));
        put_cow(&base, ids.cow_in(ids.at(0, 0, 0)));
        let before = content(&base, &ids);
        let overlay = arenas.lease("a", GameTick::new(0)).expect("leases");
        let own = Registration { dimensions: vec![name("duel:field")], ..Registration::default() };
        overlay.register(&own).expect("registers");
        edit(&overlay, &ids);
        let shown = |x| overlay.load(ids.at(x, 0, 0)).expect("loads").as_deref().cloned();
        let after: Vec<_> = (0..12).map(|x| (x, shown(x))).collect();
        fuse.set(commits);
        let merged = overlay.merge_into(&base);
        let is_burnt = fuse.is_burnt();
        assert_eq!(merged.is_ok(), !is_burnt, "{merged:?}");
        drop((overlay, arenas, base));

        let (base, arenas) = open();
        let now = content(&base, &ids);
        assert!(now == before || now == after, "{commits} commits left a part");
        whole.push(now == after);
        let overlay = arenas.resume(0).expect("is leased");
        overlay.merge_into(&base).expect("merges");
        assert_eq!(content(&base, &ids), after, "{commits} commits");
        assert!(overlay.diff().expect("compares").is_empty());
        assert_sound(&base);
        if !is_burnt {
            break;
        }
    }
    whole
}
