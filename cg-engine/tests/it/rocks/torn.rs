//! Unsynced ends of logs and manifests, which a power cut leaves in any state: they are cut, and what was synced is not.

use super::*;

type Deed = fn(&mut [u8]);

/// What a power cut left of a part of a file that was never synced.
const DEEDS: [(&str, Deed); 4] = [
    ("a hole", |part| {
        let half = part.len() / 2;
        part[..half].fill(0);
    }),
    ("a hole at the end", |part| {
        let half = part.len() / 2;
        part[half..].fill(0);
    }),
    ("another page", |part| {
        let half = part.len() / 2;
        part[..half].fill(0xa5);
    }),
    ("a flipped bit", |part| {
        let at = part.len() / 3;
        part[at] ^= 1;
    }),
];

/// A directory as a kill leaves it: commits 1 to 5 synced, 6 to 20 written only. Also the synced bytes of the log.
fn killed() -> (Dir, PathBuf, usize) {
    let (live, dir) = (Dir::new(), Dir::new());
    let engine = create(&live.db());
    for index in 1..=5_u8 {
        put(&engine, &[index], &[index; 3000], Level::Process);
    }
    sync_idle(&engine);
    let synced = fs::metadata(live.file(".log")).expect("is there").len() as usize;
    for index in 6..=20_u8 {
        put(&engine, &[index], &[index; 3000], Level::Process);
    }
    copy(&live, &dir);
    let log = dir.file(".log");
    (dir, log, synced)
}

/// Copies the files of an engine that is open.
fn copy(from: &Dir, to: &Dir) {
    fs::create_dir_all(to.db()).expect("made");
    for (name, bytes) in from.files() {
        fs::write(to.db().join(name), bytes).expect("writes");
    }
}

/// The objects that there are; all commits up to the newest.
#[track_caller]
fn whole_commits(engine: &RocksEngine) -> u64 {
    let newest = engine.last_commit().get();
    let found = rows(engine).expect("reads").into_keys().filter(|(family, _)| *family == Family::Object);
    assert!(found.map(|(_, key)| u64::from(key[0])).eq(1..=newest), "no commit follows one that is missing");
    newest
}

#[test]
fn an_unsynced_end_of_a_log_is_cut_and_the_world_opens() {
    let (dir, log, synced) = killed();
    let whole = fs::read(&log).expect("reads");
    for (deed, tear) in DEEDS {
        for step in 0..6 {
            let at = synced + (whole.len() - synced) * step / 6;
            let mut bytes = whole.clone();
            let end = bytes.len().min(at + 9000);
            tear(&mut bytes[at..end]);
            fs::write(&log, &bytes).expect("writes");
            let before = dir.files();
            let reader =
                RocksEngine::open(&dir.db(), &reading()).unwrap_or_else(|error| panic!("{deed}: {error}"));
            let found = whole_commits(&reader);
            assert!((5..20).contains(&found), "{deed} from {at}: {found}");
            drop(reader);
            assert!(dir.files() == before, "{deed}: a reader changed the directory");
            let copied = Dir::new();
            copy(&dir, &copied);
            let engine = open(&copied.db());
            assert_eq!(whole_commits(&engine), found);
            let next = found + 1;
            assert_eq!(put(&engine, &[next as u8], &[7; 100], Level::Power), CommitSeq::new(next));
            drop(engine);
            assert_eq!(whole_commits(&open(&copied.db())), next, "{deed}");
        }
    }
}

#[test]
fn a_flipped_bit_in_the_synced_part_of_a_log_is_damage() {
    let (dir, log, synced) = killed();
    let whole = fs::read(&log).expect("reads");
    for step in 0..40 {
        let at = (synced - 1) * step / 39;
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (step % 8);
        fs::write(&log, &bytes).expect("writes");
        let before = dir.files();
        for options in [options(), reading()] {
            let error = RocksEngine::open(&dir.db(), &options).expect_err("was synced");
            assert!(matches!(error, EngineError::Corrupt { .. }), "byte {at}: {error}");
        }
        assert!(dir.files() == before, "a refused open changed the directory");
    }
}

