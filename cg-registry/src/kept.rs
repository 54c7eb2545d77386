//! Component data without an owner in its chunk at present, stored as side data.
//!
//! The registry's own two side kinds, [`:lost_components`](crate::LOST_COMPONENTS) and [`:stale`](crate::STALE), share
//! this layout:
//!
//! | offset | width | field            | meaning                              | allowed                     |
//! |--------|-------|------------------|--------------------------------------|-----------------------------|
//! | 0      | 1     | `format version` | version of this layout               | 1                           |
//! | 1      | 4     | `entry count`    | entries that follow                  | 1 or more                   |
//! | 5      | 2     | `cell`           | cell in x-y-z order                  | below 4096                  |
//! | 7      | 1     | `layer`          | layer of the cell                    | any                         |
//! | 8      | 8     | `block`          | id of the block that owned the bytes | any                         |
//! | 16     | 8     | `component`      | id of the component                  | any                         |
//! | 24     | 4     | `length`         | bytes of the instance                | what is left                |
//! | 28     | length | `bytes`          | the instance                         | any                         |
//!
//! The fields from `cell` on are repeated for each entry, ascending by cell, layer, block, component. Entries with
//! equal keys keep the order of insertion; `:lost_components` has none.

use std::collections::BTreeMap;

use cg_format::chunk::CellLayer;
use cg_format::wire::{Reader, Trace};
use cg_format::{BlockId, ComponentId, DecodeError, LocalPos, Problem, Section};

/// The version of the layout that this release writes and reads.
pub const FORMAT_VERSION: u8 = 1;

/// The bytes of an entry without its data.
const ENTRY_BYTES: u64 = 2 + 1 + 8 + 8 + 4;

/// The former owner of an instance. The order is that of the stored form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner {
    /// The cell and the layer.
    pub at: CellLayer,
    /// The kind of block that was there.
    pub block: BlockId,
    /// The component.
    pub component: ComponentId,
}

/// Component data without an owner, with the block that owned each instance.
///
/// ```
/// use cg_format::chunk::CellLayer;
/// use cg_format::{BlockId, ComponentId, LocalPos};
/// use cg_registry::KeptComponents;
/// use cg_registry::kept::Owner;
/// let mut kept = KeptComponents::default();
/// let at = CellLayer::base(LocalPos::new(1, 2, 3));
/// let owner = Owner { at, block: BlockId::new(7), component: ComponentId::variable(0) };
/// kept.push(owner, b"sixty-four torches".to_vec());
/// assert_eq!(KeptComponents::decode(&kept.encode(), None)?, kept);
/// # Ok::<_, cg_format::DecodeError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptComponents {
    entries: BTreeMap<Owner, Vec<Vec<u8>>>,
}

impl KeptComponents {
    /// Whether there are no entries. An empty value is not stored: the side data is removed.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All entries, in stored order.
    pub fn iter(&self) -> impl Iterator<Item = (Owner, &[u8])> {
        self.entries.iter().flat_map(|(owner, all)| all.iter().map(|bytes| (*owner, bytes.as_slice())))
    }

    /// Adds an instance after those of the same owner.
    pub fn push(&mut self, owner: Owner, bytes: Vec<u8>) {
        self.entries.entry(owner).or_default().push(bytes);
    }

    /// The instance of an owner, the first if there are several.
    pub fn get(&self, owner: Owner) -> Option<&[u8]> {
        self.entries.get(&owner)?.first().map(Vec::as_slice)
    }

    /// Removes all instances of an owner and returns their number.
    pub fn remove(&mut self, owner: Owner) -> usize {
        self.entries.remove(&owner).map_or(0, |all| all.len())
    }

    /// Removes the instances of owners for which `keep` returns `false`, and returns their number.
    pub fn retain(&mut self, mut keep: impl FnMut(Owner) -> bool) -> usize {
        let before = self.iter().count();
        self.entries.retain(|owner, _| keep(*owner));
        before - self.iter().count()
    }

