//! Records and properties go into a pack and come back; other orders, places and lengths are refused.

use std::fmt::Write as _;
use std::path::Path;

use cg_format::codec::Codec;
use cg_format::entity::EntityPos;
use cg_format::record::Record;
use cg_format::{BlockPos, Dimension, Limits, RecordId};
use cg_registry::Name;
use cg_snapshot::pack::{PackReader, PackWriter, PackedObject, Part, check, explain};
use cg_snapshot::{Merge, RestoreJob, RestoreOptions, Snapshot, SnapshotError};
use expect_test::{Expect, expect};

use super::made::{catalog, yard_up_to};

type Records = Vec<(RecordId, Record)>;
type Properties = Vec<(Name, Vec<u8>)>;

fn record(yard: &Snapshot, block: [i64; 3], kind: &str, payload: &[u8]) -> Record {
    let [x, y, z] = block;
    let position = EntityPos::new(yard.region().dimension(), BlockPos::new(x, y, z), [0.5, 0.0, 0.25]);
    Record::new(position.expect("a position"), kind, -258, payload.to_vec()).expect("it is short")
}

fn id(byte: u8) -> RecordId {
    RecordId::from_bytes([byte; 16])
}

fn name(text: &str) -> Name {
    Name::new(text).expect("a name")
}

fn signs() -> Records {
    let yard = yard_up_to(15);
    vec![
        (id(3), record(&yard, [0, 0, 15], "game:sign", b"keep out")),
        (id(7), record(&yard, [15, 15, 0], "", b"")),
    ]
}

fn rules() -> Properties {
    vec![(name("game:rules/pvp"), b"off".to_vec()), (name("game:rules/tick"), vec![])]
}

fn written(records: &Records, properties: &Properties) -> Result<Vec<u8>, SnapshotError> {
    let mut pack = PackWriter::new(Vec::new(), Codec::None)?;
    pack.region(&yard_up_to(15))?;
    records.iter().try_for_each(|(id, record)| pack.record(*id, record))?;
    properties.iter().try_for_each(|(name, bytes)| pack.property(name, bytes))?;
    pack.object(PackedObject { key: b"avatar/7/hat", version: 2, bytes: b"red" })?;
    Ok(pack.finish()?.0)
}

fn read(bytes: &[u8]) -> Result<(Records, Properties), SnapshotError> {
    let mut pack = PackReader::open(bytes, Limits::default())?;
    let (mut records, mut properties) = (Records::new(), Properties::new());
    while let Some(part) = pack.next_part()? {
        match part {
            Part::Records(page) => {
                records.extend(page.iter().map(|(id, record)| (id, record.to_record())));
            }
            Part::Properties(page) => {
                properties.extend(page.iter().map(|(name, bytes)| (name, bytes.to_vec())));
            }
            Part::Region(_) | Part::Objects(_) => {}
        }
    }
    Ok((records, properties))
}

#[test]
fn what_is_written_is_read_over_many_parts() {
    let yard = yard_up_to(15);
    let long = vec![5; 100_000];
    let records: Records =
        (0..20).map(|byte| (id(byte), record(&yard, [1, 2, 3], "game:map", &long))).collect();
    let properties: Properties =
        (10..30).map(|number| (name(&format!("game:p/{number}")), long.clone())).collect();
    let bytes = written(&records, &properties).expect("sound");
    let (info, _) = check(&bytes[..], Limits::default()).expect("sound");
    assert_eq!((info.records.count, info.properties.count, info.object_count), (20, 20, 1));
    assert_eq!(info.properties.len_bytes, 2_000_000);
    assert_eq!((info.records.longest_bytes, info.properties.longest_bytes), (100_069, 100_000));
    // Three values fill a part: the box, seven parts of each, and the objects.
    assert_eq!((info.part_count, info.len_bytes), (16, bytes.len() as u64));
    assert_eq!(read(&bytes).expect("sound"), (records, properties));
}

