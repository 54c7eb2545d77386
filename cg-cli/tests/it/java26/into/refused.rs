//! Refusals: a held save, columns of a newer game, damaged columns, and options that do not go together.

use std::fs::{self, File};
use std::thread;
use std::time::Duration;

use cg_anvil::export::into::{IntoOptions, IntoProgress, export_into};
use cg_format::Space;
use cg_format::{BlockBox, BlockPos, ChunkAt, ChunkPos, Dimension, key};
use cg_store::World;
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::json;

use super::super::folder::copy;
use super::super::save::{Dimensions, LIVE, NETHER, NEW, OLD, OVERWORLD, Old, level};
use super::super::test_dir::TestDir;
use super::{BOXES, PUT, check_put, counts, files, make};
use crate::cmd::{run, text};

/// The save's lock, as a game holds it.
fn held(dir: &TestDir) -> File {
    let lock = File::options().write(true).open(dir.at("save/session.lock")).expect("there");
    fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).expect("it is free");
    lock
}

#[test]
fn a_save_that_a_game_holds_is_refused_and_nothing_is_written() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let lock = held(&dir);
    let wanted = format!(
        "another process holds session.lock of {}: stop the game or server that has the save open, and run this again",
        dir.at("save").canonicalize().expect("there").display()
    );
    for options in [&[][..], &["--dry-run"]] {
        let done = dir.put_into("world", "save", &BOXES, options);
        assert_eq!(done.code, 3, "{}", done.err);
        assert!(done.err.contains(&wanted), "{}", done.err);
    }
    // As a whole: to read the lock's file here would end the lock.
    drop(lock);
    assert!(files(&dir.at("save")) == files(&dir.at("was")));
    dir.put_into("world", "save", &BOXES, &[]).good();
    assert_eq!(fs::read_to_string(dir.at("save/session.lock")).expect("there"), "☃");
    // A save without the file gets an empty one, as if a game were about to write it.
    fs::remove_file(dir.at("save/session.lock")).expect("there");
    dir.put_into("world", "save", &BOXES, &["--dry-run"]).good();
    assert!(!dir.at("save/session.lock").exists());
    dir.put_into("world", "save", &BOXES, &[]).good();
    assert_eq!(fs::read(dir.at("save/session.lock")).expect("there"), b"");
}

#[test]
fn it_waits_for_a_game_that_has_the_save() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let lock = held(&dir);
    let game = thread::spawn(move || {
        thread::sleep(Duration::from_millis(1500));
        drop(lock);
    });
    let done = dir.put_into("world", "save", &BOXES, &["--wait", "60"]);
    game.join().expect("it ends");
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(
        done.err.contains("session.lock") && done.err.contains("waiting for 60 s at most"),
        "{}",
        done.err
    );
}

#[test]
fn a_backup_that_cannot_be_made_is_told_from_the_save() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let was = files(&dir.at("save"));
    fs::write(dir.at("save.cg-replaced-1.part"), "in the way of the folder").expect("written");
    let done = dir.put_into("world", "save", &BOXES, &[]);
    assert_eq!(done.code, 1, "{}", done.err);
    let save = dir.at("save").canonicalize().expect("there");
    let wanted = format!("cannot keep what is replaced beside {}: ", save.display());
    assert!(done.err.contains(&wanted) && done.err.contains("(--no-backup does without)"), "{}", done.err);
    assert!(files(&dir.at("save")) == was);
}

#[test]
fn a_servers_own_saves_are_named() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    for name in ["world", "world_nether"] {
        copy(&dir.at("save"), &dir.at("server").join(name));
    }
    let said = dir.put_into("world", "server", &BOXES, &[]).refused();
    let wanted =
        "columns are put into the folder of a whole save, and it holds the saves world, world_nether";
    assert!(said.contains(wanted), "{said}");
    fs::remove_dir_all(dir.at("server/world/dimensions/minecraft/the_nether")).expect("there");
    let report = dir.put_into("world", "server/world", &BOXES, &["-d", NETHER, "--dry-run"]).ended(1);
    let root = dir.at("server").canonicalize().expect("there");
    let wanted = format!(
        "the save had no {NETHER}, and a server that keeps it in {} does not look into dimensions/minecraft/the_nether/region/",
        root.join("world_nether").display()
    );
    assert_eq!(report["warnings"], json!([wanted]));
}

