//! What a hit rate says about the size of the cache: a replay of players at several sizes.

use super::*;

/// The chunks that a player sees: 8 × 8, about 270 KiB here.
const VIEW: i64 = 8;
const SIZES_KIB: [u64; 4] = [512, 1024, 2048, 4096];

/// Chunks that were read again of a thousand that were asked for, at each size, when views follow each other.
fn misses_of_1000(views: &[[i64; 2]]) -> [u64; 4] {
    SIZES_KIB.map(|kib| {
        let options = WorldOptions { cache_bytes: kib << 10, ..options() };
        let world = World::builder().options(&options).in_memory().expect("a world");
        let ids = Ids::register(&world);
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(ids.light, vec![7; 4000]);
        let seen = |[x, z]: [i64; 2]| (0..VIEW * VIEW).map(move |n| (x + n % VIEW, z + n / VIEW));
        let all: std::collections::BTreeSet<_> = views.iter().flat_map(|view| seen(*view)).collect();
        save(&world, all.iter().map(|(x, z)| (ids.at(*x, 0, *z), chunk.clone())));
        world.cache().clear();
        let before = world.metrics().stats;
        for view in views {
            let places: Vec<_> = seen(*view).map(|(x, z)| ids.at(x, 0, z)).collect();
            for found in world.load_many(&places) {
                assert!(found.expect("loads").is_some());
            }
        }
        let after = world.metrics().stats;
        let [hits, misses] = [after.cache_hits - before.cache_hits, after.cache_misses - before.cache_misses];
        misses * 1000 / (hits + misses)
    })
}

/// The figures are in decision 38. At 1 MiB both have the same hit rate, and four times the memory wins much for one. A cache that grows where its hit rate is low grows for who walks into new land, and wins
/// nothing. One that shrinks where it is high takes from who walks in circles what he is about to see again.
#[test]
fn a_hit_rate_does_not_say_what_the_next_megabyte_wins() {
    let new_land: Vec<_> = (0..400).map(|x| [x, 0]).collect();
    let round = (0..16).map(|x| [x, 0]).chain((0..16).map(|z| [16, z]));
    let back = (0..16).map(|x| [16 - x, 16]).chain((0..16).map(|z| [0, 16 - z]));
    let circle: Vec<_> = round.chain(back).collect();
    let circles = circle.repeat(10);
    let [walks_on, comes_back] = [misses_of_1000(&new_land), misses_of_1000(&circles)];
    println!("misses of 1000 at {SIZES_KIB:?} KiB: {walks_on:?} in new land, {comes_back:?} in circles");
    assert!(walks_on[1].abs_diff(comes_back[1]) <= 25, "the same hit rate: {walks_on:?} {comes_back:?}");
    let won = |misses: [u64; 4]| misses[1].saturating_sub(misses[3]);
    assert!(won(walks_on) <= 35 && won(comes_back) >= 90, "another gain: {walks_on:?} {comes_back:?}");
}
