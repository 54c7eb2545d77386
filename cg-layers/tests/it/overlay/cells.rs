//! Edits of one chunk by an overlay and its base: merged by cells, and decided by choice where both edited the same cell.

use cg_layers::{OverlayChoice, OverlayError, OverlayRebased};
use cg_store::WorldOptions;
use cg_store::error::ConflictKey;
use proptest::prelude::*;

use cg_format::chunk::CellLayer;

use super::*;
use crate::fixture::assert_sound;

fn overlay_of(base: &World, deltas: bool) -> Overlay<World> {
    let options = WorldOptions { deltas, ..options() };
    Overlay::in_memory(base.clone(), &options).expect("a base like any other")
}

fn cell(x: u8) -> LocalPos {
    LocalPos::new(x, 5, 6)
}

fn pos(x: u8) -> BlockPos {
    BlockPos::new(x.into(), 5, 6)
}

#[track_caller]
fn edit(world: &World, at: ChunkAt, change: impl FnOnce(&mut Chunk)) {
    let mut chunk = world.load(at).expect("reads").expect("is there").as_ref().clone();
    change(&mut chunk);
    world.transaction(|tx| tx.save_blocks(at, chunk)).expect("saves");
}

#[track_caller]
fn edit_here(overlay: &Overlay<World>, at: ChunkAt, change: impl FnOnce(&mut Chunk)) {
    let edited = overlay.transaction(|tx| {
        let mut chunk = tx.load(at)?.expect("is there").as_ref().clone();
        change(&mut chunk);
        tx.save_blocks(at, chunk)
    });
    edited.expect("saves");
}

/// The keys in conflict, after a merge was refused with one of them.
#[track_caller]
fn refused(overlay: &Overlay<World>, base: &World) -> Vec<ConflictKey> {
    let error = overlay.merge_into(base).expect_err("both have changed the same");
    let open = overlay.rebase(|_| OverlayChoice::Ask).expect("compares").open;
    assert!(
        matches!(error.layer(), Some(OverlayError::BaseChanged { key, .. }) if open.contains(key)),
        "{error}"
    );
    open
}

#[test]
fn edits_of_different_cells_merge_without_a_question() {
    for deltas in [true, false] {
        let (base, ids) = template();
        let (at, overlay, schema) =
            (ids.at(0, 0, 0), overlay_of(&base, deltas), base.catalog().current_schema());
        edit(&base, at, |chunk| {
            chunk.set_block(cell(9), ids.machine, &schema).expect("known");
        });
        edit_here(&overlay, at, |chunk| {
            chunk.set_block(cell(1), ids.machine, &schema).expect("known");
            chunk.set_component(CellLayer::base(cell(1)), ids.items, b"ours").expect("has it");
            chunk.push_layer(cell(2), ids.glass, &schema).expect("has room");
            chunk.set_side(ids.light, vec![7]);
        });
        edit(&base, at, |chunk| {
            chunk.set_block(cell(3), ids.stone, &schema).expect("known");
            chunk.set_component(CellLayer::base(cell(9)), ids.items, b"theirs").expect("has it");
            chunk.push_layer(cell(4), ids.stone, &schema).expect("has room");
        });
        // One is made in each, and the base's cow leaves.
        let theirs = base.transaction(|tx| {
            tx.put_entity(uuid(2), ids.cow_in(at));
            Ok::<_, Error>(())
        });
        theirs.expect("puts");
        base.transaction(|tx| tx.move_entity(uuid(1), Owner::Chunk(ids.at(1, 0, 0)))).expect("moves");
        let here = overlay.transaction(|tx| {
            tx.put_entity(uuid(3), ids.cow_in(at));
            Ok::<_, Error>(())
        });
        here.expect("puts");

        assert_eq!(overlay.rebase(|key| panic!("{key}")).expect("compares"), OverlayRebased::default());
        overlay.merge_into(&base).expect("merges");
        let chunk = base.load(at).expect("reads").expect("is there");
        assert_eq!(chunk.component(CellLayer::base(cell(1)), ids.items), Some(&b"ours"[..]));
        assert_eq!(chunk.component(CellLayer::base(cell(9)), ids.items), Some(&b"theirs"[..]));
        assert_eq!(chunk.layer(cell(2), 1), Some(ids.glass));
        assert_eq!((chunk.block(cell(3)), chunk.layer(cell(4), 1)), (ids.stone, Some(ids.stone)));
        assert_eq!(chunk.side(ids.light), Some(&[7][..]));
        assert_eq!(chunk.entities(), [uuid(2), uuid(3)]);
        assert_eq!(overlay.load(at).expect("reads").as_ref(), Some(&chunk));
        assert_sound(&base);
    }
}

