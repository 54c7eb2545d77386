//! Which files of a save are its regions: those that the game names so, in the folder of a dimension. All others are files.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use cg_anvil::export::{ExportOptions, ExportProgress, UNFINISHED, export};
use cg_store::objects::ObjectKey;
use cg_store::prelude::*;
use serde_json::json;

use super::folder::{check_same, copy, paths};
use super::save::{At, LIVE, NEW, OLD, OVERWORLD, Old, STRAY, Save};
use super::test_dir::{Done, TestDir, texts};

const AT: At = (0, 0);

/// The bytes of a region file with one column of another time.
fn older(dir: &TestDir) -> Vec<u8> {
    let save = dir.save("older");
    save.blocks("", STRAY, &[AT, (5, 6)]);
    fs::read(save.path().join("region/r.0.0.mca")).expect("written")
}

/// Names that file managers and tools give to copies, or that the game does not read.
const COPIES: [&str; 12] = [
    "Copy of r.0.0.mca",
    "R.0.0.MCA",
    "a_r.0.0.mca",
    "odd.mca",
    "r.+0.0.mca",
    "r.-0.0.mca",
    "r.0.0 (1).mca",
    "r.0.0 - Copy.mca",
    "r.0.0.MCA",
    "r.0.67108864.mca",
    "r.01.0.mca",
    "r.1.1.2.mca",
];

#[track_caller]
fn check_files(report: &serde_json::Value, names: &[String]) {
    let mut names: Vec<_> = names.iter().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(texts(&report["regions_as_files"]), names);
}

#[test]
fn a_copy_of_a_region_is_a_file_and_never_read() {
    let dir = TestDir::new();
    let older = older(&dir);
    let save = dir.save("save");
    save.level(OLD, "copies").vanilla(Old, LIVE);
    let folders = ["region", "entities", "poi", "DIM-1/region"];
    let names: Vec<_> =
        folders.iter().flat_map(|folder| COPIES.map(|copy| format!("{folder}/{copy}"))).collect();
    for name in &names {
        save.file(name, &older);
    }
    let (imported, exported) = dir.round("save", &[]);
    check_files(&imported, &names);
    assert_eq!((&imported["imported_columns"], &imported["rekeyed"]), (&json!(4), &json!([])));
    assert_eq!(exported["other_files"], 1 + names.len());
    check_same(save.path(), &dir.at("out"));
    for name in &names {
        assert!(fs::read(dir.at("out").join(name)).expect("there") == older, "{name}");
    }
    let said = dir.cg("get", "world", &["--block", "0", "64", "0"]);
    assert!(said.out.contains("test:live"), "{}", said.out);
    // The text names the first ones, and how many more there are.
    let said = crate::cmd::run(&["import", crate::cmd::text(save.path()), crate::cmd::text(&dir.at("text"))]);
    let line = format!("kept as files: region files that no game reads where they are {}\n", names.len());
    assert!(said.code == 0 && said.out.contains(&line), "{}", said.out);
    assert!(said.out.contains("\n  DIM-1/region/Copy of r.0.0.mca\n"), "{}", said.out);
    assert!(said.out.contains("… and 38 more region files, which are not listed\n"), "{}", said.out);
}

/// A save in which other saves and folders of mods hold regions.
fn with_other_regions(save: &Save, older: &[u8]) -> Vec<String> {
    save.level(OLD, "others").vanilla(Old, LIVE).file("backups/world-old/level.dat", "an old one");
    let folders = [
        "DIM_MYST3/region",
        "DIM07/region",
        "DIM-1/DIM1/region",
        "backups/world-old/region",
        "backups/world-old/DIM-1/region",
        "backups/world-old/dimensions/a/b/entities",
        "dimensions/dim/7/region",
        "dimensions/a/b/data/region",
        "dimensions/a/b/c/d/e/f/g/h/i/j/region",
        "dimensions/region",
        "mods/maps",
    ];
    let mut names = Vec::new();
    for folder in folders {
        for name in ["r.0.0.mca", "r.-1.7.mca", "c.5.6.mcc", "r.0.0 (1).mca"] {
            names.push(format!("{folder}/{name}"));
        }
    }
    names.push("r.0.0.mca".to_owned());
    for name in &names {
        save.file(name, older);
    }
    names
}

