//! Refusals and permissions of the lock order.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::*;

/// The message of the panic of a thread that takes a lock.
fn refusal<T>(take: impl FnOnce() -> T) -> Option<String> {
    let taken = catch_unwind(AssertUnwindSafe(|| drop(take())));
    taken.err().map(|panic| *panic.downcast::<String>().expect("a panic with a text of its own"))
}

fn refused(taken: &str, held: &str) -> String {
    format!("lock order: {taken} is taken while {held} is held, which does not come before it")
}

#[test]
fn a_lock_is_taken_after_those_that_come_before_it_and_never_after_those_that_come_after_it() {
    let (commit, queue) = (Mutex::<_, rank::Commit>::new(1), Mutex::<_, rank::Queue>::new(2));
    {
        let (commit, queue) = (commit.lock(), queue.lock());
        assert_eq!((*commit, *queue), (1, 2));
    }
    let held = queue.lock();
    assert_eq!(refusal(|| commit.lock()), Some(refused("Commit", "Queue")));
    drop(held);
    assert_eq!(refusal(|| commit.lock()), None);
}

#[test]
fn no_two_locks_of_a_rank_are_held_at_once_but_in_layers() {
    let [first, second] = [Mutex::<_, rank::Commit>::new(()), Mutex::new(())];
    let held = first.lock();
    assert_eq!(refusal(|| second.lock()), Some(refused("Commit", "Commit")));
    drop(held);
    let [upper, base] = [Mutex::<_, rank::OverlayWriting>::new(()), Mutex::new(())];
    let _upper = upper.lock();
    assert_eq!(refusal(|| base.lock()), None);
}

#[test]
fn what_is_not_waited_for_is_not_refused_and_counts_as_held() {
    let (commit, queue) = (Mutex::<_, rank::Commit>::new(()), Mutex::<_, rank::Queue>::new(()));
    let accepting = Mutex::<_, rank::Accepting>::new(());
    let of_queue = queue.lock();
    let of_commit = commit.try_lock();
    assert!(of_commit.is_some());
    drop(of_queue);
    let limits = RwLock::<_, rank::Limits>::new(());
    assert_eq!(refusal(|| limits.read()), None);
    assert_eq!(refusal(|| accepting.lock()), Some(refused("Accepting", "Commit")));
}

#[test]
fn a_reader_keeps_a_place_in_the_order_as_a_writer_does() {
    let limits = RwLock::<_, rank::Limits>::new(1);
    let commit = Mutex::<_, rank::Commit>::new(());
    let read = limits.read();
    assert_eq!(refusal(|| commit.lock()), Some(refused("Commit", "Limits")));
    assert_eq!(refusal(|| limits.read()), Some(refused("Limits", "Limits")));
    drop(read);
    let mut written = limits.write();
    *written += 1;
    assert_eq!(refusal(|| commit.lock()), Some(refused("Commit", "Limits")));
    drop(written);
    assert_eq!((refusal(|| commit.lock()), *limits.read()), (None, 2));
}

#[test]
fn a_wait_for_a_condition_holds_no_lock_that_comes_after_its_mutex() {
    let (queue, limits) = (Mutex::<_, rank::Queue>::new(false), RwLock::<_, rank::Limits>::new(()));
    let (condition, at_once) = (Condvar::default(), Duration::ZERO);
    let mut state = queue.lock();
    assert_eq!(refusal(|| condition.wait_for(&mut state, at_once)), None);
    let _limits = limits.read();
    assert_eq!(refusal(|| condition.wait_for(&mut state, at_once)), Some(refused("Queue", "Limits")));
}

#[test]
fn a_segment_is_read_again_and_under_borders_and_written_before_them() {
    let world = RwLock::<_, rank::SegmentWorld>::new(());
    let borders = RwLock::<_, rank::SegmentBorders>::new(());
    let moving = Mutex::<_, rank::SegmentMoving>::new(());
    {
        let _read = world.read_recursive();
        let _border = borders.write();
        assert_eq!(refusal(|| world.read_recursive()), None);
        assert_eq!(refusal(|| moving.lock()), Some(refused("SegmentMoving", "SegmentBorders")));
        assert_eq!(refusal(|| world.write()), Some(refused("SegmentClosing", "SegmentBorders")));
    }
    let _written = world.write();
    assert_eq!(refusal(|| borders.write()), Some(refused("SegmentBorders", "SegmentWorld")));
}

#[test]
fn a_borrowed_engine_forbids_no_lock_and_a_vacant_one_does() {
    let (engine, commit) = (RwLock::<_, rank::EngineGuard>::new(Some(1)), Mutex::<_, rank::Commit>::new(()));
    let lease = RwLockReadGuard::try_map(engine.read(), Option::as_ref).unwrap();
    assert_eq!((*lease, refusal(|| commit.lock())), (1, None));
    drop(lease);
    let _vacant = engine.try_write_until(Instant::now()).unwrap();
    assert_eq!(refusal(|| commit.lock()), Some(refused("Commit", "EngineVacant")));
}

#[test]
fn code_of_the_host_is_ordered_for_itself() {
    let (writing, commit) = (Mutex::<_, rank::OverlayWriting>::new(()), Mutex::<_, rank::Commit>::new(()));
    let _held = commit.lock();
    assert_eq!(refusal(|| host(|| drop(writing.lock()))), None);
    let inside = || {
        let other = Mutex::<_, rank::Commit>::new(());
        let _held = other.lock();
        refusal(|| writing.lock())
    };
    assert_eq!(host(inside), Some(refused("OverlayWriting", "Commit")));
    assert_eq!(refusal(|| writing.lock()), Some(refused("OverlayWriting", "Commit")));
}

#[test]
fn the_documentation_lists_the_same_order() {
    let source = include_str!("../lock_order.rs");
    let (_, table) = source.split_once("\norder! {\n").unwrap();
    let is_name = |line: &&str| line.starts_with("    ") && line.as_bytes()[4].is_ascii_uppercase();
    let ranks = table.lines().filter(is_name).map(|line| line.trim().trim_end_matches([',', ' ', '{']));
    let (_, docs) = include_str!("../../../../docs/threads.md").split_once("## The order of locks").unwrap();
    let (docs, _) = docs.split_once("The exceptions:").unwrap();
    let columns = docs.lines().filter_map(|line| line.split('|').nth(2));
    let listed = columns.flat_map(|column| column.split('`').skip(1).step_by(2));
    assert_eq!(listed.collect::<Vec<_>>(), ranks.collect::<Vec<_>>());
}
