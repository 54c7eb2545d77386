//! Laws for any bytes that are taken for a snapshot file: what is read is written so that it is read again, its
//! sections are chunks or are named as damaged, and the head alone says the same.

use std::io::Cursor;

use cg_format::Limits;
use cg_snapshot::Unverifiable;
use cg_snapshot::file::{FileOptions, SnapshotFile, explain, read_info};

/// Reads bytes as a snapshot and says whether they are one. Those with wrong checksums are none, and what they would say with right
/// ones keeps the same laws.
///
/// # Panics
/// If a law is broken.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let is_one = check_sealed(bytes);
    if let Some(sealed) = super::parts::sealed_snapshot(bytes) {
        check_sealed(&sealed);
    }
    is_one
}

fn check_sealed(bytes: &[u8]) -> bool {
    let limits = || Limits::new(8 << 20);
    let read = |unverifiable| SnapshotFile::open(Cursor::new(bytes), limits())?.load(unverifiable);
    let lossy = read(Unverifiable::Skip);
    let (_, explained) = explain(bytes, limits());
    let Ok(snapshot) = read(Unverifiable::Fail) else {
        assert!(explained.is_err());
        return false;
    };
    assert_eq!(lossy.expect("nothing has to be skipped"), snapshot);
    assert_eq!(explained.expect("the same reader"), snapshot);
    // The counts of the head were checked against the rest.
    assert_eq!(&read_info(bytes).expect("it was read"), snapshot.info());
    let damaged = snapshot.verify();
    assert!(damaged.len() <= snapshot.kept().len());
    let again = snapshot.to_bytes(&FileOptions::default()).expect("nothing is lost");
    let mut file = SnapshotFile::open(Cursor::new(&again), limits()).expect("just written");
    assert_eq!(file.load(Unverifiable::Fail).expect("just written"), snapshot);
    true
}
