//! Columns of a world put back into a save: what changes, and that nothing else does.
#![expect(clippy::big_endian_bytes, reason = "region files are big-endian by their own definition")]

mod entities;
mod external;
mod killed;
mod players;
mod refused;
mod shared;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use cg_anvil::column::Section;
use serde_json::{Value, json};

use super::folder::{check_bytes, copy, paths, slots};
use super::save::{
    At, Dimensions, LATER, LIVE, Layout, NETHER, NEW, OLD, OVERWORLD, Old, below, column, document,
};
use super::test_dir::{Done, TestDir};
use crate::cmd::{run, text};

/// Places in four regions.
const COLUMNS: [At; 6] = [(0, 0), (1, 0), (-1, 33), (40, 2), (40, 3), (-40, -40)];
/// Boxes that touch the second, third and fourth of them, two of them at heights where nothing is.
const BOXES: [[i32; 6]; 4] = [
    [31, -4000, 15, 16, 90, 0],
    [16, 0, 0, 20, 1, 1],
    [-16, 70, 33 * 16, -1, 70, 33 * 16],
    [40 * 16 + 3, 9000, 2 * 16, 40 * 16 + 3, 9001, 3 * 16 - 1],
];
const PUT: [At; 3] = [(1, 0), (-1, 33), (40, 2)];

impl TestDir {
    /// Runs `cg export WORLD --into SAVE` with boxes and options.
    fn put_into(&self, world: &str, save: &str, boxes: &[[i32; 6]], options: &[&str]) -> Done {
        let save = self.at(save);
        let mut words = vec!["--into".to_owned(), text(&save).to_owned()];
        for area in boxes {
            words.push("--box".to_owned());
            words.extend(area.iter().map(ToString::to_string));
        }
        let words: Vec<_> = words.iter().map(String::as_str).chain(options.iter().copied()).collect();
        super::test_dir::done("export", &[&self.at(world)], &words)
    }
}

/// The bytes of each slot of a region file as they are stored, with place and time.
pub(super) fn raw_slots(path: &Path) -> BTreeMap<u16, Vec<u8>> {
    let bytes = fs::read(path).expect("readable");
    let mut slots = BTreeMap::new();
    for index in 0..1024_u16 {
        let at = usize::from(index) * 4;
        let [a, b, c, count] = bytes[at..at + 4].try_into().expect("four bytes");
        let (first, count) = (u32::from_be_bytes([0, a, b, c]) as usize, usize::from(count));
        if first > 0 {
            let end = bytes.len().min((first + count) * 4096);
            slots.insert(
                index,
                [&bytes[at..at + 4], &bytes[4096 + at..4100 + at], &bytes[first * 4096..end]].concat(),
            );
        }
    }
    slots
}

/// The bytes of all files below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| {
        let bytes = fs::read(folder.join(&name)).expect("readable");
        (name, bytes)
    };
    paths(folder).into_iter().map(read).collect()
}

fn index((x, z): At) -> u16 {
    u16::try_from((z & 31) * 32 + (x & 31)).expect("below 1,024")
}

fn region_name((x, z): At) -> String {
    format!("r.{}.{}.mca", x >> 5, z >> 5)
}

/// A save, and a world of its earlier state; the save is later in all columns.
fn make(dir: &TestDir, layout: Layout, level: i32) {
    for (name, mark) in [("before", LIVE), ("save", LATER)] {
        let save = dir.save(name);
        save.level(level, "world").file("session.lock", "☃").file("data/own.dat", name);
        let folder = layout.folder(OVERWORLD);
        save.blocks(folder, mark, &COLUMNS).entities(folder, mark, &COLUMNS).points(folder, mark, &COLUMNS);
        save.dimension(layout.folder(NETHER), mark, &[(1, 0)]);
    }
    dir.import("before", "world", &[]).good();
    copy(&dir.at("save"), &dir.at("was"));
}

