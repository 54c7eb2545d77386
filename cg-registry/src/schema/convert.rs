//! Carries the bytes of one instance from a replaced registration to the next.

use cg_format::ComponentShape;
use serde::{Deserialize, Serialize};

use super::ComponentSpec;

/// The recorded way from an old registration to the one that replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Conversion {
    /// The bytes are kept from the front; what is new after them comes from the new default.
    Prefix,
    /// Each field is found by its name; new fields come from the new default, a wider field is filled with zeros
    /// after the old bytes, which keeps an unsigned little-endian number.
    Fields,
    /// A function of the host, asked for by the component's name.
    Function,
}

/// Converts by prefix or by fields. The result always has the new width, whatever the old length was.
///
/// `None` if a function of the host is needed, or if the new registration has no fixed width.
pub fn convert(by: Conversion, old: &ComponentSpec, new: &ComponentSpec, bytes: &[u8]) -> Option<Vec<u8>> {
    if new.shape == ComponentShape::Variable {
        return None;
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
