//! A save that a running game holds, and files that change while they are read.
#![cfg(unix)]

use std::fs::{self, File};
use std::io::Read as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use cg_anvil::import::{ImportError, ImportOptions, import};
use cg_store::prelude::*;
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::json;

use super::folder::check_same;
use super::save::{Dimensions, LIVE, NEW};
use super::test_dir::{TestDir, list, texts};
use crate::cmd::text;

const LOCK: &str = "session.lock";

fn make(dir: &TestDir) {
    dir.save("save").level(NEW, "running").vanilla(Dimensions, LIVE).file(LOCK, "☃");
}

/// As the game holds its save: a lock of this process on the whole file.
fn held(dir: &TestDir) -> File {
    let file = File::options().read(true).write(true).open(dir.at("save").join(LOCK)).expect("there");
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).expect("it is free");
    file
}

#[test]
fn a_save_that_is_held_is_imported_and_said_first() {
    let dir = TestDir::new();
    make(&dir);
    let lock = held(&dir);
    let before = lock.metadata().expect("there").modified().expect("a time");
    let done = dir.import("save", "world", &[]);
    let said: serde_json::Value = serde_json::from_str(&done.err).expect("one line of JSON");
    let warning = said["warning"].as_str().expect("a warning");
    assert!(warning.starts_with("another process holds session.lock of "), "{warning}");
    let report = done.ended(1);
    assert_eq!((&report["in_use"], &report["imported_columns"]), (&json!(true), &json!(4)));
    assert_eq!((&report["unreadable"], &report["not_carried"]), (&json!([]), &json!([])));
    // Through the same descriptor: to close another one of this file would end the lock.
    let mut content = String::new();
    (&lock).read_to_string(&mut content).expect("text");
    assert_eq!(content, "☃");
    assert_eq!(
        lock.metadata().expect("there").modified().expect("a time"),
        before,
        "it was asked without writing"
    );
    dir.export("world", "out", &[]).good();
    check_same(&dir.at("save"), &dir.at("out"));
    // A person reads it too.
    let said = dir.cg("import", "save", &[text(&dir.at("other"))]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains(LOCK) || said.err.contains("running"), "{}", said.err);
    // It is the lock that counts, not the file.
    drop(lock);
    let done = dir.import("save", "free", &[]);
    assert_ne!(done.report["in_use"], true);
    done.good();
}

#[test]
fn a_lock_that_is_free_is_no_matter() {
    let dir = TestDir::new();
    make(&dir);
    let report = dir.import("save", "world", &[]).good();
    assert_eq!(report["in_use"], json!(false));
    fs::remove_file(dir.at("save").join(LOCK)).expect("removed");
    let report = dir.import("save", "without", &[]).good();
    assert_eq!(report["in_use"], json!(false));
    assert!(!dir.at("save").join(LOCK).exists(), "the save is only read");
    for strange in ["folder", "link"] {
        let dir = TestDir::new();
        let save = dir.save("save");
        save.level(NEW, strange).vanilla(Dimensions, LIVE);
        match strange {
            "folder" => drop(save.folder(LOCK)),
            _ => std::os::unix::fs::symlink(dir.at("nowhere"), save.path().join(LOCK)).expect("a link"),
        }
        let report = dir.import("save", "world", &[]).ended(0);
        assert_eq!((&report["in_use"], &report["imported_columns"]), (&json!(false), &json!(4)), "{strange}");
        assert!(!dir.at("nowhere").exists());
    }
}

#[test]
fn a_held_save_is_said_though_other_things_are_wrong() {
    let dir = TestDir::new();
    make(&dir);
    dir.save("save").dimension("DIM-1", super::save::STRAY, &[(0, 0)]);
    let _lock = held(&dir);
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["in_use"], list(&report["strays"]).len()), (&json!(true), 1));
}

/// Changes a file as long as the import runs, and gives what the import says of it.
#[track_caller]
fn check_changing(name: &str, change: impl Fn(&File, u64) + Sync) {
    let dir = TestDir::new();
    let save = dir.save("save");
    let columns: Vec<_> = (0..300).map(|at| (at % 32, at / 32)).collect();
    save.level(NEW, "running").blocks(Dimensions.folder(super::save::OVERWORLD), LIVE, &columns);
    // Large enough that the other thread gets its turn while it is read, also on one core.
    save.file("data/minecraft/large.dat", vec![7; 48 << 20]);
    let file = File::options().append(true).open(save.path().join(name)).expect("there");
    let is_done = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        scope.spawn(|| {
            for count in 0.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                change(&file, count);
            }
        });
        let done = dir.import("save", "world", &[]);
        is_done.store(true, Ordering::Relaxed);
        done
    });
    let report = done.ended(1);
    let unreadable = list(&report["unreadable"]);
    let named: Vec<_> = unreadable.iter().filter(|lost| lost["file"] == name).collect();
    assert_eq!(named.len(), 1, "{name} is named once: {report}");
    let reason = texts(&json!([named[0]["reason"]])).concat();
    assert!(reason.contains("length or time changed while it was read"), "{reason}");
    assert_eq!(unreadable.len(), 1, "{report}");
}

#[test]
fn a_file_that_changes_while_it_is_read_is_named() {
    let touch = |file: &File, count: u64| {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + count);
        file.set_modified(time).expect("the file is ours");
    };
    check_changing("dimensions/minecraft/overworld/region/r.0.0.mca", touch);
    check_changing("data/minecraft/large.dat", touch);
}

#[test]
fn a_file_that_grows_while_it_is_read_is_named() {
    let grow = |mut file: &File, _| {
        std::io::Write::write_all(&mut file, b"x").expect("the disk takes it");
    };
    check_changing("data/minecraft/large.dat", grow);
    check_changing("dimensions/minecraft/overworld/region/r.0.0.mca", grow);
}

/// Puts a property of a world, and gives what it was.
fn put(dir: &TestDir, name: &str, bytes: Option<Vec<u8>>) -> Option<Vec<u8>> {
    let world = crate::held::open(&dir.at("world"));
    let property = Property::Named(Name::new(name).expect("a name"));
    let before = world.property(&property).expect("no damage");
    let done = world.transaction(|tx| {
        tx.set_property(property, bytes);
        Ok::<_, Error>(())
    });
    done.expect("committed");
    world.close().expect("closed");
    before
}

#[test]
fn a_save_that_was_held_in_an_earlier_run_is_said_by_the_last() {
    let dir = TestDir::new();
    make(&dir);
    let world =
        World::builder().options(&WorldOptions::process()).create(dir.at("world")).expect("a new world");
    let options = ImportOptions { stop_after_transactions: Some(1), ..ImportOptions::default() };
    let error = import(&dir.at("save"), &world, &options, |_| {}).expect_err("it has more to write");
    assert!(matches!(error, ImportError::Stopped(1)), "{error}");
    world.close().expect("closed");
    drop(world);
    // The second run ends before its first transaction.
    let progress = put(&dir, "minecraft:import/0", Some(b"damaged".to_vec()));
    let lock = held(&dir);
    let done = dir.import("save", "world", &[]);
    assert!(done.code != 0 && done.err.contains("minecraft:import/0"), "{done:?}");
    drop(lock);
    put(&dir, "minecraft:import/0", progress);
    let report = dir.import("save", "world", &[]).ended(1);
    assert_eq!((&report["in_use"], &report["imported_columns"]), (&json!(true), &json!(4)));
}
