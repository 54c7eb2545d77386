//! Broken values, one defect each, and exactly what is said about it.

use std::fmt::Write;

use cg_format::chunk::{Chunk, ChunkView, trace};
use expect_test::expect;

use super::model::{BYTE, TEXT, TestSchema, WIDE};
use super::raw::{Raw, UNEXPECTED, fixed, side, variable};

/// Where the sections of [`Raw::rich`] start.
const BLOCKS: usize = 40 + 4 * 8;
const LAYERS: usize = BLOCKS + 1024;
const COMPONENTS: usize = LAYERS + 4;

type Break = (&'static str, fn(&mut Raw), fn(&mut Vec<u8>));

fn nothing<T>(_: &mut T) {}

fn put(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

#[test]
fn the_sample_is_whole() {
    let bytes = Raw::rich().bytes();
    let chunk = Chunk::decode(&bytes, &TestSchema).unwrap();
    assert_eq!(chunk.validate(&TestSchema), Ok(()));
    assert!(!chunk.has_unread_components());
    assert!(chunk.to_bytes() == bytes);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, one line per defect")]
fn every_defect_is_named() {
    #[rustfmt::skip]
    let table: &[Break] = &[
        ("empty", nothing, Vec::clear),
        ("cut in the header", nothing, |b| b.truncate(39)),
        ("version 0", |r| r.version = 0, nothing),
        ("version 2", |r| r.version = 2, nothing),
        ("no palette", nothing, |b| put(b, 32, 0)),
        ("palette larger than all blocks", nothing, |b| put(b, 32, 4099)),
        ("palette of 2^64 - 1", nothing, |b| put(b, 32, u64::MAX)),
        ("more layered blocks than fit", nothing, |b| put(b, 24, 1_044_481)),
        ("2^63 layered blocks", nothing, |b| put(b, 24, 1 << 63)),
        ("component offset one too small", nothing, |b| put(b, 8, COMPONENTS as u64 - 1)),
        ("component offset huge", nothing, |b| put(b, 8, u64::MAX)),
        ("entity offset before component offset", nothing, |b| put(b, 16, COMPONENTS as u64 - 1)),
        ("entity offset after the end", nothing, |b| put(b, 16, 1 << 40)),
        ("entity offset 8 too far", nothing, |b| { let at = u64::from_le_bytes(b[16..24].try_into().unwrap()); put(b, 16, at + 8) }),
        ("palette cut off", nothing, |b| b.truncate(BLOCKS - 1)),
        ("kind twice", |r| r.palette[3] = 1, nothing),
        ("kind twice among many", |r| { r.palette = (100..400).collect(); r.palette[299] = 150; r.ids.fill(0); r.layered.clear(); r.components.clear(); }, nothing),
        ("layer 0 cut off", nothing, |b| b.truncate(LAYERS - 1)),
        ("local id not in the palette", |r| { r.palette = vec![0, 6, 7]; r.ids.fill(0); r.ids[500] = 3; r.layered.clear(); r.components.clear(); }, nothing),
        ("layered blocks cut off", nothing, |b| b.truncate(COMPONENTS - 1)),
        ("layered local id not in the palette", |r| { r.palette = vec![0, 6, 7]; r.ids.fill(0); r.layered = vec![(1, 1), (2, 3)]; r.components.clear(); }, nothing),
        ("padding bits set", |r| { r.palette = vec![0, 6]; r.ids.fill(0); r.layered = vec![(1, 1)]; r.components.clear(); }, |b| b[40 + 16 + 512 + 1] |= 0x80),
        ("256 layers over one cell", |r| { r.layered = vec![(9, 2); 256]; r.components = [fixed(BYTE.get(), b"a"), variable(TEXT.get(), &[b""])].concat(); }, nothing),
        ("a column missing", |r| { r.components = fixed(WIDE.get(), b"wide!"); }, nothing),
        ("columns in the wrong order", |r| r.components = [fixed(BYTE.get(), b"abc"), fixed(WIDE.get(), b"wide!")].concat(), nothing),
        ("a column twice", |r| { let again = fixed(WIDE.get(), b"wide!"); r.components.splice(0..0, again); }, nothing),
        ("a column that no block has", |r| r.components.extend(variable(UNEXPECTED, &[])), nothing),
        ("component id cut off", |r| r.components.truncate(7), nothing),
        ("fixed data cut off", |r| r.components.truncate(8 + 4), nothing),
        ("offset width 3", |r| r.components[13 + 11 + 8] = 3, nothing),
        ("offset width wider than needed", |r| { r.components.truncate(24); r.components.extend(TEXT.get().to_le_bytes()); r.components.extend([2, 0, 0, 1, 0, b'x']); }, nothing),
        ("first offset not 0", |r| r.components[13 + 11 + 9] = 1, nothing),
        ("offsets descend", |r| { r.ids[8] = 3; r.components.truncate(24); r.components.extend(TEXT.get().to_le_bytes()); r.components.extend([1, 0, 2, 1, b'x']); }, nothing),
        ("offsets cut off", |r| r.components.truncate(24 + 8 + 2), nothing),
        ("variable data shorter than its last offset", |r| r.components.truncate(24 + 8 + 3 + 4), nothing),
        ("one byte after the columns", |r| r.components.push(0), nothing),
        ("entity count cut off", |r| { r.entities.clear(); r.sides.clear(); }, |b| b.truncate(b.len() - 1)),
        ("2^60 entities", nothing, |b| { let at = u64::from_le_bytes(b[16..24].try_into().unwrap()) as usize; put(b, at, 1 << 60) }),
        ("an entity twice", |r| r.entities = vec![[9; 16], [1; 16], [9; 16]], nothing),
        ("an entity cut off", |r| r.sides.clear(), |b| b.truncate(b.len() - 1)),
        ("side kind cut off", |r| r.sides = vec![1], nothing),
        ("side length cut off", |r| r.sides = vec![1, 0, 9], nothing),
        ("side data cut off", |r| { r.sides = side(1, b"light"); r.sides.pop(); }, nothing),
        ("side length of 4 GiB", |r| r.sides = vec![1, 0, 0xff, 0xff, 0xff, 0xff], nothing),
        ("side kind twice", |r| r.sides = [side(1, b"a"), side(1, b"b")].concat(), nothing),
        ("side kinds descend", |r| r.sides = [side(2, b"a"), side(1, b"b")].concat(), nothing),
    ];
    let mut found = String::new();
    for (what, change, damage) in table {
        let mut raw = Raw::rich();
        change(&mut raw);
        let mut bytes = raw.bytes();
        damage(&mut bytes);
        let error = match Chunk::decode(&bytes, &TestSchema) {
            Err(error) => error,
            Ok(chunk) => panic!("{what}: decodes to {chunk:?}"),
        };
        assert_eq!(ChunkView::new(&bytes, &TestSchema).map(drop), Err(error), "{what}");
        assert_eq!(trace(&bytes, &TestSchema).1, Err(error), "{what}");
        writeln!(found, "{what}:\n    {error}").unwrap();
    }
    expect![[r#"
        empty:
            chunk header: format version needs 8 bytes and 0 are left (at byte 0)
        cut in the header:
            chunk header: palette count needs 8 bytes and 7 are left (at byte 32)
        version 0:
            chunk header: format version is 0, allowed is 1 and up (at byte 0)
        version 2:
            chunk header: format version is 2, and this release reads up to 1; use a newer release (at byte 0)
        no palette:
            chunk header: palette count is 0, allowed is 1 to 4096 + layered block count (at byte 32)
        palette larger than all blocks:
            chunk header: palette count is 4099, allowed is 1 to 4096 + layered block count (at byte 32)
        palette of 2^64 - 1:
            chunk header: palette count is 18446744073709551615, allowed is 1 to 4096 + layered block count (at byte 32)
        more layered blocks than fit:
            chunk header: layered block count is 1044481, allowed is up to 1044480 (at byte 24)
        2^63 layered blocks:
            chunk header: layered block count is 9223372036854775808, allowed is up to 1044480 (at byte 24)
        component offset one too small:
            chunk header: component offset is 1099, but the rest of the value implies 1100 (at byte 8)
        component offset huge:
            chunk header: component offset is 18446744073709551615, but the rest of the value implies 1100 (at byte 8)
        entity offset before component offset:
            chunk header: entity offset is 1099, allowed is component offset or more (at byte 16)
        entity offset after the end:
            component section: component section needs 1099511626676 bytes and 97 are left (at byte 1100)
        entity offset 8 too far:
            component section: component id is 2, allowed is none: no block has a further component (at byte 1140)
        palette cut off:
            block palette: 4 palette ids of 8 bytes exceed the 31 bytes left (at byte 40)
        kind twice:
            block palette: palette id 1 appears twice (at byte 64)
        kind twice among many:
            block palette: palette id 150 appears twice (at byte 2432)
        layer 0 cut off:
            layer 0: block ids needs 1024 bytes and 1023 are left (at byte 72)
        local id not in the palette:
            layer 0: block ids is 3, allowed is below palette count (at byte 189)
        layered blocks cut off:
            upper layers: layered blocks needs 4 bytes and 3 are left (at byte 1096)
        layered local id not in the palette:
            upper layers: layered blocks is 3, allowed is a local id below palette count (at byte 1089)
        padding bits set:
            upper layers: padding of layered blocks must be zero or absent, found 4 (at byte 569)
        256 layers over one cell:
            upper layers: blocks above one cell is 256, allowed is up to 255 (at byte 1542)
        a column missing:
            component section: component id needs 8 bytes and 0 are left (at byte 1113)
        columns in the wrong order:
            component section: component id is 3, but the rest of the value implies 1 (at byte 1100)
        a column twice:
            component section: component id is 1, but the rest of the value implies 3 (at byte 1113)
        a column that no block has:
            component section: component id is 9223372036854775813, allowed is none: no block has a further component (at byte 1140)
        component id cut off:
            component section: component id needs 8 bytes and 7 are left (at byte 1100)
        fixed data cut off:
            component section: fixed data needs 5 bytes and 4 are left (at byte 1108)
        offset width 3:
            component section: offset width is 3, allowed is 1, 2, 4 or 8 (at byte 1132)
        offset width wider than needed:
            component section: offset width is 2, but the rest of the value implies 1 (at byte 1132)
        first offset not 0:
            component section: first of offsets must be zero or absent, found 1 (at byte 1133)
        offsets descend:
            component section: offsets is 1, allowed is the offset before it or more (at byte 1135)
        offsets cut off:
            component section: 2 offsets of 1 bytes exceed the 1 bytes left (at byte 1133)
        variable data shorter than its last offset:
            component section: variable data needs 5 bytes and 4 are left (at byte 1135)
        one byte after the columns:
            component section: component id needs 8 bytes and 1 are left (at byte 1140)
        entity count cut off:
            entity section: entity count needs 8 bytes and 7 are left (at byte 1140)
        2^60 entities:
            entity section: 1152921504606846976 entities of 16 bytes exceed the 49 bytes left (at byte 1148)
        an entity twice:
            entity section: entity number 2 appears twice (at byte 1180)
        an entity cut off:
            entity section: 2 entities of 16 bytes exceed the 31 bytes left (at byte 1148)
        side kind cut off:
            side data: side kind needs 2 bytes and 1 are left (at byte 1180)
        side length cut off:
            side data: side length needs 4 bytes and 1 are left (at byte 1182)
        side data cut off:
            side data: side data needs 5 bytes and 4 are left (at byte 1186)
        side length of 4 GiB:
            side data: side data needs 4294967295 bytes and 0 are left (at byte 1186)
        side kind twice:
            side data: side kind 1 appears twice (at byte 1187)
        side kinds descend:
            side data: side kind is 1, allowed is above the kind before it (at byte 1187)
    "#]].assert_eq(&found);
}
