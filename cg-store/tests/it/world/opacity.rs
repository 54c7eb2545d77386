//! The opacity map against brute force over the chunks, whatever was saved, deleted, folded or drawn again.

use super::*;
use cg_format::Space;
use proptest::prelude::*;

over_both_engines! {
    columns_reach_from_end_to_end_of_the_world
    a_map_that_was_off_is_drawn_again
    folding_leaves_one_row_per_tile
    what_does_not_change_the_outline_writes_no_patch
}

/// The blocks of a column that hide what is behind them, over the given chunks.
fn by_hand<E: Engine>(world: &World<E>, ids: &Ids, x: i64, z: i64, chunk_ys: &[i64]) -> Vec<i64> {
    let mut opaque = Vec::new();
    for y in chunk_ys {
        let pos = BlockPos::new(x, y << 4, z);
        let Some(chunk) = world.load(ChunkAt::new(ids.overworld, pos.chunk())).expect("loads") else {
            continue;
        };
        for cell_y in 0..16_u8 {
            let cell = LocalPos::new(pos.local().x(), cell_y, pos.local().z());
            if [ids.stone, ids.machine].contains(&chunk.block(cell)) {
                opaque.push((y << 4) + i64::from(cell_y));
            }
        }
    }
    opaque.sort_unstable();
    opaque
}

/// Asserts that the map says the same, in every way it can be asked.
#[track_caller]
fn compare<E: Engine>(world: &World<E>, ids: &Ids, x: i64, z: i64, chunk_ys: &[i64]) {
    let expected = by_hand(world, ids, x, z, chunk_ys);
    let column = world.opacity(ids.overworld, x, z).expect("reads");
    let told: Vec<i64> = column.runs().iter().cloned().flatten().collect();
    assert_eq!(told, expected, "column {x}, {z}");
    assert_eq!(column.highest_opaque(), expected.last().copied());
    for y in &expected {
        assert!(column.is_opaque(*y));
        for beside in [y.checked_sub(1), y.checked_add(1)].into_iter().flatten() {
            assert_eq!(column.is_opaque(beside), expected.contains(&beside), "{x}, {beside}, {z}");
        }
    }
    let apart = column.runs().windows(2).all(|pair| pair[0].end() + 1 < *pair[1].start());
    assert!(apart, "runs touch: {:?}", column.runs());
}

fn columns_reach_from_end_to_end_of_the_world<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let ends = [ChunkPos::MIN, ChunkPos::MIN + 1, -1, 0, ChunkPos::MAX - 1, ChunkPos::MAX];
    let corners = [ChunkPos::MIN, -1, ChunkPos::MAX];
    for x in corners {
        for z in corners {
            save(world, ends.map(|y| (ids.at(x, y, z), filled(world, ids.stone))));
            save(world, [(ids.at(x, 7, z), marked(world, &ids, 0))]);
        }
    }
    let check = || {
        for x in [i64::MIN, i64::MIN + 15, -1, -16, i64::MAX - 15, i64::MAX] {
            for z in [i64::MIN, -1, i64::MAX] {
                compare(world, &ids, x, z, &[&ends[..], &[7]].concat());
            }
        }
        let column = world.opacity(ids.overworld, i64::MAX, i64::MIN).expect("reads");
        assert!(column.is_opaque(i64::MIN) && column.is_opaque(i64::MAX));
        assert!(world.opacity(ids.overworld, 0, 0).expect("reads").runs().is_empty());
        assert!(world.opacity(ids.nether, -1, -1).expect("reads").runs().is_empty());
    };
    check();
    world.fold_opacity(3).expect("folds");
    check();
    world.fold_opacity(usize::MAX).expect("folds");
    check();
    world.rebuild_opacity().expect("draws");
    check();
    assert_sound(world);
}

fn a_map_that_was_off_is_drawn_again<E: Engine>(world: &World<E>) {
    let blind = World::temporary(&[], &WorldOptions { opacity: false, ..options() }).expect("a world");
    let ids = Ids::register(&blind);
    save(&blind, [(ids.at(0, 0, 0), marked(&blind, &ids, 3)), (ids.at(0, 9, 0), filled(&blind, ids.stone))]);
    assert!(blind.opacity(ids.overworld, 0, 3).expect("reads").runs().is_empty(), "the map is off");
    blind.rebuild_opacity().expect("draws");
    compare(&blind, &ids, 0, 3, &[0, 9]);
    // In a world that keeps it, drawing it again changes nothing.
    let ids = Ids::register(world);
    save(world, [(ids.at(0, 0, 0), marked(world, &ids, 3)), (ids.at(5, 9, 0), filled(world, ids.stone))]);
    world.fold_opacity(usize::MAX).expect("folds");
    let payloads = |world: &World<E>| {
        let rows = rows(world).into_iter().filter(|((family, _), _)| *family == Family::OpacityMap);
        rows.map(|((_, key), row)| (key, row[cg_format::frame::LEN_BYTES..].to_vec())).collect::<Vec<_>>()
    };
    let before = payloads(world);
    world.rebuild_opacity().expect("draws");
    assert!(before == payloads(world));
}