#[test]
fn regions_of_no_dimension_are_files_where_they_came_in() {
    let dir = TestDir::new();
    let older = older(&dir);
    let save = dir.save("save");
    let names = with_other_regions(&save, &older);
    let (imported, _) = dir.round("save", &[]);
    check_files(&imported, &names);
    assert_eq!((&imported["imported_columns"], &imported["not_carried"]), (&json!(4), &json!([])));
    assert_eq!(paths(&dir.at("out")), paths(save.path()));
    check_same(save.path(), &dir.at("out"));
    for name in &names {
        assert!(fs::read(dir.at("out").join(name)).expect("there") == older, "{name}");
    }
    // What was exported is imported in the same way.
    assert_eq!(texts(&dir.import("out", "again", &[]).good()["regions_as_files"]).len(), names.len());
    assert_eq!(dir.hash("again"), dir.hash("world"));
}

#[test]
fn regions_that_are_files_are_merged_as_files() {
    let dir = TestDir::new();
    let older = older(&dir);
    let save = dir.save("save");
    let names = with_other_regions(&save, &older);
    dir.import("save", "world", &[]).good();
    save.file(&names[0], "another").file("region/r.0.0 (1).mca", &older);
    let kept = dir.import("save", "world", &["--merge", "keep"]).ended(0);
    assert_eq!(
        (&kept["kept_files"], kept["imported_files"].as_u64()),
        (&json!(1), Some(names.len() as u64 + 2))
    );
    dir.export("world", "kept", &[]).good();
    assert!(fs::read(dir.at("kept").join(&names[0])).expect("there") == older);
    dir.import("save", "world", &["--merge", "replace"]).good();
    dir.export("world", "replaced", &[]).good();
    check_same(save.path(), &dir.at("replaced"));
    // Deleted with the files of the save before.
    fs::remove_dir_all(save.path().join("backups")).expect("deleted");
    let options = ["--merge", "replace", "--merge-files", "replace"];
    let deleted = dir.import("save", "world", &options).good();
    assert_eq!(deleted["deleted_files"]["backups/world-old/region"], 4, "{deleted}");
    dir.export("world", "out", &[]).good();
    check_same(save.path(), &dir.at("out"));
}

#[test]
fn a_dimension_alone_takes_the_files_of_its_own_folder() {
    let dir = TestDir::new();
    let older = older(&dir);
    let save = dir.save("save");
    save.level(NEW, "alone").vanilla(super::save::Dimensions, LIVE);
    for folder in ["overworld", "the_nether"] {
        save.file(&format!("dimensions/minecraft/{folder}/region/r.0.0 (1).mca"), &older);
        save.file(&format!("dimensions/minecraft/{folder}/region/c.9.9.mcc"), "of no slot");
    }
    save.file("backups/region/r.0.0.mca", &older);
    let report = dir.import("save", "world", &["--as-dimension", "a:b"]).ended(0);
    assert_eq!(
        texts(&report["regions_as_files"]),
        ["dimensions/a/b/region/c.9.9.mcc", "dimensions/a/b/region/r.0.0 (1).mca"]
    );
    // Those of the other dimensions are not among them: their region files are counted by themselves.
    assert_eq!((&report["left_files"], &report["imported_columns"]), (&json!(4), &json!(2)), "{report}");
    dir.export("world", "out", &[]).good();
    assert!(fs::read(dir.at("out/dimensions/a/b/region/r.0.0 (1).mca")).expect("there") == older);
    // A dimension's folder by itself.
    let report = dir.import("save/dimensions/minecraft/the_nether", "nether", &[]).good();
    assert_eq!(texts(&report["regions_as_files"]).len(), 2);
    dir.export("nether", "nether out", &[]).good();
    let copy = "dimensions/minecraft/the_nether/region/r.0.0 (1).mca";
    assert!(fs::read(dir.at("nether out").join(copy)).expect("there") == older);
    // And in the old layout, whose overworld has no folder of its own.
    let old = dir.save("old");
    old.level(OLD, "alone").vanilla(Old, LIVE).file("region/r.0.0 (1).mca", &older);
    let report = dir.import("old", "of old", &["--as-dimension", "a:b"]).ended(0);
    assert_eq!((&report["left_files"], &report["regions_as_files"]), (&json!(2), &json!([])));
}

