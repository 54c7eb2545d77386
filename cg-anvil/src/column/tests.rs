//! Damage inside a column costs what it touches, and is reported.

mod palettes;

use expect_test::{Expect, expect};

use super::*;
use crate::nbt::{self, CompoundWriter, TooLong};
use crate::region::ColumnPos;

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
        assert_eq!(read(&crate::write::column(&column).expect("written")), Ok(column), "{version:?}");
    }
}

/// A root of a column, with these fields too.
fn root_with(more: impl Fn(&mut CompoundWriter<'_>)) -> Vec<u8> {
    nbt::document(|root| {
        more(root);
        root.int("xPos", 1);
        root.int("zPos", 2);
    })
}

/// A `Level` that has all that a column of before 2844 needs.
fn level(out: &mut CompoundWriter<'_>) {
    out.compound("Level", |level| {
        level.int("xPos", 7);
        level.int("zPos", 7);
        level.raw_compounds("Sections", [].into_iter());
    });
}

#[test]
fn a_level_of_a_version_without_it_or_beside_sections_is_one_more_field() {
    let sections = |out: &mut CompoundWriter<'_>| {
        out.compounds("sections", 0..1, |out, _| {
            out.byte("Y", 0);
            out.compound("block_states", |out| palette(out, 1))
        })
        .expect("short strings");
    };
    for version in [None, Some(0), Some(2230), Some(2843), Some(2844), Some(3117), Some(i32::MAX)] {
        let bytes = root_with(|root| {
            if let Some(version) = version {
                root.int("DataVersion", version);
            }
            level(root);
            // Nor is it a slot of entities.
            root.int_array("Position", &[7, 7]);
            sections(root);
        });
        let column = read(&bytes).expect("a column");
        let left = nbt::payload(|out| {
            level(out);
            out.int_array("Position", &[7, 7]);
        });
        assert_eq!((column.pos, column.left.as_ref()), (ColumnPos::new(1, 2), Some(&left)), "{version:?}");
        assert_eq!(column.beside, None, "{version:?}");
        assert_eq!(column.data_version, version.unwrap_or(0).max(2844));
        assert_eq!(column.state(16, 0, 32).map(|state| &**state), Some("a:b0"), "{version:?}");
        assert_eq!(read(&crate::write::column(&column).expect("written")), Ok(column), "{version:?}");
    }
    // A column that has no sections yet.
    let bytes = root_with(|root| {
        root.int("DataVersion", 2844);
        level(root);
    });
    let column = read(&bytes).expect("a column");
    assert_eq!((column.pos.x, column.left), (1, Some(nbt::payload(level))));
}

#[test]
fn a_level_without_a_root_is_a_column_until_2843_and_none_from_then_on() {
    let with = |version: i32| {
        nbt::document(|root| {
            root.int("DataVersion", version);
            root.byte("mod:beside", 1);
            level(root);
            root.raw_compounds("sections", [].into_iter());
        })
    };
    let column = read(&with(2843)).expect("a column");
    let beside = nbt::payload(|out| {
        out.byte("mod:beside", 1);
        out.raw_compounds("sections", [].into_iter());
    });
    assert_eq!((column.pos.x, column.data_version, column.beside.as_ref()), (7, 2843, Some(&beside)));
    assert_eq!(read(&crate::write::column(&column).expect("written")), Ok(column));
    for version in [2844, i32::MAX] {
        check_error(&with(version), expect!["the column has no xPos and zPos"]);
    }
}

#[test]
fn a_version_and_a_place_go_out_as_they_were_met() {
    type Add = fn(&mut CompoundWriter<'_>);
    let versions: [Add; 6] = [
        |_| {},
        |out| out.int("DataVersion", 1343),
        |out| out.short("DataVersion", 3117),
        |out| out.long("DataVersion", 3117),
        |out| out.string("DataVersion", "3117").expect("short"),
        |out| out.raw_fields(b"\x05\0\x0bDataVersion\x45\x42\xd0\0"),
    ];
    let places: [Add; 2] = [
        |out| ["xPos", "zPos"].map(|name| out.int(name, 5)).into_iter().collect(),
        |out| {
            out.long("xPos", 5);
            out.byte("zPos", 5);
        },
    ];
    for (number, (version, place)) in
        versions.iter().flat_map(|version| places.iter().map(move |place| (version, place))).enumerate()
    {
        let bytes = nbt::document(|root| {
            version(root);
            place(root);
            root.raw_compounds("sections", [].into_iter());
        });
        let column = read(&bytes).expect("a column");
        let written = crate::write::column(&column).expect("written");
        assert_eq!(fields_of(&written), fields_of(&bytes), "{number}");
        assert_eq!(read(&written), Ok(column), "{number}");
    }
    // In the layout before, and of entities.
    let old = nbt::document(|root| {
        root.short("DataVersion", 2230);
        root.compound("Level", |level| ["xPos", "zPos"].map(|name| level.long(name, 5)));
    });
    let column = read(&old).expect("a column");
    assert_eq!((column.pos.x, column.data_version), (5, 2230));
    let written = crate::write::column(&column).expect("written");
    assert_eq!(fields_of(&written), fields_of(&old));
    for version in versions {
        let slot = nbt::document(|root| {
            version(root);
            root.int_array("Position", &[5, 5, 5]);
            root.raw_compounds("Entities", [].into_iter());
        });
        let Payload::Entities(entities) = Decoder::default().decode(&slot).expect("entities") else {
            panic!("entities");
        };
        let written = crate::write::entities(&entities).expect("written");
        assert_eq!(fields_of(&written), fields_of(&slot));
    }
}

/// The fields of a root by name, those of `Level` too.
fn fields_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    let root = nbt::Document::parse(bytes, &nbt::Limits::default()).expect("NBT").root;
    let level = root.compound("Level").into_iter().flat_map(Compound::fields);
    let others = root.fields().filter(|field| field.name.0 != b"Level");
    let mut fields: Vec<_> = others.chain(level).map(|field| field.raw.to_vec()).collect();
    fields.sort();
    fields
}

