//! Leftovers that no chunk holds go into a world and come out again: fields of columns, points of interest, files.

mod back;
mod merge;
mod strange;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cg_anvil::column::{Column, EntityColumn};
use cg_anvil::export::{ExportOptions, ExportReport, export};
use cg_anvil::import::{ImportError, ImportOptions, ImportReport, Merge, import};
use cg_anvil::nbt::{self, Compound, Document};
use cg_anvil::region::{ColumnPos, ReadLimits, Region};
use cg_anvil::write;
use cg_format::Space;
use cg_format::frame::{Codec, Draft};
use cg_store::StoreLimits;
use cg_store::engine::{Batch, Engine, Level, Stamp};
use cg_store::prelude::*;
use expect_test::expect;

use crate::import::imported;
use crate::maker::{self, patterned};
use crate::round;

/// A slot's fields by name, those of a section after its y.
type Fields = BTreeMap<String, Vec<u8>>;

/// Fields that are read and written anew: that they say the same is compared elsewhere.
const REWRITTEN: [&str; 9] = [
    "sections",
    "Sections",
    "block_entities",
    "TileEntities",
    "entities",
    "Entities",
    "block_states",
    "Palette",
    "BlockStates",
];

fn add(fields: &mut Fields, place: &str, compound: Compound<'_>) {
    for field in compound.fields() {
        let name = format!("{place}{}", field.name.lossy());
        match field.value {
            nbt::Value::Compound(level) if name == "Level" => add(fields, "Level.", level),
            nbt::Value::List(list) if field.name.0.eq_ignore_ascii_case(b"sections") => {
                for section in list.compounds() {
                    let y = section.long("Y").expect("a section has a height");
                    add(fields, &format!("section {y}: "), section);
                }
            }
            _ if REWRITTEN.iter().any(|rewritten| rewritten.as_bytes() == field.name.0) => {}
            _ => assert_eq!(fields.insert(name, field.raw.to_vec()), None),
        }
    }
}

fn slots(path: &Path) -> BTreeMap<u16, Fields> {
    let mut region = Region::open(path).expect("the file opens");
    let found: Vec<_> = region.slots().collect();
    let mut bytes = Vec::new();
    let mut read = |slot: cg_anvil::Slot| {
        region.read(slot, &ReadLimits::default(), &mut bytes).expect("readable");
        let root = Document::parse(&bytes, &nbt::Limits::default()).expect("NBT").root;
        let mut fields = Fields::new();
        if root.get("Position").is_none() {
            add(&mut fields, "", root);
        }
        (slot.index(), fields)
    };
    found.into_iter().map(&mut read).collect()
}

/// Every field of every column is what it was, byte for byte, but for those that are read and written anew.
#[track_caller]
pub(crate) fn check_fields(file: &str, before: &Path, after: &Path) {
    let (before, mut after) = (slots(before), slots(after));
    for (slot, before) in before {
        let mut after = after.remove(&slot).unwrap_or_default();
        for (name, bytes) in before {
            // Light of no byte says nothing, and is not written.
            let is_empty_light = name.ends_with("Light") && bytes.ends_with(&[0; 4]) && bytes.len() < 20;
            if !is_empty_light {
                assert!(after.remove(&name).as_ref() == Some(&bytes), "{file} slot {slot}: {name}");
            }
        }
        assert_eq!(after.keys().collect::<Vec<_>>(), [""; 0], "{file} slot {slot}: fields from nowhere");
    }
    assert_eq!(after.len(), 0, "{file}");
}

/// A column of stone and dirt with everything that the game keeps beside blocks.
fn column(x: i32) -> Column {
    let mut section = patterned(4, 3);
    section.left = Some(nbt::payload(|out| out.int("mod:depth", x)));
    let mut column = maker::column(x, 0, [section, patterned(5, 1)]);
    column.carried = nbt::payload(|out| {
        out.string("Status", "minecraft:full").expect("short");
        out.long("LastUpdate", 77);
        out.long("InhabitedTime", 12345);
    });
    column.left = Some(nbt::payload(|out| {
        out.compound("Heightmaps", |out| out.long_array("WORLD_SURFACE", &[i64::from(x); 37]));
        out.byte("isLightOn", 1);
        out.compound("structures", |out| out.compound("References", |_| ()));
        out.raw_compounds("block_ticks", [&nbt::payload(|out| out.int("p", -1))[..]].into_iter());
        out.raw_compounds("fluid_ticks", [].into_iter());
        out.compound("mod:notes", |out| out.byte("seen", 1));
    }));
    column
}