#[test]
fn a_killed_import_of_such_files_ends_as_one_that_was_not() {
    let dir = TestDir::new();
    let older = older(&dir);
    let save = dir.save("save");
    let names = with_other_regions(&save, &older);
    save.dimension("DIM7", LIVE, &(0..200).map(|x| (x, x)).collect::<Vec<_>>());
    let whole = dir.import("save", "whole", &[]).good();
    let (done, _) = dir.import_killed("save", "world", &[]);
    if done.code == 0 {
        let report = done.good();
        check_files(&report, &names);
        assert_eq!(report["imported_files"], whole["imported_files"]);
    }
    assert_eq!(dir.hash("world"), dir.hash("whole"));
    dir.export("world", "out", &[]).good();
    check_same(save.path(), &dir.at("out"));
}

/// A save with a column in a file of its own, `region/c.40.1.mcc`.
fn with_large_column(dir: &TestDir) -> Save {
    let save = dir.save("save");
    save.level(OLD, "parts").vanilla(Old, LIVE);
    let mut noise = 1_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (noise >> 24) as u8
    })
    .take(1_200_000)
    .collect();
    let mut large = super::save::column((40, 1), LIVE);
    large.left = Some(cg_anvil::nbt::payload(|out| out.byte_array("mod:noise", &bytes)));
    save.slots("region", [((40, 1), super::save::document(&large), LIVE.time)]);
    assert!(save.path().join("region/c.40.1.mcc").is_file());
    save
}

#[test]
fn a_continued_export_keeps_a_column_whose_file_has_the_name_of_another() {
    let dir = TestDir::new();
    with_large_column(&dir);
    dir.import("save", "world", &[]).good();
    let world = World::builder().open(dir.at("world")).expect("it is whole");
    let key = ObjectKey::new("minecraft/file/region/c.40.1.mcc").expect("short");
    world.objects().put(key, b"of no slot".to_vec()).expect("the store takes it");
    let export_to = |name: &str, watch: &mut dyn FnMut(ExportProgress)| {
        export(&world, &dir.at(name), &ExportOptions::default(), watch).expect("it is writable")
    };
    let stopped = catch_unwind(AssertUnwindSafe(|| {
        export_to("out", &mut |now| assert!(now.regions_done < now.regions, "stopped"));
    }));
    stopped.expect_err("it was stopped");
    // As a process leaves it that is killed after it named the files and wrote none.
    let journal = dir.at("out").join(UNFINISHED);
    let lines = fs::read_to_string(&journal).expect("text");
    fs::write(&journal, lines + "{\"files\":[\"region/c.40.1.mcc\"]}\n").expect("writes");
    let continued = export_to("out", &mut |_| ());
    let whole = export_to("whole", &mut |_| ());
    assert_eq!(whole.not_exported.get("files where another file or folder is"), Some(&1));
    assert_eq!(continued, whole);
    check_same(&dir.at("whole"), &dir.at("out"));
    let column = |root: &str| fs::read(dir.at(root).join("region/c.40.1.mcc")).expect("there");
    assert!(column("out") == column("whole") && column("out") != b"of no slot");
}

#[test]
fn a_file_of_a_column_to_which_no_slot_points_is_a_file() {
    let dir = TestDir::new();
    let save = with_large_column(&dir);
    let stale =
        ["region/c.0.0.mcc", "region/c.41.1.mcc", "region/c.99.99.mcc", "region/c.01.1.mcc", "poi/c.0.0.mcc"];
    for name in stale {
        save.file(name, "of no slot");
    }
    let (imported, _) = dir.round("save", &[]);
    check_files(&imported, &stale.map(str::to_owned));
    check_same(save.path(), &dir.at("out"));
    for name in stale {
        assert_eq!(fs::read(dir.at("out").join(name)).expect("there"), b"of no slot", "{name}");
    }
}

