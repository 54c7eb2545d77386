//! The spatial records of a world.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::RecordId;
use cg_format::record::{Record, RecordView};

use crate::api::world::World;
use crate::kinds::record::{RecordQuery, scan_area, scan_records};
use crate::storage::error::Error;
use crate::storage::record_shape::RecordShape;

/// The spatial records of a world. Cheap to create; like any handle, it keeps the world open.
///
/// They are changed in a [transaction](World::transaction) with [`put_record`](crate::Transaction::put_record) and
/// related calls.
///
/// ```
/// use cg_format::record::Record;
/// use cg_store::records::RecordQuery;
/// use cg_store::prelude::*;
/// let world = World::builder().in_memory()?;
/// let overworld = world.registry().register_dimension("game:overworld")?;
/// let grave = RecordId::from_bytes([7; 16]);
/// let position = EntityPos::from_f64(overworld, [-0.5, 64.0, 20.25])?;
/// world.transaction(|tx| {
///     tx.put_record(grave, Record::new(position, "game:grave", 1000, b"Steve".to_vec())?);
///     Ok::<_, Error>(())
/// })?;
///
/// let around = BlockBox::new(BlockPos::new(-8, 60, 16), BlockPos::new(8, 70, 31));
/// let records = world.records();
/// let near = records.in_box(&RecordQuery::new(overworld, around))?;
/// assert_eq!(near.len(), 1);
/// assert_eq!((near[0].0, near[0].1.kind()), (grave, "game:grave"));
/// // A client requests only records that it has not seen.
/// assert_eq!(records.in_box(&RecordQuery::new(overworld, around).after(1000))?, []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Records {
    world: World,
}

/// The approximate maximum size of the records that are inserted at once.
const INSERT_BYTES: usize = 4 << 20;
/// The maximum number of records that are inserted at once.
const INSERT_COUNT: usize = 8192;

impl Records {
    /// The shape of the tree, which never changes.
    pub fn shape(&self) -> RecordShape {
        self.world.rooms().shared.record_shape
    }

    /// The last committed state of a record, or `None` if the world does not have it. Two key reads.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn get(&self, id: RecordId) -> Result<Option<Record>, Error> {
        Ok(self.world.applied()?.read.stored_record(id)?.map(Arc::unwrap_or_clone))
    }

    /// Stores many records, in transactions of some thousands each. Returns the number of given records.
    ///
    /// If an id is given twice, the later record is stored. To store all records or none, use one transaction.
    ///
    /// # Errors
    /// As [`put_record`](crate::Transaction::put_record) and [`World::transaction`]; what was stored before stays.
    /// Waits while the queue is full.
    pub fn insert(&self, records: impl IntoIterator<Item = (RecordId, Record)>) -> Result<u64, Error> {
        let mut records = records.into_iter().peekable();
        let mut count = 0;
        while records.peek().is_some() {
            let mut part = Vec::new();
            let mut len_bytes = 0;
            while part.len() < INSERT_COUNT && len_bytes < INSERT_BYTES {
                let Some((id, record)) = records.next() else { break };
                len_bytes += record.len_bytes();
                part.push((id, Arc::new(record)));
            }
            count += part.len() as u64;
            self.world.transact(|tx| {
                tx.put_shared_records(&part);
                Ok::<_, Error>(())
            })?;
        }
        Ok(count)
    }

    /// The records that a query selects and that are in its area, in the order of the tree. Costs what
    /// [`in_leaves`](Self::in_leaves) costs.
    ///
    /// # Errors
    /// As [`in_leaves`](Self::in_leaves).
    pub fn in_box(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        let (_, area) = query.place();
        let mut found = self.in_leaves(query)?;
        found.retain(|(_, record)| area.contains(record.position.block()));
        Ok(found)
    }

    /// The records that a query selects, in the order of the tree: all of the leaves that overlap its area.
    ///
    /// Costs one seek for each run of leaves with adjacent keys, and the read of the rows in them.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged record; [`for_each_in`](Self::for_each_in) continues after it.
    pub fn in_leaves(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
        let mut found = Vec::new();
        let failed = self.for_each_in(query, |record| match record {
            Ok((id, record)) => {
                found.push((id, record.to_record()));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        })?;
        failed.map_or(Ok(found), Err)
    }

    /// Visits the records that a query selects until `visit` breaks, borrowed from the engine. A damaged record is
    /// visited as an error, and the scan continues. Commits made meanwhile are not visible.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_in<B>(
        &self,
        query: &RecordQuery,
        mut visit: impl FnMut(Result<(RecordId, RecordView<'_>), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let (dimension, area) = query.place();
        let engine = self.world.applied()?.commit.drained_engine()?;
        let view = engine.snapshot()?;
        scan_area(&view, &[], self.shape(), dimension, area, |record| match record {
            Ok((_, record)) if !query.wants(&record) => ControlFlow::Continue(()),
            record => visit(record),
        })
    }

    /// Visits every record of the world, dimension by dimension in the order of the tree, until `visit` breaks;
    /// otherwise as [`for_each_in`](Self::for_each_in).
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each<B>(
        &self,
        visit: impl FnMut(Result<(RecordId, RecordView<'_>), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        scan_records(&self.world.applied()?.commit.drained_engine()?.snapshot()?, visit)
    }
}

impl World {
    /// The world's spatial records.
    pub fn records(&self) -> Records {
        Records { world: self.clone() }
    }
}
