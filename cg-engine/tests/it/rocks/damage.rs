//! Damaged, cut and missing files: an error that names the place or the right rows, never others.

use super::*;
use cg_engine::rocks::log_scan;
use cg_engine::{COMMIT_SEQUENCE_KEY, Place};

/// A database with rows in files, in blobs and in the log, all synced, not closed.
fn filled(dir: &Dir) -> Rows {
    let engine = create(&dir.db());
    for index in 0..30_u8 {
        let mut batch = Batch::new();
        for (space, len) in [(Space::ChunkL0, 500), (Space::ClusterL1, 20_000), (Space::Entity, 100)] {
            let draft = Draft::plain(Codec::None, 0, |out| out.resize(len, index));
            batch.put(space, [index], draft, Stamp::Commit);
        }
        engine.commit(batch, &[], Level::Process).expect("commits");
        if index == 20 {
            engine.flush().expect("flushes");
        }
    }
    sync_idle(&engine);
    let expected = rows(&engine).expect("reads");
    drop(engine);
    expected
}

#[test]
fn every_flipped_bit_of_the_manifest_is_seen() {
    let dir = Dir::new();
    filled(&dir);
    let mut bytes = fs::read(dir.file("MANIFEST-")).expect("reads");
    assert!(bytes.len() > 1000);
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        let scanned = log_scan::scan(&mut &bytes[..], u64::MAX).expect("a slice is always readable");
        assert!(scanned.is_err(), "bit {bit} was flipped unseen");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn flipped_bits_of_logs_refuse_the_open_and_change_nothing() {
    let dir = Dir::new();
    filled(&dir);
    for part in ["MANIFEST-", ".log"] {
        let path = dir.file(part);
        let whole = fs::read(&path).expect("reads");
        for step in 0..40 {
            let mut bytes = whole.clone();
            let at = step * (bytes.len() - 1) / 39;
            bytes[at] ^= 1 << (step % 8);
            fs::write(&path, &bytes).expect("writes");
            let before = dir.files();
            match RocksEngine::open(&dir.db(), &options()) {
                Err(EngineError::Corrupt { place, .. }) => {
                    let name = path.file_name().expect("has one").to_string_lossy();
                    assert!(place.to_string().contains(&*name), "{place} is not in {name}");
                }
                other => panic!("byte {at} of {part} was flipped unseen: {other:?}"),
            }
            assert!(dir.files() == before, "a refused open changed the directory");
        }
        fs::write(&path, &whole).expect("writes");
    }
    assert_eq!(open(&dir.db()).last_commit(), CommitSeq::new(30));
}

#[test]
fn a_flipped_bit_of_a_table_or_blob_gives_an_error_or_the_right_rows() {
    let dir = Dir::new();
    let expected = filled(&dir);
    let mut errors = 0;
    let names = [dir.names(".sst"), dir.names(".blob")];
    assert!(names.iter().all(|names| !names.is_empty()), "{names:?}");
    for name in names.concat() {
        let path = dir.db().join(&name);
        let whole = fs::read(&path).expect("reads");
        for step in 0..12 {
            let mut bytes = whole.clone();
            let at = step * (bytes.len() - 1) / 11;
            bytes[at] ^= 1 << (step % 8);
            fs::write(&path, &bytes).expect("writes");
            // A cache of its own: the shared one would answer with what it read before.
            let own = RocksOptions::new(Budget::new(16 << 20, 2)).with_access(Access::ReadOnly);
            match RocksEngine::open(&dir.db(), &own).and_then(|engine| rows(&engine)) {
                Ok(found) => assert!(found == expected, "byte {at} of {name} gave other rows"),
                Err(EngineError::Corrupt { .. }) => errors += 1,
                Err(error) => panic!("byte {at} of {name}: {error:?}"),
            }
        }
        fs::write(&path, &whole).expect("writes");
    }
    assert!(errors > 10, "{errors}");
}

/// Whatever is cut off the log, the rest is a prefix of whole commits.
#[test]
fn a_cut_log_gives_whole_commits() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    for index in 0..3_u8 {
        put(&engine, &[index], &[index; 40], Level::Process);
    }
    drop(engine);
    let path = dir.file(".log");
    let whole = fs::read(&path).expect("reads");
    let mut seen = std::collections::BTreeSet::new();
    for cut in (0..=whole.len()).step_by(5).chain([whole.len()]) {
        fs::write(&path, &whole[..cut]).expect("writes");
        let engine = RocksEngine::open(&dir.db(), &reading()).expect("a torn tail is what a crash leaves");
        let last = engine.last_commit().get();
        let keys: Vec<_> = rows(&engine)
            .expect("reads")
            .into_keys()
            .filter(|(family, _)| *family == Family::Object)
            .collect();
        assert_eq!(keys.len() as u64, last, "cut at {cut}");
        seen.insert(last);
    }
    assert_eq!(Vec::from_iter(seen), [0, 1, 2, 3]);
}

