//! Reads and writes of overlays after a write that failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use cg_store::engine::{EngineError, Fault, Reopened};
use cg_store::{StoreLimits, WorldOptions};

use super::*;
use crate::surviving::{Fuse, Surviving};

/// A sync that fails takes nothing back: the rows are there, and memory must not hide them.
#[test]
fn what_was_written_and_not_synced_is_seen() {
    let (base, ids) = template();
    let fails = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_fault({
        let fails = Arc::clone(&fails);
        move |_| fails.load(Ordering::Relaxed).then_some(Fault::Sync)
    });
    let safe = WorldOptions { durability: Durability::Safe, ..options() };
    let arenas = Arenas::over(engine, base.clone(), &safe).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    write(&overlay, [(ids.at(1, 0, 0), Some(filled(&base, ids.glass)))]);
    fails.store(true, Ordering::Relaxed);
    let failed = overlay.transaction(|tx| {
        for x in [1, 2] {
            tx.save(ids.at(x, 0, 0), filled(&base, ids.stone));
        }
        Ok::<_, Error>(())
    });
    assert!(matches!(failed, Err(Error::Engine(EngineError::SyncFailed { .. }))), "{failed:?}");
    for x in [1, 2] {
        let shown = overlay.load(ids.at(x, 0, 0)).expect("loads");
        assert_eq!(shown.as_deref(), Some(&filled(&base, ids.stone)), "chunk {x}");
    }
}

const CHUNKS: i64 = 30;

fn token_of(chunk: Option<&Chunk>, ids: &Ids) -> u8 {
    chunk.and_then(|chunk| chunk.side(ids.light)).and_then(|side| side.first().copied()).unwrap_or(0)
}

fn put<S: Base>(
    overlay: &Overlay<S>,
    ids: &Ids,
    chunks: std::ops::Range<i64>,
    token: u8,
) -> Result<(), Error> {
    overlay.transaction(|tx| {
        for x in chunks {
            let mut chunk = Chunk::filled(ids.glass, &tx.catalog().current_schema())?;
            chunk.set_side(ids.light, vec![token; 300]);
            tx.save(ids.at(x, 0, 0), chunk);
        }
        Ok(())
    })
}

/// A commit that counts and got stuck is rolled forward at the next open. What was written after it would be written over
/// with what is older.
#[test]
fn what_comes_behind_a_commit_that_got_stuck_is_refused() {
    let limits = StoreLimits { batch_bytes: 3000, ..StoreLimits::default() };
    let small = WorldOptions { limits, ..options() };
    let (base, ids) = template();
    let (mut refused, mut rolled_forward, mut taken) = (0, 0, 0);
    for nth in 1.. {
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let engine = MemEngine::new().with_fault({
            let left = Arc::clone(&left);
            move |_| {
                assert!(left.fetch_sub(1, Ordering::Relaxed) != 1, "by request");
                None
            }
        });
        let arenas = Arenas::over(engine, base.clone(), &small).expect("a base");
        let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
        for x in 0..CHUNKS {
            put(&overlay, &ids, x..x + 1, 1).expect("writes");
        }
        left.store(nth, Ordering::Relaxed);
        let large = catch_unwind(AssertUnwindSafe(|| put(&overlay, &ids, 0..CHUNKS, 2)));
        left.store(u64::MAX, Ordering::Relaxed);
        if let Ok(large) = large {
            large.expect("writes");
            break;
        }
        // What memory knew of the last chunk was older.
        let seen = overlay.load(ids.at(CHUNKS - 1, 0, 0)).map(|chunk| token_of(chunk.as_deref(), &ids));
        let last = put(&overlay, &ids, CHUNKS - 1..CHUNKS, 3);
        let all = put(&overlay, &ids, 0..CHUNKS - 1, 4);
        assert_eq!((last.is_ok(), all.is_ok()), (seen.is_ok(), seen.is_ok()), "batch {nth}");
        if let Err(error) = &seen {
            refused += 1;
            for error in [Some(error), last.as_ref().err(), all.as_ref().err()] {
                assert!(
                    matches!(error, Some(Error::Engine(EngineError::ReadOnly { .. }))),
                    "batch {nth}: {error:?}"
                );
            }
        } else {
            taken += 1;
        }

        let reopen = arenas.engine().reopening();
        drop((overlay, arenas));
        let Reopened::Writable(engine) = reopen(&|_| Ok(true)).expect("opens") else { panic!("writable") };
        let engine = Surviving::around(engine, &Fuse::new());
        let overlay = Arenas::over(engine, base.clone(), &small).expect("the same base").resume(0);
        let overlay = overlay.expect("is leased");
        let tokens: Vec<_> = (0..CHUNKS)
            .map(|x| token_of(overlay.load(ids.at(x, 0, 0)).expect("loads").as_deref(), &ids))
            .collect();
        let (one, others) = tokens.split_last().expect("there are some");
        assert!(others.iter().all(|token| *token == others[0]), "batch {nth}: {tokens:?}");
        if seen.is_ok() {
            assert_eq!((*one, others[0]), (3, 4), "batch {nth}");
        } else {
            assert_eq!(*one, others[0], "batch {nth}");
            rolled_forward += u64::from(*one == 2);
        }
    }
    // Of the batch that makes it count nobody knows whether it was written.
    assert!(rolled_forward > 4 && rolled_forward + 1 == refused, "{rolled_forward} of {refused}");
    assert!(taken > 4, "{taken}");
}

