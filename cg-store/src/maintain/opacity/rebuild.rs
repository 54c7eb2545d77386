//! Rebuilding the map tile by tile, while the world is in use.
//!
//! **Invariant**: a tile and its patches are replaced in one batch, and only by the state of its chunks when that batch
//! was committed. So whenever the rebuild stops, every tile is either unchanged or correct.

use std::ops::{Bound, ControlFlow};

use cg_format::Space;
use cg_format::frame::{Draft, FrameView};
use cg_format::key::Family;

use super::{Column, Drawing, Part, each_part};
use crate::commit::commit_log::Committing;
use crate::engine::{Batch, EngineError, ReadableExt as _, Stamp};
use crate::kinds::opacity::{TileKey, tile_row};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;

/// How often a tile is drawn while other commits change it, before the commit lock is held for it.
const TRIES_OUTSIDE_THE_LOCK: u32 = 3;

impl MaintainState {
    /// Rebuilds the tiles of a column from one read of it.
    fn redraw_column(&self, column: Column, redrawn: &mut u64) -> Result<(), Error> {
        let begun = self.commit.log.begin();
        let drawing = self.draw(column)?;
        for tile in column.tiles() {
            let drawn = drawing.tile(&tile)?;
            let replaced = self.replace_if_unchanged(begun.at, tile, drawn.as_deref())?;
            *redrawn += u64::from(match replaced {
                Some(replaced) => replaced,
                None => self.redraw_tile(tile)?,
            });
        }
        Ok(())
    }

    /// Rebuilds one tile. Returns whether it was replaced.
    fn redraw_tile(&self, tile: TileKey) -> Result<bool, Error> {
        let Some(column) = Column::of_tile(&tile) else {
            return self.replace(&mut self.commit.commit_alone()?, tile, None);
        };
        for _ in 0..TRIES_OUTSIDE_THE_LOCK {
            let begun = self.commit.log.begin();
            let drawn = self.draw(column)?.tile(&tile)?;
            if let Some(replaced) = self.replace_if_unchanged(begun.at, tile, drawn.as_deref())? {
                return Ok(replaced);
            }
        }
        let mut committing = self.commit.commit_alone()?;
        let drawn = self.draw(column)?.tile(&tile)?;
        self.replace(&mut committing, tile, drawn.as_deref())
    }

    fn draw(&self, column: Column) -> Result<Drawing, Error> {
        Drawing::of(
            &self.read,
            &self.commit.drained_engine()?.snapshot()?,
            &self.shared.registry.catalog(),
            column,
        )
    }

    /// Replaces a tile by a drawing of the state at commit `since`. Returns `None` if a chunk over it was written
    /// later.
    fn replace_if_unchanged(
        &self,
        since: u64,
        tile: TileKey,
        drawn: Option<&[u8]>,
    ) -> Result<Option<bool>, Error> {
        let mut committing = self.commit.commit_alone()?;
        let is_stale = Column::of_tile(&tile).is_some_and(|column| {
            committing.chunks_written_since(since, column.dimension(), column.area()).next().is_some()
        });
        if is_stale { Ok(None) } else { self.replace(&mut committing, tile, drawn).map(Some) }
    }

    /// Replaces a tile and its patches, unless they are equal already. Returns whether they were replaced.
    fn replace(
        &self,
        committing: &mut Committing<'_>,
        tile: TileKey,
        drawn: Option<&[u8]>,
    ) -> Result<bool, Error> {
        let drawn = drawn.map(tile_row);
        let mut batch = Batch::new();
        let mut stands = false;
        self.shared.engine()?.scan(
            Family::OpacityMap,
            (Bound::Included(&tile[..]), Bound::Unbounded),
            |key, row| {
                if !key.starts_with(&tile) {
                    return ControlFlow::Break(());
                }
                let frame = FrameView::open(Space::OpacityTile, key, row);
                if key == tile
                    && frame.is_ok_and(|frame| Some(frame.payload()) == drawn.as_ref().map(Draft::payload))
                {
                    stands = true;
                } else {
                    let space = Space::of_row(Family::OpacityMap, key).unwrap_or(Space::OpacityPatch);
                    batch.delete(space, key);
                }
                ControlFlow::Continue(())
            },
        )?;
        if let Some(draft) = drawn.filter(|_| !stands) {
            batch.put(Space::OpacityTile, tile, draft, Stamp::Commit);
        }
        if batch.is_empty() {
            return Ok(false);
        }
        let seq = self.commit.commit_past_queue(batch, [])?;
        committing.publish(seq, []);
        Ok(true)
    }
}