/// Of a dimension's folder exactly these columns are those of `before`, slot by slot, and all others have their bytes.
#[track_caller]
fn check_put(dir: &TestDir, folder: &str, put: &[At]) {
    let (is, was, before) = (dir.at("save"), dir.at("was"), dir.at("before"));
    assert_eq!(paths(&is), paths(&was), "other files");
    for name in paths(&was) {
        let part = ["region/", "entities/", "poi/"].into_iter().find(|part| {
            name.starts_with(&below(folder, part)) && Path::new(&name).extension() == Some("mca".as_ref())
        });
        if part.is_none() {
            assert!(
                fs::read(is.join(&name)).expect("there") == fs::read(was.join(&name)).expect("there"),
                "{name}"
            );
            continue;
        }
        let here: Vec<_> =
            put.iter().filter(|at| name.ends_with(&region_name(**at))).map(|at| index(*at)).collect();
        let (mut raw, mut raw_was) = (raw_slots(&is.join(&name)), raw_slots(&was.join(&name)));
        raw.retain(|slot, _| !here.contains(slot));
        raw_was.retain(|slot, _| !here.contains(slot));
        assert!(raw == raw_was, "{name}: other slots");
        let [mut found, mut wanted] = [&is, &before].map(|root| slots(&root.join(&name)));
        found.retain(|slot, _| here.contains(slot));
        wanted.retain(|slot, _| here.contains(slot));
        check_bytes(&name, &wanted, &found);
    }
}

fn counts(new: u64, replaced: u64, equal: u64, removed: u64) -> Value {
    json!({ "new": new, "replaced": replaced, "equal": equal, "removed": removed })
}

#[test]
fn only_the_columns_of_the_boxes_change_in_each_layout() {
    for (layout, level) in [(Old, OLD), (Dimensions, NEW)] {
        let dir = TestDir::new();
        make(&dir, layout, level);
        // The columns are of the newest game.
        let options: &[&str] = if level == OLD { &["--allow-newer"] } else { &[] };
        let counted = dir.put_into("world", "save", &BOXES, &[options, &["--dry-run"]].concat()).good();
        assert_eq!(files(&dir.at("save")), files(&dir.at("was")), "it only counted");
        assert!(!dir.at("save.cg-replaced-1").exists() && !dir.at("save.cg-replaced-1.part").exists());
        let report = dir.put_into("world", "save", &BOXES, options).good();
        for field in
            ["files", "columns", "entity_slots", "points", "entities", "removed_entities", "kept_columns"]
        {
            assert_eq!(counted[field], report[field], "{field}");
        }
        assert_eq!((&counted["dry_run"], &report["dry_run"]), (&json!(true), &json!(false)));
        for field in ["columns", "entity_slots", "points"] {
            assert_eq!(report[field], counts(0, 3, 0, 0), "{field}");
        }
        assert_eq!(
            (&report["entities"], &report["removed_entities"], &report["files"]),
            (&json!(3), &json!(3), &json!(9))
        );
        assert_eq!((&report["layout"], &report["kept_columns"]), (&json!(layout.text()), &json!(0)));
        check_put(&dir, layout.folder(OVERWORLD), &PUT);
        // What was replaced is beside the save, and an import takes it for what it is.
        let kept = dir.at("save.cg-replaced-1");
        assert_eq!(report["backups"], json!([kept.canonicalize().expect("there")]));
        for name in paths(&kept) {
            assert!(
                fs::read(kept.join(&name)).expect("there")
                    == fs::read(dir.at("was").join(&name)).expect("there")
            );
        }
        assert_eq!(paths(&kept).len(), 9);
        let imported = dir.import("save.cg-replaced-1", "kept", &[]).good();
        // All columns of the three regions.
        assert_eq!(
            (&imported["imported_columns"], &imported["layout"][OVERWORLD]),
            (&json!(5), &json!(layout.text()))
        );
        // Again there is nothing to do.
        let is = files(&dir.at("save"));
        let again = dir.put_into("world", "save", &BOXES, options).good();
        for field in ["columns", "entity_slots", "points"] {
            assert_eq!(again[field], counts(0, 0, 3, 0), "{field}");
        }
        assert_eq!((&again["files"], &again["backups"]), (&json!(0), &json!([])));
        assert!(files(&dir.at("save")) == is && !dir.at("save.cg-replaced-2").exists());
        // And back, from what was kept.
        dir.put_into("kept", "save", &BOXES, options).good();
        check_put(&dir, layout.folder(OVERWORLD), &[]);
        assert!(dir.at("save.cg-replaced-2").is_dir());
    }
}

