//! Opacity: pinned layouts, queries, and folding compared with a map of chunks.

use super::*;
use crate::chunk::CellLayer;
use crate::testing::{annotated, golden};
use crate::{
    BlockId, CellOrder, Chunk, ChunkPos, ClusterTier, ComponentId, ComponentShape, DecodeError, LocalPos,
    SchemaView,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::format;
use std::string::String;
use std::vec::Vec;

fn at(x: i64, y: i64, z: i64) -> ChunkPos {
    ChunkPos::new(x, y, z).unwrap()
}

/// A wall along x 3, three blocks high at even z and two at odd z, with one pillar at z 5.
fn ruin() -> Patch {
    Patch::from_fn(|cell| match (cell.x(), cell.z()) {
        (3, 5) => true,
        (3, z) => cell.y() < 3 - z % 2,
        _ => false,
    })
}

/// One column through a whole chunk.
fn pin() -> Patch {
    Patch::from_fn(|cell| (cell.x(), cell.z()) == (3, 5))
}

/// The ruin, with a pin far below it at the bottom of the world, and another at the top of the world.
fn ruin_tile() -> Vec<u8> {
    let (bottom, top) = (at(0, ChunkPos::MIN, 0), at(3, ChunkPos::MAX, 3));
    fold(None, &[(at(0, 0, 0), ruin()), (bottom, pin()), (top, pin())]).unwrap()
}

fn encoded(patch: &Patch) -> Vec<u8> {
    let mut out = Vec::new();
    patch.encode(&mut out);
    out
}

/// One line per distinct list of runs, and how many columns have it.
fn describe(tile: &TileView<'_>) -> String {
    let mut kinds = BTreeMap::<String, usize>::new();
    for column in tile.columns() {
        let runs: Vec<String> = column.runs().map(|run| format!("{run:?}")).collect();
        *kinds.entry(runs.join(", ")).or_default() += 1;
    }
    let side = tile.side_columns();
    let mut out = format!("opacity tile of {side}x{side} columns\n");
    for (runs, count) in kinds {
        let runs = if runs.is_empty() { "transparent" } else { &runs };
        let _ = writeln!(out, "{count} columns: {runs}");
    }
    out
}

#[track_caller]
fn check_error<T>(result: Result<T, DecodeError>, expected: Expect) {
    let error = result.err().expect("these bytes are no value");
    expected.assert_eq(&format!("{error}"));
}

/// The tile of [`ruin`] with one byte replaced.
#[track_caller]
fn check_changed(at: usize, bytes: &[u8], expected: Expect) {
    let mut tile = ruin_tile();
    tile[at..at + bytes.len()].copy_from_slice(bytes);
    check_error(TileView::new(&tile), expected);
}

#[test]
fn bytes_are_pinned() {
    let tile = ruin_tile();
    let (spans, view) = TileView::trace(&tile);
    golden("opacity/tile", &tile, &describe(&view.unwrap()));
    insta::assert_snapshot!("tile", annotated(&tile, &spans));

    let stored = pack(&TileView::new(&tile).unwrap());
    golden("opacity/packed_tile", &stored, &describe(&TileView::new(&unpack(&stored).unwrap()).unwrap()));
    let (spans, result) = trace_stored(&stored);
    assert_eq!(result, Ok(()));
    insta::assert_snapshot!("packed_tile", annotated(&stored, &spans));

    let empty = transparent(ClusterTier::L1);
    let (_, view) = TileView::trace(&empty);
    golden("opacity/tile_transparent", &empty, &describe(&view.unwrap()));

    for (name, patch) in [
        ("patch_transparent", Patch::uniform(false)),
        ("patch_opaque", Patch::uniform(true)),
        ("patch_columns", ruin()),
    ] {
        let bytes = encoded(&patch);
        golden(&format!("opacity/{name}"), &bytes, &format!("{patch:?}\n"));
        let (fields, read) = Patch::trace(&bytes);
        assert_eq!(read, Ok(patch));
        insta::assert_snapshot!(name, annotated(&bytes, &fields));
    }
}

/// Changes one byte of the packed ruin.
#[track_caller]
fn check_packed(change: impl FnOnce(&mut Vec<u8>), expected: Expect) {
    let mut stored = pack(&TileView::new(&ruin_tile()).unwrap());
    change(&mut stored);
    let read = unpack(&stored).and_then(|tile| TileView::new(&tile).map(drop));
    assert_eq!(trace_stored(&stored).1, read, "explained with the same error");
    check_error(read, expected);
}

#[test]
fn every_field_of_a_packed_tile_is_checked() {
    check_packed(
        |stored| stored[0] = 3,
        expect![
            "opacity tile: format version is 3, and this release reads up to 2; use a newer release (at byte 0)"
        ],
    );
    check_packed(
        |stored| stored[8] = 3,
        expect!["opacity tile: scale level is 3, allowed is 1 or 2 (at byte 8)"],
    );
    check_packed(
        |stored| stored.truncate(9 + 4 * 4096 - 1),
        expect!["opacity tile: 4096 boundary counts of 4 bytes exceed the 16383 bytes left (at byte 9)"],
    );
    check_packed(
        |stored| stored[9 + 100] = 1,
        expect!["opacity tile: boundary counts is 36, but the rest of the value implies 35 (at byte 9)"],
    );
    check_packed(
        |stored| stored.truncate(stored.len() - 1),
        expect!["opacity tile: boundary counts is 35, but the rest of the value implies 34 (at byte 9)"],
    );
    // Without a step all boundaries are at y 0.
    check_packed(
        |stored| stored[9 + 4 * 4096..].fill(0),
        expect!["opacity tile: boundaries is 0, not above the 0 before it (at byte 16405)"],
    );
}

#[test]
fn a_tile_that_was_stored_before_tiles_were_packed_is_read_as_it_is() {
    let tile = ruin_tile();
    assert!(matches!(unpack(&tile), Ok(alloc::borrow::Cow::Borrowed(bytes)) if bytes == tile));
    let (spans, result) = trace_stored(&tile);
    assert_eq!((spans, result), (TileView::trace(&tile).0, Ok(())));
}

#[test]
fn a_column_answers_at_both_ends_of_the_world() {
    let bytes = ruin_tile();
    let tile = TileView::new(&bytes).unwrap();
    let bottom = tile.column(3, 5);
    assert!(bottom.is_opaque(i64::MIN) && bottom.is_opaque(i64::MIN + 15));
    assert!(!bottom.is_opaque(i64::MIN + 16) && !bottom.is_opaque(i64::MAX));
    assert_eq!(bottom.runs().collect::<Vec<_>>(), [i64::MIN..=i64::MIN + 15, 0..=15]);
    assert_eq!(bottom.highest_opaque(), Some(15));
    assert_eq!(bottom.coverage(i64::MIN..=i64::MIN + 15), Coverage::Opaque);
    assert_eq!(bottom.coverage(i64::MIN..=i64::MIN + 16), Coverage::Mixed);
    assert_eq!(bottom.coverage(i64::MIN + 16..=-1), Coverage::Transparent);

    // A run that reaches the top of the world has no upper boundary.
    let top = tile.column(51, 53);
    assert_eq!(top.boundaries().collect::<Vec<_>>(), [i64::MAX - 15]);
    assert_eq!(top.runs().collect::<Vec<_>>(), [i64::MAX - 15..=i64::MAX]);
    assert_eq!(top.highest_opaque(), Some(i64::MAX));
    assert_eq!(top.coverage(i64::MAX..=i64::MAX), Coverage::Opaque);
    assert_eq!(top.coverage(i64::MIN..=i64::MAX), Coverage::Mixed);

    let beside = tile.column(4, 5);
    assert_eq!((beside.highest_opaque(), beside.runs().count()), (None, 0));
    assert_eq!(beside.coverage(i64::MIN..=i64::MAX), Coverage::Transparent);
}

#[test]
fn an_empty_range_is_transparent_inside_a_run() {
    let bytes = ruin_tile();
    #[expect(clippy::reversed_empty_ranges, reason = "the empty range is the case")]
    let found = TileView::new(&bytes).unwrap().column(3, 5).coverage(1..=0);
    assert_eq!(found, Coverage::Transparent);
}

#[test]
fn columns_are_found_by_their_place_in_the_tile() {
    let bytes = fold(None, &[(at(-1, 0, 2), ruin())]).unwrap();
    let tile = TileView::new(&bytes).unwrap();
    // The pillar at (3, 5) of chunk (-1, 2) is at block (-13, 37), which is (51, 37) of its tile.
    for (x, z) in [(-13, 37), (51, 37), (51 + 64 * 5, 37 - 64)] {
        assert_eq!(tile.column(x, z).highest_opaque(), Some(15), "{x}, {z}");
    }
    assert_eq!(tile.columns().filter(|column| column.is_opaque(15)).count(), 1);
}

#[test]
fn a_patch_replaces_exactly_its_chunk() {
    let solid = Patch::uniform(true);
    let tall: Vec<_> = (-2..=2).map(|y| (at(1, y, 1), solid)).collect();
    let before = fold(None, &tall).unwrap();
    let hole = fold(Some(&TileView::new(&before).unwrap()), &[(at(1, 0, 1), Patch::uniform(false))]).unwrap();
    let tile = TileView::new(&hole).unwrap();
    assert_eq!(tile.column(16, 31).runs().collect::<Vec<_>>(), [-32..=-1, 16..=47]);
    assert_eq!(tile.column(15, 31).runs().count(), 0, "the chunk beside it");

    let filled = fold(Some(&tile), &[(at(1, 0, 1), solid)]).unwrap();
    assert!(filled == before, "runs that meet are one run");
    let twice = fold(Some(&tile), &[(at(1, 0, 1), Patch::uniform(false)), (at(1, 0, 1), solid)]).unwrap();
    assert!(twice == before, "the last patch of a chunk wins");
}

#[test]
fn what_becomes_transparent_leaves_no_trace() {
    let bytes = fold(None, &[(at(0, 5, 0), ruin())]).unwrap();
    let tile = TileView::new(&bytes).unwrap();
    assert!(!tile.is_transparent());
    let bytes = fold(Some(&tile), &[(at(0, 5, 0), Patch::uniform(false))]).unwrap();
    assert!(bytes == transparent(ClusterTier::L1));
    assert!(TileView::new(&bytes).unwrap().is_transparent());
}

#[test]
fn a_tile_of_the_larger_scale_is_read_and_folded() {
    let empty = transparent(ClusterTier::L2);
    assert_eq!(empty.len(), 262_157);
    let tile = TileView::new(&empty).unwrap();
    let bytes = fold(Some(&tile), &[(at(15, 0, 14), Patch::uniform(true))]).unwrap();
    let tile = TileView::new(&bytes).unwrap();
    assert_eq!((tile.scale(), tile.side_columns()), (ClusterTier::L2, 256));
    assert_eq!(tile.column(255, 224).highest_opaque(), Some(15));
    assert_eq!(tile.column(-1, -17).highest_opaque(), Some(15));
    assert_eq!(tile.columns().filter(|column| column.is_opaque(0)).count(), 256);
}

#[test]
fn wrong_tiles_are_named() {
    check_changed(0, &[0], expect!["opacity tile: format version is 0, allowed is 1 and up (at byte 0)"]);
    check_changed(
        0,
        &[2],
        expect![
            "opacity tile: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
        ],
    );
    check_changed(8, &[0], expect!["opacity tile: scale level is 0, allowed is 1 or 2 (at byte 8)"]);
    check_changed(
        8,
        &[2],
        expect!["opacity tile: 65537 column offsets of 4 bytes exceed the 16668 bytes left (at byte 9)"],
    );
    check_changed(
        9,
        &[12],
        expect!["opacity tile: column offsets is 16396, but the rest of the value implies 16397 (at byte 9)"],
    );
    check_changed(
        9 + 4 * 193,
        &[0],
        expect![
            "opacity tile: column offsets is 16384, allowed is a multiple of 8 bytes above the offset before it, and not beyond the end (at byte 781)"
        ],
    );
    check_changed(
        9 + 4 * 193,
        &[1],
        expect![
            "opacity tile: column offsets is 16385, allowed is a multiple of 8 bytes above the offset before it, and not beyond the end (at byte 781)"
        ],
    );
    check_changed(
        9 + 4 * 193 + 3,
        &[0xff],
        expect![
            "opacity tile: column offsets is 4278206493, allowed is a multiple of 8 bytes above the offset before it, and not beyond the end (at byte 781)"
        ],
    );
    check_changed(
        16_393,
        &[0xcd],
        expect![
            "opacity tile: column offsets is 16845, allowed is a multiple of 8 bytes above the offset before it, and not beyond the end (at byte 16393)"
        ],
    );
    // One boundary beyond the end, and a boundary equal to the one before it.
    check_changed(
        9 + 4 * 193,
        &16_685_u32.to_le_bytes(),
        expect![
            "opacity tile: column offsets is 16685, allowed is a multiple of 8 bytes above the offset before it, and not beyond the end (at byte 781)"
        ],
    );
    check_changed(
        16_397 + 8,
        &0_i64.to_le_bytes(),
        expect!["opacity tile: boundaries is 0, not above the 0 before it (at byte 16405)"],
    );
    check_changed(
        16_397 + 8,
        &i64::MIN.to_le_bytes(),
        expect![
            "opacity tile: boundaries is -9223372036854775808, not above the 0 before it (at byte 16405)"
        ],
    );

    let mut longer = ruin_tile();
    longer.push(0);
    check_error(
        TileView::new(&longer),
        expect![
            "opacity tile: column offsets is 16677, but the rest of the value implies 16678 (at byte 16393)"
        ],
    );
    check_error(
        TileView::new(&longer[..16_000]),
        expect!["opacity tile: 4097 column offsets of 4 bytes exceed the 15991 bytes left (at byte 9)"],
    );
    check_error(
        TileView::new(&[]),
        expect!["opacity tile: format version needs 8 bytes and 0 are left (at byte 0)"],
    );
}

#[test]
fn wrong_patches_are_named() {
    check_error(
        Patch::decode(&[]),
        expect!["opacity patch: columns needs 512 bytes and 0 are left (at byte 0)"],
    );
    check_error(Patch::decode(&[2]), expect!["opacity patch: uniform is 2, allowed is 0 or 1 (at byte 0)"]);
    check_error(
        Patch::decode(&[0; 511]),
        expect!["opacity patch: columns needs 512 bytes and 511 are left (at byte 0)"],
    );
    check_error(
        Patch::decode(&[0; 513]),
        expect!["opacity patch: bytes after the columns must be zero or absent, found 1 (at byte 512)"],
    );
}

#[test]
fn the_long_form_of_a_uniform_patch_is_read_and_written_short() {
    for (byte, is_opaque) in [(0x00, false), (0xff, true)] {
        let patch = Patch::decode(&[byte; 512]).unwrap();
        assert_eq!(patch, Patch::uniform(is_opaque));
        assert_eq!(encoded(&patch), [u8::from(is_opaque)]);
    }
}

#[test]
fn every_truncation_of_a_tile_is_an_error() {
    let bytes = ruin_tile();
    for len in 0..bytes.len() {
        assert!(TileView::new(&bytes[..len]).is_err(), "cut to {len} bytes");
    }
}

#[test]
fn every_changed_byte_of_a_tile_is_an_error_or_another_tile() {
    let bytes = ruin_tile();
    // Every byte outside the offsets, and every thirteenth of those.
    let places = (0..9).chain((9..16_397).step_by(13)).chain(16_397..bytes.len());
    let mut decoded = 0;
    for place in places {
        for change in [0x01, 0x08, 0x80] {
            let mut bytes = bytes.clone();
            bytes[place] ^= change;
            if let Ok(tile) = TileView::new(&bytes) {
                decoded += 1;
                assert!(fold(Some(&tile), &[]).unwrap() == bytes, "byte {place} ^ {change:#04x}");
            }
        }
    }
    assert!(decoded > 0, "some changes of a boundary give another tile");
}

/// Chunk coordinates at both ends of the world and around 0.
const HEIGHTS: [i64; 8] = [ChunkPos::MIN, ChunkPos::MIN + 1, -1, 0, 1, 2, ChunkPos::MAX - 1, ChunkPos::MAX];

fn any_patch() -> impl Strategy<Value = Patch> {
    prop_oneof![
        any::<bool>().prop_map(Patch::uniform),
        any::<u64>().prop_map(|seed| {
            Patch::from_fn(|cell| {
                let mixed = (seed ^ u64::from(cell.index())).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                mixed >> 63 == 1
            })
        }),
        (0_u8..16, any::<bool>()).prop_map(|(y, above)| Patch::from_fn(|cell| (cell.y() >= y) == above)),
    ]
}

/// Batches of patches, in the order in which maintenance folds them.
fn any_batches() -> impl Strategy<Value = Vec<Vec<(ChunkPos, Patch)>>> {
    let position = (0_i64..3, proptest::sample::select(&HEIGHTS[..]), 2_i64..4);
    let patch = (position, any_patch()).prop_map(|((x, y, z), patch)| (at(x, y, z), patch));
    proptest::collection::vec(proptest::collection::vec(patch, 0..8), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_tile_equals_the_map_of_its_chunks(batches in any_batches()) {
        let mut chunks = BTreeMap::new();
        let mut bytes = transparent(ClusterTier::L1);
        for batch in &batches {
            chunks.extend(batch.iter().copied());
            bytes = fold(Some(&TileView::new(&bytes).unwrap()), batch).unwrap();
        }
        let tile = TileView::new(&bytes).unwrap();
        prop_assert!(*unpack(&pack(&tile)).unwrap() == bytes);
        let is_opaque = |x: i64, y: i64, z: i64| {
            let block = crate::BlockPos::new(x, y, z);
            chunks.get(&block.chunk()).is_some_and(|patch: &Patch| patch.is_opaque(block.local()))
        };
        for (x, z) in (0..64).flat_map(|x| (0..64).map(move |z| (x, z))) {
            let column = tile.column(x, z);
            if x >= 48 || z < 32 {
                prop_assert_eq!(column.boundaries().len(), 0, "no patch lies over {}, {}", x, z);
                continue;
            }
            for chunk_y in HEIGHTS.into_iter().chain([3, -2]) {
                let ys = chunk_y * 16..=chunk_y * 16 + 15;
                let opaque = ys.clone().filter(|y| is_opaque(x, *y, z)).count();
                for y in ys.clone() {
                    prop_assert_eq!(column.is_opaque(y), is_opaque(x, y, z), "block {}, {}, {}", x, y, z);
                }
                let coverage = match opaque {
                    0 => Coverage::Transparent,
                    16 => Coverage::Opaque,
                    _ => Coverage::Mixed,
                };
                prop_assert_eq!(column.coverage(ys), coverage);
            }
            let listed: i128 = column.runs().map(|run| i128::from(*run.end()) - i128::from(*run.start()) + 1).sum();
            let counted = chunks.iter().filter(|(pos, _)| (pos.x(), pos.z()) == (x >> 4, z >> 4));
            let counted: u32 = counted.map(|(_, patch)| patch.column((x & 15) as u8, (z & 15) as u8).count_ones()).sum();
            prop_assert_eq!(listed, i128::from(counted));
        }
        // Equal opacity has equal bytes, independent of the order of patches.
        let at_once: Vec<_> = chunks.into_iter().rev().collect();
        prop_assert!(fold(None, &at_once).unwrap() == bytes);
    }

    #[test]
    fn patches_come_back(patch in any_patch()) {
        let bytes = encoded(&patch);
        prop_assert_eq!(Patch::decode(&bytes), Ok(patch));
        for len in 0..bytes.len() {
            let cut = Patch::decode(&bytes[..len]);
            prop_assert_eq!(cut.is_ok(), len == 1 && bytes[0] < 2, "cut to {} bytes", len);
        }
    }

    #[test]
    fn any_bytes_are_a_patch_or_an_error(bytes in prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..4),
        proptest::collection::vec(any::<u8>(), 510..515),
    ]) {
        if let Ok(patch) = Patch::decode(&bytes) {
            prop_assert_eq!(encoded(&patch), bytes);
        }
    }
}

