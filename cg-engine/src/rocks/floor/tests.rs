//! Tests that the floor only rises, and that an interrupted write leaves the older slot.

use super::*;

#[track_caller]
fn promised_by(dir: &Path) -> u64 {
    promised(dir).expect("reads").get()
}

#[test]
fn a_floor_is_kept_and_only_rises() {
    let dir = tempfile::tempdir().expect("a directory");
    assert_eq!(promised_by(dir.path()), 0);
    let mut floor = Floor::open(dir.path()).expect("is made");
    floor.raise_now(CommitSeq::new(7));
    assert_eq!(promised_by(dir.path()), 7);
    floor.raise_now(CommitSeq::new(3));
    assert_eq!(promised_by(dir.path()), 7);
    // The last write was less than a second ago, so this one is skipped.
    floor.raise(CommitSeq::new(8));
    assert_eq!((promised_by(dir.path()), floor.seq().get()), (7, 7));
    floor.written = None;
    floor.raise(CommitSeq::new(9));
    assert_eq!(Floor::open(dir.path()).expect("opens").seq().get(), 9);
}

#[test]
fn one_damaged_slot_leaves_the_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(FILE_NAME);
    let mut floor = Floor::open(dir.path()).expect("is made");
    floor.raise_now(CommitSeq::new(7));
    floor.raise_now(CommitSeq::new(8));
    let whole = std::fs::read(&path).expect("reads");
    assert_eq!(whole.len(), 2 * SLOT_BYTES);
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(&path, &bytes).expect("writes");
        assert!(matches!(promised_by(dir.path()), 7 | 8), "bit {bit}");
    }
    let mut bytes = whole;
    bytes[16] ^= 1;
    bytes[SLOT_BYTES + 60] ^= 1;
    std::fs::write(&path, &bytes).expect("writes");
    let error = promised(dir.path()).expect_err("both slots are damaged");
    assert_eq!(error.to_string(), "file DURABLE at byte 0 is damaged: neither slot matches its checksum");
}
