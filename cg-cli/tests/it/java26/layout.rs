//! Where an export puts dimensions, what it is asked for, and what it warns of.

use std::fs;

use serde_json::json;

use super::folder::{check_marks, check_moved, check_same, other_files, paths, regions};
use super::save::{Dimensions, LIVE, Layout, NETHER, NEW, OLD, OVERWORLD, Old, Save, VANILLA, below, moved};
use super::test_dir::{TestDir, layouts, texts};
use crate::cmd::{run, text};

/// The game's three dimensions in a layout, with files of each dimension and of the save.
fn make(save: &Save, data_version: i32, layout: Layout) {
    save.level(data_version, "made").vanilla(layout, LIVE);
    for dimension in VANILLA {
        // Where the game of 26.1 has them, and two where the one before has them.
        save.file(&below(Dimensions.folder(dimension), "data/minecraft/raids.dat"), dimension);
    }
    save.file("DIM-1/data/raids.dat", "nether")
        .file("data/raids_end.dat", "end")
        .file("players/data/a.dat", "a");
}

/// The region files of the game's three dimensions in a layout.
fn region_files(layout: Layout) -> Vec<String> {
    let mut files = Vec::new();
    for (dimension, region, first) in
        [(OVERWORLD, "r.-1.1", "r.0.0"), (NETHER, "", "r.0.0"), (VANILLA[2], "", "r.-1.-1")]
    {
        let folder = layout.folder(dimension);
        files.extend((!region.is_empty()).then(|| below(folder, &format!("region/{region}.mca"))));
        files.extend(["entities", "poi", "region"].map(|kind| below(folder, &format!("{kind}/{first}.mca"))));
    }
    files.sort();
    files
}

#[test]
fn each_layout_goes_back_into_its_folders() {
    for (data_version, layout) in [(NEW, Dimensions), (OLD, Old)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        make(&save, data_version, layout);
        let (imported, exported) = dir.round("save", &[]);
        assert_eq!(imported["layout"], layouts(&VANILLA, layout));
        assert_eq!(exported["layout"], layouts(&VANILLA, layout));
        assert_eq!(exported["warnings"], json!([]));
        assert_eq!((&exported["columns"], &exported["not_exported"]), (&json!(4), &json!({})));
        assert_eq!(regions(&dir.at("out")), region_files(layout));
        check_same(save.path(), &dir.at("out"));
        let info = dir.dimensions("world");
        for (dimension, chunks) in VANILLA.into_iter().zip([2, 1, 1]) {
            assert_eq!(info[dimension], json!({ "chunks": chunks, "layout": layout.text() }));
        }
        assert!(dir.cg("info", "world", &[]).good().contains(layout.text()));
    }
}

#[test]
fn nothing_is_made_of_the_other_layout() {
    let dir = TestDir::new();
    dir.save("save").level(NEW, "made").vanilla(Dimensions, LIVE);
    dir.round("save", &[]);
    let found = fs::read_dir(dir.at("out")).expect("a folder");
    let mut found: Vec<_> = found.map(|entry| entry.expect("readable").file_name()).collect();
    found.sort();
    assert_eq!(found, ["dimensions", "level.dat"]);
}

#[test]
fn other_dimensions_have_one_place_in_both() {
    for (data_version, layout, option) in [(NEW, Dimensions, "old"), (OLD, Old, "new")] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(data_version, "made").dimension(layout.folder(OVERWORLD), LIVE, &[(0, 0)]);
        save.dimension("dimensions/twilight/forest/deep", LIVE, &[(1, 1)]).dimension("DIM7", LIVE, &[(2, 2)]);
        let (imported, exported) = dir.round("save", &[]);
        check_same(save.path(), &dir.at("out"));
        for report in [imported, exported] {
            assert_eq!(report["layout"]["twilight:forest/deep"], "dimensions");
            assert_eq!(report["layout"][OVERWORLD], layout.text());
        }
        dir.export("world", "asked", &["--layout", option]).ended(0);
        check_marks(&dir.at("asked/dimensions/twilight/forest/deep"), "live", &[(1, 1)]);
        check_marks(&dir.at("asked/DIM7"), "live", &[(2, 2)]);
        check_marks(&dir.at("asked").join(layout.other().folder(OVERWORLD)), "live", &[(0, 0)]);
    }
}

/// Whether a text says up to or from which version of the game it holds.
fn names_versions(text: &str) -> bool {
    ["26.1", "1.21"].iter().any(|version| text.contains(version))
}

/// Checks an export of a save with an option: where it puts dimensions, its exit code, and whether it warns.
#[track_caller]
fn check(save: (i32, Layout), option: &[&str], wanted: (Layout, i32, bool)) {
    let dir = TestDir::new();
    let ((data_version, met), (layout, code, warns)) = (save, wanted);
    let save = dir.save("save");
    make(&save, data_version, met);
    let imported = dir.import("save", "world", &[]).good();
    assert_eq!(imported["layout"], layouts(&VANILLA, met), "one layout has regions, so that one is live");
    assert_eq!((&imported["strays"], &imported["imported_columns"]), (&json!([]), &json!(4)));
    let exported = dir.export("world", "out", option).ended(code);
    let what = format!("{data_version} with {met:?}, {option:?}");
    assert_eq!(exported["layout"], layouts(&VANILLA, layout), "{what}");
    assert_eq!(regions(&dir.at("out")), region_files(layout), "{what}");
    assert_eq!(other_files(&dir.at("out")), other_files(save.path()), "{what}");
    check_moved(save.path(), &dir.at("out"), |name| moved(name, met, layout));
    let warnings = texts(&exported["warnings"]).concat();
    assert_eq!(!warnings.is_empty(), warns, "{what}: {warnings}");
    assert_eq!(names_versions(&warnings), warns, "{what}: which versions look there? {warnings}");
    // What a person reads says the same.
    let out = dir.at("read");
    let said = dir.cg("export", "world", &[&["--mca", text(&out)], option].concat());
    assert_eq!(said.code, code, "{what}");
    assert_eq!(names_versions(&(said.out + &said.err)), warns, "{what}");
}

