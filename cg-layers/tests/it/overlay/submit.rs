//! Batches that are submitted to overlays.

use std::pin::{Pin, pin};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use cg_format::RecordId;
use cg_format::record::Record;
use cg_layers::{ArenaPolicy, OverlayError};
use cg_store::engine::{EngineError, ErrorKind, Level};
use cg_store::{Refused, WriteTicket};

use super::*;
use crate::surviving::{Fuse, Surviving};

mod durable;
mod held;
mod jobs;
mod order;

fn saved(at: ChunkAt, chunk: Chunk) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.save(at, chunk);
    batch
}

/// The block of a chunk's corner, as the overlay reads it.
#[track_caller]
fn corner<S: Base>(overlay: &Overlay<S>, at: ChunkAt) -> Option<BlockId> {
    overlay.load(at).expect("loads").map(|chunk| chunk.block(LocalPos::new(0, 0, 0)))
}

#[track_caller]
fn given_back<T: std::fmt::Debug>(submitted: Result<T, Box<Refused>>) -> Error {
    let Refused { error, batch } = *submitted.expect_err("is refused");
    assert!(!batch.is_empty(), "the batch is whole");
    error
}

fn rule() -> Property {
    Property::Named(Name::new("game:rule").expect("a name"))
}

#[test]
fn every_read_after_a_submission_sees_it() {
    let (base, ids) = template();
    let overlay = over(&base);
    let at = ids.at(7, 0, 0);
    for block in [ids.stone, ids.glass, ids.machine] {
        overlay.submit(saved(at, filled(&base, block))).expect("takes");
    }
    assert_eq!(corner(&overlay, at), Some(ids.machine), "in their order");

    let submit = |write: &dyn Fn(&mut WriteBatch)| {
        let mut batch = WriteBatch::new();
        write(&mut batch);
        overlay.submit(batch).expect("takes");
    };
    submit(&|batch| batch.set_block(ids.overworld, BlockPos::new(7 * 16, 0, 0), ids.glass));
    assert_eq!(
        overlay.load_many(&[at])[0]
            .as_ref()
            .expect("loads")
            .as_deref()
            .map(|it| it.block(LocalPos::new(0, 0, 0))),
        Some(ids.glass)
    );
    submit(&|batch| batch.put_entity(uuid(9), ids.cow_in(at)));
    assert_eq!(overlay.entity(uuid(9)).expect("reads"), Some(ids.cow_in(at)));
    submit(&|batch| batch.move_entity(uuid(1), Owner::Chunk(at)));
    assert_eq!(overlay.entity(uuid(1)).expect("reads").map(|cow| cow.owner), Some(Owner::Chunk(at)));
    submit(&|batch| batch.set_property(rule(), Some(vec![7])));
    assert_eq!(overlay.property(&rule()).expect("reads"), Some(vec![7]));
    submit(&|batch| batch.set_property(rule(), Some(vec![8])));
    assert_eq!(overlay.properties("game:").expect("reads").into_values().collect::<Vec<_>>(), [[8]]);
    submit(&|batch| batch.put_object("key", *b"bytes").expect("a key"));
    assert_eq!(overlay.object("key").expect("reads").expect("is there").bytes.as_ref(), &b"bytes"[..]);
    submit(&|batch| batch.put_object("key/2", *b"bytes").expect("a key"));
    assert_eq!(overlay.list_objects("key", None, 9).expect("lists").entries.len(), 2);
    let position = EntityPos::new(ids.overworld, BlockPos::new(8, 0, 0), [0.5; 3]).expect("a point");
    let id = RecordId::from_bytes([1; 16]);
    let record = Record::new(position, "sign", 1, Vec::new()).expect("short");
    submit(&|batch| batch.put_record(id, record.clone()));
    assert_eq!(overlay.record(id).expect("reads"), Some(record.clone()));
    submit(&|batch| batch.delete(at));
    assert_eq!(overlay.column(ids.overworld, 7, 0, 0..=0).expect("reads").chunk(0), None);
    submit(&|batch| batch.save_blocks(at, filled(&base, ids.stone)));
    overlay
        .transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(7 * 16, 0, 0), ids.glass))
        .expect("is there");
    submit(&|batch| batch.delete(at));
    assert!(
        overlay.diff().expect("compares").chunks.iter().all(|change| change.0 != at),
        "it is as in the base again"
    );
    submit(&|batch| batch.save(at, filled(&base, ids.stone)));
    overlay.reset().expect("resets");
    assert_eq!(corner(&overlay, at), None, "the batch came before the reset");
    submit(&|batch| batch.save(at, filled(&base, ids.stone)));
    assert_eq!(overlay.merge_into(&base).expect("merges").changes, 1);
    assert!(base.load(at).expect("loads").is_some());
}