#[test]
fn a_cell_is_a_bit_of_its_column() {
    let cell = LocalPos::new(3, 9, 5);
    let patch = Patch::from_fn(|asked| asked == cell);
    assert!(patch.is_opaque(cell));
    assert_eq!(patch.column(3, 5), 1 << 9);
    assert_eq!(patch.as_uniform(), None);
    let bytes = encoded(&patch);
    assert_eq!(bytes[2 * (3 * 16 + 5)..][..2], [0, 0b10]);
}

#[test]
fn a_cell_is_opaque_if_any_of_its_layers_is() {
    use crate::schema::NoComponents;
    let [air, stone] = [0, 1].map(crate::BlockId::new);
    let mut chunk = Chunk::filled(air, &NoComponents).unwrap();
    assert_eq!(Patch::of_chunk(&chunk, &NoComponents).as_uniform(), Some(false));
    let [base, above] = [LocalPos::new(1, 2, 3), LocalPos::new(15, 15, 0)];
    chunk.set_block(base, stone, &NoComponents).unwrap();
    chunk.push_layer(base, air, &NoComponents).unwrap();
    chunk.push_layer(above, air, &NoComponents).unwrap();
    chunk.push_layer(above, stone, &NoComponents).unwrap();
    let expected = Patch::from_fn(|cell| cell == base || cell == above);
    assert_eq!(Patch::of_chunk(&chunk, &NoComponents), expected);

    let solid = Chunk::filled(stone, &NoComponents).unwrap();
    assert_eq!(Patch::of_chunk(&solid, &NoComponents).as_uniform(), Some(true));
}

