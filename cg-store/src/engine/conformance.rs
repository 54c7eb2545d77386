//! What every engine does, as tests that run over any of them.
//!
//! An engine's own tests call [`run_all`] with a function that makes it. Each test gets a fresh engine, and panics with
//! what it saw where the engine breaks a promise of the [trait](Engine).
//!
//! ```
//! use cg_store::engine::{MemEngine, conformance};
//! conformance::run_all(|| MemEngine::new().with_max_batch_bytes(1 << 20));
//! ```

use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cg_format::Space;
use cg_format::frame::{Codec, Draft, FrameView, LEN_BYTES};
use cg_format::key::Family;

use super::{
    ALL_KEYS, Batch, COMMIT_SEQUENCE_KEY, CommitSeq, Engine, EngineError, Guard, KeyRange, Level, ReadView,
    Stamp,
};

const SPACE: Space = Space::Object;

/// Runs every test over engines that `make` makes, each empty and separate from the others.
///
/// # Panics
/// If the engine breaks a promise.
pub fn run_all<E: Engine>(make: impl Fn() -> E) {
    an_empty_engine_has_no_rows(&make());
    keys_sort_as_unsigned_bytes(&make());
    families_are_apart(&make());
    operations_apply_in_order(&make());
    a_range_is_deleted_up_to_its_end(&make());
    frames_get_their_version(&make());
    sequences_rise_by_one_and_are_stored(&make());
    a_rearrangement_takes_no_sequence(&make());
    a_conflict_writes_nothing(&make());
    guards_see_versions_and_absence(&make());
    a_batch_over_the_limit_writes_nothing(&make());
    many_keys_are_answered_in_their_order(&make());
    scans_keep_to_their_bounds(&make());
    a_scan_resumes_behind_a_key(&make());
    a_scan_stops_and_may_commit(&make());
    a_snapshot_does_not_move(&make());
    readers_see_whole_batches(&make());
    committers_do_not_lose_each_other(&make());
    guarded_increments_add_up(&make());
    a_sync_covers_what_was_committed(&make());
    flushing_and_compacting_change_no_row(&make());
    usage_lists_every_family(&make());
    a_closed_engine_refuses(&make());
}

fn an_empty_engine_has_no_rows<E: Engine>(engine: &E) {
    assert_eq!(engine.last_commit(), CommitSeq::NONE);
    for family in Family::ALL {
        assert_eq!(keys(engine, family, ALL_KEYS), [b""; 0], "{family:?}");
    }
    assert!(engine.get(SPACE, b"key").expect("reads").is_none());
    assert!(engine.get_many(&[]).is_empty());
}

fn keys_sort_as_unsigned_bytes<E: Engine>(engine: &E) {
    let sorted: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\0\xff", b"\x01", b"a", b"a\0", b"\x7f\xff", b"\x80"];
    let mut batch = Batch::new();
    for key in sorted.iter().rev() {
        put(&mut batch, key, b"");
    }
    commit(engine, batch);
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), sorted);
}