    /// The canonical bytes: equal values give equal bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![FORMAT_VERSION];
        out.extend((self.iter().count() as u32).to_le_bytes());
        for (owner, bytes) in self.iter() {
            out.extend(owner.at.cell.index().to_le_bytes());
            out.push(owner.at.layer);
            out.extend(owner.block.get().to_le_bytes());
            out.extend(owner.component.get().to_le_bytes());
            out.extend((bytes.len() as u32).to_le_bytes());
            out.extend(bytes);
        }
        out
    }

    /// Reads the bytes of either side kind, and records the fields in a trace if one is given.
    ///
    /// # Errors
    /// A [`DecodeError`] with the offset in the side data.
    pub fn decode(bytes: &[u8], trace: Option<&Trace>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes, Section::SideData).traced(trace);
        reader.version_u8("format version", FORMAT_VERSION)?;
        let before = reader.clone();
        let count = reader.u32("entry count")?;
        let left = reader.left_bytes() as u64;
        if count == 0 {
            return Err(before.error(Problem::OutOfRange {
                field: "entry count",
                found: 0,
                allowed: "1 or more",
            }));
        }
        if u64::from(count) * ENTRY_BYTES > left {
            let (field, width) = ("entries", ENTRY_BYTES);
            let problem = Problem::CountExceedsInput { field, count: count.into(), width, left };
            return Err(before.error(problem));
        }
        let mut kept = Self::default();
        for _ in 0..count {
            let before = reader.clone();
            let found = reader.u16("cell")?;
            let Some(cell) = LocalPos::from_index(found) else {
                let (field, found, allowed) = ("cell", found.into(), "below 4096");
                return Err(before.error(Problem::OutOfRange { field, found, allowed }));
            };
            let at = CellLayer::new(cell, reader.u8("layer")?);
            let block = BlockId::new(reader.u64("block")?);
            let component = ComponentId::new(reader.u64("component")?);
            let owner = Owner { at, block, component };
            if kept.entries.last_key_value().is_some_and(|(last, _)| *last > owner) {
                let (field, allowed) = ("cell", "an entry that does not precede the one before it");
                return Err(before.error(Problem::OutOfRange { field, found: found.into(), allowed }));
            }
            let len_bytes = reader.u32("length")?;
            kept.push(owner, reader.take("bytes", len_bytes as usize)?.to_vec());
        }
        reader.end("bytes after the last entry")?;
        Ok(kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    fn owner(cell: u16, layer: u8, block: u64, component: u64) -> Owner {
        let at = CellLayer::new(LocalPos::from_index(cell % 4096).unwrap(), layer);
        Owner { at, block: BlockId::new(block), component: ComponentId::new(component) }
    }

    fn sample() -> KeptComponents {
        let mut kept = KeptComponents::default();
        kept.push(owner(300, 1, 2, 3), vec![9]);
        kept.push(owner(5, 0, 1, ComponentId::VARIABLE_BIT), b"two".to_vec());
        kept.push(owner(5, 0, 1, ComponentId::VARIABLE_BIT), b"one".to_vec());
        kept
    }

    #[track_caller]
    fn check(edit: impl FnOnce(&mut Vec<u8>), expected: Expect) {
        let mut bytes = sample().encode();
        edit(&mut bytes);
        expected.assert_eq(&KeptComponents::decode(&bytes, None).unwrap_err().to_string());
    }

    #[test]
    fn equal_owners_keep_their_order() {
        let kept = KeptComponents::decode(&sample().encode(), None).unwrap();
        let texts: Vec<_> = kept.iter().map(|(_, bytes)| bytes).collect();
        assert_eq!(texts, [&b"two"[..], b"one", &[9]]);
    }

    #[test]
    fn damage_is_named() {
        check(
            |bytes| bytes[0] = 2,
            expect![
                "side data: format version is 2, and this release reads up to 1; use a newer release (at byte 0)"
            ],
        );
        check(
            |bytes| bytes[1..5].fill(0),
            expect!["side data: entry count is 0, allowed is 1 or more (at byte 1)"],
        );
        check(
            |bytes| bytes[1..5].fill(255),
            expect!["side data: 4294967295 entries of 23 bytes exceed the 76 bytes left (at byte 1)"],
        );
        check(|bytes| bytes[6] = 16, expect!["side data: cell is 4101, allowed is below 4096 (at byte 5)"]);
        check(
            |bytes| bytes[5..7].copy_from_slice(&[255, 15]),
            expect![
                "side data: cell is 5, allowed is an entry that does not precede the one before it (at byte 31)"
            ],
        );
        check(
            |bytes| bytes[24..28].fill(255),
            expect!["side data: bytes needs 4294967295 bytes and 53 are left (at byte 28)"],
        );
        check(
            |bytes| bytes.push(0),
            expect!["side data: bytes after the last entry must be zero or absent, found 1 (at byte 81)"],
        );
        check(
            |bytes| bytes[1] = 2,
            expect!["side data: bytes after the last entry must be zero or absent, found 24 (at byte 57)"],
        );
    }

    #[test]
    fn golden_bytes_decode_and_encode() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/golden/draft/registry/kept/sample");
        let path = |extension| format!("{path}.{extension}");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path("bin"), sample().encode()).unwrap();
        }
        let golden = std::fs::read(path("bin")).unwrap();
        let kept = KeptComponents::decode(&golden, None).unwrap();
        assert_eq!((kept.encode(), &kept), (golden, &sample()));
        expect_test::expect_file![path("txt")].assert_eq(&format!("{kept:#?}\n"));
    }

    proptest! {
        #[test]
        fn decode_is_the_inverse_of_encode(
            entries in prop::collection::vec((any::<u16>(), 0..3_u8, 0..3_u64, 0..3_u64, prop::collection::vec(any::<u8>(), 0..5)), 1..20),
        ) {
            let mut kept = KeptComponents::default();
            for (cell, layer, block, component, bytes) in entries {
                kept.push(owner(cell, layer, block, component), bytes);
            }
            let bytes = kept.encode();
            prop_assert_eq!(KeptComponents::decode(&bytes, None), Ok(kept));
            for len in 0..bytes.len() {
                prop_assert!(KeptComponents::decode(&bytes[..len], None).is_err());
            }
        }

        #[test]
        fn any_bytes_decode_canonically_or_not_at_all(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let bytes = [vec![1, 1, 0, 0, 0], bytes].concat();
            if let Ok(kept) = KeptComponents::decode(&bytes, None) {
                prop_assert_eq!(kept.encode(), bytes);
            }
        }
    }
}
