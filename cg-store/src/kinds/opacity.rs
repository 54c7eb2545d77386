//! The stored opacity map: tiles, the patches above them, and how they are derived from chunks.
//!
//! The map is a cache: nothing depends on it alone, and it can be rebuilt from the chunks. A commit that changes the
//! outline of a chunk puts one patch in the same batch, so the map always agrees with the chunks. Folding patches into
//! their tile is maintenance and does not change what readers get.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeInclusive};

use cg_format::chunk::Chunk;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::{self, Family};
use cg_format::opacity::{Patch, TileView, fold, pack, transparent, unpack};
use cg_format::{BlockPos, ChunkAt, ChunkPos, ClusterTier, Dimension, SchemaView, Space};

use crate::engine::{Batch, Readable, ReadableExt as _};
use crate::storage::error::{Damage, Error};

/// The key of a tile, which is also the prefix of the keys of its patches.
pub(crate) type TileKey = [u8; key::OPACITY_TILE_LEN_BYTES];

/// The opaque parts of one column of blocks, from the bottom of the world to its top.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpacityColumn {
    runs: Vec<RangeInclusive<i64>>,
}

impl OpacityColumn {
    /// The opaque runs in ascending order; no two touch.
    pub fn runs(&self) -> &[RangeInclusive<i64>] {
        &self.runs
    }

    /// Whether the block at a height is opaque.
    pub fn is_opaque(&self, y: i64) -> bool {
        let above = self.runs.partition_point(|run| *run.end() < y);
        self.runs.get(above).is_some_and(|run| run.contains(&y))
    }

    /// The highest opaque block, or `None` if light falls through.
    pub fn highest_opaque(&self) -> Option<i64> {
        self.runs.last().map(|run| *run.end())
    }
}

/// The patch for a change of a chunk; `None` if its outline stays as it was.
pub(crate) fn patch(old: Option<&Chunk>, new: Option<&Chunk>, schema: &impl SchemaView) -> Option<Draft> {
    let new = Patch::of_change(old, new, schema)?;
    Some(Draft::plain(Codec::None, 0, |out| new.encode(out)))
}

/// The tiles that get patches from a batch, with the number of patches.
pub(crate) fn patched_tiles(batch: &Batch) -> BTreeMap<TileKey, u32> {
    let patches = batch.keys_put(Space::OpacityPatch);
    let mut tiles = BTreeMap::new();
    for at in patches.filter_map(|key| key::decode_opacity_patch(key).ok()) {
        *tiles.entry(key::opacity_tile(at)).or_default() += 1;
    }
    tiles
}

/// The patch of a chunk that was removed without its outline being known.
pub(crate) fn nothing() -> Draft {
    Draft::plain(Codec::None, 0, |out| Patch::uniform(false).encode(out))
}

/// A key after all patches of a tile: each sorts after the tile's key and before that key with one more byte of ones.
pub(crate) fn after_tile(tile: &TileKey) -> Vec<u8> {
    [&tile[..], &[0xff]].concat()
}

/// The opaque parts of the column of blocks at (x, z) in a view.
pub(crate) fn column(
    view: &dyn Readable,
    dimension: Dimension,
    x: i64,
    z: i64,
) -> Result<OpacityColumn, Error> {
    let at = ChunkAt { dimension, pos: BlockPos::new(x, 0, z).chunk() };
    let tile = folded(view, key::opacity_tile(at))?;
    let bytes = tile.unwrap_or_else(|| transparent(ClusterTier::L1));
    let view = TileView::new(&bytes).expect("folding writes sound tiles");
    Ok(OpacityColumn { runs: view.column(x, z).runs().collect() })
}

/// The row of a tile that was folded or drawn.
pub(crate) fn tile_row(tile: &[u8]) -> Draft {
    let tile = TileView::new(tile).expect("folding writes sound tiles");
    Draft::plain(Codec::None, 0, |out| out.extend(pack(&tile)))
}

/// A tile with its patches folded in, or `None` if there is neither a tile nor a patch.
pub(crate) fn folded(view: &dyn Readable, tile_key: TileKey) -> Result<Option<Vec<u8>>, Error> {
    let mut tile: Option<Vec<u8>> = None;
    let mut patches: Vec<(ChunkPos, Patch)> = Vec::new();
    let mut failed = None;
    let behind = after_tile(&tile_key);
    view.scan(Family::OpacityMap, (Bound::Included(&tile_key[..]), Bound::Excluded(&behind)), |key, row| {
        let space = Space::of_row(Family::OpacityMap, key).unwrap_or(Space::OpacityTile);
        let read = FrameView::open(space, key, row).and_then(|frame| {
            if space == Space::OpacityTile {
                let unpacked = unpack(frame.payload())?;
                TileView::new(&unpacked)?;
                tile = Some(unpacked.into_owned());
            } else {
                patches.push((key::decode_opacity_patch(key)?.pos, Patch::decode(frame.payload())?));
            }
            Ok(())
        });
        match read {
            Ok(()) => ControlFlow::Continue(()),
            Err(problem) => {
                failed = Some(Damage::of_row(space, key, "a part of the opacity map", problem));
                ControlFlow::Break(())
            }
        }
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    if patches.is_empty() {
        return Ok(tile);
    }
    let view = tile.as_deref().map(|bytes| TileView::new(bytes).expect("checked when it was read"));
    Ok(Some(fold(view.as_ref(), &patches)?))
}
