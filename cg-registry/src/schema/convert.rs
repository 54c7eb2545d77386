//! Converts one instance from a replaced registration to the next.

use cg_format::ComponentShape;
use serde::{Deserialize, Serialize};

use super::ComponentSpec;

/// The recorded conversion from an old registration to the one that replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Conversion {
    /// The bytes are copied from the start. Bytes after them come from the new default.
    Prefix,
    /// Fields are matched by name. New fields come from the new default. In a wider field zeros follow the old bytes,
    /// which preserves an unsigned little-endian number.
    Fields,
    /// A function of the host, selected by the component's name.
    Function,
}

/// Converts by prefix or by fields. The result always has the new length, whatever the old one was.
///
/// `None` if a function of the host is needed. Of a variable size only the whole is a prefix.
pub fn convert(by: Conversion, old: &ComponentSpec, new: &ComponentSpec, bytes: &[u8]) -> Option<Vec<u8>> {
    if new.shape == ComponentShape::Variable {
        let is_whole = by == Conversion::Prefix && old.shape == ComponentShape::Variable;
        return is_whole.then(|| bytes.to_vec());
    }
    let mut out = new.default_bytes.clone();
    match by {
        Conversion::Prefix => copy(&mut out, bytes),
        Conversion::Fields => {
            for (to_at, to) in new.fields_at() {
                let Some((from_at, from)) = old.fields_at().find(|(_, from)| from.name == to.name) else {
                    continue;
                };
                let target = out.get_mut(to_at..to_at + to.width_bytes as usize)?;
                target.fill(0);
                copy(target, bytes.get(from_at..from_at + from.width_bytes as usize)?);
            }
        }
        Conversion::Function => return None,
    }
    Some(out)
}

fn copy(target: &mut [u8], source: &[u8]) {
    for (to, from) in target.iter_mut().zip(source) {
        *to = *from;
    }
}
