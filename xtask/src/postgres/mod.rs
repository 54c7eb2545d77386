//! `cargo xtask postgres`: a test cluster of PostgreSQL, whose servers outlive each command.
//!
//! Three nodes replicate to each other, and a commit is answered when one of the other two has it on its disk too. So a
//! failover can be tried: the promoted standby has every commit that was answered.

mod account;
mod address;
mod cluster;
mod connection;
mod digest;
mod failover;
mod health;
mod home;
mod lsn;
mod node;
mod processes;
mod saved;

use std::env;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum as _;

use crate::context::Context;
use crate::setup::Major;

use cluster::Cluster;
use failover::Failure;
use home::Home;

/// The variable from which tests and benchmarks have the address of a database.
pub(crate) const ADDRESS: &str = "CG_PG_URL";

/// What is done with the cluster.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Make the cluster, or repair what of it is down. The last line of the output is its address, for `CG_PG_URL`.
    Up {
        /// How many nodes: 3, or 1 without replication.
        #[arg(long, default_value_t = 3, value_parser = nodes)]
        nodes: u16,
        /// Which PostgreSQL: 15 is the distribution's, of any version from 15; 18 is also had as a Python package.
        #[arg(long, default_value = "15")]
        major: Major,
    },
    /// Print a table of the nodes; fails if one of them is not as it should be.
    Status {
        /// Which cluster, if there are two.
        #[arg(long)]
        major: Option<Major>,
    },
    /// Kill the primary, promote the standby that received most, and let the old primary come back as a standby.
    Fail {
        /// Pause the primary instead of killing it, and wake it after the promotion.
        #[arg(long, conflicts_with = "standby")]
        pause: bool,
        /// Kill a standby and start it again; nothing is promoted.
        #[arg(long)]
        standby: bool,
        /// First keep the log of the primary from the other nodes for this long: a commit of that time is not answered, and is lost with the primary.
        #[arg(long, value_name = "SECONDS", conflicts_with_all = ["pause", "standby"])]
        stall: Option<u64>,
        /// Let the stalled primary live: the other nodes get its log after that time, and nothing is promoted.
        #[arg(long, requires = "stall")]
        spare: bool,
        /// Meanwhile, let the stalled primary wait for no other node.
        #[arg(long, requires = "stall", conflicts_with = "spare")]
        unset: bool,
        /// Kill both standbys and start them after this long; nothing is promoted.
        #[arg(long, value_name = "SECONDS", conflicts_with_all = ["pause", "standby", "stall"])]
        standbys: Option<u64>,
        /// Which cluster, if there are two.
        #[arg(long)]
        major: Option<Major>,
    },
    /// Stop all nodes and remove their files.
    Down {
        /// Which cluster; all when left out.
        #[arg(long)]
        major: Option<Major>,
    },
}

/// Does it.
///
/// # Errors
/// Each says what to do.
pub(crate) fn run(context: &Context, action: &Action) -> Result<()> {
    match *action {
        Action::Up { nodes, major } => println!("{}", up(context, major, nodes)?),
        Action::Status { major } => {
            let cluster = Cluster::find(&chosen(context, major)?)?;
            let seen = health::look(&cluster.nodes)?;
            print!("{}", health::table(&seen));
            let faults = health::faults(&seen);
            if !faults.is_empty() {
                bail!("not healthy: {}; `{}` repairs it", faults.join("; "), cluster.home.command("up"));
            }
        }
        Action::Fail { pause, standby, stall, spare, unset, standbys, major } => {
            let home = chosen(context, major)?;
            let _lock = home.lock()?;
            let failure = match (pause, standby, spare, standbys) {
                (.., Some(seconds)) => Failure::Standbys(Duration::from_secs(seconds)),
                (true, ..) => Failure::Pause,
                (_, true, ..) => Failure::Standby,
                (_, _, true, _) => Failure::None,
                _ => Failure::Kill,
            };
            let stall = stall.map(|seconds| failover::Stall { time: Duration::from_secs(seconds), unset });
            print!("{}", failover::fail(&Cluster::find(&home)?, stall, failure)?);
        }
        Action::Down { major } => {
            for major in
                Major::value_variants().iter().filter(|found| major.is_none_or(|major| major == **found))
            {
                down(context, *major)?;
            }
        }
    }
    Ok(())
}

/// Makes or repairs a cluster, and returns its address.
///
/// # Errors
/// As [`Cluster::up`].
pub(crate) fn up(context: &Context, major: Major, nodes: u16) -> Result<String> {
    Ok(Cluster::up(context, major, nodes)?.address())
}

/// Removes a cluster; it need not be there.
///
/// # Errors
/// As [`Cluster::down`].
pub(crate) fn down(context: &Context, major: Major) -> Result<()> {
    let home = Home::new(context, major)?;
    let _lock = home.lock()?;
    Cluster::down(&home)
}

/// The address that the variable has; none is started then.
pub(crate) fn stated_address() -> Option<String> {
    env::var(ADDRESS).ok().filter(|address| !address.is_empty())
}

/// The line of the shell that lets a node of a cluster fail.
///
/// # Errors
/// This program has no path, or one that is no text.
pub(crate) fn fail_command(major: Major) -> Result<String> {
    let own = env::current_exe().context("this program has no path")?;
    let own = own.to_str().context("the path of this program is no text")?.replace('\'', r"'\''");
    Ok(format!("'{own}' postgres fail --major {}", major.name()))
}

/// Whether a cluster was made and not removed.
///
/// # Errors
/// Cargo names no target directory.
pub(crate) fn exists(context: &Context, major: Major) -> Result<bool> {
    Ok(Home::new(context, major)?.file().exists())
}

/// The cluster that is meant: the one that was named, else the only one.
fn chosen(context: &Context, major: Option<Major>) -> Result<Home> {
    if let Some(major) = major {
        return Home::new(context, major);
    }
    let mut found = Vec::new();
    for major in Major::value_variants() {
        if exists(context, *major)? {
            found.push(*major);
        }
    }
    match found[..] {
        [] => Home::new(context, Major::Distribution),
        [major] => Home::new(context, major),
        _ => bail!("there are two clusters: say which with --major 15 or --major 18"),
    }
}

fn nodes(text: &str) -> Result<u16, String> {
    match text {
        "1" => Ok(1),
        "3" => Ok(3),
        _ => Err("a cluster has 1 node or 3".to_owned()),
    }
}

/// One line about what is done, beside the output.
fn say(line: impl AsRef<str>) {
    eprintln!("postgres: {}", line.as_ref());
}
