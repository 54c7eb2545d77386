//! Every broken slot has its own reason, and the slots beside it are read.

use std::io::Cursor;
use std::path::PathBuf;

use expect_test::{Expect, expect};

use super::header::{self, Entry};
use super::*;
use crate::region::ColumnPos;

/// A region whose slot 5 has this entry and, at sector 2, these bytes.
fn region(entry: Entry, sector: &[u8]) -> Region<Cursor<Vec<u8>>> {
    let mut entries = vec![Entry::default(); 1024];
    entries[5] = entry;
    let bytes = [&header::write(&entries), sector].concat();
    Region::new(Cursor::new(bytes), None, PathBuf::new()).expect("memory is readable")
}

fn at_2(sector: &[u8]) -> Region<Cursor<Vec<u8>>> {
    region(Entry { first_sector: 2, sectors: 1, timestamp: 0 }, sector)
}

fn stored(len_bytes: u32, compression: u8, payload: &[u8]) -> Vec<u8> {
    [&header::write_slot_head(len_bytes, compression)[..], payload].concat()
}

#[track_caller]
fn check(mut region: Region<Cursor<Vec<u8>>>, expected: Expect) {
    let slot = Slot::new(5).expect("below 1,024");
    assert_eq!(region.slots().collect::<Vec<_>>(), [slot]);
    let mut out = vec![9];
    let found = match region.read(slot, &ReadLimits::default(), &mut out) {
        Ok(found) => format!("{found:?}: {out:?}"),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&found);
}

#[test]
fn every_broken_slot_says_why() {
    for sector in [0, 1] {
        let region = region(Entry { first_sector: sector, sectors: 1, timestamp: 0 }, b"");
        let mut out = Vec::new();
        let error = { region }.read(Slot::new(5).expect("a slot"), &ReadLimits::default(), &mut out);
        assert!(matches!(error, Err(SlotError::InHeader { sector: found }) if found == sector));
    }
    let far = Entry { first_sector: 0xFF_FFFF, sectors: 255, timestamp: 0 };
    check(region(far, b""), expect!["the slot points at byte 68719472640, and the file ends at 8192"]);
    check(at_2(b"\0\0\0\x01"), expect!["the slot points at byte 8192, and the file ends at 8196"]);
    check(at_2(&stored(0, 2, b"")), expect!["the stored length is 0"]);
    check(
        at_2(&stored(3, 2, b"x")),
        expect!["the stored length of 3 bytes exceeds the 2 bytes left in the file"],
    );
    check(
        at_2(&stored(u32::MAX, 2, b"x")),
        expect!["the stored length of 4294967295 bytes exceeds the 2 bytes left in the file"],
    );
    check(at_2(&stored(1, 0, b"")), expect!["compression 0 does not exist"]);
    check(at_2(&stored(1, 5, b"")), expect!["compression 5 does not exist"]);
    check(
        at_2(&stored(1, 127, b"")),
        expect!["compression 127 names an algorithm of a mod, which is not supported"],
    );
    check(
        at_2(&stored(1, 0x82, b"")),
        expect![
            "the column lies in a c.X.Z.mcc file, but this file's name has no r.X.Z coordinates to find it by"
        ],
    );
}