#[test]
fn a_pack_without_them_is_of_the_version_before() {
    assert_eq!(&written(&vec![], &vec![]).expect("sound")[..19], b"cherrygrove pack 1\n");
    assert_eq!(&written(&signs(), &vec![]).expect("sound")[..19], b"cherrygrove pack 2\n");
    assert_eq!(&written(&vec![], &rules()).expect("sound")[..19], b"cherrygrove pack 2\n");
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let good = written(&signs(), &rules()).expect("sound");
    assert_eq!(read(&good).expect("sound"), (signs(), rules()));
    for len in 0..good.len() {
        assert!(matches!(read(&good[..len]), Err(SnapshotError::Decode(_))), "{len}");
    }
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            assert!(matches!(read(&bad), Err(SnapshotError::Decode(_))), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let check = |records: Records, properties: Properties, expected: Expect| {
        let error = written(&records, &properties).expect_err("refused");
        expected.assert_eq(&error.to_string());
    };
    let order = || {
        expect![
            "a pack takes one box first, then its records ascending by UUID, properties ascending by name, objects ascending by key"
        ]
    };
    let [first, second] = [0, 1].map(|index| signs().swap_remove(index));
    check(vec![second.clone(), first.clone()], vec![], order());
    check(vec![first.clone(), first.clone()], vec![], order());
    let [pvp, tick] = [0, 1].map(|index| rules().swap_remove(index));
    check(vec![], vec![tick.clone(), pvp], order());
    check(vec![], vec![tick.clone(), tick], order());
    let outside = record(&yard_up_to(15), [16, 0, 0], "", b"");
    check(
        vec![(id(1), outside)],
        vec![],
        expect!["pack records: record is 0, allowed is one in the box of the pack (at byte 0)"],
    );
    let mut pack = PackWriter::new(Vec::new(), Codec::None).expect("memory takes it");
    assert!(matches!(pack.record(first.0, &first.1), Err(SnapshotError::PackOrder)), "there is no box");
    pack.property(&name("a:b"), b"").expect("it needs no box");
    assert!(matches!(pack.region(&yard_up_to(15)), Err(SnapshotError::PackOrder)));
}

/// A pack of the box and of parts of some kinds that hold these bytes, with sound checksums.
fn crafted(version: u8, parts: &[(u8, &[u8])]) -> Vec<u8> {
    let part = |kind: u8, raw: &[u8]| {
        let mut part = vec![kind, 0];
        part.extend((raw.len() as u32).to_le_bytes());
        part.extend((raw.len() as u32).to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&part), raw);
        part.extend(checksum.to_le_bytes());
        part.extend(raw);
        (checksum, part)
    };
    let sound = written(&vec![], &vec![]).expect("sound");
    let len = u32::from_le_bytes(sound[25..29].try_into().unwrap()) as usize;
    let (first, raw) = part(1, &sound[33..33 + len]);
    let (mut file, mut checksums) = (raw, first.to_le_bytes().to_vec());
    for (kind, raw) in parts {
        let (checksum, raw) = part(*kind, raw);
        file.extend(raw);
        checksums.extend(checksum.to_le_bytes());
    }
    let mut end = (parts.len() as u32 + 1).to_le_bytes().to_vec();
    end.extend(0_u64.to_le_bytes());
    end.extend(crc32c::crc32c(&checksums).to_le_bytes());
    let line = format!("cherrygrove pack {version}\n");
    [line.as_bytes(), &file, &part(3, &end).1].concat()
}

fn raw_record(id: u8, record: &Record) -> Vec<u8> {
    let mut raw = vec![id; 16];
    raw.extend((record.len_bytes() as u32).to_le_bytes());
    record.encode(&mut raw);
    raw
}

fn raw_property(name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let lens = [&(name.len() as u16).to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes()].concat();
    [&lens, name, bytes].concat()
}

#[track_caller]
fn refused(version: u8, parts: &[(u8, &[u8])], expected: Expect) {
    expected.assert_eq(&read(&crafted(version, parts)).expect_err("refused").to_string());
}

#[test]
fn parts_with_sound_checksums_are_checked_all_the_same() {
    let (sign, rule) = (raw_record(3, &signs()[0].1), raw_property(b"a:b", b"c"));
    let found = read(&crafted(2, &[(4, &sign), (5, &rule)])).expect("sound");
    assert_eq!(found, (signs()[..1].to_vec(), vec![(name("a:b"), b"c".to_vec())]));
    // The version, and the order.
    refused(
        1,
        &[(4, &sign)],
        expect![
            "pack part: part is 4, allowed is 1 for the box, in the first place alone, 2 for objects or 3 for the end (at byte 1774)"
        ],
    );
    refused(
        2,
        &[(5, &rule), (4, &sign)],
        expect![
            "pack part: part is 4, allowed is 1 for the box, in the first place alone, then 4 for its records, 5 for properties, 2 for objects, 3 for the end (at byte 1798)"
        ],
    );
    refused(
        2,
        &[(4, &sign), (1, &sign)],
        expect![
            "pack part: part is 1, allowed is 1 for the box, in the first place alone, then 4 for its records, 5 for properties, 2 for objects, 3 for the end (at byte 1886)"
        ],
    );
}

