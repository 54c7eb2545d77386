//! The state of every node, and what is wrong with it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::connection::Row;
use super::lsn::Lsn;
use super::node::{Node, quorum};
use super::processes;

/// What a server says of itself.
const QUESTION: &str = "SELECT pg_is_in_recovery(), \
    CASE WHEN pg_is_in_recovery() THEN coalesce((SELECT received_tli FROM pg_stat_wal_receiver), \
    (SELECT timeline_id FROM pg_control_checkpoint())) \
    ELSE ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int END, \
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_receive_lsn() ELSE pg_current_wal_lsn() END, \
    CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, \
    current_setting('synchronous_standby_names')";

/// What a primary says of its standbys.
const STANDBYS: &str = "SELECT application_name, state, sync_state FROM pg_stat_replication ORDER BY 1";

/// A node as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    name: String,
    port: u16,
    pid: Option<u32>,
    role: Role,
}

/// What a node does.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Role {
    Primary {
        said: Said,
        standbys: Vec<Standby>,
    },
    Standby(Said),
    /// Its processes are paused.
    Paused,
    /// It runs and gives no answer, for this reason.
    Silent(String),
    Down,
}

/// A server's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    timeline: u32,
    /// Where its log ends: what a primary wrote, what a standby received. A standby that received nothing since it started
    /// has none.
    end: Option<Lsn>,
    replayed: Option<Lsn>,
    quorum: String,
}

/// A standby as its primary sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Standby {
    name: String,
    state: String,
    sync_state: String,
}

/// Looks at every node.
///
/// # Errors
/// The processes cannot be listed. That a server does not answer is part of what is seen.
pub(super) fn look(nodes: &[Node]) -> Result<Vec<Seen>> {
    nodes.iter().map(look_at).collect()
}

fn look_at(node: &Node) -> Result<Seen> {
    let pids = node.processes()?;
    let pid = node.stated_pid().filter(|pid| pids.contains(pid));
    let role = if pids.is_empty() {
        Role::Down
    } else if pids.iter().any(|pid| processes::is_paused(*pid)) {
        Role::Paused
    } else {
        answer(node).unwrap_or_else(|error| Role::Silent(format!("{error:#}")))
    };
    Ok(Seen { name: node.name.clone(), port: node.port, pid, role })
}

fn answer(node: &Node) -> Result<Role> {
    let mut connection = node.ask()?;
    let rows = connection.query(QUESTION)?;
    let (is_standby, said) = said_in(&rows).context("it gave an unknown answer")?;
    if is_standby {
        return Ok(Role::Standby(said));
    }
    let standbys = connection.query(STANDBYS)?.iter().map(standby_in).collect::<Option<_>>();
    Ok(Role::Primary { said, standbys: standbys.context("it gave an unknown answer")? })
}

/// The answer to [`QUESTION`], and whether it is a standby's.
fn said_in(rows: &[Row]) -> Option<(bool, Said)> {
    let [row] = rows else { return None };
    let [Some(is_standby), Some(timeline), end, replayed, Some(quorum)] = &row[..] else { return None };
    let lsn = |text: &Option<String>| text.as_deref().map(str::parse).transpose().ok();
    let said = Said {
        timeline: timeline.parse().ok()?,
        end: lsn(end)?,
        replayed: lsn(replayed)?,
        quorum: quorum.clone(),
    };
    Some((is_standby == "t", said))
}

/// A row of the answer to [`STANDBYS`].
fn standby_in(row: &Row) -> Option<Standby> {
    let [Some(name), Some(state), Some(sync_state)] = &row[..] else { return None };
    Some(Standby { name: name.clone(), state: state.clone(), sync_state: sync_state.clone() })
}

/// The index of the primary, if there is exactly one.
pub(super) fn primary(seen: &[Seen]) -> Option<usize> {
    let mut found = (0..seen.len()).filter(|&index| matches!(seen[index].role, Role::Primary { .. }));
    found.next().filter(|_| found.next().is_none())
}

