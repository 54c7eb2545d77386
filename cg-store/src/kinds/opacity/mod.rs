//! The opacity map as the store keeps it: tiles, patches above them, and where they come from.
//!
//! It is a cache: nothing is decided by it alone, and it can be rebuilt from the chunks. A commit whose chunk's
//! outline changed puts one patch in its batch, so the map is never behind the chunks. Folding patches into their
//! tile is maintenance and changes no answer.

mod behind;
mod draw;
mod parts;
mod rebuild;
mod unfolded;

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, RangeInclusive};

use cg_format::chunk::Chunk;
use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::key::{self, Family};
use cg_format::opacity::{Patch, TileView, fold};
use cg_format::schema::NoComponents;
use cg_format::{BlockPos, ChunkAt, ChunkPos, Dimension, SchemaView, Space};

use crate::api::world::{Inner, World};
use crate::engine::{
    Batch, EngineError, Guard, Level, Met, Readable, ReadableExt as _, Stamp, Uncached, scan_skipping_damage,
};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

pub(crate) use behind::TileBehind;
pub(crate) use draw::Drawing;
pub(crate) use parts::{Column, Part, each_part};
use unfolded::Next;
pub(crate) use unfolded::Unfolded;

/// So many rows are searched in one tick for patches that no commit of this process told of.
const ROWS_SEARCHED: usize = 64;

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

/// The tiles that get patches from a batch, and how many each.
pub(crate) fn patched_tiles(batch: &Batch) -> BTreeMap<TileKey, u32> {
    let patches = batch.keys_put(Space::OpacityPatch);
    let mut tiles = BTreeMap::new();
    for at in patches.filter_map(|key| key::decode_opacity_patch(key).ok()) {
        *tiles.entry(key::opacity_tile(at)).or_default() += 1;
    }
    tiles
}

/// The patch of a chunk that was taken away without its outline being known.
pub(crate) fn nothing() -> Draft {
    Draft::plain(Codec::None, 0, |out| outline(None, &NoComponents).encode(out))
}

/// A chunk's outline; an absent chunk hides nothing.
fn outline(chunk: Option<&Chunk>, schema: &impl SchemaView) -> Patch {
    chunk.map_or(Patch::uniform(false), |chunk| Patch::of_chunk(chunk, schema))
}

impl World {
    /// The opaque parts of the column of blocks at (x, z). Chunks that are not stored hide nothing.
    ///
    /// Costs one scan over the tile of 64×64 columns and its patches since the last folding.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a row of the map is damaged; [`rebuild_opacity`](Self::rebuild_opacity) mends that.
    pub fn opacity(&self, dimension: Dimension, x: i64, z: i64) -> Result<OpacityColumn, Error> {
        let at = ChunkAt { dimension, pos: BlockPos::new(x, 0, z).chunk() };
        let engine = self.settled()?.settled_engine()?;
        let at_rest = engine.at_rest()?;
        let tile = folded(&*engine, key::opacity_tile(at))?;
        drop(at_rest);
        let bytes = tile.unwrap_or_else(|| cg_format::opacity::transparent(cg_format::ClusterTier::L1));
        let view = TileView::new(&bytes).expect("folding writes sound tiles");
        Ok(OpacityColumn { runs: view.column(x, z).runs().collect() })
    }

    /// Folds up to `tiles` tiles whose patches have gathered; returns how many were folded. Ticks leave a tile alone for
    /// some seconds after they folded it; this does not.
    ///
    /// # Errors
    /// As [`opacity`](Self::opacity); [`Error::NoRoom`].
    pub fn fold_opacity(&self, tiles: usize) -> Result<usize, Error> {
        self.settled()?.check_room()?;
        let (mut done, mut behind) = (0, Vec::new());
        while done < tiles {
            let Some((tile, folded)) = self.settled()?.fold_next_tile(&behind)? else { break };
            behind = behind_tile(&tile);
            done += usize::from(folded);
        }
        Ok(done)
    }
}