#[test]
fn boxes_in_any_order_and_number_are_the_same_columns() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let boxes: Vec<_> = BOXES.iter().rev().chain(&BOXES).copied().collect();
    let report = dir.put_into("world", "save", &boxes, &["-d", "overworld", "--no-backup"]).good();
    assert_eq!((&report["columns"], &report["backups"]), (&counts(0, 3, 0, 0), &json!([])));
    check_put(&dir, Dimensions.folder(OVERWORLD), &PUT);
    assert!(!dir.at("save.cg-replaced-1").exists(), "none was wanted");
    // A box without end is the whole dimension, and no other.
    let far = 2_000_000_000;
    dir.put_into("world", "save", &[[-far, -far, -far, far, far, far]], &["--no-backup"]).good();
    check_put(&dir, Dimensions.folder(OVERWORLD), &COLUMNS);
    let report =
        dir.put_into("world", "save", &[[16, 0, 0, 16, 0, 0]], &["-d", NETHER, "--no-backup"]).good();
    assert_eq!(report["columns"], counts(0, 1, 0, 0));
}

#[test]
fn what_the_world_does_not_have_stays_and_what_belongs_to_a_replaced_column_goes() {
    let dir = TestDir::new();
    let folder = Dimensions.folder(OVERWORLD);
    let save = dir.save("before");
    save.level(NEW, "world").blocks(folder, LIVE, &[(0, 0), (1, 1)]).entities(folder, LIVE, &[(3, 3)]);
    dir.import("before", "world", &[]).good();
    let save = dir.save("save");
    save.level(NEW, "world").blocks(folder, LATER, &[(0, 0), (5, 5), (600, 5)]);
    save.entities(folder, LATER, &[(0, 0), (5, 5)]).points(folder, LATER, &[(0, 0), (5, 5), (1, 1)]);
    copy(&dir.at("save"), &dir.at("was"));
    let report = dir.put_into("world", "save", &[[0, 0, 0, 200, 0, 200]], &[]).good();
    assert_eq!(report["columns"], counts(1, 1, 0, 0));
    assert_eq!(report["entity_slots"], counts(1, 0, 0, 1));
    assert_eq!(report["points"], counts(0, 0, 0, 2));
    assert_eq!(
        (&report["kept_columns"], &report["entities"], &report["removed_entities"]),
        (&json!(1), &json!(1), &json!(1))
    );
    let folder = dir.at("save").join(folder);
    let was = dir.at("was").join(Dimensions.folder(OVERWORLD));
    for part in ["entities", "poi"] {
        let [is, was] = [&folder, &was].map(|folder| raw_slots(&folder.join(part).join("r.0.0.mca")));
        assert_eq!(is.get(&index((5, 5))), was.get(&index((5, 5))), "{part}");
        assert!(!is.contains_key(&index((0, 0))), "{part}");
    }
    assert!(raw_slots(&folder.join("entities/r.0.0.mca")).contains_key(&index((3, 3))));
    // In a place that nothing reaches there is nothing to do, which is said.
    let report = dir.put_into("world", "save", &[[1 << 30, 0, 0, 1 << 30, 0, 0]], &[]).ended(1);
    assert_eq!((&report["columns"], &report["files"]), (&counts(0, 0, 0, 0), &json!(0)));
}

#[test]
fn a_dimension_that_the_save_does_not_have_gets_its_folder() {
    for (layout, level) in [(Old, OLD), (Dimensions, NEW)] {
        let dir = TestDir::new();
        make(&dir, layout, level);
        fs::remove_dir_all(dir.at("save").join(layout.folder(NETHER))).expect("there");
        let report =
            dir.put_into("world", "save", &[[16, 0, 0, 16, 0, 0]], &["-d", NETHER, "--allow-newer"]).good();
        assert_eq!(
            (&report["columns"], &report["files"], &report["backups"]),
            (&counts(1, 0, 0, 0), &json!(3), &json!([]))
        );
        for part in ["region", "entities", "poi"] {
            let name = below(layout.folder(NETHER), &format!("{part}/r.0.0.mca"));
            check_bytes(&name, &slots(&dir.at("before").join(&name)), &slots(&dir.at("save").join(&name)));
        }
    }
}

