//! A pack goes into a file and comes back; one that is cut off, changed or put together otherwise is refused.

use std::fmt::Write as _;
use std::path::Path;

use cg_format::codec::Codec;
use cg_format::{BlockBox, BlockPos, Limits};
use cg_snapshot::pack::{PackReader, PackWriter, PackedObject, Part, check, explain};
use cg_snapshot::{
    CaptureOptions, Contents, Merge, RestoreJob, RestoreOptions, Snapshot, SnapshotError, capture,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::made::{around, captured, catalog, damage, host, region, yard, yard_up_to};

type Objects = Vec<(Vec<u8>, i64, Vec<u8>)>;

fn written(region: Option<&Snapshot>, objects: &Objects, codec: Codec) -> Result<Vec<u8>, SnapshotError> {
    let mut pack = PackWriter::new(Vec::new(), codec)?;
    if let Some(region) = region {
        pack.region(region)?;
    }
    for (key, version, bytes) in objects {
        pack.object(PackedObject { key, version: *version, bytes })?;
    }
    Ok(pack.finish()?.0)
}

fn read(bytes: &[u8]) -> Result<(Option<Snapshot>, Objects), SnapshotError> {
    let mut pack = PackReader::open(bytes, Limits::default())?;
    let (mut region, mut objects) = (None, Objects::new());
    while let Some(part) = pack.next_part()? {
        match part {
            Part::Region(snapshot) => region = Some(Snapshot::clone(&snapshot)),
            Part::Records(_) | Part::Properties(_) => panic!("none was written"),
            Part::Objects(page) => {
                let owned = |it: PackedObject<'_>| (it.key.to_vec(), it.version, it.bytes.to_vec());
                objects.extend(page.iter().map(owned));
            }
        }
    }
    Ok((region, objects))
}

fn avatar() -> Objects {
    vec![
        (b"avatar/7/bag".to_vec(), 0, Vec::new()),
        (b"avatar/7/hat".to_vec(), 258, b"red red red red red red red red".to_vec()),
        (b"avatar/7/name".to_vec(), i64::MAX, b"Ada".to_vec()),
    ]
}

/// The first chunk of the yard, and an avatar.
fn small() -> Vec<u8> {
    written(Some(&yard_up_to(15)), &avatar(), Codec::None).expect("sound")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_written_is_read(
        seed in prop::option::of(0_u64..1000),
        objects in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 1..512),
            (0..=i64::MAX, prop::collection::vec(any::<u8>(), 0..150_000)),
            0..12,
        ),
        codec in 0..3_u8,
    ) {
        let snapshot = seed.map(|seed| captured(&host(seed), around()));
        let objects: Objects = objects.into_iter().map(|(key, (version, bytes))| (key, version, bytes)).collect();
        let bytes = written(snapshot.as_ref(), &objects, Codec::from_byte(codec).unwrap()).unwrap();
        let (info, checked) = check(&bytes[..], Limits::default()).unwrap();
        prop_assert_eq!(info.len_bytes, bytes.len() as u64);
        prop_assert_eq!(info.object_count, objects.len() as u64);
        prop_assert_eq!(info.object_bytes, objects.iter().map(|(.., bytes)| bytes.len() as u64).sum::<u64>());
        prop_assert_eq!(info.longest_object_bytes, objects.iter().map(|(.., bytes)| bytes.len() as u64).max().unwrap_or(0));
        prop_assert_eq!(info.region.as_ref(), snapshot.as_ref().map(Snapshot::info));
        prop_assert_eq!(checked.as_deref(), snapshot.as_ref());
        prop_assert_eq!(read(&bytes).unwrap(), (snapshot, objects));
    }

    #[test]
    fn any_bytes_give_a_pack_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..300), head in any::<bool>()) {
        if head {
            let mut start = b"cherrygrove pack 1\n".to_vec();
            start.append(&mut bytes);
            bytes = start;
        }
        prop_assert!(read(&bytes).is_err());
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed() {
    let good = small();
    assert_eq!(read(&good).expect("sound"), (Some(yard_up_to(15)), avatar()));
    for len in 0..good.len() {
        let error = read(&good[..len]).expect_err("cut off");
        let SnapshotError::Decode(error) = error else { panic!("{len}: {error}") };
        assert!(error.offset_bytes <= len as u64, "{len}: {error}");
        assert!(matches!(error.problem, cg_format::Problem::Truncated { .. }), "{len}: {error}");
    }
    let starts = parts(&good);
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let error = read(&bad).expect_err("changed");
            let SnapshotError::Decode(error) = error else { panic!("{at}: {error}") };
            // Where it lies, or in the frame of the part that holds it.
            let part = starts.iter().rev().find(|start| **start <= at).map_or(0, |start| start + 14);
            assert!(error.offset_bytes <= at.max(part) as u64, "byte {at}, bit {bit}: {error}");
        }
    }
}