#[test]
fn edits_in_turn_merge_also_after_reopening() {
    for deltas in [true, false] {
        let (base, ids) = template();
        let (disk, options) = (Disk::new(), WorldOptions { deltas, ..options() });
        let (folder, at) = (disk.root().join("arena"), ids.at(0, 0, 0));
        let mut overlay = Overlay::create(&folder, base.clone(), &options).expect("an empty directory");
        let machine = |overlay: &Overlay<World>, x| {
            let schema = base.catalog().current_schema();
            edit_here(overlay, at, |chunk| {
                chunk.set_block(cell(x), ids.machine, &schema).expect("known");
            });
        };
        for x in 0..8 {
            let set = overlay.transaction(|tx| tx.set_block(ids.overworld, pos(x), ids.glass));
            set.expect("edits");
            base.transaction(|tx| tx.set_block(ids.overworld, pos(x + 8), ids.stone)).expect("edits");
            if x == 5 {
                machine(&overlay, 5);
                drop(overlay);
                overlay = Overlay::open(&folder, base.clone(), &options).expect("opens");
            }
        }
        overlay.merge_into(&base).expect("merges");
        let chunk = base.load(at).expect("reads").expect("is there");
        let found = (0..16).map(|x| chunk.block(cell(x))).collect::<Vec<_>>();
        let mut expected = [[ids.glass; 8], [ids.stone; 8]].concat();
        expected[5] = ids.machine;
        assert_eq!(found, expected);
        assert_sound(&base);
    }
}

#[test]
fn a_cell_that_both_changed_is_a_conflict_about_this_cell() {
    for deltas in [true, false] {
        for choice in [OverlayChoice::Ours, OverlayChoice::Theirs] {
            let (base, ids) = template();
            let (at, overlay) = (ids.at(0, 0, 0), overlay_of(&base, deltas));
            let set = |x, block| move |tx: &mut Transaction<'_>| tx.set_block(ids.overworld, pos(x), block);
            let own = overlay.transaction(|tx| {
                tx.set_block(ids.overworld, pos(1), ids.glass)?;
                tx.set_block(ids.overworld, pos(2), ids.glass)?;
                tx.set_block(ids.overworld, pos(3), ids.glass)
            });
            own.expect("edits");
            // The same edit in both is none.
            base.transaction(set(3, ids.glass)).expect("edits");
            base.transaction(set(2, ids.stone)).expect("edits");
            base.transaction(set(4, ids.stone)).expect("edits");
            let put = base.transaction(|tx| {
                tx.put_entity(uuid(2), ids.cow_in(at));
                Ok::<_, Error>(())
            });
            put.expect("puts");
            assert_eq!(refused(&overlay, &base), [ConflictKey::Chunk(at)]);
            overlay.rebase(|_| choice).expect("rebases");
            let asked = overlay.rebase(|key| panic!("{key}")).expect("compares");
            assert_eq!(asked, OverlayRebased::default());
            let disputed = if choice == OverlayChoice::Ours { ids.glass } else { ids.stone };
            let expected = [ids.glass, disputed, ids.glass, ids.stone];
            overlay.merge_into(&base).expect("merges");
            let chunk = base.load(at).expect("reads").expect("is there");
            assert_eq!([1, 2, 3, 4].map(|x| chunk.block(cell(x))), expected);
            assert_eq!(chunk.entities(), [uuid(1), uuid(2)]);
            assert_sound(&base);
        }
    }
}

