//! Files that are no schematics are refused with the reason, at once, in little memory.

use std::time::{Duration, Instant};

use cg_snapshot::nbt;
use cg_snapshot::schem::{SchemLimits, Schematic};
use expect_test::{Expect, expect};

use crate::made::{fields, gzip, read, version_2};
use crate::real;

/// Memory that a refusal may take: a buffer, a decompressor, and what a small file holds.
const MEMORY_BYTES: u64 = 8 << 20;
const TIME: Duration = Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 });

#[track_caller]
fn check(file: &[u8], expected: Expect) {
    check_within(file, &SchemLimits::default(), expected);
}

#[track_caller]
fn check_within(file: &[u8], limits: &SchemLimits, expected: Expect) {
    let start = Instant::now();
    let mut found = String::new();
    let counted = allocation_counter::measure(|| {
        found = match Schematic::read(file, limits) {
            Ok(schematic) => format!(
                "{:?}, {} states",
                schematic.size(),
                schematic.blocks().map_or(0, |b| b.states().count())
            ),
            Err(error) => error.to_string(),
        };
    });
    assert!(counted.bytes_max <= MEMORY_BYTES, "{} bytes", counted.bytes_max);
    assert!(start.elapsed() < TIME, "{:?}", start.elapsed());
    expected.assert_eq(&found);
}

#[test]
fn every_broken_file_of_the_shared_worlds() {
    let Some(worlds) = real::folder() else { return };
    let check = |name: &str, expected: Expect| {
        check(&std::fs::read(worlds.join(name)).expect("readable"), expected);
    };
    check(
        "corrupt/made_depot_index_past_palette.schem",
        expect!["Blocks.Data: index 16383 at (0, 0, 0) is not in the palette of 153 entries"],
    );
    check(
        "corrupt/made_depot_width_plus_1.schem",
        expect!["Blocks.Data has 1310788 entries, where 147 × 67 × 134 (Width, Height, Length) are 1319766"],
    );
    check(
        "corrupt/made_truncated_depot.schem",
        expect![
            "Blocks.Data: the file ends in the middle, after 998290 bytes of NBT: it is cut off, copy or download it again"
        ],
    );
    check(
        "corrupt/not_nbt_base64_iridium_island.schem",
        expect![[
            r#"it is text, beginning with "eyJibG9ja0RhdGEiOltbW251", and no gzip: if it is base64 or JSON, find the tool that wrote it and save it there as .schem"#
        ]],
    );
    check(
        "schem/v1_fawe_sponge1.schem",
        expect![
            "it is a Sponge schematic of version 1, which is not read: load it in WorldEdit 7 or newer and save it again"
        ],
    );
    check(
        "schem/other_mcedit_prismarine_viking.schematic",
        expect![
            "it is an MCEdit .schematic of numbered blocks (before 1.13), which is not read: load it in WorldEdit 7 or newer and save it again as .schem"
        ],
    );
    check(
        "mca/1.18.2_prismarine_r.0.0.mca",
        expect![
            "it begins with the bytes [00, 00, 02, 02] where gzip begins with [1f, 8b]: it is no .schem file"
        ],
    );
}

#[test]
fn what_is_no_schematic_says_what_it_is() {
    check(
        b"",
        expect![
            "Schematic: the file ends in the middle, after 0 bytes of NBT: it is cut off, copy or download it again"
        ],
    );
    check(
        b"{\"blocks\": []}",
        expect![[
            r#"it is text, beginning with "{\"blocks\": []}", and no gzip: if it is base64 or JSON, find the tool that wrote it and save it there as .schem"#
        ]],
    );
    check(
        b"\x0a\x00\x00\x00",
        expect![
            "it begins with the bytes [0a, 00, 00, 00] where gzip begins with [1f, 8b]: it is no .schem file"
        ],
    );
    check(
        b"\x1f",
        expect![
            "Schematic: the file ends in the middle, after 0 bytes of NBT: it is cut off, copy or download it again"
        ],
    );
    check(
        b"\x1f\x8b\x08\x00\x00",
        expect![
            "Schematic: the file ends in the middle, after 0 bytes of NBT: it is cut off, copy or download it again"
        ],
    );
    check(
        &gzip(b"\x08\x00\x00\x00\x00"),
        expect!["Schematic: NBT: the tree begins with tag 8 where a compound (10) has to be (at byte 0)"],
    );
    check(
        &gzip(b"\x0a\x00\x00\x00 and more"),
        expect!["bytes follow the end of the NBT at byte 4: it is no schematic, or two files in one"],
    );
    let mut twice = fields(|_| ());
    twice.extend(twice.clone());
    check(
        &twice,
        expect!["bytes follow the end of the gzip at byte 4: it is no schematic, or two files in one"],
    );
    check(
        &fields(|root| root.int("MinecraftDataVersion", 3)),
        expect!["it is NBT without Version, so no Sponge schematic; its fields: MinecraftDataVersion"],
    );
    check(
        &fields(|root| root.int("Version", 4)),
        expect!["Version is 4, where 2 and 3 are read: save it in one of these"],
    );
    check(
        &fields(|root| root.byte_array("Version", &[3])),
        expect!["Version is of kind ByteArray where a whole number is needed (at byte 3)"],
    );
    let mut spoilt = version_2([1, 1, 1], &["a:b"], &[0], |_| ());
    let end = spoilt.len() - 8;
    spoilt[end] ^= 1;
    check(
        &spoilt,
        expect![
            "the end: damaged gzip (corrupt gzip stream does not have a matching checksum) after 106 bytes of NBT: copy or download the file again"
        ],
    );
}