#[test]
fn a_game_is_kept_out_while_columns_are_put() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let world = World::builder().open_read_only(dir.at("world")).expect("sound");
    let options = IntoOptions {
        dimension: OVERWORLD.to_owned(),
        boxes: vec![BlockBox::new(BlockPos::new(0, 0, 0), BlockPos::new(0, 0, 0))],
        ..IntoOptions::default()
    };
    let mut asked = 0;
    let done = export_into(&world, &dir.at("save"), &options, |now| {
        if let IntoProgress::Changes(_) = now {
            asked += 1;
            let said =
                run(&["import", text(&dir.at("save")), text(&dir.at(format!("other {asked}"))), "--json"]);
            assert!(said.err.contains("another process holds session.lock"), "{}", said.err);
        }
    });
    assert!(done.expect("put").is_whole() && asked >= 3, "{asked}");
}

#[test]
fn columns_of_a_newer_game_are_left_out_unless_they_are_allowed() {
    let dir = TestDir::new();
    make(&dir, Old, OLD);
    let report = dir.put_into("world", "save", &BOXES, &[]).ended(1);
    let newer = |(x, z)| json!({ "x": x, "z": z, "data_version": NEW });
    assert_eq!(
        report["newer_columns"],
        json!({ "count": 3, "first": [newer((-1, 33)), newer((1, 0)), newer((40, 2))] })
    );
    assert_eq!((&report["columns"], &report["files"]), (&counts(0, 0, 0, 0), &json!(0)));
    check_put(&dir, "", &[]);
    assert!(!dir.at("save.cg-replaced-1").exists());
    // Of no version, as of one that cannot be read, nothing is known.
    fs::write(dir.at("save/level.dat"), "no level").expect("written");
    assert_eq!(dir.put_into("world", "save", &BOXES, &[]).ended(1)["newer_columns"]["count"], 3);
    fs::write(dir.at("save/level.dat_old"), level(NEW - 1, "world")).expect("written");
    assert_eq!(
        dir.put_into("world", "save", &BOXES, &["-d", "overworld"]).ended(1)["newer_columns"]["count"],
        3
    );
    fs::remove_file(dir.at("save/level.dat_old")).expect("there");
    fs::write(dir.at("save/level.dat"), level(OLD, "world")).expect("written");
    let said = run(&words(&dir, &["--into", text(&dir.at("save")), "--box", "16", "0", "0", "16", "0", "0"]));
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains("left out, as their game is newer than the save's: columns 1, the first (1, 0) of DataVersion 4788; --allow-newer puts them\n"),
        "{}",
        said.out
    );
    dir.put_into("world", "save", &BOXES, &["--allow-newer"]).good();
    check_put(&dir, "", &PUT);
}

#[test]
fn a_column_of_which_a_chunk_is_damaged_is_left_out_with_all_that_belongs_to_it() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(1, 4, 0));
    dir.spoil("world", Space::ChunkL0, &key::chunk(at));
    let report = dir.put_into("world", "save", &BOXES, &[]).ended(1);
    assert_eq!((&report["columns"], &report["entity_slots"]), (&counts(0, 2, 0, 0), &counts(0, 2, 0, 0)));
    let damaged = |is_written| json!([{ "dimension": OVERWORLD, "x": 1, "z": 0, "sections": [4], "is_written": is_written }]);
    assert_eq!((&report["damaged_columns"], &report["kept_columns"]), (&damaged(false), &json!(0)));
    check_put(&dir, Dimensions.folder(OVERWORLD), &PUT[1..]);
}

