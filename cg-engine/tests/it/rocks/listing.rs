//! Files that the world did not make: named, neither read nor written, and never waited for.

use super::*;
use cg_engine::Place;

/// A closed database with rows in a table and a blob file, and its rows.
fn closed(dir: &Dir) -> Rows {
    let engine = create(&dir.db());
    put(&engine, b"a", b"1", Level::Power);
    engine.flush().expect("flushes");
    put(&engine, b"b", b"2", Level::Power);
    let expected = rows(&engine).expect("reads");
    engine.close().expect("closes");
    expected
}

/// The file and message of the error of opening, for writing and for reading.
#[track_caller]
fn refused(dir: &Dir) -> (String, String) {
    let error = |options: &RocksOptions| match RocksEngine::open(&dir.db(), options) {
        Err(EngineError::Corrupt { place: Place::File { name, .. }, message }) => (name, message),
        other => panic!("{other:?}"),
    };
    let of_writer = error(&options());
    assert_eq!(of_writer, error(&reading()));
    of_writer
}

#[cfg(unix)]
#[test]
fn a_link_or_a_pipe_in_place_of_any_file_is_named_and_nothing_is_written_through_it() {
    let dir = Dir::new();
    let expected = closed(&dir);
    let precious = dir.0.path().join("precious");
    fs::write(&precious, "precious").expect("writes");
    let mut names: Vec<_> = dir.files().into_keys().collect();
    names.extend(["DAMAGED", "DAMAGED.new", "999.log", "999.sst", "999.blob", "999.dbtmp"].map(String::from));
    assert!(names.len() > 12, "{names:?}");
    let away = dir.0.path().join("away");
    for name in names {
        let path = dir.db().join(&name);
        let is_there = fs::rename(&path, &away).is_ok();
        for kind in ["a link", "a pipe, socket or device", "a directory"] {
            if kind == "a directory" && name.starts_with("DAMAGED") {
                // It holds all families, and keeps no world closed.
                continue;
            }
            match kind {
                "a link" => std::os::unix::fs::symlink(&precious, &path).expect("links"),
                "a directory" => fs::create_dir(&path).expect("is made"),
                _ => drop(std::os::unix::net::UnixListener::bind(&path).expect("is made")),
            }
            let (found, message) = refused(&dir);
            assert_eq!(found, name);
            assert!(
                message.starts_with(&format!("it is {kind}, not a file, and was not opened: ")),
                "{message}"
            );
            if kind == "a directory" {
                fs::remove_dir(&path).expect("removes");
            } else {
                fs::remove_file(&path).expect("removes");
            }
        }
        if is_there {
            fs::rename(&away, &path).expect("is put back");
        }
    }
    assert_eq!(fs::read(&precious).expect("reads"), b"precious");
    // A link by another name is none of ours.
    std::os::unix::fs::symlink(&precious, dir.db().join("notes")).expect("links");
    assert!(rows(&open(&dir.db())).expect("reads") == expected);
}

#[test]
fn a_process_number_is_written_over_nothing_else() {
    let dir = Dir::new();
    closed(&dir);
    let precious = dir.0.path().join("precious");
    fs::write(&precious, "precious").expect("writes");
    fs::remove_file(dir.db().join("OWNER")).expect("removes");
    fs::hard_link(&precious, dir.db().join("OWNER")).expect("links");
    dir.refused(
        &options(),
        expect![
            "file OWNER at byte 0 is damaged: it holds something else than the number of a process, and was not overwritten: remove it"
        ],
    );
    assert_eq!(fs::read(&precious).expect("reads"), b"precious");
    fs::remove_file(dir.db().join("OWNER")).expect("removes");
    open(&dir.db());
}

