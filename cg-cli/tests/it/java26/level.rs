//! `level.dat`: what makes a save of a folder, what is said when it is replaced, and what counts when it cannot be read.

use serde_json::{Value, json};

use super::folder::{check_marks, check_same};
use super::save::{
    Dimensions, END, LATER, LIVE, Layout, NETHER, NEW, OLD, OVERWORLD, Old, STRAY, VANILLA, level,
};
use super::test_dir::{TestDir, layouts};
use crate::cmd::text;

#[test]
fn a_folder_with_a_level_is_a_save_though_nothing_was_generated() {
    for folders in [
        &["dimensions/minecraft/overworld/region"][..],
        &["dimensions/minecraft/overworld/region", "dimensions/minecraft/the_nether/region"],
        &["dimensions"],
        &["region"],
        &[],
    ] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(NEW, "empty");
        for name in folders {
            save.folder(name);
        }
        let (imported, exported) = dir.round("save", &[]);
        assert_eq!((&imported["imported_files"], &imported["imported_columns"]), (&json!(1), &json!(0)));
        assert_eq!((&exported["files"], &exported["other_files"]), (&json!(0), &json!(1)));
        check_same(save.path(), &dir.at("out"));
        assert!(!dir.at("out/DIM-1").exists());
    }
}

#[test]
fn a_folder_without_a_level_and_without_regions_is_none() {
    let dir = TestDir::new();
    dir.save("save").file("players/data/a.dat", "a").folder("DIM-1").folder("dimensions/minecraft");
    let done = dir.import("save", "world", &[]);
    assert_eq!((done.code, &done.report), (2, &Value::Null), "{}", done.err);
    assert!(!dir.at("world").exists());
}

#[test]
fn a_replaced_level_is_said_with_both_names_and_versions() {
    let dir = TestDir::new();
    dir.save("first").level(OLD, "Home of 2019").vanilla(Old, LIVE);
    dir.save("second").level(NEW, "Upgraded").vanilla(Dimensions, LATER);
    let first = dir.import("first", "world", &[]).good();
    assert_eq!(first["replaced_level"], Value::Null, "there was none before");
    let kept = dir.import("second", "world", &["--merge", "keep"]).ended(0);
    assert_eq!(kept["replaced_level"], Value::Null);
    let same = dir.import("first", "world", &["--merge", "replace"]).ended(0);
    assert_eq!(same["replaced_level"], Value::Null, "the same bytes replace nothing");
    let replaced = dir.import("second", "world", &["--merge", "replace"]).ended(0);
    let was = json!({ "name": "Home of 2019", "data_version": OLD });
    let is = json!({ "name": "Upgraded", "data_version": NEW });
    assert_eq!(replaced["replaced_level"], json!({ "was": was, "is": is }));
    let said = dir.cg("import", "first", &[text(&dir.at("world")), "--merge", "replace"]);
    for word in ["Home of 2019", "Upgraded"] {
        assert!(said.out.contains(word), "{word}: {}", said.out);
    }
    let digits = said.out.replace(',', "");
    assert!(digits.contains("4671") && digits.contains("4788"), "{}", said.out);
}

#[test]
fn a_name_in_a_level_commands_no_terminal() {
    let dir = TestDir::new();
    dir.save("first").level(OLD, "\u{1b}[2J\ncg: all is well").vanilla(Old, LIVE);
    dir.save("second").level(NEW, &"long ".repeat(13_000)).vanilla(Dimensions, LATER);
    dir.import("first", "world", &[]).good();
    let said = dir.cg("import", "second", &[text(&dir.at("world")), "--merge", "replace"]);
    assert_eq!(said.code, 0, "{}", said.err);
    for text in [&said.out, &said.err] {
        assert!(!text.contains('\u{1b}') && text.lines().all(|line| line != "cg: all is well"), "{text:?}");
    }
    assert!(said.out.contains("4671") || said.out.contains("4,671"), "the versions are not said");
}

const GARBAGE: &[u8] = b"\x1f\x8bnot really";

/// With these files a nether of both layouts is live in one.
#[track_caller]
fn check_live(files: &[(&str, Vec<u8>)], live: Layout) {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.dimension(live.folder(NETHER), LIVE, &[(0, 0)]);
    save.dimension(live.other().folder(NETHER), STRAY, &[(0, 0)]);
    for (name, bytes) in files {
        save.file(name, bytes);
    }
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!(report["layout"], layouts(&[NETHER], live));
    assert_eq!(report["strays"][0]["folder"], live.other().folder(NETHER));
    // And without a record, as of an older `cg`, the same files decide.
    for forgotten in [false, true] {
        if forgotten {
            dir.forget_layout("world");
        }
        let out = format!("out {forgotten}");
        let exported = dir.export("world", &out, &[]).ended(0);
        assert_eq!(exported["layout"], layouts(&[NETHER], live), "{out}");
        check_marks(&dir.at(out).join(live.folder(NETHER)), "live", &[(0, 0)]);
    }
}

#[test]
fn the_level_of_the_save_before_counts_where_the_level_cannot_be_read() {
    for (data_version, live) in [(NEW, Dimensions), (OLD, Old)] {
        let whole = level(data_version, "before");
        for bytes in [GARBAGE.to_vec(), vec![], whole[..whole.len() / 2].to_vec()] {
            check_live(&[("level.dat", bytes), ("level.dat_old", whole.clone())], live);
        }
        // One that can be read counts, whatever the other says.
        let other = level(if data_version == NEW { OLD } else { NEW }, "other");
        check_live(&[("level.dat", whole), ("level.dat_old", other)], live);
    }
}

#[test]
fn the_folders_count_where_no_level_can_be_read() {
    let garbage = |name| (name, GARBAGE.to_vec());
    let player = ("players/data/a.dat", b"a".to_vec());
    check_live(&[garbage("level.dat"), player.clone()], Dimensions);
    check_live(&[garbage("level.dat"), garbage("level.dat_old"), player], Dimensions);
    check_live(&[garbage("level.dat"), ("playerdata/a.dat", b"a".to_vec())], Old);
    // It goes back as it was, beside what it came with.
    for layout in [Old, Dimensions] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.file("level.dat", GARBAGE).vanilla(layout, LIVE);
        let imported = dir.import("save", "world", &[]).good();
        assert_eq!(imported["layout"], layouts(&VANILLA, layout));
        assert_eq!(dir.export("world", "out", &[]).ended(0)["layout"], layouts(&VANILLA, layout));
        check_same(save.path(), &dir.at("out"));
    }
}

#[test]
fn a_level_that_cannot_be_read_is_replaced_with_a_word() {
    let dir = TestDir::new();
    dir.save("first").file("level.dat", GARBAGE).dimension(Old.folder(END), LIVE, &[(0, 0)]);
    let second = dir.save("second");
    second.level(NEW, "sound").dimension(Dimensions.folder(NETHER), LATER, &[(0, 0)]);
    // With the nether alone it would be a dimension of the first.
    second.dimension(Dimensions.folder(OVERWORLD), LATER, &[(0, 0)]);
    dir.import("first", "world", &[]).good();
    let report = dir.import("second", "world", &["--merge", "replace"]).ended(0);
    assert_eq!(report["replaced_level"]["is"], json!({ "name": "sound", "data_version": NEW }));
    dir.export("world", "out", &[]).good();
    check_marks(&dir.at("out/dimensions/minecraft/the_end"), "live", &[(0, 0)]);
}
