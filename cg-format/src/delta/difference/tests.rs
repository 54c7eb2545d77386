//! Deltas between chunks: what they do to the older one, and the same from named blocks.

use super::*;
use crate::delta::tests::{CONTENT, Chests, at, encoded, id, room};
use crate::{BlockId, LocalPos};
use alloc::vec::Vec;
use proptest::prelude::*;

/// An edit of a chunk.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Set(CellLayer, u64),
    Push(LocalPos, u64),
    Pop(LocalPos),
    Side(u8),
    Fill(CellLayer),
    Add(u8),
    Remove(u8),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let cell = (0..3_u8, 12..16_u8).prop_map(|(x, z)| LocalPos::new(x, 0, z));
    let place = (cell.clone(), 0..3_u8).prop_map(|(cell, layer)| CellLayer::new(cell, layer));
    let edit = prop_oneof![
        6 => (place.clone(), 0..9_u64).prop_map(|(at, block)| Edit::Set(at, block)),
        2 => (cell.clone(), 0..9_u64).prop_map(|(cell, block)| Edit::Push(cell, block)),
        1 => cell.prop_map(Edit::Pop),
        1 => (0..3_u8).prop_map(Edit::Side),
        1 => place.prop_map(Edit::Fill),
        2 => (0..4_u8).prop_map(Edit::Add),
        2 => (0..4_u8).prop_map(Edit::Remove),
    ];
    proptest::collection::vec(edit, 0..8)
}

fn edit(chunk: &mut Chunk, edit: Edit) {
    // A refused edit leaves the chunk unchanged.
    let _ = match edit {
        Edit::Set(at, block) => chunk.set_layer(at, BlockId::new(block), &Chests).map(drop),
        Edit::Push(cell, block) => chunk.push_layer(cell, BlockId::new(block), &Chests).map(drop),
        Edit::Pop(cell) => {
            let top = chunk.layer_count(cell) as u8 - 1;
            chunk.remove_layer(cell, top.max(1)).map(drop)
        }
        Edit::Fill(at) => chunk.set_component(at, CONTENT, b"silver"),
        Edit::Side(n) => {
            chunk.set_side(crate::SideKind::new(1), std::vec![n]);
            Ok(())
        }
        Edit::Add(n) => {
            chunk.add_entity(id(n.into()));
            Ok(())
        }
        Edit::Remove(n) => {
            chunk.remove_entity(id(n.into()));
            Ok(())
        }
    };
}

/// Names the blocks in which an edit of this chunk may change anything.
fn named(chunk: &Chunk, edit: Edit) -> Vec<CellLayer> {
    let layers_from = |cell, first: usize| {
        let above = first..=chunk.layer_count(cell);
        above.map(move |layer| CellLayer::new(cell, layer as u8)).collect()
    };
    match edit {
        Edit::Set(at, _) => [at].into(),
        Edit::Push(cell, _) => layers_from(cell, chunk.layer_count(cell)),
        Edit::Pop(cell) => layers_from(cell, 1),
        Edit::Side(_) | Edit::Fill(_) | Edit::Add(_) | Edit::Remove(_) => Vec::new(),
    }
}

proptest! {
    #[test]
    fn what_is_between_two_chunks_makes_one_of_the_other(before in edits(), after in edits()) {
        let mut old = room();
        for word in before {
            edit(&mut old, word);
        }
        let mut new = old.clone();
        for word in after {
            edit(&mut new, word);
        }
        if let Some(delta) = Delta::between(&old, &new, &Chests, 64) {
            let mut applied = old.clone();
            delta.apply(&mut applied, &Chests).unwrap();
            prop_assert_eq!(&applied, &new);
            prop_assert_eq!(delta.is_empty(), old == new);
            let sets = delta.sets().len();
            prop_assert_eq!(Delta::between(&old, &new, &Chests, sets), Some(delta));
            prop_assert!(sets == 0 || Delta::between(&old, &new, &Chests, sets - 1).is_none());
        } else {
            // There is no delta only if components or side data differ, or a cell lost a layer.
            let sides = |chunk: &Chunk| chunk.sides().map(|(_, data)| data.to_vec()).collect::<Vec<_>>();
            let fewer = LocalPos::all().any(|cell| new.layer_count(cell) < old.layer_count(cell));
            let moved = old.components().ne(new.components());
            prop_assert!(fewer || moved || sides(&old) != sides(&new), "{old:?} {new:?}");
        }
    }
}

proptest! {
    #[test]
    fn named_blocks_give_the_bytes_of_the_comparison(
        before in edits(),
        after in edits(),
        more in proptest::collection::vec((0..3_u8, 12..16_u8, 0..3_u8), 0..4),
        is_packed in any::<bool>(),
        turn in 0..8_usize,
    ) {
        let mut old = room();
        for word in before {
            edit(&mut old, word);
        }
        let mut new = old.clone();
        let mut names: Vec<_> = more.into_iter().map(|(x, z, layer)| at(x, 0, z, layer)).collect();
        for word in after {
            names.extend(named(&new, word));
            edit(&mut new, word);
        }
        if is_packed {
            new.pack();
        }
        // The order of the names does not matter, nor that some come twice.
        let turn = turn.min(names.len());
        names.rotate_left(turn);
        names.extend_from_within(..turn);
        let compared = Delta::between(&old, &new, &Chests, usize::MAX);
        let of_blocks = Delta::of_named(&old, &new, names, &Chests);
        prop_assert_eq!(of_blocks.as_ref().map(encoded), compared.as_ref().map(encoded));
    }
}

#[test]
fn a_chest_that_was_put_back_has_lost_its_gold() {
    let (old, chest) = (room(), LocalPos::new(0, 0, 15));
    let mut new = old.clone();
    for block in [2, 1] {
        new.set_block(chest, BlockId::new(block), &Chests).unwrap();
    }
    assert_eq!(Delta::of_blocks(&old, &new, [CellLayer::base(chest)], &Chests), None);
    new.set_component(CellLayer::base(chest), CONTENT, b"gold").unwrap();
    assert_eq!(Delta::of_blocks(&old, &new, [CellLayer::base(chest)], &Chests), Some(Delta::new()));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a block that differs was not named")]
fn a_block_that_was_not_named_is_found_by_debug_builds() {
    let mut new = room();
    new.set_block(LocalPos::new(0, 0, 1), BlockId::new(2), &Chests).unwrap();
    new.set_block(LocalPos::new(0, 0, 2), BlockId::new(2), &Chests).unwrap();
    let _ = Delta::of_blocks(&room(), &new, [at(0, 0, 1, 0)], &Chests);
}
