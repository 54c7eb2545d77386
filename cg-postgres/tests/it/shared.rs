//! What engines over shared rows promise, with a proxy that loses and delays messages.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use cg_engine::conformance::shared::{self, Case, Link as _, Loss, Shared};
use cg_engine::{Batch, Engine as _, EngineError, Level};
use cg_postgres::{Options, PostgresEngine};

use crate::database::{Database, TestWorld, database};
use crate::proxy::Proxy;

/// A world that several engines open, each over a proxy of its own.
struct Rows {
    database: Database,
    world: TestWorld,
    server: String,
}

fn impatient() -> Options {
    let mut options = Options::default();
    options.patience = Duration::from_millis(1500);
    options
}

impl Rows {
    fn new(database: &Database) -> Self {
        let world = database.world();
        drop(world.create());
        Self { database: database.clone(), server: database.primary(), world }
    }

    /// The same, with one text of a function replaced by another.
    fn with_mutant(database: &Database, function: &str, text: &str, mutant: &str) -> Self {
        let rows = Self::new(database);
        rows.world.replace(function, text, mutant);
        rows
    }
}

impl Shared for Rows {
    type Engine = PostgresEngine;
    type Link = Proxy;

    fn take(&self) -> Result<(PostgresEngine, Arc<Proxy>), EngineError> {
        let proxy = Proxy::start(self.server.clone());
        let over_proxy = self.database.over(&format!("127.0.0.1:{}", proxy.port));
        let address = over_proxy.with_world(self.world.address.world()).expect("fits").with_take(true);
        Ok((PostgresEngine::open(&address, &impatient())?, proxy))
    }

    fn read(&self) -> Result<PostgresEngine, EngineError> {
        PostgresEngine::open_read_only(&self.world.address, &impatient())
    }
}

#[test]
fn it_keeps_the_promises_of_shared_rows() {
    let Some(database) = database() else { return };
    for case in shared::shared_cases() {
        let begun = std::time::Instant::now();
        (case.run)(&Rows::new(&database));
        println!("{} {:?}", case.name, begun.elapsed());
    }
}

/// The cases of these names that fail.
fn failing(rows: impl Fn() -> Rows, names: &[&'static str]) -> BTreeSet<&'static str> {
    let fails = |case: &Case<Rows>| {
        let rows = rows();
        catch_unwind(AssertUnwindSafe(|| (case.run)(&rows))).is_err()
    };
    let cases = shared::shared_cases().into_iter().filter(|case| names.contains(&case.name));
    cases.filter(fails).map(|case| case.name).collect()
}

#[test]
fn each_check_of_the_server_is_needed() {
    let Some(database) = database() else { return };
    let table: [(&str, &str, &str, &[&'static str]); 3] = [
        (
            "cg_commit_1",
            "AND epoch = p_epoch",
            "",
            &["a_second_owner_fences_the_first", "a_late_request_of_an_earlier_owner_is_not_applied"],
        ),
        (
            "cg_commit_1",
            "AND session = p_session",
            "",
            &["a_late_request_of_an_earlier_connection_is_not_applied"],
        ),
        (
            "cg_again_1",
            "SET session = session + (epoch = p_epoch)::int4 WHERE",
            "SET session = 1, epoch = p_epoch WHERE",
            &["a_fenced_engine_is_not_opened_again"],
        ),
    ];
    for (function, text, mutant, names) in table {
        let rows = || Rows::with_mutant(&database, function, text, mutant);
        let failing = failing(rows, names);
        assert_eq!(failing, names.iter().copied().collect(), "{function}: {text:?} as {mutant:?}");
    }
}

#[test]
fn a_lost_message_is_no_error() {
    let Some(database) = database() else { return };
    let rows = Rows::new(&database);
    let (engine, link) = rows.take().expect("opens");
    for (seq, loss) in (1..).zip([Loss::Request, Loss::Answer, Loss::Request, Loss::Answer]) {
        link.lose_next(loss);
        let committed = engine.commit(Batch::new(), &[], Level::Process);
        assert_eq!(committed.expect("finds out what is stored").get(), seq, "{loss:?}");
    }
    let batches = rows.world.run("SELECT batches FROM {schema}.cg_head");
    assert_eq!(batches.as_deref(), Some("4"), "each is applied once");
}

#[test]
fn a_commit_is_recognised_by_its_token() {
    let Some(database) = database() else { return };
    let rows = Rows::with_mutant(&database, "cg_commit_1", "token = p_token", "token = NULL");
    let (engine, link) = rows.take().expect("opens");
    link.lose_next(Loss::Answer);
    match engine.commit(Batch::new(), &[], Level::Process) {
        Err(EngineError::WriteFailed { cause }) => {
            let message =
                "commit: the server acknowledged 0 batches up to commit 0, and has 1 up to commit 1";
            assert!(cause.to_string().starts_with(message), "{cause}");
        }
        other => panic!("expected that the rows are of another call, got {other:?}"),
    }
}
