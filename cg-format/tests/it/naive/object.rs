//! Object values, by definition.

use super::{Cursor, Refused, put};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    pub(crate) version: i64,
    /// `None` if it was deleted.
    pub(crate) bytes: Option<Vec<u8>>,
}

pub(crate) fn encode(object: &Object) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, 1, 8);
    put(&mut out, object.version as u64, 8);
    out.push(if object.bytes.is_some() { 1 } else { 2 });
    out.extend(object.bytes.iter().flatten());
    out
}

/// Reads an object value to its end.
pub(crate) fn decode(bytes: &[u8]) -> Result<Object, Refused> {
    let mut at = Cursor::new(bytes);
    let layout = at.u64("format version")?;
    if layout != 1 {
        return Err(format!("format version {layout}"));
    }
    let version = at.i64("object version")?;
    if version < 0 {
        return Err(format!("object version {version}"));
    }
    let state = at.u8("state")?;
    let rest = at.take("bytes", at.left() as u64)?.to_vec();
    match state {
        1 => Ok(Object { version, bytes: Some(rest) }),
        2 if rest.is_empty() => Ok(Object { version, bytes: None }),
        other => Err(format!("state {other} with {} bytes", rest.len())),
    }
}