/// Where each part of a pack begins, and where the last one ends.
fn parts(pack: &[u8]) -> Vec<usize> {
    let mut starts = vec![19];
    while let Some(head) = pack.get(starts[starts.len() - 1]..).filter(|rest| !rest.is_empty()) {
        let stored = u32::from_le_bytes(head[6..10].try_into().unwrap());
        starts.push(starts[starts.len() - 1] + 14 + stored as usize);
    }
    starts
}

#[test]
fn errors_say_what_and_where() {
    let good = small();
    let check = |change: &dyn Fn(&mut Vec<u8>), expected: Expect| {
        let mut bad = good.clone();
        change(&mut bad);
        expected.assert_eq(&read(&bad).expect_err("changed").to_string());
    };
    let [_, objects, end, behind] = parts(&good)[..] else { panic!("{:?}", parts(&good)) };
    assert_eq!(behind, good.len());
    check(
        &|bad| bad[17] = b'3',
        expect![
            "pack head: signature is 3, and this release reads up to 2; use a newer release (at byte 17)"
        ],
    );
    check(
        &|bad| bad[12] = b'P',
        expect!["pack head: signature is 80, but the rest of the value implies 112 (at byte 12)"],
    );
    check(
        &|bad| bad.truncate(end),
        expect!["pack part: part head needs 14 bytes and 0 are left (at byte 1901)"],
    );
    check(
        &|bad| bad.push(7),
        expect!["pack end: bytes after the end must be zero or absent, found 7 (at byte 1931)"],
    );
    check(
        &|bad| bad[objects + 20] ^= 1,
        expect![
            "pack part: checksum is 0x6d907a8d, the bytes give 0xecbc7bd9: damaged, or stored under a wrong key (at byte 1784)"
        ],
    );
    // Whole parts away, twice, or in another order.
    check(
        &|bad| drop(bad.drain(objects..end)),
        expect![
            "in the part at byte 1774: pack end: parts is 2, but the rest of the value implies 1 (at byte 0)"
        ],
    );
    check(
        &|bad| drop(bad.drain(19..objects)),
        expect![
            "in the part at byte 146: pack end: parts is 2, but the rest of the value implies 1 (at byte 0)"
        ],
    );
    check(
        &|bad| drop(bad.splice(end..end, good[objects..end].to_vec())),
        expect![
            "in the part at byte 1901: pack objects: object is 0, allowed is one whose key lies above that of the one before (at byte 0)"
        ],
    );
    check(
        &|bad| drop(bad.splice(end..end, good[19..objects].to_vec())),
        expect![
            "pack part: part is 1, allowed is 1 for the box, in the first place alone, 2 for objects or 3 for the end (at byte 1901)"
        ],
    );
    // Another box of the same length, sound by itself.
    let other = written(Some(&one_millisecond_later()), &avatar(), Codec::None).expect("sound");
    assert_eq!(other.len(), good.len());
    check(
        &|bad| bad[19..objects].copy_from_slice(&other[19..objects]),
        expect![
            "in the part at byte 1901: pack end: checksum is 0xa7023abf, the bytes give 0x7cb295f9: damaged, or stored under a wrong key (at byte 12)"
        ],
    );
}

