//! Reads of rows by key and by range, from the current state and from snapshots.

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::{ControlFlow, Range};

use cg_format::frame::FrameView;
use cg_format::{Space, key};

use super::{SPACE, commit, keys, payload, payloads, put, put_all, row};
use crate::{ALL_KEYS, Batch, Engine, KeyRange, Readable, ReadableExt as _, RowSlice, Stamp, Value};

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

pub(super) fn keys_that_differ_in_their_last_byte_are_told_apart(engine: &dyn Engine) {
    let stored: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"a", b"a\0", b"a\x01", b"a\x01\x01", b"a\xff", b"b"];
    let asked: [&[u8]; 12] = [
        b"a\xff",
        b"",
        b"a\0",
        b"\0",
        b"a\x02",
        b"a",
        b"a\x01\0",
        b"a\xff",
        b"\x01",
        b"\x01\x01",
        b"c",
        b"a",
    ];
    // Alone, and at the end of keys of chunks.
    for (space, before) in [(SPACE, 0), (Space::ChunkL0, key::CHUNK_LEN_BYTES - 1)] {
        let whole = |key: &[u8]| [&vec![7; before], key].concat();
        let mut batch = Batch::new();
        for key in stored {
            batch.put(space, whole(key), row(b""), Stamp::Commit);
        }
        commit(engine, batch);
        let keys = asked.map(whole);
        let slices = keys.each_ref().map(|key| RowSlice { space, key, bytes: 0..usize::MAX });
        let check = |view: &dyn Readable| {
            let many = view.get_many(&slices.each_ref().map(|slice| (space, slice.key)));
            for found in [many, view.get_slices(&slices)] {
                for ((key, RowSlice { key: whole, .. }), found) in asked.iter().zip(&slices).zip(found) {
                    // The key is part of the checksum of a row.
                    let is_its = |found: Value<'_>| FrameView::open(space, whole, &found).is_ok();
                    let expected = stored.contains(key).then_some(true);
                    assert_eq!(
                        found.expect("reads").map(is_its),
                        expected,
                        "{space:?} {}",
                        key.escape_ascii()
                    );
                }
            }
        };
        check(engine);
        check(&engine.snapshot().expect("is open"));
    }
}

pub(super) fn parts_of_rows_are_cut_out(engine: &dyn Engine) {
    put_all(engine, &[b"a", b"b"]);
    let whole = engine.get(SPACE, b"a").expect("reads").expect("was put").to_vec();
    let len = whole.len();
    let asked: [(&[u8], Range<usize>); 8] = [
        (b"b", 0..0),
        (b"a", 0..len),
        (b"a", 3..9),
        (b"absent", 0..9),
        (b"a", len - 1..len + 9),
        (b"a", len..len),
        (b"a", len + 1..usize::MAX),
        (b"a", 3..9),
    ];
    let slices = asked.clone().map(|(key, bytes)| RowSlice { space: SPACE, key, bytes });
    let check = |view: &dyn Readable| {
        let found = view.get_slices(&slices);
        assert_eq!(found.len(), asked.len());
        for ((key, bytes), found) in asked.iter().zip(found) {
            let within = bytes.start.min(len)..bytes.end.min(len);
            let expected = (*key != b"absent").then(|| &whole[within]);
            assert_eq!(found.expect("reads").as_deref(), expected, "{bytes:?} of {}", key.escape_ascii());
        }
    };
    check(engine);
    check(&engine.snapshot().expect("is open"));
    engine.flush().expect("flushes");
    check(engine);
    assert!(engine.get_slices(&[]).is_empty());
}

pub(super) fn a_scan_ends_at_its_limit(engine: &dyn Engine) {
    let all: Vec<[u8; 2]> = (0..600_u16).map(u16::to_be_bytes).collect();
    let mut batch = Batch::new();
    for key in &all {
        put(&mut batch, key, key);
    }
    commit(engine, batch);
    let first = |view: &dyn Readable, from: Bound<&[u8]>, max_rows| {
        let mut keys = Vec::new();
        let visit = |key: &[u8], _: &[u8]| {
            keys.push(key.to_vec());
            ControlFlow::<()>::Continue(())
        };
        assert_eq!(view.scan_first(SPACE.family(), (from, Unbounded), max_rows, visit).expect("scans"), None);
        keys
    };
    let check = |view: &dyn Readable| {
        for max_rows in [0, 1, 255, 256, 257, 512, 599, 600, 601, usize::MAX] {
            let end = max_rows.min(all.len());
            assert_eq!(first(view, Unbounded, max_rows), all[..end], "the first {max_rows}");
            let end = max_rows.min(all.len() - 8) + 8;
            assert_eq!(first(view, Excluded(&all[7]), max_rows), all[8..end], "{max_rows} after a key");
        }
        let mut shown = 0;
        let broken = view.scan_first(SPACE.family(), ALL_KEYS, 5, |_, _| {
            shown += 1;
            if shown == 2 { ControlFlow::Break("broken") } else { ControlFlow::Continue(()) }
        });
        assert_eq!((broken.expect("scans"), shown), (Some("broken"), 2));
    };
    check(engine);
    check(&engine.snapshot().expect("is open"));
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
        // Writes and deletions during the scan do not change what it visits.
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

pub(super) fn a_scan_of_few_large_rows_is_of_one_state(engine: &dyn Engine) {
    let [old, new] = [b'o', b'n'].map(|byte| vec![byte; 200 << 10]);
    let write = |key: u8, payload: &[u8]| {
        let mut batch = Batch::new();
        put(&mut batch, &[key], payload);
        commit(engine, batch);
    };
    (0..20).for_each(|key| write(key, &old));
    let mut found = Vec::new();
    let visit = |key: &[u8], row: &[u8]| {
        if found.is_empty() {
            write(19, &new);
        }
        let frame = FrameView::open(SPACE, key, row).expect("is sealed");
        found.push((key.to_vec(), frame.payload() == old));
        ControlFlow::<()>::Continue(())
    };
    engine.scan_first(SPACE.family(), ALL_KEYS, 100, visit).expect("scans");
    assert_eq!(found, (0..20).map(|key| (vec![key], true)).collect::<Vec<_>>());
}
