//! `cg archive` and `cg restore`: everything there and back, streams, damage, refusals, kills.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cg_format::key;
use cg_store::directory::{self, State, WorldFile};
use cg_store::engine::{Budget, Engine as _, Family, RocksEngine, RocksOptions, SealedRow};
use cg_store::prelude::*;
use serde_json::json;

use super::copy::{enlarge, rows};
use super::{GROUND, Sample, run, text};

/// A sample with every kind of thing.
fn full() -> Sample {
    let sample = Sample::new();
    sample.cg("object put", &["avatar/7", "--text", "red hat"]).good();
    sample.cg("object put", &["avatar/7", "--text", "blue hat"]).good();
    sample.cg("records add", &["--at", "4", "70", "-9", "--kind", "game:seen", "--text", "a fox"]).good();
    sample.cg("settings", &["name=Isle", "seed=7"]).good();
    let area = ["--box", "0", "64", "-16", "15", "79", "-1"];
    sample.cg("snapshot create", &[&["before"][..], &area].concat()).good();
    let world = sample.open();
    let weather = Property::of_key(b"game:weather").expect("a name");
    let set = world.transaction(|tx| {
        tx.set_property(weather, Some(b"rain".to_vec()));
        Ok::<_, Error>(())
    });
    set.expect("commits");
    world.close().expect("the disk takes it");
    sample
}

fn archived(sample: &Sample, name: &str) -> PathBuf {
    let file = sample.beside(name);
    sample.cg("archive", &[text(&file)]).good();
    file
}

#[test]
fn an_archive_holds_everything_and_gives_it_back() {
    let sample = full();
    let (from, file, to) = (sample.path(), sample.beside("w.cgw"), sample.beside("restored"));
    let said = sample.cg("archive", &[text(&file), "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let all = rows(&from);
    let commit = sample.open().last_commit().get();
    let row_bytes = said.json()["row_bytes"].clone();
    // Its own in each world: the newest commit.
    let expected = json!({
        "commit": commit, "rows": all.len() - 1, "row_bytes": row_bytes, "damaged": 0,
        "bytes": fs::metadata(&file).expect("it is there").len(),
    });
    assert_eq!(said.json(), expected);
    let said = run(&["restore", text(&file), text(&to), "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let expected = json!({
        "world": text(&to), "commit": commit, "rows": all.len() - 1, "bytes": row_bytes, "continued": false,
    });
    assert_eq!(said.json(), expected);
    assert!(rows(&to) == all);
    let hash = |world: &Path| run(&["hash", text(world), "--all"]).good();
    assert_eq!(hash(&to), hash(&from));
    assert_eq!(run(&["verify", text(&to)]).code, 0);
    assert_eq!(WorldFile::read(&to).expect("it is whole").state, State::Checkpoint);
    assert!(
        run(&["object", "get", text(&to), "avatar/7"]).good().ends_with("version 1, 8 bytes\nblue hat\n")
    );
}

#[test]
fn standard_streams_carry_the_same_bytes() {
    let sample = full();
    let file = archived(&sample, "w.cgw");
    let path = sample.path();
    let output = Command::new(env!("CARGO_BIN_EXE_cg")).args(["archive", text(&path), "-"]).output();
    let output = output.expect("cg is built with the tests");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout == fs::read(&file).expect("it is there"));
    let said = String::from_utf8(output.stderr).expect("cg prints UTF-8");
    assert!(said.starts_with("archived ") && said.ends_with('\n'), "{said}");

    let restore = |to: &Path, bytes: &[u8]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cg"));
        command.args(["restore", "-", text(to)]).stdin(Stdio::piped());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it is built");
        let mut stdin = child.stdin.take().expect("it is piped");
        stdin.write_all(bytes).expect("it reads all");
        drop(stdin);
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8(output.stderr).expect("cg prints UTF-8"))
    };
    let to = sample.beside("restored");
    assert_eq!(restore(&to, &output.stdout), (Some(0), String::new()));
    assert!(rows(&to) == rows(&path));
    let to = sample.beside("cut");
    let (len, half) = (output.stdout.len(), output.stdout.len() / 2);
    let (code, said) = restore(&to, &output.stdout[..half]);
    let expected = "; the archive is cut off: copy the whole file again, or archive the world again\n";
    assert!(
        code == Some(1) && said.starts_with("cg: -: archive part: ") && said.ends_with(expected),
        "{said}"
    );
    assert!(!to.exists());
    fs::create_dir(&to).expect("it is new");
    assert_eq!(restore(&to, &output.stdout[..len - 1]).0, Some(1));
    assert_eq!(fs::read_dir(&to).expect("it stays").count(), 0);
}

