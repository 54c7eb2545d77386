//! Entities that the save has elsewhere: left out by name, or taken out of there.

use std::path::Path;

use cg_anvil::ColumnPos;
use cg_anvil::column::{Column, EntityColumn};
use cg_anvil::nbt::{self, Document};
use cg_anvil::{entity, write};
use serde_json::json;
use uuid::Uuid;

use super::super::folder::{copy, paths, slots};
use super::super::save::{At, Dimensions, LATER, LIVE, NETHER, NEW, OVERWORLD, column};
use super::super::test_dir::TestDir;
use super::{counts, files, index, raw_slots};
use crate::cmd::{run, text};
use crate::maker;

/// The numbers of entities of a slot, each before its riders.
fn numbers(path: &Path, at: At) -> Vec<u128> {
    let all = slots(path);
    let Some((_, slot)) = all.get(&index(at)) else { return vec![] };
    let root = Document::parse(slot, &nbt::Limits::default()).expect("NBT").root;
    let lists = ["Entities", "entities"].into_iter().filter_map(|name| root.list(name));
    let records = lists
        .flat_map(nbt::List::compounds)
        .flat_map(|raw| entity::split(raw.raw(), &nbt::Limits::default()).expect("an entity"));
    records.map(|record| record.uuid.expect("made with one").as_u128()).collect()
}

fn mob(number: i32, (x, z): At, riders: &[Vec<u8>]) -> Vec<u8> {
    let feet = [f64::from(x * 16) + 5.0, 70.0, f64::from(z * 16) + 5.0];
    maker::entity("minecraft:pig", [0, 0, 0, number], feet, riders)
}

fn slot((x, z): At, entities: Vec<Vec<u8>>) -> (At, Vec<u8>, u32) {
    let column = EntityColumn {
        pos: ColumnPos::new(x, z),
        data_version: NEW,
        stated: None,
        entities,
        list: Some(nbt::Tag::End),
        left: None,
    };
    ((x, z), write::entities(&column).expect("entities"), 7)
}

/// The column that is put.
const HERE: At = (0, 0);
const BOX: [[i32; 6]; 1] = [[0, 0, 0, 0, 0, 0]];
/// One beside it, one in another region, and one that is put too.
const BESIDE: At = (1, 0);
const FAR: At = (-40, 3);
const ALSO: At = (2, 0);

/// A column with entities of its own, as one has that is not generated to the end.
fn young(at: At, entities: Vec<Vec<u8>>) -> (At, Vec<u8>, u32) {
    let column = Column { entities, ..column(at, LATER) };
    (at, write::column(&column).expect("a column"), 8)
}

/// A world with entities 1 to 7 in a column, 5 on 4; the save has most of them in other places.
fn make(dir: &TestDir) {
    let folder = Dimensions.folder(OVERWORLD);
    let entities = format!("{folder}/entities");
    let save = dir.save("before");
    save.level(NEW, "world").blocks(folder, LIVE, &[HERE, ALSO]);
    let four = mob(4, HERE, &[mob(5, HERE, &[])]);
    let all = vec![
        mob(1, HERE, &[]),
        mob(2, HERE, &[]),
        mob(3, HERE, &[]),
        four,
        mob(6, HERE, &[]),
        mob(7, HERE, &[]),
    ];
    save.slots(&entities, [slot(HERE, all), slot(ALSO, vec![mob(8, ALSO, &[])])]);
    dir.import("before", "world", &[]).good();

    let save = dir.save("save");
    save.level(NEW, "world").blocks(folder, LATER, &[HERE, BESIDE, ALSO]);
    // 1 is where it was, 2 beside it under a rider of its own, 8 in a column that is put too.
    let two = mob(2, BESIDE, &[mob(22, BESIDE, &[])]);
    save.slots(
        &entities,
        [
            slot(HERE, vec![mob(1, HERE, &[]), mob(11, HERE, &[]), mob(8, HERE, &[])]),
            slot(BESIDE, vec![two, mob(23, BESIDE, &[])]),
            slot(ALSO, vec![mob(8, ALSO, &[])]),
        ],
    );
    // 4, which another rides here, in another dimension; 3 in a column that is not generated to the end.
    save.slots(&format!("{}/entities", Dimensions.folder(NETHER)), [slot(BESIDE, vec![mob(4, BESIDE, &[])])]);
    save.slots(&format!("{folder}/region"), [young(FAR, vec![mob(33, FAR, &[mob(3, FAR, &[])])])]);
    // A player rides 6, and another has thrown 7.
    let player = |ridden: bool, number| {
        let mob = mob(number, FAR, &[]);
        maker::gzip(&nbt::document(|root| {
            root.int("DataVersion", NEW);
            if ridden {
                root.compound("RootVehicle", |out| out.raw_compound("Entity", &mob));
            } else {
                root.raw_compounds("ender_pearls", [&mob[..]].into_iter());
            }
        }))
    };
    save.file("players/data/a.dat", player(true, 6)).file("players/data/b.dat", player(false, 7));
    save.file("players/data/c.dat", "no player").file("session.lock", "");
    copy(&dir.at("save"), &dir.at("was"));
}

