//! Deltas, by definition: what a commit changed in a chunk.

use std::collections::{BTreeMap, BTreeSet};

use super::{Cursor, Refused, ascends, put};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Delta {
    /// New block kinds by cell and layer.
    pub(crate) sets: BTreeMap<(u16, u8), u64>,
    pub(crate) added: BTreeSet<[u8; 16]>,
    pub(crate) removed: BTreeSet<[u8; 16]>,
}

pub(crate) fn encode(delta: &Delta) -> Vec<u8> {
    let mut out = vec![1];
    put(&mut out, delta.sets.len() as u64, 4);
    for ((cell, layer), block) in &delta.sets {
        put(&mut out, u64::from(*cell), 2);
        out.push(*layer);
        put(&mut out, *block, 8);
    }
    for uuids in [&delta.added, &delta.removed] {
        put(&mut out, uuids.len() as u64, 4);
        for uuid in uuids {
            out.extend(uuid);
        }
    }
    out
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Delta, Refused> {
    let mut at = Cursor::new(bytes);
    let version = at.u8("delta version")?;
    if version != 1 {
        return Err(format!("delta version {version}"));
    }
    let mut sets = Vec::new();
    for _ in 0..at.u32("set count")? {
        let cell = at.u16("cell")?;
        if cell >= 4096 {
            return Err(format!("cell {cell}"));
        }
        let layer = at.u8("layer")?;
        sets.push(((cell, layer), at.u64("block")?));
    }
    let places: Vec<(u16, u8)> = sets.iter().map(|(place, _)| *place).collect();
    let mut uuids = [Vec::new(), Vec::new()];
    for list in &mut uuids {
        for _ in 0..at.u32("entity count")? {
            list.push(at.uuid("entity")?);
        }
    }
    at.end("the delta")?;
    if !ascends(&places) || !uuids.iter().all(|list| ascends(list)) {
        return Err("entries do not rise".into());
    }
    if uuids[1].iter().any(|removed| uuids[0].contains(removed)) {
        return Err("an entity both comes and goes".into());
    }
    let [added, removed] = uuids.map(|list| list.into_iter().collect());
    Ok(Delta { sets: sets.into_iter().collect(), added, removed })
}

mod tests {
    use super::super::{fixture, hex};
    use super::*;

    #[test]
    fn two_sets_one_arrival_and_one_departure() {
        let delta = Delta {
            sets: BTreeMap::from([((0x0123, 0), 7), ((0x0123, 1), 9)]),
            added: BTreeSet::from([[0xaa; 16]]),
            removed: BTreeSet::from([[0xbb; 16]]),
        };
        let bytes = fixture(
            "01                       | delta version
             02000000                 | set count
             2301 00 0700000000000000 | cell x 1 y 2 z 3, layer 0, block 7
             2301 01 0900000000000000 | the same cell, layer 1, block 9
             01000000                 | added count
             aa*16
             01000000                 | removed count
             bb*16",
        );
        assert_eq!(hex(&encode(&delta)), hex(&bytes));
        assert_eq!(decode(&bytes), Ok(delta));
        for len in 0..bytes.len() {
            assert!(decode(&bytes[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn an_empty_delta_is_a_version_and_three_counts() {
        assert_eq!(encode(&Delta::default()), fixture("01 00000000*3"));
        assert_eq!(decode(&fixture("02 00000000*3")), Err("delta version 2".into()));
        assert_eq!(
            decode(&fixture("01 01000000 0010 00 0700000000000000 00000000*2")),
            Err("cell 4096".into())
        );
        assert_eq!(
            decode(&fixture("01 00000000 02000000 aa*32 00000000")),
            Err("entries do not rise".into())
        );
    }
}
