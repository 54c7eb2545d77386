//! Any bytes are a tile, a patch, or an error; what decodes answers every question and encodes to the same.
#![no_main]

use cg_format::ChunkPos;
use cg_format::opacity::{Patch, TileView, fold};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(tile) = TileView::new(bytes) {
        assert_eq!(fold(Some(&tile), &[]).expect("it was one"), bytes);
        for column in tile.columns() {
            assert_eq!(column.highest_opaque(), column.runs().last().map(|run| *run.end()));
            for run in column.runs() {
                assert!(column.is_opaque(*run.start()) && column.is_opaque(*run.end()));
            }
        }
        let top = ChunkPos::new(0, ChunkPos::MAX, 0).expect("in the world");
        let bottom = ChunkPos::new(0, ChunkPos::MIN, 0).expect("in the world");
        let patches = [(top, Patch::uniform(true)), (bottom, Patch::uniform(true))];
        let folded = fold(Some(&tile), &patches).expect("the input is far below 4 GiB");
        let column = TileView::new(&folded).expect("what is folded decodes").column(0, 0);
        assert!(column.is_opaque(i64::MAX) && column.is_opaque(i64::MIN));
    }
    if let Ok(patch) = Patch::decode(bytes) {
        let mut again = Vec::new();
        patch.encode(&mut again);
        // The long form of a uniform patch is read, and written short.
        assert!(again == bytes || patch.as_uniform().is_some());
        assert_eq!(Patch::decode(&again), Ok(patch));
    }
});
