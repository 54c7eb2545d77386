//! Chunk values written by hand from the description, and the naive code against itself.

use std::collections::BTreeMap;

use super::super::{Dice, Schema, fixture, hex};
use super::*;

/// Block 7 is plain; 8 has the 2-byte component 1; 9 has component 1 and the variable component 0.
const VARIABLE_0: u64 = 1 << 63;

fn schema() -> Schema {
    Schema {
        blocks: BTreeMap::from([(5, vec![]), (7, vec![]), (8, vec![1]), (9, vec![1, VARIABLE_0])]),
        components: BTreeMap::from([(1, Some(2)), (VARIABLE_0, None)]),
    }
}

#[track_caller]
fn check(chunk: &Chunk, text: &str) -> Vec<u8> {
    let bytes = fixture(text);
    assert_eq!(hex(&encode(chunk, &schema()).expect("an encodable chunk")), hex(&bytes));
    assert_eq!(decode(&bytes, &schema()), Ok(chunk.clone()));
    bytes
}

#[track_caller]
fn refused(text: &str, reason: &str) {
    assert_eq!(decode(&fixture(text), &schema()), Err(reason.into()));
}

#[test]
fn one_kind_is_56_bytes() {
    let bytes = check(
        &Chunk::filled(7),
        "0100000000000000 | format version
         3000000000000000 | component offset 40 + 8
         3000000000000000 | entity offset: no components
         0000000000000000 | layered block count
         0100000000000000 | palette count
         0700000000000000 | palette: block 7
                          | layer 0 takes 0 bits a cell
         0000000000000000 | entity count",
    );
    assert_eq!(bytes.len(), 56);
}

#[test]
fn two_kinds_take_one_bit_a_cell() {
    let mut chunk = Chunk::filled(7);
    chunk.cells[1] = vec![5]; // x 0, y 0, z 1
    chunk.cells[16] = vec![5]; // x 0, y 1, z 0
    chunk.cells[4095] = vec![5];
    check(
        &chunk,
        "0100000000000000 | format version
         3802000000000000 | component offset 40 + 16 + 512 = 568
         3802000000000000 | entity offset
         0000000000000000 | layered block count
         0200000000000000 | palette count
         0700000000000000 | local id 0: block 7, which comes first
         0500000000000000 | local id 1: block 5
         02 00 01 00*508  | cells 1 and 16
         80               | cell 4095
         0000000000000000 | entity count",
    );
}

#[test]
fn a_palette_is_in_order_of_first_appearance_through_the_layers() {
    let mut chunk = Chunk::filled(7);
    chunk.cells[0] = vec![7, 5];
    chunk.cells[1] = vec![8];
    chunk.components.insert((1, 0, 1), vec![0xab, 0xcd]);
    check(
        &chunk,
        "0100000000000000 | format version
         4204000000000000 | component offset 40 + 24 + 1024 + 2 = 1090
         4c04000000000000 | entity offset 1090 + 8 + 2
         0100000000000000 | layered block count
         0300000000000000 | palette count
         0700000000000000 | local id 0: cell 0, layer 0
         0500000000000000 | local id 1: cell 0, layer 1
         0800000000000000 | local id 2: cell 1
         08 00*1023       | layer 0, 2 bits a cell: cell 1 is 2
         00 10            | layered: cell 0 in 12 bits, local id 1 in 2 bits, 2 bits of padding
         0100000000000000 | component 1, fixed
         abcd             | cell 1, layer 0
         0000000000000000 | entity count",
    );
}

#[test]
fn layered_entries_of_one_kind_are_12_bits() {
    let mut chunk = Chunk::filled(7);
    chunk.cells[0x123] = vec![7, 7];
    chunk.cells[0xfff] = vec![7, 7, 7];
    check(
        &chunk,
        "0100000000000000 | format version
         3500000000000000 | component offset 48 + ceil(36 / 8) = 53
         3500000000000000 | entity offset
         0300000000000000 | layered block count
         0100000000000000 | palette count
         0700000000000000 | palette
         23f1ff           | cell 123 in the low 12 bits, cell fff above
         ff0f             | cell fff again, 4 bits of padding
         0000000000000000 | entity count",
    );
}