#[test]
fn every_broken_stream_says_why() {
    let zlib = compress(b"some bytes, some bytes");
    let of = |compression: u8, payload: &[u8]| at_2(&stored(payload.len() as u32 + 1, compression, payload));
    check(of(3, b"ab"), expect!["Some(None): [97, 98]"]);
    check(of(3, b""), expect!["Some(None): []"]);
    check(of(2, b""), expect!["the zlib stream ends early"]);
    for cut in 1..zlib.len() {
        check(of(2, &zlib[..cut]), expect!["the zlib stream ends early"]);
    }
    check(of(2, b"\x1f\x8b"), expect!["the zlib stream is damaged: deflate decompression error"]);
    let mut flipped = zlib.clone();
    *flipped.last_mut().expect("not empty") ^= 1;
    check(of(2, &flipped), expect!["the zlib stream is damaged: deflate decompression error"]);
    check(of(1, &zlib), expect!["the gzip stream is damaged: invalid gzip header"]);
    check(of(1, b"\x1f\x8b\x08"), expect!["the gzip stream ends early"]);
    check(of(4, b"LZ4Bloc"), expect!["the LZ4 stream ends early"]);
    check(
        of(4, b"LZ4Frame"),
        expect![[r#"the LZ4 stream is damaged: a block does not begin with "LZ4Block""#]],
    );
}

#[test]
fn a_bomb_takes_no_more_memory_than_allowed() {
    let bomb = compress(&vec![0; 1 << 20]);
    let mut out = Vec::new();
    for limit_bytes in [0, 1, 65_536, 100_000, (1 << 20) - 1] {
        let error = decompress(Compression::Zlib, &bomb, limit_bytes, &mut out).expect_err("it is larger");
        assert_eq!(error.to_string(), format!("more than {limit_bytes} bytes"));
        assert!(out.capacity() <= limit_bytes + 1, "{} bytes for a limit of {limit_bytes}", out.capacity());
    }
    decompress(Compression::Zlib, &bomb, 1 << 20, &mut out).expect("as large as allowed");
    assert_eq!(out.len(), 1 << 20);
}

/// One LZ4 block with these fields.
fn block(method: u8, stored: &[u8], raw_len: u32, hash: u32) -> Vec<u8> {
    let numbers = [stored.len() as u32, raw_len, hash].map(u32::to_le_bytes).concat();
    [lz4::MAGIC, &[method | 6][..], &numbers, stored].concat()
}

#[test]
fn every_broken_lz4_block_says_why() {
    let end = block(lz4::STORED, b"", 0, 0);
    let hash = twox_hash::XxHash32::oneshot(lz4::HASH_SEED, b"abcd") & lz4::HASH_MASK;
    let check = |blocks: &[&[u8]], expected: Expect| {
        let mut out = Vec::new();
        let found = match decompress(Compression::Lz4, &blocks.concat(), 1 << 20, &mut out) {
            Ok(()) => String::from_utf8(out).expect("text"),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&found);
    };
    let whole = block(lz4::STORED, b"abcd", 4, hash);
    check(&[&whole, &whole, &end], expect!["abcdabcd"]);
    check(&[&whole, &whole], expect!["abcdabcd"]);
    check(&[], expect!["the LZ4 stream ends early"]);
    check(&[&whole, &whole[..24]], expect!["the LZ4 stream ends early"]);
    check(&[&end, b"after the end"], expect![""]);
    check(&[&block(lz4::COMPRESSED, b"\x40abcd", 4, hash), &end], expect!["abcd"]);
    check(
        &[&block(lz4::COMPRESSED, b"\x40abcd", 5, hash)],
        expect!["the LZ4 stream is damaged: a block of 5 bytes ends after 4"],
    );
    check(
        &[&block(lz4::STORED, b"abcd", 4, hash ^ 1)],
        expect!["the LZ4 stream is damaged: a block's hash is 0475e7f2 where 0475e7f3 is stored"],
    );
    check(
        &[&block(lz4::STORED, b"abcd", 5, hash)],
        expect!["the LZ4 stream is damaged: a stored block of 4 bytes promises 5"],
    );
    check(
        &[&block(0x30, b"abcd", 4, hash)],
        expect!["the LZ4 stream is damaged: block method 0x30 does not exist"],
    );
    check(&[&block(lz4::COMPRESSED, b"\0", 1 << 25, 0)], expect!["more than 1048576 bytes"]);
    check(
        &[&block(lz4::COMPRESSED, b"\0", 1 << 19, 0)],
        expect!["the LZ4 stream is damaged: 1 bytes cannot hold a block of 524288"],
    );
    check(
        &[&block(lz4::COMPRESSED, b"\0", u32::MAX, 0)],
        expect![
            "the LZ4 stream is damaged: a block of 4294967295 bytes is larger than the largest, 33554432"
        ],
    );
    check(
        &[&block(lz4::STORED, b"a", 0, 0)],
        expect!["the LZ4 stream is damaged: an empty block holds bytes"],
    );
}

#[test]
fn a_header_is_read_as_far_as_it_goes() {
    for (len, slots) in [(0, 0), (3, 0), (4, 1), (9, 2), (4096, 1024), (8192, 1024)] {
        let bytes = vec![1; len];
        let region = Region::new(Cursor::new(bytes), None, PathBuf::new()).expect("memory");
        assert_eq!(region.slots().count(), slots, "{len} bytes");
    }
}

#[test]
fn a_sector_count_of_zero_does_not_hide_a_column() {
    let entry = Entry { first_sector: 2, sectors: 0, timestamp: 0 };
    check(region(entry, &stored(3, 3, b"ab")), expect!["Some(None): [97, 98]"]);
}

#[test]
fn what_is_written_has_whole_sectors_and_no_slot_twice() {
    let dir = tempfile::tempdir().expect("a directory");
    let pos = RegionPos::new(2, -3).expect("in range");
    let mut writer = RegionWriter::create(dir.path(), pos).expect("a file");
    let slot = ColumnPos::new(64, -96).slot();
    assert_eq!((pos.column(slot), slot.index()), (ColumnPos::new(64, -96), 0));
    writer.put(slot, b"bytes", 77).expect("written");
    let error = writer.put(slot, b"bytes", 77).expect_err("twice");
    assert_eq!(error.to_string(), "slot 0 (x 0, z 0) of r.2.-3.mca is put twice");
    let path = writer.finish().expect("finished");
    assert_eq!(std::fs::metadata(&path).expect("there").len(), 3 * 4096);
    let region = Region::open(&path).expect("opens");
    assert_eq!((region.pos(), region.timestamp(slot)), (Some(pos), 77));
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).expect("listed").map(|entry| entry.expect("one").file_name()).collect();
    assert_eq!(names, ["r.2.-3.mca"], "nothing partial is left");
}

#[test]
fn a_region_that_is_not_finished_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    drop(RegionWriter::create(dir.path(), RegionPos::new(0, 0).expect("in range")).expect("a file"));
    assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 0);
}

#[test]
fn places_end_where_columns_would_overflow() {
    assert_eq!(RegionPos::new(1 << 26, 0), None);
    assert_eq!(RegionPos::new(0, -(1 << 26) - 1), None);
    let last = RegionPos::new((1 << 26) - 1, -(1 << 26)).expect("in range");
    assert_eq!(last.column(Slot::new(31).expect("a slot")), ColumnPos::new(i32::MAX, i32::MIN));
    assert_eq!(ColumnPos::new(i32::MAX, i32::MIN).region(), last);
}