#[test]
fn synced_commits_that_are_gone_are_missed() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    put(&engine, b"a", b"1", Level::Power);
    drop(engine);
    let log = dir.file(".log");
    let whole = fs::read(&log).expect("reads");
    for rest in [Some(0), Some(whole.len() - 1), None] {
        match rest {
            Some(len) => fs::write(&log, &whole[..len]).expect("writes"),
            None => fs::remove_file(&log).expect("removes"),
        }
        let before = dir.files();
        for options in [options(), reading()] {
            dir.refused(
                &options,
                expect![[
                    "commits up to 1 were synced, but the newest found is 0: a file *.log is missing or cut, or the MANIFEST was cut; put it back, restore a checkpoint, or accept the loss with `cg accept-loss`"
                ]],
            );
        }
        assert!(dir.files() == before, "a refused open changed the directory");
    }
    // What is left can be read, and the world opens again once the log is back.
    let before = dir.files();
    let rest = RocksEngine::open(&dir.db(), &reading().with_accept_lost_commits(true)).expect("is accepted");
    assert_eq!(rest.last_commit(), CommitSeq::NONE);
    drop(rest);
    assert!(dir.files() == before, "a reader changed the directory");
    fs::write(&log, &whole).expect("writes");
    assert_eq!(open(&dir.db()).last_commit(), CommitSeq::new(1));
}

#[test]
fn a_loss_is_accepted_once_and_for_good() {
    let dir = Dir::new();
    let engine = create(&dir.db());
    put(&engine, b"a", b"1", Level::Power);
    put(&engine, b"b", b"2", Level::Power);
    drop(engine);
    fs::remove_file(dir.file(".log")).expect("removes");
    let accepting = options().with_accept_lost_commits(true);
    let examined = RocksEngine::examine(&dir.db(), &accepting).expect("is accepted");
    assert!(examined.has_lost_commits());
    let engine = examined.open().expect("opens");
    assert_eq!(engine.last_commit(), CommitSeq::NONE);
    drop(engine);
    // Either slot of the floor may be damaged later: neither may bring the higher promise back.
    let floor = dir.db().join("DURABLE");
    let whole = fs::read(&floor).expect("reads");
    for slot in 0..2 {
        let mut bytes = whole.clone();
        bytes[slot * 64 + 20] ^= 1;
        fs::write(&floor, &bytes).expect("writes");
        let engine = RocksEngine::open(&dir.db(), &reading()).expect("nothing is missed any more");
        assert_eq!(engine.last_commit(), CommitSeq::NONE);
    }
    fs::write(&floor, &whole).expect("writes");
    let engine = open(&dir.db());
    put(&engine, b"c", b"3", Level::Power);
    engine.close().expect("closes");
    drop(engine);
    let examined = RocksEngine::examine(&dir.db(), &accepting).expect("is whole");
    assert!(!examined.has_lost_commits(), "the promise grows again");
    assert_eq!(examined.open().expect("opens").last_commit(), CommitSeq::new(1));
}

/// Checks the error of opening without a file of a database, and puts the file back.
#[track_caller]
fn without(dir: &Dir, path: &Path, expected: Expect) {
    let bytes = fs::read(path).expect("reads");
    fs::remove_file(path).expect("removes");
    for options in [options(), reading()] {
        let error = RocksEngine::open(&dir.db(), &options).expect_err("is refused");
        let EngineError::Corrupt { place: Place::File { name, offset_bytes: 0 }, message } = error else {
            panic!("{error}")
        };
        assert_eq!(name, path.file_name().expect("has one").to_string_lossy());
        expected.assert_eq(&message);
    }
    fs::write(path, bytes).expect("writes");
}

#[test]
fn missing_files_are_named_with_what_is_there_and_what_helps() {
    let dir = Dir::new();
    let expected = filled(&dir);
    without(
        &dir,
        &dir.file("CURRENT"),
        expect![[
            "the file is missing; MANIFEST-000005 is there, and it is the only manifest: write its name and a line feed into CURRENT; all else may be sound"
        ]],
    );
    without(
        &dir,
        &dir.file("MANIFEST-"),
        expect![[
            "the file is missing; only it says which tables belong to the world: bring it back from a copy of this directory that was made since the world was last opened, or restore a checkpoint; 4 tables, 1 blob files and 1 logs are there"
        ]],
    );
    let names = Family::ALL.map(Family::name);
    let db = rocksdb::DB::open_cf_for_read_only(&rocksdb::Options::default(), dir.db(), names, false);
    let tables = db.expect("opens").live_files().expect("lists");
    let entities = tables.iter().find(|table| table.column_family_name == "entity").expect("has a table");
    without(
        &dir,
        &dir.db().join(entities.name.trim_start_matches('/')),
        expect![[
            "the file is missing; rows of entity were in it, and the tables of all others are there (worldMeta, worldProperties, chunkl0, chunkl1, chunkl2, opacityMap, chunkDelta, object, record, snapshot, index): a checkpoint that was made while the file existed has it under the same name, so copy it from there, or restore the checkpoint"
        ]],
    );
    // What is said of CURRENT is true.
    let manifest = dir.names("MANIFEST-").remove(0);
    fs::write(dir.file("CURRENT"), format!("{manifest}\n")).expect("writes");
    assert!(rows(&open(&dir.db())).expect("reads") == expected);
}