#[test]
fn a_file_of_64_mib_is_left_out_and_listed_with_its_bytes() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "large").vanilla(Old, LIVE);
    for (name, bytes) in [("backups/old/region/r.0.0.mca", 64 << 20), ("logs/debug.log", (64 << 20) + 7)] {
        save.file(name, "");
        let file = fs::File::options().write(true).open(save.path().join(name)).expect("there");
        file.set_len(bytes).expect("a hole");
    }
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!(
        report["too_large"],
        json!([
            { "file": "backups/old/region/r.0.0.mca", "bytes": 64 << 20 },
            { "file": "logs/debug.log", "bytes": (64 << 20) + 7 },
        ])
    );
    assert_eq!((&report["unreadable"], &report["imported_columns"]), (&json!([]), &json!(4)));
    let said = crate::cmd::run(&["import", crate::cmd::text(save.path()), crate::cmd::text(&dir.at("text"))]);
    let end = "left out, because it is too large: backups/old/region/r.0.0.mca, 67,108,864 bytes\n\
               left out, because it is too large: logs/debug.log, 67,108,871 bytes\n\
               everything else could be read\n";
    assert_eq!(said.code, 1);
    assert!(said.out.ends_with(end), "{}", said.out);
}

#[test]
fn a_copy_in_a_folder_of_regions_is_named_and_left_out() {
    let dir = TestDir::new();
    let older = older(&dir);
    let bare = dir.save("bare");
    bare.slots("", [(AT, super::save::document(&super::save::column(AT, LIVE)), LIVE.time)]);
    let copies = ["Copy of r.0.0.mca", "R.0.0.MCA", "r.-0.0.mca", "r.0.0 (1).mca", "r.00.0.mca"];
    for name in copies {
        bare.file(name, &older);
    }
    let report = dir.import("bare", "world", &[]).ended(1);
    let left_out: Vec<_> = copies
        .iter()
        .map(|name| json!({ "file": name, "slot": null, "reason": "left out: it is a copy of r.0.0.mca" }))
        .collect();
    assert_eq!(report["unreadable"], json!(left_out));
    assert_eq!(report["imported_columns"], 1);
    assert_eq!(dir.dimensions("world").as_object().map(serde_json::Map::len), Some(1));
    assert!(dir.cg("get", "world", &["--block", "0", "64", "0"]).out.contains("test:live"));
    // What stands before the name of a region tells saves apart, as long as it is no copy's.
    let several = dir.save("several");
    copy(&dir.at("older/region"), &dir.at("several"));
    several.file("1.20.1_city_r.0.0.mca", &older).file("1.18_r.-1.0.mca", "");
    let report = dir.import("several", "worlds", &[]).good();
    assert_eq!(report["imported_columns"], 4);
    assert_eq!(dir.dimensions("worlds")["file:1.20.1_city"]["chunks"], 2);
    // A file that is named by itself is read, whatever its name.
    let report = dir.import(Path::new("bare/r.0.0 (1).mca"), "one", &[]).good();
    assert_eq!(report["imported_columns"], 2);
}

/// An import of a save that has these files, each of one byte, beside what was made of it.
fn with_files(make: impl Fn(&Save), files: &[&str]) -> (TestDir, Done) {
    let dir = TestDir::new();
    let save = dir.save("save");
    make(&save);
    for name in files {
        save.file(name, "x");
    }
    let done = dir.import("save", "world", &[]);
    (dir, done)
}

