//! The folder for what tests write: in memory where there is room.
//!
//! Most tests of the store sync what they commit, and wait longer for the disk than they compute. None of them cuts the
//! power, so that what a sync is worth is not seen by them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use crate::process::Tool;

/// A file system in memory, on Linux.
const MEMORY: &str = "/dev/shm";

/// How the names of the folders begin, before the number of the process.
const PREFIX: &str = "cherrygrove-tests-";

/// How much has to be free there, and of the memory: more than twice what the tests took at once.
const ROOM_MIB: u64 = 4 << 10;

/// A folder in memory, which goes with this.
#[derive(Debug)]
pub(super) struct Scratch(PathBuf);

impl Scratch {
    /// Makes one; `Err` says why the tests write where the system has its temporary files.
    pub(super) fn in_memory() -> Result<Self, String> {
        if let Some(stated) = env::var_os("TMPDIR") {
            return Err(format!("TMPDIR says {}", stated.display()));
        }
        remove_abandoned(Path::new(MEMORY));
        let free = Tool::new("df").args(["--output=fstype,avail", "--block-size=1M", MEMORY]).capture();
        let available = fs::read_to_string("/proc/meminfo").ok();
        let room_mib =
            free.ok().as_deref().and_then(free_mib).zip(available.as_deref().and_then(available_mib));
        let room_mib = room_mib.map(|(free, available)| free.min(available));
        match room_mib {
            Some(room_mib) if room_mib >= ROOM_MIB => {}
            Some(room_mib) => return Err(format!("{MEMORY} has room for {room_mib} of {ROOM_MIB} MiB")),
            None => return Err(format!("{MEMORY} is no file system in memory")),
        }
        let folder = Path::new(MEMORY).join(format!("{PREFIX}{}", process::id()));
        fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        Ok(Self(folder))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Removes the folders of processes that were killed.
fn remove_abandoned(memory: &Path) {
    let Ok(entries) = fs::read_dir(memory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let process = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        if process.is_some_and(|process| !Path::new("/proc").join(process.to_string()).exists()) {
            // One of another user stays, and costs room alone.
            let _stays = fs::remove_dir_all(&path);
        }
    }
}

/// The free MiB in what `df` says; `None` if it is not of a file system in memory.
fn free_mib(listed: &str) -> Option<u64> {
    let mut words = listed.lines().nth(1)?.split_whitespace();
    if words.next()? != "tmpfs" {
        return None;
    }
    words.next()?.parse().ok()
}

/// The MiB that programs can have, as `/proc/meminfo` says it.
fn available_mib(listed: &str) -> Option<u64> {
    let line = listed.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib >> 10)
}

#[cfg(test)]
mod tests {
    use super::{PREFIX, available_mib, free_mib, remove_abandoned};

    #[test]
    fn what_a_killed_process_left_goes_and_what_is_in_use_stays() {
        let memory = tempfile::tempdir().expect("a folder");
        let own = format!("{PREFIX}{}", std::process::id());
        // No system gives such a number to a process.
        let killed = format!("{PREFIX}{}", u32::MAX);
        for name in [own.as_str(), killed.as_str(), "cherrygrove-tests-", "other-1"] {
            std::fs::create_dir_all(memory.path().join(name).join("world")).expect("a folder");
        }
        remove_abandoned(memory.path());
        let is_there = |name: &str| memory.path().join(name).exists();
        assert_eq!(
            [own.as_str(), &killed, "cherrygrove-tests-", "other-1"].map(is_there),
            [true, false, true, true]
        );
    }

    #[test]
    fn room_is_that_of_a_file_system_in_memory() {
        assert_eq!(free_mib("Type  Avail\ntmpfs 24031\n"), Some(24_031));
        assert_eq!(free_mib("Type  Avail\next4  24031\n"), None);
        assert_eq!(free_mib("Type  Avail\n"), None);
        assert_eq!(available_mib("MemTotal: 9 kB\nMemAvailable:   24613752 kB\n"), Some(24_036));
        assert_eq!(available_mib("MemTotal: 9 kB\n"), None);
    }
}
