//! `cg archive` and `cg restore` of segmented worlds: everything there and back, streams, refusals, kills.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cg_layers::{SegmentOptions, SegmentedWorld};
use cg_store::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::segments::sample;
use super::{Sample, run, text};

/// A segmented world of three segments. The middle one has an object and a record, and a snapshot and a property beside
/// them; the root has settings.
fn full() -> (TempDir, PathBuf) {
    let dir = sample();
    let path = dir.path().join("world");
    let world = SegmentedWorld::open(&path, &[], &SegmentOptions::default()).expect("opens");
    let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0));
    let put = world.transaction(at, |tx| {
        tx.put_object("chest/1", b"gold".to_vec())?;
        tx.set_property(Property::of_key(b"game:weather").expect("a name"), Some(b"rain".to_vec()));
        Ok::<_, cg_store::Error>(())
    });
    put.expect("commits");
    world.close().expect("closes");
    drop(world);
    run(&["settings", text(&path.join("root")), "name=Isle", "seed=7"]).good();
    let segment = path.join("segments/0.0.0.0");
    let area = ["--box", "0", "0", "0", "15", "15", "15"];
    run(&[&["snapshot", "create", text(&segment), "before"][..], &area].concat()).good();
    (dir, path)
}

/// The world, its root and its segments, with the hash of all that each has.
fn hashes(world: &Path) -> Vec<(PathBuf, String)> {
    let mut worlds = vec![PathBuf::new(), PathBuf::from("root")];
    let segments = fs::read_dir(world.join("segments")).expect("listed");
    worlds.extend(segments.map(|entry| Path::new("segments").join(entry.expect("listed").file_name())));
    worlds.sort();
    let hash = |name: PathBuf| {
        let hash = run(&["hash", text(&world.join(&name)), "--all"]).good();
        (name, hash)
    };
    worlds.into_iter().map(hash).collect()
}

#[track_caller]
fn archived(world: &Path, file: &Path) -> Vec<u8> {
    run(&["archive", text(world), text(file)]).good();
    fs::read(file).expect("it is there")
}

/// `cg restore` from standard input.
fn restore_stream(from: &Path, to: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cg"));
    command.args(["restore", "-", text(to)]).args(more);
    let output = command.stdin(fs::File::open(from).expect("it is there")).output().expect("it is built");
    (output.status.code(), String::from_utf8(output.stderr).expect("cg prints UTF-8"))
}

