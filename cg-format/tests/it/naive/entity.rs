//! Entity values, by definition.

use std::collections::BTreeMap;

use super::{Cursor, Refused, put};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entity {
    pub(crate) kind: u64,
    pub(crate) owner: Owner,
    pub(crate) dimension: u64,
    pub(crate) block: [i64; 3],
    /// Where in the block, from 0 to below 1.
    pub(crate) fraction: [f32; 3],
    pub(crate) components: BTreeMap<u64, Vec<u8>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    Chunk { dimension: u64, at: [i64; 3] },
    Detached(String),
}

pub(crate) fn encode(entity: &Entity) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, 1, 8);
    put(&mut out, entity.kind, 8);
    match &entity.owner {
        Owner::Chunk { dimension, at } => {
            out.push(1);
            put(&mut out, *dimension, 8);
            for axis in at {
                put(&mut out, *axis as u64, 8);
            }
        }
        Owner::Detached(reason) => {
            out.push(2);
            put(&mut out, reason.len() as u64, 2);
            out.extend(reason.as_bytes());
        }
    }
    put(&mut out, entity.dimension, 8);
    for axis in entity.block {
        put(&mut out, axis as u64, 8);
    }
    for axis in entity.fraction {
        put(&mut out, u64::from(axis.to_bits()), 4);
    }
    put(&mut out, entity.components.len() as u64, 4);
    for (component, bytes) in &entity.components {
        put(&mut out, *component, 8);
        put(&mut out, bytes.len() as u64, 4);
        out.extend(bytes);
    }
    out
}

/// Reads an entity value to its end.
///
/// Left free by the layout, strict here: −0.0 is no fraction, because 0.0 has one form.
pub(crate) fn decode(bytes: &[u8]) -> Result<Entity, Refused> {
    let mut at = Cursor::new(bytes);
    let version = at.u64("format version")?;
    if version != 1 {
        return Err(format!("format version {version}"));
    }
    let kind = at.u64("entity type")?;
    let owner = match at.u8("owner kind")? {
        1 => {
            let dimension = at.u64("owner dimension")?;
            let chunk = [at.i64("owner x")?, at.i64("owner y")?, at.i64("owner z")?];
            // Blocks are numbered by 64 bits and a chunk is 16 of them wide.
            if chunk.iter().any(|axis| axis.checked_mul(16).is_none()) {
                return Err(format!("chunk {chunk:?} is outside the world"));
            }
            Owner::Chunk { dimension, at: chunk }
        }
        2 => {
            let len = at.u16("reason length")?;
            let reason = at.take("reason", u64::from(len))?;
            Owner::Detached(String::from_utf8(reason.to_vec()).map_err(|error| error.to_string())?)
        }
        other => return Err(format!("owner kind {other}")),
    };
    let dimension = at.u64("dimension")?;
    let block = [at.i64("x")?, at.i64("y")?, at.i64("z")?];
    let mut fraction = [0.0; 3];
    for axis in &mut fraction {
        *axis = f32::from_bits(at.u32("fraction")?);
        if axis.is_sign_negative() || !(0.0..1.0).contains(axis) {
            return Err(format!("fraction {axis}"));
        }
    }
    let mut components: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
    for _ in 0..at.u32("component count")? {
        let component = at.u64("component id")?;
        if components.keys().next_back().is_some_and(|last| *last >= component) {
            return Err(format!("component {component:x} out of order"));
        }
        let len = at.u32("component length")?;
        components.insert(component, at.take("component", u64::from(len))?.to_vec());
    }
    at.end("the entity")?;
    Ok(Entity { kind, owner, dimension, block, fraction, components })
}

mod tests {
    use super::super::{fixture, hex};
    use super::*;

    #[test]
    fn a_mob_in_a_chunk() {
        let mob = Entity {
            kind: 5,
            owner: Owner::Chunk { dimension: 1, at: [-1, 4, 0] },
            dimension: 1,
            block: [-16, 64, 15],
            fraction: [0.5, 0.0, 0.25],
            components: BTreeMap::from([(3, vec![0xee; 2]), (1 << 63, vec![])]),
        };
        let bytes = fixture(
            "0100000000000000          | format version
             0500000000000000          | entity type
             01                        | owner kind: chunk
             0100000000000000          | owner dimension
             ffffffffffffffff          | owner x −1
             0400000000000000          | owner y
             0000000000000000          | owner z
             0100000000000000          | dimension
             f0ffffffffffffff          | x −16
             4000000000000000          | y 64
             0f00000000000000          | z 15
             0000003f                  | x fraction: sign 0, exponent 126, so 2^-1
             00000000                  | y fraction
             0000803e                  | z fraction: exponent 125, so 2^-2
             02000000                  | component count
             0300000000000000 02000000 | fixed component 3, 2 bytes
             eeee
             0000000000000080 00000000 | variable component 0, no bytes",
        );
        assert_eq!(hex(&encode(&mob)), hex(&bytes));
        assert_eq!(decode(&bytes), Ok(mob));
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn an_offline_player() {
        let player = Entity {
            kind: 0,
            owner: Owner::Detached("offline".into()),
            dimension: 0,
            block: [0; 3],
            fraction: [0.0; 3],
            components: BTreeMap::new(),
        };
        let bytes = fixture(
            "0100000000000000 0000000000000000 | format version, entity type
             02 0700 6f66666c696e65            | owner kind: detached, 7 bytes: offline
             00*32                             | dimension, x, y, z
             00000000*3                        | fractions
             00000000                          | component count",
        );
        assert_eq!(hex(&encode(&player)), hex(&bytes));
        assert_eq!(decode(&bytes), Ok(player.clone()));
        let one = Entity { fraction: [0.0, 1.0, 0.0], ..player };
        assert_eq!(decode(&encode(&one)), Err("fraction 1".into()));
    }
}
