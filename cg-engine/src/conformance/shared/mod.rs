//! Tests of what every engine promises whose rows other processes may have open.
//!
//! The tests of such an engine call [`run_shared`] besides [`run_all`](super::run_all). Each test opens several engines
//! over the same rows, and disturbs the link between one of them and the rows.
//!
//! ```
//! use cg_engine::conformance::{remote::Server, shared};
//! shared::run_shared(Server::new);
//! ```

mod doubt;
mod failover;
mod long;
mod owner;

use std::sync::Arc;

use super::{SPACE, commit, keys, payload, payloads, put, versions};
use crate::{Batch, CommitSeq, Engine, EngineError, Level, Readable, Reopened};

/// Rows that several engines may open.
pub trait Shared: Sync {
    /// The engines.
    type Engine: Engine;
    /// What is between an engine and the rows.
    type Link: Link + ?Sized;

    /// Opens the rows for writing, and takes them from the engine that had them.
    ///
    /// # Errors
    /// As the engine's own open.
    fn take(&self) -> Result<(Self::Engine, Arc<Self::Link>), EngineError>;

    /// Opens the rows for reading only.
    ///
    /// # Errors
    /// As the engine's own open.
    fn read(&self) -> Result<Self::Engine, EngineError>;
}

/// The link between one engine and its rows, which a test disturbs. A connection that the engine opens again uses the
/// same link.
pub trait Link: Sync {
    /// If `is_cut`, loses every message from now on.
    fn cut(&self, is_cut: bool);

    /// If `is_paused`, holds every message back from now on. Otherwise delivers what was held back.
    fn pause(&self, is_paused: bool);

    /// Loses a message of the next commit.
    fn lose_next(&self, loss: Loss);

    /// Holds the request of the next commit back. Its sender gets no answer.
    fn delay_next(&self);

    /// Delivers the request that was held back, and drops its answer.
    fn deliver_delayed(&self);
}

/// A lost message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Loss {
    /// The request does not arrive.
    Request,
    /// The answer does not arrive.
    Answer,
    /// The answer does not arrive, and no message after it, until [`Link::cut`] is called with `false`.
    Connection,
}

/// Shared rows on several nodes. A commit is acknowledged when more than one node has it.
pub trait Replicated: Shared {
    /// Lets the next commit arrive at one node alone: it is applied there and not acknowledged.
    fn stall_next(&self);

    /// Loses what one node alone has. The engines go on with the other nodes.
    fn fail_over(&self);
}

/// A test over shared rows.
#[derive(Debug)]
pub struct Case<S> {
    /// Its name, which states a promise.
    pub name: &'static str,
    /// Runs the test.
    ///
    /// # Panics
    /// If the engine breaks the promise.
    pub run: fn(&S),
}

macro_rules! cases {
    ($($module:ident: $($name:ident)*;)*) => {
        vec![$($(Case { name: stringify!($name), run: $module::$name },)*)*]
    };
}

/// The tests that [`run_shared`] runs.
pub fn shared_cases<S: Shared>() -> Vec<Case<S>> {
    cases! {
        owner: a_second_owner_fences_the_first
            a_fenced_engine_is_not_opened_again
            an_engine_that_is_opened_again_keeps_the_rows
            readers_write_nothing
            readers_beside_a_writer_see_whole_batches;
        doubt: a_commit_whose_messages_are_lost_is_applied_once
            a_guard_holds_for_a_commit_that_is_sent_again
            a_late_request_of_an_earlier_connection_is_not_applied
            a_late_request_of_an_earlier_owner_is_not_applied
            a_cut_link_ends_writing_until_the_engine_is_opened_again
            a_paused_owner_is_fenced_when_it_wakes;
        long: a_scan_of_many_rows_is_of_one_state
            many_keys_are_read_of_one_state
            parts_of_many_rows_are_read_of_one_state
            a_followed_state_stays_after_later_commits_and_ends_with_its_engine
            an_engine_closes_while_calls_run;
    }
}

/// The tests that [`run_replicated`] runs.
pub fn replicated_cases<S: Replicated>() -> Vec<Case<S>> {
    cases! {
        failover: an_acknowledged_commit_survives_a_failover
            the_commit_that_an_engine_finds_when_it_is_opened_again_survives_a_failover
            a_run_that_one_node_had_survives_a_failover_whole_or_not_at_all;
    }
}

/// Runs every test over rows that `make` creates. Each must be empty and separate from the others.
///
/// # Panics
/// If the engine breaks a promise.
pub fn run_shared<S: Shared>(make: impl Fn() -> S) {
    for case in shared_cases() {
        (case.run)(&make());
    }
}

/// Runs every test of replication over rows that `make` creates.
///
/// # Panics
/// If the engine breaks a promise.
pub fn run_replicated<S: Replicated>(make: impl Fn() -> S) {
    for case in replicated_cases() {
        (case.run)(&make());
    }
}

#[track_caller]
fn take<S: Shared>(rows: &S) -> (S::Engine, Arc<S::Link>) {
    rows.take().expect("opens for writing")
}

/// A batch of one row.
fn one(key: &[u8], payload: &[u8]) -> Batch {
    let mut batch = Batch::new();
    put(&mut batch, key, payload);
    batch
}

/// Opens an engine again that may have written up to a commit.
#[track_caller]
fn reopen(engine: impl Engine, expected: impl Fn(u64) -> bool) -> Box<dyn Engine> {
    let reopen = engine.reopening();
    drop(engine);
    match reopen(&|found| Ok(expected(found.last_commit.get()))).expect("is opened again") {
        Reopened::Writable(engine) => engine,
        other => panic!("expected a writable engine, got {other:?}"),
    }
}

/// Whether another writer has the rows, and the call wrote nothing.
#[track_caller]
fn assert_fenced<T: std::fmt::Debug>(result: Result<T, EngineError>) {
    match result {
        Err(EngineError::Fenced { .. }) => {}
        Err(error @ EngineError::ReadOnly { .. }) if error.fence().is_some() => {}
        other => panic!("expected to be fenced, got {other:?}"),
    }
}

/// How a batch is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Commit,
    Run,
    Maintenance,
}

impl How {
    const ALL: [Self; 3] = [Self::Commit, Self::Run, Self::Maintenance];

    fn write(self, engine: &dyn Engine, batch: Batch) -> Result<CommitSeq, EngineError> {
        match self {
            Self::Commit => engine.commit(batch, &[], Level::Process),
            // The row comes with the last batch, which is stored only with those before it.
            Self::Run => {
                let batches = vec![Batch::new(), Batch::new(), batch];
                engine.commit_run(engine.last_commit().next(), batches, Level::Process)
            }
            Self::Maintenance => engine.commit(batch.maintenance(), &[], Level::Process),
        }
    }

    /// The number of commits that it makes.
    fn count(self) -> u64 {
        match self {
            Self::Commit => 1,
            Self::Run => 3,
            Self::Maintenance => 0,
        }
    }
}

/// The payloads of rows with keys of two bytes, by key.
fn numbered(view: &dyn Readable, count: u16) -> Vec<Option<Vec<u8>>> {
    let keys: Vec<_> = (0..count).map(u16::to_le_bytes).collect();
    let asked: Vec<_> = keys.iter().map(|key| (SPACE, &key[..])).collect();
    payloads(view, &asked)
}

/// Writes all rows of [`numbered`] with one payload.
fn write_all(engine: &dyn Engine, count: u16, payload: &[u8]) {
    let mut batch = Batch::new();
    for n in 0..count {
        put(&mut batch, &n.to_le_bytes(), payload);
    }
    commit(engine, batch);
}