fn families_are_apart<E: Engine>(engine: &E) {
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

fn operations_apply_in_order<E: Engine>(engine: &E) {
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

fn a_range_is_deleted_up_to_its_end<E: Engine>(engine: &E) {
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

fn frames_get_their_version<E: Engine>(engine: &E) {
    let mut batch = Batch::new();
    batch.put(SPACE, b"new", row(b"1"), Stamp::Commit);
    batch.put(SPACE, b"moved", row(b"2"), Stamp::Keep(40));
    let seq = commit(engine, batch);
    assert_eq!(version(engine, b"new"), Some(seq.get()));
    assert_eq!(version(engine, b"moved"), Some(40));
}

fn sequences_rise_by_one_and_are_stored<E: Engine>(engine: &E) {
    for expected in 1..=3 {
        let mut batch = Batch::new();
        // Not even on purpose can a batch set the sequence.
        batch.put(Space::WorldMeta, COMMIT_SEQUENCE_KEY, row(b"x"), Stamp::Keep(99));
        batch.delete_range(Space::WorldMeta, b"a", b"z");
        assert_eq!(commit(engine, batch), CommitSeq::new(expected));
        assert_eq!(engine.last_commit(), CommitSeq::new(expected));
        let stored =
            engine.get(Space::WorldMeta, COMMIT_SEQUENCE_KEY).expect("reads").expect("every commit has it");
        let frame = FrameView::open(Space::WorldMeta, COMMIT_SEQUENCE_KEY, &stored).expect("is sealed");
        assert_eq!((frame.header().version, frame.payload()), (expected, &b""[..]));
    }
    assert_eq!(commit(engine, Batch::new()), CommitSeq::new(4), "an empty batch is a commit too");
}

fn a_rearrangement_takes_no_sequence<E: Engine>(engine: &E) {
    let mut batch = Batch::new();
    put(&mut batch, b"a", b"1");
    commit(engine, batch);
    let batches = engine.batch_count();
    let mut moved = Batch::new();
    moved.put(Space::Object, b"b", row(b"2"), Stamp::Commit);
    moved.put(Space::Object, b"c", row(b"3"), Stamp::Keep(9));
    let seq = engine
        .commit(moved.rearranging(), &[Guard::version(Space::Object, b"a", 1)], Level::Process)
        .expect("commits");
    assert_eq!((seq, engine.last_commit()), (CommitSeq::new(1), CommitSeq::new(1)));
    let keys: [(Space, &[u8]); 3] =
        [(Space::Object, b"b"), (Space::Object, b"c"), (Space::WorldMeta, COMMIT_SEQUENCE_KEY)];
    assert_eq!(versions(engine, &keys), [Some(1), Some(9), Some(1)]);
    assert!(engine.batch_count() > batches, "a reader in between notices");
    let before = engine.get(Space::Object, b"b").expect("reads").expect("was written").to_vec();
    let mut again = Batch::new();
    again.put(Space::Object, b"b", row(b"other"), Stamp::Commit);
    let same = || Guard::same(Space::Object, b"b", &before);
    engine.commit(again.rearranging(), &[same()], Level::Process).expect("it is the row");
    assert_eq!(version(engine, b"b"), Some(1), "of the same version");
    let refused = engine.commit(Batch::new(), &[same()], Level::Process);
    assert!(
        matches!(refused, Err(EngineError::Conflict { expected: Some(1), found: Some(1), .. })),
        "{refused:?}"
    );
    assert_eq!(commit(engine, Batch::new()), CommitSeq::new(2));
}

fn a_conflict_writes_nothing<E: Engine>(engine: &E) {
    put_all(engine, &[b"a"]);
    let mut batch = Batch::new();
    put(&mut batch, b"a", b"changed");
    put(&mut batch, b"b", b"new");
    let guards = [Guard::version(SPACE, b"a", 1), Guard::version(SPACE, b"a", 7)];
    match engine.commit(batch, &guards, Level::Power) {
        Err(EngineError::Conflict { space: SPACE, key, expected: Some(7), found: Some(1) }) => {
            assert_eq!(&*key, b"a");
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
    assert_eq!(payload(engine, b"a").as_deref(), Some(&b""[..]));
    assert_eq!(payload(engine, b"b"), None);
    assert_eq!(engine.last_commit(), CommitSeq::new(1));
    assert_eq!(commit(engine, Batch::new()), CommitSeq::new(2), "a conflict uses up no sequence");
}

fn guards_see_versions_and_absence<E: Engine>(engine: &E) {
    let refused = |guard: Guard| match engine.commit(Batch::new(), &[guard], Level::Process) {
        Err(EngineError::Conflict { expected, found, .. }) => (expected, found),
        other => panic!("expected a conflict, got {other:?}"),
    };
    let accepted = |guard: Guard| {
        engine.commit(Batch::new(), &[guard], Level::Process).expect("the guard holds");
    };
    accepted(Guard::absent(SPACE, b"a"));
    assert_eq!(refused(Guard::version(SPACE, b"a", 1)), (Some(1), None));
    put_all(engine, &[b"a"]);
    accepted(Guard::version(SPACE, b"a", 2));
    assert_eq!(refused(Guard::absent(SPACE, b"a")), (None, Some(2)));
    // A guard looks at the row and not at what its own batch does to it.
    let mut batch = Batch::new();
    batch.delete(SPACE, b"a");
    engine.commit(batch, &[Guard::version(SPACE, b"a", 2)], Level::Process).expect("the guard holds");
    accepted(Guard::absent(SPACE, b"a"));
}

fn a_batch_over_the_limit_writes_nothing<E: Engine>(engine: &E) {
    let max_bytes = engine.caps().max_batch_bytes;
    let of_len = |len_bytes: u64| {
        let mut batch = Batch::new();
        put(&mut batch, b"key", &vec![7; len_bytes as usize - b"key".len() - LEN_BYTES]);
        assert_eq!(batch.len_bytes(), len_bytes);
        batch
    };
    match engine.commit(of_len(max_bytes + 1), &[], Level::Process) {
        Err(EngineError::TooLarge { len_bytes, max_bytes: limit }) => {
            assert_eq!((len_bytes, limit), (max_bytes + 1, max_bytes));
        }
        other => panic!("expected the batch to be too large, got {other:?}"),
    }
    assert_eq!(payload(engine, b"key"), None);
    assert_eq!(engine.last_commit(), CommitSeq::NONE);
    commit(engine, of_len(max_bytes));
    assert!(payload(engine, b"key").is_some());
}

fn many_keys_are_answered_in_their_order<E: Engine>(engine: &E) {
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
    check(payloads(&engine.snapshot(), &asked));
    engine.flush().expect("flushes");
    check(payloads(engine, &asked));
}

fn scans_keep_to_their_bounds<E: Engine>(engine: &E) {
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
        assert_eq!(keys(&engine.snapshot(), SPACE.family(), range), expected, "{range:?} of a snapshot");
    }
}

fn a_scan_resumes_behind_a_key<E: Engine>(engine: &E) {
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

fn a_scan_stops_and_may_commit<E: Engine>(engine: &E) {
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

fn a_snapshot_does_not_move<E: Engine>(engine: &E) {
    put_all(engine, &[b"a", b"b"]);
    let snapshot = engine.snapshot();
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

/// Two rows in two families always carry the same commit's number, however much is read between them.
fn readers_see_whole_batches<E: Engine>(engine: &E) {
    let pair: [(Space, &[u8]); 2] = [(SPACE, b"left"), (Space::Entity, b"right")];
    let absent: Vec<[u8; 2]> = (0..400_u16).map(u16::to_le_bytes).collect();
    let mut asked = pair.to_vec();
    asked.extend(absent.iter().map(|key| (Space::Entity, &key[..])));
    let write = || {
        let mut batch = Batch::new();
        for (space, key) in pair {
            batch.put(space, key, row(b""), Stamp::Commit);
        }
        commit(engine, batch)
    };
    write();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = [(); 2].map(|()| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for found in [versions(engine, &asked), versions(&engine.snapshot(), &asked)] {
                        let whole = matches!(found[..], [Some(a), Some(b), ..] if a == b);
                        assert!(whole, "a batch was seen in parts: {:?}", &found[..2]);
                    }
                }
            })
        });
        let _done = SetOnDrop(&done);
        for _ in 0..1000 {
            let seq = write();
            assert_eq!(
                versions(engine, &pair),
                [Some(seq.get()); 2],
                "a commit is seen once it is acknowledged"
            );
            if readers.iter().any(thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
    });
}

/// Ends the readers when the writer is done, or panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn committers_do_not_lose_each_other<E: Engine>(engine: &E) {
    const EACH: u8 = 50;
    let mut seqs: Vec<CommitSeq> = thread::scope(|scope| {
        let workers: Vec<_> = (0..4_u8)
            .map(|worker| {
                scope.spawn(move || {
                    let level = if worker % 2 == 0 { Level::Power } else { Level::Process };
                    let one = |index| {
                        let mut batch = Batch::new();
                        put(&mut batch, &[worker, index], b"");
                        engine.commit(batch, &[], level).expect("commits")
                    };
                    (0..EACH).map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("the worker ends")).collect()
    });
    seqs.sort_unstable();
    assert!(seqs.into_iter().eq((1..=200).map(CommitSeq::new)), "every commit has a sequence of its own");
    assert_eq!(engine.last_commit(), CommitSeq::new(200));
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS).len(), 200);
}

/// The guard makes a read and a write one step: no increment is lost, whether it is a commit or a rearrangement, and
/// whatever is compared before the engine takes its lock.
fn guarded_increments_add_up<E: Engine>(engine: &E) {
    const EACH: u8 = 40;
    let mut first = Batch::new();
    put(&mut first, b"count", &[0]);
    commit(engine, first);
    thread::scope(|scope| {
        for worker in 0..4_u8 {
            scope.spawn(move || {
                let mut left = EACH;
                while left > 0 {
                    let stored = engine.get(SPACE, b"count").expect("reads").expect("is there");
                    let frame = FrameView::open(SPACE, b"count", &stored).expect("is sealed");
                    let mut batch = Batch::new();
                    put(&mut batch, b"count", &[frame.payload()[0] + 1]);
                    if worker % 2 == 0 {
                        batch = batch.rearranging();
                    }
                    let absent = |n| Guard::absent(SPACE, [worker, n]);
                    let mut guards: Vec<_> = (0..50).map(absent).collect();
                    guards.push(Guard::same(SPACE, b"count", &stored));
                    match engine.commit(batch, &guards, Level::Process) {
                        Ok(_) => left -= 1,
                        Err(EngineError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    assert_eq!(payload(engine, b"count"), Some(vec![4 * EACH]));
}

fn a_sync_covers_what_was_committed<E: Engine>(engine: &E) {
    commit(engine, Batch::new());
    engine.sync().expect("syncs");
    assert_eq!(engine.last_synced(), CommitSeq::new(1));
    let seq = engine.commit(Batch::new(), &[], Level::Power).expect("commits");
    assert!(engine.last_synced() >= seq);
    engine.sync().expect("nothing is left to sync");
}

fn flushing_and_compacting_change_no_row<E: Engine>(engine: &E) {
    put_all(engine, &[b"a", b"b", b"c"]);
    engine.flush().expect("flushes");
    let mut batch = Batch::new();
    batch.delete(SPACE, b"b");
    commit(engine, batch);
    for family in Family::ALL {
        engine.compact(family, ALL_KEYS).expect("compacts");
    }
    engine.compact(SPACE.family(), (Bound::Included(b"c"), Bound::Included(b"a"))).expect("compacts nothing");
    assert_eq!(keys(engine, SPACE.family(), ALL_KEYS), [b"a", b"c"]);
}

fn usage_lists_every_family<E: Engine>(engine: &E) {
    put_all(engine, &[b"a", b"b"]);
    let usage = engine.usage().expect("is open");
    let families: Vec<_> = usage.families.iter().map(|family| family.family).collect();
    assert_eq!(families, Family::ALL);
    let rows =
        usage.families.iter().find(|family| family.family == SPACE.family()).map(|family| family.row_count);
    assert_eq!(rows, Some(2));
}

fn a_closed_engine_refuses<E: Engine>(engine: &E) {
    put_all(engine, &[b"a"]);
    let snapshot = engine.snapshot();
    engine.close().expect("closes");
    engine.close().expect("a second time does nothing");
    let closed = |result: Result<(), EngineError>| {
        assert!(matches!(result, Err(EngineError::Closed)), "expected that it is closed, got {result:?}");
    };
    let visit = |_: &[u8], _: &[u8]| ControlFlow::<()>::Continue(());
    closed(engine.commit(Batch::new(), &[], Level::Process).map(drop));
    closed(engine.get(SPACE, b"a").map(drop));
    closed(engine.get_many(&[(SPACE, b"a")]).remove(0).map(drop));
    closed(engine.scan(SPACE.family(), ALL_KEYS, visit).map(drop));
    closed(engine.sync());
    closed(engine.flush());
    closed(engine.compact(SPACE.family(), ALL_KEYS));
    closed(engine.usage().map(drop));
    closed(engine.snapshot().get(SPACE, b"a").map(drop));
    closed(snapshot.get(SPACE, b"a").map(drop));
    closed(snapshot.scan(SPACE.family(), ALL_KEYS, visit).map(drop));
    assert_eq!(engine.last_commit(), CommitSeq::new(1));
    assert_eq!(engine.last_synced(), CommitSeq::new(1), "closing syncs");
}

fn row(payload: &[u8]) -> Draft {
    Draft::plain(Codec::None, 0, |out| out.extend_from_slice(payload))
}

fn put(batch: &mut Batch, key: &[u8], payload: &[u8]) {
    batch.put(SPACE, key, row(payload), Stamp::Commit);
}

#[track_caller]
fn commit<E: Engine>(engine: &E, batch: Batch) -> CommitSeq {
    engine.commit(batch, &[], Level::Process).expect("commits")
}

#[track_caller]
fn put_all<E: Engine>(engine: &E, keys: &[&[u8]]) {
    let mut batch = Batch::new();
    for key in keys {
        put(&mut batch, key, b"");
    }
    commit(engine, batch);
}

#[track_caller]
fn keys(view: &impl ReadView, family: Family, range: KeyRange<'_>) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let visit = |key: &[u8], _: &[u8]| {
        keys.push(key.to_vec());
        ControlFlow::<()>::Continue(())
    };
    assert_eq!(view.scan(family, range, visit).expect("scans"), None);
    keys
}

#[track_caller]
fn payload(view: &impl ReadView, key: &[u8]) -> Option<Vec<u8>> {
    let stored = view.get(SPACE, key).expect("reads")?;
    Some(FrameView::open(SPACE, key, &stored).expect("is sealed").payload().to_vec())
}

#[track_caller]
fn payloads(view: &impl ReadView, keys: &[(Space, &[u8])]) -> Vec<Option<Vec<u8>>> {
    let found = view.get_many(keys).into_iter().zip(keys);
    let one = |stored: &[u8], (space, key): &(Space, &[u8])| {
        FrameView::open(*space, key, stored).expect("is sealed").payload().to_vec()
    };
    found.map(|(stored, key)| stored.expect("reads").map(|stored| one(&stored, key))).collect()
}

#[track_caller]
fn versions(view: &impl ReadView, keys: &[(Space, &[u8])]) -> Vec<Option<u64>> {
    let found = view.get_many(keys).into_iter();
    found.map(|stored| cg_format::frame::version_of(&stored.expect("reads")?)).collect()
}

#[track_caller]
fn version(view: &impl ReadView, key: &[u8]) -> Option<u64> {
    versions(view, &[(SPACE, key)]).remove(0)
}
