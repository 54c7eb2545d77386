//! A node: one server with its data, its settings and its log.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::account::Account;
use super::connection::{Connection, SUPERUSER};
use super::{home, processes, say};
use crate::process::Tool;

/// Who may connect: the superuser through the socket, roles with a password on loopback.
const HBA: &str = "\
local all         postgres              trust
local replication postgres              trust
local all         all                   scram-sha-256
host  all         all      127.0.0.1/32 scram-sha-256
";

/// The file that makes a server a standby.
const STANDBY: &str = "standby.signal";

/// The file that a server writes when it starts, with the number of its first process.
const PID_FILE: &str = "postmaster.pid";

/// How long a server may take for an answer in which it waits for no other.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server of the cluster, whether it runs or not.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// `n1` and so on: also its name for replication.
    pub(super) name: String,
    /// The port on loopback, and the number in the name of the socket.
    pub(super) port: u16,
    /// The names of all nodes.
    pub(super) members: Vec<String>,
    pub(super) run: PathBuf,
    pub(super) sockets: PathBuf,
    pub(super) bin: PathBuf,
    pub(super) account: Account,
}

impl Node {
    /// Makes the data of a new cluster.
    ///
    /// # Errors
    /// `initdb` fails.
    pub(super) fn init(&self) -> Result<()> {
        let tool =
            self.program("initdb").args(["--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8"]);
        let tool = tool.args(["--locale", "C", "--data-checksums", "--no-sync", "--pgdata"]);
        tool.arg(self.data()).capture()?;
        self.account.write(&self.data().join("pg_hba.conf"), HBA)?;
        self.set(None).map(|_| ())
    }

    /// Replaces the data by a copy of the primary's, as a standby. The server does not run.
    ///
    /// # Errors
    /// `pg_basebackup` fails.
    pub(super) fn copy(&self, primary: &Self) -> Result<()> {
        self.account.write(&self.mark(), "")?;
        home::remove(&self.data())?;
        let tool =
            self.program("pg_basebackup").args(["-X", "stream", "-c", "fast", "--no-sync", "--pgdata"]);
        tool.arg(self.data()).arg("--dbname").arg(self.route_to(primary)).capture()?;
        self.become_standby_of(primary)
    }

    /// Takes back what the primary does not have, and becomes its standby. The server does not run. The primary has to have
    /// done a checkpoint since it was promoted: `pg_rewind` of 15 reads the timeline from there.
    ///
    /// # Errors
    /// `pg_rewind` fails; the data is of no use then.
    pub(super) fn rewind(&self, primary: &Self) -> Result<()> {
        self.account.write(&self.mark(), "")?;
        // In a standby the server does not recover alone, which `pg_rewind` lets it do first.
        remove_file(&self.data().join(STANDBY))?;
        let tool = self.program("pg_rewind").arg("--no-sync").arg("--target-pgdata").arg(self.data());
        let source = format!("{} dbname=postgres", self.route_to(primary));
        tool.arg("--source-server").arg(source).capture()?;
        self.become_standby_of(primary)
    }

    fn become_standby_of(&self, primary: &Self) -> Result<()> {
        self.set(Some(primary))?;
        self.account.write(&self.data().join(STANDBY), "")?;
        remove_file(&self.mark())
    }

    /// Writes the settings, where they differ: they are those of a standby of `primary`, or of a primary. They count when
    /// the server starts or is told to read them.
    ///
    /// # Errors
    /// The disk.
    pub(super) fn set(&self, primary: Option<&Self>) -> Result<Settings> {
        let (file, wanted) = (self.data().join("postgresql.auto.conf"), self.settings(primary));
        if fs::read_to_string(&file).is_ok_and(|found| found == wanted) {
            return Ok(Settings::Kept);
        }
        self.account.write(&file, &wanted)?;
        Ok(Settings::Written)
    }

