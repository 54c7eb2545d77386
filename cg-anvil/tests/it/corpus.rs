//! The committed inputs of the fuzz targets that read saves: made here, from no real world.
//!
//! A target's folder may hold more: what a fuzzer found stays beside these. What is refused has a name in `bad_`.
#![expect(clippy::big_endian_bytes, reason = "NBT and region files are big-endian by their own definition")]

use std::path::Path;

use cg_anvil::column::{Blocks, Column, EntityColumn, Section};
use cg_anvil::region::{ColumnPos, compress};
use cg_anvil::{nbt, write};

use crate::maker::{self, Stored, block_entity, entity, patterned};

/// The inputs of a target by name.
type Seeds = Vec<(&'static str, Vec<u8>)>;

/// Compares each input with its file. `UPDATE_GOLDEN=1` writes the files anew: another version of the compressor may
/// make other bytes.
#[track_caller]
fn check(target: &str, seeds: Seeds) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
    for (name, bytes) in seeds {
        let path = folder.join(name);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(&path, &bytes).expect("written");
        }
        let committed = std::fs::read(&path).unwrap_or_default();
        assert!(committed == bytes, "{target}/{name} is not what is made here; UPDATE_GOLDEN=1 writes it");
    }
}

/// A root with one field of this kind, whose payload is given.
fn field(tag: u8, payload: &[u8]) -> Vec<u8> {
    [&[10, 0, 0, tag, 0, 1, b'f'], payload, &[0]].concat()
}

fn every_kind() -> Vec<u8> {
    let inner = nbt::payload(|out| out.long_array("longs", &[i64::MIN, -1, 1]));
    nbt::document(|root| {
        root.byte("byte", -1);
        root.raw_fields(&[&[2, 0, 5][..], b"short", &[0x80, 0]].concat());
        root.int("int", i32::MIN);
        root.long("long", i64::MAX);
        root.raw_fields(&[&[5, 0, 5][..], b"float", &1.5f32.to_bits().to_be_bytes()].concat());
        root.raw_fields(&[&[6, 0, 6][..], b"double", &f64::NAN.to_bits().to_be_bytes()].concat());
        root.byte_array("bytes", &[0, 127, 128, 255]);
        root.string("text", "a\0é\u{1F600}").expect("short");
        root.int_array("ints", &[1, -2]);
        root.doubles("doubles", &[0.5, -1.25]);
        root.raw_compounds("empty", [].into_iter());
        root.raw_compounds("compounds", [&inner[..], &[0]].into_iter());
        root.compound("compound", |out| out.raw_compound("inner", &inner));
        // Two lists of lists: one of byte lists, one of lists without a kind.
        root.raw_fields(b"\x09\x00\x05lists\x09\x00\x00\x00\x02\x01\x00\x00\x00\x01\x07\x00\x00\x00\x00\x00");
    })
}

#[test]
fn the_inputs_for_nbt_are_those_that_are_committed() {
    let nested = |levels: usize| {
        let inside = [10, 0, 0].repeat(levels);
        [&[10, 0, 0][..], &inside, &vec![0; levels + 1]].concat()
    };
    check(
        "nbt_decode",
        vec![
            ("every_kind", every_kind()),
            ("no_field", nbt::document(|_| ())),
            ("named_with_a_tail", b"\x0a\x00\x04root\x01\x00\x01b\x05\x00tail".to_vec()),
            ("a_name_twice", b"\x0a\x00\x00\x01\x00\x01a\x05\x03\x00\x01a\x00\x00\x00\x05\x00".to_vec()),
            ("text_that_is_none", field(8, b"\x00\x03\xff\xed\xa0")),
            ("list_without_a_kind", field(9, &[0; 5])),
            ("as_deep_as_allowed", nested(511)),
            ("bad_too_deep", nested(512)),
            ("bad_lists_too_deep", [&[10, 0, 0, 9, 0, 0][..], &[9, 0, 0, 0, 1].repeat(600)].concat()),
            ("bad_cut", every_kind()[..100].to_vec()),
            ("bad_tag", field(13, &[])),
            ("bad_root", b"\x09\x00\x00\x00\x00\x00\x00\x00".to_vec()),
            ("bad_negative_length", field(7, &[255; 4])),
            ("bad_huge_array", field(12, b"\x7f\xff\xff\xff")),
            ("bad_huge_list", field(9, b"\x0a\x7f\xff\xff\xff")),
            ("bad_list_without_a_kind", field(9, b"\x00\x7f\xff\xff\xff")),
        ],
    );
}