#[test]
fn a_save_whose_chunks_are_in_another_form_is_refused() {
    let level = |save: &Save| {
        save.level(OLD, "another form");
    };
    for (files, form) in [
        (&["region/r.0.0.mcr"][..], ".mcr region files of Minecraft 1.1 and older"),
        (&["DIM-1/region/r.0.0.mcr"], ".mcr region files of Minecraft 1.1 and older"),
        (&["region/r.0.0.linear", "region/r.0.1.linear"], ".linear region files of a server's own format"),
        (&["dimensions/a/b/region/r.0.0.b_linear"], ".linear region files of a server's own format"),
        (&["region3d/0.0.0.3dr", "region2d/0.0.2dr"], "files of the mod Cubic Chunks"),
        (&["region.zip"], "packed region files"),
        (&["DIM-1/region.tar.gz"], "packed region files"),
        (&["DIM1.7z"], "packed region files"),
        (&["dimensions.zip"], "packed region files"),
        (&["region/r.0.0.mca.gz"], "packed region files"),
        (&["region/r.0.0.MCA.ZST", "region/r.-1.0.zip"], "packed region files"),
    ] {
        let (dir, done) = with_files(level, files);
        let why = done.refused();
        assert!(why.contains(&format!("holds {form}, which are not read; ")), "{files:?}: {why}");
        assert!(!dir.at("world").exists(), "{files:?}");
    }
    let dir = TestDir::new();
    dir.save("save").file("r.0.0.linear", "x").file("save.zip", "x");
    for name in ["save/r.0.0.linear", "save/save.zip", "save"] {
        let why = dir.import(name, "world", &[]).refused();
        assert!(why.contains("which are not read; "), "{name}: {why}");
    }
}

#[test]
fn chunks_in_another_form_beside_regions_are_named() {
    let some = |save: &Save| {
        save.level(OLD, "some").vanilla(Old, LIVE);
    };
    for (files, named) in [
        (
            &["region/r.5.5.linear", "region/r.0.0.linear"][..],
            json!([[
                "region",
                "chunks in 2 files are not read: .linear region files of a server's own format; convert them to .mca region files with the server's tool"
            ]]),
        ),
        (
            &["DIM-1/region3d/0.0.0.3dr", "region/r.9.9.mcr"],
            json!([
                [
                    "region",
                    "chunks in 1 file are not read: .mcr region files of Minecraft 1.1 and older; open the save once in 1.13 or later"
                ],
                [
                    "DIM-1/region3d",
                    "chunks in 1 file are not read: files of the mod Cubic Chunks; convert the save with the mod's converter"
                ],
            ]),
        ),
        (
            &["DIM7/region.zip", "region/r.7.7.mca.gz"],
            json!([
                ["region", "chunks in 1 file are not read: packed region files; unpack them first"],
                ["DIM7", "chunks in 1 file are not read: packed region files; unpack them first"],
            ]),
        ),
    ] {
        let (dir, done) = with_files(some, files);
        let report = done.ended(1);
        let found: Vec<_> = super::test_dir::list(&report["unreadable"])
            .iter()
            .map(|lost| json!([lost["file"], lost["reason"]]))
            .collect();
        assert_eq!(json!(found), named, "{files:?}");
        assert_eq!(report["imported_columns"], 4);
        // As files they go through all the same.
        dir.export("world", "out", &[]).good();
        check_same(&dir.at("save"), &dir.at("out"));
    }
    // Backups and what the game has converted say nothing.
    let converted =
        ["region/r.0.0.mcr", "region/r.0.0.mca.gz", "region.zip", "region/r.0.0.mca.bak", "backup.zip"];
    let (dir, done) = with_files(some, &converted);
    assert_eq!(done.good()["unreadable"], json!([]));
    dir.export("world", "out", &[]).good();
    check_same(&dir.at("save"), &dir.at("out"));
}

