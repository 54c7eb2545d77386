//! Deltas: the pinned layout, refused input, and the laws of merging and applying.

use super::*;
use crate::testing::{annotated, golden};
use crate::{ComponentId, ComponentShape};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::format;
use std::string::ToString;

pub(super) fn at(x: u8, y: u8, z: u8, layer: u8) -> CellLayer {
    CellLayer::new(LocalPos::new(x, y, z), layer)
}

pub(super) fn id(number: u128) -> EntityId {
    EntityId::new(uuid::Uuid::from_u128(number))
}

/// A lamp set in a flooded cell, one added mob, two removed ones.
fn evening() -> Delta {
    let mut delta = Delta::new();
    delta.set_block(at(1, 2, 3, 1), BlockId::new(4));
    delta.set_block(at(1, 2, 3, 0), BlockId::new(300));
    delta.add_entity(id(0x0123_4567_89ab_4cde_8f01_2345_6789_abcd));
    delta.remove_entity(id(2));
    delta.remove_entity(id(1));
    delta
}

/// The offset of the first reference of [`evening`].
const ADDED_AT: usize = 5 + 2 * 11 + 4;
/// The offset of the first removed one.
const REMOVED_AT: usize = ADDED_AT + 16 + 4;

pub(super) fn encoded(delta: &Delta) -> Vec<u8> {
    let mut out = Vec::new();
    delta.encode(&mut out);
    out
}

#[track_caller]
fn check_error(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&Delta::decode(bytes).unwrap_err().to_string());
}

/// The evening with some bytes replaced.
#[track_caller]
fn check_changed(at: usize, bytes: &[u8], expected: Expect) {
    let mut evening = encoded(&evening());
    evening[at..at + bytes.len()].copy_from_slice(bytes);
    check_error(&evening, expected);
}

#[test]
fn bytes_are_pinned() {
    for (name, delta) in [("evening", evening()), ("empty", Delta::new())] {
        let bytes = encoded(&delta);
        golden(&format!("delta/{name}"), &bytes, &format!("{delta:#?}\n"));
        let (fields, read) = Delta::trace(&bytes);
        assert_eq!(read, Ok(delta));
        insta::assert_snapshot!(name, annotated(&bytes, &fields));
    }
}

#[test]
fn wrong_sets_are_named() {
    check_error(&[], expect!["delta: delta version needs 1 bytes and 0 are left (at byte 0)"]);
    check_changed(0, &[0], expect!["delta: delta version is 0, allowed is 1 and up (at byte 0)"]);
    check_changed(
        0,
        &[2],
        expect!["delta: delta version is 2, and this release reads up to 1; use a newer release (at byte 0)"],
    );
    check_changed(
        1,
        &u32::MAX.to_le_bytes(),
        expect!["delta: 4294967295 sets of 11 bytes exceed the 78 bytes left (at byte 1)"],
    );
    check_changed(
        5,
        &4096_u16.to_le_bytes(),
        expect!["delta: set cell is 4096, allowed is 0 to 4095 (at byte 5)"],
    );
    check_changed(7, &[1], expect!["delta: set cell 291 appears twice (at byte 16)"]);
    check_changed(
        7,
        &[2],
        expect!["delta: set cell is 291, allowed is a cell and layer above those before them (at byte 16)"],
    );
}

#[test]
fn wrong_references_are_named() {
    check_changed(
        ADDED_AT - 4,
        &[4],
        expect!["delta: 4 added of 16 bytes exceed the 52 bytes left (at byte 27)"],
    );
    check_changed(
        REMOVED_AT - 4,
        &[3],
        expect!["delta: 3 removed of 16 bytes exceed the 32 bytes left (at byte 47)"],
    );
    check_changed(
        REMOVED_AT - 4,
        &[1],
        expect!["delta: bytes after the references must be zero or absent, found 16 (at byte 67)"],
    );
    check_changed(REMOVED_AT, &id(2).to_bytes(), expect!["delta: removed 0 appears twice (at byte 67)"]);
    check_changed(
        REMOVED_AT,
        &id(u128::MAX).to_bytes(),
        expect!["delta: removed is 0, allowed is a UUID above the one before it (at byte 67)"],
    );
    // A reference both added and removed.
    check_changed(ADDED_AT, &id(2).to_bytes(), expect!["delta: removed 0 appears twice (at byte 67)"]);
}

