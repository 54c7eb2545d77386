//! Folding the patches of a tile into it. This does not change what readers get.

use std::ops::{Bound, ControlFlow};

use cg_format::Space;
use cg_format::key::{self, Family};

use super::dirty_tiles::Next;
use crate::engine::{
    Batch, ErrorKind, Guard, Met, Readable, ReadableExt as _, Stamp, Uncached, scan_skipping_damage,
};
use crate::kinds::opacity::{TileKey, after_tile, folded, tile_row};
use crate::maintain::state::{Awaited, Background, MaintainState, commit_guarded};
use crate::maintain::tiering::{DamageLog, Due};
use crate::rt::stats::Counters;
use crate::storage::error::{Damage, Error};

/// The maximum number of rows that one tick searches for patches from before the world was opened.
const ROWS_SEARCHED: usize = 64;

/// The result of folding a tile, and the damage that was found.
type FoldedTile = (Result<Folding, Error>, Vec<Error>);

/// The one tile that a thread of the pool may be folding, because that may take longer than a tick.
#[derive(Debug, Default)]
pub(crate) struct TileFold(Option<Background<FoldedTile>>);

impl MaintainState {
    /// Folds tiles that are known to have patches, one after the other, until the deadline. The next call continues
    /// with the tile that is being folded then. Returns whether no known tile is left.
    pub(crate) fn fold_until(
        &self,
        tile: &mut TileFold,
        due: Due,
        damage_log: &mut DamageLog,
        tiles_folded: &mut usize,
    ) -> Result<bool, Error> {
        loop {
            let job = match tile.0.take() {
                Some(job) => job,
                None if due.is_over() => return Ok(false),
                None if self.activity.dirty_tiles.lock().next(self.activity.tiering.now()).is_none() => {
                    return Ok(true);
                }
                None => self.in_background("folding a tile of the opacity map", |world| {
                    let mut damage = Vec::new();
                    Ok((world.fold_known_tile(&mut damage), damage))
                }),
            };
            let (folding, damage) = match job.wait(due.time_to_wait()) {
                Awaited::Done(ended) => ended?,
                Awaited::Running(job) => {
                    tile.0 = Some(job);
                    return Ok(false);
                }
            };
            for damage in &damage {
                damage_log.report(damage);
            }
            match folding? {
                Folding::Done => *tiles_folded += 1,
                Folding::Conflict => return Ok(false),
                Folding::Searched | Folding::Nothing => return Ok(true),
            }
        }
    }

    /// Folds the first tile after a key that has patches. Returns its key and whether it was folded; `None` if there is
    /// none.
    fn fold_next_tile(&self, behind: &[u8]) -> Result<Option<(TileKey, bool)>, Error> {
        self.shared.check_open()?;
        let (found, damage) = self.find_patch(behind, usize::MAX)?;
        if let Some(damage) = damage {
            return Err(damage);
        }
        let Found::Patch(tile) = found else { return Ok(None) };
        let folded = self.fold_tile(tile)?;
        Ok(Some((tile, folded)))
    }

    /// Folds a tile that is known to have patches, or searches a few rows of the map for one. A damaged tile stays as
    /// it is until a commit changes it, and its error is added to `damage`.
    ///
    /// Costs nothing when there is nothing to fold, however large the map is.
    fn fold_known_tile(&self, damage: &mut Vec<Error>) -> Result<Folding, Error> {
        self.shared.check_open()?;
        let next = self.activity.dirty_tiles.lock().next(self.activity.tiering.now());
        let tile = match next {
            None => return Ok(Folding::Nothing),
            Some(Next::Tile(tile)) => tile,
            Some(Next::Search(search)) => {
                let (found, met) = self.find_patch(&search.behind, ROWS_SEARCHED)?;
                if met.is_some() {
                    self.activity.dirty_tiles.lock().met_damage();
                }
                damage.extend(met);
                let (up_to, folding) = match found {
                    // The patches of the tile sort after its key. Until they are folded the tile stays recorded.
                    Found::Patch(tile) => (Some(after_tile(&tile)), Err(tile)),
                    Found::Nothing { up_to } => (Some(up_to), Ok(Folding::Searched)),
                    Found::End => (None, Ok(Folding::Nothing)),
                };
                self.activity.dirty_tiles.lock().searched(&search, up_to);
                match folding {
                    Ok(folding) => return Ok(folding),
                    Err(tile) => tile,
                }
            }
        };
        match self.fold_tile(tile) {
            Ok(true) => Ok(Folding::Done),
            Ok(false) => Ok(Folding::Conflict),
            Err(error) if keeps_unfolded(&error) => {
                damage.push(error);
                Ok(Folding::Searched)
            }
            Err(error) => Err(error),
        }
    }