    /// Writes the settings of a primary that waits for no other node.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set_alone(&self) -> Result<()> {
        let settings = self.settings(None) + "synchronous_standby_names = ''\n";
        self.account.write(&self.data().join("postgresql.auto.conf"), &settings)
    }

    /// The text of `postgresql.auto.conf`, which the server reads last. It is all that a node has of its own, so that what a
    /// copy or a rewind brings of another node's settings has no effect.
    fn settings(&self, primary: Option<&Self>) -> String {
        let quorum = quorum(&self.members);
        let sockets = self.sockets.to_string_lossy();
        let route = primary.map(|primary| self.route_to(primary)).unwrap_or_default();
        let lines = [
            ("cluster_name", &*self.name),
            ("listen_addresses", "127.0.0.1"),
            ("port", &self.port.to_string()),
            ("unix_socket_directories", &sockets),
            ("unix_socket_permissions", "0700"),
            ("max_connections", "200"),
            ("wal_level", "replica"),
            ("wal_log_hints", "on"),
            ("max_wal_senders", "10"),
            // There are no slots. A node that is rewound needs the log since the checkpoint before the failover, which may
            // be `max_wal_size` ago, and a little more if the checkpoint is late. `pg_rewind` copies all the log that there
            // is, 1.4 GB with the default size: that was half of a failover.
            ("max_wal_size", "128MB"),
            ("wal_keep_size", "384MB"),
            ("hot_standby", "on"),
            ("synchronous_commit", "on"),
            ("synchronous_standby_names", &quorum),
            // A node starts after it was killed: by default it syncs its files one by one, which took most of a failover.
            ("recovery_init_sync_method", "syncfs"),
            // Its own 5 s would be most of the time of a failover.
            ("wal_retrieve_retry_interval", "100ms"),
            ("primary_conninfo", &route),
        ];
        let line = |(name, value): (&str, &str)| {
            format!("{name} = '{}'\n", value.replace('\\', "\\\\").replace('\'', "''"))
        };
        lines.into_iter().map(line).collect()
    }

    /// How this node reaches another, under its own name.
    fn route_to(&self, other: &Self) -> String {
        let sockets = other.sockets.to_string_lossy().replace('\\', "\\\\").replace('\'', "\\'");
        format!(
            "host='{sockets}' port={} user={SUPERUSER} application_name={} connect_timeout=5",
            other.port, self.name
        )
    }

    /// Starts the server and waits until it answers; it outlives this program.
    ///
    /// # Errors
    /// It does not start within a minute; the message holds the end of its log.
    pub(super) fn start(&self) -> Result<()> {
        self.clear()?;
        let tool =
            self.program("pg_ctl").args(["start", "--wait", "--timeout", "60", "--silent", "--pgdata"]);
        let tool = tool.arg(self.data()).arg("--log").arg(self.log());
        tool.capture().map(|_| ()).with_context(|| {
            format!("{} does not start on port {}; {}", self.name, self.port, self.end_of_log())
        })
    }

    /// Removes the files by which a killed server seems to run: its number stays taken until its parent reaps it, and may
    /// become that of a stranger.
    fn clear(&self) -> Result<()> {
        if !self.processes()?.is_empty() {
            bail!("{} runs already", self.name);
        }
        if let Some(pid) = self.stated_pid().filter(|pid| processes::is_unreaped(*pid)) {
            say(format!(
                "process {pid} of {} has ended and is not reaped; its postmaster.pid goes",
                self.name
            ));
        }
        let file = self.data().join(PID_FILE);
        let socket = self.sockets.join(format!(".s.PGSQL.{}", self.port));
        let mut lock = socket.clone().into_os_string();
        lock.push(".lock");
        [&file, &socket, Path::new(&lock)].into_iter().try_for_each(remove_file)
    }

    /// A connection of the superuser.
    ///
    /// # Errors
    /// The server does not run, or does not answer.
    pub(super) fn connect(&self, database: &str) -> Result<Connection> {
        let opened = Connection::open(&self.sockets, self.port, database, PATIENCE);
        opened.with_context(|| format!("cannot ask {}", self.name))
    }

    /// As [`Node::connect`] to the database that every cluster has.
    ///
    /// # Errors
    /// As [`Node::connect`].
    pub(super) fn ask(&self) -> Result<Connection> {
        self.connect("postgres")
    }

    /// The first process of the server by what it wrote when it started; it may have ended.
    pub(super) fn stated_pid(&self) -> Option<u32> {
        fs::read_to_string(self.data().join(PID_FILE)).ok()?.lines().next()?.parse().ok()
    }

    /// The processes of the server.
    pub(super) fn processes(&self) -> Result<Vec<u32>> {
        processes::within(&self.account, &self.data())
    }

    /// Ends all processes of the server as a crash does, and removes what makes it seem to run.
    ///
    /// # Errors
    /// A process does not end.
    pub(super) fn kill(&self) -> Result<()> {
        processes::kill(&self.account, &self.data())?;
        self.clear()
    }

    /// Pauses all processes of the server.
    ///
    /// # Errors
    /// There is none, or they do not stop.
    pub(super) fn pause(&self) -> Result<()> {
        processes::pause(&self.account, &self.data())
    }

    /// Pauses the processes that send the log to other nodes.
    ///
    /// # Errors
    /// There is none, or they do not stop.
    pub(super) fn stall(&self) -> Result<()> {
        processes::pause_senders(&self.account, &self.data())
    }

    /// Lets a paused or stalled server go on.
    pub(super) fn wake(&self) -> Result<()> {
        processes::signal("CONT", &self.processes()?)
    }

    /// Whether the data is whole: neither missing nor left in the middle of a copy or a rewind.
    pub(super) fn is_whole(&self) -> bool {
        self.data().join("PG_VERSION").is_file() && !self.mark().exists()
    }

    /// Whether the data is that of a standby.
    pub(super) fn is_standby(&self) -> bool {
        self.data().join(STANDBY).exists()
    }

    /// The newest timeline of the data. It begins with 1, and each promotion leaves the history of the next.
    pub(super) fn timeline(&self) -> u32 {
        let names = fs::read_dir(self.data().join("pg_wal")).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter_map(|name| timeline_in(&name)).max().unwrap_or(1)
    }

    /// The end of the log as a sentence.
    pub(super) fn end_of_log(&self) -> String {
        let log = fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        format!("{} ends with:\n{}", self.log().display(), lines[lines.len().saturating_sub(8)..].join("\n"))
    }

    fn program(&self, name: &str) -> Tool {
        // By this folder a program is found that a killed command left.
        self.account.tool(&self.bin.join(name)).dir(&self.run)
    }

    fn data(&self) -> PathBuf {
        self.run.join(&self.name)
    }

    fn log(&self) -> PathBuf {
        self.run.join(format!("{}.log", self.name))
    }

    fn mark(&self) -> PathBuf {
        self.run.join(format!("{}.incomplete", self.name))
    }
}