#[test]
fn the_later_word_counts() {
    let mut delta = Delta::new();
    assert!(delta.is_empty());
    delta.add_entity(id(1));
    delta.remove_entity(id(1));
    assert_eq!((delta.added().len(), delta.removed().collect::<Vec<_>>()), (0, [id(1)].into()));
    delta.add_entity(id(1));
    assert_eq!((delta.added().collect::<Vec<_>>(), delta.removed().len()), ([id(1)].into(), 0));
    delta.set_block(at(0, 0, 0, 0), BlockId::new(1));
    delta.set_block(at(0, 0, 0, 0), BlockId::new(2));
    assert_eq!(delta.sets().collect::<Vec<_>>(), [(at(0, 0, 0, 0), BlockId::new(2))]);
}

/// One change of a chunk.
#[derive(Debug, Clone, Copy)]
enum Word {
    Set(CellLayer, BlockId),
    Add(EntityId),
    Remove(EntityId),
}

/// The delta with these changes in order.
fn delta_of(words: impl IntoIterator<Item = Word>) -> Delta {
    let mut delta = Delta::new();
    for word in words {
        match word {
            Word::Set(at, block) => delta.set_block(at, block),
            Word::Add(id) => delta.add_entity(id),
            Word::Remove(id) => delta.remove_entity(id),
        }
    }
    delta
}

/// Changes of few places, so that they collide.
fn any_words() -> impl Strategy<Value = Vec<Word>> {
    let word = prop_oneof![
        (0_u8..3, 14_u8..16, 0_u64..9)
            .prop_map(|(x, z, block)| Word::Set(at(x, 0, z, 0), BlockId::new(block))),
        (0_u128..6).prop_map(|number| Word::Add(id(number << 90))),
        (0_u128..6).prop_map(|number| Word::Remove(id(number << 90))),
    ];
    proptest::collection::vec(word, 0..12)
}

fn any_delta() -> impl Strategy<Value = Delta> {
    let anywhere = (0_u16..4096, any::<u8>(), any::<u64>()).prop_map(|(index, layer, block)| {
        Word::Set(CellLayer::new(LocalPos::from_index(index).unwrap(), layer), BlockId::new(block))
    });
    let anywhere = proptest::collection::vec(anywhere, 0..4);
    (any_words(), anywhere).prop_map(|(words, more)| delta_of(words.into_iter().chain(more)))
}

proptest! {
    #[test]
    fn deltas_come_back(delta in any_delta()) {
        let bytes = encoded(&delta);
        prop_assert_eq!(Delta::decode(&bytes), Ok(delta));
        for len in 0..bytes.len() {
            prop_assert!(Delta::decode(&bytes[..len]).is_err(), "cut to {} bytes", len);
        }
    }

    #[test]
    fn a_changed_byte_is_an_error_or_another_delta(delta in any_delta(), change in 1_u8..) {
        let bytes = encoded(&delta);
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= change;
            if let Ok(other) = Delta::decode(&changed) {
                prop_assert_eq!(encoded(&other), changed, "byte {}", place);
                prop_assert_ne!(&other, &delta);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_delta_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(delta) = Delta::decode(&bytes) {
            prop_assert_eq!(encoded(&delta), bytes);
        }
    }

    #[test]
    fn merging_is_saying_one_after_the_other(words in any_words(), cut in 0_usize..12) {
        let (first, then) = words.split_at(cut.min(words.len()));
        let [all, mut merged, later] = [&words, first, then].map(|words| delta_of(words.iter().copied()));
        merged.merge(&later);
        prop_assert_eq!(&merged, &all);
        merged.merge(&later);
        prop_assert_eq!(merged, all, "saying it again changes nothing");
    }
}

/// Block 1 is a chest with a component; blocks from 100 on are unknown.
pub(super) struct Chests;

pub(super) const CONTENT: ComponentId = ComponentId::variable(0);

impl SchemaView for Chests {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        match block.get() {
            1 => Some(&[CONTENT]),
            100.. => None,
            _ => Some(&[]),
        }
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        (component == CONTENT).then_some(ComponentShape::Variable)
    }

    fn default_bytes(&self, _: ComponentId) -> &[u8] {
        &[]
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        block.get() != 0
    }
}