    /// Searches at most `most_rows` rows after a key for a patch. Returns also the first error of an unreadable row.
    fn find_patch(&self, behind: &[u8], most_rows: usize) -> Result<(Found, Option<Error>), Error> {
        let range = (Bound::Excluded(behind), Bound::Unbounded);
        let (mut passed, mut damage) = (0, None);
        // The search reads the whole map once, which should not fill the engine's cache.
        let engine = self.shared.engine()?;
        let found = scan_skipping_damage(&Uncached::new(&*engine), Family::OpacityMap, range, |met| {
            Counters::add(&self.shared.counters.keys_scanned, 1);
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

    /// Folds a tile, unless a commit changes it meanwhile. Returns whether it was folded.
    fn fold_tile(&self, tile_key: TileKey) -> Result<bool, Error> {
        // Before its patches are read: a later commit that adds a patch also records the tile later.
        self.activity.dirty_tiles.lock().begin_folding(&tile_key);
        let folded = self.replace_by_folded(tile_key);
        let mut dirty_tiles = self.activity.dirty_tiles.lock();
        dirty_tiles.end_folding(&tile_key);
        if folded.as_ref().is_ok_and(|folded| *folded) {
            dirty_tiles.rest(tile_key, self.activity.tiering.now());
        } else if folded.as_ref().is_err_and(keeps_unfolded) {
            // A damaged tile stays damaged until it is rebuilt, or a commit replaces the patch.
            dirty_tiles.met_damage();
        } else {
            dirty_tiles.add([(tile_key, 1)]);
        }
        drop(dirty_tiles);
        folded
    }

    fn replace_by_folded(&self, tile_key: TileKey) -> Result<bool, Error> {
        let engine = self.shared.engine()?;
        // The patches need not be of one commit: each patch is complete.
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
            batch.put(Space::OpacityTile, tile_key, tile_row(&bytes), Stamp::Commit);
        }
        let is_folded = commit_guarded(&*engine, batch, &guards)?;
        Counters::add(&self.shared.counters.tiles_folded, u64::from(is_folded));
        Ok(is_folded)
    }
}

/// Whether folding a tile would fail again with this error: something is damaged, or the tile would be too large.
fn keeps_unfolded(error: &Error) -> bool {
    error.kind() == ErrorKind::Damaged || matches!(error, Error::OpacityTile(_))
}

/// The result of trying to fold a tile.
#[derive(Debug)]
enum Folding {
    /// A tile was folded.
    Done,
    /// A commit changed the tile meanwhile. It stays as it is until the next try.
    Conflict,
    /// A part of the map was searched without a result, or the tile is damaged. There may be patches after it.
    Searched,
    /// No tile is known to have patches, and the whole map was searched.
    Nothing,
}

/// The result of a search for a patch.
enum Found {
    /// The tile of the first patch.
    Patch(TileKey),
    /// No patch up to this key.
    Nothing { up_to: Vec<u8> },
    /// No patch up to the end of the map.
    End,
}

/// Guards that a tile and its patches do not change.
fn guards_of_tile(view: &dyn Readable, tile_key: &TileKey) -> Result<Vec<Guard>, Error> {
    let mut guards = Vec::new();
    let behind = after_tile(tile_key);
    // Rows after the tile may be unreadable, and are not needed.
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

impl MaintainState {
    /// See [`OpacityMap::fold`](crate::opacity::OpacityMap::fold).
    pub(crate) fn fold_opacity(&self, tiles: usize) -> Result<usize, Error> {
        self.commit.check_room()?;
        if !self.shared.map.is_whole() {
            return Ok(0);
        }
        let search = self.activity.dirty_tiles.lock().search();
        let (mut done, mut behind) = (0, Vec::new());
        while done < tiles {
            let Some((tile, folded)) = self.fold_next_tile(&behind)? else {
                // Commits report the patches that they added meanwhile.
                if let Some(search) = search {
                    self.activity.dirty_tiles.lock().searched(&search, None);
                }
                break;
            };
            behind = after_tile(&tile);
            done += usize::from(folded);
        }
        Ok(done)
    }
}
