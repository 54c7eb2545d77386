//! Palettes in every form that versions of the game give them: what they mean, and that they go back as they were.

use cg_anvil::nbt::{self, CompoundWriter, Document, Limits, TooLong};
use expect_test::expect;
use serde_json::json;

use super::folder::{check_same, slots};
use super::save::{At, LIVE};
use super::test_dir::{TestDir, list};
use crate::cmd::{run, text};

const REGION: &str = "dimensions/minecraft/overworld/region";
const AT: At = (0, 0);
/// 26.2, the last release whose palettes have `Name`.
const NAMED: i32 = 4903;
/// 26.3.
const IDS: i32 = 5023;
const BOTTOM: &str = "minecraft:oak_slab[type=bottom,waterlogged=false]";

/// An entry of a palette, with the properties in brackets of its name.
#[derive(Debug, Clone)]
enum Entry {
    /// A string, which must be alone with its like.
    Text(&'static str),
    /// `{"": string}`.
    Wrapped(&'static str),
    /// `{id, properties}`.
    Id(&'static str),
    /// `{Name, Properties}`.
    Named(&'static str),
    /// `{Name, Properties: {}}`.
    Empty(&'static str),
    /// `{id, mod:field}`.
    More(&'static str),
}

use Entry::{Empty, Id, More, Named, Text, Wrapped};

/// A section: its entries, and how many of them cells show, in turn.
type Made = (Vec<Entry>, u16);

fn state(out: &mut CompoundWriter<'_>, fields: [&'static str; 2], state: &str) -> Result<(), TooLong> {
    let (name, inside) = state.split_once('[').unwrap_or((state, "]"));
    out.string(fields[0], name)?;
    let pairs = inside.trim_end_matches(']').split(',').filter_map(|pair| pair.split_once('='));
    if inside == "]" {
        return Ok(());
    }
    out.compound(fields[1], |out| pairs.into_iter().try_for_each(|(key, value)| out.named_string(key, value)))
}

fn palette(out: &mut CompoundWriter<'_>, name: &'static str, entries: &[Entry]) -> Result<(), TooLong> {
    let texts: Vec<&str> =
        entries.iter().filter_map(|entry| if let Text(name) = entry { Some(*name) } else { None }).collect();
    if !texts.is_empty() {
        assert_eq!(texts.len(), entries.len(), "a list has one kind");
        return out.strings(name, texts.into_iter());
    }
    out.compounds(name, entries.iter(), |out, entry| match entry {
        Text(_) => unreachable!("these are a list of their own"),
        Wrapped(name) => out.string("", name),
        Id(text) => state(out, ["id", "properties"], text),
        Named(text) => state(out, ["Name", "Properties"], text),
        Empty(text) => {
            out.string("Name", text)?;
            out.compound("Properties", |_| ());
            Ok(())
        }
        More(text) => {
            out.string("id", text)?;
            out.string("mod:field", "kept")
        }
    })
}

/// Indices of 4,096 cells: cell n shows entry n modulo this many.
fn words(entries: usize, shown: u16) -> Vec<i64> {
    let bits = (usize::BITS - (entries - 1).leading_zeros()).max(4);
    let mut cells = (0..4096_u64).map(|cell| cell % u64::from(shown)).peekable();
    let mut words = Vec::new();
    while cells.peek().is_some() {
        let word = (0..64 / bits).zip(cells.by_ref());
        words.push(word.fold(0, |word, (at, index)| word | index << (at * bits)).cast_signed());
    }
    words
}

/// A full column with these sections, from y −4 on.
fn column(data_version: i32, sections: &[Made]) -> Vec<u8> {
    nbt::document(|root| {
        root.int("DataVersion", data_version);
        root.int("xPos", AT.0);
        root.int("zPos", AT.1);
        root.int("yPos", -4);
        root.string("Status", "minecraft:full").expect("short");
        let written =
            root.compounds("sections", sections.iter().zip(-4..124), |out, ((entries, shown), y)| {
                out.byte("Y", y);
                out.compound("block_states", |out| {
                    palette(out, "palette", entries)?;
                    if entries.len() > 1 {
                        out.long_array("data", &words(entries.len(), *shown));
                    }
                    Ok::<_, TooLong>(())
                })
            });
        written.expect("short names");
        root.empty_list("block_entities", nbt::Tag::End);
    })
}

/// Every section shows all of its entries.
fn shown(sections: Vec<Vec<Entry>>) -> Vec<Made> {
    sections
        .into_iter()
        .map(|entries| (entries.len() as u16, entries))
        .map(|(shown, made)| (made, shown))
        .collect()
}

/// A save of one column goes through a world and is the same; gives the folder with `world` and `out`.
#[track_caller]
fn check(data_version: i32, sections: &[Made]) -> TestDir {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NAMED, "made").slots(REGION, [(AT, column(data_version, sections), LIVE.time)]);
    let (imported, exported) = dir.round("save", &[]);
    assert_eq!(imported["imported_chunks"], json!(sections.len()), "{imported}");
    assert_eq!((&exported["changed_columns"], &exported["columns"]), (&json!(0), &json!(1)));
    check_same(save.path(), &dir.at("out"));
    dir
}

/// The names of a world's blocks that begin so.
fn blocks(dir: &TestDir, prefix: &str) -> Vec<String> {
    let listed = dir.cg("registry list", "world", &["--list", "blocks", "--json"]).json();
    let names = list(&listed["lists"]["blocks"])
        .iter()
        .map(|block| block["name"].as_str().expect("a name").to_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// The palettes of the exported column, as text.
fn palettes(dir: &TestDir) -> Vec<String> {
    let slots = slots(&dir.at("out").join(REGION).join("r.0.0.mca"));
    let (_, bytes) = slots.values().next().expect("a column");
    let root = Document::parse(bytes, &Limits::default()).expect("NBT").root;
    let sections = root.list("sections").expect("sections");
    let states = sections.compounds().filter_map(|section| section.compound("block_states"));
    states.filter_map(|states| states.list("palette")).map(entries_text).collect()
}

fn entries_text(list: nbt::List<'_>) -> String {
    let one = |value: nbt::Value<'_>| match value {
        nbt::Value::String(name) => name.lossy().into_owned(),
        nbt::Value::Compound(entry) => {
            let fields = entry.fields().map(|field| match field.value {
                nbt::Value::String(text) => format!("{}:{}", field.name.lossy(), text.lossy()),
                nbt::Value::Compound(inner) => {
                    let pairs = inner.fields().map(|pair| pair.name.lossy().into_owned());
                    format!("{}({})", field.name.lossy(), pairs.collect::<Vec<_>>().join(" "))
                }
                other => format!("{other:?}"),
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(" "))
        }
        other => format!("{other:?}"),
    };
    list.values().map(one).collect::<Vec<_>>().join(", ")
}

#[test]
fn palettes_of_26_3_go_back_and_their_states_are_whole() {
    let dir = check(
        IDS,
        &shown(vec![
            vec![Text("minecraft:deepslate")],
            vec![Text("minecraft:stone"), Text("minecraft:air")],
            vec![
                Wrapped("minecraft:air"),
                Id("minecraft:oak_slab[type=top,waterlogged=false]"),
                Wrapped("minecraft:oak_slab"),
            ],
            vec![Id("minecraft:oak_log[axis=x]")],
            vec![Id("minecraft:stone")],
            vec![Text("minecraft:straw_bed"), Text("create:andesite_casing")],
            vec![Id("create:shaft[axis=x]"), Id("minecraft:straw_bed[part=head]")],
        ]),
    );
    assert_eq!(
        blocks(&dir, "minecraft:oak_slab"),
        [BOTTOM, "minecraft:oak_slab[type=top,waterlogged=false]"]
    );
    assert_eq!(blocks(&dir, "minecraft:deepslate"), ["minecraft:deepslate[axis=y]"]);
    assert_eq!(blocks(&dir, "create:"), ["create:andesite_casing", "create:shaft[axis=x]"]);
    assert_eq!(
        blocks(&dir, "minecraft:straw_bed"),
        ["minecraft:straw_bed", "minecraft:straw_bed[part=head]"]
    );
}

#[test]
fn what_no_form_would_write_goes_back_all_the_same() {
    // A default state that is spelled out, beside its name, beside a compound of its name.
    let slabs = [
        Wrapped("minecraft:oak_slab"),
        Id(BOTTOM),
        Id("minecraft:oak_slab[type=bottom]"),
        Id("minecraft:oak_slab"),
    ];
    let dir = check(IDS, &shown(vec![slabs.to_vec(), slabs[1..2].to_vec(), vec![More("minecraft:stone")]]));
    assert_eq!(blocks(&dir, "minecraft:oak_slab"), [BOTTOM]);
    // A list that is mixed because of entries without a cell, and one that need not be of compounds.
    check(
        IDS,
        &[
            (vec![Wrapped("minecraft:stone"), Id("minecraft:oak_log[axis=x]")], 1),
            (vec![Text("minecraft:stone"), Text("minecraft:air"), Text("minecraft:dirt")], 2),
            (vec![Wrapped("minecraft:stone")], 1),
        ],
    );
    // Properties that are left out, in every section: that is the column's form then.
    check(
        IDS,
        &shown(vec![
            vec![Wrapped("minecraft:air"), Id("minecraft:oak_slab[type=top]")],
            vec![Id("minecraft:oak_stairs[facing=east]"), Id("minecraft:oak_stairs[half=top]")],
        ]),
    );
    // Forms of another version.
    check(
        IDS,
        &shown(vec![vec![Named("minecraft:stone"), Named(BOTTOM)], vec![Named("minecraft:oak_slab")]]),
    );
    check(
        NAMED,
        &shown(vec![
            vec![Text("minecraft:stone"), Text("minecraft:oak_slab")],
            vec![Id("minecraft:oak_log[axis=x]")],
        ]),
    );
    check(
        NAMED,
        &shown(vec![vec![Text("minecraft:stone")], vec![Named("minecraft:dirt")], vec![Named(BOTTOM)]]),
    );
    // Of the form before: states that are not whole, and properties that are none.
    let dir = check(
        NAMED,
        &shown(vec![
            vec![Named("minecraft:oak_slab"), Named(BOTTOM), Named("minecraft:oak_slab[waterlogged=true]")],
            vec![Empty("minecraft:stone"), Named("minecraft:dirt")],
            vec![Empty("minecraft:stone")],
            vec![Named("minecraft:stone"), Id("minecraft:stone"), Wrapped("minecraft:stone")],
        ]),
    );
    assert_eq!(blocks(&dir, "minecraft:oak_slab"), [BOTTOM]);
    check(NAMED, &shown(vec![vec![Empty("minecraft:stone"), Named(BOTTOM)], vec![Empty("minecraft:air")]]));
}

#[test]
fn a_state_that_leaves_nothing_out_is_as_it_was() {
    // Leaves got `waterlogged` in 1.19: before it nothing is missing, and nothing is added.
    let leaves = "minecraft:oak_leaves[distance=7,persistent=true]";
    let dir = check(2975, &shown(vec![vec![Named(leaves), Named("minecraft:stone")]]));
    assert_eq!(blocks(&dir, "minecraft:oak_leaves"), [leaves]);
    let dir = check(3105, &shown(vec![vec![Named(leaves), Named("minecraft:stone")]]));
    assert_eq!(
        blocks(&dir, "minecraft:oak_leaves"),
        ["minecraft:oak_leaves[distance=7,persistent=true,waterlogged=false]"]
    );
}

#[test]
fn ten_thousand_entries_go_back() {
    let names: Vec<&'static str> = (0..10_000).map(|number| &*format!("a:b{number}").leak()).collect();
    let texts: Vec<_> = names.iter().map(|name| Text(name)).collect();
    let ids: Vec<_> = names.iter().map(|name| Id(name)).collect();
    check(IDS, &[(texts, 4096), (ids, 4000)]);
}

#[test]
fn a_default_state_is_one_state_however_it_is_spelled() {
    let spelled = [
        (IDS, vec![Text("minecraft:oak_slab")]),
        (IDS, vec![Id(BOTTOM)]),
        (IDS, vec![Id("minecraft:oak_slab[waterlogged=false]")]),
        (IDS, vec![Named("minecraft:oak_slab")]),
    ];
    let hashes = spelled.map(|(version, entries)| {
        let dir = check(version, &shown(vec![entries]));
        dir.cg("hash", "world", &["--box", "0", "-64", "0", "15", "-49", "15"]).good()
    });
    assert!(hashes.iter().all(|hash| *hash == hashes[0]), "{hashes:?}");
}

#[test]
fn a_snapshot_of_one_spelling_equals_the_world_with_the_other() {
    let dir = check(IDS, &shown(vec![vec![Text("minecraft:oak_slab")]]));
    let area = ["--box", "0", "-64", "0", "15", "-49", "15"];
    dir.cg("snapshot create", "world", &[&["short"], &area[..]].concat()).good();
    let at_slot = |name: &str, entry: Entry| {
        let column = column(IDS, &shown(vec![vec![entry]]));
        dir.save(name).level(NAMED, name).slots(REGION, [(AT, column, LIVE.time)]);
        dir.import(name, "world", &["--merge", "replace"]).good();
        dir.cg("snapshot diff", "world", &["short", "--json"]).json()
    };
    let same = json!({"sections": 0, "blocks": 0, "components": 0, "entities": 0, "by_kind": {}});
    assert_eq!(at_slot("spelled", Id(BOTTOM)), same);
    let other = at_slot("other", Id("minecraft:oak_slab[type=top,waterlogged=false]"));
    assert_eq!((&other["sections"], &other["blocks"]), (&json!(1), &json!(4096)));
}

#[test]
fn a_changed_column_keeps_its_form() {
    for (version, entries, expected) in [
        (
            IDS,
            vec![Text("minecraft:stone"), Text("minecraft:oak_slab")],
            "minecraft:dirt, minecraft:oak_slab",
        ),
        (
            IDS,
            vec![Named("minecraft:stone"), Named(BOTTOM)],
            "{Name:minecraft:dirt}, {Name:minecraft:oak_slab Properties(type waterlogged)}",
        ),
        (
            NAMED,
            vec![Text("minecraft:stone"), Text("minecraft:oak_slab")],
            "minecraft:dirt, minecraft:oak_slab",
        ),
        (
            NAMED,
            vec![Named("minecraft:stone"), Named("minecraft:oak_slab")],
            "{Name:minecraft:dirt}, {Name:minecraft:oak_slab Properties(type waterlogged)}",
        ),
        (
            IDS,
            vec![Id("minecraft:stone"), Id("minecraft:oak_log[axis=x]"), Wrapped("minecraft:air")],
            "{:minecraft:dirt}, {id:minecraft:oak_log properties(axis)}, {:minecraft:air}",
        ),
    ] {
        let dir = check(version, &shown(vec![entries]));
        let args = ["--block", "minecraft:stone", "minecraft:dirt", "--register", "--yes"];
        dir.cg("registry replace", "world", &args).good();
        std::fs::remove_dir_all(dir.at("out")).expect("removed");
        assert_eq!(dir.export("world", "out", &[]).good()["changed_columns"], json!(1));
        assert_eq!(palettes(&dir), [expected], "{version}");
    }
}

#[test]
fn a_short_name_on_the_command_line_is_the_default_state() {
    let dir = check(NAMED, &shown(vec![vec![Named("minecraft:stone"), Named(BOTTOM)]]));
    let replace = |old, new, more: &[&str]| {
        dir.cg("registry replace", "world", &[&["--block", old, new, "--yes"], more].concat())
    };
    let said = replace("minecraft:stone", "minecraft:oak_slab", &["--json"]).json();
    assert_eq!((&said["registered"], &said["blocks"]), (&json!([]), &json!(2048)));
    let said =
        replace("minecraft:oak_slab[waterlogged=false]", "minecraft:oak_log", &["--json", "--register"])
            .json();
    assert_eq!((&said["registered"], &said["blocks"]), (&json!(["minecraft:oak_log[axis=y]"]), &json!(4096)));
    let refused = replace("minecraft:oak_log", "minecraft:oak_stairs", &[]);
    assert_eq!(refused.code, 2);
    let named = "the world has no block `minecraft:oak_stairs[facing=north,half=bottom,shape=straight,waterlogged=false]`";
    assert!(refused.err.contains(named), "{}", refused.err);
}

#[test]
fn a_schematic_gets_the_form_of_its_version() {
    use cg_snapshot::schem::{SchemHead, SchemWriter};
    for (data_version, expected) in [
        (IDS, "minecraft:air, minecraft:oak_slab, minecraft:stone"),
        (4999, "minecraft:air, minecraft:oak_slab, minecraft:stone"),
        (
            4998,
            "{Name:minecraft:air}, {Name:minecraft:oak_slab Properties(type waterlogged)}, {Name:minecraft:stone}",
        ),
    ] {
        let dir = TestDir::new();
        let head = SchemHead { data_version, ..SchemHead::sized([3, 1, 1]) };
        let mut writer = SchemWriter::new(Vec::new(), &head).expect("a head");
        writer.blocks(&["minecraft:oak_slab", BOTTOM, "stone"], &[1, 1, 1]).expect("a palette");
        writer.cells(&[0, 1, 2]).expect("memory takes it");
        writer.block_entities(&[]).expect("none");
        std::fs::write(dir.at("made.schem"), writer.finish(&[]).expect("none")).expect("written");
        let (file, world) = (dir.at("made.schem"), dir.at("world"));
        run(&["schem", "import", text(&file), text(&world), "--at", "1", "-64", "0", "--dim", "overworld"])
            .good();
        assert_eq!(blocks(&dir, "minecraft:oak_slab"), [BOTTOM]);
        dir.export("world", "out", &["--layout", "new"]).good();
        assert_eq!(palettes(&dir), [expected]);
    }
}

#[test]
fn wrong_shapes_are_faults_of_their_section() {
    let dir = TestDir::new();
    let save = dir.save("save");
    let bytes = nbt::document(|root| {
        root.int("DataVersion", IDS);
        root.int("xPos", AT.0);
        root.int("zPos", AT.1);
        let written = root.compounds("sections", 0..6, |out, kind: i8| {
            out.byte("Y", kind);
            out.compound("block_states", |out| match kind {
                0 => palette(out, "palette", &[Text("minecraft:stone")]),
                1 => {
                    out.doubles("palette", &[1.0; 9]);
                    Ok(())
                }
                2 => out.compounds("palette", 0..1, |entry, _| {
                    entry.compound("", |inner| inner.string("id", "a:b"))
                }),
                3 => out.compounds("palette", 0..1, |entry, _| {
                    entry.string("id", "a:b")?;
                    entry.int("properties", 7);
                    Ok(())
                }),
                4 => out.compounds("palette", 0..1, |entry, _| {
                    entry.string("id", "a:b")?;
                    entry.compound("properties", |out| out.byte("age", 7));
                    Ok(())
                }),
                _ => palette(out, "palette", &[Text("minecraft:oak_log[axis=x]")]),
            })
        });
        written.expect("short");
    });
    save.level(NAMED, "made").slots(REGION, [(AT, bytes, LIVE.time)]);
    let report = dir.import("save", "world", &[]).ended(1);
    let reasons: Vec<_> =
        list(&report["unreadable"]).iter().map(|lost| lost["reason"].as_str().expect("text")).collect();
    expect![[r#"
        section 1: a palette entry is of kind Double, and a state is a string or a compound
        section 2: a palette entry has no name
        section 3: the properties of "a:b" are no compound
        section 4: property "age" of "a:b" is no string
        section 5: "minecraft:oak_log[axis=x]" cannot stand in a block state"#]]
    .assert_eq(&reasons.join("\n"));
}

#[test]
fn a_version_that_was_not_tested_is_said_first() {
    let stone = || column(IDS, &shown(vec![vec![Text("minecraft:stone")]]));
    for (level, bytes, expected) in [
        (
            IDS,
            stone(),
            "DataVersion 5023 is newer than 4903, the newest that was tested: level.dat and columns 1; compare an export with the save",
        ),
        (
            NAMED,
            stone(),
            "DataVersion 5023 is newer than 4903, the newest that was tested: columns 1; compare an export with the save",
        ),
        (
            5126,
            column(NAMED, &shown(vec![vec![Named("minecraft:stone")]])),
            "DataVersion 5126 is newer than 4903, the newest that was tested: that of level.dat; compare an export with the save",
        ),
        (
            NAMED,
            column(NAMED, &shown(vec![vec![Named("minecraft:stone")]])),
            "imported: columns 1, chunks 1, entities 0 (detached: 0)",
        ),
    ] {
        let dir = TestDir::new();
        dir.save("save").level(level, "made").slots(REGION, [(AT, bytes, LIVE.time)]);
        let said = run(&["import", text(&dir.at("save")), text(&dir.at("world"))]).good();
        assert_eq!(said.lines().next(), Some(expected));
    }
    let dir = TestDir::new();
    dir.save("save").level(IDS, "made").slots(REGION, [(AT, stone(), LIVE.time)]);
    let untested = json!({ "data_version": IDS, "columns": 1, "level": true });
    assert_eq!(dir.import("save", "world", &[]).good()["untested"], untested);
    let info = dir.cg("info", "world", &["--json"]).json();
    assert_eq!((&info["untested"], &info["unknown_defaults"]), (&untested, &json!(null)));
    let said = dir.cg("info", "world", &[]).good();
    assert!(
        said.contains(
            "\nDataVersion 5023 is newer than 4903, the newest that was tested: level.dat and columns 1"
        ),
        "{said}"
    );
}

#[test]
fn blocks_without_a_known_default_state_are_counted() {
    let dir = check(
        NAMED,
        &shown(vec![vec![
            Named("minecraft:straw_bed[part=head]"),
            Named("minecraft:straw_bed[part=foot]"),
            Named("minecraft:red_shrub"),
            Named("minecraft:white_wool_slab"),
            Named("create:shaft"),
            Named("minecraft:stone"),
        ]]),
    );
    let info = dir.cg("info", "world", &["--json"]).json();
    assert_eq!((&info["unknown_defaults"], &info["untested"]), (&json!(2), &json!(null)));
    assert!(
        dir.cg("info", "world", &[])
            .good()
            .contains("\nblocks of minecraft whose default state is not known: 2\n")
    );
}
