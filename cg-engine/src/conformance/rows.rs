//! The rows that exist after a batch.

use cg_format::Space;
use cg_format::frame::FrameView;
use cg_format::key::Family;

use super::{SPACE, commit, keys, payload, put, put_all, row};
use crate::{ALL_KEYS, Batch, CommitSeq, Engine, Level, Stamp};

pub(super) fn an_empty_engine_has_no_rows(engine: &dyn Engine) {
    assert_eq!(engine.last_commit(), CommitSeq::NONE);
    for family in Family::ALL {
        assert_eq!(keys(engine, family, ALL_KEYS), [b""; 0], "{family:?}");
    }
    assert!(engine.get(SPACE, b"key").expect("reads").is_none());
    assert!(engine.get_many(&[]).is_empty());
    assert!(engine.is_empty().expect("reads"));
    assert!(engine.snapshot().expect("is taken").is_empty().expect("reads"));
}

pub(super) fn a_row_of_any_family_is_noticed(engine: &dyn Engine) {
    for space in Space::ALL {
        let mut batch = Batch::new();
        batch.put(space, [space.byte()], row(b"only"), Stamp::Keep(1));
        engine.commit(batch.maintenance(), &[], Level::Process).expect("commits");
        assert!(!engine.is_empty().expect("reads"), "{space:?}");
        let with_row = engine.snapshot().expect("is taken");
        let mut batch = Batch::new();
        batch.delete(space, [space.byte()]);
        engine.commit(batch.maintenance(), &[], Level::Process).expect("commits");
        assert!(engine.is_empty().expect("reads"), "{space:?}");
        assert!(!with_row.is_empty().expect("reads"), "{space:?}");
    }
}

pub(super) fn keys_sort_as_unsigned_bytes(engine: &dyn Engine) {
    let sorted: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\0\xff", b"\x01", b"a", b"a\0", b"\x7f\xff", b"\x80"];
    let mut batch = Batch::new();
    for key in sorted.iter().rev() {
        put(&mut batch, key, b"");
    }
    commit(engine, batch);
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), sorted);
}

pub(super) fn families_are_apart(engine: &dyn Engine) {
    let mut batch = Batch::new();
    for space in Space::ALL {
        batch.put(space, [space.byte()], row(&[space.byte()]), Stamp::Commit);
    }
    commit(engine, batch);
    for space in Space::ALL {
        let stored = engine.get(space, &[space.byte()]).expect("reads").expect("was put");
        let frame =
            FrameView::open(space, &[space.byte()], &stored).expect("is sealed for its space and key");
        assert_eq!(frame.payload(), [space.byte()]);
        for other in Space::ALL.into_iter().filter(|other| other.family() != space.family()) {
            assert!(
                engine.get(other, &[space.byte()]).expect("reads").is_none(),
                "{space:?} seen in {other:?}"
            );
        }
    }
}

pub(super) fn operations_apply_in_order(engine: &dyn Engine) {
    let mut batch = Batch::new();
    put(&mut batch, b"put twice", b"first");
    put(&mut batch, b"put twice", b"second");
    put(&mut batch, b"deleted", b"");
    batch.delete(SPACE, b"deleted");
    batch.delete(SPACE, b"put again");
    put(&mut batch, b"put again", b"here");
    put(&mut batch, b"r1", b"swept");
    batch.delete_range(SPACE, b"r", b"s");
    put(&mut batch, b"r2", b"after the sweep");
    let mut more = Batch::new();
    put(&mut more, b"appended", b"last");
    batch.append(more);
    assert_eq!(batch.op_count(), 10);
    commit(engine, batch);

    assert_eq!(payload(engine, b"put twice").as_deref(), Some(&b"second"[..]));
    assert_eq!(payload(engine, b"deleted"), None);
    assert_eq!(payload(engine, b"put again").as_deref(), Some(&b"here"[..]));
    assert_eq!(payload(engine, b"r1"), None);
    assert_eq!(payload(engine, b"r2").as_deref(), Some(&b"after the sweep"[..]));
    assert_eq!(payload(engine, b"appended").as_deref(), Some(&b"last"[..]));
}

pub(super) fn a_range_is_deleted_up_to_its_end(engine: &dyn Engine) {
    put_all(engine, &[b"a", b"b", b"b\0", b"c", b"d"]);
    let mut batch = Batch::new();
    batch.delete_range(SPACE, b"b", b"d");
    batch.delete_range(SPACE, b"d", b"a");
    batch.delete_range(SPACE, b"a", b"a");
    commit(engine, batch);
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), [b"a", b"d"]);
    assert_eq!(payload(engine, b"b"), None);
    put_all(engine, &[b"b"]);
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), [b"a", b"b", b"d"]);
}
