//! Directories of version 3, in which a group is the chunks of L1 with one x.

use super::*;

/// Slots 6 (x 0, y 1, z 2), 16 (x 1, y 0, z 0) and 54 (x 3, y 1, z 2). Slabs 0 and 3 are alike.
fn three_slabs() -> Stored {
    let chunk =
        |version, schema_generation, value: &[u8]| Slot { version, schema_generation, value: value.into() };
    let (first, second, third) =
        (chunk(40, 1, &[0xaa, 0xbb]), chunk(41, 2, &[0xcc]), chunk(42, 3, &[0xaa, 0xbb]));
    Stored { scale_level: 1, chunks: [(6, first), (16, second), (54, third)].into() }
}

/// Its row. The checksums are from a calculator that shares no code with this one.
fn row() -> Vec<u8> {
    fixture(
        "01 02 00 00      | frame version, kind: cluster, codec: none, reserved
         3618a9e0         | checksum of the directory | 04 | KEY | the header with zeros
         2b00000000000000 | version 43
         00000000         | schema generation
         00000000         | reserved
         03               | directory version
         01               | scale level
         0000             | reserved
         03000000         | present count
         4000000000000000 | slab 0: place 6 is present
         00000000         | offset, from the end of the directory
         0b020000         | stored length 521 + 2
         0b020000         | raw length
         1c39a53c         | checksum of the group
         0100000000000000 | slab 1: place 0 is present
         0b020000         | offset: the end of slab 0
         0a020000         | stored length 521 + 1
         0a020000         | raw length
         174d4d91         | checksum of the group
         00*24            | slab 2 has no chunk
         4000000000000000 | slab 3, as slab 0
         00000000
         0b020000
         0b020000
         1c39a53c
         2800000000000000 | slot 6: version 40
         01000000         | slot 6: schema generation
         2900000000000000 | slot 16: version 41
         02000000         | slot 16: schema generation
         2a00000000000000 | slot 54: version 42
         03000000         | slot 54: schema generation
         0100000000000000 | slab 0: format version
         01               | scale level
         00*48            | places 0 to 5
         0902000000000000 | place 6: at 521
         00*456           | places 7 to 63
         aa bb
         0100000000000000 | slab 1: format version
         01               | scale level
         0902000000000000 | place 0: at 521
         00*504           | places 1 to 63
         cc",
    )
}

/// Where the entry of a slab starts in a row, and the end of the directory of three chunks.
const SLABS: [usize; 4] = [32, 56, 80, 104];
const DIRECTORY_END: usize = 164;

/// A row with other bytes at some offset and the right checksum.
fn with(row: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut row = row.to_vec();
    row[at..at + bytes.len()].copy_from_slice(bytes);
    let checked_len = directory::len(&row[24..]).unwrap_or(0);
    frame::reseal(&mut row, checked_len, 4, b"KEY");
    row
}

fn refusal(row: &[u8]) -> Refused {
    decode_stored(row, 4, b"KEY").map(|(_, found)| found).expect_err("a lie")
}

#[test]
fn a_stored_l1_cluster_of_three_slabs() {
    let cluster = three_slabs();
    assert_eq!(hex(&encode_stored(&cluster, writing(3, 0), 4, b"KEY").expect("encodable")), hex(&row()));
    let (frame, found) = decode_stored(&row(), 4, b"KEY").expect("readable");
    assert_eq!((frame.version, frame.schema_generation), (43, 0));
    assert_eq!(found, cluster);
}

#[test]
fn warm_rows_are_written_in_version_3_and_cold_ones_in_version_5() {
    assert_eq!([1, 2].map(written_version), [3, 5]);
    let cold = Stored { scale_level: 2, ..three_slabs() };
    let refused = encode_stored(&cold, writing(3, 0), 5, b"KEY");
    assert_eq!(refused, Err("directory version 3 of scale level 2".into()));
    let refused = encode_stored(&three_slabs(), writing(2, 0), 4, b"KEY");
    assert_eq!(refused, Err("directory version 2 is only read".into()));
}

/// Slabs that differ in what only the directory knows are alike; those that differ in a place or a byte are not.
#[test]
fn equal_slabs_are_stored_once() {
    let mut dice = Dice(4);
    for codec in [0, 1] {
        let mut chunks = BTreeMap::new();
        for x in 0..4 {
            for place in 0..4 {
                let value = vec![if x == 2 && place == 3 { 8 } else { 7 }; 50];
                let chunk = Slot { version: dice.next(), schema_generation: x.into(), value };
                chunks.insert(x * 16 + place + u16::from(x == 1), chunk);
            }
        }
        let cluster = Stored { scale_level: 1, chunks };
        let row = encode_stored(&cluster, writing(3, codec), 4, b"key").expect("encodable");
        assert_eq!(decode_stored(&row, 4, b"key").map(|(_, found)| found), Ok(cluster));
        let entries = directory::decode(&row[24..], codec).expect("readable").entries;
        assert_eq!(entries[3], entries[0]);
        let [first, second, third] = [0, 1, 2].map(|group| entries[group]);
        assert_eq!(
            [first.offset, second.offset, third.offset],
            [0, first.stored_len, first.stored_len + second.stored_len]
        );
        assert_eq!(row.len(), 24 + 8 + 4 * 24 + 16 * 12 + (third.offset + third.stored_len) as usize);
    }
}