/// Every third block is opaque.
struct Thirds;
impl SchemaView for Thirds {
    fn components_of(&self, _: BlockId) -> Option<&[ComponentId]> {
        Some(&[])
    }
    fn shape(&self, _: ComponentId) -> Option<ComponentShape> {
        None
    }
    fn default_bytes(&self, _: ComponentId) -> &[u8] {
        &[]
    }
    fn is_opaque(&self, block: BlockId) -> bool {
        block.get().is_multiple_of(3)
    }
}

#[test]
fn a_chunks_outline_is_that_of_each_cell_asked_alone() {
    use crate::schema::NoComponents;

    for kinds in [2_u64, 5, 256, 257, 4096] {
        let block = |index: u64| BlockId::new(index * 2_654_435_761 % kinds);
        let cells: Vec<BlockId> = (0..4096).map(block).collect();
        let cells: &[BlockId; LocalPos::COUNT] = cells.as_slice().try_into().unwrap();
        let mut chunk = Chunk::from_blocks(cells, CellOrder::Xyz, &NoComponents).unwrap();
        for (cell, layer) in LocalPos::all().step_by(101).zip(0..) {
            chunk.push_layer(cell, block(layer), &NoComponents).unwrap();
        }
        // A removed kind leaves a dead entry in the palette.
        let cell = LocalPos::new(3, 4, 5);
        let before = chunk.set_block(cell, BlockId::new(99_999), &NoComponents).unwrap();
        chunk.set_block(cell, before, &NoComponents).unwrap();

        let expected = Patch::from_fn(|cell| {
            (0..chunk.layer_count(cell) as u8)
                .any(|layer| Thirds.is_opaque(chunk.layer(cell, layer).unwrap()))
        });
        assert_eq!(Patch::of_chunk(&chunk, &Thirds), expected, "{kinds} kinds");
    }
}