#[test]
fn a_save_without_a_column_says_so() {
    for files in [&[][..], &["region/notes.txt"], &["region/r.0.0.mca"]] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(OLD, "empty");
        for name in files {
            save.file(name, "");
        }
        let report = dir.import("save", "world", &[]).good();
        assert_eq!((&report["has_no_column"], &report["imported_columns"]), (&json!(true), &json!(0)));
        let said =
            crate::cmd::run(&["import", crate::cmd::text(save.path()), crate::cmd::text(&dir.at("text"))]);
        assert_eq!(said.code, 0);
        assert!(said.out.ends_with("the save has no column\neverything could be read\n"), "{}", said.out);
    }
    let dir = TestDir::new();
    dir.save("save").level(OLD, "some").blocks("", LIVE, &[AT]);
    assert_eq!(dir.import("save", "world", &[]).good()["has_no_column"], json!(false));
    let again = dir.import("save", "world", &["--merge", "keep"]).good();
    assert_eq!(again["has_no_column"], json!(false));
    assert_eq!(dir.dimensions("world")[OVERWORLD]["chunks"], 1);
}

#[test]
fn a_region_file_whose_header_was_lost_is_kept_as_a_file() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "wiped").vanilla(Old, LIVE);
    save.blocks("", STRAY, &[(40, 1)]);
    let wiped = save.path().join("region/r.1.0.mca");
    let mut bytes = fs::read(&wiped).expect("there");
    bytes[..4096].fill(0);
    fs::write(&wiped, &bytes).expect("written");
    save.file("region/r.2.0.mca", "x");
    // As the game leaves them.
    save.file("region/r.3.0.mca", "");
    fs::write(save.path().join("poi/r.3.0.mca"), [0; 8192]).expect("written");
    let (imported, exported) = dir.round("save", &[]);
    assert_eq!(imported["regions_as_files"], json!(["region/r.1.0.mca", "region/r.2.0.mca"]));
    assert_eq!(exported["not_exported"], json!({}));
    for name in ["region/r.1.0.mca", "region/r.2.0.mca"] {
        assert_eq!(fs::read(dir.at("out").join(name)).ok(), fs::read(save.path().join(name)).ok(), "{name}");
    }
    assert!(!dir.at("out/region/r.3.0.mca").exists());
}

#[test]
fn in_a_folder_of_regions_a_name_that_is_none_counts_for_less() {
    let dir = TestDir::new();
    let bytes = older(&dir);
    let folder = dir.at("loose");
    fs::create_dir(&folder).expect("a folder");
    let save = dir.save("save");
    save.blocks("", LIVE, &[AT]);
    fs::copy(save.path().join("region/r.0.0.mca"), folder.join("r.0.0.mca")).expect("copied");
    for name in ["r.0,0.mca", "r.0.mca", "a.mca"] {
        fs::write(folder.join(name), &bytes).expect("written");
    }
    let report = dir.import("loose", "world", &[]).ended(1);
    let lost: Vec<_> = report["unreadable"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|lost| (&lost["file"], &lost["slot"]))
        .collect();
    assert_eq!(
        lost,
        [
            (&json!("a.mca"), &json!(0)),
            (&json!("r.0,0.mca"), &json!(0)),
            (&json!("r.0,0.mca"), &json!(197)),
            (&json!("r.0.mca"), &json!(0)),
            (&json!("r.0.mca"), &json!(197))
        ],
        "their columns of these places were met before"
    );
    dir.import("save", "alone", &[]).good();
    let block = |world: &str| dir.cg("get", world, &["--block", "0", "64", "0"]).good();
    assert_eq!(block("world"), block("alone"));
}

#[test]
fn a_slot_that_is_too_large_to_be_kept_is_not_forgotten() {
    let dir = TestDir::new();
    let save = with_large_column(&dir);
    let large = fs::File::options().write(true).open(save.path().join("region/c.40.1.mcc")).expect("there");
    large.set_len(65 << 20).expect("a hole");
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["kept_slots"], report["unreadable"].as_array().map(Vec::len)), (&json!(1), Some(1)));
    let said = dir.cg("get", "world", &["--block", "640", "64", "16"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("not all of the slot of column (40, 1) could be read when it was imported")
            && said.err.ends_with("; its bytes are not kept, and an export counts it as left out\n"),
        "{}",
        said.err
    );
    let report = dir.export("world", "out", &[]).ended(1);
    assert_eq!(report["not_exported"], json!({ "slots whose bytes are not kept": 1 }));
}
