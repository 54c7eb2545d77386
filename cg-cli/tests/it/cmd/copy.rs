//! `cg copy` between directories: whole, killed, continued, begun again, refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use cg_format::{Space, key};
use cg_store::directory::{self, State, WorldFile};
use cg_store::engine::{
    ALL_KEYS, Access, Batch, Budget, Engine as _, EngineError, Family, Level, ReadableExt as _, RocksEngine,
    RocksOptions,
};
use cg_store::prelude::*;
use serde_json::json;

use super::{GROUND, Sample, run, text};

pub(crate) type Rows = BTreeMap<(&'static str, Vec<u8>), Vec<u8>>;

/// All rows of a world in a directory.
pub(crate) fn rows(world: &Path) -> Rows {
    let options = RocksOptions::new(Budget::new(16 << 20, 1)).with_access(Access::ReadOnly);
    let engine = RocksEngine::open(&directory::engine_dir(world), &options).expect("it is sound");
    let mut rows = Rows::new();
    for family in Family::ALL {
        let scanned = engine.try_scan(family, ALL_KEYS, |key, row| {
            rows.insert((family.name(), key.to_vec()), row.to_vec());
            Ok::<_, EngineError>(())
        });
        scanned.expect("scans");
    }
    rows
}

/// Adds objects of 24 MB that nothing makes smaller.
pub(crate) fn enlarge(sample: &Sample) {
    let world = sample.open();
    for n in 0..24_u32 {
        let mut state = u64::from(n) + 1;
        let bytes: Vec<u8> = (0..1_000_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        world.transaction(|tx| tx.put_object(format!("object {n}"), bytes)).expect("commits");
    }
    world.close().expect("the disk takes it");
}

fn len_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).sum()
}

