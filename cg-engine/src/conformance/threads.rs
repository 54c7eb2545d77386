//! Concurrent readers and committers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cg_format::Space;
use cg_format::frame::FrameView;

use super::{SPACE, commit, keys, payload, put, row, versions};
use crate::{ALL_KEYS, Batch, CommitSeq, Engine, EngineError, Guard, Level, Stamp};

/// Two rows in two families always have the same commit's number, however many rows are read between them.
pub(super) fn readers_see_whole_batches(engine: &dyn Engine) {
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
                    for found in
                        [versions(engine, &asked), versions(&engine.snapshot().expect("is open"), &asked)]
                    {
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

/// Stops the readers when the writer ends or panics.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) fn committers_do_not_lose_each_other(engine: &dyn Engine) {
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

/// A guard makes a read and a write atomic. No increment is lost, by a commit or by a maintenance batch, even if the
/// engine compares guards before it takes its lock.
pub(super) fn guarded_increments_add_up(engine: &dyn Engine) {
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
                        batch = batch.maintenance();
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