#[test]
fn what_is_idle_is_known_to_be_synced() {
    // The floor was raised by the first commit, and no commit follows the second within the second.
    let (live, dir) = (Dir::new(), Dir::new());
    let engine = create(&live.db());
    put(&engine, &[1], &[1; 3000], Level::Power);
    put(&engine, &[2], &[2; 3000], Level::Power);
    sync_idle(&engine);
    copy(&live, &dir);
    let log = dir.file(".log");
    let mut bytes = fs::read(&log).expect("reads");
    let at = bytes.len() - 100;
    bytes[at] ^= 1;
    fs::write(&log, &bytes).expect("writes");
    let error = RocksEngine::open(&dir.db(), &options()).expect_err("it was synced").to_string();
    assert!(error.ends_with("a record does not match its checksum"), "{error}");
}

#[test]
fn logs_after_a_torn_one_are_removed_if_neither_was_synced() {
    let dir = Dir::new();
    let [older, newer] = damage::two_logs(&dir);
    let whole = fs::read(&older).expect("reads");
    let mut torn = whole.clone();
    let at = whole.len() - 4000;
    torn[at..at + 600].fill(0);
    fs::write(&older, &torn).expect("writes");
    let number = |path: &Path| {
        let name = path.file_stem().expect("has one").to_string_lossy().into_owned();
        name.parse::<u64>().expect("a number")
    };
    // The newer one was synced, so the older one was too.
    promise(&dir, 0, [[number(&newer), 100], [0; 2]]);
    let before = dir.files();
    for options in [options(), reading()] {
        let error = RocksEngine::open(&dir.db(), &options).expect_err("was synced").to_string();
        assert!(error.contains("is damaged: "), "{error}");
    }
    assert!(dir.files() == before, "a refused open changed the directory");
    promise(&dir, 0, [[number(&older), 100], [0; 2]]);
    let before = dir.files();
    let reader = RocksEngine::open(&dir.db(), &reading()).expect("opens");
    assert_eq!(damage::objects(&reader), (vec![2, 3], 3));
    drop(reader);
    assert!(dir.files() == before, "a reader changed the directory");
    // As a kill between the two steps leaves it.
    fs::remove_file(&newer).expect("removes");
    let engine = open(&dir.db());
    assert_eq!(damage::objects(&engine), (vec![2, 3], 3));
    assert_eq!(put(&engine, &[9], &[9; 3000], Level::Power), CommitSeq::new(4));
    drop(engine);
    assert_eq!(damage::objects(&open(&dir.db())), (vec![2, 3, 9], 4));
}

#[test]
fn a_torn_end_of_the_manifest_is_cut_while_the_logs_have_its_rows() {
    // As a flush that was written into the manifest and not synced: its tables are gone or there.
    let (live, dir) = (Dir::new(), Dir::new());
    let engine = create(&live.db());
    for index in 1..=5_u8 {
        put(&engine, &[index], &[index; 3000], Level::Power);
    }
    sync_idle(&engine);
    copy(&live, &dir);
    let synced = fs::metadata(live.file("MANIFEST-")).expect("is there").len() as usize;
    engine.flush().expect("flushes");
    let longer = fs::read(live.file("MANIFEST-")).expect("reads");
    assert!(longer.len() > synced + 100);
    let manifest = dir.file("MANIFEST-");
    let torn = DEEDS.map(|(deed, tear)| {
        let mut bytes = longer.clone();
        tear(&mut bytes[synced..]);
        (deed, bytes)
    });
    for (deed, bytes) in torn.into_iter().chain([("missing tables", longer.clone())]) {
        let copied = Dir::new();
        fs::write(&manifest, &bytes).expect("writes");
        copy(&dir, &copied);
        let before = copied.files();
        let reader =
            RocksEngine::open(&copied.db(), &reading()).unwrap_or_else(|error| panic!("{deed}: {error}"));
        assert_eq!(whole_commits(&reader), 5, "{deed}");
        drop(reader);
        assert!(copied.files() == before, "{deed}: a reader changed the directory");
        for _ in 0..2 {
            assert_eq!(whole_commits(&open(&copied.db())), 5, "{deed}");
        }
    }
    // What was synced of it is not cut.
    for step in 0..20 {
        let mut bytes = longer.clone();
        bytes[(synced - 1) * step / 19] ^= 1 << (step % 8);
        fs::write(&manifest, &bytes).expect("writes");
        let error = RocksEngine::open(&dir.db(), &options()).expect_err("was synced");
        assert!(matches!(error, EngineError::Corrupt { .. }), "{error}");
    }
    // Once the log is gone, the change was relied on.
    put(&engine, &[6], &[6; 3000], Level::Power);
    let copied = Dir::new();
    copy(&live, &copied);
    fs::remove_file(copied.db().join(&copied.names(".sst")[0])).expect("removes");
    let before = copied.files();
    for options in [options(), reading()] {
        let error = RocksEngine::open(&copied.db(), &options).expect_err("a table is missing").to_string();
        assert!(error.contains("the file is missing; rows of"), "{error}");
    }
    assert!(copied.files() == before, "a refused open changed the directory");
    let path = copied.file("MANIFEST-");
    let mut bytes = fs::read(&path).expect("reads");
    bytes[synced + 20] ^= 1;
    fs::write(&path, &bytes).expect("writes");
    let error = RocksEngine::open(&copied.db(), &options()).expect_err("was relied on").to_string();
    assert!(
        error.ends_with("a change is not whole, and the log with its rows is not there any more"),
        "{error}"
    );
}

