//! A side of a dimension with a region file that cannot be opened: it is not taken for an empty one.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::folder::check_marks;
use super::save::{Dimensions, LIVE, Layout, NETHER, NEW, OLD, Old, STRAY, Save};
use super::test_dir::{TestDir, list};

/// A file of the system whose end cannot be looked for, whoever asks.
const UNREADABLE: &str = "/proc/self/mem";

/// Makes a region file that cannot be opened.
fn unreadable(save: &Save, folder: &str, kind: &str) -> String {
    let name = format!("{folder}/{kind}/r.9.9.mca");
    let path = save.path().join(&name);
    fs::create_dir_all(path.parent().expect("below the save")).expect("a folder");
    symlink(UNREADABLE, path).expect("a link");
    name
}

/// The live side is the one in which the game looks, and the file that cannot be opened is named.
#[track_caller]
fn check(data_version: i32, live: Layout, unread: Layout, kind: &str) {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(data_version, "both");
    let read = unread.other();
    save.dimension(read.folder(NETHER), if read == live { LIVE } else { STRAY }, &[(3, 4)]);
    let name = unreadable(&save, unread.folder(NETHER), kind);
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!(report["layout"][NETHER], live.text(), "{report}");
    let [stray] = list(&report["strays"]) else { panic!("{report}") };
    assert_eq!(stray["folder"], live.other().folder(NETHER), "{report}");
    assert!(list(&report["unreadable"]).iter().any(|lost| lost["file"] == *name), "{name}: {report}");
    dir.export("world", "out", &["--layout", "new"]).ended(0);
    let columns = if read == live { &[(3, 4)][..] } else { &[] };
    check_marks(&dir.at("out").join(Dimensions.folder(NETHER)), "live", columns);
}

#[test]
fn a_live_side_that_cannot_be_opened_stays_live() {
    check(NEW, Dimensions, Dimensions, "region");
    check(OLD, Old, Old, "region");
}

#[test]
fn a_stray_side_that_cannot_be_opened_is_refused_by_name() {
    check(NEW, Dimensions, Old, "region");
    check(OLD, Old, Dimensions, "region");
}

#[test]
fn entities_that_cannot_be_opened_are_strays_too() {
    check(NEW, Dimensions, Old, "entities");
    // They do not make a side live.
    check(NEW, Old, Dimensions, "entities");
}

#[test]
fn strays_that_are_taken_are_named_as_well() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "both").dimension(Dimensions.folder(NETHER), LIVE, &[(3, 4)]);
    let name = unreadable(&save, "DIM-1", "region");
    let report = dir.import("save", "world", &["--take-strays"]).ended(1);
    assert_eq!((&report["strays"], &report["imported_columns"]), (&json!([]), &json!(1)));
    assert!(list(&report["unreadable"]).iter().any(|lost| lost["file"] == *name), "{report}");
}
