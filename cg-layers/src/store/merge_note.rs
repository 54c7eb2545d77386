//! The note of a merge: until which commit the rows of a lease may be merged already. As long as there is one, a merge of
//! the lease began and did not end.

use cg_format::frame::{Codec, Draft, FrameView};
use cg_format::wire::Reader;
use cg_format::{Section, Space};
use cg_store::engine::{Batch, Level, Stamp};
use cg_store::error::Damage;
use cg_store::{Error, ErrorKind};

use super::engine::RowEngine;

impl RowEngine {
    /// Stores until which commit the rows of a lease may be merged, or that no merge has begun. `Some(0)`: none may be, and
    /// others were merged and are deleted.
    pub(crate) fn note_merge(&self, lease: u64, until: Option<u64>) -> Result<(), Error> {
        let (key, mut batch) = (merge_key(lease), Batch::new());
        match until {
            Some(until) => {
                let row = Draft::plain(Codec::None, 0, |out| out.extend(until.to_le_bytes()));
                batch.put(Space::WorldMeta, key.as_bytes(), row, Stamp::Commit);
            }
            None => batch.delete(Space::WorldMeta, key.as_bytes()),
        }
        // A power cut must not take the note and leave its rows in the base.
        self.commit(batch, if until.is_some() { Level::Power } else { self.level() })?;
        Ok(())
    }

    /// Whether a merge of a lease began and did not end.
    pub(crate) fn is_merge_open(&self, lease: u64) -> Result<bool, Error> {
        Ok(self.engine().get(Space::WorldMeta, merge_key(lease).as_bytes())?.is_some())
    }

    /// Adds to a batch that the merge of a lease is over. One key read, and a deletion if it has a note, or may have one
    /// that cannot be read.
    pub(crate) fn end_merge(&self, lease: u64, batch: &mut Batch) -> Result<(), Error> {
        match self.is_merge_open(lease) {
            Ok(false) => {}
            Err(error) if error.kind() != ErrorKind::Damaged => return Err(error),
            Ok(true) | Err(_) => batch.delete(Space::WorldMeta, merge_key(lease)),
        }
        Ok(())
    }

    /// Until which commit the rows of a lease may be merged; 0 if none is.
    pub(crate) fn merged_until(&self, lease: u64) -> Result<u64, Error> {
        let key = merge_key(lease);
        let Some(row) = self.engine().get(Space::WorldMeta, key.as_bytes())? else { return Ok(0) };
        let damaged = |problem| Damage::of_row(Space::WorldMeta, key.as_bytes(), "a merge", problem);
        let frame = FrameView::open(Space::WorldMeta, key.as_bytes(), &row).map_err(damaged)?;
        let mut reader = Reader::new(frame.payload(), Section::Overlay);
        let until = reader.u64("merged until").map_err(damaged)?;
        reader.end("bytes after the commit").map_err(damaged)?;
        Ok(until)
    }
}

fn merge_key(lease: u64) -> String {
    format!("merge/{lease:016x}")
}