/// Air with a chest full of gold, a second layer in the cell before it, and one entity.
pub(super) fn room() -> Chunk {
    let mut room = Chunk::filled(BlockId::new(0), &Chests).unwrap();
    room.set_block(LocalPos::new(0, 0, 15), BlockId::new(1), &Chests).unwrap();
    room.set_component(at(0, 0, 15, 0), CONTENT, b"gold").unwrap();
    room.push_layer(LocalPos::new(0, 0, 14), BlockId::new(2), &Chests).unwrap();
    room.add_entity(id(1));
    room
}

/// Checks that a delta is refused, and that its valid first change is not applied either.
#[track_caller]
fn check_refused(at: CellLayer, block: u64, expected: Expect) {
    let mut delta = Delta::new();
    delta.set_block(CellLayer::new(LocalPos::new(0, 0, 0), 0), BlockId::new(3));
    delta.set_block(at, BlockId::new(block));
    delta.remove_entity(id(1));
    let mut chunk = room();
    expected.assert_eq(&delta.apply(&mut chunk, &Chests).unwrap_err().to_string());
    assert_eq!(chunk, room(), "the chunk is as it was");
    let bytes = encoded(&delta);
    let folded = DeltaView::new(&bytes).unwrap().fold_into(&mut chunk, &Chests);
    expected.assert_eq(&folded.unwrap_err().to_string());
}

#[test]
fn a_delta_is_applied_and_may_be_applied_again() {
    let mut delta = Delta::new();
    delta.set_block(at(0, 0, 0, 0), BlockId::new(5));
    delta.set_block(at(0, 0, 0, 1), BlockId::new(6));
    delta.set_block(at(0, 0, 0, 2), BlockId::new(7));
    delta.set_block(at(0, 0, 14, 1), BlockId::new(8));
    delta.remove_entity(id(1));
    delta.remove_entity(id(2));
    delta.add_entity(id(3));
    let mut chunk = room();
    for _ in 0..2 {
        delta.apply(&mut chunk, &Chests).unwrap();
        let cell = LocalPos::new(0, 0, 0);
        assert_eq!(
            [0, 1, 2, 3].map(|layer| chunk.layer(cell, layer).map(BlockId::get)),
            [Some(5), Some(6), Some(7), None]
        );
        assert_eq!(chunk.layer(LocalPos::new(0, 0, 14), 1), Some(BlockId::new(8)));
        assert_eq!(chunk.entities(), [id(3)]);
        assert_eq!(
            chunk.component(at(0, 0, 15, 0), CONTENT),
            Some(&b"gold"[..]),
            "the chest keeps its content"
        );
    }
}

#[test]
fn what_carries_components_is_refused() {
    check_refused(
        at(0, 0, 15, 0),
        2,
        expect![
            "block 1 at LocalPos(0, 0, 15) layer 0 carries components, which a delta cannot set or replace; save the whole chunk"
        ],
    );
    check_refused(
        at(0, 0, 13, 0),
        1,
        expect![
            "block 1 at LocalPos(0, 0, 13) layer 0 carries components, which a delta cannot set or replace; save the whole chunk"
        ],
    );
    check_refused(
        at(0, 0, 13, 1),
        1,
        expect![
            "block 1 at LocalPos(0, 0, 13) layer 1 carries components, which a delta cannot set or replace; save the whole chunk"
        ],
    );
}

#[test]
fn a_layer_further_up_and_an_unknown_block_are_refused() {
    check_refused(at(0, 0, 13, 2), 2, expect!["cell LocalPos(0, 0, 13) has 1 layers, none numbered 2"]);
    check_refused(at(0, 0, 13, 0), 100, expect!["block 100 is unknown to the schema; register it first"]);
}