/// Whether settings were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settings {
    Kept,
    Written,
}

/// The value of `synchronous_standby_names`, the same on every node; empty where there is one node.
pub(super) fn quorum(members: &[String]) -> String {
    if members.len() < 2 { String::new() } else { format!("ANY 1 ({})", members.join(",")) }
}

/// The timeline of a file such as `00000002.history`.
fn timeline_in(name: &str) -> Option<u32> {
    u32::from_str_radix(name.strip_suffix(".history")?, 16).ok()
}

fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::{Node, timeline_in};
    use crate::postgres::account::Account;

    fn node(name: &str, port: u16) -> Node {
        Node {
            name: name.to_owned(),
            port,
            members: ["n1", "n2", "n3"].map(str::to_owned).to_vec(),
            run: "/it's".into(),
            sockets: "/it's/s".into(),
            bin: "/bin".into(),
            account: Account::find().expect("a user"),
        }
    }

    #[test]
    fn the_settings_of_a_standby_name_its_primary_and_the_quorum() {
        expect![[r"
            cluster_name = 'n2'
            listen_addresses = '127.0.0.1'
            port = '5002'
            unix_socket_directories = '/it''s/s'
            unix_socket_permissions = '0700'
            max_connections = '200'
            wal_level = 'replica'
            wal_log_hints = 'on'
            max_wal_senders = '10'
            max_wal_size = '128MB'
            wal_keep_size = '384MB'
            hot_standby = 'on'
            synchronous_commit = 'on'
            synchronous_standby_names = 'ANY 1 (n1,n2,n3)'
            recovery_init_sync_method = 'syncfs'
            wal_retrieve_retry_interval = '100ms'
            primary_conninfo = 'host=''/it\\''s/s'' port=5001 user=postgres application_name=n2 connect_timeout=5'
        "]]
        .assert_eq(&node("n2", 5002).settings(Some(&node("n1", 5001))));
    }

    #[test]
    fn a_primary_follows_none_and_a_single_node_waits_for_none() {
        let mut single = node("n1", 5001);
        single.members.truncate(1);
        let settings = single.settings(None);
        assert!(settings.ends_with("primary_conninfo = ''\n"), "{settings}");
        assert!(settings.contains("synchronous_standby_names = ''\n"), "{settings}");
    }

    #[test]
    fn timelines_are_hexadecimal_and_stand_in_names_of_histories_alone() {
        assert_eq!(timeline_in("0000001A.history"), Some(26));
        assert_eq!(timeline_in("000000010000000000000003"), None);
    }
}
