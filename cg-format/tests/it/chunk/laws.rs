//! Laws for every chunk and for every input.

use std::borrow::Cow;
use std::collections::BTreeSet;

use cg_format::chunk::{Chunk, ChunkView};
use cg_format::schema::NoComponents;
use cg_format::{BlockId, ComponentId, ComponentShape, EntityId, LocalPos, SchemaView, SideKind};
use proptest::prelude::*;

use super::model::{BYTE, Edit, Naive, TEXT, TestSchema, WIDE, block, edit};

fn edited(first: BlockId, edits: &[Edit]) -> (Naive, Chunk) {
    let mut naive = Naive::filled(first);
    let mut chunk = Chunk::filled(first, &TestSchema).unwrap();
    for edit in edits {
        naive.apply(&mut chunk, edit);
    }
    (naive, chunk)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn edits_do_what_they_do_to_a_naive_chunk(first in block(), edits in prop::collection::vec(edit(), 0..60)) {
        let (naive, chunk) = edited(first, &edits);
        prop_assert_eq!(chunk.validate(&TestSchema), Ok(()));
        let bytes = chunk.to_bytes();
        let view = ChunkView::new(&bytes, &TestSchema).unwrap();
        naive.check(&chunk, &view);

        let decoded = Chunk::decode(&bytes, &TestSchema).unwrap();
        prop_assert_eq!(decoded.validate(&TestSchema), Ok(()));
        naive.check(&decoded, &view);
        prop_assert_eq!(&decoded, &chunk);
        prop_assert_eq!(decoded.to_bytes(), bytes);
    }

    #[test]
    fn equal_content_gives_equal_bytes(first in block(), edits in prop::collection::vec(edit(), 0..60)) {
        let (naive, chunk) = edited(first, &edits);
        let other = naive.rebuild();
        prop_assert_eq!(&other, &chunk);
        prop_assert_eq!(other.to_bytes(), chunk.to_bytes());
    }

    #[test]
    fn a_copy_is_equal_as_long_as_its_content_is(
        first in block(),
        before in prop::collection::vec(edit(), 0..40),
        after in prop::collection::vec(edit(), 0..6),
    ) {
        let (mut naive, chunk) = edited(first, &before);
        let (naive_before, mut copy) = (naive.clone(), chunk.clone());
        for edit in &after {
            naive.apply(&mut copy, edit);
            prop_assert_eq!(copy == chunk, naive == naive_before, "after {:?}", edit);
            prop_assert_eq!(copy == chunk, copy.to_bytes() == chunk.to_bytes());
        }
        // The way back by single blocks, with whatever palette that leaves.
        for cell in LocalPos::all().filter(|cell| chunk.layer_count(*cell) == 1) {
            let (old, new) = (chunk.block(cell), copy.block(cell));
            if old != new && copy.layer_count(cell) == 1 {
                copy.set_block(cell, old, &TestSchema).unwrap();
            }
        }
        prop_assert_eq!(copy == chunk, copy.to_bytes() == chunk.to_bytes());
    }
}

#[test]
fn a_kind_without_blocks_gives_its_place_to_the_next() {
    let block = |id| BlockId::new(id);
    let mut chunk = Chunk::filled(block(0), &NoComponents).unwrap();
    let cell = LocalPos::new(3, 1, 4);
    chunk.set_block(cell, block(1), &NoComponents).unwrap();
    let len_of_two_kinds = chunk.max_len_bytes();
    for id in 2..1000 {
        chunk.set_block(cell, block(id), &NoComponents).unwrap();
        assert_eq!(chunk.max_len_bytes(), len_of_two_kinds, "after block {id}");
        assert_eq!(BTreeSet::from_iter(chunk.kinds()), BTreeSet::from([block(0), block(id)]));
        assert_eq!(chunk.kind_from(block(1)), Some(block(id)));
    }
}