/// Everything that a column can carry, in a few hundred bytes and one section of indices.
fn full(data_version: i32) -> Column {
    let section = |y| Section { block_light: Some(vec![0x0F; 2048]), ..patterned(y, 3) };
    let dark = Section { sky_light: Some(vec![0; 2048]), ..Section::new(2) };
    let wet = "minecraft:chest[facing=north,waterlogged=true]";
    let chests = Section { blocks: Some(Blocks::uniform(wet)), ..Section::new(1) };
    let mut column = Column { data_version, ..maker::column(-1, 33, [section(0), chests, dark]) };
    if data_version >= 2834 {
        let biomes = nbt::payload(|out| out.string("palette", "minecraft:plains").expect("short"));
        column.sections[0].biomes = Some(biomes);
    }
    column.block_entities = vec![
        block_entity("minecraft:chest", [-1, 20, 529]),
        block_entity("minecraft:chest", [-1, 20, 529]),
        block_entity("minecraft:bell", [-1, 100, 529]),
    ];
    let spider = entity("minecraft:spider", [1, 2, 3, 4], [-0.5, 4.0, 530.0], &[]);
    let rider = entity("minecraft:skeleton", [5, 6, 7, 8], [-0.5, 5.0, 530.0], &[spider]);
    column.entities = vec![entity("minecraft:pig", [9, 10, 11, 12], [-0.5, 4.0, 530.0], &[rider])];
    column.carried = nbt::payload(|out| {
        out.string("Status", "minecraft:full").expect("short");
        out.long("InhabitedTime", 7);
    });
    column
}

fn bytes(column: &Column) -> Vec<u8> {
    write::column(column).expect("a column of the game's form")
}

#[test]
fn the_inputs_for_columns_are_those_that_are_committed() {
    let entities = EntityColumn {
        pos: ColumnPos::new(-1, 33),
        data_version: maker::DATA_VERSION,
        stated: None,
        entities: full(maker::DATA_VERSION).entities,
        list: Some(nbt::Tag::End),
        left: None,
    };
    let uniform = |y| Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(y) };
    let small = bytes(&maker::column(0, 0, [uniform(-128), uniform(127)]));
    // A section's y, so that there are two of one.
    let twice = bytes(&maker::column(0, 0, [uniform(5), uniform(5)]));
    let with = |add: &dyn Fn(&mut nbt::CompoundWriter<'_>)| {
        nbt::document(|root| {
            root.int("DataVersion", maker::DATA_VERSION);
            root.int("xPos", 0);
            root.int("zPos", 0);
            add(root);
        })
    };
    let wrong_indices = with(&|root| {
        let states = ["a:b", "a:c", "a:d"];
        root.compounds("sections", [255, 256].into_iter(), |out, words| {
            out.byte("Y", 0);
            out.compound("block_states", |out| {
                out.compounds("palette", states.into_iter(), |entry, name| entry.string("Name", name))?;
                out.long_array("data", &vec![-1; words]);
                Ok::<_, nbt::TooLong>(())
            })
        })
        .expect("short");
    });
    let level = |root: &mut nbt::CompoundWriter<'_>| {
        root.byte("mod:beside", 1);
        root.compound("Level", |level| {
            level.int("xPos", 0);
            level.int("zPos", 0);
            level.int_array("Position", &[7, 7]);
        });
    };
    let newer_level = nbt::document(|root| {
        root.int("DataVersion", maker::DATA_VERSION);
        level(root);
    });
    // Neither a version nor an order as the game has them.
    let level_beside_sections = nbt::document(|root| {
        level(root);
        root.long("xPos", 0);
        root.int("zPos", 0);
        root.compounds("sections", [4, -4].into_iter(), |out, y| {
            out.int("Y", y);
            out.compound("block_states", |out| {
                out.compounds("palette", ["a:b"].into_iter(), |entry, name| entry.string("Name", name))
            })
        })
        .expect("short");
    });
    check(
        "column_decode",
        vec![
            ("full_1_13", bytes(&full(1631))),
            ("full_1_17", bytes(&full(2730))),
            ("full_1_21", bytes(&full(maker::DATA_VERSION))),
            ("highest_and_lowest", small),
            ("entities", write::entities(&entities).expect("entities")),
            ("points_of_interest", nbt::document(|root| root.compound("Sections", |_| ()))),
            ("heightmaps_stay_behind", with(&|root| root.compound("Heightmaps", |out| out.int("a", 1)))),
            ("section_twice", twice),
            ("wrong_indices", wrong_indices),
            ("level_beside_sections", level_beside_sections),
            ("level_left_in_a_column", with(&level)),
            ("bad_level_of_a_newer_version", newer_level),
            ("no_version", nbt::document(|root| ["xPos", "zPos"].map(|name| root.int(name, 0)))),
            ("bad_no_position", nbt::document(|root| root.int("xPos", 1))),
            ("bad_nothing", nbt::document(|_| ())),
            ("bad_too_old", nbt::document(|root| root.compound("Level", |level| level.int("xPos", 0)))),
        ],
    );
}