#[test]
fn both_kinds_of_component_with_a_layered_owner() {
    let mut chunk = Chunk::filled(7);
    chunk.cells[0] = vec![7, 9];
    chunk.cells[2] = vec![9];
    chunk.components.insert((0, 1, 1), vec![0x11, 0x11]);
    chunk.components.insert((2, 0, 1), vec![0x22, 0x22]);
    chunk.components.insert((0, 1, VARIABLE_0), b"abc".to_vec());
    chunk.components.insert((2, 0, VARIABLE_0), Vec::new());
    check(
        &chunk,
        "0100000000000000 | format version
         3a02000000000000 | component offset 40 + 16 + 512 + ceil(13 / 8) = 570
         5502000000000000 | entity offset 570 + 12 + 15 = 597
         0100000000000000 | layered block count
         0200000000000000 | palette count
         0700000000000000 | local id 0
         0900000000000000 | local id 1
         04 00*511        | layer 0: cell 2 is 1
         00 10            | layered: cell 0 in 12 bits, local id 1 in 1 bit
         0100000000000000 | component 1, fixed: 2 bytes each
         1111             | cell 0, layer 1
         2222             | cell 2, layer 0
         0000000000000080 | component 0, variable
         01               | offsets of one byte
         00 03 03         | cell 0 layer 1 has 3 bytes, cell 2 has none
         616263           | abc
         0000000000000000 | entity count",
    );
}

#[test]
fn components_follow_cells_and_then_layers() {
    let mut chunk = Chunk::filled(5);
    chunk.cells[0] = vec![8, 8];
    chunk.cells[1] = vec![8];
    for (place, byte) in [((0, 0, 1), 0xa0), ((0, 1, 1), 0xa1), ((1, 0, 1), 0xb0)] {
        chunk.components.insert(place, vec![byte; 2]);
    }
    check(
        &chunk,
        "0100000000000000 | format version
         3a02000000000000 | component offset 570
         4802000000000000 | entity offset 570 + 8 + 6
         0100000000000000 | layered block count
         0200000000000000 | palette count
         0800000000000000 | local id 0: cell 0 comes first
         0500000000000000 | local id 1
         fc ff*511        | layer 0: cells 0 and 1 are 0, the others 1
         00 00            | layered: cell 0, local id 0
         0100000000000000 | component 1
         a0a0 a1a1 b0b0   | (0,0,0) layer 0, (0,0,0) layer 1, (0,0,1) layer 0
         0000000000000000 | entity count",
    );
}

#[test]
fn offsets_grow_to_two_bytes_with_256_bytes_of_data() {
    let mut chunk = Chunk::filled(7);
    chunk.cells[0] = vec![9];
    chunk.components.insert((0, 0, 1), vec![0, 0]);
    chunk.components.insert((0, 0, VARIABLE_0), vec![0xee; 256]);
    check(
        &chunk,
        "0100000000000000 | format version
         3802000000000000 | component offset 568
         4f03000000000000 | entity offset 568 + 10 + 269 = 847
         0000000000000000 | layered block count
         0200000000000000 | palette count
         0900000000000000 | local id 0
         0700000000000000 | local id 1
         fe ff*511        | layer 0
         0100000000000000 | component 1
         0000             | cell 0
         0000000000000080 | component 0, variable
         02               | offsets of two bytes, because 256 does not fit one
         0000 0001        | 0 to 256
         ee*256
         0000000000000000 | entity count",
    );
}

#[test]
fn entities_are_a_count_and_uuids() {
    let mut chunk = Chunk::filled(7);
    chunk.entities = vec![[0x11; 16], [0x22; 16]];
    let bytes = check(
        &chunk,
        "0100000000000000 3000000000000000 3000000000000000 0000000000000000 0100000000000000 | header
         0700000000000000 | palette
         0200000000000000 | entity count
         11*16
         22*16",
    );
    let mut turned = bytes[..56].to_vec();
    turned.extend([0x22; 16]);
    turned.extend([0x11; 16]);
    let found = decode(&turned, &schema()).expect("any order is read");
    assert_eq!(found.entities, [[0x22; 16], [0x11; 16]]);
    assert_eq!(encode(&found, &schema()), Ok(bytes), "and written in one order");
}

#[test]
fn side_data_lies_behind_the_entities() {
    let mut chunk = Chunk::filled(7);
    chunk.entities = vec![[0x11; 16]];
    chunk.sides = BTreeMap::from([(2, vec![0xaa, 0xbb]), (0x0103, vec![])]);
    let bytes = check(
        &chunk,
        "0100000000000000 3000000000000000 3000000000000000 0000000000000000 0100000000000000 | header
         0700000000000000 | palette
         0100000000000000 | entity count
         11*16
         0200 02000000    | side kind 2, 2 bytes
         aabb
         0301 00000000    | side kind 259, no bytes",
    );
    for len in 56..bytes.len() {
        // The value may end after the entities and after each side, nowhere else.
        assert_eq!(decode(&bytes[..len], &schema()).is_ok(), [72, 80].contains(&len), "cut to {len}");
    }
}

