//! The opacity map as the store keeps it: tiles, patches above them, and where they come from.
//!
//! It is a cache: nothing is decided by it alone, and it can be rebuilt from the chunks. A commit whose chunk's
//! outline changed puts one patch in its batch, so the map is never behind the chunks. Folding patches into their
//! tile is maintenance and changes no answer.

mod draw;
mod parts;
mod rebuild;

use std::ops::{Bound, ControlFlow, RangeInclusive};

use cg_format::chunk::Chunk;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::{self, Family};
use cg_format::opacity::{Patch, TileView, fold};
use cg_format::schema::NoComponents;
use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, SchemaView, Space};

use crate::engine::{Batch, Engine, Level, ReadView, Stamp};
use crate::error::{Damage, Error};
use crate::stats::Counters;
use crate::world::{Inner, World};

pub(crate) use draw::Drawing;
pub(crate) use parts::{Column, Part, each_part};

/// The key of a tile, which begins the keys of its patches too.
pub(crate) type TileKey = [u8; key::OPACITY_TILE_LEN_BYTES];

/// The opaque parts of one column of blocks, from the bottom of the world to its top.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpacityColumn {
    runs: Vec<RangeInclusive<i64>>,
}

impl OpacityColumn {
    /// The opaque runs, from the lowest up; no two touch.
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

/// The patch that a chunk's change needs: `None` if its outline stays as it was.
pub(crate) fn patch(old: Option<&Chunk>, new: Option<&Chunk>, schema: &impl SchemaView) -> Option<Draft> {
    let (old, new) = (outline(old, schema), outline(new, schema));
    (old != new).then(|| Draft::plain(Codec::None, 0, |out| new.encode(out)))
}

/// The patch of a chunk that was taken away without its outline being known.
pub(crate) fn nothing() -> Draft {
    Draft::plain(Codec::None, 0, |out| outline(None, &NoComponents).encode(out))
}

/// A chunk's outline; an absent chunk hides nothing.
fn outline(chunk: Option<&Chunk>, schema: &impl SchemaView) -> Patch {
    chunk.map_or(Patch::uniform(false), |chunk| Patch::of_chunk(chunk, schema))
}

impl<E: Engine> World<E> {
    /// The opaque parts of the column of blocks at (x, z). Chunks that are not stored hide nothing.
    ///
    /// Costs one scan over the tile of 64×64 columns and its patches since the last folding.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a row of the map is damaged; [`rebuild_opacity`](Self::rebuild_opacity) mends that.
    pub fn opacity(&self, dimension: Dimension, x: i64, z: i64) -> Result<OpacityColumn, Error> {
        let at = ChunkAt { dimension, pos: BlockPos::new(x, 0, z).chunk() };
        let tile = folded(&self.inner().engine, key::opacity_tile(at))?;
        let bytes = tile.unwrap_or_else(|| cg_format::opacity::transparent(cg_format::ClusterTier::L1));
        let view = TileView::new(&bytes).expect("folding writes sound tiles");
        Ok(OpacityColumn { runs: view.column(x, z).runs().collect() })
    }

    /// Folds up to `tiles` tiles whose patches have gathered; returns how many were folded.
    ///
    /// # Errors
    /// As [`opacity`](Self::opacity).
    pub fn fold_opacity(&self, tiles: usize) -> Result<usize, Error> {
        let (mut done, mut behind) = (0, Vec::new());
        while done < tiles {
            let Folding::Done(tile) = self.inner().fold_next_tile(&behind, usize::MAX)? else { break };
            // Every patch of the tile sorts behind it and below its key with one more byte of ones.
            behind = [&tile[..], &[0xff]].concat();
            done += 1;
        }
        Ok(done)
    }
}

impl<E: Engine> Inner<E> {
    /// Folds the first tile behind a key that has patches, unless it would pass over more rows than that to find it.
    pub(crate) fn fold_next_tile(&self, behind: &[u8], most_rows: usize) -> Result<Folding, Error> {
        self.check_open()?;
        // Under the commit lock no patch can come between reading a tile and replacing it.
        let mut committing = self.commits.commit();
        let range = (Bound::Excluded(behind), Bound::Unbounded);
        let mut passed = 0;
        let next = self.engine.scan(Family::OpacityMap, range, |key, _| {
            Counters::add(&self.counters.keys_scanned, 1);
            let is_patch = Space::of_row(Family::OpacityMap, key) == Some(Space::OpacityPatch);
            passed += 1;
            if is_patch || passed >= most_rows {
                return ControlFlow::Break((key.to_vec(), is_patch));
            }
            ControlFlow::Continue(())
        })?;
        let patch_key = match next {
            Some((key, true)) => key,
            Some((key, false)) => return Ok(Folding::Passed(key)),
            None => return Ok(Folding::End),
        };
        let at = key::decode_opacity_patch(&patch_key).map_err(|problem| {
            Damage::of_row(Space::OpacityPatch, &patch_key, "an opacity patch", problem)
        })?;
        let tile_key = key::opacity_tile(at);
        let mut batch = Batch::new();
        for patch in patch_keys(&self.engine, &tile_key)? {
            batch.delete(Space::OpacityPatch, patch);
        }
        if let Some(bytes) = folded(&self.engine, tile_key)? {
            let draft = Draft::plain(Codec::None, 0, |out| out.extend(bytes));
            batch.put(Space::OpacityTile, tile_key, draft, Stamp::Commit);
        }
        let seq = self.engine.commit(batch, &[], Level::Process)?.get();
        committing.publish(seq, []);
        Ok(Folding::Done(tile_key))
    }
}

/// How a search for a tile with patches ended.
pub(crate) enum Folding {
    /// This tile was folded.
    Done(TileKey),
    /// There was none up to this key, and the search was long enough.
    Passed(Vec<u8>),
    /// There is none behind the key.
    End,
}

/// The keys of a tile's patches.
fn patch_keys<V: ReadView>(view: &V, tile_key: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let mut keys = Vec::new();
    view.scan(Family::OpacityMap, (Bound::Excluded(tile_key), Bound::Unbounded), |key, _| {
        if !key.starts_with(tile_key) {
            return ControlFlow::Break(());
        }
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}

/// A tile with its patches folded in, or `None` if there is neither.
pub(crate) fn folded<V: ReadView>(view: &V, tile_key: TileKey) -> Result<Option<Vec<u8>>, Error> {
    let mut tile: Option<Vec<u8>> = None;
    let mut patches: Vec<(ChunkPos, Patch)> = Vec::new();
    let mut failed = None;
    view.scan(Family::OpacityMap, (Bound::Included(&tile_key[..]), Bound::Unbounded), |key, row| {
        if !key.starts_with(&tile_key) {
            return ControlFlow::Break(());
        }
        let space = Space::of_row(Family::OpacityMap, key).unwrap_or(Space::OpacityTile);
        let read = FrameView::open(space, key, row).and_then(|frame| {
            if space == Space::OpacityTile {
                TileView::new(frame.payload())?;
                tile = Some(frame.payload().to_vec());
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
