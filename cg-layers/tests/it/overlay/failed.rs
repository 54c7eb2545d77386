//! Reads and writes of overlays after a write that failed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use cg_format::key::Family;
use cg_layers::{ArenaInfo, ArenaPolicy, OverlayError};
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

/// A pool that stands in memory, and an overlay of each of its holders.
struct Syncing {
    arenas: Arenas<World>,
    base: World,
    ids: Ids,
    fails: Arc<AtomicBool>,
}

const SAFE: Durability = Durability::Safe;

impl Syncing {
    fn new() -> Self {
        let (base, ids) = template();
        let fails = Arc::new(AtomicBool::new(false));
        let engine = MemEngine::new().with_fault({
            let fails = Arc::clone(&fails);
            move |_| fails.load(Ordering::Relaxed).then_some(Fault::Sync)
        });
        let safe = WorldOptions { durability: SAFE, ..options() };
        let arenas = Arenas::over(engine, base.clone(), &safe).expect("a base");
        Self { arenas, base, ids, fails }
    }

    /// The arenas, each with whether it shows the chunk that was written in it.
    fn state(arenas: &Arenas<World>, ids: &Ids) -> Vec<(Option<String>, u64, bool)> {
        let written = filled(arenas.base(), ids.glass);
        let of = |info: ArenaInfo| {
            let shown = arenas.resume(info.arena).ok();
            let shown = shown.and_then(|overlay| overlay.load(ids.at(1, 0, 0)).expect("loads"));
            (info.holder, info.since.get(), shown.as_deref() == Some(&written))
        };
        arenas.list().into_iter().map(of).collect()
    }

    /// Lets the sync of one call fail. Returns what there is then, which is what there is after the next opening.
    #[track_caller]
    fn fail(
        self,
        call: impl FnOnce(&Arenas<World>, Overlay<World>) -> Result<(), Error>,
    ) -> Vec<(Option<String>, u64, bool)> {
        let Self { arenas, base, ids, fails } = self;
        let overlay = arenas.lease("ada", GameTick::new(1)).expect("leases");
        write(&overlay, [(ids.at(1, 0, 0), Some(filled(&base, ids.glass)))]);
        fails.store(true, Ordering::Relaxed);
        let failed = call(&arenas, overlay);
        assert!(matches!(failed, Err(Error::Engine(EngineError::SyncFailed { .. }))), "{failed:?}");
        let now = Self::state(&arenas, &ids);
        let reopen = arenas.engine().reopening();
        drop(arenas);
        let Reopened::Writable(engine) = reopen(&|_| Ok(true)).expect("opens") else { panic!("writable") };
        let engine = Surviving::around(engine, &Fuse::new());
        let safe = WorldOptions { durability: SAFE, ..options() };
        let arenas = Arenas::over(engine, base, &safe).expect("the same base");
        assert_eq!(Self::state(&arenas, &ids), now, "memory said what the rows say");
        now
    }
}

/// What memory says of an arena is what its row says, also if the put of the row was not synced.
#[test]
fn arenas_whose_puts_were_not_synced_are_as_their_rows_say() {
    let at = GameTick::new;
    let of = |holder: &str, since, shows| (Some(holder.to_owned()), since, shows);
    assert_eq!(Syncing::new().fail(|_, ada| ada.reset()), [of("ada", 1, false)]);
    assert_eq!(Syncing::new().fail(|_, ada| ada.renew(at(5))), [of("ada", 5, true)]);
    assert_eq!(Syncing::new().fail(|_, ada| ada.release(at(5))), [(None, 5, false)]);
    let reclaimed = Syncing::new().fail(|arenas, ada| {
        drop(ada);
        arenas.reclaim(at(5)).map(drop)
    });
    assert_eq!(reclaimed, [(None, 5, false)]);
    let leased = Syncing::new().fail(|arenas, _ada| arenas.lease("grace", at(5)).map(drop));
    assert_eq!(leased, [of("ada", 1, true), of("grace", 5, false)]);
    let syncing = Syncing::new();
    let [grace, alan] = ["grace", "alan"].map(|holder| syncing.arenas.lease(holder, at(0)).expect("leases"));
    alan.release(at(0)).expect("releases");
    // The first free arena is ada's.
    grace.release(at(0)).expect("releases");
    let taken = syncing.fail(|arenas, _ada| arenas.lease("kurt", at(5)).map(drop));
    assert_eq!(taken, [of("ada", 1, true), of("kurt", 5, false)]);
    let syncing = Syncing::new();
    for holder in ["grace", "alan"].map(|holder| syncing.arenas.lease(holder, at(0)).expect("leases")) {
        holder.release(at(0)).expect("releases");
    }
    let removed = syncing.fail(|arenas, _ada| arenas.remove_free_since(at(5)).map(drop));
    assert_eq!(removed, [of("ada", 1, true)]);
}

/// Whether a merge of an arena has begun cannot be read: it stays, and stops no other arena. A reset or a release ends it.
#[test]
fn a_note_of_a_merge_that_cannot_be_read_stops_no_other_arena() {
    let (base, _) = template();
    let engine = Surviving::new(&Fuse::new());
    let arenas = Arenas::over(engine.clone(), base, &options()).expect("a base");
    let [ada, grace, alan] =
        ["ada", "grace", "alan"].map(|holder| arenas.lease(holder, GameTick::new(0)).expect("leases"));
    let second_lease = 2;
    engine.lose(Family::WorldMeta, format!("merge/{second_lease:016x}"));
    let policy = ArenaPolicy { end_after_ticks: Some(10), ..ArenaPolicy::default() };
    for ended in [2, 0] {
        let report = arenas.tick(GameTick::new(10), &policy, Duration::MAX).expect("the others are sound");
        assert_eq!((report.ended, report.kept_for_merge), (ended, 1));
    }
    assert!([ada, alan].into_iter().all(|arena| arena.reset().is_err()), "their leases are over");
    grace.reset().expect("gives up what cannot be known");
    let report = arenas.tick(GameTick::new(10), &policy, Duration::MAX).expect("all are sound");
    assert_eq!((report.ended, report.kept_for_merge), (1, 0));
}

/// A handle of an arena whose release was not synced is refused: it may be leased to another one.
#[test]
fn a_handle_is_released_also_if_that_was_not_synced() {
    let other = Syncing::new().fail(|_, ada| {
        let other = ada.clone();
        let failed = ada.release(GameTick::new(5));
        let late = other.reset().expect_err("the arena is not ada's any more");
        assert!(matches!(late.layer(), Some(OverlayError::Released { arena: 0 })), "{late:?}");
        failed
    });
    assert_eq!(other, [(None, 5, false)]);
}

/// A lease whose row was not stored leaves a free arena: another call may have taken it meanwhile, and it must not vanish.
#[test]
fn an_arena_whose_lease_was_not_stored_is_free_for_the_next() {
    let (base, _) = template();
    let fails = Arc::new(AtomicBool::new(false));
    let engine = MemEngine::new().with_fault({
        let fails = Arc::clone(&fails);
        move |_| fails.load(Ordering::Relaxed).then_some(Fault::NoSpace)
    });
    let arenas = Arenas::over(engine, base, &options()).expect("a base");
    fails.store(true, Ordering::Relaxed);
    let failed = arenas.lease("ada", GameTick::new(7)).map(drop);
    assert!(matches!(failed, Err(Error::Engine(EngineError::NoSpace { .. }))), "{failed:?}");
    let listed: Vec<_> = arenas.list().into_iter().map(|info| (info.arena, info.holder)).collect();
    assert_eq!(listed, [(0, None)]);
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