fn one_millisecond_later() -> Snapshot {
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15));
    let mut host = cg_snapshot::memory::Memory::new(&catalog());
    let mut job = RestoreJob::new(yard_up_to(15).into(), &catalog(), RestoreOptions::default()).unwrap();
    job.run(&mut host, &mut |_| {}).unwrap();
    let options = CaptureOptions { created_ms: 1_700_000_000_001, ..CaptureOptions::named("yard") };
    capture(&host, &catalog(), region(area), &options).unwrap()
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let check = |region: Option<&Snapshot>, objects: &Objects, expected: Expect| {
        let error = written(region, objects, Codec::Lz4).expect_err("refused");
        expected.assert_eq(&error.to_string());
    };
    check(
        Some(&yard()),
        &Objects::new(),
        expect![
            "a box in a pack is of whole chunks, with components, side data and entities; this one is not aligned to chunks"
        ],
    );
    let area = BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(15, 15, 15));
    let options = CaptureOptions { contents: Contents::BLOCKS, ..CaptureOptions::named("bare") };
    let bare = capture(&host(1), &catalog(), region(area), &options).expect("captured");
    check(
        Some(&bare),
        &Objects::new(),
        expect![
            "a box in a pack is of whole chunks, with components, side data and entities; this one is of blocks alone, or lacks one of the others"
        ],
    );
    let one = |key: &[u8], version| (key.to_vec(), version, Vec::new());
    check(
        None,
        &vec![one(b"b", 0), one(b"a", 0)],
        expect![
            "a pack takes one box first, then its records ascending by UUID, properties ascending by name, objects ascending by key"
        ],
    );
    check(
        None,
        &vec![one(b"a", 0), one(b"a", 0)],
        expect![
            "a pack takes one box first, then its records ascending by UUID, properties ascending by name, objects ascending by key"
        ],
    );
    check(None, &vec![one(b"", 0)], expect!["pack objects: key len is 0, allowed is 1 to 512 (at byte 0)"]);
    check(
        None,
        &vec![one(&[7; 513], 0)],
        expect!["pack objects: key len is 513, allowed is 1 to 512 (at byte 0)"],
    );
    check(
        None,
        &vec![one(b"a", -1)],
        expect!["pack objects: version is 18446744073709551615, allowed is 0 to 2^63 - 1 (at byte 0)"],
    );
    let mut pack = PackWriter::new(Vec::new(), Codec::None).expect("memory takes it");
    pack.object(PackedObject { key: b"a", version: 0, bytes: b"" }).expect("sound");
    assert!(matches!(pack.region(&yard_up_to(15)), Err(SnapshotError::PackOrder)));
}

/// A pack whose only part of objects holds these bytes, with sound checksums.
fn crafted(raw: &[u8]) -> Vec<u8> {
    let part = |kind: u8, raw: &[u8]| {
        let mut part = vec![kind, 0];
        part.extend((raw.len() as u32).to_le_bytes());
        part.extend((raw.len() as u32).to_le_bytes());
        let checksum = crc32c::crc32c_append(crc32c::crc32c(&part), raw);
        part.extend(checksum.to_le_bytes());
        part.extend(raw);
        (checksum, part)
    };
    let (checksum, objects) = part(2, raw);
    let mut end = 1_u32.to_le_bytes().to_vec();
    end.extend(1_u64.to_le_bytes());
    end.extend(crc32c::crc32c(&checksum.to_le_bytes()).to_le_bytes());
    [&b"cherrygrove pack 1\n"[..], &objects, &part(3, &end).1].concat()
}

#[test]
fn parts_with_sound_checksums_are_checked_all_the_same() {
    let object = |version: i64, key: &[u8], bytes: &[u8]| {
        let lens = [&(key.len() as u16).to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes()].concat();
        [&version.to_le_bytes()[..], &lens, key, bytes].concat()
    };
    assert_eq!(read(&crafted(&object(3, b"k", b"v"))).expect("sound").1, [(b"k".to_vec(), 3, b"v".to_vec())]);
    let check = |raw: &[u8], expected: Expect| {
        expected.assert_eq(&read(&crafted(raw)).expect_err("refused").to_string());
    };
    check(
        &[],
        expect!["in the part at byte 19: pack objects: version needs 8 bytes and 0 are left (at byte 0)"],
    );
    check(
        &object(-1, b"k", b"v"),
        expect![
            "in the part at byte 19: pack objects: version is 18446744073709551615, allowed is 0 to 2^63 - 1 (at byte 0)"
        ],
    );
    check(
        &object(0, b"", b"v"),
        expect!["in the part at byte 19: pack objects: key len is 0, allowed is 1 to 512 (at byte 8)"],
    );
    check(
        &object(0, &[1; 513], b"v"),
        expect!["in the part at byte 19: pack objects: key len is 513, allowed is 1 to 512 (at byte 8)"],
    );
    check(
        &object(0, b"key", b"value")[..20],
        expect!["in the part at byte 19: pack objects: bytes needs 5 bytes and 3 are left (at byte 17)"],
    );
    check(
        &[object(0, b"b", b""), object(0, b"a", b"")].concat(),
        expect![
            "in the part at byte 19: pack objects: object is 1, allowed is one whose key lies above that of the one before (at byte 15)"
        ],
    );
    check(
        &[object(0, b"a", b""), object(0, b"b", b"")].concat(),
        expect![
            "in the part at byte 63: pack end: objects is 1, but the rest of the value implies 2 (at byte 4)"
        ],
    );
}

