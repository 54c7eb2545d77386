//! Reads of many rows while another engine writes, and calls that run while the engine is closed.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use cg_format::frame;

use super::{SPACE, Shared, commit, numbered, one, take, write_all};
use crate::{ALL_KEYS, Engine as _, EngineError, Readable, ReadableExt as _, RowSlice};

/// More than an engine sends in one message.
const ROWS: u16 = 5000;

pub(super) fn a_scan_of_many_rows_is_of_one_state<S: Shared>(rows: &S) {
    let (writer, _link) = take(rows);
    write_all(&writer, ROWS, &[0]);
    let reader = rows.read().expect("opens for reading");
    let mut versions = Vec::new();
    let scanned = reader.scan(SPACE.family(), ALL_KEYS, |_, row| {
        if versions.len() == 100 {
            write_all(&writer, ROWS, &[1]);
        }
        versions.push(frame::version_of(row));
        ControlFlow::<()>::Continue(())
    });
    assert_eq!(scanned.expect("scans"), None);
    assert_eq!(versions, vec![Some(1); ROWS.into()], "the rows of a scan are of several commits");
}

pub(super) fn many_keys_are_read_of_one_state<S: Shared>(rows: &S) {
    while_another_writes(rows, |reader| {
        let found = numbered(reader, ROWS);
        assert!(
            found.iter().all(|row| row.is_some() && *row == found[0]),
            "rows of several commits are read"
        );
    });
}

pub(super) fn parts_of_many_rows_are_read_of_one_state<S: Shared>(rows: &S) {
    let keys: Vec<_> = (0..ROWS).map(u16::to_le_bytes).collect();
    let payload = frame::LEN_BYTES..frame::LEN_BYTES + 1;
    let slice = |key| RowSlice { space: SPACE, key, bytes: payload.clone() };
    let slices: Vec<_> = keys.iter().map(|key| slice(&key[..])).collect();
    while_another_writes(rows, |reader| {
        let found = reader.get_slices(&slices).into_iter();
        let found: Vec<_> = found.map(|part| part.expect("reads").map(|part| part.to_vec())).collect();
        assert!(
            found.iter().all(|part| part.is_some() && *part == found[0]),
            "rows of several commits are read"
        );
    });
}

pub(super) fn a_followed_state_stays_after_later_commits_and_ends_with_its_engine<S: Shared>(rows: &S) {
    let (writer, _link) = take(rows);
    write_all(&writer, 200, &[0]);
    let reader = rows.read().expect("opens for reading");
    let [then, again] = [(); 2].map(|()| reader.follow().expect("is shared"));
    let snapshot = reader.snapshot().expect("is open");
    write_all(&writer, 200, &[1]);
    let now = reader.follow().expect("is shared");
    let versions = |state: &dyn Readable| {
        let mut versions = Vec::new();
        let scanned = state.scan(SPACE.family(), ALL_KEYS, |_, row| {
            versions.push(frame::version_of(row));
            ControlFlow::<()>::Continue(())
        });
        scanned.map(|_| versions)
    };
    for (state, version) in [(&then, 1), (&now, 2), (&again, 1), (&snapshot, 1)] {
        let read = versions(&**state).expect("scans");
        assert_eq!(read, vec![Some(version); 200], "the state of commit {version}");
    }
    drop(snapshot);
    reader.close().expect("closes");
    assert!(matches!(versions(&*then), Err(EngineError::Closed)), "the engine is closed");
    drop(reader);
    assert!(matches!(versions(&*now), Err(EngineError::Closed)), "the engine is closed");
}

/// Reads a few times while another engine writes all rows again and again.
fn while_another_writes<S: Shared>(rows: &S, read: impl Fn(&S::Engine) + Sync) {
    let (writer, _link) = take(rows);
    write_all(&writer, ROWS, &[0]);
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let reads = scope.spawn(|| {
            let _done = SetOnDrop(&done);
            let reader = rows.read().expect("opens for reading");
            (0..20).for_each(|_| read(&reader));
        });
        let mut n = 0;
        while !done.load(Ordering::Relaxed) {
            n += 1;
            write_all(&writer, ROWS, &[n as u8]);
        }
        reads.join().expect("the reads end");
    });
}

/// Stops the writer when the reader ends or panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) fn an_engine_closes_while_calls_run<S: Shared>(rows: &S) {
    let (engine, _link) = take(rows);
    write_all(&engine, 600, &[0]);
    let check = |result: Result<(), EngineError>| match result {
        Ok(()) => false,
        Err(EngineError::Closed) => true,
        Err(error) => panic!("expected an answer or a closed engine, got {error}"),
    };
    let passes = AtomicU32::new(0);
    thread::scope(|scope| {
        let read = || loop {
            let visit = |_: &[u8], _: &[u8]| ControlFlow::<()>::Continue(());
            let snapshot = match engine.snapshot() {
                Ok(snapshot) => snapshot,
                Err(error) => break assert!(check(Err(error))),
            };
            let scanned = check(snapshot.scan(SPACE.family(), ALL_KEYS, visit).map(drop));
            if check(engine.get(SPACE, b"a").map(drop)) || scanned {
                break;
            }
            passes.fetch_add(1, Ordering::Relaxed);
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        let writer = scope.spawn(|| while !check(engine.sync()) {});
        for n in 0..20 {
            commit(&engine, one(b"a", &[n]));
        }
        while passes.load(Ordering::Relaxed) < 4 && !readers.iter().any(thread::ScopedJoinHandle::is_finished)
        {
            thread::yield_now();
        }
        engine.close().expect("closes");
        for reader in readers {
            reader.join().expect("the reader ends");
        }
        writer.join().expect("the writer ends");
    });
    let (next, _link) = take(rows);
    assert_eq!(next.last_commit().get(), 21, "a closed engine has written everything");
}