/// Bytes that a disk writes at once.
const SECTOR_BYTES: usize = 512;

/// A database that was not closed, with so many commits of 3 kB in its log; the ends of their records, and the log.
/// The first commit was promised, the others were not. What was synced of the files is not known, as to earlier releases.
fn logged(dir: &Dir, commits: u8) -> (PathBuf, Vec<u8>, Vec<usize>) {
    let engine = create(&dir.db());
    let mut ends = Vec::new();
    for index in 1..=commits {
        let level = if index == 1 { Level::Power } else { Level::Process };
        put(&engine, &[index], &[index; 3000], level);
        ends.push(fs::metadata(dir.file(".log")).expect("is there").len() as usize);
    }
    drop(engine);
    promise(dir, 1, [[0; 2]; 2]);
    let path = dir.file(".log");
    let whole = fs::read(&path).expect("reads");
    assert_eq!(ends.last(), Some(&whole.len()));
    (path, whole, ends)
}

/// The objects that there are, and the newest commit.
pub(super) fn objects(engine: &RocksEngine) -> (Vec<u8>, u64) {
    let all = rows(engine).expect("reads").into_keys();
    let objects = all.filter(|(family, _)| *family == Family::Object).map(|(_, key)| key[0]);
    (objects.collect(), engine.last_commit().get())
}

#[test]
fn a_log_whose_last_sectors_were_not_written_gives_whole_commits() {
    let dir = Dir::new();
    // So many that one record crosses from one of the log's blocks into the next.
    let (path, whole, ends) = logged(&dir, 12);
    assert!(whole.len() > 33 << 10);
    let mut seen = std::collections::BTreeSet::new();
    for border in (ends[0]..whole.len()).filter(|at| at.is_multiple_of(SECTOR_BYTES)) {
        let mut bytes = whole.clone();
        bytes[border..].fill(0);
        // Every second time the file is longer than what was written to it.
        let longer = if border.is_multiple_of(2 * SECTOR_BYTES) { 70_000 } else { 0 };
        bytes.resize(whole.len() + longer, 0);
        fs::write(&path, &bytes).expect("writes");
        // A record that is zero after the border anyway is whole.
        let is_whole = |end: &&usize| whole[border.min(**end)..**end].iter().all(|byte| *byte == 0);
        let last = ends.iter().filter(is_whole).count();
        let before = dir.files();
        let engine =
            RocksEngine::open(&dir.db(), &reading()).expect("a torn tail is what a power cut leaves");
        assert_eq!(objects(&engine), ((1..=last as u8).collect(), last as u64), "zeros from {border}");
        assert!(dir.files() == before);
        seen.insert(last);
    }
    assert!(seen.into_iter().eq(1..=11), "whichever is torn");
}

#[test]
fn a_torn_log_is_opened_for_writing_if_nothing_promised_is_missing() {
    let dir = Dir::new();
    let (path, whole, ends) = logged(&dir, 5);
    let torn_in = |record: usize| {
        let border = (ends[record - 1] - 40) / SECTOR_BYTES * SECTOR_BYTES;
        let mut bytes = whole.clone();
        bytes[border..].fill(0);
        fs::write(&path, &bytes).expect("writes");
    };
    // The page of the promised commit was not written.
    torn_in(1);
    let before = dir.files();
    dir.refused(
        &options(),
        expect![[
            "commits up to 1 were synced, but the newest found is 0: a file *.log is missing or cut, or the MANIFEST was cut; put it back, restore a checkpoint, or accept the loss with `cg accept-loss`"
        ]],
    );
    assert!(dir.files() == before, "a refused open changed the directory");
    let rest = RocksEngine::open(&dir.db(), &reading().with_accept_lost_commits(true)).expect("is accepted");
    assert_eq!(objects(&rest), (vec![], 0));
    drop(rest);

    torn_in(4);
    let engine = open(&dir.db());
    assert_eq!(objects(&engine), (vec![1, 2, 3], 3));
    // The numbers go on after what is there.
    assert_eq!(put(&engine, &[9], &[9; 3000], Level::Power), CommitSeq::new(4));
    drop(engine);
    for _ in 0..2 {
        let engine = open(&dir.db());
        assert_eq!(objects(&engine), (vec![1, 2, 3, 9], 4));
        engine.close().expect("closes");
    }
}