#[test]
fn a_segmented_world_goes_through_a_file_and_a_pipe_with_everything() {
    let (dir, world) = full();
    let (file, to) = (dir.path().join("w.cgw"), dir.path().join("restored"));
    let said = run(&["archive", text(&world), text(&file), "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let bytes = fs::read(&file).expect("it is there");
    let report = said.json();
    assert_eq!((&report["bytes"], &report["damaged"]), (&json!(bytes.len()), &json!(0)));
    let said = run(&["restore", text(&file), text(&to), "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let expected = json!({
        "world": text(&to), "commit": report["commit"], "rows": report["rows"], "bytes": report["row_bytes"],
        "continued": false,
    });
    assert_eq!(said.json(), expected);
    let original = hashes(&world);
    assert_eq!(original.len(), 5);
    assert_eq!(hashes(&to), original);
    assert!(run(&["verify", text(&to)]).good().contains("verified the root and 3 segments"));
    assert_eq!(run(&["segments", "list", text(&to)]).good(), run(&["segments", "list", text(&world)]).good());

    let output = Command::new(env!("CARGO_BIN_EXE_cg")).args(["archive", text(&to), "-"]).output();
    let output = output.expect("cg is built with the tests");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.starts_with(b"archived ") && output.stdout.starts_with(b"cherrygrove archive 2\n"));
    let (second, other) = (dir.path().join("second.cgw"), dir.path().join("other"));
    fs::write(&second, &output.stdout).expect("the disk takes it");
    assert_eq!(restore_stream(&second, &other, &[]), (Some(0), String::new()));
    assert_eq!(hashes(&other), original);
}

#[test]
fn a_copy_of_a_segmented_world_is_verified_as_a_whole() {
    let (dir, world) = full();
    let [copy, apart] = ["copy", "apart"].map(|name| dir.path().join(name));
    let said = run(&["checkpoint", text(&world), text(&copy), "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!((&said.json()["problems"], &said.json()["apart"]), (&json!(0), &json!(false)), "{said:?}");
    assert_eq!(hashes(&copy), hashes(&world));
    let boxed = |world: &Path| {
        let area = ["--box", "0", "0", "0", "15", "15", "15"];
        run(&[&["hash", text(world)][..], &area].concat()).good()
    };
    assert_eq!(boxed(&copy), boxed(&world.join("segments/0.0.0.0")), "all of the box is in one segment");
    let refused = run(&["checkpoint", text(&world), text(&copy)]);
    let expected = format!(
        "cg: {} already holds files; a world is created in an empty or missing directory\n",
        text(&copy)
    );
    assert_eq!((refused.code, refused.err), (1, expected));

    let damaged = world.join("segments/0.0.0.0");
    super::spoil(&damaged, cg_format::Space::Object, b"chest/1", b"no version");
    let said = run(&["checkpoint", text(&world), text(&apart), "--copy"]);
    assert_eq!((said.code, said.err.as_str()), (1, ""), "{said:?}");
    assert!(
        said.out.ends_with("DAMAGED, and so is the world: 1 problem found; `cg verify` says which\n"),
        "{said:?}"
    );
}

#[test]
fn what_is_no_whole_archive_leaves_nothing() {
    let (dir, world) = full();
    let (file, bad, to) = (dir.path().join("w.cgw"), dir.path().join("bad"), dir.path().join("restored"));
    let good = archived(&world, &file);
    let check = |bytes: &[u8], begins: &str, ends: &str| {
        fs::write(&bad, bytes).expect("the disk takes it");
        for (name, (code, said)) in [
            (text(&bad), {
                let said = run(&["restore", text(&bad), text(&to)]);
                (Some(said.code), said.err)
            }),
            ("-", restore_stream(&bad, &to, &[])),
        ] {
            assert_eq!(code, Some(1), "{said}");
            assert!(said.starts_with(&format!("cg: {name}: {begins}")), "{said}");
            assert!(said.ends_with(&format!("; {ends}\n")), "{said}");
            assert!(!to.exists());
        }
    };
    let cut = "the archive is cut off: copy the whole file again, or archive the world again";
    for len in [22, 30, good.len() / 2, good.len() - 1] {
        check(&good[..len], "archive part: ", cut);
    }
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 4;
    check(
        &flipped,
        "archive part: ",
        "the archive is damaged: take another copy of it, or archive the world again",
    );
    let mut newer = good.clone();
    newer[20] = b'3';
    let said = "archive line: line is 3, and this release reads up to 2; use a newer release (at byte 20)";
    check(&newer, said, "nothing was restored");
    // The line of an archive of one world before the bytes of one of many.
    let mut other = good;
    other[20] = b'1';
    let damaged = "the archive is damaged: take another copy of it, or archive the world again";
    check(&other, "archive part: part is 4, allowed is 1 for the head", damaged);
}

#[test]
fn nothing_is_overwritten_and_what_needs_another_command_is_named() {
    let (dir, world) = full();
    let file = dir.path().join("w.cgw");
    archived(&world, &file);
    let taken = |place: &Path| {
        let rule = "a world is created in an empty or missing directory";
        format!("cg: {} already holds files; {rule}\n", text(place))
    };
    let plain = Sample::new();
    let before = plain.files();
    for (to, more) in [(&world, &[][..]), (&plain.path(), &[]), (&plain.path(), &["--resume"])] {
        let said = run(&[&["restore", text(&file), text(to)], more].concat());
        assert_eq!((said.code, said.err), (1, taken(to)));
    }
    assert!(plain.files() == before);
    if cfg!(feature = "postgres") {
        let said = run(&["restore", text(&file), "postgres://cg@127.0.0.1:1/none?world=w"]);
        let expected = format!(
            "cg: {} is the archive of a segmented world, which is restored into a directory\n",
            text(&file)
        );
        assert_eq!((said.code, said.err), (1, expected));
    }
    let area = ["--box", "0", "0", "0", "15", "15", "15"];
    let said = run(&[&["unpack", text(&file), text(&plain.path())][..], &area].concat());
    let expected = format!(
        "cg: {} is the archive of a segmented world: restore it with `cg restore`, and take the part with `cg pack` from the segments that have it\n",
        text(&file)
    );
    assert_eq!((said.code, said.err), (1, expected));
    assert!(plain.files() == before);

    let open = SegmentedWorld::open(&world, &[], &SegmentOptions::default()).expect("opens");
    let second = dir.path().join("second.cgw");
    let said = run(&["archive", text(&world), text(&second)]);
    assert_eq!(said.code, 3, "{said:?}");
    assert!(!second.exists());
    open.close().expect("closes");
    drop(open);
    archived(&world, &second);

    // Without one of its segments it is not whole.
    fs::remove_dir_all(world.join("segments/0.3.0.0")).expect("it is there");
    let third = dir.path().join("third.cgw");
    let said = run(&["archive", text(&world), text(&third)]);
    assert!(said.code != 0 && said.err.contains("segments/0.3.0.0"), "{said:?}");
    assert!(!third.exists());
}

fn len_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}

/// Puts bytes that are no shorter when they are compressed into the segment at 0.
fn enlarge(world: &Path) {
    let open = SegmentedWorld::open(world, &[], &SegmentOptions::default()).expect("opens");
    let at = ChunkAt::new(Dimension::new(0), ChunkPos::constant(0, 0, 0));
    let mut state = 1_u64;
    for number in 0..40 {
        let bytes = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        });
        let bytes: Vec<u8> = bytes.take(400_000).collect();
        open.transaction(at, |tx| tx.put_object(format!("large/{number}"), bytes)).expect("puts");
    }
    open.close().expect("closes");
}

