//! Files that our writer does not produce: many groups, counts without content, and failing readers.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use cg_format::entity::Entity;
use cg_format::{BlockBox, BlockId, BlockPos, Dimension, EntityId};
use cg_registry::Name;
use cg_registry::portable::{NamedBlock, Names};

use super::index::{Group, Index, Kept};
use super::part::Kind;
use super::*;
use crate::region::Region;
use crate::section::Contents;
use crate::snapshot::{Place, SnapshotInfo};

/// The head for a row of sections, all different and of one byte each.
fn info(sections: u64, entities: u64) -> SnapshotInfo {
    let far = BlockPos::new(16 * sections.max(1) as i64 - 1, 15, 15);
    SnapshotInfo {
        name: "made by hand".into(),
        region: Region::new(Dimension::new(0), BlockBox::new(BlockPos::new(0, 0, 0), far)),
        dimension: Name::new("game:arena").expect("a name"),
        created_ms: 0,
        contents: Contents::ALL,
        section_count: sections.max(1),
        present_count: sections,
        unique_count: sections,
        unique_bytes: sections,
        entity_count: entities,
    }
}

/// A file with this head, parts and groups. The parts are compressed with Zstandard.
fn file(info: &SnapshotInfo, names: &Names, index: &Index, entities: &[u8], groups: &[u8]) -> Vec<u8> {
    let mut file = head::encode(info, false);
    let parts: [(Kind, &[u8]); 3] =
        [(Kind::Names, &names::encode(names)), (Kind::Index, &index.encode()), (Kind::Entities, entities)];
    for (kind, raw) in parts {
        file.extend(part::encode(kind as u8, Codec::Zstd, raw).expect("short").1);
    }
    file.extend(groups);
    file
}

/// A file in which every section has a group of its own.
fn in_groups_of_one(sections: u32) -> Vec<u8> {
    let bytes: Vec<u8> = (0..sections).map(|number| number as u8).collect();
    let checksums: Vec<u32> = (0..=u8::MAX).map(|byte| crc32c::crc32c(&[byte])).collect();
    let checksum = |byte: &u8| checksums[usize::from(*byte)];
    let index = Index {
        kept: bytes.iter().map(|byte| Kept { len_bytes: 1, checksum: checksum(byte) }).collect(),
        groups: bytes
            .iter()
            .map(|byte| Group {
                section_count: 1,
                codec: Codec::None,
                stored_len_bytes: 1,
                checksum: checksum(byte),
            })
            .collect(),
        places: (1..=sections).collect(),
    };
    file(&info(sections.into(), 0), &Names::default(), &index, &[], &bytes)
}

/// This takes minutes if finding each group walks over all groups before it.
#[test]
fn a_file_of_a_hundred_thousand_groups_is_read_as_it_is_long() {
    let sections = 1 << 17;
    let bytes = in_groups_of_one(sections);
    let mut file = SnapshotFile::open(Cursor::new(bytes), Limits::default()).expect("sound");
    for index in [0, 1, 300, sections - 1] {
        let section = file.section(index as usize).expect("sound").expect("there");
        assert_eq!(section.bytes(), [index as u8]);
    }
    assert_eq!(file.section(sections as usize).expect("after the end"), None);
    let snapshot = file.load(Unverifiable::Fail).expect("sound");
    let numbers = snapshot.kept().map(|kept| kept.bytes()[0]);
    assert!(numbers.eq((0..sections).map(|number| number as u8)));
    // None of them is a chunk.
    let all = snapshot.verify();
    assert_eq!(all.len(), sections as usize);
    assert_eq!(snapshot.check().expect_err("no chunk").to_string(), all[0].to_string());
}

/// A file with entities whose bytes are zero, as many as its head gives.
#[test]
fn entities_come_out_of_the_limits_as_they_are_in_memory() {
    const STORED_BYTES: u64 = 16 + 4 + 97;
    let count = 100_000;
    let index = Index { places: vec![0], ..Index::default() };
    let bytes =
        file(&info(0, count), &Names::default(), &index, &vec![0; (count * STORED_BYTES) as usize], &[]);
    assert!(bytes.len() < 4000, "{} bytes", bytes.len());
    let parts_bytes = count * STORED_BYTES + 16 + 8;
    let refused = |limit: u64| {
        SnapshotFile::open(Cursor::new(&bytes), Limits::new(limit))
            .map(drop)
            .expect_err("refused")
            .to_string()
    };
    let needed = count * size_of::<(EntityId, Entity)>() as u64;
    let said = format!(
        "snapshot entities: entities needs {needed} bytes of memory, the limit leaves {} (at byte 0)",
        needed - 1
    );
    assert_eq!(refused(parts_bytes + needed - 1), said);
    let no_entity = refused(parts_bytes + needed);
    assert!(!no_entity.contains("memory"), "{no_entity}");
    // One more than the part can hold.
    let bytes = file(&info(0, 2), &Names::default(), &index, &[0; 2 * STORED_BYTES as usize - 1], &[]);
    let refused = SnapshotFile::open(Cursor::new(&bytes), Limits::default()).map(drop).expect_err("refused");
    assert_eq!(
        refused.to_string(),
        "snapshot entities: 2 entities of 117 bytes exceed the 233 bytes left (at byte 0)"
    );
}

#[test]
fn names_come_out_of_the_limits_as_they_are_in_memory() {
    let mut names = Names::default();
    for id in 0..1000 {
        let name = Name::new(format!("a:{id}")).expect("a name");
        let block = NamedBlock { name, opaque: true, components: Vec::new() };
        names.blocks.insert(BlockId::new(id), block.into());
    }
    let raw = names::encode(&names);
    let decoded = |limit: u64| names::decode(&raw, 1, &mut Limits::new(limit), None);
    assert_eq!(decoded(128_000), Ok(names));
    assert_eq!(
        decoded(127_999).expect_err("too many").to_string(),
        "snapshot names: blocks needs 128000 bytes of memory, the limit leaves 127999 (at byte 4)"
    );
}

/// A file in memory whose reads fail after a number of bytes.
struct Failing {
    bytes: Cursor<Vec<u8>>,
    /// The bytes that are read before the failure.
    left: usize,
}

impl Read for Failing {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            self.left = usize::MAX;
            return Err(io::Error::other("the cable came loose"));
        }
        let count = out.len().min(self.left);
        let count = self.bytes.read(&mut out[..count])?;
        self.left -= count;
        Ok(count)
    }
}

impl Seek for Failing {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.bytes.seek(to)
    }
}

#[test]
fn a_read_that_failed_is_done_again_where_it_began() {
    let index = Index {
        kept: vec![Kept { len_bytes: 4, checksum: crc32c::crc32c(b"good") }],
        groups: vec![Group {
            section_count: 1,
            codec: Codec::None,
            stored_len_bytes: 4,
            checksum: crc32c::crc32c(b"good"),
        }],
        places: vec![1],
    };
    let info = SnapshotInfo { unique_bytes: 4, ..info(1, 0) };
    let bytes = file(&info, &Names::default(), &index, &[], b"good");
    // In the middle of the group.
    let left = bytes.len() - 2;
    let mut file = SnapshotFile::open(Failing { bytes: Cursor::new(bytes), left }, Limits::default())
        .expect("read before");
    assert_eq!(file.section(0).expect_err("it fails once").to_string(), "the cable came loose");
    assert_eq!(file.section(0).expect("sound").map(|kept| kept.bytes()), Some(&b"good"[..]));
    let snapshot = file.load(Unverifiable::Fail).expect("sound");
    assert!(matches!(snapshot.section(0), Place::Kept(kept) if kept.bytes() == b"good"));
}