#[test]
fn five_kinds_cross_byte_boundaries() {
    let mut chunk = Chunk::filled(7);
    for (cell, block) in [(1, 10), (2, 11), (3, 12), (4, 13)] {
        chunk.cells[cell] = vec![block];
    }
    let known = Schema { blocks: [7, 10, 11, 12, 13].map(|id| (id, vec![])).into(), ..Schema::default() };
    let bytes = fixture(
        "0100000000000000 | format version
         5006000000000000 | component offset 40 + 40 + 1536 = 1616
         5006000000000000 | entity offset
         0000000000000000 | layered block count
         0500000000000000 | palette count
         0700000000000000 0a00000000000000 0b00000000000000 0c00000000000000 0d00000000000000
         88 46 00         | 000 001 010 011 100 000 000 000, the first in the lowest bits
         00*1533
         0000000000000000 | entity count",
    );
    assert_eq!(hex(&encode(&chunk, &known).expect("encodable")), hex(&bytes));
    assert_eq!(decode(&bytes, &known), Ok(chunk));
}

#[test]
fn layered_entries_of_one_cell_keep_their_order_wherever_they_stand() {
    let value = fixture(
        "0100000000000000 | format version
         4204000000000000 | component offset 40 + 24 + 1024 + ceil(42 / 8) = 1094, wrong on purpose
         4204000000000000
         0300000000000000 0300000000000000 0700000000000000 0500000000000000 0600000000000000
         00*1024
         05 50 01 00 00 02 | (5, id 1), (5, id 0), (0, id 2): 14 bits each
         0000000000000000",
    );
    assert_eq!(decode(&value, &schema()), Err("component offset 1090, but the blocks end at 1094".into()));
    let mut right = value;
    right[8] = 0x46;
    right[16] = 0x46;
    let mut known = schema();
    known.blocks.insert(6, vec![]);
    let found = decode(&right, &known).expect("readers accept any order");
    assert_eq!(found.cells[5], [7, 5, 7]);
    assert_eq!(found.cells[0], [7, 6]);
    let again = encode(&found, &known).expect("encodable");
    assert_ne!(again, right, "writers sort, and number the kinds as they appear");
    assert_eq!(decode(&again, &known), Ok(found));
}

#[test]
fn what_the_schema_does_not_know_is_kept() {
    let mut chunk = Chunk::filled(7);
    chunk.cells[0] = vec![99];
    chunk.unread = vec![1, 2, 3];
    chunk.entities = vec![[0x11; 16]];
    let bytes = check(
        &chunk,
        "0100000000000000 | format version
         3802000000000000 | component offset 568
         3b02000000000000 | entity offset 571
         0000000000000000 | layered block count
         0200000000000000 | palette count
         6300000000000000 | local id 0: block 99, which the schema does not know
         0700000000000000 | local id 1
         fe ff*511
         010203           | whatever it is
         0100000000000000 | entity count
         11*16",
    );
    assert_eq!(bytes.len(), 595);
}

#[test]
fn an_unknown_component_ends_what_is_understood() {
    let mut known = schema();
    known.blocks.insert(8, vec![1, 2]);
    let mut chunk = Chunk::filled(7);
    chunk.cells[0] = vec![8];
    chunk.components.insert((0, 0, 1), vec![0xab, 0xcd]);
    chunk.unread = fixture("0200000000000000 ff");
    let bytes = encode(&chunk, &known).expect("encodable");
    assert_eq!(bytes[568..587], fixture("0100000000000000 abcd 0200000000000000 ff"));
    assert_eq!(decode(&bytes, &known), Ok(chunk));
}