#[test]
fn records_with_sound_checksums_are_checked_all_the_same() {
    let (yard, sign) = (yard_up_to(15), raw_record(3, &signs()[0].1));
    refused(
        2,
        &[(4, &[])],
        expect!["in the part at byte 1774: pack records: id needs 16 bytes and 0 are left (at byte 0)"],
    );
    refused(
        2,
        &[(4, &sign), (4, &sign)],
        expect![
            "in the part at byte 1886: pack records: record is 0, allowed is one whose UUID lies above that of the one before (at byte 0)"
        ],
    );
    let lower = raw_record(2, &signs()[0].1);
    refused(
        2,
        &[(4, &[sign.clone(), lower].concat())],
        expect![
            "in the part at byte 1774: pack records: record is 1, allowed is one whose UUID lies above that of the one before (at byte 98)"
        ],
    );
    refused(
        2,
        &[(4, &raw_record(3, &record(&yard, [0, -1, 0], "", b"")))],
        expect![
            "in the part at byte 1774: pack records: record is 0, allowed is one in the box of the pack (at byte 0)"
        ],
    );
    let elsewhere = EntityPos::new(Dimension::new(77), BlockPos::new(0, 0, 0), [0.0; 3]).expect("a position");
    refused(
        2,
        &[(4, &raw_record(3, &signs()[0].1.clone().moved_to(elsewhere)))],
        expect![
            "in the part at byte 1774: pack records: record is 0, allowed is one in the box of the pack (at byte 0)"
        ],
    );
    let mut long = sign.clone();
    long[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(
        2,
        &[(4, &long)],
        expect![
            "in the part at byte 1774: pack records: record needs 4294967295 bytes and 78 are left (at byte 20)"
        ],
    );
    let mut newer = sign.clone();
    newer[20] = 9;
    refused(
        2,
        &[(4, &newer)],
        expect![
            "in the part at byte 1774: spatial record: format version is 9, and this release reads up to 1; use a newer release (at byte 20)"
        ],
    );
}

#[test]
fn properties_with_sound_checksums_are_checked_all_the_same() {
    let rule = raw_property(b"a:b", b"c");
    refused(
        2,
        &[(5, &[])],
        expect![
            "in the part at byte 1774: pack properties: name len needs 2 bytes and 0 are left (at byte 0)"
        ],
    );
    refused(
        2,
        &[(5, &rule), (5, &rule)],
        expect![
            "in the part at byte 1798: pack properties: property is 0, allowed is one whose name lies above that of the one before (at byte 0)"
        ],
    );
    refused(
        2,
        &[(5, &[rule.clone(), raw_property(b"a:a", b"")].concat())],
        expect![
            "in the part at byte 1774: pack properties: property is 1, allowed is one whose name lies above that of the one before (at byte 10)"
        ],
    );
    refused(
        2,
        &[(5, &raw_property(b"no name", b""))],
        expect![
            "in the part at byte 1774: pack properties: name len is 7, allowed is that of a name `namespace:identifier` (at byte 0)"
        ],
    );
    refused(
        2,
        &[(5, &raw_property(b"a:\xff", b""))],
        expect![
            "in the part at byte 1774: pack properties: name len is 3, allowed is that of a name `namespace:identifier` (at byte 0)"
        ],
    );
    let mut long = rule.clone();
    long[2..6].copy_from_slice(&u32::MAX.to_le_bytes());
    refused(
        2,
        &[(5, &long)],
        expect![
            "in the part at byte 1774: pack properties: bytes needs 4294967295 bytes and 1 are left (at byte 9)"
        ],
    );
}

#[test]
fn records_move_with_the_box_and_keep_their_ids_at_home() {
    let [(sign, text), _] = <[_; 2]>::try_from(signs()).expect("two");
    let job = |by_chunks| {
        let options = RestoreOptions { by_chunks, merge: Merge::Replace, ..RestoreOptions::default() };
        RestoreJob::new(yard_up_to(15).into(), &catalog(), options).expect("it fits")
    };
    assert_eq!(job([0; 3]).moved_record(sign, text.clone()).expect("inside"), (sign, text.clone()));
    let (there, moved) = job([-2, 1, 3]).moved_record(sign, text.clone()).expect("inside");
    assert_ne!(there, sign);
    assert_eq!(moved.position.block(), BlockPos::new(-32, 16, 63));
    assert_eq!(moved.position.fraction().map(f32::to_bits), text.position.fraction().map(f32::to_bits));
    assert_eq!((moved.kind(), moved.timestamp, &moved.payload), (text.kind(), -258, &text.payload));
    let again = job([-2, 1, 3]).moved_record(sign, text.clone()).expect("inside");
    assert_eq!(again.0, there, "each time the same");
    assert_ne!(job([-2, 1, 4]).moved_record(sign, text).expect("inside").0, there);
    let outside = record(&yard_up_to(15), [16, 0, 0], "", b"");
    assert!(matches!(job([0; 3]).moved_record(sign, outside), Err(SnapshotError::OutsideWorld)));
}

/// Formats the content of a golden as text.
fn text(bytes: &[u8]) -> String {
    let mut out = format!("{:#?}\n", explain(bytes, Limits::default()).1.expect("sound"));
    let (records, properties) = read(bytes).expect("sound");
    for (id, record) in records {
        writeln!(out, "{id} {record:?}").unwrap();
    }
    for (name, bytes) in properties {
        writeln!(out, "{name} {}", bytes.escape_ascii()).unwrap();
    }
    out
}

#[test]
fn the_golden_decodes_to_its_text_and_encodes_to_its_bytes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft/pack/values.bin");
    let made = written(&signs(), &rules()).expect("sound");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &made).unwrap();
        std::fs::write(file.with_extension("txt"), text(&made)).unwrap();
    }
    let golden = std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(text(&golden), std::fs::read_to_string(file.with_extension("txt")).unwrap());
    assert_eq!(made, golden);
}