#[test]
fn functions_of_a_batch_change_what_the_overlay_has() {
    let (base, ids) = template();
    let overlay = over(&base);
    let at = ids.at(1, 0, 0);
    overlay.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(16, 0, 0), ids.glass)).expect("edits");
    let (glass, machine) = (ids.glass, ids.machine);
    let schema = base.catalog().current_schema();
    let mut batch = WriteBatch::new();
    batch.edit(at, move |chunk| {
        assert_eq!(chunk.block(LocalPos::new(0, 0, 0)), glass, "the overlay's");
        chunk.set_block(LocalPos::new(1, 0, 0), machine, &schema)?;
        Ok(())
    });
    let items = ids.items;
    batch.edit_entity(uuid(1), move |cow| {
        cow.set_component(items, vec![3])?;
        Ok(())
    });
    let ticket = overlay.submit(batch).expect("takes");
    let accepted = ticket.wait().expect("is written");
    assert_eq!(accepted.seq, overlay.arenas().engine().last_commit());
    let chunk = overlay.load(at).expect("loads").expect("is there");
    assert_eq!([0, 1].map(|x| chunk.block(LocalPos::new(x, 0, 0))), [ids.glass, ids.machine]);
    let cow = overlay.entity(uuid(1)).expect("reads").expect("is there");
    assert_eq!(cow.component(ids.items), Some(&[3][..]));
    assert_ne!(base.load(at).expect("loads").as_deref(), Some(&*chunk), "the base is read only");
}

/// One is refused by its content, one panics. Each is refused alone, whole, and reported once.
#[test]
fn a_refused_batch_loses_no_other() {
    let (base, ids) = template();
    let overlay = over(&base);
    let (here, gone) = (ids.at(7, 0, 0), ids.at(8, 0, 0));
    let first = overlay.submit(saved(here, filled(&base, ids.stone))).expect("takes");
    let mut absent = saved(gone, filled(&base, ids.stone));
    absent.set_block(ids.overworld, BlockPos::new(9 * 16, 0, 0), ids.glass);
    let absent = overlay.submit(absent).expect("takes");
    let mut panics = saved(gone, filled(&base, ids.stone));
    panics.edit(here, |_| panic!("a bug of the host"));
    let panics = overlay.submit(panics).expect("takes");
    let last = overlay.submit(saved(ids.at(10, 0, 0), filled(&base, ids.glass))).expect("takes");
    assert!(last.wait().is_ok() && first.wait().is_ok());
    assert!(absent.is_finished() && panics.is_finished());
    let absent = absent.wait().expect_err("is refused");
    assert!(matches!(absent, Error::ChunkAbsent { at } if at == ids.at(9, 0, 0)), "{absent:?}");
    let panicked = panics.wait().expect_err("is refused");
    assert!(
        matches!(&panicked, Error::EditPanicked { message } if message == "a bug of the host"),
        "{panicked:?}"
    );
    assert_eq!([here, gone].map(|at| corner(&overlay, at)), [Some(ids.stone), None]);
    overlay.arenas().flush().expect("all was reported");

    let mut again = WriteBatch::new();
    again.set_block(ids.overworld, BlockPos::new(9 * 16, 0, 0), ids.glass);
    drop(overlay.submit(again).expect("takes"));
    let reported = overlay.arenas().flush();
    let Err(Error::DeferredWrite { error, others: 0 }) = reported else { panic!("{reported:?}") };
    assert!(matches!(*error, Error::ChunkAbsent { at } if at == ids.at(9, 0, 0)), "{error:?}");
    overlay.arenas().flush().expect("it is reported once");
}

