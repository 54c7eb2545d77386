//! What is forgotten behind a sweep.

use super::*;
use crate::engine::ReadView as _;
use crate::{World, WorldOptions};
use cg_format::chunk::Chunk;
use cg_format::{ChunkAt, ChunkPos, Space};

#[test]
fn a_cube_that_was_played_in_since_the_sweep_keeps_its_heat() {
    let world = World::temporary(&[], &WorldOptions::default()).unwrap();
    let flat = world.register_dimension("game:flat").unwrap();
    let [stone] = world.register_blocks(["game:stone"]).unwrap();
    let at = |x| ChunkAt::new(flat, ChunkPos::constant(x, 0, 0));
    let saved = world.transaction(|tx| {
        let chunk = std::sync::Arc::new(Chunk::filled(stone, &tx.catalog().current_schema())?);
        for x in [0, 4] {
            tx.save(at(x), std::sync::Arc::clone(&chunk));
        }
        Ok::<_, Error>(())
    });
    drop(saved.unwrap());
    let inner = world.inner();
    inner.keep_all_heat().unwrap();
    // The sweep met three cubes with heat and nothing else; then one was saved in, and one of those grew warm.
    let [hot, warm, empty] = [0, 4, 8].map(|x| CubeAt::of(at(x)));
    inner.tiering.touch([at(8)]);
    inner.keep_all_heat().unwrap();
    let heat = inner.tiering.observers(|seen| heat_after_move(seen, warm, GameTick::new(0)));
    demote_warm(&*inner.engine().unwrap(), &inner.counters, warm, heat).unwrap();
    let mut work = Work::default();
    work.sweep.heat_only = vec![hot, warm, empty];
    inner.forget_heat(&mut work).unwrap();
    let has_heat =
        |x| inner.engine().unwrap().get(Space::Heat, &cg_format::key::heat(at(x))).unwrap().is_some();
    assert_eq!([0, 4, 8].map(has_heat), [true, true, false]);
    assert!(work.sweep.heat_only.is_empty());
}
