//! Columns that are submitted as one.

use super::*;
use cg_format::ChunkPos;
use cg_store::cache::Column;

fn at(ids: &Ids, y: i64) -> ChunkAt {
    ids.at(7, y, 9)
}

#[test]
fn a_column_is_saved_as_its_chunks_are_and_its_gaps_stay() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let [stone, air] = [ids.stone, ids.air].map(|block| Arc::new(filled(&world, block)));
    save(&world, (-4..4).map(|y| (at(&ids, y), Chunk::clone(&air))));
    let column = Column::new(-3, [Some(Arc::clone(&stone)), None, Some(Arc::clone(&stone))]);
    let mut batch = WriteBatch::new();
    batch.save_column(ids.overworld, 7, 9, column.clone()).expect("is in the world");
    // Of writes to one place, the last counts, whatever kind they are.
    batch.save(at(&ids, -1), Arc::clone(&air));
    batch.delete(at(&ids, 2));
    batch
        .save_column(ids.overworld, 7, 9, Column::new(2, [Some(Arc::clone(&stone))]))
        .expect("is in the world");
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    let stored = |y| world.load(at(&ids, y)).expect("loads").map(|chunk| chunk.block(LocalPos::new(0, 0, 0)));
    let expected = |y| Some(if [-3, 2].contains(&y) { ids.stone } else { ids.air });
    for y in -4..4 {
        assert_eq!(stored(y), expected(y), "height {y}");
    }
    // What a world gives is saved as it is, by a transaction too.
    let elsewhere = world.column(ids.overworld, 7, 9, -4..=3).expect("loads");
    let committed = world.transaction(|tx| tx.save_column(ids.overworld, 8, 9, &elsewhere));
    committed.expect("is committed");
    let copy = world.column(ids.overworld, 8, 9, -4..=3).expect("loads");
    assert!(copy.chunks().eq(elsewhere.chunks()) && copy.chunks().count() == 8);
    let before = world.last_commit();
    let mut again = WriteBatch::new();
    again.save_column(ids.overworld, 8, 9, elsewhere).expect("is in the world");
    world.submit(again).expect("is taken").wait().expect("is accepted");
    assert_eq!(world.last_commit(), before, "an equal column writes nothing");
}

#[test]
fn a_batch_touches_the_heights_of_a_column_that_have_a_chunk() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let stone = Arc::new(filled(&world, ids.stone));
    let mut batch = WriteBatch::new();
    batch.save_column(ids.overworld, 7, 9, Column::new(0, [])).expect("has no height");
    assert!(batch.is_empty());
    let column = Column::new(-1, [Some(Arc::clone(&stone)), None, Some(stone), None]);
    batch.save_column(ids.overworld, 7, 9, column).expect("is in the world");
    let touched: Vec<_> = (-3..5).filter(|y| batch.touches(at(&ids, *y))).collect();
    assert_eq!(touched, [-1, 1]);
    assert!(!batch.touches(ids.at(8, -1, 9)) && !batch.touches(ids.at(7, -1, 8)));
}

#[test]
fn a_submitted_column_is_seen_by_whoever_reads_after_it() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let stone = Arc::new(filled(&world, ids.stone));
    for x in 0..200 {
        let mut batch = WriteBatch::new();
        batch
            .save_column(ids.overworld, x, 0, Column::new(0, vec![Some(Arc::clone(&stone)); 24]))
            .expect("is in the world");
        world.submit(batch).expect("is taken");
        // The highest chunk: the batch is at the place of the lowest.
        assert_eq!(world.load(ids.at(x, 23, 0)).expect("loads"), Some(Arc::clone(&stone)), "column {x}");
    }
}

#[test]
fn a_column_takes_its_memory_in_the_queue() {
    let options = WorldOptions { queue_bytes: 1 << 16, ..WorldOptions::default() };
    let world = World::builder().options(&options).in_memory().expect("is created");
    let ids = Ids::register(&world);
    let chunks = (0..64).map(|block| {
        let mut chunk = filled(&world, ids.air);
        chunk.set_side(cg_format::SideKind::new(0), vec![block; 4096]);
        Some(Arc::new(chunk))
    });
    let column = Column::new(0, chunks);
    let held = Arc::new(AtomicBool::new(true));
    let mut first = WriteBatch::new();
    // While the first batch is accepted nothing leaves the queue.
    save(&world, [(ids.at(0, 0, 0), filled(&world, ids.air))]);
    let waits = Arc::clone(&held);
    first.edit(ids.at(0, 0, 0), move |_| {
        while waits.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        Ok(())
    });
    world.submit(first).expect("the queue is empty");
    let mut second = WriteBatch::new();
    second.save_column(ids.overworld, 7, 9, column).expect("is in the world");
    let submitted = world.submit(second);
    held.store(false, Ordering::Relaxed);
    let refused = submitted.expect_err("more than the queue may hold");
    let Error::Busy { limit_bytes: 65536, .. } = refused.error else { panic!("{}", refused.error) };
}

#[test]
fn a_column_that_ends_outside_the_world_is_refused() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let stone = Arc::new(filled(&world, ids.stone));
    let highest = ChunkPos::MAX;
    for (x, lowest) in [(7, highest), (7, i64::MAX), (7, i64::MIN), (highest + 1, 0)] {
        let column = Column::new(lowest, [Some(Arc::clone(&stone)), Some(Arc::clone(&stone))]);
        let mut batch = WriteBatch::new();
        let by_batch = batch.save_column(ids.overworld, x, 9, column.clone()).expect_err("is outside");
        let by_transaction =
            world.transaction(|tx| tx.save_column(ids.overworld, x, 9, &column)).expect_err("is outside");
        assert!(batch.is_empty());
        assert!(matches!(by_batch, Error::Position(_)), "{by_batch}");
        assert_eq!(by_batch.to_string(), by_transaction.to_string());
    }
}

#[test]
fn equal_neighbours_share_an_encoding_and_others_do_not() {
    let world = in_memory();
    let ids = Ids::register(&world);
    let [stone, air] = [ids.stone, ids.air].map(|block| filled(&world, block));
    let mut terrain = stone.clone();
    terrain
        .set_block(LocalPos::new(1, 2, 3), ids.air, &world.catalog().current_schema())
        .expect("is registered");
    let mut with_side = stone.clone();
    with_side.set_side(world.registry().register_side("game:light").expect("is registered"), vec![7]);
    let shared = Arc::new(terrain.clone());
    // Runs of one, two, three and four, of copies and of one chunk.
    let own = |chunk: &Chunk| Some(Arc::new(chunk.clone()));
    let same = || Some(Arc::clone(&shared));
    let chunks = vec![
        own(&air),
        own(&stone),
        own(&stone),
        own(&air),
        own(&air),
        own(&air),
        own(&with_side),
        own(&stone),
        own(&stone),
        own(&stone),
        own(&stone),
        same(),
        same(),
        same(),
        own(&terrain),
        None,
        own(&stone),
        own(&with_side),
    ];
    let column = Column::new(-3, chunks);
    let mut batch = WriteBatch::new();
    batch.save_column(ids.overworld, 0, 0, column.clone()).expect("is in the world");
    world.submit(batch).expect("is taken").wait().expect("is accepted");
    world.flush().expect("is written");
    world.cache().clear();
    let stored = world.column(ids.overworld, 0, 0, -3..=14).expect("loads");
    for y in -3..=14 {
        assert_eq!(stored.chunk(y), column.chunk(y), "height {y}");
    }
}
