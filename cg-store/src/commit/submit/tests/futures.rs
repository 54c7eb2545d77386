//! Tickets as futures, in tasks that run only when they are woken.

use std::pin::pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::*;
use crate::LoadTicket;

/// Sends a message for each wake.
struct Woken(Sender<()>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
    }
}

fn task() -> (Waker, Receiver<()>) {
    let (sender, woken) = channel();
    (Waker::from(Arc::new(Woken(sender))), woken)
}

/// Polls a future, which is not ready yet, on a thread that polls it again each time that its task is woken.
fn pending<F: Future<Output: Send> + Send + Unpin + 'static>(mut future: F) -> thread::JoinHandle<F::Output> {
    let (waker, woken) = task();
    let (polled, is_polled) = channel();
    let polling = thread::spawn(move || {
        let mut context = Context::from_waker(&waker);
        polled.send(pin!(&mut future).poll(&mut context).is_pending()).unwrap();
        loop {
            woken.recv_timeout(Duration::from_secs(20)).expect("is woken");
            if let Poll::Ready(output) = pin!(&mut future).poll(&mut context) {
                return output;
            }
        }
    });
    assert!(is_polled.recv().unwrap());
    polling
}

#[test]
fn a_task_is_woken_when_its_batch_is_accepted_and_when_it_is_refused() {
    let (world, chunk) = world();
    let held = world.rooms().commit.queue.begin_accepting();
    let accepted = pending(world.submit(saving(1, &chunk)).unwrap());
    let mut batch = WriteBatch::new();
    batch.save(ChunkAt::new(Dimension::new(7), ChunkPos::constant(0, 0, 0)), chunk);
    let refused = pending(world.submit(batch).unwrap());
    drop(held);
    assert_eq!(accepted.join().unwrap().unwrap().seq, world.last_commit());
    let error = refused.join().unwrap().unwrap_err();
    assert!(matches!(error, Error::UnknownDimension { found: 7, issued: 1 }), "{error}");
    world.flush().expect("the ticket reported the refusal");
}

#[test]
fn an_outcome_that_is_known_needs_no_wake() {
    let (world, chunk) = world();
    let mut ticket = world.submit(saving(1, &chunk)).unwrap();
    world.flush().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..2 {
        let Poll::Ready(accepted) = pin!(&mut ticket).poll(&mut context) else { panic!("it was accepted") };
        assert_eq!(accepted.unwrap().seq, world.last_commit());
    }
}

#[test]
fn a_task_is_woken_when_the_world_takes_no_commits_any_more() {
    let fails_at = Arc::default();
    let (world, chunk) = failing_at(&fails_at, 64 << 20);
    let held = world.rooms().commit.queue.begin_accepting();
    let ticket = pending(world.submit(saving(1, &chunk)).unwrap());
    fails_at.store(world.last_commit().get() + 1, Ordering::Relaxed);
    set_time_and_fail(&world);
    drop(held);
    let error = ticket.join().unwrap().unwrap_err();
    assert!(matches!(error, Error::Engine(EngineError::ReadOnly { .. })), "{error}");
    // The batch waits all the same.
    fails_at.store(0, Ordering::Relaxed);
    world.resume().unwrap();
    assert!(world.load(at(1)).unwrap().is_some());
}

#[test]
fn a_ticket_of_a_closed_world_is_ready() {
    let fails_at = Arc::default();
    let (world, chunk) = failing_at(&fails_at, 64 << 20);
    let held = world.rooms().commit.queue.begin_accepting();
    let mut ticket = world.submit(saving(1, &chunk)).unwrap();
    fails_at.store(world.last_commit().get() + 1, Ordering::Relaxed);
    set_time_and_fail(&world);
    drop(held);
    world.close().unwrap_err();
    let Poll::Ready(closed) = pin!(&mut ticket).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the world is closed")
    };
    assert!(matches!(closed, Err(Error::Closed)));
}

#[test]
fn a_task_is_woken_when_its_chunks_are_loaded() {
    let (world, chunk) = world();
    let held = world.rooms().commit.queue.begin_accepting();
    let _ticket = world.submit(saving(1, &chunk)).unwrap();
    // Waits for the batch.
    let loaded = pending(world.load_in_background(&[at(1), at(2)]));
    drop(held);
    let loaded = loaded.join().unwrap().unwrap();
    assert!(matches!(&loaded[..], [Ok(Some(_)), Ok(None)]), "{loaded:?}");
}

#[test]
fn chunks_are_given_once() {
    let (world, _) = world();
    let mut ticket: LoadTicket = world.load_in_background(&[at(1)]);
    while ticket.poll().is_none() {
        thread::yield_now();
    }
    let again = pin!(&mut ticket).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(again, Poll::Ready(Err(Error::Closed))), "{again:?}");
    assert!(ticket.poll().is_none());
}

#[test]
fn a_load_whose_world_is_closed_wakes_its_task() {
    let (giver, answer) = crate::rt::answer::answer();
    let loaded = pending(LoadTicket::new(answer, 1));
    drop(giver);
    let closed = loaded.join().unwrap();
    assert!(matches!(closed, Err(Error::Closed)), "{closed:?}");
}

/// A task that owns the last handle of the world, and ends when it is woken.
struct Owner(std::sync::Mutex<Option<World>>);

impl Wake for Owner {
    fn wake(self: Arc<Self>) {
        // The test drops its own handle meanwhile.
        thread::sleep(Duration::from_millis(200));
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
fn a_task_that_owns_the_world_may_end_when_it_is_woken() {
    let (world, chunk) = world();
    let held = world.rooms().commit.queue.begin_accepting();
    let ticket = Arc::new(std::sync::Mutex::new(world.submit(saving(1, &chunk)).unwrap()));
    let waker = Waker::from(Arc::new(Owner(std::sync::Mutex::new(Some(world.clone())))));
    let polled = {
        let (ticket, waker) = (Arc::clone(&ticket), waker);
        thread::spawn(move || {
            let mut ticket = ticket.lock().unwrap();
            pin!(&mut *ticket).poll(&mut Context::from_waker(&waker)).is_pending()
        })
    };
    assert!(polled.join().unwrap());
    drop(held);
    let weak = world.rooms().commit.weak_world.clone();
    drop(world);
    let until = std::time::Instant::now() + Duration::from_secs(20);
    while weak.with_world(|_| ()).is_ok() {
        assert!(std::time::Instant::now() < until, "the world is not closed");
        thread::yield_now();
    }
}
