//! What an overlay answers a tick thread, which waits for no disk.

use cg_layers::SegmentedWorld;

use super::*;
use crate::segment::segments;

/// The block of a chunk that memory has.
fn peeked(found: Peek) -> Result<Option<BlockId>, &'static str> {
    match found {
        Peek::Here(chunk) => Ok(Some(chunk.block(LocalPos::new(0, 0, 0)))),
        Peek::Absent => Ok(None),
        Peek::NotLoaded => Err("not loaded"),
    }
}

#[test]
fn memory_says_what_the_overlay_and_its_base_have() {
    let disk = Disk::new();
    let base = disk.create(&[]);
    let ids = Ids::register(&base);
    let [changed, deleted, below, absent] = [0, 1, 2, 40].map(|x| ids.at(x, 0, 0));
    save(&base, [changed, deleted, below].map(|at| (at, filled(&base, ids.stone))));
    let overlay = Overlay::in_memory(base.clone(), &options()).expect("an overlay");
    overlay
        .transaction(|tx| {
            tx.set_block(ids.overworld, changed.pos.min_block(), ids.glass)?;
            tx.delete(deleted);
            Ok::<_, Error>(())
        })
        .expect("commits");
    let all = [changed, deleted, below, absent];
    let expected = [Some(ids.glass), None, Some(ids.stone), None];
    base.cache().clear();
    assert_eq!(peeked(overlay.peek(below)), Err("not loaded"), "neither the row nor the base is in memory");
    let loaded = overlay.load_in_background(&all).wait().expect("is open");
    let block = |chunk: std::sync::Arc<Chunk>| chunk.block(LocalPos::new(0, 0, 0));
    let loaded: Vec<_> = loaded.into_iter().map(|chunk| chunk.expect("loads").map(block)).collect();
    assert_eq!(loaded, expected);
    assert_eq!(all.map(|at| peeked(overlay.peek(at))), expected.map(Ok));
    let column = overlay.column(ids.overworld, 0, 0, -1..=1).expect("reads");
    assert_eq!(
        column.chunks().map(|(y, chunk)| (y, block(chunk.clone()))).collect::<Vec<_>>(),
        [(0, ids.glass)]
    );
    let error = overlay.column(ids.overworld, 0, 0, 0..=1 << 40).expect_err("is too high");
    assert!(matches!(error, Error::ColumnTooHigh { .. }), "{error}");
    // What memory has of the base is not enough for a chunk that is not known to have no row.
    overlay.reset().expect("resets");
    assert_eq!(all.map(|at| peeked(overlay.peek(at))), [Err("not loaded"); 4]);
    overlay.load_many(&all).into_iter().for_each(|chunk| drop(chunk.expect("loads")));
    let reset = [Some(ids.stone), Some(ids.stone), Some(ids.stone), None];
    assert_eq!(all.map(|at| peeked(overlay.peek(at))), reset.map(Ok));
    // A change of the base is seen, and a delta waits for the chunk that it is over.
    overlay
        .transaction(|tx| tx.set_block(ids.overworld, changed.pos.block(LocalPos::new(1, 0, 0)), ids.glass))
        .expect("commits");
    overlay.load(changed).expect("loads");
    assert_eq!(peeked(overlay.peek(changed)), Ok(Some(ids.stone)));
    base.cache().clear();
    assert_eq!(peeked(overlay.peek(below)), Err("not loaded"));
    save(&base, [(below, filled(&base, ids.glass))]);
    overlay.load(below).expect("loads");
    assert_eq!(peeked(overlay.peek(below)), Ok(Some(ids.glass)));
    assert_eq!(overlay.load(absent).expect("loads"), None);
    overlay
        .transaction(|tx| {
            tx.save(absent, filled(&base, ids.stone));
            Ok::<_, Error>(())
        })
        .expect("commits");
    assert_eq!(peeked(overlay.peek(absent)), Ok(Some(ids.stone)), "not the row that was absent");
}

#[test]
fn an_overlay_over_closed_segments_does_not_wait_for_them() {
    let world = SegmentedWorld::in_memory(&[], &segments()).expect("a world");
    let ids = crate::segment::register(&world);
    let at = ids.at(0, 0, 0);
    crate::segment::save(&world, at, filled(world.root(), ids.stone));
    let below = Overlay::in_memory(world.clone(), &options()).expect("an overlay");
    let overlay = Overlay::in_memory(below.clone(), &options()).expect("an overlay over it");
    overlay.load(at).expect("loads");
    assert_eq!(peeked(overlay.peek(at)), Ok(Some(ids.stone)));
    for x in [160, 320] {
        crate::segment::save(&world, ids.at(x, 0, 0), filled(world.root(), ids.stone));
    }
    assert_eq!(peeked(overlay.peek(at)), Err("not loaded"), "its segment is closed");
    let loaded = overlay.load_in_background(&[at]).wait().expect("is open").remove(0).expect("loads");
    assert!(loaded.is_some());
    assert_eq!(peeked(overlay.peek(at)), Ok(Some(ids.stone)));
}
