//! What ticks fold of the opacity map, and when.

use std::time::Duration;

use super::*;
use cg_tiering::GameTick;

over_both_engines! {
    a_tile_that_changes_in_every_tick_is_folded_now_and_then
    a_tile_with_many_patches_does_not_wait
}

const ENOUGH: Duration = Duration::from_secs(600);

/// The rows of patches.
fn patches(world: &World) -> usize {
    let is_patch = |key: &[u8]| {
        cg_format::Space::of_row(Family::OpacityMap, key) == Some(cg_format::Space::OpacityPatch)
    };
    rows(world).keys().filter(|(family, key)| *family == Family::OpacityMap && is_patch(key)).count()
}

fn a_tile_that_changes_in_every_tick_is_folded_now_and_then(world: &World) {
    let ids = Ids::register(world);
    let (busy, quiet) = (ids.at(0, 0, 0), ids.at(40, 0, 0));
    save(world, [(quiet, filled(world, ids.stone))]);
    for now in 0..220 {
        let y = i64::try_from(now % 2).expect("is small");
        save(world, [(ids.at(0, y, 0), filled(world, ids.stone))]);
        let deleted = world.transaction(|tx| {
            tx.delete(ids.at(0, 1 - y, 0));
            Ok::<_, Error>(())
        });
        deleted.expect("deletes");
        let report = world.tick(GameTick::new(now), &[], ENOUGH).expect("ticks");
        assert!(!report.work_left, "what rests is no work: {report:?}");
        let column = world.opacity().column(ids.overworld, 3, 3).expect("reads");
        assert_eq!(column.runs(), [16 * y..=16 * y + 15], "{now}");
    }
    assert_eq!(world.load(busy).expect("loads"), None);
    // At the ticks 0, 100 and 200; and the quiet one once.
    assert_eq!(
        (world.metrics().stats.tiles_folded, world.metrics().tiles_waiting, patches(world)),
        (4, 1, 2)
    );
    let report = world.tick(GameTick::new(299), &[], ENOUGH).expect("ticks");
    assert_eq!((report.tiles_folded, patches(world)), (0, 2));
    let report = world.tick(GameTick::new(300), &[], ENOUGH).expect("ticks");
    assert_eq!((report.tiles_folded, patches(world), world.metrics().tiles_waiting), (1, 0, 0));
    assert_sound(world);
}

fn a_tile_with_many_patches_does_not_wait(world: &World) {
    let ids = Ids::register(world);
    let mut folded = Vec::new();
    for now in 0..16_i64 {
        // A layer of the tile's sixteen columns of chunks, so that 256 patches are there after sixteen ticks.
        let layer = (0..16).map(|n| (ids.at(n / 4, now, n % 4), filled(world, ids.stone)));
        save(world, layer);
        let report = world.tick(GameTick::new(now.unsigned_abs()), &[], ENOUGH).expect("ticks");
        folded.push(report.tiles_folded);
    }
    assert_eq!(folded, [vec![1], vec![0; 15]].concat());
    assert_eq!(patches(world), 15 * 16);
    save(world, (0..16).map(|n| (ids.at(n / 4, 16, n % 4), filled(world, ids.stone))));
    assert_eq!(world.tick(GameTick::new(16), &[], ENOUGH).expect("ticks").tiles_folded, 1);
    assert_eq!(patches(world), 0);
    assert_eq!(world.opacity().column(ids.overworld, 3, 3).expect("reads").runs(), [0..=17 * 16 - 1]);
    assert_sound(world);
}