#[test]
fn every_lie_has_its_reason() {
    let tail = "0700000000000000 0000000000000000";
    refused("", "format version: 8 bytes wanted at 0, 0 left");
    refused(&format!("00*8 3000000000000000*2 00*8 0100000000000000 {tail}"), "format version 0");
    refused(&format!("0200000000000000 3000000000000000*2 00*8 0100000000000000 {tail}"), "format version 2");
    refused(&format!("0100000000000000 2800000000000000*2 00*8 00*8 {tail}"), "an empty palette");
    refused(
        &format!("0100000000000000 3000000000000000*2 00*8 0200000000000000 {tail} 00*512"),
        "component offset 48, but the blocks end at 568",
    );
    refused(
        &format!("0100000000000000 3000000000000000*2 00*8 ffffffffffffffff {tail}"),
        "18446744073709551615 kinds for 0 layered blocks and 4096 cells",
    );
    refused(
        &format!("0100000000000000 3000000000000000*2 ff*8 ff*8 {tail}"),
        "18446744073709551615 kinds do not fit",
    );
    refused(
        &format!("0100000000000000 3000000000000000*2 ff*8 0100000000000000 {tail}"),
        "18446744073709551615 layered blocks do not fit",
    );
    refused(
        &format!("0100000000000000 3000000000000000 2f00000000000000 00*8 0100000000000000 {tail}"),
        "entity offset 47 before component offset 48",
    );
    refused(
        "0100000000000000 3802000000000000*2 00*8 0200000000000000 0700000000000000*2 00*512 00*8",
        "a kind is twice in the palette",
    );
    refused(
        "0100000000000000 4004000000000000*2 00*8 0300000000000000
         0700000000000000 0500000000000000 0600000000000000 03 00*1023 00*8",
        "local id 3 of 3",
    );
    refused(
        "0100000000000000 3200000000000000*2 0100000000000000*2 0700000000000000 00 10 00*8",
        "padding after the layered blocks is not zero",
    );
    let header = "0100000000000000 3000000000000000*2 00*8 0100000000000000 0700000000000000";
    refused(&format!("{header} 0200000000000000 11*32"), "an entity is named twice");
    refused(&format!("{header} ffffffffffffffff"), "18446744073709551615 entities do not fit");
    refused(&format!("{header} 00*8 0100 00000000 0100 00000000"), "side kind 1 out of order");
    refused(&format!("{header} 00*8 0100 00000000 0000 00000000"), "side kind 0 out of order");
    refused(&format!("{header} 00*8 0100 ffffffff"), "side bytes: 4294967295 bytes wanted at 62, 0 left");
}

/// A chunk of block 9 with these bytes as its component section, of which there is one instance in cell 0.
fn with_section(section: &str) -> String {
    let len = fixture(section).len() as u64;
    let mut end = Vec::new();
    put(&mut end, 568 + len, 8);
    let end: String = end.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "0100000000000000 3802000000000000 {end} 00*8 0200000000000000 0900000000000000 0700000000000000
         fe ff*511 {section}
         00*8"
    )
}

#[test]
fn every_lie_of_a_component_has_its_reason() {
    let fixed = "0100000000000000 abcd";
    let variable = "0000000000000080";
    assert!(decode(&fixture(&with_section(&format!("{fixed} {variable} 01 00 01 ee"))), &schema()).is_ok());
    refused(&with_section(""), "component 1 is missing");
    refused(&with_section(fixed), "component 8000000000000000 is missing");
    refused(
        &with_section(&format!("{variable} 01 00 01 ee {fixed}")),
        "component 8000000000000000 where 1 is due",
    );
    refused(
        &with_section(&format!("{fixed} {variable} 01 00 01 ee {fixed}")),
        "component 1 where the section should end",
    );
    refused(&with_section(&format!("{fixed} {variable} 03 000000 010000 ee")), "offset width 3");
    refused(&with_section(&format!("{fixed} {variable} 02 0000 0100 ee")), "offset width 2 for 1 bytes");
    refused(
        &with_section(&format!("{fixed} {variable} 01 01 01 ee")),
        "offsets of component 8000000000000000 do not rise from 0",
    );
    refused(
        &with_section(&format!("{fixed} {variable} 01 00 02 ee")),
        "component data: 2 bytes wanted at 21, 1 left",
    );
    refused(&with_section("0100000000000000 ab"), "component data: 2 bytes wanted at 8, 1 left");
}

#[test]
fn random_chunks_come_back() {
    let mut dice = Dice(1);
    for kinds in [1, 2, 3, 5, 17, 256, 257, 4096] {
        for _ in 0..3 {
            let (chunk, schema) = super::super::chunk::random(&mut dice, kinds);
            let bytes = encode(&chunk, &schema).expect("encodable");
            assert_eq!(decode(&bytes, &schema), Ok(chunk.sorted()), "{kinds} kinds");
        }
    }
}