#[test]
fn nothing_is_overwritten() {
    let sample = full();
    let (file, path) = (archived(&sample, "w.cgw"), sample.path());
    let before = (fs::read(&file).expect("it is there"), sample.files());
    let said = sample.cg("archive", &[text(&file)]);
    let expected = format!("cg: cannot write {}: entity already exists\n", text(&file));
    assert_eq!((said.code, said.err), (1, expected));
    let full = |place: &Path| {
        let rule = "a world is created in an empty or missing directory";
        format!("cg: {} already holds files; {rule}\n", text(place))
    };
    let files = sample.beside("files");
    fs::create_dir(&files).expect("it is new");
    fs::write(files.join("a"), "a").expect("the disk takes it");
    for (to, more) in [(&path, &[][..]), (&files, &[]), (&files, &["--resume"])] {
        let said = run(&[&["restore", text(&file), text(to)], more].concat());
        assert_eq!((said.code, said.out.as_str(), said.err), (1, "", full(to)), "{more:?}");
    }
    // The world itself is the one that the file has.
    let said = run(&["restore", text(&file), text(&path), "--resume", "--json"]);
    assert_eq!((said.code, said.json()["rows"].clone()), (0, json!(0)));
    assert!((fs::read(&file).expect("it is there"), sample.files()) == before);
    let none = sample.beside("none");
    assert_eq!(run(&["restore", text(&none), text(&sample.beside("new"))]).code, 4);
    assert_eq!(run(&["archive", text(&none), text(&sample.beside("new"))]).code, 4);
    assert!(!sample.beside("new").exists());
}

#[test]
fn bytes_that_are_no_archive_say_where() {
    let sample = full();
    let good = fs::read(archived(&sample, "w.cgw")).expect("it is there");
    let (bad, to) = (sample.beside("bad.cgw"), sample.beside("restored"));
    let check = |bytes: &[u8], said: &str, ending: &str| {
        fs::write(&bad, bytes).expect("the disk takes it");
        let ran = run(&["restore", text(&bad), text(&to)]);
        let begins = format!("cg: {}: {said}", text(&bad));
        assert!(ran.code == 1 && ran.err.starts_with(&begins), "{ran:?}");
        assert!(ran.err.ends_with(&format!("; {ending}\n")), "{ran:?}");
        assert!(!to.exists());
    };
    check(
        b"",
        "archive line: line needs 22 bytes and 0 are left (at byte 0)",
        "the file is no archive of a world",
    );
    check(&b"x".repeat(99), "archive line: line is 120, but", "the file is no archive of a world");
    let damaged = "the archive is damaged: take another copy of it, or archive the world again";
    for at in [30, good.len() / 2, good.len() - 1] {
        let mut flipped = good.clone();
        flipped[at] ^= 64;
        check(&flipped, "archive part: ", damaged);
    }
    let mut newer = good.clone();
    newer[20] = b'9';
    let said = "archive line: line is 9, and this release reads up to 2; use a newer release (at byte 20)";
    check(&newer, said, "nothing was restored");
    check(&[&good[..], b"x"].concat(), "archive end: bytes after the end must be zero or absent", damaged);
}

#[test]
fn damage_is_refused_or_kept_and_counted() {
    let sample = full();
    flip_row(&sample, &key::chunk(ChunkAt::new(Dimension::new(0), GROUND)));
    let file = sample.beside("w.cgw");
    let said = sample.cg("archive", &[text(&file)]);
    assert_eq!((said.code, said.out.as_str()), (1, ""), "{said:?}");
    assert!(said.err.starts_with("cg: chunk 0, 4, -1 of dimension 0"), "{said:?}");
    let advice = " (nothing was archived; --keep-damage archives it as it is)\n";
    assert!(said.err.contains(" is damaged ") && said.err.ends_with(advice), "{said:?}");
    assert!(!file.exists());
    let said = sample.cg("archive", &[text(&file), "--keep-damage", "--json"]);
    assert_eq!((said.code, said.json()["damaged"].clone()), (1, json!(1)), "{said:?}");
    let to = sample.beside("restored");
    run(&["restore", text(&file), text(&to)]).good();
    assert!(rows(&to) == rows(&sample.path()));
    assert_eq!(run(&["verify", text(&to)]).code, 1);
}

