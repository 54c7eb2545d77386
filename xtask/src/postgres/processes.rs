//! The processes of a node, found in `/proc` by the folder in which they run.
//!
//! The servers outlive the command that started them. A number in `postmaster.pid` may be that of a process that has ended
//! and that its parent does not reap, or of a stranger; a process that runs in the node's folder is the node's.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::account::Account;
use crate::process::Tool;

/// How long processes may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How long a server may take to stop before it is killed.
const STOPS_WITHIN: Duration = Duration::from_secs(3);

/// The servers' processes in or below `folder`, which must be without symbolic links; also after the folder was removed.
///
/// They are read as the servers' user, since root in a container may not read the folders of other users' processes.
///
/// # Errors
/// There is no `/proc`, or no `find` to read it with.
pub(super) fn within(account: &Account, folder: &Path) -> Result<Vec<u32>> {
    if !Path::new("/proc/self/cwd").exists() {
        bail!("the test cluster finds its processes in /proc, which is not here: it needs Linux");
    }
    let find = account.tool(Path::new("find"));
    let find =
        find.args("/proc -mindepth 2 -maxdepth 2 -name cwd -type l -printf".split(' ')).arg("%h %l\\n");
    // It fails for processes of others and for those that end meanwhile, and lists the rest.
    let listed = String::from_utf8_lossy(&find.output()?.stdout).into_owned();
    let is_server =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "postgres\n");
    Ok(listed.lines().filter_map(|line| process_in(line, folder)).filter(is_server).collect())
}

/// The process of a line `/proc/PID FOLDER` if the folder is `folder` or below it.
fn process_in(line: &str, folder: &Path) -> Option<u32> {
    let (process, cwd) = line.split_once(' ')?;
    let cwd = cwd.strip_suffix(" (deleted)").unwrap_or(cwd);
    Path::new(cwd).starts_with(folder).then(|| process.strip_prefix("/proc/")?.parse().ok())?
}

/// Sends a signal, such as `KILL`. A process that has ended meanwhile is no error.
///
/// # Errors
/// There is no shell.
pub(super) fn signal(name: &str, pids: &[u32]) -> Result<()> {
    if !pids.is_empty() {
        let pids = pids.iter().map(u32::to_string);
        Tool::new("sh").args(["-c", "kill -s \"$0\" \"$@\"", name]).args(pids).output()?;
    }
    Ok(())
}

/// Kills all servers within the folder, and waits until they are gone.
///
/// # Errors
/// They are still there after ten seconds.
pub(super) fn kill(account: &Account, folder: &Path) -> Result<()> {
    let started = Instant::now();
    loop {
        let pids = within(account, folder)?;
        if pids.is_empty() {
            return Ok(());
        }
        if started.elapsed() > ENDS_WITHIN {
            bail!("processes {pids:?} in {} do not end, although they were killed", folder.display());
        }
        signal("KILL", &pids)?;
        sleep(Duration::from_millis(10));
    }
}

/// Ends all servers within the folder at once, and kills those that do not end. A server that is told to end removes what it
/// has in shared memory, which a killed one leaves.
///
/// # Errors
/// As [`kill`].
pub(super) fn stop(account: &Account, folder: &Path) -> Result<()> {
    let pids = within(account, folder)?;
    signal("CONT", &pids)?;
    signal("QUIT", &pids)?;
    let started = Instant::now();
    while started.elapsed() < STOPS_WITHIN && !within(account, folder)?.is_empty() {
        sleep(Duration::from_millis(10));
    }
    kill(account, folder)
}

/// Stops the clock of all servers within the folder, as when a machine is paused.
///
/// # Errors
/// They still run after ten seconds.
pub(super) fn pause(account: &Account, folder: &Path) -> Result<()> {
    let started = Instant::now();
    loop {
        let pids = within(account, folder)?;
        if pids.is_empty() {
            bail!("no server runs in {}", folder.display());
        }
        let running: Vec<_> = pids.into_iter().filter(|pid| !is_paused(*pid)).collect();
        if running.is_empty() {
            return Ok(());
        }
        if started.elapsed() > ENDS_WITHIN {
            bail!("processes {running:?} in {} still run, although they were paused", folder.display());
        }
        signal("STOP", &running)?;
        sleep(Duration::from_millis(10));
    }
}

/// Whether a process is paused.
pub(super) fn is_paused(pid: u32) -> bool {
    state(pid) == Some('T')
}

/// Whether a process has ended and its parent has not reaped it.
pub(super) fn is_unreaped(pid: u32) -> bool {
    state(pid) == Some('Z')
}

fn state(pid: u32) -> Option<char> {
    state_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The state in `/proc/PID/stat`: the word after the name, which may hold spaces and brackets.
fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{process_in, state_in};

    #[test]
    fn a_process_is_a_nodes_by_the_folder_that_it_runs_in() {
        let of = |line| process_in(line, Path::new("/w/run/n1"));
        assert_eq!(of("/proc/17 /w/run/n1"), Some(17));
        assert_eq!(of("/proc/17 /w/run/n1 (deleted)"), Some(17));
        assert_eq!(of("/proc/17 /w/run/n1/base"), Some(17));
        assert_eq!(of("/proc/17 /w/run/n10"), None);
        assert_eq!(of("/proc/self /w/run/n1"), None);
        assert_eq!(of("/proc/17 "), None);
    }

    #[test]
    fn the_state_is_found_after_any_name() {
        assert_eq!(state_in("7 (postgres) T 1 7 7"), Some('T'));
        assert_eq!(state_in("7 (a) R (b) Z 1 7 7"), Some('Z'));
        assert_eq!(state_in(""), None);
    }
}
