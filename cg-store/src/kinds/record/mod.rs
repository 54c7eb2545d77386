//! Spatial records: what a host remembers at points of the world, found by area.
//!
//! Records lie in the leaves of trees whose [shape] the world keeps. A query returns all records of the leaves that an
//! area touches: who is near gets the full set, without a test of each point. Each record is two rows, itself under its
//! leaf and its [leaf](Space::RecordPlace) under its UUID, written by the same commit.

mod query;
mod settle;
mod shape;

use std::sync::Arc;

use cg_format::frame::{FrameView, version_of};
use cg_format::key::{self, RecordLeaf};
use cg_format::record::{Record, RecordView};
use cg_format::{RecordId, Space};

pub use query::RecordQuery;
pub(crate) use query::{scan_area, scan_records};
pub(crate) use settle::{RecordChange, leaf_of, settle};
pub use shape::{RecordSettings, RecordShape, ShapeError};

use crate::api::world::{Inner, World};
use crate::engine::Readable;
use crate::storage::error::{Damage, Error};

/// The spatial records of a world. Cheap to make; keeps the world open as any handle does.
///
/// They are changed in a [transaction](World::transaction) with [`put_record`](crate::Transaction::put_record) and its
/// siblings.
///
/// ```
/// use cg_format::record::Record;
/// use cg_store::RecordQuery;
/// use cg_store::prelude::*;
/// let world = World::temporary(&[], &WorldOptions::default())?;
/// let overworld = world.register_dimension("game:overworld")?;
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

impl World {
    /// The world's spatial records.
    pub fn records(&self) -> Records {
        Records { world: self.clone() }
    }
}

/// About so many bytes of records are inserted at once.
const INSERT_BYTES: usize = 4 << 20;
/// And at most so many records.
const INSERT_COUNT: usize = 8192;

impl Records {
    /// The shape of the tree, which the world keeps for ever.
    pub fn shape(&self) -> RecordShape {
        self.world.unsettled().record_shape
    }

    /// A record as last committed, or `None` if the world does not have it. Two key reads.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is stored and damaged.
    pub fn get(&self, id: RecordId) -> Result<Option<Record>, Error> {
        Ok(self.world.settled()?.stored_record(id)?.map(Arc::unwrap_or_clone))
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
            loop {
                let stored = self.world.transaction(|tx| {
                    tx.put_shared_records(&part);
                    Ok::<_, Error>(())
                });
                match stored {
                    Err(Error::Busy { .. }) => self.world.wait_for_room()?,
                    stored => break stored.map(drop)?,
                }
            }
        }
        Ok(count)
    }
}

impl Inner {
    pub(crate) fn stored_record(&self, id: RecordId) -> Result<Option<Arc<Record>>, Error> {
        self.stored_records(&[id]).pop().unwrap_or(Ok(None))
    }

    /// Many records, one result for each id in the order asked: those that are queued, and two reads for all others.
    pub(crate) fn stored_records(&self, ids: &[RecordId]) -> Vec<Result<Option<Arc<Record>>, Error>> {
        let queued: Vec<_> = ids.iter().map(|id| self.queue.record(*id)).collect();
        let others: Vec<_> =
            ids.iter().zip(&queued).filter(|(_, queued)| queued.is_none()).map(|(id, _)| *id).collect();
        // Both rows of a record are of one state.
        let read = |ids: &[RecordId]| -> Result<Vec<_>, Error> {
            Ok(read_records(&self.engine()?.snapshot_of_now()?, ids))
        };
        let alone = |id: &RecordId| read(&[*id])?.pop().unwrap_or(Ok(None));
        // An engine that cannot be read says so once for each record, by being asked once for each.
        let mut found = read(&others).unwrap_or_else(|_| others.iter().map(alone).collect()).into_iter();
        let result = |queued: Option<(u64, Option<Arc<Record>>)>| match queued {
            Some((_, record)) => Ok(record),
            None => found.next().unwrap_or(Ok(None)),
        };
        queued.into_iter().map(result).collect()
    }
}

impl Inner {
    /// A record with the commit that wrote it.
    pub(crate) fn found_record(&self, id: RecordId) -> Result<Option<(Arc<Record>, u64)>, Error> {
        if let Some((commit, queued)) = self.queue.record(id) {
            return Ok(queued.map(|record| (record, commit)));
        }
        let engine = self.engine()?;
        let view = engine.snapshot_of_now()?;
        let Some(place) = view.get(Space::RecordPlace, &key::record_place(id))? else { return Ok(None) };
        let key = key::record(&decode_place(id, &place)?, id);
        let row = view.get(Space::Record, &key)?;
        let row = row.as_deref().unwrap_or_default();
        let record = decode(id, &key, row)?.to_record();
        Ok(Some((Arc::new(record), version_of(row).unwrap_or_default())))
    }
}

/// The records of some ids as a view has them.
fn read_records(view: &dyn Readable, ids: &[RecordId]) -> Vec<Result<Option<Arc<Record>>, Error>> {
    let places: Vec<_> = ids.iter().map(|id| key::record_place(*id)).collect();
    let asked: Vec<_> = places.iter().map(|key| (Space::RecordPlace, &key[..])).collect();
    let leaves = ids.iter().zip(view.get_many(&asked)).map(|(id, row)| match row {
        Ok(Some(row)) => decode_place(*id, &row).map(Some),
        Ok(None) => Ok(None),
        Err(error) => Err(error.into()),
    });
    let leaves: Vec<Result<Option<RecordLeaf>, Error>> = leaves.collect();
    let key = |(id, leaf): (&RecordId, &Result<Option<RecordLeaf>, Error>)| match leaf {
        Ok(Some(leaf)) => Some(key::record(leaf, *id)),
        _ => None,
    };
    let keys: Vec<_> = ids.iter().zip(&leaves).map(key).collect();
    let asked: Vec<_> = keys.iter().flatten().map(|key| (Space::Record, &key[..])).collect();
    let mut rows = view.get_many(&asked).into_iter();
    let record = |(leaf, (id, key)): (Result<_, Error>, (&RecordId, &Option<Vec<u8>>))| {
        leaf?;
        let Some(key) = key else { return Ok(None) };
        // A place without its record is read as an empty row: it was there.
        let row = rows.next().transpose()?.flatten();
        let row = row.as_deref().unwrap_or_default();
        Ok(Some(Arc::new(decode(*id, key, row)?.to_record())))
    };
    leaves.into_iter().zip(ids.iter().zip(&keys)).map(record).collect()
}

/// Decodes a record's row.
pub(crate) fn decode<'a>(id: RecordId, key: &[u8], row: &'a [u8]) -> Result<RecordView<'a>, Error> {
    let view = FrameView::open(Space::Record, key, row).and_then(|frame| RecordView::decode(frame.payload()));
    view.map_err(|problem| Damage::of_row(Space::Record, key, format!("record {id}"), problem))
}

/// Decodes the row that says in which leaf a record lies.
pub(crate) fn decode_place(id: RecordId, row: &[u8]) -> Result<RecordLeaf, Error> {
    let key = key::record_place(id);
    let leaf = FrameView::open(Space::RecordPlace, &key, row)
        .and_then(|frame| key::decode_record_leaf(frame.payload()));
    leaf.map_err(|problem| {
        Damage::of_row(Space::RecordPlace, &key, format!("the place of record {id}"), problem)
    })
}