fn folding_leaves_one_row_per_tile<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    // Two tiles of 4×4 chunks.
    save(world, (0..8).map(|x| (ids.at(x, x, 0), filled(world, ids.stone))));
    let count = |space: Space| {
        let keys = rows(world).into_keys();
        keys.filter(|(family, key)| Space::of_row(*family, key) == Some(space)).count()
    };
    assert_eq!((count(Space::OpacityPatch), count(Space::OpacityTile)), (8, 0));
    assert_eq!(world.fold_opacity(1).expect("folds"), 1);
    assert_eq!((count(Space::OpacityPatch), count(Space::OpacityTile)), (4, 1));
    assert_eq!(world.fold_opacity(9).expect("folds"), 1);
    assert_eq!((count(Space::OpacityPatch), count(Space::OpacityTile)), (0, 2));
    let last = world.last_commit();
    assert_eq!((world.fold_opacity(9).expect("has nothing to do"), world.last_commit()), (0, last));
}

fn what_does_not_change_the_outline_writes_no_patch<E: Engine>(world: &World<E>) {
    let ids = Ids::register(world);
    let a = ids.at(0, 0, 0);
    save(world, [(a, filled(world, ids.air))]);
    let patches = || rows(world).into_keys().filter(|(family, _)| *family == Family::OpacityMap).count();
    assert_eq!(patches(), 0, "air hides nothing, as before");
    save(world, [(a, filled(world, ids.glass))]);
    assert_eq!(patches(), 0);
    save(world, [(a, filled(world, ids.stone))]);
    assert_eq!(patches(), 1);
    let map = || rows(world).into_iter().find(|((family, _), _)| *family == Family::OpacityMap);
    let before = map();
    save(world, [(a, filled(world, ids.machine))]);
    assert!(before == map(), "another block that hides as much");
}

#[derive(Debug, Clone)]
enum Step {
    Save(i64, i64, Vec<u16>),
    Fill(i64, i64, bool),
    Delete(i64, i64),
    Set(i64, i64, u16, bool),
    Fold(usize),
    Rebuild,
}

fn step() -> impl Strategy<Value = Step> {
    let (x, y) = (-1..5_i64, -2..3_i64);
    prop_oneof![
        4 => (x.clone(), y.clone(), prop::collection::vec(0..4096_u16, 0..40))
            .prop_map(|(x, y, cells)| Step::Save(x, y, cells)),
        2 => (x.clone(), y.clone(), any::<bool>()).prop_map(|(x, y, opaque)| Step::Fill(x, y, opaque)),
        2 => (x.clone(), y.clone()).prop_map(|(x, y)| Step::Delete(x, y)),
        4 => (x, y, 0..4096_u16, any::<bool>()).prop_map(|(x, y, cell, opaque)| Step::Set(x, y, cell, opaque)),
        2 => (1..4_usize).prop_map(Step::Fold),
        1 => Just(Step::Rebuild),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_map_says_what_the_chunks_say(steps in prop::collection::vec(step(), 1..40)) {
        let world = in_memory();
        let ids = Ids::register(&world);
        for step in steps {
            match step {
                Step::Save(x, y, cells) => {
                    let mut chunk = filled(&world, ids.glass);
                    let schema = world.catalog().current_schema();
                    for cell in cells {
                        let cell = LocalPos::from_index(cell).expect("below 4096");
                        chunk.set_block(cell, ids.stone, &schema).expect("is registered");
                    }
                    save(&world, [(ids.at(x, y, 0), chunk)]);
                }
                Step::Fill(x, y, opaque) => {
                    let block = if opaque { ids.stone } else { ids.air };
                    save(&world, [(ids.at(x, y, 0), filled(&world, block))]);
                }
                Step::Delete(x, y) => {
                    let deleted = world.transaction(|tx| { tx.delete(ids.at(x, y, 0)); Ok::<_, Error>(()) });
                    deleted.expect("deletes");
                }
                Step::Set(x, y, cell, opaque) => {
                    let at = ids.at(x, y, 0);
                    let block = at.pos.block(LocalPos::from_index(cell).expect("below 4096"));
                    let kind = if opaque { ids.machine } else { ids.glass };
                    match world.transaction(|tx| tx.set_block(ids.overworld, block, kind)) {
                        Ok(_) | Err(Error::ChunkAbsent { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                Step::Fold(tiles) => drop(world.fold_opacity(tiles).expect("folds")),
                Step::Rebuild => world.rebuild_opacity().expect("draws"),
            }
            for x in (-16..80).step_by(7) {
                compare(&world, &ids, x, (x & 15) ^ 5, &[-2, -1, 0, 1, 2]);
            }
        }
        assert_sound(&world);
    }
}
