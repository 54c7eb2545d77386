//! `cargo xtask postgres` on real servers, in a target directory of its own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::{env, fs};

use crate::machine::stderr;

/// The commands of one cluster, which is removed at the end, also of a test that fails.
#[derive(Debug)]
struct Cluster {
    target: tempfile::TempDir,
    major: String,
}

impl Cluster {
    fn new() -> Self {
        let target = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Self { target, major: env::var("CG_PG_MAJOR").unwrap_or_else(|_| "15".to_owned()) }
    }

    fn output(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
        command.arg("postgres").args(args).args(["--major", &self.major]);
        command.env("CARGO_TARGET_DIR", self.target.path()).output().expect("xtask runs")
    }

    /// The standard output of a command that has to succeed.
    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        let said = String::from_utf8(output.stdout).expect("text");
        println!("$ postgres {}\n{said}", args.join(" "));
        said
    }

    /// The standard error of a command that has to fail.
    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        stderr(&output)
    }

    fn folder(&self) -> PathBuf {
        self.target.path().join("postgres").join(&self.major)
    }

    /// The field of each node in the table.
    fn column(&self, name: &str) -> Vec<String> {
        let table = self.run(&["status"]);
        let mut lines =
            table.lines().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let head = lines.next().expect("a head");
        let column = head.iter().position(|field| field == name).expect("the column");
        lines.map(|line| line[column].clone()).collect()
    }

    /// `psql` on the node that can be written to.
    fn psql(&self) -> Command {
        let described = fs::read_to_string(self.folder().join("cluster.json")).expect("the cluster's file");
        let described: serde_json::Value = serde_json::from_str(&described).expect("JSON");
        let program = Path::new(described["bin"].as_str().expect("the programs")).join("psql");
        let address = self.run(&["up"]);
        let mut command = Command::new(program);
        command.args(["-qAt", "-v", "ON_ERROR_STOP=1"]);
        command.arg(format!("{}&target_session_attrs=read-write", address.trim_end()));
        command
    }

    /// The value that a statement returns.
    #[track_caller]
    fn value(&self, sql: &str) -> String {
        let output = self.psql().args(["-c", sql]).output().expect("psql runs");
        assert!(output.status.success(), "{sql}: {}", stderr(&output));
        String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
    }

    /// A client that commits on the primary, each commit without the quorum, until its server ends.
    fn careless(&self) -> Child {
        let mut command = self.psql();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("psql runs");
        let commit = "INSERT INTO careless DEFAULT VALUES RETURNING number; SELECT FROM pg_sleep(0.01);\n";
        let script = format!("SET synchronous_commit = local;\n{}", commit.repeat(500));
        child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("it fits into the pipe");
        child
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let output = self.output(&["down"]);
        if !output.status.success() {
            eprintln!("cannot remove the cluster: {}", stderr(&output));
        }
    }
}

fn processes_in(folder: &Path) -> usize {
    let entries = fs::read_dir("/proc").expect("Linux").flatten();
    entries
        .filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder)))
        .count()
}

