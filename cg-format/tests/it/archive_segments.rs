//! An archive of a segmented world is read as it was written; one that is cut off, changed or put together otherwise is
//! refused, with its place.

use std::fmt::Write as _;
use std::path::Path;

use cg_format::archive::{
    ArchiveReader, Fault, LINE_BYTES, Piece, SegmentAt, SegmentsReader, SegmentsWriter, is_of_segments,
};
use cg_format::{Dimension, Limits, Problem};
use expect_test::{Expect, expect};

/// The archive of the root, and those of segments.
type Worlds = (Vec<u8>, Vec<(SegmentAt, Vec<u8>)>);

const fn at(dimension: u64, at: [i64; 3]) -> SegmentAt {
    SegmentAt { dimension: Dimension::new(dimension), at }
}

fn some() -> Worlds {
    let segments = vec![
        (at(0, [-2, 0, 1]), b"of one".to_vec()),
        (at(0, [3, -1, 0]), b"of another".to_vec()),
        (at(7, [i64::MIN, 0, i64::MAX]), b"of the last".to_vec()),
    ];
    (b"of the root".to_vec(), segments)
}

fn written((root, segments): &Worlds) -> Vec<u8> {
    let mut out = Vec::new();
    let mut archive = SegmentsWriter::new(&mut out).expect("begins");
    archive.bytes(root, &mut out).expect("fits");
    for (at, bytes) in segments {
        archive.segment(*at, &mut out).expect("ascends");
        archive.bytes(bytes, &mut out).expect("fits");
    }
    let len_bytes = archive.finish(&mut out).expect("ends");
    assert_eq!(len_bytes, out.len() as u64);
    out
}

fn read(bytes: &[u8]) -> Result<Worlds, Fault> {
    let mut archive = SegmentsReader::open(bytes, Limits::default())?;
    let mut worlds = Worlds::default();
    let mut is_first = true;
    while let Some(piece) = archive.next_piece()? {
        assert_eq!(matches!(piece, Piece::Root), std::mem::take(&mut is_first));
        match piece {
            Piece::Root => {}
            Piece::Segment(at) => worlds.1.push((at, Vec::new())),
            Piece::Bytes(bytes) => {
                let (root, segments) = &mut worlds;
                segments.last_mut().map_or(root, |(_, archive)| archive).extend(bytes);
            }
        }
    }
    assert_eq!(archive.next_piece(), Ok(None), "it stays over");
    Ok(worlds)
}

/// Where each part begins, and where the last one ends.
fn parts(archive: &[u8]) -> Vec<usize> {
    let mut starts = vec![LINE_BYTES];
    while let Some(head) = archive.get(starts[starts.len() - 1]..).filter(|rest| !rest.is_empty()) {
        let stored = u32::from_le_bytes(head[6..10].try_into().unwrap());
        starts.push(starts[starts.len() - 1] + 14 + stored as usize);
    }
    starts
}

#[test]
fn what_is_written_is_read_whatever_its_length() {
    assert_eq!(read(&written(&some())), Ok(some()));
    for len in [1, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20] {
        let archive: Vec<u8> = (0..len).map(|at: usize| (at / 7) as u8).collect();
        let worlds = (archive.clone(), vec![(at(1, [0; 3]), archive)]);
        assert!(read(&written(&worlds)) == Ok(worlds), "{len} bytes");
    }
}

#[test]
fn every_cut_and_every_flipped_bit_is_noticed_where_it_is() {
    let good = written(&some());
    let starts = parts(&good);
    assert_eq!(starts.len(), 10, "four worlds of two parts, and the end");
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
            let part = starts.iter().rev().find(|start| **start <= at).map_or(0, |start| start + 14);
            assert!(
                part_at.is_none() && error.offset_bytes <= at.max(part) as u64,
                "byte {at}, bit {bit}: {error}"
            );
        }
    }
}