#[test]
fn sections_go_out_in_the_order_and_of_the_kind_that_they_were_met() {
    let stood = [(5, 0), (-3, 1), (127, 2), (-128, 3)];
    let bytes = column(stood.len(), |out, index| {
        let (y, kind) = stood[index];
        match kind {
            0 => out.byte("Y", y as i8),
            1 => out.short("Y", y as i16),
            2 => out.int("Y", y),
            _ => out.long("Y", y.into()),
        }
        out.compound("block_states", |out| palette(out, 1))
    });
    let column = read(&bytes).expect("a column");
    assert_eq!(column.sections.iter().map(|section| section.y).collect::<Vec<_>>(), [-128, -3, 5, 127]);
    let written = crate::write::column(&column).expect("written");
    let numbers = |bytes: &[u8]| -> Vec<Vec<u8>> {
        let root = nbt::Document::parse(bytes, &nbt::Limits::default()).expect("NBT").root;
        let sections = root.list("sections").expect("sections").compounds();
        sections.map(|section| section.field("Y").expect("a number").raw.to_vec()).collect()
    };
    assert_eq!(numbers(&written), numbers(&bytes));
    let order = column.order.clone().expect("not the game's");
    assert_eq!(SectionOrder::decode(&order.encode()), Some(order));
    // One that was added stands at the end, and those that are gone cost nothing.
    let mut changed = column;
    changed.sections.remove(1);
    changed.sections.insert(0, Section { y: -128, ..changed.sections[0].clone() });
    changed.sections[1].y = 0;
    let written = crate::write::column(&changed).expect("written");
    let read = read(&written).expect("a column").order.expect("not the game's");
    assert_eq!([5, 127, -128, 0].map(|y| read.place(y).0), [0, 1, 2, 3]);
}

#[test]
fn an_order_that_says_nothing_is_none() {
    let ascending = |out: &mut CompoundWriter<'_>, index: usize| {
        out.byte("Y", index as i8);
        out.compound("block_states", |out| palette(out, 1))
    };
    assert_eq!(read(&column(3, ascending)).expect("a column").order, None);
    for bytes in [&[][..], &[0, 1], &[1, 3, 1, 3], &[0, 3, 1], &[0, 5], &[0, 99]] {
        assert_eq!(SectionOrder::decode(bytes), None, "{bytes:?}");
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
    let payload = Payload::Column(Column::new(ColumnPos::new(-1, 33), 2975));
    let (here, there) = (ColumnPos::new(-1, 33).slot(), ColumnPos::new(-2, 33).slot());
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
fn a_list_of_anything_else_is_named() {
    let (new, old) = (["sections", "block_entities", "entities"], ["Sections", "TileEntities", "Entities"]);
    let fields = |out: &mut CompoundWriter<'_>| {
        out.int("xPos", 1);
        out.int("zPos", 2);
        for name in new.into_iter().chain(old) {
            out.doubles(name, &[1.0]);
        }
    };
    for (names, others, data_version) in [(new, old, 2975), (old, new, 2586)] {
        let bytes = nbt::document(|root| {
            root.int("DataVersion", data_version);
            if data_version < NO_LEVEL { root.compound("Level", fields) } else { fields(root) }
        });
        let column = read(&bytes).expect("a column");
        let mut expected = names;
        expected.sort_unstable();
        assert!(column.not_carried.iter().eq(expected), "{:?}", column.not_carried);
        assert_eq!(column.lists, Lists::NONE);
        let left = column.left.expect("fields of the other layout");
        let left = Compound::parse(&left, &nbt::Limits::default()).expect("a compound");
        assert!(left.fields().map(|field| field.name.lossy().into_owned()).eq(others), "{data_version}");
    }
}
