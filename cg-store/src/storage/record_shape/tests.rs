//! Shapes compared with plain counting.

use super::*;
use cg_format::key;
use expect_test::{Expect, expect};
use proptest::prelude::*;

fn settings(leaf: u32, degree: u32, levels: u32, roots: u32) -> RecordSettings {
    RecordSettings { leaf_square_size: leaf, tree_degree: degree, num_levels: levels, roots_per_table: roots }
}

fn shape(leaf: u32, degree: u32, levels: u32, roots: u32) -> RecordShape {
    RecordShape::new(settings(leaf, degree, levels, roots)).unwrap()
}

#[track_caller]
fn refused(settings: RecordSettings, expected: Expect) {
    expected.assert_eq(&RecordShape::new(settings).unwrap_err().to_string());
}

#[test]
fn settings_that_make_no_tree_are_named() {
    refused(settings(0, 8, 2, 8), expect!["leaf_square_size is 0, allowed is 1 and up"]);
    refused(
        settings(16, 500, 2, 8),
        expect!["tree_degree is 500, which is no cube; allowed are 8, 27, 64 and so on"],
    );
    refused(
        settings(16, 0, 2, 8),
        expect!["tree_degree is 0, which is no cube; allowed are 8, 27, 64 and so on"],
    );
    refused(settings(16, 1, 2, 8), expect!["tree_degree is 1, allowed is 8, 27, 64 and so on"]);
    refused(
        settings(16, u32::MAX, 2, 8),
        expect!["tree_degree is 4294967295, which is no cube; allowed are 8, 27, 64 and so on"],
    );
    refused(settings(16, 512, 0, 8), expect!["num_levels is 0, allowed is 1 to 16"]);
    refused(settings(16, 512, 17, 8), expect!["num_levels is 17, allowed is 1 to 16"]);
    refused(
        settings(16, 512, 2, 9),
        expect!["roots_per_table is 9, which is no cube; allowed are 1, 8, 27 and so on"],
    );
    refused(
        settings(u32::MAX, 4_291_015_625, 16, 1),
        expect![
            "a table would have a side of 340282366920938463463374607431768211455 blocks, at most 2^62 are allowed: leaf 4294967295, degree 4291015625, levels 16, roots 1"
        ],
    );
    refused(
        settings(16, 4_291_015_625, 7, 8),
        expect![
            "a table would have a side of 589210083007812500000 blocks, at most 2^62 are allowed: leaf 16, degree 4291015625, levels 7, roots 8"
        ],
    );
    assert_eq!(shape(1, 8, 16, 1).table_side_blocks(), 1 << 15);
    assert_eq!(shape(16, 4_291_015_625, 1, 4_291_015_625).table_side_blocks(), 16 * 1625);
}

#[test]
fn the_example_of_worldql_has_its_sides() {
    let shape = RecordShape::default();
    let sides = [shape.leaf_side_blocks(), shape.root_side_blocks(), shape.table_side_blocks()];
    assert_eq!(sides, [16, 128, 256]);
}

/// Settings for every way in which trees differ.
fn shapes() -> impl Strategy<Value = RecordShape> {
    (1_u32..20, prop::sample::select(vec![8, 27, 64]), 1_u32..4, prop::sample::select(vec![1, 8, 27]))
        .prop_map(|(leaf, degree, levels, roots)| shape(leaf, degree, levels, roots))
}

fn axis() -> impl Strategy<Value = i64> {
    prop_oneof![-400_i64..400, any::<i64>(), i64::MIN..=i64::MIN + 400, i64::MAX - 400..=i64::MAX]
}

/// The leaf's number along each axis, computed from its path by definition.
fn unfolded(shape: &RecordShape, leaf: &RecordLeaf) -> [i128; 3] {
    let mut at = leaf.table.map(i128::from);
    for (depth, number) in leaf.path.numbers().iter().enumerate() {
        let degree = if depth == 0 { shape.settings.roots_per_table } else { shape.settings.tree_degree };
        let side = (1..=4).find(|side| side * side * side == i128::from(degree)).unwrap();
        let number = i128::from(*number);
        at = [
            at[0] * side + number / (side * side),
            at[1] * side + number / side % side,
            at[2] * side + number % side,
        ];
    }
    at
}

proptest! {
    #[test]
    fn a_way_names_the_leaf_around_a_block(shape in shapes(), x in axis(), y in axis(), z in axis()) {
        let leaf = shape.leaf(Dimension::new(1), BlockPos::new(x, y, z));
        prop_assert_eq!(leaf.path.numbers().len(), shape.settings.num_levels as usize);
        let side = i128::from(shape.leaf_side_blocks());
        for (leaf, block) in unfolded(&shape, &leaf).into_iter().zip([x, y, z]) {
            prop_assert!((leaf * side..(leaf + 1) * side).contains(&i128::from(block)), "{} {}", leaf, block);
        }
    }

    #[test]
    fn the_next_covered_leaf_is_the_first_by_key(
        shape in shapes(),
        corner in prop::array::uniform3(-60_i64..60),
        size in prop::array::uniform3(0_i64..70),
        from in prop::array::uniform3(-90_i64..120),
        dimension in 0_u64..3,
    ) {
        let [x, y, z] = corner;
        let area = BlockBox::new(
            BlockPos::new(x, y, z), BlockPos::new(x + size[0], y + size[1], z + size[2]),
        );
        let cover = Cover::new(shape, Dimension::new(1), &area);
        // Every leaf with a block of the box, found through one block of each leaf.
        let side = shape.leaf_side_blocks();
        let along = |min: i64, max: i64| {
            (min.div_euclid(side)..=max.div_euclid(side)).map(move |leaf| leaf * side).collect::<Vec<_>>()
        };
        let mut covered = Vec::new();
        for x in along(area.min().x, area.max().x) {
            for y in along(area.min().y, area.max().y) {
                for z in along(area.min().z, area.max().z) {
                    let leaf = shape.leaf(Dimension::new(1), BlockPos::new(x, y, z));
                    covered.push((key::record_leaf(&leaf), leaf));
                }
            }
        }
        covered.sort_by(|a, b| a.0.cmp(&b.0));
        prop_assert_eq!(cover.first(), covered.first().map(|(_, leaf)| *leaf));
        let from = shape.leaf(Dimension::new(dimension), BlockPos::new(from[0], from[1], from[2]));
        let expected = covered.iter().find(|(leaf, _)| *leaf >= key::record_leaf(&from)).map(|(_, leaf)| *leaf);
        prop_assert_eq!(cover.first_from(&from), expected);
    }

    #[test]
    fn boxes_as_large_as_the_world_end(shape in shapes(), x in axis(), y in axis(), z in axis()) {
        let all = BlockBox::new(BlockPos::new(i64::MIN, i64::MIN, i64::MIN), BlockPos::new(i64::MAX, i64::MAX, i64::MAX));
        let leaf = shape.leaf(Dimension::new(1), BlockPos::new(x, y, z));
        prop_assert_eq!(Cover::new(shape, Dimension::new(1), &all).first_from(&leaf), Some(leaf));
    }
}
