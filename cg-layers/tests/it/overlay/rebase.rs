//! Conflicts between an overlay and its base are decided, value by value.

use cg_layers::{OverlayChoice, OverlayRebased};
use cg_store::WorldOptions;
use cg_store::error::ConflictKey;

use super::*;

/// Both change the first chunk in one block to different kinds, and in one of their own, a cow, and an object.
fn in_conflict(deltas: bool) -> (World, Ids, Overlay<World>) {
    let (base, ids) = template();
    let options = WorldOptions { deltas, ..WorldOptions::ephemeral() };
    let overlay = Overlay::in_memory(base.clone(), &options).expect("a base like any other");
    let own = overlay.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(1, 0, 0), ids.glass)?;
        tx.set_block(ids.overworld, BlockPos::new(3, 0, 0), ids.glass)?;
        tx.move_entity(uuid(1), Owner::Chunk(ids.at(1, 0, 0)))?;
        tx.put_object("game:score", b"ours".as_slice())
    });
    own.expect("edits");
    let theirs = base.transaction(|tx| {
        tx.set_block(ids.overworld, BlockPos::new(2, 0, 0), ids.glass)?;
        tx.set_block(ids.overworld, BlockPos::new(3, 0, 0), ids.stone)?;
        tx.move_entity(uuid(1), Owner::Chunk(ids.at(2, 0, 0)))?;
        tx.put_object("game:score", b"theirs".as_slice())
    });
    theirs.expect("edits");
    overlay.merge_into(&base).expect_err("both have changed the same");
    (base, ids, overlay)
}

fn score(base: &World) -> Vec<u8> {
    base.objects().get("game:score").expect("reads").expect("is there").bytes.to_vec()
}

fn owner(base: &World) -> Owner {
    base.entity(uuid(1)).expect("reads").expect("is there").owner
}

fn block(base: &World, ids: &Ids, x: u8) -> BlockId {
    let chunk = base.load(ids.at(0, 0, 0)).expect("reads").expect("is there");
    chunk.block(LocalPos::new(x, 0, 0))
}

#[test]
fn what_is_asked_stays_in_conflict() {
    let (base, _, overlay) = in_conflict(true);
    let rebased = overlay.rebase(|_| OverlayChoice::Ask).expect("rebases");
    assert_eq!((rebased.ours, rebased.theirs), (0, 0));
    assert!(rebased.open.contains(&ConflictKey::Entity(uuid(1))), "{rebased:?}");
    overlay.merge_into(&base).expect_err("nothing was decided");
}

#[test]
fn the_base_keeps_its_values() {
    for deltas in [true, false] {
        let (base, ids, overlay) = in_conflict(deltas);
        let rebased = overlay.rebase(|_| OverlayChoice::Theirs).expect("rebases");
        assert_eq!((rebased.ours, &rebased.open[..]), (0, &[][..]));
        overlay.merge_into(&base).expect("merges");
        assert_eq!((score(&base), owner(&base)), (b"theirs".to_vec(), Owner::Chunk(ids.at(2, 0, 0))));
        let found = [1, 2, 3].map(|x| block(&base, &ids, x));
        assert_eq!(found, [ids.glass, ids.glass, ids.stone]);
        assert!(overlay.diff().expect("compares").is_empty());
        crate::fixture::assert_sound(&base);
    }
}

#[test]
fn the_overlay_keeps_its_values() {
    for deltas in [true, false] {
        let (base, ids, overlay) = in_conflict(deltas);
        let rebased = overlay.rebase(|_| OverlayChoice::Ours).expect("rebases");
        assert_eq!((rebased.theirs, &rebased.open[..]), (0, &[][..]));
        overlay.merge_into(&base).expect("merges");
        assert_eq!((score(&base), owner(&base)), (b"ours".to_vec(), Owner::Chunk(ids.at(1, 0, 0))));
        assert_eq!([1, 2, 3].map(|x| block(&base, &ids, x)), [ids.glass; 3]);
        crate::fixture::assert_sound(&base);
    }
}

#[test]
fn a_merged_chunk_is_accepted_after_the_host_decided() {
    let (base, ids, overlay) = in_conflict(false);
    let mut chunk = base.load(ids.at(0, 0, 0)).expect("reads").expect("is there").as_ref().clone();
    chunk.set_block(LocalPos::new(1, 0, 0), ids.glass, &base.catalog().current_schema()).expect("known");
    overlay.transaction(|tx| tx.save_blocks(ids.at(0, 0, 0), chunk)).expect("is saved");
    let chunks_ours = |key: &ConflictKey| match key {
        ConflictKey::Chunk(_) => OverlayChoice::Ours,
        _ => OverlayChoice::Theirs,
    };
    overlay.rebase(chunks_ours).expect("rebases");
    overlay.merge_into(&base).expect("merges");
    assert_eq!((block(&base, &ids, 1), block(&base, &ids, 2)), (ids.glass, ids.glass));
    assert_eq!((score(&base), owner(&base)), (b"theirs".to_vec(), Owner::Chunk(ids.at(2, 0, 0))));
    crate::fixture::assert_sound(&base);
    // Nothing is left to decide, and what the base changes later is in conflict again.
    assert_eq!(overlay.rebase(|_| OverlayChoice::Theirs).expect("rebases"), OverlayRebased::default());
}