#[test]
fn a_save_that_keeps_the_dimension_elsewhere_is_warned_of() {
    let dir = TestDir::new();
    make(&dir, Old, NEW);
    let report = dir.put_into("world", "save", &BOXES, &[]).ended(1);
    assert_eq!(report["layout"], "dimensions");
    assert_eq!(
        report["warnings"],
        json!([
            "the save keeps minecraft:overworld in region/, where the game of its level.dat does not look; what is put back is in dimensions/minecraft/overworld/region/"
        ])
    );
}

#[test]
fn the_backup_holds_all_parts_of_a_region_so_that_it_undoes_the_change() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let folder = Dimensions.folder(OVERWORLD);
    // Of the columns themselves other ones; entities and points of interest are the same.
    dir.save("save")
        .blocks(folder, LIVE, &COLUMNS)
        .entities(folder, LIVE, &COLUMNS)
        .points(folder, LIVE, &COLUMNS);
    dir.save("save").blocks(folder, LATER, &COLUMNS);
    let before = files(&dir.at("save"));
    dir.put_into("world", "save", &BOXES, &[]).good();
    assert_ne!(files(&dir.at("save")), before);
    dir.import("save.cg-replaced-1", "undo", &[]).good();
    let report = dir.put_into("undo", "save", &BOXES, &["--no-backup"]).good();
    assert_eq!((&report["entity_slots"]["removed"], &report["points"]["removed"]), (&json!(0), &json!(0)));
    let after = files(&dir.at("save"));
    assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
    for (name, bytes) in after.iter().filter(|(name, _)| Path::new(name).extension() == Some("mca".as_ref()))
    {
        let path = dir.at("before-change");
        fs::write(&path, &before[name]).expect("writes");
        check_bytes(name, &slots(&path), &slots(&dir.at("save").join(name)));
        assert!(!bytes.is_empty());
    }
}

#[test]
fn boxes_in_which_the_world_has_nothing_are_said() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let report = dir.put_into("world", "save", &[[900_000, 0, 0, 900_001, 1, 1]], &[]).ended(1);
    let said = format!("the world has nothing of {OVERWORLD} in the boxes");
    assert_eq!((&report["warnings"], &report["files"]), (&json!([said]), &json!(0)));
    assert!(files(&dir.at("save")) == files(&dir.at("was")));
}

#[test]
fn a_part_of_a_column_is_put_into_no_save_and_named_by_an_export() {
    let dir = TestDir::new();
    let save = dir.save("save");
    let mut two = column((0, 0), LIVE);
    two.sections.push(Section { y: 5, ..two.sections[0].clone() });
    save.level(NEW, "two").file("session.lock", "☃");
    save.slots(&below(Dimensions.folder(OVERWORLD), "region"), [((0, 0), document(&two), 7)]);
    dir.import("save", "world", &[]).good();
    let pack = dir.at("pack");
    dir.cg("pack", "world", &[text(&pack), "--box", "0", "80", "0", "15", "95", "15"]).good();
    run(&["unpack", text(&pack), text(&dir.at("part"))]).good();
    let part = "columns that the world has only in part";
    let report = dir.export("part", "out", &[]).ended(1);
    let said = format!("{part}: their version is not known, and 1.21.1 is stated");
    assert_eq!(report["not_exported"], json!({ said: 1 }));
    let before = files(save.path());
    let report = dir.put_into("part", "save", &[[0, 0, 0, 15, 95, 15]], &[]).ended(1);
    let said = format!("{part}: the save keeps its own");
    assert_eq!((&report["not_exported"], &report["files"]), (&json!({ said: 1 }), &json!(0)));
    assert!(files(save.path()) == before);
}