/// While a transaction runs, nothing that is submitted can be written.
#[test]
fn what_is_submitted_inside_a_closure_comes_after_it() {
    let (base, ids) = template();
    let limited = WorldOptions { queue_bytes: 10_000, ..options() };
    let overlay = Overlay::in_memory(base.clone(), &limited).expect("a base");
    let (at, other) = (ids.at(1, 0, 0), ids.at(2, 0, 0));
    assert!(overlay.load_many(&[at, other]).iter().all(Result::is_ok), "in memory");
    let during = overlay.transaction(|tx| {
        let first = overlay.submit(saved(at, filled(&base, ids.glass))).expect("takes");
        assert!(!first.is_finished());
        assert!(matches!(overlay.peek(at), Peek::NotLoaded), "it may be another by now");
        assert!(matches!(overlay.peek(other), Peek::Here(_)), "no batch concerns it");
        assert_ne!(tx.load(at)?.map(|chunk| chunk.block(LocalPos::new(0, 0, 0))), Some(ids.glass));
        assert_ne!(corner(&overlay, at), Some(ids.glass), "it comes after the closure");
        let mut large = WriteBatch::new();
        large.set_property(rule(), Some(vec![0; 20_000]));
        let busy = given_back(overlay.submit(large));
        let Error::Busy { queued_bytes, limit_bytes: 10_000 } = busy else { panic!("{busy:?}") };
        assert!(queued_bytes > 0);
        let policy = ArenaPolicy { end_after_ticks: Some(0), ..ArenaPolicy::default() };
        let report = overlay.arenas().tick(GameTick::new(1), &policy, Duration::from_secs(600))?;
        assert_eq!((report.ended, report.work_left), (0, true));
        tx.save(at, filled(&base, ids.stone));
        Ok::<_, Error>(first)
    });
    let first = during.expect("commits");
    assert_eq!(corner(&overlay, at), Some(ids.glass), "after the transaction");
    assert!(first.is_finished() && first.wait().is_ok());
    let mut large = WriteBatch::new();
    large.set_property(rule(), Some(vec![0; 20_000]));
    overlay.submit(large).expect("it is alone").wait().expect("fits the world");
    let Peek::Here(chunk) = overlay.peek(at) else { panic!("it is in memory") };
    assert_eq!(chunk.block(LocalPos::new(0, 0, 0)), ids.glass);
}

/// Wakes a test.
struct Told(Mutex<Sender<()>>);

impl Wake for Told {
    fn wake(self: Arc<Self>) {
        let _ = self.0.lock().expect("no panic").send(());
    }
}

/// Whether a batch still waits.
fn poll(ticket: Pin<&mut WriteTicket>, context: &mut Context<'_>) -> bool {
    ticket.poll(context).map(|written| written.expect("is written")).is_pending()
}

#[test]
fn a_background_thread_writes_without_a_reader() {
    let (base, ids) = template();
    let overlay = over(&base);
    let (tell, told) = channel();
    let waker = Waker::from(Arc::new(Told(Mutex::new(tell))));
    let mut context = Context::from_waker(&waker);
    for x in 10..30 {
        let ticket = overlay.submit(saved(ids.at(x, 0, 0), filled(&base, ids.stone))).expect("takes");
        let mut ticket = pin!(ticket);
        while poll(ticket.as_mut(), &mut context) {
            told.recv_timeout(Duration::from_secs(60)).expect("a thread of the base writes it");
        }
        assert_eq!(overlay.arenas().stats().reads_here, 0, "nothing was read");
    }
    assert_eq!(overlay.arenas().stats().rows_written, 20);
}

#[test]
fn batches_are_written_before_an_arena_is_released_and_refused_after() {
    let (base, ids) = template();
    let overlay = over(&base);
    let arenas = overlay.arenas();
    let kept = overlay.clone();
    let ticket = overlay.submit(saved(ids.at(7, 0, 0), filled(&base, ids.stone))).expect("takes");
    overlay.release(GameTick::new(1)).expect("gives back");
    assert!(ticket.is_finished() && ticket.wait().is_ok());
    let released = given_back(kept.submit(saved(ids.at(7, 0, 0), filled(&base, ids.stone))));
    assert_eq!(released.layer(), Some(&OverlayError::Released { arena: 0 }));
    let next = arenas.lease("next", GameTick::new(2)).expect("leases");
    assert_eq!(corner(&next, ids.at(7, 0, 0)), None);
}

