//! An archive is read as it was written; one that is cut off, changed or put together otherwise is refused, with its place.

use std::fmt::Write as _;
use std::path::Path;

use cg_format::archive::{ArchiveReader, ArchiveWriter, Fault, Head, explain};
use cg_format::codec::Codec;
use cg_format::key::Family;
use cg_format::{Limits, Problem};
use expect_test::{Expect, expect};
use proptest::prelude::*;

type Rows = Vec<(Family, Vec<u8>, Vec<u8>)>;

fn head() -> Head {
    Head {
        uuid: std::array::from_fn(|at| at as u8),
        incarnation: [7; 16],
        signature: Some("castle builder 3".into()),
        commit_row: (100..124).collect(),
    }
}

fn written(head: &Head, rows: &Rows, codec: Codec) -> Result<Vec<u8>, Fault> {
    let mut out = Vec::new();
    let mut archive = ArchiveWriter::new(codec, head, &mut out)?;
    for (family, key, row) in rows {
        archive.row(*family, key, row, &mut out)?;
    }
    let totals = archive.finish(&mut out)?;
    assert_eq!(totals.len_bytes, out.len() as u64);
    assert_eq!(totals.row_count, rows.len() as u64);
    Ok(out)
}

fn read(bytes: &[u8]) -> Result<(Head, Rows), Fault> {
    let mut archive = ArchiveReader::open(bytes, Limits::default())?;
    let mut rows = Rows::new();
    while let Some(page) = archive.next_page()? {
        rows.extend(page.iter().map(|(family, key, row)| (family, key.to_vec(), row.to_vec())));
    }
    assert_eq!(archive.totals().len_bytes, bytes.len() as u64);
    Ok((archive.head().clone(), rows))
}

fn row(family: Family, key: &[u8], row: &[u8]) -> (Family, Vec<u8>, Vec<u8>) {
    (family, key.into(), row.into())
}