#[test]
fn a_world_that_is_missing_or_of_elsewhere_is_refused_in_its_place() {
    let good = written(&some());
    let starts = parts(&good);
    let mut other = some();
    other.1[1].1[3] ^= 1;
    let other = written(&other);
    let changed = |change: &dyn Fn(&mut Vec<u8>), border: usize| {
        let mut bad = good.clone();
        change(&mut bad);
        let fault = read(&bad).expect_err("changed");
        assert!(matches!(fault.error.problem, Problem::Checksum { .. }), "{fault}");
        assert_eq!((fault.part_at, fault.error.offset_bytes), (None, border as u64 + 10));
    };
    // A segment that is missing, twice, or of another archive; two in each other's place.
    changed(&|bad| drop(bad.drain(starts[2]..starts[4])), starts[2]);
    changed(&|bad| drop(bad.splice(starts[4]..starts[4], good[starts[2]..starts[4]].to_vec())), starts[4]);
    let one = starts[5]..starts[6];
    changed(&|bad| bad[one.clone()].copy_from_slice(&other[one.clone()]), starts[6]);
    changed(&|bad| bad[starts[6]..].copy_from_slice(&other[starts[6]..]), starts[6]);
    changed(&|bad| drop(bad.drain(starts[6]..starts[8])), starts[6]);
}

#[test]
fn the_line_says_which_kind_of_archive_it_is() {
    let good = written(&some());
    assert!(
        is_of_segments(&good)
            && is_of_segments(&good[..LINE_BYTES])
            && !is_of_segments(&good[..LINE_BYTES - 1])
    );
    let line = |digit: u8| {
        let mut other = good.clone();
        other[20] = digit;
        other
    };
    assert!(!is_of_segments(&line(b'1')));
    let check = |bytes: &[u8], expected: Expect| {
        expected.assert_eq(&read(bytes).expect_err("refused").to_string());
    };
    check(
        &line(b'1'),
        expect![
            "archive line: line is 1, allowed is 2 for a segmented world; 1 is one world, and is restored as one (at byte 20)"
        ],
    );
    check(
        &line(b'3'),
        expect!["archive line: line is 3, and this release reads up to 2; use a newer release (at byte 20)"],
    );
    check(
        &line(b'0'),
        expect!["archive line: line is 48, but the rest of the value implies 50 (at byte 20)"],
    );
    let one = ArchiveReader::open(&good[..], Limits::default()).expect_err("of many worlds");
    expect!["archive line: line is 2, allowed is 1 for one world; 2 is a segmented world, and is restored as one (at byte 20)"].assert_eq(&one.to_string());
}