#[test]
fn kinds_without_blocks_are_no_kinds_in_a_palette_with_room() {
    let block = |id| BlockId::new(id);
    let mut chunk = Chunk::filled(block(0), &NoComponents).unwrap();
    let cells = || LocalPos::all().take(7).zip(1..);
    for (cell, id) in cells() {
        chunk.set_block(cell, block(id), &NoComponents).unwrap();
    }
    let decoded = || Chunk::decode(&chunk.to_bytes(), &NoComponents).unwrap();
    let mut emptied = decoded();
    for (cell, _) in cells() {
        emptied.set_block(cell, block(0), &NoComponents).unwrap();
    }
    assert_eq!(emptied.kinds(), [block(0)]);
    assert_eq!(emptied.kind_from(block(1)), None);
    assert_eq!(emptied, Chunk::filled(block(0), &NoComponents).unwrap());
    assert_eq!(emptied.validate(&NoComponents), Ok(()));
    // Eight kinds fill three bits, so the ninth widens the ids.
    let mut widened = decoded();
    for (cell, id) in LocalPos::all().skip(10).zip(8..11) {
        widened.set_block(cell, block(id), &NoComponents).unwrap();
        widened.set_block(cell, block(0), &NoComponents).unwrap();
    }
    assert_eq!(widened, decoded());
    assert_eq!(widened.to_bytes(), chunk.to_bytes());
    // The tenth and eleventh kind take the place of the ninth, as its block is gone.
    let ninth = 8 + LocalPos::COUNT / 8;
    assert_eq!(widened.max_len_bytes(), chunk.to_bytes().len() + ninth);
}

#[test]
fn a_chunk_whose_kinds_are_edited_away_takes_no_more_than_its_blocks() {
    let block = |id| BlockId::new(id);
    let mut chunk = Chunk::filled(block(0), &NoComponents).unwrap();
    for (cell, id) in LocalPos::all().take(100).zip(1..) {
        chunk.set_block(cell, block(id), &NoComponents).unwrap();
    }
    let mut chunk = Chunk::decode(&chunk.to_bytes(), &NoComponents).unwrap();
    for cell in LocalPos::all().take(100) {
        chunk.set_block(cell, block(0), &NoComponents).unwrap();
    }
    // Half of the kinds at most, and eight, may stay without blocks.
    let of_nine_kinds = 48 + 9 * 8 + LocalPos::COUNT / 8 * 4;
    assert!(chunk.max_len_bytes() <= of_nine_kinds, "{}", chunk.max_len_bytes());
}

/// The laws of arbitrary bytes, the same that the fuzz target checks.
#[path = "../../../../fuzz/src/chunk.rs"]
mod any_bytes;

fn small() -> Chunk {
    let mut chunk = Chunk::filled(BlockId::new(0), &any_bytes::Schema).unwrap();
    let cell = |index| LocalPos::from_index(index).unwrap();
    for (index, block) in [(0, 1), (9, 2), (4095, 3), (9, 9)] {
        chunk.push_layer(cell(index), BlockId::new(block), &any_bytes::Schema).unwrap();
    }
    chunk.add_entity(EntityId::from_bytes([3; 16]));
    chunk.add_entity(EntityId::from_bytes([4; 16]));
    chunk.set_side(SideKind::new(2), b"side".to_vec());
    chunk
}

#[test]
fn every_truncation_is_an_error_or_ends_between_sides() {
    let chunk = small();
    let bytes = chunk.to_bytes();
    let own_len = ChunkView::new(&bytes, &any_bytes::Schema).unwrap().chunk_len_bytes();
    for len in 0..bytes.len() {
        let found = Chunk::decode(&bytes[..len], &any_bytes::Schema);
        assert_eq!(found.is_ok(), len == own_len, "{len} bytes: {found:?}");
    }
}

#[test]
fn every_flipped_bit_is_an_error_or_another_chunk() {
    let chunk = small();
    let bytes = chunk.to_bytes();
    let layer0 = 40 + 8 * chunk.palette().len();
    let layer0 = layer0..layer0 + 4096 * 3 / 8;
    let mut decoded = 0;
    // Layer 0 is long and all alike: a part of its bits stands for the rest.
    for bit in (0..bytes.len() * 8).filter(|bit| !layer0.contains(&(bit / 8)) || bit % 61 == 0) {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let Ok(found) = Chunk::decode(&damaged, &any_bytes::Schema) else { continue };
        assert!(found != chunk, "bit {bit} changes nothing");
        let canonical = found.to_bytes();
        assert_eq!(Chunk::decode(&canonical, &any_bytes::Schema).unwrap().to_bytes(), canonical);
        if bit % 16 == 0 {
            assert!(any_bytes::check(&damaged));
        }
        decoded += 1;
    }
    assert!(decoded > 16 * 8, "some bits are only content: {decoded}");
}