#[test]
fn a_bomb_is_refused_before_it_explodes() {
    let bytes = written(None, &vec![(b"zeros".to_vec(), 0, vec![0; 1 << 20])], Codec::Lz4).unwrap();
    assert!(bytes.len() < 10_000);
    let error = check(&bytes[..], Limits::new(1 << 16)).expect_err("too large");
    expect!["pack part: a part needs 1048595 bytes of memory, the limit leaves 65536 (at byte 21)"]
        .assert_eq(&error.to_string());
}

#[test]
fn what_is_there_is_kept() {
    let (mut live, pack) = (host(3), captured(&host(4), around()));
    damage(&mut live, 9);
    let before = live.clone();
    let options = RestoreOptions { merge: Merge::Keep, ..RestoreOptions::default() };
    let mut job = RestoreJob::new(pack.clone().into(), &catalog(), options).expect("it fits");
    let report = job.run(&mut live, &mut |_| {}).expect("memory takes it");
    let (mut kept, mut created) = (0, 0);
    for (section, place) in pack.sections() {
        let chunk =
            |host| cg_format::ChunkSource::lookup(host, section.at).unwrap_or_else(|e| match e {}).here();
        let (old, new) = (chunk(&before), chunk(&live));
        if old.is_some() {
            assert_eq!(new, old, "{}", section.at);
            kept += 1;
        } else if let cg_snapshot::Place::Kept(section_bytes) = place {
            let wanted = pack.decode(section.at, section_bytes).expect("sound");
            let new = new.expect("it was put");
            new.for_each_difference(&wanted, |at, _, _| panic!("{}: {at:?}", section.at));
            assert!(new.components().eq(wanted.components()) && new.sides().eq(wanted.sides()));
            created += 1;
        }
    }
    assert!(kept > 0 && created > 0, "{kept} {created}");
    assert_eq!((report.kept, report.created, report.deleted, report.entities_deleted), (kept, created, 0, 0));
    for (id, entity) in before.entities() {
        assert_eq!(live.entities().find(|(it, _)| *it == id).map(|(_, it)| it.clone()), Some(entity.clone()));
    }
    let mut again = RestoreJob::new(pack.into(), &catalog(), options).expect("it fits");
    let again = again.run(&mut live, &mut |_| {}).expect("memory takes it");
    assert_eq!((again.changed, again.entities_put), (0, 0));
}

/// Formats the content of a golden as text.
fn text(bytes: &[u8]) -> String {
    let (_, info) = explain(bytes, Limits::default());
    let mut out = format!("{:#?}\n", info.expect("sound"));
    for (key, version, bytes) in read(bytes).expect("sound").1 {
        writeln!(out, "{} {version} {}", key.escape_ascii(), bytes.escape_ascii()).unwrap();
    }
    out
}

#[test]
fn goldens_decode_to_their_text_and_encode_to_their_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft/pack");
    let (plot, none) = (yard_up_to(15), Objects::new());
    for (name, region, objects, codec) in [
        ("nothing", None, &none, Codec::None),
        ("avatar_lz4", None, &avatar(), Codec::Lz4),
        ("plot", Some(&plot), &avatar(), Codec::None),
    ] {
        let (bin, txt) = (folder.join(format!("{name}.bin")), folder.join(format!("{name}.txt")));
        let made = written(region, objects, codec).expect("sound");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&bin, &made).unwrap();
            std::fs::write(&txt, text(&made)).unwrap();
        }
        let golden = std::fs::read(&bin).unwrap_or_else(|error| panic!("{}: {error}", bin.display()));
        assert_eq!(text(&golden), std::fs::read_to_string(&txt).unwrap(), "{name}");
        assert_eq!(read(&golden).expect("sound"), (region.cloned(), objects.clone()), "{name}");
        assert_eq!(made, golden, "{name}");
    }
}