/// Two columns with points of interest, and files.
fn make(save: &Path) {
    let columns = [column(0), column(1)];
    let slots =
        columns.map(|column| maker::zlib((column.pos.x, 0), &write::column(&column).expect("a column")));
    fs::create_dir_all(save.join("region")).expect("a folder");
    maker::region(&save.join("region/r.0.0.mca"), &slots);
    let points = |x| nbt::document(|root| root.compound("Sections", |out| out.int("x", x)));
    fs::create_dir_all(save.join("poi")).expect("a folder");
    maker::region(&save.join("poi/r.0.0.mca"), &[0, 1].map(|x| maker::zlib((x, 0), &points(x))));
    for (name, bytes) in files() {
        let path = save.join(name);
        fs::create_dir_all(path.parent().expect("below the save")).expect("a folder");
        fs::write(path, bytes).expect("written");
    }
    fs::write(save.join("session.lock"), "☃").expect("written");
}

fn files() -> [(&'static str, &'static [u8]); 5] {
    [
        ("level.dat", b"\x1f\x8bnot really"),
        ("data/raids.dat", b"\0\xff\x80"),
        ("datapacks/empty.zip", b""),
        ("playerdata/Steve.dat", b"Steve"),
        ("stats/00000000-0000-0000-0000-000000000001.json", b"{}"),
    ]
}

fn exported(world: &World, dir: &Path) -> ExportReport {
    export(world, dir, &ExportOptions::default(), |_| {}).expect("an export")
}

fn hash(world: &World) -> String {
    world.content_hash(cg_store::view::Area::World).expect("no damage").to_string()
}

fn names_left(save: &Path, x: i32) -> Vec<String> {
    let fields = slots(&save.join("region/r.0.0.mca")).remove(&(x as u16)).expect("a column");
    fields.into_keys().collect()
}

fn in_memory() -> World {
    World::builder().in_memory().expect("a world in memory")
}

fn taken(save: &Path, world: &World, merge: Option<Merge>) -> ImportReport {
    import(save, world, &ImportOptions { merge, ..ImportOptions::default() }, |_| {}).expect("an import")
}

/// The times of a region file's slots.
fn times(path: &Path) -> Vec<(u16, u32)> {
    let region = Region::open(path).expect("the file opens");
    region.slots().map(|slot| (slot.index(), region.timestamp(slot))).collect()
}

fn entity_slot(x: i32, entities: Vec<Vec<u8>>) -> Vec<u8> {
    let left = Some(nbt::payload(|out| {
        out.int("mod:flag", x);
        out.compound("mod:empty", |_| ());
    }));
    let column = EntityColumn {
        pos: ColumnPos::new(x, 0),
        data_version: maker::DATA_VERSION,
        stated: None,
        entities,
        list: Some(nbt::Tag::End),
        left,
    };
    write::entities(&column).expect("entities")
}

/// As [`make`], with slots of entities, of which the last holds none, and with times.
fn make_with_times(save: &Path) {
    make(save);
    let pig =
        |x: i32| maker::entity("minecraft:pig", [0, 0, 0, x + 1], [f64::from(x * 16) + 5.0, 70.0, 5.0], &[]);
    let slots = [
        maker::zlib((0, 0), &entity_slot(0, vec![pig(0)])),
        maker::zlib((1, 0), &entity_slot(1, vec![pig(1)])),
        maker::zlib((2, 0), &entity_slot(2, vec![])),
    ];
    fs::create_dir_all(save.join("entities")).expect("a folder");
    maker::region(&save.join("entities/r.0.0.mca"), &slots);
    for (folder, columns) in [("region", 2), ("poi", 2), ("entities", 3)] {
        for x in 0..columns {
            maker::stamp(&save.join(folder).join("r.0.0.mca"), (x, 0), 1_700_000_000 + x as u32);
        }
    }
}