#[test]
fn the_corpus_of_the_fuzz_target_holds() {
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/chunk_decode");
    let mut decoded = 0;
    let mut refused = 0;
    for file in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        if any_bytes::check(&bytes) { decoded += 1 } else { refused += 1 }
    }
    assert!(decoded >= 5 && refused >= 5, "{decoded} decode, {refused} are refused");
}

/// Another generation: block 1 lost its byte, block 2 gained a text, block 3 kept everything.
struct Later;

impl SchemaView for Later {
    fn components_of(&self, block: BlockId) -> Option<&[ComponentId]> {
        match block.get() {
            1 => Some(&[]),
            2 => Some(&[WIDE, BYTE, TEXT]),
            _ => TestSchema.components_of(block),
        }
    }

    fn shape(&self, component: ComponentId) -> Option<ComponentShape> {
        TestSchema.shape(component)
    }

    fn default_bytes(&self, component: ComponentId) -> &[u8] {
        TestSchema.default_bytes(component)
    }

    fn is_opaque(&self, block: BlockId) -> bool {
        TestSchema.is_opaque(block)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn another_generation_keeps_what_both_know(first in block(), edits in prop::collection::vec(edit(), 0..40)) {
        let (_, chunk) = edited(first, &edits);
        let mut asked = Vec::new();
        let later = chunk.with_components(&Later, |at, block, component| {
            assert_eq!(chunk.layer(at.cell, at.layer), Some(block));
            asked.push((component, at));
            chunk.component(at, component).map(Cow::Borrowed)
        }).unwrap();
        prop_assert_eq!(later.validate(&Later), Ok(()));
        prop_assert!(asked.is_sorted());
        prop_assert!(later.components().map(|(component, at, _)| (component, at)).eq(asked.iter().copied()));
        for (component, at, bytes) in later.components() {
            let expected = chunk.component(at, component).unwrap_or_else(|| Later.default_bytes(component));
            prop_assert_eq!(bytes, expected);
        }
        prop_assert_eq!(later.palette(), chunk.palette());
        prop_assert_eq!(later.entities(), chunk.entities());
        prop_assert!(later.sides().eq(chunk.sides()));
        prop_assert_eq!(Chunk::decode(&later.to_bytes(), &Later).unwrap(), later);
    }

    #[test]
    fn remapped_ids_come_back(first in block(), edits in prop::collection::vec(edit(), 0..40)) {
        let (_, chunk) = edited(first, &edits);
        let mut there = chunk.clone();
        there.remap_blocks(|block| BlockId::new(9_999 - block.get()));
        for (new, old) in there.palette().iter().zip(chunk.palette()) {
            prop_assert_eq!((new.block.get(), new.count), (9_999 - old.block.get(), old.count));
        }
        there.remap_blocks(|block| BlockId::new(9_999 - block.get()));
        prop_assert_eq!(there.to_bytes(), chunk.to_bytes());

        let mut merged = chunk.clone();
        merged.remap_blocks(|block| BlockId::new(block.get() / 100));
        let expected: BTreeSet<u64> = chunk.palette().iter().map(|entry| entry.block.get() / 100).collect();
        let found: BTreeSet<u64> = merged.palette().iter().map(|entry| entry.block.get()).collect();
        prop_assert_eq!((merged.palette().len(), found), (expected.len(), expected));
        for cell in LocalPos::all() {
            prop_assert_eq!(merged.block(cell).get(), chunk.block(cell).get() / 100);
        }
        prop_assert_eq!(merged.validate(&NoComponents).is_ok(), merged.components().next().is_none());
    }
}