fn some() -> Rows {
    vec![
        row(Family::WorldMeta, b"limits", &[1; 48]),
        row(Family::ChunkL0, &[0; 32], b"a row a row a row a row a row"),
        row(Family::ChunkL0, &[1; 32], b""),
        row(Family::Object, b"avatar/7", &[9; 30]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn what_is_written_is_read(
        rows in prop::collection::btree_map(
            (0..12_u8, prop::collection::vec(any::<u8>(), 1..300)),
            prop::collection::vec(any::<u8>(), 0..400_000),
            0..12,
        ),
        codec in 0..3_u8,
        signature in prop::option::of("[a-z]{1,256}"),
    ) {
        let rows: Rows = rows
            .into_iter()
            .map(|((family, key), row)| (Family::from_number(family).unwrap(), key, row))
            .collect();
        let head = Head { signature, ..head() };
        let bytes = written(&head, &rows, Codec::from_byte(codec).unwrap()).unwrap();
        prop_assert_eq!(read(&bytes).unwrap(), (head, rows));
    }

    #[test]
    fn any_bytes_give_an_archive_or_an_error(mut bytes in prop::collection::vec(any::<u8>(), 0..300), line in any::<bool>()) {
        if line {
            bytes.splice(0..0, *b"cherrygrove archive 1\n");
        }
        prop_assert!(read(&bytes).is_err());
    }
}

/// Where each part begins, and where the last one ends.
fn parts(archive: &[u8]) -> Vec<usize> {
    let mut starts = vec![22];
    while let Some(head) = archive.get(starts[starts.len() - 1]..).filter(|rest| !rest.is_empty()) {
        let stored = u32::from_le_bytes(head[6..10].try_into().unwrap());
        starts.push(starts[starts.len() - 1] + 14 + stored as usize);
    }
    starts
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed_where_it_is() {
    let good = written(&head(), &some(), Codec::Lz4).expect("sound");
    assert_eq!(read(&good).expect("sound"), (head(), some()));
    let starts = parts(&good);
    assert_eq!(starts.len(), 4, "head, rows, end");
    for len in 0..good.len() {
        let Fault { part_at, error } = read(&good[..len]).expect_err("cut off");
        assert!(part_at.is_none() && error.offset_bytes <= len as u64, "{len}: {error}");
        assert!(matches!(error.problem, Problem::Truncated { .. }), "{len}: {error}");
    }
    for at in 0..good.len() {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            let Fault { part_at, error } = read(&bad).expect_err("changed");
            // Where it lies, or in the frame of the part that holds it.
            let part = starts.iter().rev().find(|start| **start <= at).map_or(0, |start| start + 14);
            assert!(
                part_at.is_none() && error.offset_bytes <= at.max(part) as u64,
                "byte {at}, bit {bit}: {error}"
            );
        }
    }
}

/// Rows that fill several parts.
fn many() -> Rows {
    (0..3).map(|n| row(Family::Object, &[b'a' + n], &vec![n; 1 << 20])).collect()
}

#[test]
fn a_part_that_is_missing_or_of_elsewhere_is_refused_in_its_place() {
    let good = written(&head(), &many(), Codec::None).expect("sound");
    let [_, one, two, three, end, behind] = parts(&good)[..] else { panic!("{:?}", parts(&good)) };
    assert_eq!(behind, good.len());
    let mut others = many();
    others[1].2[7] ^= 1;
    let other = written(&head(), &others, Codec::None).expect("sound");
    let check = |change: &dyn Fn(&mut Vec<u8>), expected: Expect| {
        let mut bad = good.clone();
        change(&mut bad);
        expected.assert_eq(&read(&bad).expect_err("changed").to_string());
    };
    // Missing, twice, and from another archive: each part continues the checksum of the one before it.
    check(
        &|bad| drop(bad.drain(two..three)),
        expect![
            "archive part: checksum is 0xdfa1ee46, the bytes give 0x357ca4d1: damaged, or stored under a wrong key (at byte 1048724)"
        ],
    );
    check(
        &|bad| drop(bad.splice(two..two, good[one..two].to_vec())),
        expect![
            "archive part: checksum is 0x51469113, the bytes give 0x46c48c44: damaged, or stored under a wrong key (at byte 1048724)"
        ],
    );
    check(
        &|bad| bad[two..three].copy_from_slice(&other[two..three]),
        expect![
            "archive part: checksum is 0xdfa1ee46, the bytes give 0x0b50e1f1: damaged, or stored under a wrong key (at byte 2097324)"
        ],
    );
    check(
        &|bad| drop(bad.drain(one..end)),
        expect![
            "archive part: checksum is 0x391f3ded, the bytes give 0x94228720: damaged, or stored under a wrong key (at byte 124)"
        ],
    );
    check(
        &|bad| bad.truncate(end),
        expect!["archive part: part head needs 14 bytes and 0 are left (at byte 3145914)"],
    );
    check(
        &|bad| bad.push(7),
        expect!["archive end: bytes after the end must be zero or absent, found 7 (at byte 3145952)"],
    );
    check(
        &|bad| bad[20] = b'3',
        expect!["archive line: line is 3, and this release reads up to 2; use a newer release (at byte 20)"],
    );
    check(
        &|bad| bad[12] = b'A',
        expect!["archive line: line is 65, but the rest of the value implies 97 (at byte 12)"],
    );
}

/// An archive of parts with these kinds and bytes, whose checksums are right.
fn crafted(parts: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = b"cherrygrove archive 1\n".to_vec();
    let mut checksum = crc32c::crc32c(&out);
    for (kind, raw) in parts {
        let mut part = vec![*kind, 0];
        part.extend((raw.len() as u32).to_le_bytes());
        part.extend((raw.len() as u32).to_le_bytes());
        checksum = crc32c::crc32c_append(crc32c::crc32c_append(checksum, &part), raw);
        part.extend(checksum.to_le_bytes());
        part.extend(*raw);
        out.extend(part);
    }
    out
}

fn head_bytes() -> Vec<u8> {
    let good = written(&head(), &Rows::new(), Codec::None).expect("sound");
    good[36..parts(&good)[1]].to_vec()
}

fn end_bytes(numbers: [u64; 3]) -> Vec<u8> {
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

fn row_bytes(family: u8, key: &[u8], row: &[u8]) -> Vec<u8> {
    let lens = [key.len() as u32, row.len() as u32].map(u32::to_le_bytes).concat();
    [&[family][..], &lens, key, row].concat()
}

#[test]
fn parts_with_valid_checksums_are_checked_all_the_same() {
    let (head, rows, end) = (head_bytes(), row_bytes(8, b"k", b"v"), end_bytes([2, 1, 2]));
    assert!(read(&crafted(&[(1, &head), (2, &rows), (3, &end)])).is_ok());
    check(
        &[(2, &rows), (3, &end)],
        expect![
            "archive part: part is 2, allowed is 1 for the head, in the first place alone, then 2 for rows or 3 for the end (at byte 22)"
        ],
    );
    check(
        &[(1, &head), (1, &head)],
        expect![
            "archive part: part is 1, allowed is 1 for the head, in the first place alone, then 2 for rows or 3 for the end (at byte 114)"
        ],
    );
    check(
        &[(1, &head), (4, &rows)],
        expect![
            "archive part: part is 4, allowed is 1 for the head, in the first place alone, then 2 for rows or 3 for the end (at byte 114)"
        ],
    );
}

#[track_caller]
fn check(parts: &[(u8, &[u8])], expected: Expect) {
    expected.assert_eq(&read(&crafted(parts)).expect_err("refused").to_string());
}

#[test]
fn heads_and_rows_with_valid_checksums_are_checked_all_the_same() {
    let (head, rows, end) = (head_bytes(), row_bytes(8, b"k", b"v"), end_bytes([2, 1, 2]));
    let mut newer = head.clone();
    newer[3] = 2;
    check(
        &[(1, &newer)],
        expect![
            "in the part at byte 22: archive head: draft is 2, and this release reads up to 1; use a newer release (at byte 3)"
        ],
    );
    check(
        &[(1, &head[..40])],
        expect!["in the part at byte 22: archive head: signature needs 16 bytes and 2 are left (at byte 38)"],
    );
    check(
        &[(1, &head[..head.len() - 1])],
        expect![
            "in the part at byte 22: archive head: commit row is 23, allowed is 24 bytes and more (at byte 54)"
        ],
    );
    check(
        &[(1, &[0; 5000])],
        expect!["archive part: a part needs 5000 bytes of memory, the limit leaves 4096 (at byte 24)"],
    );
    check(
        &[(1, &head), (2, &[])],
        expect!["in the part at byte 114: archive rows: family needs 1 bytes and 0 are left (at byte 0)"],
    );
    check(
        &[(1, &head), (2, &row_bytes(12, b"k", b"v"))],
        expect![
            "in the part at byte 114: archive rows: family is 12, allowed is the number of a family (at byte 0)"
        ],
    );
    check(
        &[(1, &head), (2, &row_bytes(8, b"", b"v"))],
        expect!["in the part at byte 114: archive rows: key len is 0, allowed is 1 and up (at byte 1)"],
    );
    check(
        &[(1, &head), (2, &row_bytes(8, b"key", b"value")[..14])],
        expect!["in the part at byte 114: archive rows: row needs 5 bytes and 2 are left (at byte 12)"],
    );
    check(
        &[(1, &head), (2, &[8, 255, 255, 255, 255, 255, 255, 255, 255, 1])],
        expect![
            "in the part at byte 114: archive rows: key needs 4294967295 bytes and 1 are left (at byte 9)"
        ],
    );
    check(
        &[(1, &head), (2, &[row_bytes(8, b"k", b"v"), row_bytes(8, b"k", b"v")].concat())],
        expect![
            "in the part at byte 114: archive rows: row is 1, allowed is one whose family and key lie above those of the row before (at byte 11)"
        ],
    );
    check(
        &[(1, &head), (2, &rows), (2, &row_bytes(2, b"k", b"v"))],
        expect![
            "in the part at byte 139: archive rows: row is 0, allowed is one whose family and key lie above those of the row before (at byte 0)"
        ],
    );
    check(
        &[(1, &head), (2, &rows), (3, &end_bytes([3, 1, 2]))],
        expect![
            "in the part at byte 139: archive end: parts is 3, but the rest of the value implies 2 (at byte 0)"
        ],
    );
    check(
        &[(1, &head), (2, &rows), (3, &end_bytes([2, 9, 2]))],
        expect![
            "in the part at byte 139: archive end: rows is 9, but the rest of the value implies 1 (at byte 8)"
        ],
    );
    check(
        &[(1, &head), (2, &rows), (3, &end_bytes([2, 1, 3]))],
        expect![
            "in the part at byte 139: archive end: row bytes is 3, but the rest of the value implies 2 (at byte 16)"
        ],
    );
    check(
        &[(1, &head), (2, &rows), (3, &[&end[..], &[0]].concat())],
        expect![
            "in the part at byte 139: archive end: bytes after the numbers must be zero or absent, found 1 (at byte 24)"
        ],
    );
}

#[test]
fn a_bomb_is_refused_before_it_explodes() {
    let rows = vec![row(Family::Object, b"zeros", &vec![0; 1 << 20])];
    let bytes = written(&head(), &rows, Codec::Lz4).unwrap();
    assert!(bytes.len() < 10_000);
    let (_, explained) = explain(&bytes, Limits::new(1 << 16));
    expect!["archive part: a part needs 1048590 bytes of memory, the limit leaves 65536 (at byte 116)"]
        .assert_eq(&explained.expect_err("too large").to_string());
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let check = |rows: &Rows, expected: Expect| {
        expected.assert_eq(&written(&head(), rows, Codec::None).expect_err("refused").to_string());
    };
    check(
        &vec![row(Family::Object, b"", b"v")],
        expect!["archive rows: key len is 0, allowed is 1 and up (at byte 0)"],
    );
    check(
        &vec![row(Family::Object, b"b", b"v"), row(Family::Object, b"a", b"v")],
        expect![
            "archive rows: row is 1, allowed is one whose family and key lie above those of the row before (at byte 0)"
        ],
    );
    check(
        &vec![row(Family::Object, b"b", b"v"), row(Family::ChunkL0, b"c", b"v")],
        expect![
            "archive rows: row is 1, allowed is one whose family and key lie above those of the row before (at byte 0)"
        ],
    );
    check(
        &vec![row(Family::Object, b"b", &vec![0; 256 << 20])],
        expect!["archive rows: row is 268435466, allowed is at most 256 MiB with its key (at byte 0)"],
    );
    let long = Head { signature: Some("x".repeat(257)), ..head() };
    expect!["archive head: signature len is 257, allowed is 0 to 256 (at byte 36)"]
        .assert_eq(&written(&long, &Rows::new(), Codec::None).expect_err("refused").to_string());
}

fn text(bytes: &[u8]) -> String {
    let (head, rows) = read(bytes).expect("sound");
    let mut out = format!("{head:#?}\n");
    for (family, key, row) in rows {
        writeln!(out, "{} {} {}", family.name(), key.escape_ascii(), row.escape_ascii()).unwrap();
    }
    writeln!(out, "{:#?}", explain(bytes, Limits::default()).1.unwrap()).unwrap();
    out
}

#[test]
fn goldens_decode_to_their_text_and_encode_to_their_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft/archive");
    let unsigned = Head { signature: None, ..head() };
    for (name, head, rows, codec) in [
        ("nothing", unsigned, Rows::new(), Codec::None),
        ("rows", head(), some(), Codec::None),
        ("rows_lz4", head(), some(), Codec::Lz4),
    ] {
        let (bin, txt) = (folder.join(format!("{name}.bin")), folder.join(format!("{name}.txt")));
        let made = written(&head, &rows, codec).expect("sound");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&bin, &made).unwrap();
            std::fs::write(&txt, text(&made)).unwrap();
        }
        let golden = std::fs::read(&bin).unwrap_or_else(|error| panic!("{}: {error}", bin.display()));
        assert_eq!(text(&golden), std::fs::read_to_string(&txt).unwrap(), "{name}");
        assert_eq!(read(&golden).expect("sound"), (head, rows), "{name}");
        assert_eq!(made, golden, "{name}");
    }
}