/// An archive of parts with these kinds and bytes, whose checksums are right.
fn crafted(parts: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = b"cherrygrove archive 2\n".to_vec();
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

fn numbers(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().copied().flat_map(u64::to_le_bytes).collect()
}

#[track_caller]
fn check(parts: &[(u8, &[u8])], expected: Expect) {
    expected.assert_eq(&read(&crafted(parts)).expect_err("refused").to_string());
}

#[test]
fn parts_with_valid_checksums_are_checked_all_the_same() {
    let (place, end) = (numbers(&[0, 1, 0, 0]), numbers(&[4, 2, 3]));
    let sound = [(4, &b""[..]), (6, b"ab"), (5, &place), (6, b"c"), (3, &end)];
    assert_eq!(read(&crafted(&sound)), Ok((b"ab".to_vec(), vec![(at(0, [1, 0, 0]), b"c".to_vec())])));
    // The order of parts.
    check(
        &[(6, b"ab")],
        expect![
            "archive part: part is 6, allowed is 4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes (at byte 22)"
        ],
    );
    check(
        &[(5, &place)],
        expect![
            "archive part: part is 5, allowed is 4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes (at byte 22)"
        ],
    );
    check(
        &[(4, b""), (3, &numbers(&[1, 1, 0]))],
        expect![
            "archive part: part is 3, allowed is 4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes (at byte 36)"
        ],
    );
    check(
        &[(4, b""), (5, &place)],
        expect![
            "archive part: part is 5, allowed is 4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes (at byte 36)"
        ],
    );
    check(
        &[(4, b""), (6, b"ab"), (4, b"")],
        expect![
            "archive part: part is 4, allowed is 4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes (at byte 52)"
        ],
    );
    check(
        &[(4, b""), (6, b"ab"), (5, &place), (3, &end)],
        expect![
            "archive part: part is 3, allowed is 4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes (at byte 98)"
        ],
    );
    check(
        &[(4, b""), (6, b"ab"), (2, b"ab")],
        expect![
            "archive part: part is 2, allowed is 4 for the root, in the first place alone, 6 for bytes after it and after each 5 for a segment, and 3 for the end after bytes (at byte 52)"
        ],
    );
    // Their bytes.
    check(
        &[(4, b"x")],
        expect![
            "in the part at byte 22: archive part: bytes of the part of the root must be zero or absent, found 1 (at byte 0)"
        ],
    );
    check(
        &[(4, b""), (6, b"")],
        expect!["archive part: raw len is 0, allowed is 1 and up for bytes (at byte 38)"],
    );
    check(
        &[(4, b""), (6, b"ab"), (5, &place[..31])],
        expect!["in the part at byte 52: archive segment: z needs 8 bytes and 7 are left (at byte 24)"],
    );
    check(
        &[(4, b""), (6, b"ab"), (5, &numbers(&[0, 1, 0, 0, 0]))],
        expect![
            "in the part at byte 52: archive segment: bytes after the place must be zero or absent, found 8 (at byte 32)"
        ],
    );
    check(
        &[(4, b""), (6, b"ab"), (5, &place), (6, b"c"), (5, &place)],
        expect![
            "in the part at byte 113: archive segment: dimension is 0, allowed is a segment above the one before, by dimension, x, y and z (at byte 0)"
        ],
    );
    check(
        &[(4, b""), (6, b"ab"), (5, &place), (6, b"c"), (5, &numbers(&[0, 0, 9, 9]))],
        expect![
            "in the part at byte 113: archive segment: dimension is 0, allowed is a segment above the one before, by dimension, x, y and z (at byte 0)"
        ],
    );
    for wrong in [[5, 2, 3], [4, 1, 3], [4, 2, 4]] {
        let wrong = numbers(&wrong);
        let parts = [&sound[..4], &[(3, &wrong[..])]].concat();
        let said = read(&crafted(&parts)).expect_err("refused").to_string();
        assert!(said.starts_with("in the part at byte 113: archive end: "), "{said}");
    }
    check(
        &[&sound[..4], &[(3, &numbers(&[4, 2, 3, 0])[..])]].concat(),
        expect![
            "in the part at byte 113: archive end: bytes after the numbers must be zero or absent, found 8 (at byte 24)"
        ],
    );
    let long = [crafted(&sound), vec![7]].concat();
    expect!["archive end: bytes after the end must be zero or absent, found 7 (at byte 151)"]
        .assert_eq(&read(&long).expect_err("refused").to_string());
    let (_, said) = SegmentsReader::explain(&written(&(vec![0; 9000], Vec::new())), Limits::new(8000));
    expect!["archive part: a part needs 9000 bytes of memory, the limit leaves 8000 (at byte 38)"]
        .assert_eq(&said.expect_err("too large").to_string());
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let mut out = Vec::new();
    let mut archive = SegmentsWriter::new(&mut out).expect("begins");
    archive.bytes(b"of the root", &mut out).expect("fits");
    archive.segment(at(0, [0, 0, 1]), &mut out).expect("ascends");
    let before = out.len();
    for below in [at(0, [0, 0, 1]), at(0, [0, 0, -1])] {
        let said = archive.segment(below, &mut out).expect_err("it does not ascend").to_string();
        expect!["archive segment: dimension is 0, allowed is a segment above the one before, by dimension, x, y and z (at byte 0)"].assert_eq(&said);
    }
    assert_eq!(out.len(), before);
}

fn text(bytes: &[u8]) -> String {
    let (root, segments) = read(bytes).expect("sound");
    let mut out = format!("root {}\n", root.escape_ascii());
    for (SegmentAt { dimension, at: [x, y, z] }, archive) in segments {
        writeln!(out, "segment {x} {y} {z} of {}: {}", dimension.get(), archive.escape_ascii()).unwrap();
    }
    writeln!(out, "{} worlds", SegmentsReader::explain(bytes, Limits::default()).1.unwrap()).unwrap();
    out
}

#[test]
fn goldens_decode_to_their_text_and_encode_to_their_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/golden/draft/archive-segments");
    for (name, worlds) in [("root", (b"alone".to_vec(), Vec::new())), ("segments", some())] {
        let (bin, txt) = (folder.join(format!("{name}.bin")), folder.join(format!("{name}.txt")));
        let made = written(&worlds);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&bin, &made).unwrap();
            std::fs::write(&txt, text(&made)).unwrap();
        }
        let golden = std::fs::read(&bin).unwrap_or_else(|error| panic!("{}: {error}", bin.display()));
        assert_eq!(text(&golden), std::fs::read_to_string(&txt).unwrap(), "{name}");
        assert_eq!(read(&golden).expect("sound"), worlds, "{name}");
        assert_eq!(made, golden, "{name}");
    }
}