fn elsewhere(number: u128, file: &str, column: Option<At>) -> serde_json::Value {
    json!({ "uuid": Uuid::from_u128(number), "file": file, "column": column })
}

#[test]
fn an_entity_that_the_save_has_elsewhere_is_left_out_and_named() {
    let dir = TestDir::new();
    make(&dir);
    let report = dir.put_into("world", "save", &BOX, &[]).ended(1);
    let nether = "dimensions/minecraft/the_nether/entities/r.0.0.mca";
    let overworld = "dimensions/minecraft/overworld/entities/r.0.0.mca";
    assert_eq!(
        report["elsewhere"],
        json!({ "count": 5, "first": [
            elsewhere(2, overworld, Some(BESIDE)),
            elsewhere(3, "dimensions/minecraft/overworld/region/r.-2.0.mca", Some(FAR)),
            elsewhere(4, nether, Some(BESIDE)),
            elsewhere(6, "players/data/a.dat", None),
            elsewhere(7, "players/data/b.dat", None),
        ] })
    );
    assert_eq!((&report["entities"], &report["removed_entities"]), (&json!(2), &json!(2)));
    assert_eq!((&report["columns"], &report["entity_slots"]), (&counts(0, 1, 0, 0), &counts(0, 1, 0, 0)));
    let path = dir.at("save").join(overworld);
    // What rode one that is left out stands by itself.
    assert_eq!(numbers(&path, HERE), [1, 5]);
    let (mut is, mut was) = (raw_slots(&path), raw_slots(&dir.at("was").join(overworld)));
    is.remove(&index(HERE));
    was.remove(&index(HERE));
    assert!(is == was, "no other slot changed");
    // A person reads them by name.
    let said = run(&[
        "export",
        text(&dir.at("world")),
        "--into",
        text(&dir.at("save")),
        "--box",
        "0",
        "0",
        "0",
        "0",
        "0",
        "0",
        "--dry-run",
    ]);
    assert_eq!(said.code, 1);
    let line = format!(
        "entity {}: left out, as the save has it elsewhere: {nether} column (1, 0)\n",
        Uuid::from_u128(4)
    );
    assert!(said.out.contains(&line), "{}", said.out);
}

#[test]
fn an_entity_of_another_column_that_is_put_is_not_elsewhere() {
    let dir = TestDir::new();
    make(&dir);
    // 8 stands in both columns of the save, and both are put.
    let report = dir.put_into("world", "save", &[BOX[0], [32, 0, 0, 32, 0, 0]], &[]).ended(1);
    assert_eq!(report["elsewhere"]["count"], 5);
    let path = dir.at("save/dimensions/minecraft/overworld/entities/r.0.0.mca");
    assert_eq!((numbers(&path, HERE), numbers(&path, ALSO)), (vec![1, 5], vec![8]));
}

#[test]
fn entities_are_taken_out_of_their_other_places() {
    let dir = TestDir::new();
    make(&dir);
    let counted = dir.put_into("world", "save", &BOX, &["--replace-entities", "--dry-run"]).ended(1);
    assert!(files(&dir.at("save")) == files(&dir.at("was")));
    // With a player nothing is done.
    let report = dir.put_into("world", "save", &BOX, &["--replace-entities"]).ended(1);
    assert_eq!((&report["taken"]["count"], &report["elsewhere"]["count"]), (&json!(3), &json!(2)));
    assert_eq!((&counted["files"], &report["files"]), (&json!(4), &json!(4)));
    let save = dir.at("save/dimensions/minecraft");
    let path = save.join("overworld/entities/r.0.0.mca");
    assert_eq!(numbers(&path, HERE), [1, 2, 3, 4, 5]);
    // Who rode one that was taken stays, and who is ridden by one.
    assert_eq!(numbers(&path, BESIDE), [22, 23]);
    assert_eq!(numbers(&save.join("overworld/region/r.-2.0.mca"), FAR), [33]);
    assert_eq!(numbers(&save.join("the_nether/entities/r.0.0.mca"), BESIDE), [0; 0]);
    for name in ["players/data/a.dat", "players/data/b.dat"] {
        assert!(files(&dir.at("save"))[name] == files(&dir.at("was"))[name]);
    }
    let kept = dir.at("save.cg-replaced-1");
    assert_eq!(paths(&kept).len(), 4);
    // The times of slots that something was taken out of are what they were.
    let time = |root: &str| {
        slots(&dir.at(root).join("dimensions/minecraft/the_nether/entities/r.0.0.mca"))[&index(BESIDE)].0
    };
    assert_eq!(time("save"), time("was"));
    let again = dir.put_into("world", "save", &BOX, &["--replace-entities"]).ended(1);
    assert_eq!((&again["taken"]["count"], &again["files"]), (&json!(0), &json!(0)));
    // In the overworld the column is put whole, but for what players have.
    assert_eq!(again["columns"], counts(0, 0, 1, 0));
}
