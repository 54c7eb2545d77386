//! Record values, by definition.

use super::{Cursor, Refused, put};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Record {
    pub(crate) dimension: u64,
    pub(crate) block: [i64; 3],
    /// Where in the block, from 0 to below 1.
    pub(crate) fraction: [f32; 3],
    pub(crate) timestamp: i64,
    pub(crate) kind: String,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn encode(record: &Record) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, 1, 8);
    put(&mut out, record.dimension, 8);
    for axis in record.block {
        put(&mut out, axis as u64, 8);
    }
    for axis in record.fraction {
        put(&mut out, u64::from(axis.to_bits()), 4);
    }
    put(&mut out, record.timestamp as u64, 8);
    put(&mut out, record.kind.len() as u64, 1);
    out.extend(record.kind.as_bytes());
    out.extend(&record.payload);
    out
}

/// Reads a record value to its end. As of an entity, −0.0 is no fraction.
pub(crate) fn decode(bytes: &[u8]) -> Result<Record, Refused> {
    let mut at = Cursor::new(bytes);
    let layout = at.u64("format version")?;
    if layout != 1 {
        return Err(format!("format version {layout}"));
    }
    let dimension = at.u64("dimension")?;
    let block = [at.i64("x")?, at.i64("y")?, at.i64("z")?];
    let mut fraction = [0.0; 3];
    for axis in &mut fraction {
        *axis = f32::from_bits(at.u32("fraction")?);
        if axis.is_sign_negative() || !(0.0..1.0).contains(axis) {
            return Err(format!("fraction {axis}"));
        }
    }
    let timestamp = at.i64("timestamp")?;
    let len = at.u8("kind length")?;
    let kind = at.take("kind", u64::from(len))?.to_vec();
    let kind = String::from_utf8(kind).map_err(|error| error.to_string())?;
    let payload = at.take("payload", at.left() as u64)?.to_vec();
    Ok(Record { dimension, block, fraction, timestamp, kind, payload })
}
