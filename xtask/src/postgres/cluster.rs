//! A cluster: made, repaired, removed.

use std::fs::{self, File};
use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::account::Account;
use super::address::{self, address};
use super::failover;
use super::home::Home;
use super::node::{Node, Settings};
use super::saved::Saved;
use super::{health, processes, say};
use crate::context::Context;
use crate::process::Tool;
use crate::setup::{Major, Postgresql};

/// How long a cluster may take to become healthy once all its servers run.
pub(super) const HEALTHY_WITHIN: Duration = Duration::from_secs(30);

/// A cluster that was made to its end, whatever of it runs.
#[derive(Debug)]
pub(super) struct Cluster {
    pub(super) home: Home,
    pub(super) nodes: Vec<Node>,
    saved: Saved,
}

impl Cluster {
    /// Makes a cluster of healthy nodes, or repairs the one that is there.
    ///
    /// # Errors
    /// There is one of another number of nodes, or something that a server needs is missing. What was begun is left for the
    /// next call, which removes it.
    pub(super) fn up(context: &Context, major: Major, nodes: u16) -> Result<Self> {
        let home = Home::new(context, major)?;
        let _lock = home.lock()?;
        if let Some(cluster) = Self::made(&home)? {
            let count = cluster.nodes.len();
            if count != usize::from(nodes) {
                bail!(
                    "the cluster has {count} nodes and not {nodes}: remove it first with `{}`",
                    home.command("down")
                );
            }
            cluster.repair()?;
            return Ok(cluster);
        }
        Self::make(context, home, major, nodes)
    }