#[test]
fn the_inputs_for_regions_are_those_that_are_committed() {
    let stone = Section { blocks: Some(Blocks::uniform("minecraft:stone")), ..Section::new(0) };
    // The first slot is that of column (0, 0).
    let small = bytes(&maker::column(0, 0, [stone]));
    let slot = |len: u32, compression: u8, payload: &[u8]| {
        [&len.to_be_bytes()[..], &[compression], payload].concat()
    };
    let whole = |compression: u8, payload: &[u8]| slot(payload.len() as u32 + 1, compression, payload);
    let gzip = maker::gzip(&small);
    let mut zlib = compress(&small);
    let two_sectors = {
        let mut first = whole(3, &small);
        first.resize(4096, 0);
        [first, whole(4, &maker::lz4_blocks(&small, 64 << 10))].concat()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let stored = Stored { slot: ColumnPos::new(0, 0).slot(), compression: 3, payload: small.clone() };
    let file = maker::region(&folder.path().join("r.0.0.mca"), &[stored]);
    let mut seeds = vec![
        ("a_whole_file", std::fs::read(file).expect("just written")),
        ("zlib", whole(2, &zlib)),
        ("gzip", whole(1, &gzip)),
        ("uncompressed", whole(3, &small)),
        ("lz4", whole(4, &maker::lz4_blocks(&small, 64 << 10))),
        ("lz4_blocks", whole(4, &maker::lz4_blocks(&small, 40))),
        ("two_sectors", two_sectors),
        ("bad_bomb", whole(2, &compress(&vec![0; 1 << 20]))),
        ("bad_beside_the_region", whole(0x82, &[])),
        ("bad_compression_of_a_mod", whole(127, &[])),
        ("bad_compression", whole(9, &[])),
        ("bad_no_payload", slot(0, 2, &zlib)),
        ("bad_length", slot(u32::MAX, 2, &zlib)),
        ("bad_zlib_cut", whole(2, &zlib[..zlib.len() / 2])),
        ("bad_lz4_cut", whole(4, &maker::lz4_blocks(&small, 40)[..100])),
        ("bad_lz4_hash", whole(4, &[&b"LZ4Block\x16\x04\0\0\0\x04\0\0\0"[..], &[0; 4], b"abcd"].concat())),
    ];
    *zlib.last_mut().expect("not empty") ^= 1;
    seeds.push(("bad_zlib_sum", whole(2, &zlib)));
    check("region_read", seeds);
}

#[test]
fn the_inputs_for_schematics_are_those_that_are_committed() {
    let palette = |out: &mut nbt::CompoundWriter<'_>, name: &'static str, states: &[&str]| {
        out.compound(name, |out| {
            (0..).zip(states).for_each(|(index, state)| out.named_int(state, index).expect("short"));
        });
    };
    let sides = |out: &mut nbt::CompoundWriter<'_>, sides: [i16; 3]| {
        for (name, side) in ["Width", "Height", "Length"].into_iter().zip(sides) {
            out.short(name, side);
        }
    };
    let chest = nbt::payload(|out| {
        out.string("Id", "minecraft:chest").expect("short");
        out.int_array("Pos", &[1, 0, 0]);
        out.int("Lock", 1);
    });
    let cow = nbt::payload(|out| {
        out.string("Id", "minecraft:cow").expect("short");
        out.doubles("Pos", &[100.5, 0.0, f64::NAN]);
        out.compound("Data", |out| out.byte("Age", 1));
    });
    let version_2 = |data: &[u8]| {
        nbt::document(|out| {
            out.int("Version", 2);
            out.int("DataVersion", 2975);
            sides(out, [2, 1, 2]);
            out.int_array("Offset", &[100, 0, 0]);
            palette(out, "Palette", &["minecraft:stone", "minecraft:chest[facing=east]"]);
            out.int("PaletteMax", 2);
            out.byte_array("BlockData", data);
            out.raw_compounds("BlockEntities", [&chest[..]].into_iter());
            out.raw_compounds("Entities", [&cow[..]].into_iter());
            out.string("Custom", "of a tool").expect("short");
        })
    };
    let version_3 = |blocks: &dyn Fn(&mut nbt::CompoundWriter<'_>)| {
        nbt::document(|root| {
            root.compound("Schematic", |out| {
                out.int("Version", 3);
                out.int("DataVersion", 3955);
                sides(out, [2, 1, 2]);
                out.compound("Metadata", |out| out.long("Date", 1));
                out.compound("Blocks", blocks);
                out.compound("Biomes", |out| {
                    palette(out, "Palette", &["minecraft:plains"]);
                    out.byte_array("Data", &[0; 4]);
                });
                out.raw_compounds("Entities", [&cow[..]].into_iter());
            });
        })
    };
    // The array before the palette, an index of two bytes, and a state that nothing shows.
    let whole = version_3(&|out| {
        out.byte_array("Data", &[0, 0xC8, 0x01, 1, 0]);
        out.compound("Palette", |out| {
            for (state, index) in [("a:unused", 7), ("a:b", 0), ("a:c", 200), ("a:d", 1)] {
                out.named_int(state, index).expect("short");
            }
        });
        out.raw_compounds("BlockEntities", [&chest[..]].into_iter());
    });
    let columns = nbt::document(|out| {
        out.int("Version", 2);
        out.int("DataVersion", 2975);
        sides(out, [1, 3, 1]);
        palette(out, "Palette", &["a:b"]);
        out.byte_array("BlockData", &[0; 3]);
        palette(out, "BiomePalette", &["a:x"]);
        out.byte_array("BiomeData", &[0]);
    });
    check(
        "schem_read",
        vec![
            ("version_2", version_2(&[0, 1, 0, 0])),
            ("version_2_columns", columns),
            ("version_3", whole.clone()),
            ("bad_cut", whole[..whole.len() / 2].to_vec()),
            ("bad_count", version_2(&[0, 1, 0])),
            ("bad_index", version_2(&[0, 1, 0, 2])),
            ("bad_varint", version_2(&[0x80; 6])),
            ("bad_no_palette", version_3(&|out| out.byte_array("Data", &[0; 4]))),
            ("bad_version_1", nbt::document(|out| out.int("Version", 1))),
            ("bad_mcedit", nbt::document(|out| out.string("Materials", "Alpha").expect("short"))),
            ("bad_nothing", nbt::document(|_| ())),
        ],
    );
}
