//! Clusters written by hand from the description, and the naive code against itself.

mod halves;
mod short;
mod slabs;

use super::super::{Dice, fixture, hex};
use super::*;

/// Rows of this directory version and codec, by commit 43.
fn writing(directory_version: u8, codec: u8) -> Writing {
    Writing { directory_version, codec, version: 43 }
}

const CHUNK: &str = "0100000000000000 3000000000000000*2 00*8 0100000000000000 0500000000000000 00*8";

#[test]
fn a_plain_l1_cluster_of_two_chunks() {
    let chunks = Plain::from([(1, fixture(CHUNK)), (63, vec![0xcc])]);
    let bytes = fixture(&format!(
        "0100000000000000 | format version
         01               | scale level
         0000000000000000 | slot 0 (x 0, y 0, z 0): absent
         0902000000000000 | slot 1 (x 0, y 0, z 1): at 9 + 8·64 = 521
         00*488           | slots 2 to 62: absent
         4102000000000000 | slot 63 (x 3, y 3, z 3): 521 + 56 = 577
         {CHUNK}
         cc"
    ));
    assert_eq!(bytes.len(), 578);
    assert_eq!(hex(&encode(1, &chunks).expect("a level")), hex(&bytes));
    assert_eq!(decode(&bytes), Ok((1, chunks)));
}

#[test]
fn a_plain_l2_cluster_has_a_header_of_32777_bytes() {
    let chunks = Plain::from([(0, vec![0xdd]), (0x0102, vec![0xee])]);
    let bytes = fixture(
        "0100000000000000 | format version
         02               | scale level
         0980000000000000 | slot 0: at 9 + 8·4096 = 32777
         00*2056          | slots 1 to 257: absent
         0a80000000000000 | slot 258 (x 1, y 0, z 2)
         00*30696         | slots 259 to 4095: absent
         dd ee",
    );
    assert_eq!(bytes.len(), 32779);
    assert_eq!(hex(&encode(2, &chunks).expect("a level")), hex(&bytes));
    assert_eq!(decode(&bytes), Ok((2, chunks)));
}

#[test]
fn a_stored_l1_cluster_of_one_chunk_in_version_1() {
    // Both checksums are from a calculator that shares no code with this one.
    let row = fixture(&format!(
        "01 02 00 00      | frame version, kind: cluster, codec: none, reserved
         eb8b14c6         | checksum of the directory | 04 | KEY | the header with zeros
         2b00000000000000 | version 43
         00000000         | schema generation
         00000000         | reserved
         01               | directory version
         01               | scale level
         0000             | reserved
         01000000         | present count
         0000000000000080 | group 0: slot 63 is present
         00000000         | offset, from the end of the directory
         41020000         | stored length 521 + 56
         41020000         | raw length: the same, so not compressed
         943e80cc         | checksum of the group
         2a00000000000000 | slot 63: version 42
         03000000         | slot 63: schema generation
         0100000000000000 | the group: format version
         01               | scale level
         00*504           | slots 0 to 62
         0902000000000000 | slot 63: at 521
         {CHUNK}"
    ));
    let cluster = Stored {
        scale_level: 1,
        chunks: BTreeMap::from([(63, Slot { version: 42, schema_generation: 3, value: fixture(CHUNK) })]),
    };
    assert_eq!(hex(&encode_stored(&cluster, writing(1, 0), 4, b"KEY").expect("encodable")), hex(&row));
    let (frame, found) = decode_stored(&row, 4, b"KEY").expect("readable");
    assert_eq!((frame.version, frame.schema_generation), (43, 0));
    assert_eq!(found, cluster);
    assert_eq!(decode_stored(&row, 4, b"KEZ"), Err("checksum".into()));
}

#[test]
fn slots_and_groups_are_two_names_of_one_place() {
    for (scale_level, version, slots) in
        [(1, 1, 64), (1, 2, 64), (1, 3, 64), (2, 1, 4096), (2, 2, 4096), (2, 4, 4096)]
    {
        let groups = group::count(scale_level, version).expect("a level and its version");
        for slot in 0..slots {
            let (group, place) = group::of_slot(scale_level, version, slot);
            assert!(group < groups && place < slots / groups, "{slot}: {place} of {group}");
            assert_eq!(group::slot_at(scale_level, version, group, place), slot);
        }
    }
    // x 5, y 2, z 15: group (1, 0, 3), place (1, 2, 3).
    assert_eq!(group::of_slot(2, 1, 0x52f), (19, 27));
    assert_eq!(group::of_slot(1, 1, 63), (0, 63));
    // x 2, y 1, z 3: slab 2, place (1, 3).
    assert_eq!(group::of_slot(1, 3, 39), (2, 7));
    // x 5, y 2, z 15: cube 19 and there x 1, the first half; x 7: the second, and x 1 in it.
    assert_eq!(group::of_slot(2, 4, 0x52f), (38, 27));
    assert_eq!(group::of_slot(2, 4, 0x72f), (39, 27));
    assert_eq!(group::count(1, 4), Err("directory version 4 of scale level 1".into()));
    assert_eq!(group::count(2, 3), Err("directory version 3 of scale level 2".into()));
    assert_eq!(group::count(3, 1), Err("scale level 3".into()));
}