/// Flips the last bit of a row, as no engine would store it.
fn flip_row(sample: &Sample, key: &[u8]) {
    let sealed = rows(&sample.path()).into_iter().map(|((family, its), mut row)| {
        if its == key && family == Family::ChunkL0.name() {
            *row.last_mut().expect("it has bytes") ^= 1;
        }
        let family = Family::ALL.into_iter().find(|it| it.name() == family).expect("it has a name");
        SealedRow { family, key: its.into(), bytes: row.into() }
    });
    let (db, sealed) = (directory::engine_dir(&sample.path()), sealed.collect());
    fs::remove_dir_all(&db).expect("it is ours");
    let engine = RocksEngine::create(&db, &RocksOptions::new(Budget::new(16 << 20, 1))).expect("it is gone");
    engine.load(sealed).expect("it is new");
    engine.close().expect("the disk takes it");
}

fn len_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}

/// The directory of a restore that was killed in the middle.
fn killed(sample: &Sample, file: &Path) -> PathBuf {
    for n in 0..20 {
        let to = sample.beside(&format!("killed {n}"));
        let _gone = fs::remove_dir_all(&to);
        let mut command = Command::new(env!("CARGO_BIN_EXE_cg"));
        command.arg("restore").arg(file).arg(&to).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("cg is built with the tests");
        while len_bytes(&to.join("db")) < 6_000_000 && child.try_wait().expect("it is ours").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        if WorldFile::read(&to).is_ok_and(|file| file.state == State::Creating) {
            return to;
        }
    }
    panic!("20 restores were finished before they were killed");
}

#[test]
fn a_killed_restore_goes_on_or_begins_again() {
    let sample = Sample::new();
    enlarge(&sample);
    let file = archived(&sample, "w.cgw");
    let half = killed(&sample, &file);
    assert_eq!(run(&["info", text(&half)]).code, 1);
    let said = run(&["restore", text(&file), text(&half)]);
    let expected = format!(
        "cg: {} holds a part of a world, or one whose making was cut short; --resume continues a restore\n",
        text(&half)
    );
    assert_eq!((said.code, said.err), (1, expected));
    let all = rows(&sample.path());
    let said = run(&["restore", text(&file), text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(said.json()["continued"], json!(true));
    assert!(said.json()["rows"].as_u64().is_some_and(|rows| rows < all.len() as u64 - 1), "{said:?}");
    assert!(rows(&half) == all);

    // One that was finished is finished again, unless the world was written since.
    let before = rows(&half);
    let said = run(&["restore", text(&file), text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!((said.json()["continued"].clone(), said.json()["rows"].clone()), (json!(true), json!(0)));
    assert!(rows(&half) == before);
    let taken = |place: &Path| {
        let rule = "a world is created in an empty or missing directory";
        format!("cg: {} already holds files; {rule}\n", text(place))
    };
    let said = run(&["restore", text(&file), text(&half)]);
    assert_eq!((said.code, said.err), (1, taken(&half)));
    let other = full();
    let another = archived(&other, "other.cgw");
    let said = run(&["restore", text(&another), text(&half), "--resume"]);
    assert_eq!((said.code, said.err), (1, taken(&half)));
    run(&["object", "put", text(&half), "a", "--text", "b"]).good();
    let said = run(&["restore", text(&file), text(&half), "--resume"]);
    assert_eq!((said.code, said.err), (1, taken(&half)));

    // A part of another archive is taken away first, unless it would be needed twice.
    let half = killed(&sample, &file);
    let others = another;
    let mut command = Command::new(env!("CARGO_BIN_EXE_cg"));
    command.args(["restore", "-", text(&half), "--resume"]);
    let output = command.stdin(fs::File::open(&others).expect("it is there")).output().expect("it runs");
    let said = String::from_utf8(output.stderr).expect("cg prints UTF-8");
    let expected = format!(
        "cg: {} holds a part of another world; delete the directory, and give the archive once more\n",
        text(&half)
    );
    assert_eq!((output.status.code(), said), (Some(1), expected));
    let said = run(&["restore", text(&others), text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.json()["continued"].clone()), (0, json!(false)), "{said:?}");
    assert!(rows(&half) == rows(&other.path()));
}
