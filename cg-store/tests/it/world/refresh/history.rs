//! Followers of rows that other writers continue or replace.

use cg_store::engine::{Readable, Reopen, Snapshot, delegate};

use super::*;

#[test]
fn another_writer_is_followed_and_another_history_is_refused() {
    let rows = Rows::new();
    let first = rows.writer(&with_deltas());
    let ids = Ids::register(&first);
    let at = ids.at(0, 0, 0);
    save(&first, [(at, filled(&first, ids.stone))]);
    let follower = rows.follower();
    let second = rows.writer(&with_deltas());
    save(&second, [(at, filled(&second, ids.glass))]);
    assert_eq!(follower.refresh().expect("it goes on"), second.last_commit());
    assert_same(&follower, &second, &[at], "another writer");
    second.close().expect("closes");
    drop(second);

    let (shown, known) = (follower.last_commit(), follower.load(at).expect("reads"));
    let third = rows.writer(&WorldOptions { accept_lost_commits: true, ..with_deltas() });
    save(&third, [(at, filled(&third, ids.air))]);
    for _ in 0..2 {
        let refused = follower.refresh().expect_err("it is another incarnation");
        let Error::Open(OpenError::OtherHistory { shown: was, found, .. }) = &refused else {
            panic!("{refused}")
        };
        assert_eq!((*was, *found), (shown, third.last_commit()));
        assert_eq!((follower.last_commit(), follower.load(at).expect("reads")), (shown, known.clone()));
    }
    assert_same(&rows.follower(), &third, &[at], "the open");
}

/// Rows that are replaced by others.
#[derive(Debug)]
struct Replaced {
    engine: Remote,
    other: Remote,
    is_other: Arc<AtomicBool>,
}

impl Replaced {
    fn rows(&self) -> &Remote {
        if self.is_other.load(Ordering::Acquire) { &self.other } else { &self.engine }
    }
}

impl Readable for Replaced {
    delegate! { engine => get get_many get_slices scan_rows }
}

impl Engine for Replaced {
    fn follow(&self) -> Result<Snapshot<'static>, EngineError> {
        self.rows().follow()
    }

    fn reopening(&self) -> Reopen {
        self.engine.reopening()
    }

    delegate! {
        engine => commit snapshot sync last_commit batch_count last_synced checkpoint flush compact close failure
        free_bytes disk_bytes address caps usage
    }
}

#[test]
fn another_history_with_as_many_commits_is_refused() {
    let [original, copy] = [(); 2].map(|()| Rows::new());
    let write = |rows: &Rows| {
        let writer = rows.writer(&with_deltas());
        let ids = Ids::register(&writer);
        save(&writer, [(ids.at(0, 0, 0), filled(&writer, ids.stone))]);
        writer.close().expect("closes");
        rows.reader().last_commit()
    };
    let shown = write(&original);
    assert_eq!(write(&copy), shown);
    let is_other = Arc::new(AtomicBool::new(false));
    let engine =
        Replaced { engine: original.reader(), other: copy.reader(), is_other: Arc::clone(&is_other) };
    let follower = follow(engine);
    assert_eq!(follower.refresh().expect("nothing is new"), shown);
    is_other.store(true, Ordering::Release);
    let refused = follower.refresh().expect_err("it is another world");
    let is_told = matches!(&refused, Error::Open(OpenError::OtherHistory { shown: was, found, .. })
        if (*was, *found) == (shown, shown));
    assert!(is_told, "{refused}");
}
