//! Reading rows by key and by range, of now and of before.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::ControlFlow;

use cg_format::Space;

use super::{SPACE, commit, keys, payload, payloads, put, put_all, row};
use crate::{ALL_KEYS, Batch, Engine, KeyRange, ReadableExt as _, Stamp};

pub(super) fn many_keys_are_answered_in_their_order(engine: &dyn Engine) {
    let mut batch = Batch::new();
    for index in 0..200_u8 {
        let space = if index % 3 == 0 { Space::Entity } else { SPACE };
        batch.put(space, [index], row(&[index]), Stamp::Commit);
    }
    commit(engine, batch);
    // Descending, mixed, with absent and repeated ones.
    let wanted: Vec<(Space, [u8; 1])> = (0..=250_u8)
        .rev()
        .map(|index| (if index % 3 == 0 { Space::Entity } else { SPACE }, [index]))
        .chain([(SPACE, [1]), (Space::Entity, [1]), (SPACE, [1])])
        .collect();
    let asked: Vec<(Space, &[u8])> = wanted.iter().map(|(space, key)| (*space, &key[..])).collect();
    let check = |found: Vec<Option<Vec<u8>>>| {
        assert_eq!(found.len(), wanted.len());
        for ((space, [index]), found) in wanted.iter().zip(found) {
            let stored = *index < 200 && (*space == Space::Entity) == (index % 3 == 0);
            assert_eq!(found, stored.then(|| vec![*index]), "{space:?} {index}");
        }
    };
    check(payloads(engine, &asked));
    check(payloads(&engine.snapshot().expect("is open"), &asked));
    engine.flush().expect("flushes");
    check(payloads(engine, &asked));
}

pub(super) fn scans_keep_to_their_bounds(engine: &dyn Engine) {
    put_all(engine, &[b"a", b"b", b"b\0", b"c", b"d"]);
    let cases: [(KeyRange<'_>, &[&[u8]]); 12] = [
        ((Included(b"b"), Included(b"c")), &[b"b", b"b\0", b"c"]),
        ((Included(b"b"), Excluded(b"c")), &[b"b", b"b\0"]),
        ((Excluded(b"b"), Excluded(b"c")), &[b"b\0"]),
        ((Excluded(b"b"), Unbounded), &[b"b\0", b"c", b"d"]),
        ((Unbounded, Excluded(b"b")), &[b"a"]),
        ((Unbounded, Included(b"b")), &[b"a", b"b"]),
        ((Included(b"bb"), Included(b"cc")), &[b"c"]),
        ((Included(b"b"), Included(b"b")), &[b"b"]),
        ((Excluded(b"b"), Excluded(b"b")), &[]),
        ((Included(b"b"), Excluded(b"b")), &[]),
        ((Included(b"d"), Included(b"a")), &[]),
        ((Excluded(b"e"), Unbounded), &[]),
    ];
    for (range, expected) in cases {
        assert_eq!(keys(engine, SPACE.family(), range), expected, "{range:?}");
        assert_eq!(
            keys(&engine.snapshot().expect("is open"), SPACE.family(), range),
            expected,
            "{range:?} of a snapshot"
        );
    }
}

pub(super) fn a_scan_resumes_behind_a_key(engine: &dyn Engine) {
    let all: Vec<[u8; 2]> = (0..500_u16).map(|index| [(index >> 8) as u8, index as u8]).collect();
    let mut batch = Batch::new();
    for key in &all {
        put(&mut batch, key, key);
    }
    commit(engine, batch);
    let mut seen: Vec<Vec<u8>> = Vec::new();
    loop {
        let last = seen.last().cloned();
        let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut left = 7;
        let stopped = engine.scan(SPACE.family(), (from, Bound::Unbounded), |key, _| {
            seen.push(key.to_vec());
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if stopped.expect("scans").is_none() {
            break;
        }
    }
    assert_eq!(seen, all);
}

pub(super) fn a_scan_stops_and_may_commit(engine: &dyn Engine) {
    put_all(engine, &[b"a", b"b", b"c"]);
    let mut seen = Vec::new();
    let found = engine.scan(SPACE.family(), ALL_KEYS, |key, _| {
        seen.push(key.to_vec());
        // Rows that are written or removed meanwhile do not change what the scan shows.
        let mut batch = Batch::new();
        batch.delete(SPACE, b"b");
        put(&mut batch, b"bb", b"");
        commit(engine, batch);
        if key == b"c" { ControlFlow::Break(key.len()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(found.expect("scans"), Some(1));
    assert_eq!(seen, [b"a", b"b", b"c"]);
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), [&b"a"[..], b"bb", b"c"]);
}

pub(super) fn a_snapshot_does_not_move(engine: &dyn Engine) {
    put_all(engine, &[b"a", b"b"]);
    let snapshot = engine.snapshot().expect("is open");
    let mut batch = Batch::new();
    put(&mut batch, b"a", b"changed");
    batch.delete(SPACE, b"b");
    put(&mut batch, b"c", b"new");
    commit(engine, batch);
    engine.flush().expect("flushes");
    engine.compact(SPACE.family(), ALL_KEYS).expect("compacts");

    assert_eq!(keys(&snapshot, SPACE.family(), ALL_KEYS), [b"a", b"b"]);
    assert_eq!(payload(&snapshot, b"a").as_deref(), Some(&b""[..]));
    assert_eq!(payload(&snapshot, b"c"), None);
    assert_eq!(payloads(&snapshot, &[(SPACE, b"c"), (SPACE, b"b")]), [None, Some(Vec::new())]);
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), [b"a", b"c"]);
}