    /// The cluster that `up` made.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(home: &Home) -> Result<Self> {
        Self::made(home)?.with_context(|| format!("there is no cluster: `{}` makes one", home.command("up")))
    }

    /// Stops all servers at once and removes all their files. It is no error if there is nothing.
    ///
    /// # Errors
    /// A process does not end, or a file cannot be removed.
    pub(super) fn down(home: &Home) -> Result<()> {
        // A damaged file must not keep what it describes.
        let saved = Saved::read(&home.file()).unwrap_or_default();
        let recorded = saved.map(|saved| {
            let outside = saved.sockets.parent().filter(|parent| *parent != saved.run).map(Path::to_owned);
            [Some(saved.run), outside].into_iter().flatten().collect::<Vec<_>>()
        });
        home.remove(&Account::find()?, &recorded.unwrap_or_default())
    }

    /// What `CG_PG_URL` has to be.
    pub(super) fn address(&self) -> String {
        address(&self.saved.password, &self.saved.ports)
    }

    fn made(home: &Home) -> Result<Option<Self>> {
        let advice = || format!("remove it with `{}`", home.command("down"));
        let Some(saved) = Saved::read(&home.file()).with_context(advice)?.filter(|saved| saved.is_made)
        else {
            return Ok(None);
        };
        if !saved.bin.join("postgres").is_file() {
            bail!(
                "the programs of the cluster, PostgreSQL {} in {}, are gone: {}",
                saved.version,
                saved.bin.display(),
                advice()
            );
        }
        Ok(Some(Self { home: home.clone(), nodes: nodes(&saved, &Account::find()?), saved }))
    }

    fn make(context: &Context, home: Home, major: Major, count: u16) -> Result<Self> {
        let programs = Postgresql::ensure(context, major)?;
        Self::down(&home)?;
        let account = Account::find()?;
        let (run, sockets) = home.make(&account)?;
        say(format!(
            "{count} nodes of PostgreSQL {} in {}, run by {}",
            programs.version,
            run.display(),
            account.name
        ));
        let bin = reachable(&account, &programs, &run)?;
        let (version, password) = (programs.version, password()?);
        let mut saved = Saved { is_made: false, run, sockets, bin, version, password, ports: ports(count)? };
        save(&home, &saved)?;
        let nodes = nodes(&saved, &account);
        let [first, others @ ..] = &nodes[..] else { bail!("a cluster needs a node") };
        first.init()?;
        first.start()?;
        make_database(first, &saved.password)?;
        say(format!("n1 is the primary, on port {}", first.port));
        each(others, |node| {
            node.copy(first)?;
            node.start()
        })?;
        health::wait(&nodes, HEALTHY_WITHIN)?;
        saved.is_made = true;
        save(&home, &saved)?;
        Ok(Self { home, nodes, saved })
    }

    /// Starts what is down, wakes what is paused, and has every node follow the primary.
    fn repair(&self) -> Result<()> {
        processes::kill_tools(&Account::find()?, &self.saved.run)?;
        let broken = health::faults(&health::look(&self.nodes)?);
        if broken.is_empty() {
            say("the cluster is healthy");
            return Ok(());
        }
        say(format!("to repair: {}", broken.join("; ")));
        self.nodes.iter().try_for_each(Node::wake)?;
        let primary = match self.leader() {
            Some(index) => {
                bring(&self.nodes[index], None)?;
                index
            }
            None => self.elect()?,
        };
        let leader = &self.nodes[primary];
        leader.ask()?.query("CHECKPOINT")?;
        let others: Vec<_> = self.nodes.iter().filter(|node| node.name != leader.name).cloned().collect();
        each(&others, |node| {
            let joined = if node.is_whole() && node.is_standby() {
                bring(node, Some(leader)).and_then(|()| follows(node, leader))
            } else if node.is_whole() {
                say(format!("{} was a primary: it is rewound to {}", node.name, leader.name));
                node.kill().and_then(|()| node.rewind(leader)).and_then(|()| node.start())
            } else {
                Err(anyhow::Error::msg("its data is not whole"))
            };
            joined.or_else(|error| {
                say(format!(
                    "{} is made again from {}, since it cannot go on: {error:#}",
                    node.name, leader.name
                ));
                node.kill()?;
                node.copy(leader)?;
                node.start()
            })
        })?;
        health::wait(&self.nodes, HEALTHY_WITHIN).map(|_| ())
    }

    /// The node that was the last primary, by its files: of those that are no standby, that of the newest timeline.
    fn leader(&self) -> Option<usize> {
        let fit = |index: &usize| self.nodes[*index].is_whole() && !self.nodes[*index].is_standby();
        (0..self.nodes.len()).filter(fit).max_by_key(|index| self.nodes[*index].timeline())
    }

    /// Promotes the furthest standby where the data of the primary is gone.
    fn elect(&self) -> Result<usize> {
        let whole: Vec<_> = (0..self.nodes.len()).filter(|index| self.nodes[*index].is_whole()).collect();
        if whole.is_empty() {
            bail!("the data of every node is gone: remove the cluster with `{}`", self.home.command("down"));
        }
        for index in &whole {
            let node = &self.nodes[*index];
            if node.processes()?.is_empty() {
                node.start()?;
            }
        }
        let standbys: Vec<_> = whole.iter().map(|index| &self.nodes[*index]).collect();
        let chosen = whole[failover::furthest_of(&standbys)?];
        say(format!("the primary is gone: {} is promoted", self.nodes[chosen].name));
        failover::promote(&self.nodes[chosen])?;
        Ok(chosen)
    }
}

/// Has a node run with the settings of a primary, or of a standby of `primary`.
fn bring(node: &Node, primary: Option<&Node>) -> Result<()> {
    let settings = node.set(primary)?;
    if node.processes()?.is_empty() {
        say(format!("{} is down: it is started", node.name));
        return node.start();
    }
    if settings == Settings::Written {
        node.ask()?.query("SELECT pg_reload_conf()")?;
    }
    Ok(())
}