/// The directory of a copy that was killed in the middle.
fn killed(sample: &Sample) -> PathBuf {
    for n in 0..20 {
        let to = sample.beside(&format!("killed {n}"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_cg"));
        command.arg("copy").arg(sample.path()).arg(&to).stdout(Stdio::null()).stderr(Stdio::null());
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
    panic!("20 copies were finished before they were killed");
}

#[test]
fn a_copy_has_the_rows_of_the_world() {
    let sample = Sample::new();
    let (from, to) = (sample.path(), sample.beside("copy"));
    let said = sample.cg("copy", &[text(&to), "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let hash = sample.cg("hash", &["--json"]).json()["hash"].clone();
    let (report, all) = (said.json(), rows(&from));
    assert!(rows(&to) == all);
    // The newest commit and the state are the copy's own.
    assert_eq!(report["rows"], json!(all.len() - 1));
    let bytes: usize = all.iter().map(|((_, key), row)| key.len() + row.len()).sum();
    assert!(report["bytes"].as_u64().is_some_and(|copied| copied > 0 && copied < bytes as u64), "{report}");
    let expected = json!({
        "from": text(&from), "to": text(&to), "commit": sample.open().last_commit().get(),
        "rows": report["rows"], "bytes": report["bytes"], "continued": false, "hash": hash,
    });
    assert_eq!(report, expected);
    assert_eq!(WorldFile::read(&to).expect("it is whole").state, State::Checkpoint);
    assert_eq!(run(&["verify", text(&to)]).code, 0);

    let unchecked = sample.beside("unchecked");
    let said = run(&["copy", text(&to), text(&unchecked), "--no-check"]).good();
    assert!(said.ends_with("the content of both was not compared\n"), "{said}");
    assert!(said.starts_with(&format!("{} holds the world as of commit ", text(&unchecked))), "{said}");
}

#[test]
fn a_copy_goes_to_no_place_that_holds_something() {
    let sample = Sample::new();
    let from = sample.path();
    let to = sample.beside("copy");
    sample.cg("copy", &[text(&to)]).good();
    let other = Sample::new();
    let files = sample.beside("files");
    fs::create_dir(&files).expect("it is new");
    fs::write(files.join("a"), "a").expect("the disk takes it");
    let full = |place: &Path| {
        format!(
            "cg: {} already holds files; a world is created in an empty or missing directory\n",
            text(place)
        )
    };
    for (from, to, more) in [
        (&from, &to, &[][..]),
        (&from, &files, &[][..]),
        (&from, &files, &["--resume"][..]),
        (&other.path(), &to, &["--resume"][..]),
    ] {
        let said = run(&[&["copy", text(from), text(to)], more].concat());
        assert_eq!((said.code, said.out.as_str(), said.err), (1, "", full(to)), "{more:?}");
    }
    let said = run(&["copy", text(&from), text(&from.join(".")), "--resume"]);
    let expected = format!("cg: {0} and {0}/. are one place; a copy needs another\n", text(&from));
    assert_eq!((said.code, said.err), (2, expected));
    let said = run(&["copy", text(&sample.beside("none")), text(&sample.beside("new"))]);
    assert_eq!(said.code, 4, "{said:?}");
    assert!(!sample.beside("new").exists());
}

#[test]
fn a_killed_copy_goes_on_or_begins_again() {
    let sample = Sample::new();
    enlarge(&sample);
    let half = killed(&sample);
    let said = run(&["info", text(&half)]);
    assert_eq!(
        said.err,
        format!(
            "cg: {} was never finished being created; delete the directory and create the world again\n",
            text(&half)
        )
    );
    let said = sample.cg("copy", &[text(&half)]);
    let expected = format!(
        "cg: {} holds a part of a copy, or a world whose making was cut short; --resume continues a copy\n",
        text(&half)
    );
    assert_eq!((said.code, said.err), (1, expected));

    let all = rows(&sample.path());
    let said = sample.cg("copy", &[text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    let report = said.json();
    assert_eq!(report["continued"], json!(true));
    assert!(report["rows"].as_u64().is_some_and(|rows| rows < all.len() as u64 - 1), "{report}");
    assert!(rows(&half) == all);
    // What is whole is compared, and copied no more.
    let said = sample.cg("copy", &[text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.json()["rows"].clone()), (0, json!(0)));

    let half = killed(&sample);
    sample.cg("object put", &["another", "--text", "state"]).good();
    let said = sample.cg("copy", &[text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(said.json()["continued"], json!(false));
    assert!(rows(&half) == rows(&sample.path()));
    let half = killed(&sample);
    let other = Sample::new();
    let said = other.cg("copy", &[text(&half), "--resume", "--json"]);
    assert_eq!((said.code, said.json()["continued"].clone()), (0, json!(false)), "{said:?}");
    assert!(rows(&half) == rows(&other.path()));
}

#[test]
fn a_copy_with_other_content_is_found() {
    let sample = Sample::new();
    let to = sample.beside("copy");
    sample.cg("copy", &[text(&to)]).good();
    {
        let options = RocksOptions::new(Budget::new(16 << 20, 1));
        let engine = RocksEngine::open(&directory::engine_dir(&to), &options).expect("it is sound");
        let mut batch = Batch::new();
        batch.delete(Space::ChunkL0, key::chunk(ChunkAt::new(Dimension::new(0), GROUND)));
        engine.commit(batch.maintenance(), &[], Level::Power).expect("the disk takes it");
        engine.close().expect("the disk takes it");
    }
    let hash = |world: &Path| run(&["hash", text(world)]).good().trim().to_owned();
    let (original, copy) = (hash(&sample.path()), hash(&to));
    assert_ne!(original, copy);
    let commit = sample.open().last_commit();
    let said = sample.cg("copy", &[text(&to), "--resume"]);
    let expected = format!(
        "cg: {} is no copy of {}: the content hash of commit {commit} is {original}, and that of the copy {copy}; delete the copy\n",
        text(&to),
        text(&sample.path())
    );
    assert_eq!((said.code, said.out.as_str(), said.err), (1, "", expected));
    sample.cg("copy", &[text(&to), "--resume", "--no-check"]).good();
}

#[test]
fn damage_is_copied_and_told_of() {
    let sample = Sample::new();
    sample.spoil_ground();
    let to = sample.beside("copy");
    let said = sample.cg("copy", &[text(&to)]);
    let begins = format!("cg: {} holds the world as of commit ", text(&to));
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(
        said.err.starts_with(&begins) && said.err.ends_with("; `cg verify` names all damage\n"),
        "{said:?}"
    );
    assert!(rows(&to) == rows(&sample.path()));
    let to = sample.beside("unchecked");
    sample.cg("copy", &[text(&to), "--no-check"]).good();
}