/// The storage takes nothing for a while: batches wait, and readers get the reason and never the old content.
#[test]
fn batches_wait_for_a_storage_that_takes_nothing() {
    let (base, ids) = template();
    let fuse = Fuse::new();
    let arenas = Arenas::over(Surviving::new(&fuse), base.clone(), &options()).expect("a base");
    let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
    let at = ids.at(1, 0, 0);
    assert!(overlay.load(at).expect("loads").is_some());
    fuse.set(0);
    let first = overlay.submit(saved(at, filled(&base, ids.stone))).expect("takes");
    let second = overlay.submit(saved(at, filled(&base, ids.glass))).expect("takes");
    let full = |error: &Error| matches!(error, Error::Engine(EngineError::NoSpace { .. }));
    let read = overlay.load(at);
    assert!(read.as_ref().is_err_and(full), "{read:?}");
    assert!(matches!(overlay.peek(at), Peek::NotLoaded));
    let flushed = arenas.flush();
    assert!(flushed.as_ref().is_err_and(full), "{flushed:?}");
    assert!(!first.is_finished() && !second.is_finished());
    fuse.set(i64::MAX);
    assert_eq!(corner(&overlay, at), Some(ids.glass));
    assert!(first.is_finished() && second.is_finished());
    assert!(first.wait().is_ok() && second.wait().is_ok());

    // The last handle is dropped while it lasts, and the arena is reclaimed before it ends.
    fuse.set(0);
    let lost = overlay.submit(saved(at, filled(&base, ids.machine))).expect("takes");
    drop(overlay);
    fuse.set(i64::MAX);
    arenas.reclaim(GameTick::new(1)).expect("reclaims");
    let next = arenas.lease("grace", GameTick::new(2)).expect("leases");
    assert_ne!(corner(&next, at), Some(ids.machine), "it is not for this tenant");
    let why = lost.wait().map(drop);
    // The background job may have been faster than the reclaiming.
    if let Err(why) = why {
        assert_eq!(why.layer(), Some(&OverlayError::Released { arena: 0 }));
    }
}

#[test]
fn a_ticket_says_when_its_commit_is_durable() {
    let (base, ids) = template();
    let disk = Disk::new();
    let overlay = on_disk(&disk, &base);
    let written = overlay.submit(saved(ids.at(7, 0, 0), filled(&base, ids.stone))).expect("takes");
    let durable = written.wait().expect("is written").durable();
    let arenas = overlay.arenas();
    assert!(durable.has_reached(Level::Process) && !durable.is_durable());
    assert!(arenas.engine().last_synced() < arenas.engine().last_commit());
    durable.wait().expect("syncs");
    assert!(durable.is_durable());
    assert_eq!(arenas.engine().last_synced(), arenas.engine().last_commit());
    let written = overlay.submit(saved(ids.at(8, 0, 0), filled(&base, ids.stone))).expect("takes");
    let unsynced = written.wait().expect("is written").durable();
    drop((overlay, arenas));
    assert!(durable.is_durable() && !unsynced.is_durable(), "the base was not synced for it");
    let closed = unsynced.wait();
    assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");

    let safe = WorldOptions { durability: Durability::Safe, ..options() };
    let overlay = Overlay::open(disk.root().join("arena"), base.clone(), &safe).expect("opens");
    let written = overlay.submit(saved(ids.at(9, 0, 0), filled(&base, ids.stone))).expect("takes");
    assert!(written.wait().expect("is written").durable().is_durable());
}

/// The threads of the base do not wait for a transaction: as many loads as there are threads, and more, leave one for what
/// its closure waits for.
#[test]
fn a_closure_may_wait_for_the_threads_of_the_base() {
    let (base, ids) = template();
    let lower = over(&base);
    let upper = over(&lower);
    let at = ids.at(7, 0, 0);
    let during = lower.transaction(|_| {
        lower.submit(saved(at, filled(&base, ids.stone))).expect("takes");
        let threads = std::thread::available_parallelism().map_or(2, |count| count.get().max(2));
        let here: Vec<_> = (0..=threads).map(|_| lower.load_in_background(&[at])).collect();
        let above: Vec<_> = (0..=threads).map(|_| upper.load_in_background(&[at])).collect();
        base.load_in_background(&[ids.at(1, 0, 0)]).wait()?;
        Ok::<_, Error>((here, above))
    });
    let (here, above) = during.expect("does not wait for ever");
    for ticket in here.into_iter().chain(above) {
        let loaded = ticket.wait().expect("loads").remove(0).expect("loads").expect("is there");
        assert_eq!(loaded.block(LocalPos::new(0, 0, 0)), ids.stone, "after what was submitted before");
    }
}

