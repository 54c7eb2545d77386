//! Memory that reading a box needs: room for one cold cluster, however many the box has.

use cg_format::CellOrder;
use cg_store::prelude::*;

/// 16×4×4 chunks in each of so many cold clusters, with enough in each chunk that it matters how many are held.
fn world(clusters: i64) -> (World, Dimension) {
    let options = WorldOptions { cache_bytes: 0, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory().expect("no pack can disagree");
    let dimension = world.registry().register_dimension("game:overworld").expect("a name");
    let [air, stone] = world.registry().register_blocks([":air", "game:stone"]).expect("names");
    let saved = world.transaction(|tx| {
        let schema = tx.catalog().current_schema();
        for pos in chunks(clusters).chunks().iter() {
            let mut chunk = Chunk::filled(air, &schema)?;
            for cell in LocalPos::all().step_by(7) {
                chunk.set_block(cell, stone, &schema)?;
            }
            tx.save(ChunkAt::new(dimension, pos), chunk);
        }
        Ok::<_, Box<dyn std::error::Error>>(())
    });
    saved.expect("the chunks are sound");
    world.tiers().demote_all(1 << 30, |_| {}).expect("settles");
    (world, dimension)
}

fn chunks(clusters: i64) -> BlockBox {
    BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(256 * clusters - 1, 63, 63))
}

#[test]
fn a_large_box_takes_memory_for_one_cluster_at_a_time() {
    let (world, dimension) = world(8);
    for order in [CellOrder::Xyz, CellOrder::Zyx] {
        let peak_bytes = |clusters: i64| {
            let area = chunks(clusters);
            let mut out = vec![0_u8; area.size().into_iter().product::<u128>() as usize];
            let before = world.metrics().stats;
            let counted = allocation_counter::measure(|| {
                let absent = world.read_view(|view| {
                    view.read_box(dimension, area, order, &mut out, |block| block.get() as u8)
                });
                assert_eq!(absent.expect("is sound"), 0);
            });
            let work = world.metrics().stats - before;
            assert_eq!((work.clusters_read, work.chunks_decoded), (clusters as u64, 256 * clusters as u64));
            counted.bytes_max
        };
        let [one, eight] = [1, 8].map(peak_bytes);
        assert!(one > 50_000, "{one} bytes: the groups of a cluster are decompressed");
        assert!(eight < one + one / 4, "{order:?}: {eight} bytes for eight clusters, {one} for one");
    }
}