#[test]
fn equal_slabs_that_are_stored_twice_are_taken() {
    let mut twice = row();
    twice.extend_from_within(DIRECTORY_END..DIRECTORY_END + 523);
    let twice = with(&twice, SLABS[3] + 8, &[0x15, 4]);
    assert_eq!(decode_stored(&twice, 4, b"KEY").map(|(_, found)| found), Ok(three_slabs()));
}

#[test]
fn groups_of_version_1_are_not_shared() {
    let chunk = |slot| (slot, Slot { version: 1, schema_generation: 1, value: vec![0xaa] });
    let cold = Stored { scale_level: 2, chunks: [chunk(0), chunk(4)].into() };
    let row = encode_stored(&cold, writing(1, 0), 5, b"KEY").expect("encodable");
    let entries = directory::decode(&row[24..], 0).expect("readable").entries;
    assert_eq!([entries[0].offset, entries[1].offset], [0, 522]);
    let mut once = row[..row.len() - 522].to_vec();
    once[SLABS[1] + 8..SLABS[1] + 12].fill(0);
    let checked_len = directory::len(&row[24..]).expect("readable");
    frame::reseal(&mut once, checked_len, 5, b"KEY");
    let refused = decode_stored(&once, 5, b"KEY").map(|(_, found)| found);
    assert_eq!(refused, Err("group 1 at 0, but the one before ends at 522".into()));
}

/// A chunk that is in slot 16 of its group, where the directory and the group say the same of it.
#[test]
fn a_slab_has_no_place_above_15() {
    for place in [15, 16, 17, 31, 32, 62, 63] {
        let mut row = row();
        let group = DIRECTORY_END + 523;
        row[group + 9..group + 11].fill(0);
        row[group + 9 + 8 * place..][..2].copy_from_slice(&[9, 2]);
        let crc = crc32c(&row[group..]);
        row[SLABS[1]..][..8].copy_from_slice(&(1_u64 << place).to_le_bytes());
        let row = with(&row, SLABS[1] + 20, &crc.to_le_bytes());
        if place == 15 {
            let (_, found) = decode_stored(&row, 4, b"KEY").expect("the last place");
            assert_eq!(found.chunks.keys().copied().collect::<Vec<_>>(), [6, 31, 54]);
        } else {
            assert_eq!(refusal(&row), format!("presence {:x} of group 1, a slab", 1_u64 << place));
        }
    }
}

#[test]
fn a_directory_of_slabs_that_lies_is_refused() {
    let lies: [(usize, &[u8], &str); 21] = [
        (24, &[0], "directory version 0"),
        (24, &[6], "directory version 6"),
        (24, &[4], "directory version 4 of scale level 1"),
        (25, &[0], "scale level 0"),
        (25, &[2], "directory version 3 of scale level 2"),
        (26, &[1], "reserved is 1"),
        (28, &[0], "0 chunks in 64 slots"),
        (28, &[65], "65 chunks in 64 slots"),
        (28, &[2], "3 presence bits, 2 chunks"),
        (28, &[4], "3 presence bits, 4 chunks"),
        (SLABS[1], &[2], "group 1: it holds 1, the directory says 2"),
        (SLABS[0] + 8, &[0x0b, 2], "group 0 at 523, but the one before ends at 0"),
        (SLABS[1] + 8, &[0x0c, 2], "group 1 at 524, but the one before ends at 523"),
        (SLABS[1] + 8, &[0, 0], "group 1 at 0, but the one before ends at 523"),
        (SLABS[1] + 16, &[9, 2], "group 1: raw length 521"),
        (SLABS[2] + 8, &[0x15, 4], "group 2 has an entry and no chunk"),
        (SLABS[3], &[0x20], "group 3 at 0, but the one before ends at 1045"),
        (SLABS[3] + 8, &[0x0b, 2], "group 3 at 523, but the one before ends at 1045"),
        (SLABS[3] + 12, &[0x0a], "group 3 at 0, but the one before ends at 1045"),
        (SLABS[3] + 16, &[0x0c], "group 3 at 0, but the one before ends at 1045"),
        (SLABS[3] + 20, &[0], "group 3 at 0, but the one before ends at 1045"),
    ];
    for (at, bytes, reason) in lies {
        assert_eq!(refusal(&with(&row(), at, bytes)), reason, "{bytes:x?} at {at}");
    }
    let longer = [row(), vec![0]].concat();
    assert_eq!(refusal(&longer), "1 bytes after the last group");
}