impl Inner {
    /// Folds the first tile behind a key that has patches, and returns its key and whether it was folded; `None` if there is
    /// none.
    fn fold_next_tile(&self, behind: &[u8]) -> Result<Option<(TileKey, bool)>, Error> {
        self.check_open()?;
        let (found, damage) = self.find_patch(behind, usize::MAX)?;
        if let Some(damage) = damage {
            return Err(damage);
        }
        let Found::Patch(tile) = found else { return Ok(None) };
        let folded = self.fold_tile(tile)?;
        Ok(Some((tile, folded)))
    }

    /// Folds a tile that is known to have patches, or looks for one among a few tiles of which that is not known. What
    /// is damaged is left as it is until a commit changes it, and goes to `damage`.
    ///
    /// Costs nothing when there is nothing to fold, however large the map is.
    fn fold_known_tile(&self, damage: &mut Vec<Error>) -> Result<Folding, Error> {
        self.check_open()?;
        let next = self.unfolded.lock().next(self.tiering.now());
        let tile = match next {
            None => return Ok(Folding::Nothing),
            Some(Next::Tile(tile)) => tile,
            Some(Next::Search(search)) => {
                let (found, met) = self.find_patch(&search.behind, ROWS_SEARCHED)?;
                damage.extend(met);
                let (up_to, folding) = match found {
                    // Its patches sort behind it. Until they are folded the tile is remembered.
                    Found::Patch(tile) => (Some(behind_tile(&tile)), Err(tile)),
                    Found::Nothing { up_to } => (Some(up_to), Ok(Folding::Searched)),
                    Found::End => (None, Ok(Folding::Nothing)),
                };
                self.unfolded.lock().searched(&search, up_to);
                match folding {
                    Ok(folding) => return Ok(folding),
                    Err(tile) => tile,
                }
            }
        };
        match self.fold_tile(tile) {
            Ok(true) => Ok(Folding::Done),
            Ok(false) => Ok(Folding::Overtaken),
            Err(error) if keeps_unfolded(&error) => {
                damage.push(error);
                Ok(Folding::Searched)
            }
            Err(error) => Err(error),
        }
    }

    /// Looks for a patch behind a key among so many rows. Says what could not be read on the way.
    fn find_patch(&self, behind: &[u8], most_rows: usize) -> Result<(Found, Option<Error>), Error> {
        let range = (Bound::Excluded(behind), Bound::Unbounded);
        let (mut passed, mut damage) = (0, None);
        // It goes through the whole map once, which would end up in the engine's cache.
        let engine = self.engine()?;
        let found = scan_skipping_damage(&Uncached::new(&*engine), Family::OpacityMap, range, |met| {
            Counters::add(&self.counters.keys_scanned, 1);
            passed += 1;
            let key = match met {
                Met::Row(key, _) => key,
                Met::Gap { error, .. } => {
                    damage.get_or_insert(error.into());
                    return ControlFlow::Continue(());
                }
            };
            if Space::of_row(Family::OpacityMap, key) == Some(Space::OpacityPatch) {
                match key::decode_opacity_patch(key) {
                    Ok(at) => return ControlFlow::Break(Found::Patch(key::opacity_tile(at))),
                    Err(problem) => {
                        let error = Damage::of_row(Space::OpacityPatch, key, "an opacity patch", problem);
                        damage.get_or_insert(error);
                    }
                }
            }
            if passed >= most_rows {
                return ControlFlow::Break(Found::Nothing { up_to: key.to_vec() });
            }
            ControlFlow::Continue(())
        })?;
        Ok((found.unwrap_or(Found::End), damage))
    }

