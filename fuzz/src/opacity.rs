//! Laws for any bytes that are taken for a tile or a patch: what decodes answers every question and encodes to the
//! same.

use cg_format::ChunkPos;
use cg_format::opacity::{Patch, TileView, fold, pack, unpack};

/// Decodes bytes as both and says whether they are one.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let unpacked = unpack(bytes);
    let tile = unpacked.as_deref().map_err(Clone::clone).and_then(TileView::new);
    if let Ok(tile) = &tile {
        let bytes = unpacked.as_deref().expect("it was unpacked");
        assert_eq!(*unpack(&pack(tile)).expect("just packed"), *bytes);
        assert_eq!(fold(Some(tile), &[]).expect("it was one"), bytes);
        for column in tile.columns() {
            assert_eq!(column.highest_opaque(), column.runs().last().map(|run| *run.end()));
            for run in column.runs() {
                assert!(column.is_opaque(*run.start()) && column.is_opaque(*run.end()));
            }
        }
        let top = ChunkPos::new(0, ChunkPos::MAX, 0).expect("in the world");
        let bottom = ChunkPos::new(0, ChunkPos::MIN, 0).expect("in the world");
        let patches = [(top, Patch::uniform(true)), (bottom, Patch::uniform(true))];
        let folded = fold(Some(tile), &patches).expect("the input is far below 4 GiB");
        let column = TileView::new(&folded).expect("what is folded decodes").column(0, 0);
        assert!(column.is_opaque(i64::MAX) && column.is_opaque(i64::MIN));
    }
    let patch = Patch::decode(bytes);
    if let Ok(patch) = &patch {
        let mut again = Vec::new();
        patch.encode(&mut again);
        // The long form of a uniform patch is read, and written short.
        assert!(again == bytes || patch.as_uniform().is_some());
        assert_eq!(Patch::decode(&again).as_ref(), Ok(patch));
    }
    tile.is_ok() || patch.is_ok()
}
