//! Spatial records in a transaction.

use std::sync::Arc;

use cg_format::RecordId;
use cg_format::entity::EntityPos;
use cg_format::record::Record;

use super::{Tx, ValueStore};
use crate::storage::error::Error;

impl<S: ValueStore> Tx<S> {
    /// A record, or `None` if the world does not have it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn record(&mut self, id: RecordId) -> Result<Option<Record>, Error> {
        if let Some(written) = self.writes.records.get(&id) {
            return Ok(written.as_deref().cloned());
        }
        Ok(self.store.record(id)?.map(Arc::unwrap_or_clone))
    }

    /// Stores a record in place of the one with this id, wherever that is. A record equal to the stored one writes
    /// nothing.
    ///
    /// # Errors
    /// At commit: [`Error::UnknownDimension`], [`Error::TooLarge`]; [`Error::Corrupt`] if the stored one is damaged.
    pub fn put_record(&mut self, id: RecordId, record: Record) {
        self.writes.records.insert(id, Some(Arc::new(record)));
    }

    /// Moves a record and keeps the rest of it; `Ok(false)` if the world does not have it.
    ///
    /// # Errors
    /// As [`record`](Self::record) and [`put_record`](Self::put_record).
    pub fn move_record(&mut self, id: RecordId, position: EntityPos) -> Result<bool, Error> {
        let Some(record) = self.record(id)? else { return Ok(false) };
        self.put_record(id, record.moved_to(position));
        Ok(true)
    }

    /// Deletes a record. Deleting an absent one is no error.
    pub fn delete_record(&mut self, id: RecordId) {
        self.writes.records.insert(id, None);
    }

    /// As [`put_record`](Self::put_record) for each.
    pub(crate) fn put_shared_records(&mut self, records: &[(RecordId, Arc<Record>)]) {
        self.writes.records.extend(records.iter().map(|(id, record)| (*id, Some(Arc::clone(record)))));
    }
}
