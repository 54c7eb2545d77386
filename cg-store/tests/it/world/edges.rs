//! Numbers at the ends of their types: positions that are none, boxes over everything, coordinates that look alike.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::*;
use cg_format::CellOrder;
use cg_store::view::Area;

over_both_engines! {
    an_entity_at_no_point_is_refused_and_nothing_is_stored
    boxes_over_everything_end_and_show_everything
}

fn an_entity_at_no_point_is_refused_and_nothing_is_stored(world: &World) {
    let ids = Ids::register(world);
    let at = ids.at(0, 0, 0);
    save(world, [(at, filled(world, ids.air))]);
    let before = world.last_commit();
    for found in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN] {
        for axis in 0..3 {
            let mut point = [0.5; 3];
            point[axis] = found;
            let put = world.transaction(|tx| {
                let position = EntityPos::from_f64(ids.overworld, point)?;
                let mut cow = ids.cow_in(at);
                cow.position = position;
                tx.put_entity(uuid(1), cow);
                Ok::<_, Box<dyn std::error::Error>>(())
            });
            let expected = format!("{} is {found:?}", ["x", "y", "z"][axis]);
            let error = put.expect_err("is no point").to_string();
            assert!(error.contains(&expected), "{error}");
            let fraction = point.map(|part| part as f32);
            EntityPos::new(ids.overworld, at.pos.min_block(), fraction).expect_err("is no fraction");
        }
    }
    assert_eq!(world.last_commit(), before);
    assert_eq!(world.entity(uuid(1)).expect("reads"), None);
    assert_sound(world);
}

fn boxes_over_everything_end_and_show_everything(world: &World) {
    let ids = Ids::register(world);
    let end = i64::MAX >> 4;
    let places = [(0, 0, 0), (end, end, end), (-end - 1, -end - 1, -end - 1), (end, 0, -end - 1)];
    let places = places.map(|(x, y, z)| ids.at(x, y, z));
    save(world, places.map(|at| (at, filled(world, ids.stone))));
    let blocks = BlockBox::new(
        BlockPos::new(i64::MIN, i64::MIN, i64::MIN),
        BlockPos::new(i64::MAX, i64::MAX, i64::MAX),
    );
    let chunks = ChunkBox::new(blocks.min().chunk(), blocks.max().chunk());
    let count = |area: Area<'_>| {
        let mut count = 0;
        let walked = world.read_view(|view| {
            view.for_each_chunk(area, |stored| {
                stored.expect("is sound");
                count += 1;
                ControlFlow::<()>::Continue(())
            })
        });
        walked.expect("walks");
        count
    };
    assert_eq!(count(Area::Box(ids.overworld, chunks)), places.len());
    assert_eq!(count(Area::Blocks(ids.overworld, &blocks.into())), places.len());
    let mut changed = 0;
    world
        .read_view(|view| {
            view.for_each_changed(ids.overworld, &chunks, CommitSeq::NONE, |_, found| {
                changed += found.expect("is sound").len();
                ControlFlow::<()>::Continue(())
            })
        })
        .expect("walks");
    assert_eq!(changed, places.len());
    let too_long = world.read_view(|view| {
        view.read_box(ids.overworld, blocks, CellOrder::Xyz, &mut [0_u64; 8], BlockId::get)
    });
    assert!(matches!(too_long, Err(Error::BoxLength { .. })), "{too_long:?}");
    let _pinned = world.cache().pin(ids.overworld, chunks);
    let _kept = world.tiers().pin(ids.overworld, chunks);
    world.tiers().keep_loaded(ids.overworld, &chunks).expect_err("is too large");
    assert!(world.load(places[1]).expect("loads").is_some());
    assert_sound(world);
}

/// Chunks that differ in their high bits alone. If a table hashed by low bits, each load would go through all of them.
#[test]
fn chunks_whose_coordinates_share_low_bits_load_like_others() {
    const COUNT: i64 = 20_000;
    let world = World::builder().options(&WorldOptions::ephemeral()).in_memory().expect("is created");
    let ids = Ids::register(&world);
    let alike: Vec<_> =
        (0..COUNT).map(|n| ids.at((n % 141) << 40, (n / 141 % 12) << 40, (n / 1692) << 40)).collect();
    // An odd factor reaches every number once.
    let mixed = |n: i64| n.wrapping_mul(0x5851_f42d_4c95_7f2d) >> 8;
    let random: Vec<_> =
        (0..COUNT).map(|n| ids.at(mixed(n), mixed(n + COUNT), mixed(n + 2 * COUNT))).collect();
    for places in [&alike, &random] {
        for some in places.chunks(2000) {
            save(&world, some.iter().map(|at| (*at, filled(&world, ids.stone))));
        }
    }
    let time = |places: &[ChunkAt]| {
        let begun = Instant::now();
        for at in places {
            assert!(world.load(*at).expect("loads").is_some());
        }
        begun.elapsed()
    };
    // The shortest of some, since other tests run beside this one.
    let shortest = |places: &[ChunkAt]| (0..4).map(|_| time(places)).min().unwrap_or(Duration::MAX);
    let (of_alike, of_random) = (shortest(&alike), shortest(&random));
    assert!(of_alike < 4 * of_random, "{of_alike:?} for those that are alike, {of_random:?} for random ones");
}
