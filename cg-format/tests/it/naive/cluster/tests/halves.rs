//! Directories of version 4, in which a group is half a cube of L2, and the entries are in planes.

use super::*;

/// Slots 769 (x 3, y 0, z 1) and 770 (x 3, y 0, z 2): the second half of cube 0, at x 1 of it.
pub(super) fn one_half() -> Stored {
    let chunk =
        |version, schema_generation, value: u8| Slot { version, schema_generation, value: vec![value] };
    Stored { scale_level: 2, chunks: [(769, chunk(40, 1, 0xcc)), (770, chunk(41, 2, 0xdd))].into() }
}

/// Its row. The checksums are from a calculator that shares no code with this one.
fn row() -> Vec<u8> {
    fixture(
        "01 02 00 00      | frame version, kind: cluster, codec: none, reserved
         9e0ab2eb         | checksum of the directory | 05 | KEY | the header with zeros
         2b00000000000000 | version 43
         00000000         | schema generation
         00000000         | reserved
         04               | directory version
         02               | scale level
         0000             | reserved
         02000000         | present count
         180c0000         | entries length: 128·24 + 2·12
         00*256           | presence: bytes 0 and 1 of all groups
         00 06 00*126     | byte 2: places 17 and 18 of group 1 are present
         00*640           | bytes 3 to 7
         00*512           | offset
         00 0b 00*126     | stored length 521 + 2
         00 02 00*126
         00*256
         00 0b 00*126     | raw length
         00 02 00*126
         00*256
         00 1f 00*126     | checksum of the group
         00 45 00*126
         00 82 00*126
         00 12 00*126
         28 29            | byte 0 of the versions 40 and 41
         00*14            | bytes 1 to 7
         01 02            | byte 0 of the schema generations
         00*6             | bytes 1 to 3
         0100000000000000 | format version
         01               | scale level
         00*136           | places 0 to 16
         0902000000000000 | place 17: at 521
         0a02000000000000 | place 18: at 522
         00*360           | places 19 to 63
         cc dd",
    )
}

/// Where the first plane starts, and the end of the directory.
const PLANES: usize = 36;
const DIRECTORY_END: usize = PLANES + 128 * 24 + 2 * 12;

/// The refusal of the row with other bytes at some offset and the right checksum.
fn refusal_with(at: usize, bytes: &[u8]) -> Refused {
    refusal_of(row(), at, bytes)
}

pub(super) fn refusal_of(mut row: Vec<u8>, at: usize, bytes: &[u8]) -> Refused {
    row[at..at + bytes.len()].copy_from_slice(bytes);
    let checked_len = directory::len(&row[24..]).unwrap_or(0);
    frame::reseal(&mut row, checked_len, 5, b"KEY");
    decode_stored(&row, 5, b"KEY").map(|(_, found)| found).expect_err("a lie")
}

#[test]
fn a_stored_l2_cluster_of_one_half() {
    assert_eq!(hex(&encode_stored(&one_half(), writing(4, 0), 5, b"KEY").expect("encodable")), hex(&row()));
    let (frame, found) = decode_stored(&row(), 5, b"KEY").expect("readable");
    assert_eq!((frame.version, frame.schema_generation), (43, 0));
    assert_eq!(found, one_half());
}

#[test]
fn planes_are_items_by_byte() {
    assert_eq!(directory::in_planes(b"abcABC", 3), b"aAbBcC");
    assert_eq!(directory::from_planes(b"aAbBcC", 3), b"abcABC");
}

#[test]
fn a_directory_of_halves_that_lies_is_refused() {
    let byte = |byte: usize, group: usize| PLANES + byte * 128 + group;
    let lies: [(usize, &[u8], &str); 10] = [
        (24, &[6], "directory version 6"),
        (24, &[3], "directory version 3 of scale level 2"),
        (25, &[1], "directory version 4 of scale level 1"),
        (32, &[0, 0], "0 bytes of entries for 3096"),
        (32, &[0x19], "3097 bytes of entries for 3096"),
        (byte(2, 1), &[2], "1 presence bits, 2 chunks"),
        (byte(2, 1), &[10], "group 1: it holds 60000, the directory says a0000"),
        (byte(4, 1), &[1], "presence 100060000 of group 1, half a cube"),
        (byte(8, 1), &[1], "group 1 at 1, but the one before ends at 0"),
        (byte(12, 0), &[1], "group 0 has an entry and no chunk"),
    ];
    for (at, bytes, reason) in lies {
        assert_eq!(refusal_with(at, bytes), reason, "{bytes:x?} at {at}");
    }
    assert_eq!(refusal_with(DIRECTORY_END, &[9]), "group 1: checksum");
}