#[test]
fn a_manifest_that_is_shorter_than_its_synced_part_is_named() {
    let (dir, ..) = killed();
    let path = dir.file("MANIFEST-");
    let whole = fs::read(&path).expect("reads");
    // The floor covers all of it, so each cut is one, also between two records.
    for len in 1..whole.len() {
        fs::write(&path, &whole[..len]).expect("writes");
        let error = RocksEngine::open(&dir.db(), &reading()).expect_err("was synced").to_string();
        assert!(
            error.contains("the file is cut, ") && error.contains(" bytes of it were synced: "),
            "{len}: {error}"
        );
    }
}

#[test]
fn an_old_torn_log_whose_deletion_was_not_synced_closes_no_world() {
    let (dir, log, _) = killed();
    let torn = fs::read(&log).expect("reads");
    let torn = &torn[..torn.len() - 40];
    fs::write(&log, torn).expect("writes");
    let engine = open(&dir.db());
    // RocksDB deletes it in a thread of its own.
    for _ in 0..1000 {
        if !log.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(!log.exists(), "its rows are in tables");
    // The manifest grows after the floor was written, and commits go into a new log.
    engine.flush().expect("flushes");
    put(&engine, &[20], &[20; 3000], Level::Process);
    let copied = Dir::new();
    copy(&dir, &copied);
    fs::write(copied.db().join(log.file_name().expect("has one")), torn).expect("writes");
    let reader = RocksEngine::open(&copied.db(), &reading()).expect("the log is not needed");
    assert_eq!(whole_commits(&reader), 20);
    drop(reader);
    assert_eq!(whole_commits(&open(&copied.db())), 20);
}

/// Adds a record to the manifest whose checksum is wrong, as an unsynced end may look.
fn tear_manifest(dir: &Dir) {
    let path = dir.file("MANIFEST-");
    let mut bytes = fs::read(&path).expect("reads");
    bytes.extend([1, 2, 3, 4, 20, 0, 1]);
    bytes.extend([7; 20]);
    fs::write(path, bytes).expect("writes");
}

#[test]
fn a_torn_manifest_of_a_world_that_was_opened_again_is_cut() {
    let (live, torn) = (Dir::new(), Dir::new());
    let engine = create(&live.db());
    for index in 1..=5_u8 {
        put(&engine, &[index], &[index; 3000], Level::Process);
    }
    drop(engine);
    // The number from which on logs are needed is now one that no log has.
    let engine = open(&live.db());
    for index in 6..=20_u8 {
        put(&engine, &[index], &[index; 3000], Level::Process);
    }
    sync_idle(&engine);
    copy(&live, &torn);
    let [manifest, floor] = ["MANIFEST-", "DURABLE"].map(|name| fs::read(torn.file(name)).expect("reads"));
    tear_manifest(&torn);
    assert_eq!(whole_commits(&RocksEngine::open(&torn.db(), &reading()).expect("a tear is cut")), 20);
    assert_eq!(whole_commits(&open(&torn.db())), 20);

    // The control: the log is gone, because a change of the manifest said that its rows are in tables, and the change is cut.
    engine.flush().expect("flushes");
    put(&engine, &[21], &[21; 3000], Level::Process);
    drop(engine);
    let logs = live.names(".log").len();
    assert_eq!(logs, 1, "the older one is deleted");
    let path = live.file("MANIFEST-");
    fs::write(path, manifest).expect("writes");
    fs::write(live.db().join("DURABLE"), floor).expect("writes");
    tear_manifest(&live);
    let error = RocksEngine::open(&live.db(), &reading()).expect_err("rows are gone").to_string();
    assert!(error.contains("the log with its rows is not there any more"), "{error}");
}