#[test]
fn dimensions_and_data_have_to_agree() {
    let made = |size, data: &[u8]| version_2(size, &["a:a", "a:b"], data, |_| ());
    check(&made([2, 1, 1], &[0, 1]), expect!["[2, 1, 1], 2 states"]);
    check(
        &made([2, 1, 1], &[0, 1, 0]),
        expect!["BlockData has 3 entries, where 2 × 1 × 1 (Width, Height, Length) are 2"],
    );
    check(
        &made([2, 1, 1], &[0]),
        expect!["BlockData has 1 entries, where 2 × 1 × 1 (Width, Height, Length) are 2"],
    );
    check(
        &made([2, 1, 1], &[0, 2]),
        expect!["BlockData: index 2 at (1, 0, 0) is not in the palette of 2 entries"],
    );
    check(
        &made([2, 1, 1], &[0, 0x80]),
        expect!["BlockData: a number that the array's end cuts off in entry 1 (at byte 116)"],
    );
    check(
        &made([2, 1, 1], &[0x80, 0x80, 0x80, 0x80, 0x10]),
        expect!["BlockData: a number of more than 32 bits in entry 0 (at byte 118)"],
    );
    check(
        &made([2, 1, 1], &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F]),
        expect![
            "BlockData: index 4294967295, above the 65,535 that a palette can have, in entry 0 (at byte 118)"
        ],
    );
    check(&made([0, 1, 1], &[]), expect!["Width is 0, where 1 to 65535 is allowed"]);
    // The shorts have no sign.
    check(
        &made([-1, -1, 1], &[0]),
        expect!["BlockData has 1 entries, where 65535 × 65535 × 1 (Width, Height, Length) are 4294836225"],
    );
    check(
        &made([i16::MIN, i16::MAX, i16::MAX], &[0]),
        expect!["32768 × 32767 × 32767 are 35182224637952 blocks, more than the 4294967296 that are allowed"],
    );
}

