//! Slots whose place or length is none: what the file has of them is kept.
#![expect(clippy::big_endian_bytes, reason = "region files are big-endian by their own definition")]

use std::fs;
use std::path::Path;

use serde_json::json;

use super::super::save::{LIVE, OLD, column, document};
use super::super::test_dir::{TestDir, list};
use super::faults::{self, raw_slots};
use super::{info, number};

/// Writes a word of the header.
fn patch(path: &Path, at: usize, word: u32) {
    let mut bytes = fs::read(path).expect("readable");
    bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
    fs::write(path, bytes).expect("written");
}

/// A save of five columns in a row, in sectors 2 to 6.
fn make(dir: &TestDir) -> std::path::PathBuf {
    let save = dir.save("save");
    save.level(OLD, "header").folder("region");
    let path = save.path().join("region/r.0.0.mca");
    let slots: Vec<_> = (0..5).map(|x| faults::slot_of((x, 0), &document(&column((x, 0), LIVE)))).collect();
    faults::write(&path, &slots);
    path
}

#[test]
fn lengths_and_places_that_are_none_go_back() {
    let dir = TestDir::new();
    let path = make(&dir);
    // Past the end, in the header, a length of 0, one that reaches past the end.
    patch(&path, 0, 500 << 8 | 3);
    patch(&path, 4, 1 << 8 | 1);
    patch(&path, 4 * 4096, 0);
    patch(&path, 5 * 4096, u32::MAX);
    let imported = dir.import("save", "world", &[]).ended(1);
    assert_eq!(
        (number(&imported, "kept_slots"), number(&imported, "imported_columns")),
        (4, 1),
        "{imported}"
    );
    assert_eq!(info(&dir, "world")["objects"], json!(4));
    let exported = dir.export("world", "out", &[]).ended(0);
    assert_eq!(number(&exported, "kept_slots"), 4);
    let out = dir.at("out/region/r.0.0.mca");
    let (before, after) = (raw_slots(&path), raw_slots(&out));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    for slot in 0..4 {
        assert!(before[&slot] == after[&slot], "slot {slot}: {:?} became {:?}", before[&slot], after[&slot]);
    }
    assert_eq!(dir.import("out", "again", &[]).ended(1)["kept_slot_bytes"], imported["kept_slot_bytes"]);
    assert_eq!(dir.hash("again"), dir.hash("world"));
}

#[test]
fn of_a_file_that_was_cut_the_bytes_before_the_cut_go_back() {
    let dir = TestDir::new();
    let path = make(&dir);
    let mut bytes = fs::read(&path).expect("readable");
    bytes.truncate(6 * 4096 + 50);
    fs::write(&path, &bytes).expect("written");
    let imported = dir.import("save", "world", &[]).ended(1);
    assert_eq!((number(&imported, "kept_slots"), number(&imported, "imported_columns")), (1, 4));
    dir.export("world", "out", &[]).ended(0);
    let (_, cut, _) = &raw_slots(&dir.at("out/region/r.0.0.mca"))[&4];
    assert_eq!((&cut[..50], cut[50..].iter().all(|byte| *byte == 0)), (&bytes[6 * 4096..], true));
    // Only what is said of it differs: that the file ends is no longer to be seen.
    dir.import("out", "again", &[]).ended(1);
    dir.export("again", "out again", &[]).ended(0);
    let [first, second] = ["out", "out again"].map(|out| raw_slots(&dir.at(out).join("region/r.0.0.mca")));
    assert_eq!(first[&4], second[&4]);
}

#[test]
fn slots_that_share_a_sector_multiply_nothing() {
    let dir = TestDir::new();
    let path = make(&dir);
    for slot in 0..1024 {
        patch(&path, slot * 4, 2 << 8 | 255);
    }
    let imported = dir.import("save", "world", &[]).ended(1);
    assert_eq!(number(&imported, "kept_slots"), 1024);
    assert!(number(&imported, "kept_slot_bytes") < 300 * 1024, "{imported}");
    // They were one slot's bytes: none of them can go back, and the export says so.
    let exported = dir.export("world", "out", &[]).ended(1);
    assert_eq!(exported["not_exported"], json!({ "slots whose bytes are not kept": 1024 }));
    let [reason] = list(&imported["reasons"]) else { panic!("{imported}") };
    assert_eq!(reason["reason"], "1024 slots point at sector 2, where one belongs");
}

#[test]
fn overlapping_slots_keep_no_more_than_four_times_the_file() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(OLD, "overlap").folder("region");
    let path = save.path().join("region/r.0.0.mca");
    // Each slot begins in a sector of its own and says that it takes the next 255, with a length that is none.
    let mut bytes = vec![0x55; (2 + 1024) * 4096];
    for slot in 0..1024_usize {
        bytes[slot * 4..slot * 4 + 4].copy_from_slice(&((2 + slot as u32) << 8 | 255).to_be_bytes());
        bytes[4096 + slot * 4..4096 + slot * 4 + 4].copy_from_slice(&[0; 4]);
        let at = (2 + slot) * 4096;
        bytes[at..at + 4].copy_from_slice(&u32::MAX.to_be_bytes());
    }
    fs::write(&path, &bytes).expect("written");
    let imported = dir.import("save", "world", &[]).ended(1);
    assert_eq!(number(&imported, "kept_slots"), 1024);
    let file_bytes = bytes.len() as u64;
    assert!(number(&imported, "kept_slot_bytes") < 4 * file_bytes + (1 << 20), "{imported}");
    dir.export("world", "out", &[]).ended(0);
    let out = fs::metadata(dir.at("out/region/r.0.0.mca")).expect("a file").len();
    assert!(out < 5 * file_bytes, "{out}");
}
