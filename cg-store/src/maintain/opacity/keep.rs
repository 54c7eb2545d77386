//! The map of a world that begins to keep it, or ends.

use std::ops::ControlFlow;

use cg_format::Space;
use cg_format::key::{self, Family};

use super::unfolded;
use crate::engine::{ALL_KEYS, Batch, EngineError, ErrorKind, ReadableExt as _};
use crate::maintain::state::MaintainState;
use crate::storage::error::Error;
use crate::storage::opacity_map::{self, Keep, WHOLE};

impl MaintainState {
    /// Draws the map of a world that is being opened, or deletes it, if its options say so.
    ///
    /// # Errors
    /// As [`rebuild_opacity`](Self::rebuild_opacity).
    pub(crate) fn keep_map_as_asked(&self) -> Result<(), Error> {
        match self.shared.options.opacity {
            _ if self.shared.engine()?.caps().read_only => Ok(()),
            Keep::On if !self.shared.map.is_whole() => {
                tracing::info!(world = ?self.shared, "the opacity map is drawn from all chunks");
                self.rebuild_opacity().map(drop)
            }
            Keep::Off if self.has_map_rows()? => self.delete_map(),
            Keep::AsStored | Keep::On | Keep::Off => Ok(()),
        }
    }

    /// Whether there is a row of the map, or the row that says that it is whole, damaged or not.
    fn has_map_rows(&self) -> Result<bool, Error> {
        let engine = self.shared.engine()?;
        let is_there = |found: Result<bool, EngineError>| match found {
            Err(error) if error.kind() == ErrorKind::Damaged => Ok(true),
            found => found,
        };
        let first = engine.scan_first(Family::OpacityMap, ALL_KEYS, 1, |_, _| ControlFlow::Break(()));
        let whole = || engine.get(Space::WorldMeta, WHOLE.key.as_bytes()).map(|row| row.is_some());
        Ok(is_there(first.map(|first| first.is_some()))? || is_there(whole())?)
    }

    /// Deletes the map in one commit.
    fn delete_map(&self) -> Result<(), Error> {
        let mut committing = self.commit.commit_alone()?;
        self.shared.map.outdate();
        let mut batch = Batch::new();
        opacity_map::disown(&mut batch);
        unfolded::forget(&mut batch);
        // No key of the family is as long.
        let end = [0xff; key::OPACITY_PATCH_LEN_BYTES + 1];
        batch.delete_range(Space::OpacityTile, [], end);
        let seq = self.commit.commit_past_queue(batch, [])?;
        committing.publish(seq, []);
        Ok(())
    }

    /// Lets commits put patches from now on. Returns the schema generation of the moment.
    pub(super) fn begin_map(&self) -> Result<u32, Error> {
        // Every earlier commit is in the engine, where drawing finds it.
        let _committing = self.commit.commit_alone()?;
        self.shared.map.begin();
        Ok(self.shared.registry.catalog().current_generation())
    }

    /// Makes a map count that was drawn since [`begin_map`](Self::begin_map) returned `generation`. Returns whether it
    /// does: not if blocks changed their opacity meanwhile.
    pub(super) fn end_map(&self, generation: u32) -> Result<bool, Error> {
        let mut committing = self.commit.commit_alone()?;
        if self.shared.registry.catalog().opacity_changed_since(generation) {
            return Ok(false);
        }
        if !self.shared.map.is_whole() {
            let mut batch = Batch::new();
            WHOLE.put(&mut batch, &generation);
            let seq = self.commit.commit_past_queue(batch, [])?;
            self.shared.map.end();
            committing.publish(seq, []);
        }
        Ok(true)
    }
}
