//! One owner of the rows writes, and any number of engines read.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use cg_format::Space;

use super::{How, SPACE, Shared, assert_fenced, commit, keys, one, payload, reopen, take, versions};
use crate::{ALL_KEYS, Batch, CommitSeq, Engine as _, EngineError, Level, Reopened, Stamp};

pub(super) fn a_second_owner_fences_the_first<S: Shared>(rows: &S) {
    let (mut owner, link) = take(rows);
    // The fenced engines still read.
    let mut links = vec![link];
    commit(&owner, one(b"a", b"first"));
    for how in How::ALL {
        let (next, link) = take(rows);
        links.push(link);
        assert_fenced(how.write(&owner, one(b"a", b"of the first")));
        assert_fenced(owner.sync());
        assert_eq!(payload(&owner, b"a").as_deref(), Some(&b"first"[..]), "{how:?}: reads go on");
        owner = next;
    }
    // A sync and a flush alone find out, too.
    for upkeep in [S::Engine::sync, S::Engine::flush] {
        let (next, link) = take(rows);
        links.push(link);
        assert_fenced(upkeep(&owner));
        assert!(owner.failure().is_some(), "it never writes again");
        owner = next;
    }
    let (next, _link) = take(rows);
    assert_fenced(owner.commit(one(b"a", b"of the first"), &[], Level::Power));
    owner = next;
    assert_eq!(commit(&owner, one(b"b", b"")), CommitSeq::new(2), "a fenced call uses up no number");
    assert_eq!(keys(&owner, SPACE.family(), ALL_KEYS), [b"a", b"b"]);
    assert_eq!(payload(&owner, b"a").as_deref(), Some(&b"first"[..]));
}

pub(super) fn a_fenced_engine_is_not_opened_again<S: Shared>(rows: &S) {
    for commits in [0, 1] {
        let (first, _link) = take(rows);
        let reopening = first.reopening();
        let (second, _link) = take(rows);
        for n in 0..commits {
            commit(&second, one(&[n], b""));
        }
        drop(first);
        for _ in 0..2 {
            let opened = reopening(&|_| Ok(true));
            assert!(matches!(opened, Err(EngineError::Fenced { .. })), "{opened:?}");
        }
        commit(&second, one(b"second", b""));
    }
}

pub(super) fn an_engine_that_is_opened_again_keeps_the_rows<S: Shared>(rows: &S) {
    let (engine, _link) = take(rows);
    commit(&engine, one(b"a", b"1"));
    let mut engine = reopen(engine, |found| found == 1);
    for n in 2..5 {
        assert_eq!(commit(&*engine, one(b"a", &[n])), CommitSeq::new(n.into()));
        let reopening = engine.reopening();
        drop(engine);
        let unexpected = reopening(&|_| Ok(false)).expect("is opened again");
        let Reopened::Unexpected(reader) = unexpected else { panic!("{unexpected:?}") };
        assert_eq!(payload(&*reader, b"a"), Some(vec![n]));
        let refused = reader.commit(Batch::new(), &[], Level::Process);
        assert!(refused.is_err(), "it is open for reading only");
        drop(reader);
        let Reopened::Writable(again) =
            reopening(&|found| Ok(found.last_commit.get() == u64::from(n))).expect("is opened again")
        else {
            panic!("expected a writable engine")
        };
        engine = again;
    }
    // The engine that was opened again is the owner, and is fenced like one.
    let (_second, _link) = take(rows);
    assert_fenced(engine.commit(Batch::new(), &[], Level::Process));
}

pub(super) fn readers_write_nothing<S: Shared>(rows: &S) {
    let (writer, _link) = take(rows);
    commit(&writer, one(b"a", b"1"));
    let reader = rows.read().expect("opens for reading");
    assert!(reader.caps().read_only && reader.caps().is_shared, "{:?}", reader.caps());
    for how in How::ALL {
        let refused = how.write(&reader, one(b"a", b"2"));
        assert!(matches!(refused, Err(EngineError::OpenedReadOnly)), "{how:?}: {refused:?}");
    }
    assert_eq!(payload(&reader, b"a").as_deref(), Some(&b"1"[..]));
    commit(&writer, one(b"a", b"3"));
    assert_eq!(payload(&reader, b"a").as_deref(), Some(&b"3"[..]), "what is acknowledged is seen");
    reader.close().expect("closes");
    commit(&writer, one(b"a", b"4"));
}

/// Two rows in two families always have the same commit's number.
pub(super) fn readers_beside_a_writer_see_whole_batches<S: Shared>(rows: &S) {
    let pair: [(Space, &[u8]); 2] = [(SPACE, b"left"), (Space::Entity, b"right")];
    let (writer, _link) = take(rows);
    let write = || {
        let mut batch = Batch::new();
        for (space, key) in pair {
            batch.put(space, key, super::super::row(b""), Stamp::Commit);
        }
        commit(&writer, batch)
    };
    write();
    let left = AtomicU32::new(2);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let _left = CountOnDrop(&left);
                let reader = rows.read().expect("opens for reading");
                for _ in 0..200 {
                    for found in
                        [versions(&reader, &pair), versions(&reader.snapshot().expect("is open"), &pair)]
                    {
                        let whole = matches!(found[..], [Some(a), Some(b)] if a == b);
                        assert!(whole, "a batch was seen in parts: {found:?}");
                    }
                }
            });
        }
        while left.load(Ordering::Relaxed) > 0 {
            write();
        }
    });
}

/// Counts a reader down when it ends or panics.
struct CountOnDrop<'a>(&'a AtomicU32);

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