#[test]
fn a_layout_goes_back_as_it_was_met_and_says_where_no_game_looks() {
    for option in [&[][..], &["--layout", "as-imported"]] {
        check((NEW, Dimensions), option, (Dimensions, 0, false));
        check((OLD, Old), option, (Old, 0, false));
        // As every export of a 26.x save by an older `cg` is, and a server's that was moved by hand.
        check((NEW, Old), option, (Old, 1, true));
        check((OLD, Dimensions), option, (Dimensions, 1, true));
    }
}

#[test]
fn a_layout_that_is_asked_for_by_name_warns_and_is_no_fault() {
    for (data_version, fits, unfit) in [(NEW, Dimensions, Old), (OLD, Old, Dimensions)] {
        for met in [Old, Dimensions] {
            let named = |layout| if layout == Old { ["--layout", "old"] } else { ["--layout", "new"] };
            check((data_version, met), &named(fits), (fits, 0, false));
            check((data_version, met), &named(unfit), (unfit, 0, true));
        }
    }
}

#[test]
fn each_dimension_has_a_layout_of_its_own() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "half moved")
        .dimension("dimensions/minecraft/overworld", LIVE, &[(0, 0)])
        .dimension("DIM-1", LIVE, &[(1, 0)])
        .dimension("dimensions/minecraft/the_end", LIVE, &[(2, 0)]);
    let imported = dir.import("save", "world", &[]).good();
    let mixed = json!({ OVERWORLD: "dimensions", NETHER: "old", VANILLA[2]: "dimensions" });
    assert_eq!(imported["layout"], mixed);
    let exported = dir.export("world", "out", &[]).ended(1);
    assert_eq!(exported["layout"], mixed);
    check_same(save.path(), &dir.at("out"));
    let warnings = texts(&exported["warnings"]).concat();
    assert!(warnings.contains("the_nether") || warnings.contains("DIM-1"), "{warnings}");
    assert!(!warnings.contains("the_end"), "{warnings}");
    let exported = dir.export("world", "new", &["--layout", "new"]).good();
    assert_eq!(exported["layout"], layouts(&VANILLA, Dimensions));
    check_marks(&dir.at("new/dimensions/minecraft/the_nether"), "live", &[(1, 0)]);
    assert!(!dir.at("new/DIM-1").exists());
}

#[test]
fn one_dimension_goes_into_its_folder_with_the_files_below_it() {
    for (data_version, layout) in [(NEW, Dimensions), (OLD, Old)] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(data_version, "made").vanilla(layout, LIVE).file("players/data/a.dat", "a");
        let folder = layout.folder(NETHER);
        for name in ["data/minecraft/raids.dat", "data/raids.dat", "paper-world.yml"] {
            save.file(&below(folder, name), name);
            save.file(&below(layout.folder(VANILLA[2]), name), "of the end");
        }
        dir.import("save", "world", &[]).good();
        let exported = dir.export("world", "out", &["-d", NETHER]).good();
        assert_eq!(exported["layout"], layouts(&[NETHER], layout));
        assert_eq!((&exported["other_files"], &exported["warnings"]), (&json!(3), &json!([])));
        assert!(
            paths(&dir.at("out")).iter().all(|name| name.starts_with(folder)),
            "{:?}",
            paths(&dir.at("out"))
        );
        check_same(&save.path().join(folder), &dir.at("out").join(folder));
    }
}

#[test]
fn one_dimension_is_no_fault_wherever_it_goes() {
    // A save whose nether is where its own game does not look.
    let dir = TestDir::new();
    dir.save("save").level(NEW, "half moved").dimension("DIM-1", LIVE, &[(1, 0)]);
    dir.import("save", "world", &[]).good();
    for (option, layout) in [("old", Old), ("new", Dimensions)] {
        dir.export("world", option, &["-d", NETHER, "--layout", option]).ended(0);
        check_marks(&dir.at(option).join(layout.folder(NETHER)), "live", &[(1, 0)]);
    }
    let exported = dir.export("world", "out", &["-d", NETHER]).ended(0);
    let layout = if exported["layout"][NETHER] == "old" { Old } else { Dimensions };
    assert_eq!(exported["layout"], layouts(&[NETHER], layout));
    check_marks(&dir.at("out").join(layout.folder(NETHER)), "live", &[(1, 0)]);
}

#[test]
fn help_and_the_page_of_the_tool_name_the_option() {
    let help = run(&["export", "--help"]).good();
    for word in ["--layout", "as-imported", "old", "new"] {
        assert!(help.contains(word), "{word}: {help}");
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tool.md");
    assert!(fs::read_to_string(page).expect("readable").contains("--layout"));
    let dir = TestDir::new();
    dir.save("save").level(NEW, "made").vanilla(Dimensions, LIVE);
    dir.import("save", "world", &[]).ended(0);
    assert_eq!(dir.export("world", "out", &["--layout", "newest"]).code, 2);
    assert!(!dir.at("out").exists());
}