#[test]
#[ignore = "it starts servers: `cargo xtask test postgres` runs it"]
fn a_cluster_fails_over_again_and_again_and_loses_nothing() {
    let cluster = Cluster::new();
    let none =
        format!("error: there is no cluster: `cargo xtask postgres up{}` makes one\n", flag(&cluster.major));
    assert_eq!(cluster.refused(&["status"]), none);
    cluster.run(&["down"]);

    let address = cluster.run(&["up"]);
    assert_eq!(address.lines().count(), 1, "{address}");
    assert_eq!(cluster.run(&["up"]), address, "it is there already");
    assert_eq!(cluster.column("role"), ["primary", "standby", "standby"]);
    assert!(cluster.refused(&["up", "--nodes", "1"]).contains("the cluster has 3 nodes and not 1"));

    cluster.value("CREATE TABLE written (round int PRIMARY KEY, payload bytea)");
    cluster.value("CREATE TABLE careless (number serial)");
    let mut primaries = vec!["n1".to_owned()];
    for (round, failure) in [&[][..], &[], &[], &["--pause"], &["--standby"]].into_iter().enumerate() {
        cluster.value(&format!("INSERT INTO written VALUES ({round}, '\\x{}')", "5a".repeat(5000)));
        let careless = (failure == ["--pause"]).then(|| cluster.careless());
        let said = cluster.run(&[&["fail"], failure].concat());
        if let Some(careless) = careless {
            let answered = careless.wait_with_output().expect("psql ends").stdout;
            let answered = String::from_utf8(answered).expect("text").lines().count();
            let kept: usize = cluster.value("SELECT count(*) FROM careless").parse().expect("a number");
            // The woken primary committed more, which the rewind took back.
            assert!(kept < answered, "{kept} of {answered}");
        }
        assert!(said.contains("2 tables are equal on all nodes"), "{said}");
        let roles = cluster.column("role");
        let primary = roles.iter().position(|role| role == "primary").expect("a primary");
        primaries.push(format!("n{}", primary + 1));
        let timeline = (round + 2).min(5).to_string();
        assert_eq!(cluster.column("timeline"), [timeline.as_str(); 3]);
    }
    assert!(primaries[..5].windows(2).all(|pair| pair[0] != pair[1]), "{primaries:?}");
    assert_eq!(primaries[4], primaries[5], "the primary stays where a standby fails");
    assert_eq!(cluster.value("SELECT count(*), sum(length(payload)) FROM written"), "5|25000");

    cluster.value("CREATE TABLE answered (at timestamptz)");
    let mut answered = cluster.psql();
    let mut answered = answered.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("psql runs");
    let commit = "INSERT INTO answered VALUES (clock_timestamp()); SELECT FROM pg_sleep(0.01);\n";
    let script = commit.repeat(1000);
    let mut pipe = answered.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || pipe.write_all(script.as_bytes()));
    let said = cluster.run(&["fail", "--stall", "3", "--spare"]);
    assert!(said.contains("the primary, stalled"), "{said}");
    answered.kill().expect("psql runs");
    answered.wait().expect("psql ends");
    let _is_cut = writing.join().expect("no panic");
    let gap =
        "SELECT max(gap) > '2.5 s' FROM (SELECT at - lag(at) OVER (ORDER BY at) AS gap FROM answered) g";
    assert_eq!(cluster.value(gap), "t", "no commit is answered while no other node gets the log");

    let folder = cluster.folder();
    assert!(processes_in(&folder) > 0);
    cluster.run(&["down"]);
    assert_eq!(processes_in(&folder), 0);
    assert!(!folder.exists());
    cluster.run(&["down"]);
}

#[test]
#[ignore = "it starts servers: `cargo xtask test postgres` runs it"]
fn a_cluster_is_repaired_whatever_of_it_is_gone() {
    let cluster = Cluster::new();
    let address = cluster.run(&["up"]);
    cluster.value("CREATE TABLE kept AS SELECT 1 AS it");
    let pids = cluster.column("pid");
    let signal = |name: &str, pid: &str| {
        let status = Command::new("kill").args(["-s", name, pid]).status().expect("kill runs");
        assert!(status.success(), "kill -s {name} {pid}");
    };

    signal("KILL", &pids[0]);
    signal("STOP", &pids[1]);
    fs::remove_dir_all(cluster.folder().join("run/n3/global")).expect("the data of n3");
    signal("KILL", &pids[2]);
    let unhealthy = cluster.refused(&["status"]);
    assert!(unhealthy.contains("not healthy: n1 is down; n2 is paused; n3 is down"), "{unhealthy}");
    let unhealthy = cluster.refused(&["fail"]);
    assert!(unhealthy.contains("the cluster is not healthy: n1 is down; n2 is paused"), "{unhealthy}");
    assert_eq!(cluster.run(&["up"]), address);
    assert_eq!(cluster.column("role"), ["primary", "standby", "standby"]);

    // The disk of the primary is lost, and then the description of the cluster, of which its servers know nothing.
    signal("KILL", &cluster.column("pid")[0]);
    fs::remove_dir_all(cluster.folder().join("run/n1")).expect("the data of n1");
    assert_eq!(cluster.run(&["up"]), address);
    assert_eq!(cluster.column("role").iter().filter(|role| *role == "primary").count(), 1);
    assert_eq!(cluster.value("SELECT it FROM kept"), "1");
    let file = cluster.folder().join("cluster.json");
    fs::write(&file, "{").expect("the file");
    let damaged = cluster.refused(&["up"]);
    assert!(damaged.contains(&format!("{} is damaged", file.display())), "{damaged}");
    fs::remove_file(&file).expect("the file");
    assert_ne!(cluster.run(&["up", "--nodes", "1"]), address);
    assert_eq!(cluster.column("role"), ["primary"]);
    assert!(cluster.refused(&["fail"]).contains("the cluster has one node, and no other can follow it"));
}

fn flag(major: &str) -> String {
    if major == "15" { String::new() } else { format!(" --major {major}") }
}
