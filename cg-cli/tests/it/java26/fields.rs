//! Every field of a chunk goes back as it was: what is empty, what is not there, and what has an order.

use cg_anvil::column::{BlockEntity, Section};
use cg_anvil::nbt::{self, CompoundWriter, TooLong};
use serde_json::json;

use super::folder::{check_same, slots};
use super::save::{At, LIVE, NEW, OLD, column, document};
use super::test_dir::TestDir;
use crate::maker::{self, block_entity};

const REGION: &str = "region";
const AT: At = (1, 2);

/// An empty list as a field: the game says End for the kind of its elements, other tools say Compound.
fn empty_list(name: &str, tag: u8) -> Vec<u8> {
    let mut field = vec![9, 0, name.len() as u8];
    field.extend(name.as_bytes());
    field.extend([tag, 0, 0, 0, 0]);
    field
}

/// A slot goes through a world and is the same tree.
#[track_caller]
fn check(what: &str, slot: Vec<u8>) -> TestDir {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, what).slots(REGION, [(AT, slot, LIVE.time)]);
    println!("{what}");
    let (imported, exported) = dir.round("save", &[]);
    assert_eq!((&imported["imported_columns"], &imported["not_carried"]), (&json!(1), &json!([])), "{what}");
    assert_eq!((&exported["columns"], &exported["changed_columns"]), (&json!(1), &json!(0)), "{what}");
    check_same(save.path(), &dir.at("out"));
    dir
}

