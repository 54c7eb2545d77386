//! The processes of a node, found in `/proc` by the folder in which they run.
//!
//! The servers outlive the command that started them. A number in `postmaster.pid` may be that of a process that has ended
//! and that its parent does not reap, or of a stranger; a process that runs in the node's folder is the node's.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use super::account::Account;
use crate::process::Tool;

/// The name of a server's processes.
const SERVER: &str = "postgres";

/// Programs that work on the files of a node, and go on where the command that started them was killed.
const TOOLS: [&str; 4] = ["initdb", "pg_basebackup", "pg_ctl", "pg_rewind"];

/// How long processes may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// How long a server may take to stop before it is killed.
const STOPS_WITHIN: Duration = Duration::from_secs(3);

/// The processes of servers, and of programs that work on their files, in or below `folder`, which must be without symbolic links; also after the folder was removed.
///
/// # Errors
/// There is no `/proc`, or no shell.
pub(super) fn within(account: &Account, folder: &Path) -> Result<Vec<u32>> {
    if !Path::new("/proc/self/cwd").exists() {
        bail!("the test cluster finds its processes in /proc, which is not here: it needs Linux");
    }
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for pid in all()? {
        match fs::read_link(format!("/proc/{pid}/cwd")) {
            Ok(cwd) if is_within(&cwd, folder) => found.push(pid),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => unread.push(pid.to_string()),
            _ => {}
        }
    }
    // Root in a container may not read where another user's processes run; that user may.
    if account.user().is_some() && !unread.is_empty() {
        let read = "for pid do echo \"$pid $(readlink \"/proc/$pid/cwd\")\"; done";
        let tool = account.tool(Path::new("sh")).args(["-c", read, "sh"]).args(unread);
        let read = tool.output()?.stdout;
        found.extend(String::from_utf8_lossy(&read).lines().filter_map(|line| process_in(line, folder)));
    }
    Ok(found)
}

/// All such processes of this machine, whatever cluster they are of.
fn all() -> Result<Vec<u32>> {
    let names = fs::read_dir("/proc").context("cannot read /proc")?.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    let fits = |pid: &u32| name(*pid).is_some_and(|name| name == SERVER || TOOLS.contains(&name.as_str()));
    Ok(pids.filter(fits).collect())
}

fn name(pid: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim_end().to_owned())
}

/// The process of a line `PID FOLDER` if the folder is `folder` or below it.
fn process_in(line: &str, folder: &Path) -> Option<u32> {
    let (pid, cwd) = line.split_once(' ')?;
    is_within(Path::new(cwd), folder).then(|| pid.parse().ok())?
}

/// Whether a process runs in a folder or below it; the system marks the path of one that was removed.
fn is_within(cwd: &Path, folder: &Path) -> bool {
    let text = cwd.to_string_lossy();
    Path::new(text.strip_suffix(" (deleted)").unwrap_or(&text)).starts_with(folder)
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

/// Kills everything within the folder, and waits until it is gone.
///
/// # Errors
/// It is still there after ten seconds.
pub(super) fn kill(account: &Account, folder: &Path) -> Result<()> {
    kill_where(account, folder, |_| true)
}

/// As [`kill`], but for the servers: programs that a killed command of this program left.
///
/// # Errors
/// As [`kill`].
pub(super) fn kill_tools(account: &Account, folder: &Path) -> Result<()> {
    kill_where(account, folder, |pid| name(*pid).is_some_and(|name| name != SERVER))
}

fn kill_where(account: &Account, folder: &Path, fits: impl Fn(&u32) -> bool) -> Result<()> {
    let started = Instant::now();
    loop {
        let mut pids = within(account, folder)?;
        pids.retain(&fits);
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
    // Each server's first process tells the others; one that ended by itself would seem to have crashed.
    let is_first = |pid: &&u32| !parent(**pid).is_some_and(|parent| pids.contains(&parent));
    signal("QUIT", &pids.iter().filter(is_first).copied().collect::<Vec<_>>())?;
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
    pause_where(account, folder, |_| true)
}

/// As [`pause`], but for the processes that send the log to other nodes.
///
/// # Errors
/// As [`pause`].
pub(super) fn pause_senders(account: &Account, folder: &Path) -> Result<()> {
    // A server's processes tell their work in their command line.
    pause_where(account, folder, |pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("walsender")
    })
}

fn pause_where(account: &Account, folder: &Path, fits: impl Fn(&u32) -> bool) -> Result<()> {
    let started = Instant::now();
    loop {
        let mut pids = within(account, folder)?;
        pids.retain(&fits);
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
    state_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?).map(|(state, _)| state)
}

fn parent(pid: u32) -> Option<u32> {
    state_in(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?).map(|(_, parent)| parent)
}

/// The state and the parent in `/proc/PID/stat`: the words after the name, which may hold spaces and brackets.
fn state_in(stat: &str) -> Option<(char, u32)> {
    let mut words = stat.rsplit_once(") ")?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{process_in, state_in};

    #[test]
    fn a_process_is_a_nodes_by_the_folder_that_it_runs_in() {
        let of = |line| process_in(line, Path::new("/w/run/n1"));
        assert_eq!(of("17 /w/run/n1"), Some(17));
        assert_eq!(of("17 /w/run/n1 (deleted)"), Some(17));
        assert_eq!(of("17 /w/run/n1/base"), Some(17));
        assert_eq!(of("17 /w/run/n10"), None);
        assert_eq!(of("self /w/run/n1"), None);
        assert_eq!(of("17 "), None);
    }

    #[test]
    fn the_state_and_the_parent_are_found_after_any_name() {
        assert_eq!(state_in("7 (postgres) T 12 7 7"), Some(('T', 12)));
        assert_eq!(state_in("7 (a) R (b) Z 1 7 7"), Some(('Z', 1)));
        assert_eq!(state_in(""), None);
    }
}
