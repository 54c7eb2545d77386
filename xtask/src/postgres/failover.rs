//! Failures of a node: the primary killed or paused, and followed by the furthest standby; a standby killed.

use std::fmt;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::cluster::{Cluster, HEALTHY_WITHIN};
use super::lsn::{Lsn, furthest};
use super::node::Node;
use super::{digest, health, say};

/// How long a paused primary runs after it was woken, so that clients that still hold a connection to it can use it.
const AWAKE: Duration = Duration::from_millis(500);

/// What happens to which node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The primary is killed; another node is promoted.
    Kill,
    /// The primary is paused; another node is promoted, then it is woken.
    Pause,
    /// A standby is killed and starts again.
    Standby,
    /// All standbys are killed, and start again after this time.
    Standbys(Duration),
    /// None: only the log is stalled.
    None,
}

/// How the log of a primary is kept from the other nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stall {
    pub(super) time: Duration,
    /// After half of the time the primary waits for no other node.
    pub(super) unset: bool,
}

/// What was done, and how long each part took.
#[derive(Debug)]
pub(super) struct Parts {
    began: Instant,
    last: Instant,
    lines: Vec<(String, Duration)>,
}

impl Parts {
    fn new() -> Self {
        let now = Instant::now();
        Self { began: now, last: now, lines: Vec::new() }
    }

    fn ended(&mut self, what: impl Into<String>) {
        let now = Instant::now();
        self.lines.push((what.into(), now - self.last));
        self.last = now;
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = ("all".to_owned(), self.last - self.began);
        let lines = || self.lines.iter().chain([&all]);
        let width = lines().map(|(what, _)| what.len()).max().unwrap_or(0);
        for (what, time) in lines() {
            writeln!(formatter, "{what:width$}  {:>6.2} s", time.as_secs_f64())?;
        }
        Ok(())
    }
}

/// Lets a node fail and the cluster become healthy again, and compares all tables of all nodes. Before that the log of the
/// primary is kept from the other nodes for the time of `stall`.
///
/// # Errors
/// The cluster was not healthy, did not become so again, or the nodes differ.
pub(super) fn fail(cluster: &Cluster, stall: Option<Stall>, failure: Failure) -> Result<Parts> {
    let nodes = &cluster.nodes;
    if nodes.len() < 2 {
        bail!("the cluster has one node, and no other can follow it");
    }
    let seen = health::look(nodes)?;
    let faults = health::faults(&seen);
    if !faults.is_empty() {
        bail!(
            "the cluster is not healthy: {}; `{}` repairs it",
            faults.join("; "),
            cluster.home.command("up")
        );
    }
    let primary = health::primary(&seen).context("a healthy cluster has a primary")?;
    let mut parts = Parts::new();
    if let Some(Stall { time, unset }) = stall {
        let old = &nodes[primary];
        old.stall()?;
        say(format!("{} is stalled for {} s: no other node gets its log", old.name, time.as_secs()));
        if unset {
            sleep(time / 2);
            old.set_alone()?;
            old.ask()?.query("SELECT pg_reload_conf()")?;
            sleep(time / 2);
            old.set(None)?;
        } else {
            sleep(time);
        }
        if failure == Failure::None {
            old.wake()?;
        }
        parts.ended(format!("{}, the primary, stalled", old.name));
    }
    let failed = match failure {
        Failure::None => Ok(()),
        Failure::Kill | Failure::Pause => fail_primary(nodes, primary, failure, &mut parts),
        Failure::Standby => fail_standby(nodes, primary, &mut parts),
        Failure::Standbys(time) => stop_standbys(nodes, primary, time, &mut parts),
    };
    let healthy = failed.and_then(|()| health::wait(nodes, HEALTHY_WITHIN));
    let seen = healthy.with_context(|| format!("`{}` repairs the cluster", cluster.home.command("up")))?;
    parts.ended("every other node is in the quorum");
    let primary = health::primary(&seen).context("a healthy cluster has a primary")?;
    let tables = digest::compare(nodes, primary).with_context(|| {
        format!("not all nodes were seen to be equal; they stay until `{}`", cluster.home.command("down"))
    })?;
    parts.ended(format!("{tables} tables are equal on all nodes"));
    Ok(parts)
}