/// What keeps the cluster from being healthy: every other node replicates from one primary, on its timeline, as a member of
/// the quorum.
pub(super) fn faults(seen: &[Seen]) -> Vec<String> {
    let members: Vec<_> = seen.iter().map(|node| node.name.clone()).collect();
    let mut faults = Vec::new();
    for node in seen {
        match &node.role {
            Role::Down => faults.push(format!("{} is down", node.name)),
            Role::Paused => faults.push(format!("{} is paused", node.name)),
            Role::Silent(why) => faults.push(format!("{} runs and does not answer: {why}", node.name)),
            Role::Primary { said, .. } | Role::Standby(said) if said.quorum != quorum(&members) => {
                faults.push(format!(
                    "{} has synchronous_standby_names = '{}' instead of '{}'",
                    node.name,
                    said.quorum,
                    quorum(&members)
                ));
            }
            Role::Primary { .. } | Role::Standby(_) => {}
        }
    }
    let primaries: Vec<_> = seen.iter().filter(|node| matches!(node.role, Role::Primary { .. })).collect();
    let [primary] = primaries[..] else {
        faults.push(format!("{} nodes are primaries instead of 1", primaries.len()));
        return faults;
    };
    let Role::Primary { said, standbys } = &primary.role else { return faults };
    for node in seen.iter().filter(|node| node.name != primary.name) {
        let Role::Standby(own) = &node.role else { continue };
        match standbys.iter().find(|standby| standby.name == node.name) {
            None => faults.push(format!("{} does not replicate from {}", node.name, primary.name)),
            Some(standby) if standby.state != "streaming" || standby.sync_state != "quorum" => {
                faults.push(format!(
                    "{} is {} and {} instead of streaming and quorum",
                    node.name, standby.state, standby.sync_state
                ));
            }
            Some(_) if own.timeline != said.timeline => faults.push(format!(
                "{} is on timeline {} and {} on {}",
                node.name, own.timeline, primary.name, said.timeline
            )),
            Some(_) => {}
        }
    }
    faults
}

/// Waits until the cluster is healthy, and returns what is seen then.
///
/// # Errors
/// It is not within the time; the message says what is wrong.
pub(super) fn wait(nodes: &[Node], limit: Duration) -> Result<Vec<Seen>> {
    let started = Instant::now();
    loop {
        let seen = look(nodes)?;
        let faults = faults(&seen);
        if faults.is_empty() {
            return Ok(seen);
        }
        if started.elapsed() > limit {
            let down = nodes.iter().zip(&seen).find(|(_, seen)| faults[0].starts_with(&seen.name));
            let log = down.map(|(node, _)| format!("\n{}", node.end_of_log())).unwrap_or_default();
            bail!("not healthy after {} s: {}{log}", limit.as_secs(), faults.join("; "));
        }
        sleep(Duration::from_millis(20));
    }
}

/// A table of the nodes.
pub(super) fn table(seen: &[Seen]) -> String {
    let head = ["node", "port", "pid", "role", "timeline", "LSN", "sync_state", "lag"].map(str::to_owned);
    let primary = primary(seen).map(|index| &seen[index].role);
    let rows: Vec<_> = [head].into_iter().chain(seen.iter().map(|node| node.cells(primary))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let line = |row: &[String; 8]| {
        let cells =
            row.iter().enumerate().map(|(column, cell)| format!("{cell:width$}", width = width(column)));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

impl Seen {
    fn cells(&self, primary: Option<&Role>) -> [String; 8] {
        let none = || "-".to_owned();
        let (role, said) = match &self.role {
            Role::Primary { said, .. } => ("primary", Some(said)),
            Role::Standby(said) => ("standby", Some(said)),
            Role::Paused => ("paused", None),
            Role::Silent(_) => ("silent", None),
            Role::Down => ("down", None),
        };
        let (mut sync_state, mut lag) = (none(), none());
        if let (Role::Standby(own), Some(Role::Primary { said, standbys })) = (&self.role, primary) {
            let standby = standbys.iter().find(|standby| standby.name == self.name);
            sync_state = standby.map_or_else(none, |standby| standby.sync_state.clone());
            lag = said
                .end
                .zip(own.replayed)
                .map_or_else(none, |(end, own)| format!("{} bytes", end.bytes_after(own)));
        }
        [
            self.name.clone(),
            self.port.to_string(),
            self.pid.map_or_else(none, |pid| pid.to_string()),
            role.to_owned(),
            said.map_or_else(none, |said| said.timeline.to_string()),
            said.and_then(|said| said.end).map_or_else(none, |end| end.to_string()),
            sync_state,
            lag,
        ]
    }
}

#[cfg(test)]
mod tests;