/// A block of a layer that is set in a chunk.
fn any_edits() -> impl Strategy<Value = Vec<(u16, u8, u64)>> {
    proptest::collection::vec((0_u16..4096, 0_u8..2, 0_u64..6), 0..6)
}

fn edited(chunk: &Chunk, edits: &[(u16, u8, u64)]) -> Chunk {
    let mut chunk = chunk.clone();
    for (index, layer, block) in edits {
        let cell = LocalPos::from_index(*index).unwrap();
        let at = CellLayer::new(cell, *layer);
        let block = BlockId::new(*block);
        if chunk.layer(cell, *layer).is_some() {
            chunk.set_layer(at, block, &Thirds).unwrap();
        } else {
            chunk.push_layer(cell, block, &Thirds).unwrap();
        }
    }
    chunk
}

proptest! {
    #[test]
    fn a_change_is_seen_exactly_if_the_outline_differs(
        kinds in 1_u64..400,
        renamed in 0_u64..3,
        first in any_edits(),
        then in any_edits(),
        packed in any::<bool>(),
    ) {
        let chunk = |lowest: u64| {
            let cells: Vec<_> = (0..4096).map(|cell| BlockId::new(lowest + cell * 7 / 5 % kinds)).collect();
            Chunk::from_blocks(cells.as_slice().try_into().unwrap(), CellOrder::Xyz, &Thirds).unwrap()
        };
        let old = edited(&chunk(0), &first);
        // The same packed cells with other kinds, or an edit.
        let mut new = edited(&if renamed == 0 { old.clone() } else { chunk(renamed) }, &then);
        if packed {
            new.pack();
        }
        for (old, new) in [(&old, &new), (&new, &old)] {
            let (before, after) = (Patch::of_chunk(old, &Thirds), Patch::of_chunk(new, &Thirds));
            let changed = Patch::of_change(Some(old), Some(new), &Thirds);
            prop_assert_eq!(changed, (before != after).then_some(after));
        }
        let some = Patch::of_chunk(&new, &Thirds);
        let some = (some != Patch::uniform(false)).then_some(some);
        prop_assert_eq!(Patch::of_change(None, Some(&new), &Thirds), some);
        prop_assert_eq!(Patch::of_change(Some(&new), None, &Thirds), some.map(|_| Patch::uniform(false)));
    }
}