fn fail_primary(nodes: &[Node], primary: usize, failure: Failure, parts: &mut Parts) -> Result<()> {
    let old = &nodes[primary];
    if failure == Failure::Pause {
        old.pause()?;
        parts.ended(format!("{}, the primary, paused", old.name));
    } else {
        old.kill()?;
        parts.ended(format!("{}, the primary, killed", old.name));
    }
    let standbys: Vec<_> = nodes.iter().filter(|node| node.name != old.name).collect();
    let chosen = standbys[furthest_of(&standbys)?];
    parts.ended("standbys asked");
    promote(chosen)?;
    say(format!("{} is promoted", chosen.name));
    parts.ended(format!("{} promoted", chosen.name));
    for standby in standbys.into_iter().filter(|node| node.name != chosen.name) {
        standby.set(Some(chosen))?;
        standby.ask()?.query("SELECT pg_reload_conf()")?;
        parts.ended(format!("{} told to follow it", standby.name));
        // Its commit waits for this standby.
        digest::commit(chosen)?;
        parts.ended("first commit with a quorum");
    }
    chosen.ask()?.query("CHECKPOINT")?;
    parts.ended("checkpoint");
    if failure == Failure::Pause {
        old.wake()?;
        sleep(AWAKE);
        old.kill()?;
        parts.ended(format!("{} woken, and killed {} s later", old.name, AWAKE.as_secs_f64()));
    }
    old.rewind(chosen)?;
    parts.ended(format!("{} rewound", old.name));
    old.start()?;
    parts.ended(format!("{} started", old.name));
    Ok(())
}

fn fail_standby(nodes: &[Node], primary: usize, parts: &mut Parts) -> Result<()> {
    let mut standbys = nodes.iter().filter(|node| node.name != nodes[primary].name);
    let standby = standbys.next().context("there is no standby")?;
    standby.kill()?;
    parts.ended(format!("{}, a standby, killed", standby.name));
    if standbys.next().is_some() {
        digest::commit(&nodes[primary])?;
        parts.ended("a commit without it");
    }
    standby.start()?;
    parts.ended(format!("{} started", standby.name));
    Ok(())
}

fn stop_standbys(nodes: &[Node], primary: usize, time: Duration, parts: &mut Parts) -> Result<()> {
    let is_standby = |node: &&Node| node.name != nodes[primary].name;
    for standby in nodes.iter().filter(is_standby) {
        standby.kill()?;
    }
    say(format!("{} is stalled for {} s: its standbys are killed", nodes[primary].name, time.as_secs()));
    sleep(time);
    for standby in nodes.iter().filter(is_standby) {
        standby.start()?;
        parts.ended(format!("{}, a standby, killed and started", standby.name));
    }
    Ok(())
}

/// The index of the standby that received most, once none receives any more: its primary is killed or paused.
///
/// # Errors
/// A standby does not answer, or they still receive after ten seconds.
pub(super) fn furthest_of(standbys: &[&Node]) -> Result<usize> {
    let started = Instant::now();
    let mut connections = standbys.iter().map(|node| node.ask()).collect::<Result<Vec<_>>>()?;
    let mut received = || -> Result<Vec<Lsn>> {
        let sql = "SELECT greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())";
        connections.iter_mut().map(|connection| connection.value(sql)?.parse()).collect()
    };
    let mut before = received()?;
    loop {
        // What the primary sent before it failed may still be on its way.
        sleep(Duration::from_millis(20));
        let now = received()?;
        if now == before {
            let said = standbys.iter().zip(&now).map(|(node, lsn)| format!("{} {lsn}", node.name));
            say(format!("received: {}", said.collect::<Vec<_>>().join(", ")));
            return furthest(&now).context("there is no standby");
        }
        if started.elapsed() > Duration::from_secs(10) {
            bail!("the standbys still receive, although their primary failed 10 s ago");
        }
        before = now;
    }
}

/// Makes a primary of a standby, on a new timeline.
///
/// # Errors
/// It does not become one within 30 seconds.
pub(super) fn promote(node: &Node) -> Result<()> {
    let promoted = node.ask()?.value("SELECT pg_promote(true, 25)")?;
    if promoted != "t" {
        bail!("{} was not promoted within 25 s; {}", node.name, node.end_of_log());
    }
    node.set(None).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Parts;

    #[test]
    fn every_part_has_its_time_and_the_last_line_is_all_of_them() {
        let mut parts = Parts::new();
        let (began, ms) = (parts.began, Duration::from_millis);
        parts.lines = vec![("n1 killed".to_owned(), ms(20)), ("n2 promoted, and more".to_owned(), ms(1280))];
        parts.last = began + ms(1300);
        let expected = "\
n1 killed                0.02 s
n2 promoted, and more    1.28 s
all                      1.30 s
";
        assert_eq!(parts.to_string(), expected);
    }
}
