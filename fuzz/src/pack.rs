//! Laws for any bytes that are taken for a pack: what is read is written so that it is read again, and the fields
//! explain every byte that a reader reads.

use cg_format::Limits;
use cg_format::codec::Codec;
use cg_snapshot::SnapshotError;
use cg_snapshot::pack::{PackReader, PackWriter, Part, explain};

/// Reads bytes as a pack and says whether they are one. Those with wrong checksums are none, and what they would say with right
/// ones keeps the same laws.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let is_one = check_sealed(bytes);
    if let Some(sealed) = super::parts::sealed_pack(bytes) {
        check_sealed(&sealed);
    }
    is_one
}

fn check_sealed(bytes: &[u8]) -> bool {
    let (_, explained) = explain(bytes, limits());
    let Ok(parts) = read(bytes) else {
        assert!(explained.is_err());
        return false;
    };
    let info = explained.expect("the same reader");
    assert_eq!(info.len_bytes, bytes.len() as u64);
    let mut pack = PackWriter::new(Vec::new(), Codec::Lz4).expect("memory takes it");
    for part in &parts {
        match part {
            Part::Region(snapshot) => pack.region(snapshot).expect("it was read"),
            Part::Records(page) => {
                page.iter()
                    .for_each(|(id, record)| pack.record(id, &record.to_record()).expect("it was read"));
            }
            Part::Properties(page) => {
                page.iter().for_each(|(name, bytes)| pack.property(&name, bytes).expect("it was read"));
            }
            Part::Objects(page) => {
                page.iter().for_each(|object| pack.object(object).expect("it was read"));
            }
        }
    }
    let (again, written) = pack.finish().expect("memory takes it");
    assert_eq!((written.object_count, written.object_bytes), (info.object_count, info.object_bytes));
    assert_eq!((written.records, written.properties), (info.records, info.properties));
    let objects = |parts: &[Part]| -> Vec<(Vec<u8>, i64, Vec<u8>)> {
        let pages =
            parts.iter().filter_map(|part| if let Part::Objects(page) = part { Some(page) } else { None });
        let objects = pages.flat_map(cg_snapshot::pack::ObjectPage::iter);
        objects.map(|object| (object.key.to_vec(), object.version, object.bytes.to_vec())).collect()
    };
    let parts_again = read(&again).expect("just written");
    assert_eq!(objects(&parts_again), objects(&parts));
    let values = |parts: &[Part]| {
        let bytes = |part: &Part| match part {
            Part::Records(page) => page.as_bytes().to_vec(),
            Part::Properties(page) => page.as_bytes().to_vec(),
            Part::Region(_) | Part::Objects(_) => Vec::new(),
        };
        parts.iter().flat_map(bytes).collect::<Vec<_>>()
    };
    assert_eq!(values(&parts_again), values(&parts));
    if let Some(Part::Region(snapshot)) = parts.first() {
        assert_eq!(parts_again.first(), Some(&Part::Region(snapshot.clone())));
    }
    true
}

fn limits() -> Limits {
    Limits::new(8 << 20)
}

fn read(bytes: &[u8]) -> Result<Vec<Part>, SnapshotError> {
    let mut pack = PackReader::open(bytes, limits())?;
    let mut parts = Vec::new();
    while let Some(part) = pack.next_part()? {
        parts.push(part);
    }
    Ok(parts)
}