#[test]
fn what_is_no_save_is_refused() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    for (save, wanted) in [
        ("", " is no save, as it holds no level.dat; columns are put into the folder of a whole save"),
        ("save/dimensions/minecraft/overworld", "overworld is no save, as it holds no level.dat"),
        ("save/level.dat", "level.dat is no save, as it holds no level.dat"),
    ] {
        let said = dir.put_into("world", save, &BOXES, &[]).refused();
        assert!(said.contains(wanted), "{said}");
    }
    let absent = dir.put_into("world", "nowhere", &BOXES, &[]);
    assert_eq!(absent.code, 4, "{}", absent.err);
    assert!(absent.err.contains("nowhere is not there"), "{}", absent.err);
    let said = dir.put_into("world", "save", &BOXES, &["-d", "twilight"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("the world has no dimension `twilight`"), "{}", said.err);
    fs::remove_file(dir.at("save/session.lock")).expect("there");
    fs::create_dir(dir.at("save/session.lock")).expect("made");
    let done = dir.put_into("world", "save", &BOXES, &[]);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("session.lock: Is a directory"), "{}", done.err);
    fs::remove_dir(dir.at("save/session.lock")).expect("there");
}

#[test]
fn dimensions_that_no_game_looks_for_are_refused() {
    let dir = TestDir::new();
    let save = dir.save("before");
    save.level(NEW, "world").blocks("", LIVE, &[(0, 0)]).blocks(
        Dimensions.folder(OVERWORLD),
        LIVE,
        &[(0, 0)],
    );
    dir.import("before", "world", &["--take-strays"]).good();
    let said = dir.put_into("world", "before", &[[0; 6]], &["-d", "stray:overworld"]).refused();
    assert!(
        said.contains("no game looks for a dimension `stray:overworld` in a folder of its own"),
        "{said}"
    );
}

/// The words of an export of the world with these.
fn words<'a>(dir: &TestDir, rest: &[&'a str]) -> Vec<&'a str> {
    let world: &'a str = Box::leak(text(&dir.at("world")).to_owned().into_boxed_str());
    ["export", world].into_iter().chain(rest.iter().copied()).collect()
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let dir = TestDir::new();
    make(&dir, Dimensions, NEW);
    let area = ["--box", "0", "0", "0", "1", "1", "1"];
    let (into, mca) = (["--into", "save"], ["--mca", "out"]);
    for (rest, wanted) in [
        ([&into[..], &mca, &area].concat(), "the argument '--into <SAVE>' cannot be used with '--mca <DIR>'"),
        (
            [&into[..], &area, &["--layout", "old"]].concat(),
            "the argument '--into <SAVE>' cannot be used with '--layout <LAYOUT>'",
        ),
        (into.to_vec(), "--box <X0> <Y0> <Z0> <X1> <Y1> <Z1>"),
        (vec![], "--mca <DIR>"),
        (area.to_vec(), "--into <SAVE>"),
        ([&mca[..], &area].concat(), "cannot be used with"),
        ([&mca[..], &["--dry-run"]].concat(), "cannot be used with"),
        ([&mca[..], &["--no-backup"]].concat(), "cannot be used with"),
        ([&mca[..], &["--replace-entities"]].concat(), "cannot be used with"),
        ([&mca[..], &["--allow-newer"]].concat(), "cannot be used with"),
        ([&into[..], &into, &area].concat(), "cannot be used multiple times"),
        ([&into[..], &["--box", "0", "0", "0", "1", "1"]].concat(), "6 values required"),
    ] {
        let said = run(&words(&dir, &rest));
        assert_eq!(said.code, 2, "{rest:?}: {}", said.err);
        assert!(said.err.contains(wanted), "{rest:?}: {}", said.err);
    }
    assert!(files(&dir.at("save")) == files(&dir.at("was")) && !dir.at("out").exists());
}