    /// Folds a tile, unless a commit changes it meanwhile; whether it was folded.
    fn fold_tile(&self, tile_key: TileKey) -> Result<bool, Error> {
        // Before its patches are read: a commit that adds one later says so later too.
        self.unfolded.lock().forget(&tile_key);
        let folded = self.replace_by_folded(tile_key);
        // What is damaged stays so until it is drawn again, or a commit puts another patch in its place.
        if folded.as_ref().is_ok_and(|folded| *folded) {
            self.unfolded.lock().rest(tile_key, self.tiering.now());
        } else if !folded.as_ref().is_err_and(keeps_unfolded) {
            self.unfolded.lock().add([(tile_key, 1)]);
        }
        folded
    }

    fn replace_by_folded(&self, tile_key: TileKey) -> Result<bool, Error> {
        let engine = self.engine()?;
        // What it says of a column's chunks need not be of one commit: each patch is whole.
        let view = engine.snapshot_of_now()?;
        let guards = guards_of_tile(&view, &tile_key)?;
        let mut batch = Batch::new();
        for guard in guards.iter().filter(|guard| guard.space == Space::OpacityPatch) {
            batch.delete(Space::OpacityPatch, &guard.key);
        }
        if batch.is_empty() {
            return Ok(true);
        }
        if let Some(bytes) = folded(&view, tile_key)? {
            let draft = Draft::plain(Codec::None, 0, |out| out.extend(bytes));
            batch.put(Space::OpacityTile, tile_key, draft, Stamp::Commit);
        }
        match self.engine()?.commit(batch.rearranging(), &guards, Level::Process) {
            Ok(_) => {
                Counters::add(&self.counters.tiles_folded, 1);
                Ok(true)
            }
            Err(EngineError::Conflict { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether folding a tile failed in a way in which it will fail again: something is damaged, or the tile would be too large.
const fn keeps_unfolded(error: &Error) -> bool {
    error.is_damage() || matches!(error, Error::OpacityTile(_))
}

/// A key behind which no patch of a tile comes: each sorts behind the tile and below its key with one more byte of ones.
fn behind_tile(tile: &TileKey) -> Vec<u8> {
    [&tile[..], &[0xff]].concat()
}

/// What became of the wish to fold a tile.
#[derive(Debug)]
enum Folding {
    /// One was folded.
    Done,
    /// A commit came in between; it stays as it is until it is met again.
    Overtaken,
    /// A part of the map was searched in vain, or what was found is damaged; there may be patches behind it.
    Searched,
    /// None is known to have patches, and the map was searched for them.
    Nothing,
}

/// What a search for a patch found.
enum Found {
    /// The tile of the first patch.
    Patch(TileKey),
    /// No patch up to this key.
    Nothing { up_to: Vec<u8> },
    /// No patch up to the end of the map.
    End,
}

/// That a tile and its patches are what they are.
fn guards_of_tile(view: &dyn Readable, tile_key: &TileKey) -> Result<Vec<Guard>, Error> {
    let mut guards = Vec::new();
    let behind = behind_tile(tile_key);
    // What lies behind the tile may be unreadable, and is none of its business.
    view.scan(Family::OpacityMap, (Bound::Included(&tile_key[..]), Bound::Excluded(&behind)), |key, row| {
        let space = Space::of_row(Family::OpacityMap, key).unwrap_or(Space::OpacityTile);
        guards.push(Guard::same(space, key, row));
        ControlFlow::<()>::Continue(())
    })?;
    if !guards.iter().any(|guard| guard.space == Space::OpacityTile) {
        guards.push(Guard::absent(Space::OpacityTile, tile_key));
    }
    Ok(guards)
}

/// A tile with its patches folded in, or `None` if there is neither.
pub(crate) fn folded(view: &dyn Readable, tile_key: TileKey) -> Result<Option<Vec<u8>>, Error> {
    let mut tile: Option<Vec<u8>> = None;
    let mut patches: Vec<(ChunkPos, Patch)> = Vec::new();
    let mut failed = None;
    let behind = behind_tile(&tile_key);
    view.scan(Family::OpacityMap, (Bound::Included(&tile_key[..]), Bound::Excluded(&behind)), |key, row| {
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
