//! Worlds whose objects say other things than an import wrote: an export stays inside its folder.

use std::fs;

use cg_anvil::nbt;
use serde_json::json;

use super::folder::{check_same, paths};
use super::save::{Dimensions, LIVE, NEW, STRAY, VANILLA};
use super::test_dir::TestDir;
use crate::cmd::text;
use crate::long::size;

/// A world whose strays were taken, so that its records name folders.
fn with_records(dir: &TestDir) -> Vec<String> {
    let save = dir.save("save");
    save.level(NEW, "both").vanilla(Dimensions, LIVE).dimension("DIM-1", STRAY, &[(70, 70)]);
    save.dimension("DIM1", STRAY, &[(70, 70)]);
    dir.import("save", "world", &["--take-strays"]).good();
    let keys = dir.objects("world", "minecraft/layout");
    assert_ne!(keys, [""; 0], "the import left no record");
    keys
}

/// The bytes of an object.
fn bytes(dir: &TestDir, key: &str) -> Vec<u8> {
    let to = dir.at("bytes");
    let _before = fs::remove_file(&to);
    dir.cg("object get", "world", &[key, "--to", text(&to)]).good();
    fs::read(to).expect("written")
}

fn put(dir: &TestDir, key: &str, bytes: &[u8]) {
    fs::write(dir.at("bytes"), bytes).expect("written");
    dir.cg("object put", "world", &[key, "--from", text(&dir.at("bytes"))]).good();
}

/// All that is live comes out, and nothing leaves the export's folder.
#[track_caller]
fn check_contained(dir: &TestDir, what: &str) {
    // Deep enough that a few steps up still end in this test's own directory.
    let out = "a/b/c/out";
    fs::create_dir_all(dir.at("a/b/c")).expect("a folder");
    let done = dir.export("world", out, &["--layout", "new"]);
    assert!([0, 1].contains(&done.code), "{what}: {}", done.err);
    assert!(done.report["columns"].as_u64() >= Some(4), "{what}: {}", done.report);
    for name in paths(&dir.at("a")) {
        assert!(name.starts_with("b/c/out/"), "{what}: {name} is outside");
    }
    for dimension in VANILLA {
        let folder = Dimensions.folder(dimension);
        check_same(&dir.at("save").join(folder), &dir.at(out).join(folder));
    }
    let read = dir.export("world", "a/b/c/read", &[]);
    assert!([0, 1].contains(&read.code), "{what}: {}", read.err);
    let all = paths(&dir.at("a"));
    assert!(
        all.iter().all(|name| ["b/c/out/", "b/c/read/"].iter().any(|own| name.starts_with(own))),
        "{what}: {all:?}"
    );
    dir.dimensions("world");
    fs::remove_dir_all(dir.at("a")).expect("ours");
}

#[test]
fn a_record_of_garbage_leads_nowhere() {
    let dir = TestDir::new();
    let keys = with_records(&dir);
    let whole: Vec<_> = keys.iter().map(|key| bytes(&dir, key)).collect();
    let texts: [&[u8]; 7] = [
        b"",
        b"old",
        b"../../evil",
        b"/",
        b"\0",
        b"{\"folder\":\"../../evil\"}",
        b"\xff\xfe\xfd\xfc\xfb\xfa",
    ];
    for text in texts {
        for key in &keys {
            put(&dir, key, text);
        }
        check_contained(&dir, &text.escape_ascii().to_string());
    }
    // Each cut short, and made longer.
    for cut in [true, false] {
        for (key, whole) in keys.iter().zip(&whole) {
            let bytes = if cut { whole[..whole.len() / 2].to_vec() } else { [whole, &b"more"[..]].concat() };
            put(&dir, key, &bytes);
        }
        check_contained(&dir, if cut { "cut" } else { "longer" });
    }
    // Whole, but with a folder of the same length that leads out.
    for (folder, evil) in [("DIM-1", "../ev"), ("DIM1", "../e"), ("DIM1", "/ev/"), ("DIM-1", "a\0b/c")] {
        for (key, whole) in keys.iter().zip(&whole) {
            let mut bytes = whole.clone();
            while let Some(at) = bytes.windows(folder.len()).position(|found| found == folder.as_bytes()) {
                bytes[at..at + folder.len()].copy_from_slice(evil.as_bytes());
            }
            put(&dir, key, &bytes);
        }
        check_contained(&dir, &format!("{evil:?} for {folder}"));
    }
}

#[test]
fn a_record_of_a_byte_that_is_wrong_leads_nowhere() {
    let dir = TestDir::new();
    let keys = with_records(&dir);
    let wholes: Vec<_> = keys.iter().map(|key| bytes(&dir, key)).collect();
    let longest = wholes.iter().map(Vec::len).max().expect("a record");
    // Some places, of all records at once.
    for at in (0..longest).step_by((longest / size(6, 20)).max(1)) {
        for (key, whole) in keys.iter().zip(&wholes) {
            let mut bytes = whole.clone();
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 0x55;
            }
            put(&dir, key, &bytes);
        }
        check_contained(&dir, &format!("byte {at}"));
    }
}

#[test]
fn records_of_what_is_no_dimension_lead_nowhere() {
    let dir = TestDir::new();
    let keys = with_records(&dir);
    let whole = bytes(&dir, keys.iter().find(|key| key.contains("nether")).unwrap_or(&keys[0]));
    for key in [
        "minecraft/layout",
        "minecraft/layout/",
        "minecraft/layout/../../evil",
        "minecraft/layout/a:../../evil",
        "minecraft/layout/minecraft:nowhere",
        "minecraft/layout/minecraft:the_nether/more",
        "hex:6d696e6563726166742f6c61796f75742fff00fe",
    ] {
        put(&dir, key, &whole);
    }
    put(&dir, &format!("minecraft/layout/{}", "x".repeat(400)), &whole);
    check_contained(&dir, "records of nothing");
}

#[test]
fn what_is_kept_of_old_chunks_and_points_leads_nowhere_either() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "plain").vanilla(Dimensions, LIVE);
    dir.import("save", "plain", &[]).good();
    let old =
        nbt::document(|root| root.compound("Level", |level| level.raw_compounds("Sections", [].into_iter())));
    save.slots("dimensions/minecraft/the_nether/region", [((64, 64), old, 1_300_000_000)]);
    save.points("dimensions/minecraft/overworld", LIVE, &[(64, 64)]);
    dir.import("save", "world", &[]).good();
    let plain = dir.objects("plain", "minecraft/");
    let mut keys = dir.objects("world", "minecraft/");
    keys.retain(|key| !plain.contains(key));
    assert_eq!(keys.len(), 2, "one of the old chunk and one of the points: {keys:?}");
    for garbage in [&b""[..], b"garbage", &[0x0a; 40]] {
        for key in &keys {
            put(&dir, key, garbage);
        }
        let report = dir.export("world", "out", &[]).ended(1);
        assert_ne!(report["not_exported"], json!({}), "what cannot be put back is counted");
        assert_eq!(report["columns"], 4);
        let left = paths(&dir.at("out")).into_iter().filter(|name| name.contains("r.2.2")).count();
        assert_eq!(left, 0, "{:?}", paths(&dir.at("out")));
        fs::remove_dir_all(dir.at("out")).expect("ours");
    }
}