#[test]
fn palettes_name_each_index_once() {
    let made = |palette: fn(&mut nbt::CompoundWriter<'_>)| {
        fields(|root| {
            root.compound("Schematic", |out| {
                out.int("Version", 3);
                out.int("DataVersion", 3955);
                for side in ["Width", "Height", "Length"] {
                    out.short(side, 1);
                }
                out.compound("Blocks", |blocks| {
                    blocks.compound("Palette", palette);
                    blocks.byte_array("Data", &[0]);
                });
            });
        })
    };
    check(&made(|palette| palette.int("a:a", 0)), expect!["[1, 1, 1], 1 states"]);
    check(&made(|_| ()), expect!["Blocks.Data: index 0 at (0, 0, 0) is not in the palette of 0 entries"]);
    check(
        &made(|palette| {
            palette.int("a:a", 0);
            palette.int("a:b", 0);
        }),
        expect![[r#"Blocks.Palette: "a:a" and "a:b" both have index 0"#]],
    );
    check(
        &made(|palette| palette.int("a:a", -1)),
        expect![[r#"Blocks.Palette: "a:a" has index -1, where 0 to 65535 is allowed"#]],
    );
    check(
        &made(|palette| palette.int("a:a", 65_536)),
        expect![[r#"Blocks.Palette: "a:a" has index 65536, where 0 to 65535 is allowed"#]],
    );
    check(
        &made(|palette| palette.byte_array("a:a", &[])),
        expect![[
            r#"Blocks.Palette: "a:a" has index of a kind that is no number, where 0 to 65535 is allowed"#
        ]],
    );
    check(
        &made(|palette| palette.raw_fields(b"\x03\x00\x01\xff\0\0\0\0")),
        expect![[r#"Blocks.Palette: a name is no modified UTF-8: "�""#]],
    );
}

#[test]
fn fields_have_their_kind_and_their_place() {
    let made = |more: &dyn Fn(&mut nbt::CompoundWriter<'_>)| version_2([1, 1, 1], &["a:b"], &[0], more);
    check(&made(&|_| ()), expect!["[1, 1, 1], 1 states"]);
    check(
        &made(&|root| root.int("Offset", 3)),
        expect!["Offset is of kind Int where an array of ints is needed (at byte 105)"],
    );
    check(
        &made(&|root| root.int_array("Offset", &[1, 2])),
        expect!["Offset is 13, where an array of three ints is allowed"],
    );
    check(&made(&|root| root.int("Width", 1)), expect!["Width is there twice (at byte 105)"]);
    check(
        &made(&|root| root.byte_array("BlockData", &[0])),
        expect!["BlockData is there twice (at byte 105)"],
    );
    check(&made(&|root| root.byte_array("BiomeData", &[0])), expect!["BiomePalette is missing"]);
    check(&made(&|root| root.compound("BiomePalette", |_| ())), expect!["BiomeData is missing"]);
    check(
        &made(&|root| root.doubles("BlockEntities", &[1.0])),
        expect!["BlockEntities[0]: it is no compound"],
    );
    check(
        &made(&|root| root.raw_compounds("BlockEntities", [&[0][..]].into_iter())),
        expect!["BlockEntities[0]: it has no Id, or one that is no text"],
    );
    let nowhere = nbt::payload(|out| out.string("Id", "a:chest").expect("short"));
    check(
        &made(&|root| root.raw_compounds("Entities", [&nowhere[..]].into_iter())),
        expect!["Entities[0]: it has no Pos of three numbers"],
    );
    check(
        &fields(|root| {
            root.int("Version", 3);
            root.int("DataVersion", 3955);
        }),
        expect!["Width is missing"],
    );
}

#[test]
fn bombs_are_refused_where_they_begin() {
    let zeros = vec![0; 1 << 20];
    let small =
        SchemLimits { held_bytes: 1 << 16, skipped_bytes: 1 << 16, cells: 1 << 16, ..SchemLimits::default() };
    check_within(
        &fields(|root| root.byte_array("x", &zeros)),
        &small,
        expect!["unknown fields: more than the 65536 bytes of unknown fields that are allowed (at byte 11)"],
    );
    check_within(
        &fields(|root| root.compound("Metadata", |out| out.byte_array("x", &zeros))),
        &small,
        expect!["Metadata: more than the 65536 bytes held in memory that are allowed (at byte 22)"],
    );
    check_within(
        &fields(|root| root.byte_array("BlockData", &zeros)),
        &small,
        expect!["BlockData: more than the 65536 entries that are allowed (at byte 65536)"],
    );
    check_within(
        &version_2([256, 256, 2], &["a:b"], &[0], |_| ()),
        &small,
        expect!["256 × 256 × 2 are 131072 blocks, more than the 65536 that are allowed"],
    );
    // Promised and not there.
    let promised = |field: &[u8]| gzip(&[&[10, 0, 0][..], field].concat());
    check(
        &promised(b"\x07\0\x01x\x7f\xff\xff\xff"),
        expect![
            "unknown fields: more than the 536870912 bytes of unknown fields that are allowed (at byte 11)"
        ],
    );
    check(
        &promised(b"\x07\0\x09BlockData\x7f\xff\xff\xff"),
        expect![
            "BlockData: the file ends in the middle, after 19 bytes of NBT: it is cut off, copy or download it again"
        ],
    );
    check(
        &promised(b"\x0a\0\x08Metadata\x0c\0\x01x\x7f\xff\xff\xff"),
        expect!["Metadata: more than the 268435456 bytes held in memory that are allowed (at byte 22)"],
    );
    check(
        &promised(b"\x09\0\x08Entities\x0a\x7f\xff\xff\xff"),
        expect!["Entities: NBT: more than 8388608 fields and elements (at byte 19)"],
    );
    check(
        &promised(b"\x09\0\x08Entities\x00\x7f\xff\xff\xff"),
        expect!["Entities: NBT: a list of 2147483647 elements has no element kind (at byte 14)"],
    );
    check(
        &promised(b"\x07\0\x01x\xff\xff\xff\xff"),
        expect!["unknown fields: NBT: a length is -1 (at byte 7)"],
    );
    check(
        &promised(&[&b"\x09\0\x08Metadata"[..], &[9, 0, 0, 0, 1].repeat(10_000)].concat()),
        expect!["Metadata: NBT: more than 512 levels deep (at byte 2569)"],
    );
    check(
        &promised(&[10, 0, 1, b'x'].repeat(10_000)),
        expect!["unknown fields: NBT: more than 512 levels deep (at byte 2051)"],
    );
    assert!(read(&promised(b"\0")).is_err());
}
