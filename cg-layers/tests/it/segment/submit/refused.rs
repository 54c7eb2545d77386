//! Refusals of batches, and segments that cannot be opened.

use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake, Waker};

use super::*;

#[test]
fn a_segment_that_is_lost_refuses_what_was_submitted() {
    let home = Gated::new();
    let world = home.open(true);
    let ids = register(&world);
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    close_all(&world, &ids);
    home.lose(world.segment_of(at));
    let ticket = world.submit(at, saving(&world, at, ids.glass)).expect("is taken");
    drop(world.submit(at, putting(1, ids.cow_in(at))).expect("is taken"));
    let not_accepted = |error: &Error| match error.layer() {
        Some(SegmentError::NotAccepted { segment, kind, why }) => {
            assert_eq!((*segment, *kind), (world.segment_of(at), ErrorKind::Damaged));
            assert!(why.contains("is gone"), "{why}");
        }
        _ => panic!("{error}"),
    };
    not_accepted(&ticket.wait().expect_err("it cannot be opened"));
    let Err(Error::DeferredWrite { error, others: 0 }) = world.flush() else { panic!("it was dropped") };
    not_accepted(&error);
    world.flush().expect("is reported once");
    let error = world.load(at).expect_err("it cannot be opened");
    assert!(matches!(error.layer(), Some(SegmentError::Lost { .. })), "{error}");
}

#[test]
fn a_segment_that_cannot_be_reached_keeps_what_was_submitted() {
    let home = Gated::new();
    let world = home.open(true);
    let ids = register(&world);
    let (at, elsewhere) = (ids.at(0, 0, 0), ids.at(1632, 0, 0));
    save(&world, at, filled(world.root(), ids.stone));
    close_all(&world, &ids);
    home.set(Opening::Fails);
    let ticket = world.submit(at, saving(&world, at, ids.glass)).expect("is taken");
    let (asked, woken) = channel();
    let mut task = world.submit(at, putting(1, ids.cow_in(at))).expect("is taken");
    let waker = Waker::from(Arc::new(Woken(asked)));
    let mut poll = || std::pin::Pin::new(&mut task).poll(&mut Context::from_waker(&waker));
    let kind = |error: Error| match error.layer() {
        Some(SegmentError::NotAccepted { kind, .. }) => *kind,
        _ => panic!("{error}"),
    };
    match poll() {
        Poll::Pending => {}
        Poll::Ready(outcome) => panic!("{outcome:?}"),
    }
    assert_eq!(kind(world.load(at).expect_err("cannot be reached")), ErrorKind::Engine);
    woken.recv_timeout(Duration::from_secs(20)).expect("is told why");
    let Poll::Ready(Err(error)) = poll() else { panic!("is told why") };
    assert_eq!(kind(error), ErrorKind::Engine);
    assert!(poll().is_pending() && !ticket.is_finished(), "it waits on");
    assert_eq!(kind(world.flush().expect_err("it is not durable")), ErrorKind::Engine);
    let many = world.load_many(&[at, elsewhere]);
    assert!(many[0].is_err() && many[1].as_ref().expect("is open").is_some(), "the others are served");
    home.set(Opening::Opens);
    // A tick tries again, without a reader.
    world.tick(GameTick::new(1), &[], Duration::from_millis(10)).expect("ticks");
    loop {
        match poll() {
            Poll::Ready(Ok(_)) => break,
            // The reason of an earlier try.
            Poll::Ready(Err(error)) => assert_eq!(kind(error), ErrorKind::Engine),
            Poll::Pending => woken.recv_timeout(Duration::from_secs(20)).expect("is accepted"),
        }
    }
    ticket.wait().expect("is accepted");
    assert_eq!(block(&world, at), Some(ids.glass));
    world.flush().expect("nothing is left");
}

struct Woken(std::sync::mpsc::Sender<()>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

/// A segment that is closed for lack of room does not take the refusals of its batches with it.
#[test]
fn a_refusal_is_reported_though_its_segment_was_closed() {
    let (world, ids) = in_memory();
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    let mut batch = WriteBatch::new();
    batch.set_block(ids.overworld, ids.at(3, 3, 3).pos.min_block(), ids.stone);
    drop(world.submit(at, batch).expect("is taken"));
    close_all(&world, &ids);
    let Err(Error::DeferredWrite { error, others: 0 }) = world.flush() else { panic!("it was dropped") };
    assert!(matches!(*error, Error::ChunkAbsent { .. }), "{error}");
    world.flush().expect("is reported once");
}

/// Of the root too: a flush does its work before it reports anything.
#[test]
fn a_refusal_of_the_root_keeps_no_segment_from_being_flushed() {
    let home = Gated::new();
    let world = home.open(true);
    let ids = register(&world);
    let at = ids.at(0, 0, 0);
    save(&world, at, filled(world.root(), ids.stone));
    let mut batch = WriteBatch::new();
    batch.set_block(ids.overworld, ids.at(3, 3, 3).pos.min_block(), ids.stone);
    drop(world.root().submit(batch).expect("is taken"));
    let synced = || {
        let reached = world.segments().with(world.segment_of(at), |world| {
            let metrics = world.metrics();
            Ok::<_, Error>(metrics.last_synced == metrics.last_commit)
        });
        reached.expect("is open")
    };
    assert!(!synced());
    let Err(Error::DeferredWrite { error, others: 0 }) = world.flush() else { panic!("it was dropped") };
    assert!(matches!(*error, Error::ChunkAbsent { .. }), "{error}");
    assert!(synced());
}
