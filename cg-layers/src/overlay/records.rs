//! Spatial records of an overlay: its own and the base's.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::record::Record;
use cg_format::{RecordId, Space, key};
use cg_store::Error;
use cg_store::engine::Readable as _;
use cg_store::layer::kind::Records;
use cg_store::layer::{Base, leaf_of, scan_area};
use cg_store::records::RecordQuery;

use super::Overlay;

impl<S: Base> Overlay<S> {
    /// A spatial record as the overlay reads it, or `None` if there is none. Two key reads for each layer.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn record(&self, id: RecordId) -> Result<Option<Record>, Error> {
        Ok(self.shown::<Records>(&id)?.map(Arc::unwrap_or_clone))
    }

    /// The records that a query selects, in the order of the tree: the base's and the overlay's.
    ///
    /// Costs the base's query, one key read for each record that it returns, and a query of the overlay's records.
    ///
    /// # Errors
    /// As [`Records::in_leaves`](cg_store::records::Records::in_leaves) and [`load`](Self::load).
    pub fn records_in(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        self.of_one_lease(|lease| self.query(lease, query))
    }

    fn query(&self, lease: u64, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        let shape = self.store.base.record_shape();
        let below = self.store.base.records_in(query)?;
        let view = self.store.snapshot()?;
        let places: Vec<_> = below.iter().map(|(id, _)| key::overlay_record_place(lease, *id)).collect();
        let asked: Vec<_> = places.iter().map(|key| (Space::RecordPlace, &key[..])).collect();
        let mut found = Vec::new();
        for (record, written) in below.into_iter().zip(view.get_many(&asked)) {
            if written?.is_none() {
                found.push(record);
            }
        }
        let (dimension, area) = query.place();
        let failed = scan_area(&view, &key::lease(lease), shape, dimension, area, |record| {
            match record {
                Ok((id, record)) if query.wants(&record) => found.push((id, record.to_record())),
                Ok(_) => {}
                Err(error) => return ControlFlow::Break(error),
            }
            ControlFlow::Continue(())
        })?;
        failed.map_or(Ok(()), Err)?;
        found.sort_by_cached_key(|(id, record)| key::record(&leaf_of(shape, record), *id));
        Ok(found)
    }
}
