//! The spatial records of a world.

use std::ops::ControlFlow;
use std::sync::Arc;

use cg_format::RecordId;
use cg_format::record::{Record, RecordView};

use crate::api::world::World;
use crate::kinds::record::{RecordQuery, scan_area, scan_records};
use crate::storage::error::Error;
use crate::storage::record_shape::RecordShape;

/// The spatial records of a world. Cheap to make; keeps the world open as any handle does.
///
/// They are changed in a [transaction](World::transaction) with [`put_record`](crate::Transaction::put_record) and its
/// siblings.
///
/// ```
/// use cg_format::record::Record;
/// use cg_store::RecordQuery;
/// use cg_store::prelude::*;
/// let world = World::in_memory(&[], &WorldOptions::default())?;
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
/// let near = records.in_area(&RecordQuery::new(overworld, around))?;
/// assert_eq!(near.len(), 1);
/// assert_eq!((near[0].0, near[0].1.kind()), (grave, "game:grave"));
/// // What a client has seen already it asks for no more.
/// assert_eq!(records.in_area(&RecordQuery::new(overworld, around).after(1000))?, []);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Records {
    world: World,
}

/// About so many bytes of records are inserted at once.
const INSERT_BYTES: usize = 4 << 20;
/// And at most so many records.
const INSERT_COUNT: usize = 8192;

impl Records {
    /// The shape of the tree, which the world keeps for ever.
    pub fn shape(&self) -> RecordShape {
        self.world.rooms().shared.record_shape
    }

    /// A record as last committed, or `None` if the world does not have it. Two key reads.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn get(&self, id: RecordId) -> Result<Option<Record>, Error> {
        Ok(self.world.applied()?.read.stored_record(id)?.map(Arc::unwrap_or_clone))
    }

    /// Stores many records, in transactions of some thousands each; returns how many were given.
    ///
    /// Of an id that is given twice the later record counts. Who needs all of them or none uses one transaction.
    ///
    /// # Errors
    /// As [`put_record`](crate::Transaction::put_record) and [`World::transaction`]; what was stored before stays. A full
    /// queue is waited for.
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
}

impl Records {
    /// What a query asks for, in the order of the tree.
    ///
    /// Costs one seek for each run of leaves that lie beside each other by key, and the rows in them.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first damaged record; [`for_each_in`](Self::for_each_in) goes on after it.
    pub fn in_area(&self, query: &RecordQuery) -> Result<Vec<(RecordId, Record)>, Error> {
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

    /// Shows what a query asks for until `visit` breaks, borrowed from the engine. A damaged record is shown as an
    /// error, and the scan goes on after it. Commits made meanwhile are not seen.
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each_in<B>(
        &self,
        query: &RecordQuery,
        mut visit: impl FnMut(Result<(RecordId, RecordView<'_>), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        let (dimension, area) = query.place();
        let engine = self.world.applied()?.commit.settled_engine()?;
        let view = engine.snapshot()?;
        scan_area(&view, &[], self.shape(), dimension, area, |record| match record {
            Ok((_, record)) if !query.wants(&record) => ControlFlow::Continue(()),
            record => visit(record),
        })
    }

    /// Shows every record of the world, dimension by dimension in the order of the tree, until `visit` breaks; otherwise
    /// as [`for_each_in`](Self::for_each_in).
    ///
    /// # Errors
    /// If the engine fails.
    pub fn for_each<B>(
        &self,
        visit: impl FnMut(Result<(RecordId, RecordView<'_>), Error>) -> ControlFlow<B>,
    ) -> Result<Option<B>, Error> {
        scan_records(&self.world.applied()?.commit.settled_engine()?.snapshot()?, visit)
    }
}

impl World {
    /// The world's spatial records.
    pub fn records(&self) -> Records {
        Records { world: self.clone() }
    }
}
