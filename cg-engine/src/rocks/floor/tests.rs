//! Tests that the floor only rises, and that an interrupted write leaves the older slot.

use super::*;

#[track_caller]
fn promised_by(dir: &Path) -> u64 {
    known(dir).expect("reads").seq.get()
}

fn to(seq: u64) -> Promise {
    let end = |number| FileEnd { number, len_bytes: seq * 100 };
    Promise { seq: CommitSeq::new(seq), lineage: 1, synced: Synced { log: end(5), manifest: end(3) } }
}

#[test]
fn a_floor_is_kept_and_only_rises() {
    let dir = tempfile::tempdir().expect("a directory");
    assert_eq!(promised_by(dir.path()), 0);
    let mut floor = Floor::open(dir.path()).expect("is made");
    floor.raise(to(7));
    assert_eq!(promised_by(dir.path()), 7);
    floor.raise(to(3));
    assert_eq!(promised_by(dir.path()), 7);
    // It was raised less than a second ago.
    assert!(!floor.is_due());
    floor.raised = None;
    assert!(floor.is_due());
    floor.raise(to(9));
    assert_eq!(Floor::open(dir.path()).expect("opens").seq().get(), 9);
}

#[test]
fn one_damaged_slot_leaves_the_other() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join(FILE_NAME);
    let mut floor = Floor::open(dir.path()).expect("is made");
    floor.raise(to(7));
    floor.raise(to(8));
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
    let error = problem(dir.path()).expect("both slots are damaged").to_string();
    assert!(
        error.starts_with("file DURABLE at byte 0 is damaged: neither slot matches its checksum; "),
        "{error}"
    );
    assert_eq!(promised_by(dir.path()), 0);
    assert_eq!(Floor::open(dir.path()).expect("is made anew").seq(), CommitSeq::NONE);
    assert!(problem(dir.path()).is_none());
}