#[test]
fn a_number_out_of_range_is_named_and_the_world_opens_without_the_file() {
    let dir = Dir::new();
    let expected = closed(&dir);
    let numbers =
        [u64::MAX, 1 << 62, (1 << 62) - 1, 1 << 56, 1 << 40, 2 << 20].map(|number| number.to_string());
    let too_long = "99999999999999999999999".to_owned();
    for number in numbers.iter().chain([&too_long]) {
        let ends = ["log", "sst", "blob", "dbtmp"].map(|end| format!("{number}.{end}"));
        for name in ends.into_iter().chain([format!("MANIFEST-{number}"), format!("OPTIONS-{number}")]) {
            fs::write(dir.db().join(&name), "").expect("writes");
            let before = dir.files();
            let (found, message) = refused(&dir);
            assert_eq!(found, name);
            assert_eq!(
                message,
                "its number is out of range, so the world did not make it: it is a stray file, move it away"
            );
            assert!(dir.files() == before, "a refused open changed the directory");
            fs::remove_file(dir.db().join(&name)).expect("removes");
        }
    }
    assert!(rows(&open(&dir.db())).expect("reads") == expected);
}

#[test]
fn files_that_the_manifest_does_not_name_are_listed_and_change_nothing() {
    let dir = Dir::new();
    let expected = closed(&dir);
    // In the first manifest of a database every log is needed.
    open(&dir.db()).close().expect("closes");
    assert_eq!(
        RocksEngine::open(&dir.db(), &reading()).expect("opens").usage().expect("counts").stray_files,
        [""; 0]
    );
    // One that is older than all that is needed, although it is no log at all, and one by another name.
    for name in ["000001.log", "000002.sst", "000003.blob", "notes.log"] {
        fs::write(dir.db().join(name), "none of ours").expect("writes");
    }
    let engine = RocksEngine::open(&dir.db(), &reading()).expect("opens");
    let strays = engine.usage().expect("counts").stray_files;
    assert_eq!(strays, ["000001.log", "000002.sst", "000003.blob"]);
    assert!(rows(&engine).expect("reads") == expected);
    drop(engine);
    assert!(rows(&open(&dir.db())).expect("reads") == expected);
}

#[test]
fn a_log_that_is_none_is_named_as_a_stray_file() {
    let dir = Dir::new();
    closed(&dir);
    fs::write(dir.db().join("000999.log"), "none of ours").expect("writes");
    let (name, message) = refused(&dir);
    assert_eq!(name, "000999.log");
    assert!(
        message.ends_with(
            "; the manifest does not name this log: if it was put here by hand, it is a stray file and may be moved away"
        ),
        "{message}"
    );
}

#[test]
fn a_cut_manifest_is_named_with_what_helps() {
    let dir = Dir::new();
    let expected = closed(&dir);
    let path = dir.file("MANIFEST-");
    let name = path.file_name().expect("has one").to_string_lossy().into_owned();
    let whole = fs::read(&path).expect("reads");
    let mut refusals = 0;
    for len in (0..whole.len()).step_by(7) {
        fs::write(&path, &whole[..len]).expect("writes");
        let before = dir.files();
        match RocksEngine::open(&dir.db(), &reading()) {
            Err(EngineError::Corrupt { place: Place::File { name: found, .. }, message }) => {
                assert!(
                    found == name || message.contains(&format!("or {name} was cut")),
                    "cut at {len}: {found}: {message}"
                );
                let help = "bring it back from a copy of this directory that was made since the world was last opened, or restore a checkpoint";
                assert!(message.ends_with(help), "cut at {len}: {message}");
                refusals += 1;
            }
            Err(EngineError::LostCommits { .. }) => refusals += 1,
            Ok(engine) => assert!(rows(&engine).expect("reads") == expected, "cut at {len}"),
            Err(error) => panic!("cut at {len}: {error}"),
        }
        assert!(dir.files() == before, "a refused open changed the directory");
    }
    assert!(refusals > 10, "{refusals}");
}

#[test]
fn an_opening_that_fails_leaves_no_empty_log() {
    let dir = Dir::new();
    let expected = closed(&dir);
    let examined = RocksEngine::examine(&dir.db(), &options()).expect("is whole");
    let logs = dir.names(".log");
    // RocksDB makes its new log before its new manifest, which it now cannot make.
    let blocked: Vec<_> = (1..60).map(|number| dir.db().join(format!("MANIFEST-{number:06}"))).collect();
    let made: Vec<_> = blocked.into_iter().filter(|path| fs::create_dir(path).is_ok()).collect();
    examined.open().expect_err("no manifest can be made");
    for path in &made {
        fs::remove_dir(path).expect("removes");
    }
    assert_eq!(dir.names(".log"), logs);
    assert!(rows(&open(&dir.db())).expect("reads") == expected);
}