#[test]
fn zeros_in_the_middle_of_a_log_are_damage() {
    let dir = Dir::new();
    let (path, whole, ends) = logged(&dir, 12);
    promise(&dir, 12, [[0; 2]; 2]);
    // Also one that reaches to the end of a block of the log, and the first one of the next block.
    for page in [4 << 10, 8 << 10, 28 << 10, 32 << 10] {
        let mut bytes = whole.clone();
        bytes[page..page + (4 << 10)].fill(0);
        fs::write(&path, &bytes).expect("writes");
        let before = dir.files();
        for options in [options(), reading()] {
            let error = RocksEngine::open(&dir.db(), &options).expect_err("is refused");
            let EngineError::Corrupt { place: Place::File { offset_bytes, .. }, .. } = error else {
                panic!("{error}")
            };
            let record = ends.iter().rev().find(|end| **end <= page).expect("there is one before");
            let part = offset_bytes as usize;
            assert!((*record..=page).contains(&part), "the record around {page}, not {part}");
        }
        assert!(dir.files() == before, "a refused open changed the directory");
    }
}

#[test]
fn a_manifest_that_ends_in_zeros_is_damage() {
    let dir = Dir::new();
    filled(&dir);
    let path = dir.file("MANIFEST-");
    let mut bytes = fs::read(&path).expect("reads");
    let border = (bytes.len() - 1) / SECTOR_BYTES * SECTOR_BYTES;
    bytes[border..].fill(0);
    fs::write(&path, &bytes).expect("writes");
    let before = dir.files();
    for options in [options(), reading()] {
        let error = RocksEngine::open(&dir.db(), &options).expect_err("is refused").to_string();
        assert!(error.ends_with("the last record is zeroed from some point on"), "{error}");
    }
    assert!(dir.files() == before, "a refused open changed the directory");
}

/// A database with two logs that are both needed: commits 1 to 5 in the older one, 6 to 8 in the newer one. Nothing of
/// them was promised.
pub(super) fn two_logs(dir: &Dir) -> [PathBuf; 2] {
    drop(create(&dir.db()));
    let names = Family::ALL.map(Family::name);
    let db = rocksdb::DB::open_cf(&rocksdb::Options::default(), dir.db(), names).expect("is closed");
    let commit = |seq: u8, space: Space| {
        let sealed = |space: Space, key: &[u8], len: usize| {
            Draft::plain(Codec::None, 0, |out| out.extend(vec![seq; len])).seal(space, key, u64::from(seq))
        };
        let family = |space: Space| db.cf_handle(space.family().name()).expect("is there");
        let mut batch = rocksdb::WriteBatch::default();
        batch.put_cf(&family(space), [seq], sealed(space, &[seq], 3000));
        let key = COMMIT_SEQUENCE_KEY;
        batch.put_cf(&family(Space::WorldMeta), key, sealed(Space::WorldMeta, key, 0));
        db.write(batch).expect("writes");
    };
    commit(1, Space::Entity);
    (2..=5).for_each(|seq| commit(seq, Space::Object));
    // A new log begins when a family is written out; the older one is needed for the others.
    db.flush_cf(&db.cf_handle(Family::Entity.name()).expect("is there")).expect("flushes");
    (6..=8).for_each(|seq| commit(seq, Space::Object));
    drop(db);
    let names: [String; 2] = dir.names(".log").try_into().expect("two logs");
    names.map(|name| dir.db().join(name))
}

#[test]
fn nothing_goes_on_behind_a_torn_log() {
    let dir = Dir::new();
    let [older, _] = two_logs(&dir);
    promise(&dir, 0, [[0; 2]; 2]);
    let whole = fs::read(&older).expect("reads");
    let border = (whole.len() - 40) / SECTOR_BYTES * SECTOR_BYTES;
    let mut zeroed = whole.clone();
    zeroed[border..].fill(0);
    for torn in [&zeroed, &whole[..border]] {
        fs::write(&older, torn).expect("writes");
        let before = dir.files();
        for options in [options(), reading()] {
            let error = RocksEngine::open(&dir.db(), &options).expect_err("is refused").to_string();
            assert!(error.contains("not written to its end, yet a later log goes on"), "{error}");
        }
        assert!(dir.files() == before, "a refused open changed the directory");
    }
    fs::write(&older, &whole).expect("writes");
    assert_eq!(objects(&open(&dir.db())), ((2..=8).collect(), 8));
}