proptest! {
    #[test]
    fn applying_a_merge_is_applying_both(first in any_words(), then in any_words()) {
        // Block 1 has a component.
        let is_plain = |word: &Word| !matches!(word, Word::Set(_, block) if block.get() == 1);
        let [first, then] = [first, then].map(|words| delta_of(words.into_iter().filter(is_plain)));
        let mut one_by_one = Chunk::filled(BlockId::new(0), &Chests).unwrap();
        let mut at_once = one_by_one.clone();
        first.apply(&mut one_by_one, &Chests).unwrap();
        then.apply(&mut one_by_one, &Chests).unwrap();
        let mut merged = first;
        merged.merge(&then);
        merged.apply(&mut at_once, &Chests).unwrap();
        prop_assert_eq!(at_once.to_bytes(), one_by_one.to_bytes());
    }
}

/// A decoded chunk: its blocks are not counted.
fn decoded(chunk: &Chunk) -> Chunk {
    Chunk::decode(&chunk.to_bytes(), &Chests).unwrap()
}

fn fold(deltas: &[Delta], chunk: &mut Chunk) {
    for delta in deltas {
        DeltaView::new(&encoded(delta)).unwrap().fold_into(chunk, &Chests).unwrap();
    }
}

/// Changes of any cell and the layer above it, valid in this order for a chunk with one layer.
fn any_sets() -> impl Strategy<Value = Vec<Word>> {
    let set = (0_u16..4096, 2_u64..40).prop_map(|(index, block)| {
        Word::Set(CellLayer::base(LocalPos::from_index(index).unwrap()), BlockId::new(block))
    });
    let above = (0_u8..3, 2_u64..9).prop_map(|(x, block)| Word::Set(at(x, 5, 5, 1), BlockId::new(block)));
    proptest::collection::vec(prop_oneof![8 => set, 1 => above], 0..60)
}

proptest! {
    #[test]
    fn folding_is_applying(
        base in any_sets(),
        deltas in proptest::collection::vec((any_words(), any_sets()), 0..6),
        later in any_sets(),
    ) {
        let is_plain = |word: &Word| !matches!(word, Word::Set(_, block) if block.get() == 1);
        let deltas: Vec<Delta> = deltas
            .into_iter()
            .map(|(few, anywhere)| delta_of(few.into_iter().filter(is_plain).chain(anywhere)))
            .collect();
        let mut slow = Chunk::filled(BlockId::new(0), &Chests).unwrap();
        delta_of(base).apply(&mut slow, &Chests).unwrap();
        let mut folded = decoded(&slow);
        fold(&deltas, &mut folded);
        for delta in &deltas {
            delta.apply(&mut slow, &Chests).unwrap();
        }
        let kinds = |chunk: &Chunk| chunk.kinds().into_iter().collect::<BTreeSet<_>>();
        for _ in 0..2 {
            prop_assert_eq!(folded.validate(&Chests), Ok(()));
            prop_assert_eq!(&folded, &slow);
            prop_assert_eq!(folded.to_bytes(), slow.to_bytes());
            prop_assert!(folded.max_len_bytes() >= folded.to_bytes().len());
            prop_assert_eq!(folded.palette(), slow.palette());
            prop_assert_eq!(kinds(&folded), kinds(&slow));
            prop_assert_eq!(decoded(&folded), slow.clone());
            prop_assert_eq!(Delta::between(&folded, &slow, &Chests, 0), Some(Delta::new()));
            let mut packed = folded.clone();
            packed.pack();
            prop_assert_eq!(packed.validate(&Chests), Ok(()));
            prop_assert_eq!(&packed, &slow);
            // The folded chunk can be edited like any other.
            let later = delta_of(later.clone());
            later.apply(&mut folded, &Chests).unwrap();
            later.apply(&mut slow, &Chests).unwrap();
        }
    }
}

#[test]
fn folding_counts_nothing() {
    let mut delta = Delta::new();
    delta.set_block(at(0, 0, 0, 0), BlockId::new(5));
    let mut back = Delta::new();
    back.set_block(at(0, 0, 0, 0), BlockId::new(0));
    let mut chunk = decoded(&room());
    fold(&[delta, back], &mut chunk);
    let counted = room();
    assert!(chunk.max_len_bytes() > counted.max_len_bytes(), "block 5 is still in the palette");
    assert_eq!(chunk, counted);
}
