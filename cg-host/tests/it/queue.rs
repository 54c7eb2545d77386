//! Queues: answers beside the host.

use std::sync::Arc;
use std::time::Duration;

use cg_host::{Answer, Error, Queue, Saved, Writes};
use cg_store::ErrorKind;

use crate::maker::{STONE, at, made, uniform};

const LONG: Duration = Duration::from_secs(60);

#[test]
fn loads_and_commits_answer_with_their_tags() {
    let made = made();
    made.save(&uniform(made.at, &[STONE]));
    let queue = Queue::new(&made.host, 8).expect("threads");
    queue.load(&made.binding, made.at, 1).expect("room");
    queue.load(&made.binding, at(made.at.dimension, 70, 0), 2).expect("room");
    let mut writes = Writes::new();
    writes.column(&made.binding, uniform(at(made.at.dimension, 5, 5), &[STONE]), false).expect("it fits");
    queue.commit(&mut writes, None, 3).expect("room");
    let mut done = Vec::new();
    while done.len() < 3 {
        done.extend(queue.wait(8, LONG).expect("open"));
    }
    done.sort_by_key(|done| done.tag);
    let answers: Vec<Answer> = done.into_iter().map(|done| done.answer.expect("sound")).collect();
    assert!(matches!(&answers[0], Answer::Loaded(Some(column)) if **column == uniform(made.at, &[STONE])));
    assert!(matches!(&answers[1], Answer::Loaded(None)));
    assert!(matches!(&answers[2], Answer::Committed(Saved::Changed(_))));
    assert_eq!(queue.wait(8, Duration::ZERO).expect("open").len(), 0);
}

#[test]
fn a_full_queue_says_so_until_answers_are_fetched() {
    let made = made();
    let queue = Queue::new(&made.host, 2).expect("threads");
    queue.load(&made.binding, made.at, 1).expect("room");
    queue.load(&made.binding, made.at, 2).expect("room");
    let error = queue.load(&made.binding, made.at, 3).expect_err("full");
    assert!(matches!(error, Error::QueueFull { capacity: 2 }));
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Busy, true));
    let mut fetched = 0;
    while fetched < 2 {
        fetched += queue.wait(1, LONG).expect("open").len();
    }
    queue.load(&made.binding, made.at, 3).expect("room");
}

#[test]
fn closing_wakes_those_who_wait() {
    let made = made();
    let queue = Arc::new(Queue::new(&made.host, 2).expect("threads"));
    let waiter = std::thread::spawn({
        let queue = Arc::clone(&queue);
        move || queue.wait(1, LONG)
    });
    std::thread::sleep(Duration::from_millis(50));
    queue.close();
    let error = waiter.join().expect("no panic").expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::Closed);
    let error = queue.load(&made.binding, made.at, 1).expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert_eq!(queue.cancel(1), 0);
}
