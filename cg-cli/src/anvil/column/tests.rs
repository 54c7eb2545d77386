//! What is damaged inside a column costs what it touches, and says so.

use expect_test::{Expect, expect};

use super::*;
use crate::anvil::nbt::{self, CompoundWriter, TooLong};

/// A 1.18 column with these sections.
fn column(count: usize, section: impl Fn(&mut CompoundWriter<'_>, usize) -> Result<(), TooLong>) -> Vec<u8> {
    nbt::document(|root| {
        root.int("DataVersion", 2975);
        root.int("xPos", 1);
        root.int("zPos", 2);
        root.compounds("sections", 0..count, |out, index| section(out, index)).expect("short strings");
    })
}

fn palette(out: &mut CompoundWriter<'_>, states: usize) -> Result<(), TooLong> {
    out.compounds("palette", 0..states, |entry, state| entry.string("Name", &format!("a:b{state}")))
}

fn read(bytes: &[u8]) -> Result<Column, ColumnError> {
    match Decoder::default().decode(bytes)? {
        Payload::Column(column) => Ok(column),
        other => panic!("no column: {other:?}"),
    }
}

#[track_caller]
fn check(bytes: &[u8], expected: Expect) {
    let column = read(bytes).expect("a column");
    let kept: Vec<_> = column
        .sections
        .iter()
        .map(|section| format!("{}:{}", section.y, if section.blocks.is_some() { "blocks" } else { "-" }))
        .collect();
    let problems: Vec<_> = column.problems.iter().map(ToString::to_string).collect();
    expected.assert_eq(&format!("{kept:?} {problems:?}"));
}

#[track_caller]
fn check_error(bytes: &[u8], expected: Expect) {
    expected.assert_eq(&read(bytes).expect_err("no column").to_string());
}

#[test]
fn a_bad_section_does_not_cost_its_neighbours() {
    let bytes = column(5, |out, index| {
        if index != 2 {
            out.byte("Y", index as i8);
        }
        out.compound("block_states", |out| match index {
            0 => palette(out, 1),
            // Three states need 256 words.
            1 => {
                palette(out, 3)?;
                out.long_array("data", &[0; 255]);
                Ok(())
            }
            // Index 15 everywhere, of three.
            3 => {
                palette(out, 3)?;
                out.long_array("data", &[-1; 256]);
                Ok(())
            }
            4 => palette(out, 2),
            _ => Ok(()),
        })
    });
    check(
        &bytes,
        expect![[
            r#"["0:blocks"] ["section 1: its indices take 255 words where 4 bits each take 256", "section ?: it has no Y from -128 to 127", "section 3: cell 0 has index 15 past a palette of 3", "section 4: its palette has 2 states, but it has no indices"]"#
        ]],
    );
}

#[test]
fn a_section_without_a_palette_or_twice_is_lost() {
    let bytes = column(4, |out, index| {
        out.byte("Y", if index == 3 { 0 } else { index as i8 });
        match index {
            0 | 3 => out.compound("block_states", |out| palette(out, 1)),
            1 => out.compound("block_states", |_| Ok(())),
            _ => out.compound("block_states", |out| palette(out, 0)),
        }
    });
    check(
        &bytes,
        expect![[
            r#"["0:blocks"] ["section 1: its blocks have no palette", "section 2: its blocks have no palette", "section 0: it is there twice"]"#
        ]],
    );
}

#[test]
fn sections_are_ordered_and_of_two_the_first_is_kept() {
    let bytes = column(3, |out, index| {
        out.byte("Y", [5, -3, 5][index]);
        out.compound("block_states", |out| palette(out, 1))?;
        out.byte_array("BlockLight", &[index as u8; LIGHT_BYTES]);
        Ok(())
    });
    check(&bytes, expect![[r#"["-3:blocks", "5:blocks"] ["section 5: it is there twice"]"#]]);
    let column = read(&bytes).expect("a column");
    assert_eq!(column.sections[1].block_light, Some(vec![0; LIGHT_BYTES]));
}

#[test]
fn bad_light_costs_only_itself() {
    let bytes = column(1, |out, _| {
        out.byte("Y", -4);
        out.byte_array("SkyLight", &[1; 2047]);
        out.byte_array("BlockLight", &[1; 2048]);
        out.compound("block_states", |out| palette(out, 1))
    });
    check(
        &bytes,
        expect![[r#"["-4:blocks"] ["section -4: its SkyLight has 2047 bytes where 2,048 are needed"]"#]],
    );
    let column = read(&bytes).expect("a column");
    assert_eq!(column.sections[0].block_light, Some(vec![1; 2048]));
}

#[test]
fn one_state_with_indices_is_the_state_and_its_indices_are_checked() {
    let with = |word: i64, words: usize| {
        column(1, move |out, _| {
            out.byte("Y", 0);
            out.compound("block_states", |out| {
                palette(out, 1)?;
                out.long_array("data", &vec![word; words]);
                Ok(())
            })
        })
    };
    let uniform = read(&with(0, 256)).expect("a column").sections.remove(0);
    assert_eq!(uniform.blocks, Some(Blocks::uniform("a:b0")));
    check(&with(0, 0), expect![[r#"["0:blocks"] []"#]]);
    check(&with(1, 256), expect![[r#"[] ["section 0: cell 0 has index 1 past a palette of 1"]"#]]);
}

#[test]
fn a_column_that_hides_its_version_is_of_the_first_with_its_layout() {
    for version in [None, Some(0), Some(1343), Some(2843)] {
        let bytes = nbt::document(|root| {
            if let Some(version) = version {
                root.int("DataVersion", version);
            }
            root.int("xPos", 1);
            root.int("zPos", 2);
            root.compounds("sections", 0..1, |out, _| {
                out.byte("Y", 0);
                out.compound("block_states", |out| {
                    palette(out, 17)?;
                    // Five bits each, twelve in a word: not as versions before 20w17a pack them.
                    out.long_array("data", &[1; 342]);
                    Ok::<_, TooLong>(())
                })
            })
            .expect("short strings");
        });
        let column = read(&bytes).expect("a column");
        assert_eq!((column.data_version, column.problems.as_slice()), (2844, &[][..]), "{version:?}");
        assert_eq!(column.state(28, 0, 32).map(|state| &**state), Some("a:b1"));
        assert_eq!(read(&crate::anvil::write::column(&column).expect("written")), Ok(column), "{version:?}");
    }
}

#[test]
fn a_column_with_level_of_a_newer_version_is_of_the_last_with_level() {
    for version in [2843, 2844, i32::MAX] {
        let bytes = nbt::document(|root| {
            root.int("DataVersion", version);
            root.byte("mod:beside", 1);
            root.compound("Level", |level| {
                level.int("xPos", 1);
                level.int("zPos", 2);
                // At the root, it would make a slot of entities of the column.
                level.int_array("Position", &[7, 7]);
            });
        });
        let column = read(&bytes).expect("a column");
        let beside = nbt::payload(|out| out.byte("mod:beside", 1));
        assert_eq!((column.data_version, column.beside.as_ref()), (2843, Some(&beside)), "{version}");
        assert_eq!(read(&crate::anvil::write::column(&column).expect("written")), Ok(column), "{version}");
    }
}

#[test]
fn what_is_no_column_is_refused_by_name() {
    let old = nbt::document(|root| {
        root.int("DataVersion", 1343);
        root.compound("Level", |level| level.int("xPos", 0));
    });
    check_error(
        &old,
        expect![
            "Minecraft 1.12.2 and older (here data version 1343) number their blocks, which are not read; the game upgrades a column when it loads it, all of them with --forceUpgrade"
        ],
    );
    check_error(
        &nbt::document(|_| ()),
        expect!["the NBT is no column: it has neither Level nor sections, Entities or Sections"],
    );
    check_error(&nbt::document(|root| root.int("xPos", 1)), expect!["the column has no xPos and zPos"]);
    check_error(
        &nbt::document(|root| root.int_array("Position", &[1])),
        expect!["the column has no xPos and zPos"],
    );
    check_error(b"\x0a\x00", expect!["NBT: 2 bytes are needed and 1 are left (at byte 1)"]);
}

#[test]
fn a_slot_that_shows_another_column_is_told() {
    let payload = Payload::Column(Column::new(-1, 33, 2975));
    let (here, there) = (Slot::of_column(-1, 33), Slot::of_column(-2, 33));
    let region = RegionPos::new(-1, 1);
    assert_eq!(payload.check_place(region, here), Ok(()));
    assert_eq!(payload.check_place(None, here), Ok(()));
    let message = |region, slot| payload.check_place(region, slot).expect_err("elsewhere").to_string();
    expect!["the slot of column (-2, 33) shows column (-1, 33)"].assert_eq(&message(region, there));
    expect!["the slot of column (30, 1) shows column (-1, 33)"].assert_eq(&message(None, there));
    expect!["column (-1, 33) lies in a file that is named r.0.0.mca: it was renamed"]
        .assert_eq(&message(RegionPos::new(0, 0), here));
    assert_eq!(Payload::PointsOfInterest.check_place(region, there), Ok(()));
}

#[test]
fn every_field_keeps_its_bytes_and_those_of_another_kind_are_named() {
    let bytes = nbt::document(|root| {
        root.int("DataVersion", 2975);
        root.long("InhabitedTime", 9);
        root.int("xPos", 1);
        root.int("zPos", 2);
        root.string("Status", "full").expect("short");
        root.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[1]));
        root.compound("structures", |_| ());
        root.byte("mod:flag", 1);
        root.int("block_entities", 1);
        root.raw_compounds("sections", [].into_iter());
    });
    let column = read(&bytes).expect("a column");
    assert_eq!(column.status().as_deref(), Some("full"));
    assert_eq!(
        column.carried,
        b"\x04\x00\x0dInhabitedTime\0\0\0\0\0\0\0\x09\x08\x00\x06Status\x00\x04full\0"
    );
    let left = nbt::payload(|out| {
        out.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[1]));
        out.compound("structures", |_| ());
        out.byte("mod:flag", 1);
    });
    assert_eq!(column.left.as_deref(), Some(&*left));
    assert_eq!(Vec::from_iter(column.not_carried), ["block_entities"]);
}

#[test]
fn words_of_both_packings_are_as_the_wiki_has_them() {
    // 5 bits: 12 indices and 4 spare bits a word; or one after the other.
    let mut indices = [0; CELLS];
    for (cell, index) in indices.iter_mut().enumerate() {
        *index = (cell % 32) as u16;
    }
    let padded = Packing::Padded.pack(&indices, 5);
    let spanning = Packing::Spanning.pack(&indices, 5);
    assert_eq!((padded.len(), spanning.len()), (342, 320));
    assert_eq!(padded[1] & 31, 12);
    // The 13th index has its low four bits at the end of the first word, its high bit at the start of the second.
    assert_eq!((spanning[0].cast_unsigned() >> 60, spanning[1] & 1), (12, 0));
    assert_eq!(spanning[1] >> 1 & 31, 13);
}

#[test]
fn a_list_of_anything_else_is_named() {
    for names in [["sections", "block_entities", "entities"], ["Sections", "TileEntities", "Entities"]] {
        let bytes = nbt::document(|root| {
            root.int("DataVersion", 2975);
            root.int("xPos", 1);
            root.int("zPos", 2);
            for name in names {
                root.doubles(name, &[1.0]);
            }
        });
        let column = read(&bytes).expect("a column");
        let mut expected = names;
        expected.sort_unstable();
        assert!(column.not_carried.iter().eq(expected), "{:?}", column.not_carried);
        assert_eq!(column.lists, Lists::NONE);
    }
}