/// The directory of a restore that was killed within the second segment.
fn killed(dir: &TempDir, file: &Path) -> PathBuf {
    for n in 0..20 {
        let to = dir.path().join(format!("killed {n}"));
        let _gone = fs::remove_dir_all(&to);
        let mut command = Command::new(env!("CARGO_BIN_EXE_cg"));
        command.arg("restore").arg(file).arg(&to).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().expect("cg is built with the tests");
        let second = to.join("segments/0.0.0.0/db");
        while len_bytes(&second) < 6_000_000 && child.try_wait().expect("it is ours").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        if to.join("root.unfinished").is_dir() && !to.join("segments/0.3.0.0").exists() {
            return to;
        }
    }
    panic!("20 restores were finished before they were killed");
}

#[test]
fn a_killed_restore_goes_on_behind_what_is_there() {
    let (dir, world) = full();
    enlarge(&world);
    let file = dir.path().join("w.cgw");
    let rows = {
        let said = run(&["archive", text(&world), text(&file), "--json"]);
        said.json()["rows"].as_u64().expect("a number")
    };
    let half = killed(&dir, &file);
    for command in [&["segments", "list"][..], &["verify"]] {
        assert_ne!(run(&[command, &[text(&half)]].concat()).code, 0, "it is no world");
    }
    let said = run(&["restore", text(&file), text(&half)]);
    let expected = format!(
        "cg: {} holds a part of a segmented world, whose making was cut short; --resume continues a restore\n",
        text(&half)
    );
    assert_eq!((said.code, said.err), (1, expected));
    // A part of another archive is not taken for one of this.
    let (other, others) = full();
    let another = other.path().join("other.cgw");
    archived(&others, &another);
    let said = run(&["restore", text(&another), text(&half), "--resume"]);
    let expected = format!(
        "cg: {} holds a part of another world; delete the directory, and give the archive once more\n",
        text(&half)
    );
    assert_eq!((said.code, said.err), (1, expected));

    let said = run(&["restore", text(&file), text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(said.json()["continued"], json!(true));
    let later = said.json()["rows"].as_u64().expect("a number");
    assert!(later > 0 && later < rows, "{said:?}");
    assert_eq!(hashes(&half), hashes(&world));

    // One that was finished is finished again, unless the world was written since.
    let said = run(&["restore", text(&file), text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.json()["rows"].clone()), (0, json!(0)), "{said:?}");
    let rule = "a world is created in an empty or missing directory";
    let taken = format!("cg: {} already holds files; {rule}\n", text(&half));
    let said = run(&["restore", text(&another), text(&half), "--resume"]);
    assert_eq!((said.code, said.err), (1, taken.clone()));
    enlarge(&half);
    let said = run(&["restore", text(&file), text(&half), "--resume"]);
    assert_eq!((said.code, said.err), (1, taken));
}