impl MaintainState {
    /// See [`OpacityMap::rebuild`](crate::opacity::OpacityMap::rebuild).
    pub(crate) fn rebuild_opacity(&self) -> Result<u64, Error> {
        self.shared.check_open()?;
        if self.shared.engine()?.caps().read_only {
            return Err(EngineError::OpenedReadOnly.into());
        }
        self.commit.check_room()?;
        let mut redrawn = 0;
        loop {
            let generation = self.begin_map()?;
            redrawn += self.redraw_all()?;
            if self.end_map(generation)? {
                return Ok(redrawn);
            }
        }
    }

    /// Rebuilds every tile. Returns the number of replaced ones.
    fn redraw_all(&self) -> Result<u64, Error> {
        // The list of parts is from one state; the content of each part is from the newest state.
        let engine = self.commit.drained_engine()?;
        let view = engine.snapshot()?;
        let mut redrawn = 0;
        each_part(&view, &self.shared.counters, |part| {
            self.commit.check_room()?;
            match part {
                Part::Column(column) => self.redraw_column(column, &mut redrawn)?,
                Part::Stray(tile) => redrawn += u64::from(self.redraw_tile(tile)?),
            }
            Ok(())
        })?;
        Ok(redrawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opacity::Keep;
    use crate::{World, WorldOptions};
    use cg_format::chunk::Chunk;
    use cg_format::{ChunkAt, ChunkPos, key};

    #[test]
    fn what_was_drawn_before_a_commit_over_the_tile_is_not_put_there() {
        let options = WorldOptions { opacity: Keep::On, ..WorldOptions::default() };
        let world = World::builder().options(&options).in_memory().unwrap();
        let flat = world.registry().register_dimension("game:flat").unwrap();
        let [stone] = world.registry().register_blocks(["game:stone"]).unwrap();
        let at = |x, y| ChunkAt::new(flat, ChunkPos::constant(x, y, 0));
        let save = |at| {
            let saved = world.transaction(|tx| {
                tx.save(at, Chunk::filled(stone, &tx.catalog().current_schema())?);
                Ok::<_, Error>(())
            });
            saved.unwrap();
        };
        save(at(0, 0));
        let rooms = world.rooms();
        let tile = key::opacity_tile(at(0, 0));
        let column = Column::of_tile(&tile).unwrap();
        let drawn_then = |meanwhile: ChunkAt| {
            let begun = rooms.commit.log.begin();
            let drawn = rooms.maintain.draw(column).unwrap().tile(&tile).unwrap();
            save(meanwhile);
            rooms.maintain.replace_if_unchanged(begun.at, tile, drawn.as_deref()).unwrap()
        };
        let runs = |x| world.opacity().column(flat, x, 0).unwrap().runs().to_vec();
        assert_eq!(drawn_then(at(3, 5)), None);
        assert_eq!((runs(0), runs(48)), (vec![0..=15], vec![80..=95]), "the map is as the commit left it");
        assert_eq!(drawn_then(at(4, 5)), Some(true), "beside the tile");
        assert_eq!((runs(0), runs(48), runs(64)), (vec![0..=15], vec![80..=95], vec![80..=95]));
        assert!(!rooms.maintain.redraw_tile(tile).unwrap(), "it stands as it should");
    }
}
