//! Damaged, cut and missing files: an error that names the place or the right rows, never others.

use super::*;
use cg_store::engine::rocks::log_scan;

/// A database with rows in files, in blobs and in the log, not closed.
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
        let scanned = log_scan::scan(&mut &bytes[..]).expect("a slice is always readable");
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
            let own = RocksOptions::new(Resources::new(16 << 20, 2)).with_access(Access::ReadOnly);
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
        dir.refused(
            &options(),
            expect!["commits up to 1 were synced, but the newest found is 0: files are missing or cut"],
        );
        assert!(dir.files() == before, "a refused open changed the directory");
    }
    // What is left can be read, and the world opens again once the log is back.
    let rest = RocksEngine::open(&dir.db(), &reading()).expect("opens for reading");
    assert_eq!(rest.last_commit(), CommitSeq::NONE);
    drop(rest);
    fs::write(&log, &whole).expect("writes");
    assert_eq!(open(&dir.db()).last_commit(), CommitSeq::new(1));
}

#[test]
fn missing_files_are_named() {
    let dir = Dir::new();
    filled(&dir);
    for part in ["MANIFEST-", ".sst"] {
        let path = dir.db().join(&dir.names(part)[0]);
        let bytes = fs::read(&path).expect("reads");
        fs::remove_file(&path).expect("removes");
        let error = RocksEngine::open(&dir.db(), &options()).expect_err("is refused");
        let name = path.file_name().expect("has one").to_string_lossy().into_owned();
        assert!(
            matches!(&error, EngineError::Corrupt { .. }) && error.to_string().contains(&name),
            "{error}"
        );
        fs::write(&path, bytes).expect("writes");
    }
}
