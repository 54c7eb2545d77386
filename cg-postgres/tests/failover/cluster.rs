//! The cluster of `CG_PG_URL`, and the command that lets it fail.

use std::env;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::database::{Database, database};

/// The tests of this program, one at a time: each disturbs the server of all.
static TURN: Mutex<()> = Mutex::new(());

/// A test's turn, and the server.
pub(crate) struct Server {
    pub(crate) database: Database,
    _turn: MutexGuard<'static, ()>,
}

/// The server, or `None` if there is none.
pub(crate) fn server() -> Option<Server> {
    let database = database()?;
    Some(Server { database, _turn: TURN.lock().unwrap_or_else(PoisonError::into_inner) })
}

/// A server that has other nodes which follow it.
pub(crate) struct Cluster {
    pub(crate) database: Database,
    command: String,
    _turn: MutexGuard<'static, ()>,
}

/// The cluster, or `None` if there is none, after saying so loudly.
pub(crate) fn cluster() -> Option<Cluster> {
    let Server { database, _turn: turn } = server()?;
    let Some(command) = env::var("CG_PG_FAIL").ok().filter(|command| !command.is_empty()) else {
        eprintln!("\n*** NOT TESTED: no failover: set CG_PG_FAIL to the command that does one ***\n");
        return None;
    };
    Some(Cluster { database, command, _turn: turn })
}

/// A number of the environment.
pub(crate) fn number(name: &str, default: usize) -> usize {
    let Ok(text) = env::var(name) else { return default };
    text.parse().unwrap_or_else(|error| panic!("{name} is {text:?}: {error}"))
}

/// Sets a flag when it is dropped, so that threads end also if a check fails.
pub(crate) struct SetOnDrop<'a>(pub(crate) &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Cluster {
    /// Lets it fail, and waits until it is healthy again and all nodes have equal tables.
    pub(crate) fn fail(&self, how: &str) {
        let output = self.command(how).output().expect("the command starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{} {how}: {said}", self.command);
    }

    /// Keeps the primary's log from the other nodes for some seconds. Then the primary fails, and its log is lost.
    pub(crate) fn stall(&self, seconds: u32) -> Stalled {
        self.begin(&format!("--stall {seconds}"))
    }

    /// As [`stall`](Self::stall). After half of the time the primary stops waiting for other nodes.
    pub(crate) fn stall_and_unset(&self, seconds: u32) -> Stalled {
        self.begin(&format!("--stall {seconds} --unset"))
    }

    /// Keeps the primary's log from the other nodes for some seconds. Then they get it, and nothing fails.
    pub(crate) fn stall_and_spare(&self, seconds: u32) -> Stalled {
        self.begin(&format!("--stall {seconds} --spare"))
    }

    /// Kills all standbys, and starts them after some seconds.
    pub(crate) fn stop_standbys(&self, seconds: u32) -> Stalled {
        self.begin(&format!("--standbys {seconds}"))
    }

    fn begin(&self, how: &str) -> Stalled {
        let child = self.command(how).stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
        let mut child = child.expect("the command starts");
        let mut said = BufReader::new(child.stderr.take().expect("is piped"));
        let mut all = String::new();
        while !all.contains("is stalled") {
            assert!(said.read_line(&mut all).expect("is text") > 0, "{} {how}: {all}", self.command);
        }
        Stalled { child, said }
    }

    fn command(&self, how: &str) -> Command {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{} {how}", self.command));
        command
    }
}

/// A primary whose log reaches no other node.
pub(crate) struct Stalled {
    child: Child,
    said: BufReader<std::process::ChildStderr>,
}

impl Stalled {
    /// Waits until the cluster is healthy again.
    pub(crate) fn wait(mut self) {
        let said: Vec<_> = self.said.by_ref().lines().map_while(Result::ok).collect();
        let status = self.child.wait().expect("is a child");
        assert!(status.success(), "{}", said.join("\n"));
    }
}