fn random(dice: &mut Dice, scale_level: u8, count: u64) -> Stored {
    let slots = 4_u64.pow(u32::from(scale_level)).pow(3);
    let mut chunks = BTreeMap::new();
    for _ in 0..count {
        let value = vec![dice.next() as u8; 1 + dice.below(200) as usize];
        let slot = Slot { version: dice.next(), schema_generation: dice.next() as u32, value };
        chunks.insert(dice.below(slots) as u16, slot);
    }
    Stored { scale_level, chunks }
}

#[test]
fn stored_clusters_come_back_with_and_without_compression() {
    let mut dice = Dice(2);
    for (scale_level, version, count) in
        [(1, 1, 1), (1, 1, 30), (1, 3, 1), (1, 3, 30), (2, 1, 1), (2, 1, 90), (2, 4, 1), (2, 4, 90)]
    {
        for codec in [0, 1] {
            let cluster = random(&mut dice, scale_level, count);
            let row = encode_stored(&cluster, writing(version, codec), 5, b"key").expect("encodable");
            assert_eq!(row[24], version);
            let (frame, found) = decode_stored(&row, 5, b"key").expect("readable");
            assert_eq!((frame.codec, &found), (codec, &cluster));
            let plain = encode(scale_level, &found.plain()).expect("a level");
            assert_eq!(decode(&plain), Ok((scale_level, cluster.plain())));
        }
    }
}

#[test]
fn any_flipped_bit_of_a_stored_cluster_is_refused() {
    for version in [1, 3] {
        let cluster = random(&mut Dice(3), 1, 5);
        let row = encode_stored(&cluster, writing(version, 1), 4, b"key").expect("encodable");
        for bit in 0..row.len() * 8 {
            let mut damaged = row.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(decode_stored(&damaged, 4, b"key").is_err(), "bit {bit} of version {version}");
        }
        for len in 0..row.len() {
            assert!(decode_stored(&row[..len], 4, b"key").is_err(), "version {version} cut to {len}");
        }
    }
}

/// A group by field of two chunks: one of five kinds with a layered block, and one of a single kind.
fn by_field() -> Vec<u8> {
    fixture(
        "0200000000000000 | form
         0200000000000080 | places 1 and 63
         05000000 01000000 | palette counts
         01000000 00000000 | layered block counts
         02000000 00000000 | component lengths
         0f000000 08000000 | rest lengths: 2 + 2 + 8 + 3, and 8
         0a 0b 0c 0d 0e 0f | byte 0 of the six kinds
         00 00 00 00 01 00 | byte 1: the fifth is 0x10e
         00*36             | bytes 2 to 7
         02                | y 0, x 0: z 0 has local id 2, z 1 has 0
         00*7              | z 2 to 15
         30                | y 0, x 1: z 0 has 0, z 1 has 3
         00*119            | to x 15
         04                | y 1, x 0: z 0 has 4
         00*1919           | to y 15
         10 40             | one layered block: cell 16, local id 4
         c1 c2             | components
         0000000000000000  | no entities
         51 52 53          | side data
         0000000000000000  | no entities of place 63",
    )
}

#[test]
fn a_group_by_field_of_two_chunks() {
    // Five kinds take 3 bits. Cell 0 is bits 0 to 2, cell 16 (y 1) bits 48 to 50, cell 257 (x 1, z 1) bits 771 to 773.
    let first = fixture(
        "0100000000000000 | format version
         5206000000000000 | component offset: 40 + 8·5 + 512·3 + 2
         5406000000000000 | entity offset: 2 more
         0100000000000000 | layered block count
         0500000000000000 | palette count
         0a00000000000000 0b00000000000000 0c00000000000000 0d00000000000000 0e01000000000000
         02 00*5 04 00*89 | bytes 0 to 95
         18               | bits 771 and 772
         00*1439          | to the end of the ids
         10 40 c1c2 0000000000000000 515253",
    );
    let second = fixture("0100000000000000 3000000000000000*2 00*8 0100000000000000 0f00000000000000 00*8");
    assert_eq!(first.len(), 1631);
    let chunks = fields::decode(&by_field()).expect("readable");
    assert_eq!(hex(&chunks[&1]), hex(&first));
    assert_eq!(hex(&chunks[&63]), hex(&second));
    assert_eq!(chunks.len(), 2);
    assert_eq!(fields::encode(&chunks).map(|bytes| hex(&bytes)), Some(hex(&by_field())));
}

#[test]
fn a_group_by_field_that_lies_is_refused() {
    let mut no_kind = by_field();
    no_kind[16] = 0;
    assert_eq!(fields::decode(&no_kind), Err("0 kinds for 1 layered blocks and 4096 cells".into()));
    let mut large_id = by_field();
    large_id[96] = 0x82;
    assert_eq!(fields::decode(&large_id), Err("id 8 of 3 bits".into()));
    let mut longer = by_field();
    longer.push(0);
    assert_eq!(fields::decode(&longer), Err("1 bytes after the last rest".into()));
    for len in 0..longer.len() - 1 {
        assert!(fields::decode(&longer[..len]).is_err(), "cut to {len}");
    }
}