/// A pool with a large commit that cannot be rolled forward opens again once what is damaged of it was quarantined.
#[test]
fn a_damaged_commit_of_a_pool_is_set_aside() {
    use cg_format::frame::{Codec, Draft, Stamp};
    use cg_format::{Space, key};
    use cg_layers::OverlayError;
    use cg_store::OpenError;
    use cg_store::engine::{Batch, Engine as _, Level, RocksEngine, RocksOptions};
    use cg_store::quarantine::SalvagedCommit;

    let (base, ids) = template();
    let disk = Disk::new();
    let path = &disk.path();
    let set_aside = || Arenas::<World>::salvage_commit(path, &options());
    let refused = set_aside();
    assert!(
        matches!(refused.as_ref().err().and_then(Error::layer), Some(OverlayError::NotAnOverlay { .. })),
        "{refused:?}"
    );
    let arenas = Arenas::create(path, base.clone(), &options()).expect("an empty directory");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    write(&overlay, [(ids.at(1, 0, 0), Some(filled(&base, ids.glass)))]);
    drop((overlay, arenas));
    assert_eq!(set_aside().expect("is sound"), None);

    let engine = RocksEngine::open(&path.join("overlay"), &RocksOptions::default()).expect("opens");
    let row = key::intent(engine.last_commit().get() + 1);
    let mut batch = Batch::new();
    batch.put(Space::Intent, row, Draft::plain(Codec::None, 0, |out| out.push(1)), Stamp::Commit);
    engine.commit(batch, &[], Level::Process).expect("commits");
    engine.close().expect("closes");
    drop(engine);
    let open = || Arenas::open(path, base.clone(), &options());
    let refused = open().map(drop);
    assert!(matches!(&refused, Err(Error::Open(OpenError::DamagedCommit { .. }))), "{refused:?}");
    let SalvagedCommit { rolled_forward_parts, lost } =
        set_aside().expect("the files are sound").expect("damaged");
    assert_eq!((rolled_forward_parts, lost.len(), &lost[0].0), (0, 1, &row.to_vec()));
    assert_eq!(set_aside().expect("is sound"), None);
    let overlay = open().expect("opens again").resume(0).expect("is leased");
    assert_eq!(overlay.load(ids.at(1, 0, 0)).expect("loads").as_deref(), Some(&filled(&base, ids.glass)));
}
