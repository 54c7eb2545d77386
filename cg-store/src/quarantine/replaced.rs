//! Copies of what is about to be written over although somebody may want it, and of properties that cannot be read.

use cg_format::Space;

use super::Damaged;
use crate::engine::Batch;
use crate::error::{ConflictKey, Error};
use crate::property::Property;
use crate::world::World;

/// A row: what it is, its key, and its bytes as they are stored.
pub(crate) type Row = (Space, Vec<u8>, Vec<u8>);

impl World {
    /// Copies rows into quarantine, each in a commit of its own. The rows stay where they are.
    ///
    /// # Errors
    /// What the engine says; some may be copied then.
    pub(crate) fn keep_copies(&self, rows: Vec<Row>) -> Result<(), Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        for (space, key, bytes) in rows {
            let mut committing = inner.commit_alone()?;
            let mut batch = Batch::new();
            inner.put_copy(&mut batch, &Damaged { space, key, bytes }, &committing)?;
            if batch.is_empty() {
                continue;
            }
            let seq = inner.commit_past_queue(batch, [])?;
            committing.publish(seq, []);
        }
        Ok(())
    }

    /// Sets properties aside: their rows are kept in quarantine, and they are not set from then on. Those that are not there
    /// are passed over. Each is a commit of its own, which is synced.
    ///
    /// # Errors
    /// What the engine says; some may be set aside then.
    pub(crate) fn set_aside_properties(&self, properties: &[Property]) -> Result<(), Error> {
        let inner = self.settled()?;
        inner.check_open()?;
        for property in properties {
            let (space, row) = property.row();
            let committing = inner.commit_alone()?;
            if matches!(self.property(property), Ok(None)) {
                continue;
            }
            let damaged = inner.damaged_row(space, row)?;
            let mut batch = Batch::new();
            inner.put_copy(&mut batch, &damaged, &committing)?;
            batch.delete(space, row);
            let written: Vec<ConflictKey> = vec![property.conflict_key()];
            inner.commit_aside(committing, batch, || property.to_string(), written, |_| {})?;
        }
        Ok(())
    }
}