/// The power goes at each commit in turn: what is there after is what was submitted first.
#[test]
fn a_crash_leaves_the_first_of_what_was_submitted() {
    let (base, ids) = template();
    for commits in 0..=4 {
        let fuse = Fuse::new();
        let engine = Surviving::new(&fuse);
        let arenas = Arenas::over(engine.clone(), base.clone(), &options()).expect("a base");
        let overlay = arenas.lease("ada", GameTick::new(0)).expect("leases");
        fuse.set(commits);
        let tickets: Vec<_> = (0..4)
            .map(|n| {
                let mut batch = saved(ids.at(10 + n, 0, 0), filled(&base, ids.stone));
                batch.put_entity(uuid(10 + n as u128), ids.cow_in(ids.at(10 + n, 0, 0)));
                overlay.submit(batch).expect("takes")
            })
            .collect();
        drop((overlay, arenas));
        // A background thread may still try.
        while !tickets.iter().all(WriteTicket::is_finished) {
            std::thread::yield_now();
        }
        let outcomes: Vec<_> = tickets.into_iter().map(|ticket| ticket.wait().map(drop)).collect();
        let (written, lost) = outcomes.split_at(commits as usize);
        assert!(written.iter().all(Result::is_ok), "{outcomes:?}");
        assert!(lost.iter().all(|lost| matches!(lost, Err(Error::Closed))), "{outcomes:?}");
        fuse.set(i64::MAX);
        let arenas = Arenas::over(engine, base.clone(), &options()).expect("opens");
        let overlay = arenas.resume(0).expect("is leased");
        for n in 0..4 {
            let is_there = corner(&overlay, ids.at(10 + n, 0, 0)).is_some();
            assert_eq!(is_there, n < commits, "batch {n} of {commits}");
            assert_eq!(overlay.entity(uuid(10 + n as u128)).expect("reads").is_some(), is_there);
        }
    }
}

#[test]
fn the_last_handle_writes_what_was_submitted_before_it_goes() {
    let (base, ids) = template();
    let disk = Disk::new();
    drop(on_disk(&disk, &base));
    for x in 10..20 {
        let overlay =
            Overlay::open(disk.root().join("arena"), base.clone(), &options()).expect("nothing has it open");
        assert!((10..x).all(|x| corner(&overlay, ids.at(x, 0, 0)).is_some()), "before {x}");
        overlay.submit(saved(ids.at(x, 0, 0), filled(&base, ids.stone))).expect("takes");
    }
}

#[test]
fn an_overlay_above_sees_what_was_submitted_below() {
    let (base, ids) = template();
    let lower = over(&base);
    let upper = over(&lower);
    let at = ids.at(7, 0, 0);
    lower.submit(saved(at, filled(&base, ids.stone))).expect("takes");
    assert_eq!(corner(&upper, at), Some(ids.stone));
    lower.submit(saved(at, filled(&base, ids.glass))).expect("takes");
    let block = upper.transaction(|tx| tx.set_block(ids.overworld, BlockPos::new(7 * 16, 0, 0), ids.machine));
    assert_eq!(block.expect("edits"), ids.glass);
    base.submit(saved(ids.at(8, 0, 0), filled(&base, ids.stone))).expect("takes");
    upper.submit(saved(ids.at(9, 0, 0), filled(&base, ids.stone))).expect("takes");
    assert_eq!([8, 9].map(|x| corner(&upper, ids.at(x, 0, 0))), [Some(ids.stone); 2]);
    assert_eq!(upper.merge_into(&lower).expect("merges").changes, 2);
    let kind = |error: Error| error.kind();
    assert_eq!(lower.transaction(|_| upper.reset()).map_err(kind), Ok::<_, ErrorKind>(()));
}