/// Waits until a standby replicates.
fn follows(node: &Node, primary: &Node) -> Result<()> {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_replication WHERE application_name = '{}' AND state = 'streaming'",
        node.name
    );
    let (started, mut connection) = (Instant::now(), primary.ask()?);
    while connection.value(&sql)? == "0" {
        if started.elapsed() > Duration::from_secs(10) {
            bail!("it does not replicate from {} after 10 s", primary.name);
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Does the same with several nodes at once.
fn each(nodes: &[Node], work: impl Fn(&Node) -> Result<()> + Sync) -> Result<()> {
    thread::scope(|scope| {
        let work = &work;
        let started: Vec<_> = nodes.iter().map(|node| scope.spawn(move || work(node))).collect();
        let ended =
            started.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")));
        ended.collect::<Vec<_>>().into_iter().collect()
    })
}

fn nodes(saved: &Saved, account: &Account) -> Vec<Node> {
    let members: Vec<_> = (1..=saved.ports.len()).map(|number| format!("n{number}")).collect();
    let node = |(name, port): (&String, &u16)| Node {
        name: name.clone(),
        port: *port,
        members: members.clone(),
        run: saved.run.clone(),
        sockets: saved.sockets.clone(),
        bin: saved.bin.clone(),
        account: account.clone(),
    };
    members.iter().zip(&saved.ports).map(node).collect()
}

fn save(home: &Home, saved: &Saved) -> Result<()> {
    Account::own_file(&home.file(), &saved.text())
}

/// The folder of the programs where the servers' user can run them: copied to the servers if it cannot enter theirs.
fn reachable(account: &Account, programs: &Postgresql, run: &Path) -> Result<PathBuf> {
    let runs = |bin: &Path| account.tool(&bin.join("initdb")).arg("--version").succeeds();
    if runs(&programs.bin) {
        return Ok(programs.bin.clone());
    }
    say(format!("{} cannot enter {}: the programs are copied", account.name, programs.bin.display()));
    let copy = run.join("programs");
    fs::create_dir(&copy).with_context(|| format!("cannot create {}", copy.display()))?;
    Tool::new("cp").arg("-RL").args(&programs.parts).arg(&copy).capture()?;
    Tool::new("chmod").args(["-R", "a+rX"]).arg(&copy).capture()?;
    let above = programs.parts.first().and_then(|part| part.parent());
    let below = above
        .and_then(|above| programs.bin.strip_prefix(above).ok())
        .context("the programs have no folder")?;
    let bin = copy.join(below);
    if !runs(&bin) {
        bail!("{} cannot run {}, a copy", account.name, bin.join("initdb").display());
    }
    Ok(bin)
}

/// The role of the tests and its database. Nothing is awaited of standbys, since there is none yet.
fn make_database(node: &Node, password: &str) -> Result<()> {
    let name = address::NAME;
    let mut connection = node.ask()?;
    connection.query("SET synchronous_commit = local")?;
    connection.query(&format!("CREATE ROLE {name} LOGIN PASSWORD '{password}'"))?;
    connection.query(&format!("CREATE DATABASE {name} OWNER {name}")).map(|_| ())
}

/// 32 random hexadecimal digits.
fn password() -> Result<String> {
    Ok(random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot read /dev/urandom")?;
    Ok(bytes)
}

/// Free ports on loopback, below those that the system gives to outgoing connections: while a server is down, a client that
/// tries to connect again and again would else get the server's own port for its end, and keep it.
fn ports(count: u16) -> Result<Vec<u16>> {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first_outgoing = range.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(32_768);
    let mut taken = Vec::new();
    for _ in 0..1000 {
        if taken.len() == usize::from(count) {
            break;
        }
        let port = port_below(first_outgoing, u16::from_le_bytes(random()?));
        taken.extend(TcpListener::bind(("127.0.0.1", port)));
    }
    let ports = taken.iter().map(|listener| Ok(listener.local_addr()?.port())).collect::<Result<Vec<_>>>()?;
    if ports.len() < usize::from(count) {
        bail!("no {count} free ports on 127.0.0.1 were found in a thousand tries");
    }
    Ok(ports)
}

/// A port from 10,000 up and below a limit; 0, for which the system chooses one, where there is hardly any.
fn port_below(limit: u16, random: u16) -> u16 {
    const LOWEST: u16 = 10_000;
    match limit.saturating_sub(LOWEST) {
        0..100 => 0,
        room => LOWEST + random % room,
    }
}

#[cfg(test)]
mod tests {
    use super::{password, port_below};

    #[test]
    fn ports_are_below_those_of_outgoing_connections() {
        assert_eq!(port_below(32_768, 0), 10_000);
        assert_eq!(port_below(32_768, 22_767), 32_767);
        assert_eq!(port_below(32_768, 22_768), 10_000);
        assert_eq!(port_below(1024, 7), 0);
        assert_eq!(port_below(10_099, 7), 0);
        assert_eq!(port_below(10_100, 7), 10_007);
    }

    #[test]
    fn a_password_is_new_each_time_and_needs_no_escape_in_an_address() {
        let (one, other) = (password().expect("random"), password().expect("random"));
        assert_ne!(one, other);
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    }
}