#[test]
fn components_of_one_cell_and_side_data_of_one_kind_are_one_value() {
    for deltas in [true, false] {
        let (base, ids) = template();
        let (at, schema) = (ids.at(0, 0, 0), base.catalog().current_schema());
        edit(&base, at, |chunk| {
            chunk.set_block(cell(1), ids.machine, &schema).expect("known");
        });
        let overlay = overlay_of(&base, deltas);
        let place = CellLayer::base(cell(1));
        edit_here(&overlay, at, |chunk| chunk.set_component(place, ids.items, b"ours").expect("has it"));
        edit(&base, at, |chunk| chunk.set_component(place, ids.power, &[1; 4]).expect("has it"));
        assert_eq!(refused(&overlay, &base), [ConflictKey::Chunk(at)]);
        overlay.rebase(|_| OverlayChoice::Theirs).expect("rebases");
        edit_here(&overlay, at, |chunk| drop(chunk.set_side(ids.light, vec![1])));
        edit(&base, at, |chunk| drop(chunk.set_side(ids.light, vec![2])));
        assert_eq!(refused(&overlay, &base), [ConflictKey::Chunk(at)]);
        overlay.rebase(|_| OverlayChoice::Ours).expect("rebases");
        overlay.merge_into(&base).expect("merges");
        let chunk = base.load(at).expect("reads").expect("is there");
        let found =
            (chunk.component(place, ids.items), chunk.component(place, ids.power), chunk.side(ids.light));
        assert_eq!(found, (Some(&[][..]), Some(&[1; 4][..]), Some(&[1][..])));
    }
}

#[test]
fn a_chunk_is_one_value_where_one_side_deleted_or_both_created_it() {
    let (base, ids) = template();
    let overlay = over(&base);
    let (deleted, created) = (ids.at(1, 0, 0), ids.at(9, 0, 0));
    write(&overlay, [(deleted, None), (created, Some(marked(&base, &ids, 1)))]);
    edit(&base, deleted, |chunk| chunk.remap_blocks(|_| ids.glass));
    save(&base, [(created, marked(&base, &ids, 2))]);
    assert_eq!(refused(&overlay, &base), [ConflictKey::Chunk(deleted), ConflictKey::Chunk(created)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Both edit some of 24 cells in any order. What only one edited is in the result; if no cell was ever different in
    /// both, there is no conflict.
    #[test]
    fn a_merge_takes_every_edit_or_names_the_conflict(
        deltas in any::<bool>(),
        edits in prop::collection::vec((any::<bool>(), 0..24_u8, 0..3_usize), 1..20),
    ) {
        let (base, ids) = template();
        let (at, overlay, schema) = (ids.at(0, 0, 0), overlay_of(&base, deltas), base.catalog().current_schema());
        let place = |number: u8| LocalPos::new(number % 16, 5 + number / 16, 6);
        let (mut ours, mut theirs) = ([None; 24], [None; 24]);
        let mut was_disputed = false;
        for (is_ours, number, kind) in edits {
            let block = [ids.stone, ids.glass, ids.machine][kind];
            let set = |chunk: &mut Chunk| { chunk.set_block(place(number), block, &schema).expect("known"); };
            let number = usize::from(number);
            if is_ours {
                edit_here(&overlay, at, set);
                ours[number] = Some(block);
            } else {
                edit(&base, at, set);
                theirs[number] = Some(block);
            }
            was_disputed |= ours[number] != theirs[number] && ours[number].is_some() && theirs[number].is_some();
        }
        let merged = overlay.merge_into(&base);
        if merged.is_err() {
            prop_assert!(was_disputed);
            prop_assert_eq!(refused(&overlay, &base), [ConflictKey::Chunk(at)]);
            let rebased = overlay.rebase(|_| OverlayChoice::Ours).unwrap();
            prop_assert_eq!((rebased.ours, rebased.theirs, rebased.open.len()), (1, 0, 0));
            overlay.merge_into(&base).unwrap();
        }
        let chunk = base.load(at).unwrap().unwrap();
        for ((number, ours), theirs) in (0..).zip(ours).zip(theirs) {
            let found = chunk.block(place(number));
            match (ours, theirs) {
                (None, None) => prop_assert_eq!(found, ids.air),
                (Some(only), None) => prop_assert_eq!(found, only),
                // Where a chunk is decided as a whole, the base's edits since the overlay's last one are gone.
                (None, Some(only)) => prop_assert!(found == only || was_disputed),
                (Some(ours), Some(theirs)) => prop_assert!(found == ours || found == theirs),
            }
        }
    }
}
