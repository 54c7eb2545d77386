//! An object, a record and a property beside a chunk.

use cg_format::RecordId;
use cg_format::record::Record;
use cg_layers::{SegmentHome, SegmentedWorld};
use cg_registry::Name;
use cg_store::Tx;
use cg_store::layer::ValueStore;
use cg_store::prelude::*;

use crate::failure::Failure;

/// What a base has of them, and of their chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Values {
    object: Option<(i64, Vec<u8>)>,
    record: Option<Record>,
    property: Option<Vec<u8>>,
    blocks: Option<Vec<BlockId>>,
}

impl Values {
    pub(crate) fn of(base: &SegmentedWorld<impl SegmentHome>, n: u64, at: ChunkAt) -> Result<Self, Failure> {
        let object = base.objects().get(object(n))?;
        // The entities of a chunk are transferred apart from it.
        let blocks = base.load(at)?.map(|chunk| {
            let cells = (0..16).map(|cell| LocalPos::new(cell, cell, cell));
            cells.map(|cell| chunk.block(cell)).collect()
        });
        Ok(Self {
            object: object.map(|object| (object.version, object.bytes.to_vec())),
            record: base.records().get(record_id(n))?,
            property: base.property(&property(n)?)?,
            blocks,
        })
    }
}

pub(crate) fn put<S: ValueStore>(tx: &mut Tx<S>, n: u64, at: ChunkAt, content: u8) -> Result<(), Failure> {
    tx.put_object(object(n), [content; 40])?;
    let position = EntityPos::new(at.dimension, at.pos.min_block(), [0.5; 3])?;
    tx.put_record(record_id(n), Record::new(position, "game:thing", i64::from(content), vec![content])?);
    tx.set_property(property(n)?, Some(vec![content]));
    Ok(())
}

pub(crate) fn delete<S: ValueStore>(tx: &mut Tx<S>, n: u64) -> Result<(), Failure> {
    tx.delete_object(object(n))?;
    tx.delete_record(record_id(n));
    tx.set_property(property(n)?, None);
    Ok(())
}

fn object(n: u64) -> String {
    format!("value/{n}")
}

fn record_id(n: u64) -> RecordId {
    RecordId::from_bytes(u128::from(n).to_le_bytes())
}

fn property(n: u64) -> Result<Property, Failure> {
    Ok(Property::Named(Name::new(format!("game:value{n}"))?))
}
