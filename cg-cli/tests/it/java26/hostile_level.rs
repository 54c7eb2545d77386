//! Saves that somebody made to do harm: nothing crashes, waits or fills memory.
#![cfg(unix)]

use std::fs;
use std::io::{Read, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cg_anvil::nbt;
use serde_json::json;

use super::folder::check_same;
use super::save::{Dimensions, LIVE, NEW, Old, level};
use super::test_dir::TestDir;
use crate::cmd::text;
use crate::long::size;
use crate::maker;

/// Most time that an import of a hostile save may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Above what any import of a few columns takes, far below what the made files promise.
const MEMORY_KIB: u64 = 700 << 10;

/// Imports the save `save`, which has to end by itself, in time, and within its memory.
#[track_caller]
fn import(dir: &TestDir, what: &str, options: &[&str]) -> serde_json::Value {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cg"))
        .args(["import", text(&dir.at("save")), text(&dir.at("world")), "--json"])
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("cg is built with the tests");
    let begun = Instant::now();
    let [program, status] = ["exe", "status"].map(|name| format!("/proc/{}/{name}", child.id()));
    let mut peak_kib = 0;
    let ended = loop {
        // For a moment after it is spawned, a process still has the memory of this one.
        let is_cg = fs::read_link(&program).is_ok_and(|program| program.ends_with("cg"));
        let highest = if is_cg { fs::read_to_string(&status).unwrap_or_default() } else { String::new() };
        let highest = highest
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
        peak_kib = peak_kib.max(highest.unwrap_or(0));
        match child.try_wait().expect("a child") {
            Some(ended) => break Some(ended),
            None if begun.elapsed() > PATIENCE => break None,
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    if ended.is_none() {
        child.kill().expect("killed");
    }
    let (mut out, mut err) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut out).expect("text");
    child.stderr.take().expect("piped").read_to_string(&mut err).expect("text");
    child.wait().expect("reaped");
    let ended = ended.unwrap_or_else(|| panic!("{what}: it waits"));
    assert!(matches!(ended.code(), Some(0 | 1)), "{what}: {ended}: {err}");
    assert!(peak_kib < MEMORY_KIB, "{what}: {peak_kib} KiB");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{what}: {error}: {out}"))
}

/// A save with this `level.dat` arrives but for what that says, and the file goes back.
#[track_caller]
fn check_level(what: &str, bytes: &[u8]) {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.file("level.dat", bytes).vanilla(Old, LIVE);
    let report = import(&dir, what, &[]);
    assert_eq!((&report["imported_columns"], &report["imported_files"]), (&json!(4), &json!(1)), "{what}");
    // Whether this is where the game looks depends on what the file says.
    let exported = dir.export("world", "out", &[]);
    assert!([0, 1].contains(&exported.code), "{what}: {}", exported.err);
    assert_eq!(exported.report["columns"], 4, "{what}");
    check_same(save.path(), &dir.at("out"));
    // Nothing but the stored file says how it goes back.
    for key in dir.objects("world", "minecraft/layout") {
        dir.cg("object delete", "world", &[&key, "--yes"]).good();
    }
    let exported = dir.export("world", "without a record", &[]);
    assert!([0, 1].contains(&exported.code), "{what}: {}", exported.err);
    assert_eq!(exported.report["columns"], 4, "{what}");
    dir.dimensions("world");
}

/// A root with a `Data` compound that begins so.
fn data(fields: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x0a\0\0\x0a\0\x04Data".to_vec();
    bytes.extend(fields);
    bytes
}

/// A field whose count promises this much, and a few bytes of it.
fn claim(tag: u8, element: Option<u8>, count: i32) -> Vec<u8> {
    let mut field = vec![tag, 0, 1, b'x'];
    field.extend(element);
    field.extend([24, 16, 8, 0].map(|by| (count >> by) as u8));
    field.extend([0; 64]);
    field
}

#[test]
fn a_level_of_anything_does_no_harm() {
    check_level("nothing", b"");
    check_level("text", b"not NBT at all");
    check_level("gzip of nothing", &maker::gzip(b""));
    check_level("gzip of text", &maker::gzip(b"not NBT at all"));
    check_level("a cut one", &level(NEW, "cut")[..40]);
    check_level("no Data", &maker::gzip(&nbt::document(|root| root.int("DataVersion", NEW))));
    check_level("Data that is a number", &maker::gzip(&nbt::document(|root| root.int("Data", NEW))));
    let strange = nbt::document(|root| {
        root.compound("Data", |data| {
            data.string("DataVersion", "4788").expect("short");
            data.int("LevelName", 7);
        });
    });
    check_level("fields of other kinds", &maker::gzip(&strange));
    for version in [i32::MIN, -1, i32::MAX] {
        check_level(&format!("version {version}"), &level(version, ""));
    }
    check_level("a name of 60,000 bytes", &level(NEW, &"\u{1b}".repeat(30_000)));
}

#[test]
fn a_level_that_promises_gigabytes_takes_no_memory() {
    for (what, tag, element) in [
        ("bytes", 7, None),
        ("ints", 11, None),
        ("longs", 12, None),
        ("a list of bytes", 9, Some(1)),
        ("a list of longs", 9, Some(4)),
        ("a list of compounds", 9, Some(10)),
        ("a list of lists", 9, Some(9)),
        ("a list of nothing", 9, Some(0)),
    ] {
        for count in size(&[i32::MAX][..], &[i32::MAX, 3 << 28]) {
            let bytes = data(&claim(tag, element, *count));
            check_level(&format!("{count} of {what}"), &maker::gzip(&bytes));
        }
    }
    let deep = [b"\x0a\0\x01a".repeat(200_000), vec![0; 200_000]].concat();
    check_level("compounds in compounds", &maker::gzip(&data(&deep)));
    let lists = [b"\x09\0\x01a".to_vec(), b"\x09\0\0\0\x01".repeat(200_000), vec![0; 9]].concat();
    check_level("lists in lists", &maker::gzip(&data(&lists)));
}

#[test]
fn a_level_that_grows_when_it_is_unpacked_takes_no_memory() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut head = data(&claim(7, None, 1 << 30));
    head.truncate(head.len() - 64);
    packed.write_all(&head).expect("memory");
    let zeros = vec![0; 1 << 20];
    for _ in 0..1 << 10 {
        packed.write_all(&zeros).expect("memory");
    }
    packed.write_all(b"\x03\0\x0bDataVersion\0\0\x12\xb4\0\0").expect("memory");
    check_level("a gigabyte of zeros", &packed.finish().expect("memory"));
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    for name in ["level.dat", "level.dat_old", "session.lock", "dimensions/minecraft/the_nether/data/x.dat"] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.vanilla(Dimensions, LIVE).file(name, "");
        fs::remove_file(save.path().join(name)).expect("there");
        let made = Command::new("mkfifo").arg(save.path().join(name)).status();
        assert!(made.is_ok_and(|status| status.success()), "a pipe");
        assert_eq!(import(&dir, name, &[])["imported_columns"], 4, "{name}");
    }
    let dir = TestDir::new();
    dir.save("save").vanilla(Dimensions, LIVE).folder("level.dat/region");
    assert_eq!(import(&dir, "a folder", &[])["imported_columns"], 4);
}

#[test]
fn a_level_that_is_longer_than_that_of_the_world_is_not_read_whole() {
    let dir = TestDir::new();
    let save = dir.save("save");
    save.level(NEW, "first").vanilla(Dimensions, LIVE);
    dir.import("save", "world", &[]).good();
    // A gigabyte that takes no room on the disk.
    fs::File::create(save.path().join("level.dat")).and_then(|file| file.set_len(1 << 30)).expect("a file");
    let report = import(&dir, "a gigabyte of zeros", &["--merge", "replace"]);
    assert_eq!(report["replaced_level"]["was"]["name"], "first");
    assert_eq!(report["replaced_level"]["is"], json!(null));
}
