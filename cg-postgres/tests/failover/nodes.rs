//! What engines over several nodes promise.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use cg_engine::EngineError;
use cg_engine::conformance::shared::{Replicated, Shared, run_replicated};
use cg_postgres::{Options, PostgresEngine};

use crate::cluster::{Cluster, Stalled, cluster};
use crate::cuts::end_in_wait;
use crate::database::TestWorld;
use crate::proxy::Proxy;

/// The patience of the engines: the stalled commit fails before the other nodes get it, and they get it before the engine
/// that is opened again has lost its patience too.
const PATIENCE: Duration = Duration::from_secs(4);
const STALL_S: u32 = 6;

/// A world on the nodes of a cluster.
struct Nodes<'a> {
    cluster: &'a Cluster,
    world: TestWorld,
    stalled: Mutex<Option<Stalled>>,
}

impl<'a> Nodes<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let world = cluster.database.world();
        drop(world.create());
        Self { cluster, world, stalled: Mutex::default() }
    }
}

fn options() -> Options {
    let mut options = Options::default();
    options.patience = PATIENCE;
    options
}

impl Shared for Nodes<'_> {
    type Engine = PostgresEngine;
    type Link = Proxy;

    /// Nothing is between the engine and the nodes: the tests disturb the nodes and not the link.
    fn take(&self) -> Result<(PostgresEngine, Arc<Proxy>), EngineError> {
        let address = self.world.address.clone().with_take(true);
        Ok((PostgresEngine::open(&address, &options())?, Proxy::start(self.cluster.database.primary())))
    }

    fn read(&self) -> Result<PostgresEngine, EngineError> {
        PostgresEngine::open_read_only(&self.world.address, &options())
    }
}

impl Replicated for Nodes<'_> {
    fn stall_next(&self) {
        *self.stalled.lock().expect("no thread panicked") = Some(self.cluster.stall_and_spare(STALL_S));
        let database = self.cluster.database.clone();
        // The commit becomes visible: the server gives up waiting for another node.
        thread::spawn(move || assert!(end_in_wait(&database), "no commit waits for another node"));
    }

    fn fail_over(&self) {
        if let Some(stalled) = self.stalled.lock().expect("no thread panicked").take() {
            stalled.wait();
        }
        self.cluster.fail("");
    }
}

#[test]
fn it_keeps_the_promises_of_replicated_rows() {
    let Some(cluster) = cluster() else { return };
    run_replicated(|| Nodes::new(&cluster));
}