/// A chunk of 26.x that is being generated, with these fields instead of lists that the game writes.
fn unfinished(status: &str, more: impl Fn(&mut CompoundWriter<'_>)) -> Vec<u8> {
    nbt::document(|root| {
        root.int("DataVersion", NEW);
        root.int("xPos", AT.0);
        root.int("yPos", -4);
        root.int("zPos", AT.1);
        root.string("Status", status).expect("short");
        root.long("LastUpdate", 7);
        root.long("InhabitedTime", 0);
        more(root);
    })
}

/// Sections of one state each.
fn sections(out: &mut CompoundWriter<'_>) {
    let written = out.compounds("sections", [-4_i8, -3].iter(), |section, y| {
        section.byte("Y", *y);
        section.compound("block_states", |states| {
            states.compounds("palette", ["minecraft:stone"].iter(), |entry, name| entry.string("Name", name))
        })?;
        section.compound("biomes", |biomes| biomes.strings("palette", ["minecraft:plains"].into_iter()))
    });
    written.expect("short names");
}

/// Chunks with this empty list, of every kind that an empty list can say, beside the lists that are always there.
#[track_caller]
fn check_empty(name: &str) {
    for status in ["minecraft:structure_starts", "minecraft:full"] {
        for tag in [0, 10] {
            let slot = unfinished(status, |out| {
                sections(out);
                out.raw_fields(&empty_list(name, tag));
                if name != "block_entities" {
                    out.raw_fields(&empty_list("block_entities", 0));
                }
            });
            check(&format!("{status}: an empty {name} of {tag}"), slot);
        }
    }
}

#[test]
fn an_empty_list_of_entities_goes_back() {
    check_empty("entities");
}

#[test]
fn an_empty_list_of_block_entities_goes_back() {
    check_empty("block_entities");
}

#[test]
fn other_empty_lists_go_back() {
    for name in ["block_ticks", "fluid_ticks", "Lights", "PostProcessing", "mod:list"] {
        check_empty(name);
    }
}

/// A section of blocks as versions before 21w37a have it.
fn old_section(section: &mut CompoundWriter<'_>, y: i8) -> Result<(), TooLong> {
    section.byte("Y", y);
    section.compounds("Palette", ["minecraft:dirt"].iter(), |entry, name| entry.string("Name", name))?;
    section.long_array("BlockStates", &[0; 256]);
    Ok(())
}

#[test]
fn fields_of_a_layout_that_no_game_of_the_version_reads_are_fields() {
    let slot = unfinished("minecraft:full", |out| {
        let written = out.compounds("sections", [-4_i8, -3].iter(), |section, y| {
            if *y == -4 {
                old_section(section, *y)?;
            } else {
                section.byte("Y", *y);
            }
            section.compound("block_states", |states| {
                states.compounds("palette", ["minecraft:stone"].iter(), |entry, name| {
                    entry.string("Name", name)
                })
            })
        });
        written
            .and_then(|()| out.compounds("Sections", [3].iter(), |section, y| old_section(section, *y)))
            .expect("short");
        let chest = block_entity("minecraft:chest", [17, -60, 33]);
        out.raw_compounds("TileEntities", [chest.nbt.as_slice()].into_iter());
        out.raw_compounds("Entities", [chest.nbt.as_slice()].into_iter());
        out.raw_fields(&empty_list("block_entities", 0));
    });
    let dir = check("fields of before", slot);
    let block = |y: &str| dir.cg("get", "world", &["--block", "17", y, "33"]);
    for y in ["-60", "-40"] {
        let said = block(y).good();
        assert!(said.contains("minecraft:stone") && !said.contains("chest"), "{said}");
    }
    assert_eq!(block("50").code, 4, "no section was made of it");
    let said = dir.cg("info", "world", &["--json"]).json();
    assert_eq!(said["entities"], 0, "{said}");
}

#[test]
fn a_list_that_is_not_there_is_not_made() {
    check("no list at all", unfinished("minecraft:full", sections));
}

#[test]
fn a_chunk_that_was_only_begun_goes_back() {
    let slot = unfinished("minecraft:carvers", |out| {
        sections(out);
        out.raw_fields(&empty_list("entities", 0));
        out.raw_fields(&empty_list("block_entities", 0));
        out.long_array("carving_mask", &[1, -1, 0]);
        out.compound("blending_data", |out| out.int("min_section", -4));
        out.compound("structures", |out| {
            out.compound("References", |_| ());
            out.compound("starts", |_| ());
        });
        out.compound("Heightmaps", |_| ());
    });
    check("carvers", slot);
    check(
        "sections of no kind",
        unfinished("minecraft:empty", |out| out.raw_fields(&empty_list("sections", 0))),
    );
    check(
        "sections of compounds",
        unfinished("minecraft:empty", |out| out.raw_fields(&empty_list("sections", 10))),
    );
    check("no sections", unfinished("minecraft:empty", |_| ()));
}

#[test]
fn a_section_keeps_what_is_no_block() {
    let mut lit = column(AT, LIVE);
    lit.sections.insert(0, Section { sky_light: Some(vec![7; 2048]), ..Section::new(-5) });
    lit.sections
        .push(Section { left: Some(nbt::payload(|out| out.int("mod:depth", 3))), ..Section::new(19) });
    check("light without blocks", document(&lit));
    let mut one = column(AT, LIVE);
    one.sections[0].block_light = Some(vec![0; 2048]);
    one.sections[0].left = Some(nbt::payload(|out| {
        out.raw_fields(&empty_list("mod:list", 0));
        out.compound("mod:empty", |_| ());
    }));
    check("a mod's fields", document(&one));
}

#[test]
fn light_of_no_byte_goes_back() {
    let slot = unfinished("minecraft:full", |out| {
        let written = out.compounds("sections", [4_i8].iter(), |section, y| {
            section.byte("Y", *y);
            section.byte_array("BlockLight", &[]);
            section.byte_array("SkyLight", &[]);
            section.compound("block_states", |states| {
                states.compounds("palette", ["minecraft:stone"].iter(), |entry, name| {
                    entry.string("Name", name)
                })
            })
        });
        written.expect("short names");
        out.raw_fields(&empty_list("block_entities", 0));
    });
    check("light of no byte", slot);
}

#[test]
fn empty_lists_of_the_layout_with_level_go_back() {
    for tag in [0, 10] {
        let slot = nbt::document(|root| {
            root.int("DataVersion", 2586);
            root.compound("Level", |level| {
                level.int("xPos", AT.0);
                level.int("zPos", AT.1);
                level.string("Status", "full").expect("short");
                let written = level.compounds("Sections", [0_i8].iter(), |section, y| {
                    section.byte("Y", *y);
                    section.compounds(
                        "Palette",
                        ["minecraft:stone", "minecraft:dirt"].iter(),
                        |entry, name| entry.string("Name", name),
                    )?;
                    section.long_array("BlockStates", &[0x1010_1010_1010_1010; 256]);
                    Ok::<_, TooLong>(())
                });
                written.expect("short names");
                for name in ["Entities", "TileEntities", "Lights", "ToBeTicked"] {
                    level.raw_fields(&empty_list(name, tag));
                }
            });
        });
        check(&format!("1.16 with lists of {tag}"), slot);
    }
}

/// A column of chests and of a mod's blocks, with block entities in an order that no place gives.
fn with_block_entities(order: impl Fn(&mut Vec<BlockEntity>)) -> Vec<u8> {
    let mut column = column(AT, LIVE);
    let at = |x, y, z| [AT.0 * 16 + x, y, AT.1 * 16 + z];
    let states = [
        ([1, 2, 3], "minecraft:chest[facing=north,type=single,waterlogged=false]"),
        ([4, 2, 3], "create:belt"),
    ];
    let mut blocks = cg_anvil::column::Blocks::uniform("minecraft:stone");
    let mut indices = Box::new([0; 4096]);
    for (index, ([x, y, z], state)) in states.into_iter().enumerate() {
        indices[usize::from(cg_anvil::column::cell(x, y, z))] = index as u16 + 1;
        blocks.palette.push(state.into());
    }
    blocks.indices = Some(indices);
    column.sections[0].blocks = Some(blocks);
    let mut nowhere = block_entity("mod:nowhere", [0, 0, 0]);
    nowhere.nbt = nbt::payload(|out| out.string("id", "mod:nowhere").expect("short"));
    column.block_entities = vec![
        block_entity("minecraft:furnace", at(9, 70, 9)),
        block_entity("minecraft:chest", at(1, 66, 3)),
        block_entity("minecraft:bell", at(9, 200, 9)),
        block_entity("create:belt", at(4, 66, 3)),
        block_entity("minecraft:sign", at(1, 66, 3)),
        nowhere,
        block_entity("minecraft:jukebox", [999, 66, 999]),
    ];
    order(&mut column.block_entities);
    document(&column)
}

#[test]
fn block_entities_keep_their_order() {
    check("as made", with_block_entities(|_| ()));
    check("the other way round", with_block_entities(|list| list.reverse()));
    for turns in 1..7 {
        check(&format!("turned by {turns}"), with_block_entities(|list| list.rotate_left(turns)));
    }
    check("a chest twice", with_block_entities(|list| list.push(list[1].clone())));
}

#[test]
fn entities_of_a_chunk_and_of_its_slot_keep_their_places() {
    let dir = TestDir::new();
    let save = dir.save("save");
    let mut proto = column(AT, LIVE);
    let feet = [f64::from(AT.0 * 16) + 5.0, 70.0, f64::from(AT.1 * 16) + 5.0];
    let rider = maker::entity("minecraft:zombie", [9, 9, 9, 1], feet, &[]);
    proto.entities = vec![
        maker::entity("minecraft:chest_minecart", [9, 9, 9, 2], feet, &[]),
        maker::entity("minecraft:chicken", [9, 9, 9, 3], feet, &[rider]),
    ];
    save.level(OLD, "both").slots(REGION, [(AT, document(&proto), LIVE.time)]);
    save.entities("", LIVE, &[AT]);
    let (imported, _) = dir.round("save", &[]);
    assert_eq!(imported["entities"], 4);
    check_same(save.path(), &dir.at("out"));
    assert_eq!(slots(&dir.at("out").join(REGION).join("r.0.0.mca")).len(), 1);
}

#[test]
fn an_empty_list_in_a_slot_of_entities_goes_back() {
    for tag in [0, 1, 10] {
        let dir = TestDir::new();
        let save = dir.save("save");
        let slot = nbt::document(|root| {
            root.int("DataVersion", NEW);
            root.int_array("Position", &[AT.0, AT.1]);
            root.raw_fields(&empty_list("Entities", tag));
        });
        let column = document(&column(AT, LIVE));
        save.level(OLD, "empty").slots(REGION, [(AT, column, LIVE.time)]);
        save.slots("entities", [(AT, slot, LIVE.time)]);
        dir.round("save", &[]);
        check_same(save.path(), &dir.at("out"));
    }
}

#[test]
fn a_slot_of_entities_without_a_list_goes_back() {
    let dir = TestDir::new();
    let save = dir.save("save");
    let slot = nbt::document(|root| {
        root.int("DataVersion", NEW);
        root.int_array("Position", &[AT.0, AT.1]);
    });
    save.level(OLD, "none").slots(REGION, [(AT, document(&column(AT, LIVE)), LIVE.time)]);
    save.slots("entities", [(AT, slot, LIVE.time)]);
    dir.round("save", &[]);
    check_same(save.path(), &dir.at("out"));
}

#[test]
fn a_level_that_a_tool_left_is_one_more_field() {
    for (what, version) in
        [("of a tool", Some(NEW)), ("of no version", None), ("of an old version", Some(2230))]
    {
        let column = column(AT, LIVE);
        let slot = nbt::document(|root| {
            let whole = document(&column);
            let whole = nbt::Document::parse(&whole, &nbt::Limits::default()).expect("NBT").root;
            if let Some(version) = version {
                root.int("DataVersion", version);
            }
            whole
                .fields()
                .filter(|field| field.name.0 != b"DataVersion")
                .for_each(|field| root.raw_fields(field.raw));
            root.compound("Level", |level| {
                level.int("xPos", 7);
                level.int("zPos", 7);
                level.compound("Structures", |_| ());
                level.raw_compounds("Sections", [].into_iter());
            });
        });
        check(what, slot);
    }
}

#[test]
fn a_version_goes_out_as_it_came_in() {
    type Add = fn(&mut CompoundWriter<'_>);
    let versions: [(&str, Add); 5] = [
        ("no version", |_| {}),
        ("a short", |out| out.short("DataVersion", NEW as i16)),
        ("a long", |out| out.long("DataVersion", NEW.into())),
        ("a text", |out| out.string("DataVersion", "4788").expect("short")),
        ("an old one", |out| out.int("DataVersion", 100)),
    ];
    for (what, version) in versions {
        let slot = |whole: &[u8]| {
            let whole = nbt::Document::parse(whole, &nbt::Limits::default()).expect("NBT").root;
            nbt::document(|root| {
                version(root);
                let others = whole.fields().filter(|field| field.name.0 != b"DataVersion");
                others.for_each(|field| root.raw_fields(field.raw));
            })
        };
        check(what, slot(&document(&column(AT, LIVE))));
        // Of a slot of entities too.
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(OLD, what).dimension("", LIVE, &[AT]);
        let path = save.path().join("entities/r.0.0.mca");
        let (time, entities) = slots(&path).remove(&65).expect("a slot");
        save.slots("entities", [(AT, slot(&entities), time)]);
        dir.round("save", &[]);
        check_same(save.path(), &dir.at("out"));
    }
}

#[test]
fn sections_keep_their_order_and_the_kind_of_their_number() {
    for (what, kind) in [("ints", 3), ("longs", 4), ("bytes", 1)] {
        check(
            what,
            nbt::document(|root| {
                root.int("DataVersion", NEW);
                root.int("xPos", AT.0);
                root.int("zPos", AT.1);
                root.string("Status", "minecraft:full").expect("short");
                root.compounds("sections", [0, 1, 15, -1, -4, 16].into_iter(), |out, y: i8| {
                    match kind {
                        3 => out.int("Y", y.into()),
                        4 => out.long("Y", y.into()),
                        _ => out.byte("Y", y),
                    }
                    // Blocks, or light alone.
                    if y == 15 {
                        out.byte_array("SkyLight", &[7; 2048]);
                        return Ok::<_, TooLong>(());
                    }
                    let name = format!("test:{}", i32::from(y) + 10);
                    out.compound("block_states", |out| {
                        out.compounds("palette", [name].iter(), |out, name| out.string("Name", name))
                    })
                })
                .expect("short");
            }),
        );
    }
}
