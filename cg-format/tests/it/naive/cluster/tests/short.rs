//! Directories of version 5: as version 4, and planes of equal bytes are one byte.

use super::halves::{one_half, refusal_of};
use super::*;

/// The row of [`one_half`]. The checksums are from a calculator that shares no code with this one.
fn row() -> Vec<u8> {
    fixture(
        "01 02 00 00      | frame version, kind: cluster, codec: none, reserved
         758db4e1         | checksum of the directory | 05 | KEY | the header with zeros
         2b00000000000000 | version 43
         00000000         | schema generation
         00000000         | reserved
         05               | directory version
         02               | scale level
         0000             | reserved
         02000000         | present count
         9d040000         | entries length: 9·128 + 15 + 2·2 + 10
         fbcf0cfe0e000000 | equal planes: all but 2, 12, 13, 16, 17, 20 to 24 and 32
         00 00            | presence: bytes 0 and 1 of all groups
         00 06 00*126     | byte 2: places 17 and 18 of group 1 are present
         00*5             | bytes 3 to 7
         00*4             | offset
         00 0b 00*126     | stored length 521 + 2
         00 02 00*126
         00*2
         00 0b 00*126     | raw length
         00 02 00*126
         00*2
         00 1f 00*126     | checksum of the group
         00 45 00*126
         00 82 00*126
         00 12 00*126
         28 29            | byte 0 of the versions 40 and 41
         00*7             | bytes 1 to 7
         01 02            | byte 0 of the schema generations
         00*3             | bytes 1 to 3
         0100000000000000 | format version
         01               | scale level
         00*136           | places 0 to 16
         0902000000000000 | place 17: at 521
         0a02000000000000 | place 18: at 522
         00*360           | places 19 to 63
         cc dd",
    )
}

#[test]
fn a_stored_l2_cluster_of_short_planes() {
    assert_eq!(hex(&encode_stored(&one_half(), writing(5, 0), 5, b"KEY").expect("encodable")), hex(&row()));
    let (frame, found) = decode_stored(&row(), 5, b"KEY").expect("readable");
    assert_eq!((frame.version, frame.schema_generation), (43, 0));
    assert_eq!(found, one_half());
}

#[test]
fn a_directory_of_short_planes_that_lies_is_refused() {
    let lies: [(usize, &[u8], &str); 5] = [
        (24, &[6], "directory version 6"),
        (25, &[1], "directory version 5 of scale level 1"),
        (32, &[0, 0], "0 bytes of entries for 1181"),
        (32, &[0x9e], "1182 bytes of entries for 1181"),
        (40, &[0x1e], "equal planes 1efe0ccffb"),
    ];
    for (at, bytes, reason) in lies {
        assert_eq!(refusal_of(row(), at, bytes), reason, "{bytes:x?} at {at}");
    }
}
