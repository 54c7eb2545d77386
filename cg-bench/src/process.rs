//! Figures that the system reports of this process, and of a folder.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Bytes that the process passed to the system, and asked of it, since it began.
///
/// All its threads count: logs, flushes and compactions. Bytes of mapped files do not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes of all calls that write.
    pub written_bytes: u64,
    /// Bytes of all calls that read.
    pub read_bytes: u64,
}

impl Transfer {
    /// The bytes that have been transferred until now.
    ///
    /// # Errors
    /// The system has no `/proc/self/io`.
    pub fn so_far() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/self/io")?;
        Ok(Self { written_bytes: field(&text, "wchar:")?, read_bytes: field(&text, "rchar:")? })
    }

    /// The bytes that were transferred after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            written_bytes: self.written_bytes - before.written_bytes,
            read_bytes: self.read_bytes - before.read_bytes,
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            written_bytes: self.written_bytes + other.written_bytes,
            read_bytes: self.read_bytes + other.read_bytes,
        }
    }
}

/// The processor time that all threads of this process have used, those that ended too.
#[must_use]
pub fn processor_time() -> Duration {
    clock(ClockId::ProcessCPUTime)
}

/// The processor time that this thread has used: while others go on it grows by nothing.
#[must_use]
pub fn thread_time() -> Duration {
    clock(ClockId::ThreadCPUTime)
}

fn clock(id: ClockId) -> Duration {
    let time = clock_gettime(id);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

/// How often this thread has slept until something happened: a disk, a lock, another thread.
///
/// # Errors
/// The system has no `/proc/thread-self/status`.
pub fn sleeps() -> io::Result<u64> {
    field(&fs::read_to_string("/proc/thread-self/status")?, "voluntary_ctxt_switches:")
}

/// Memory that is resident now.
///
/// # Errors
/// The system has no `/proc/self/status`.
pub fn resident_bytes() -> io::Result<u64> {
    Ok(field(&fs::read_to_string("/proc/self/status")?, "VmRSS:")? * 1024)
}

/// The most memory that was resident since the process began, or since [`forget_peak`].
///
/// # Errors
/// The system has no `/proc/self/status`.
pub fn peak_bytes() -> io::Result<u64> {
    Ok(field(&fs::read_to_string("/proc/self/status")?, "VmHWM:")? * 1024)
}

/// Lets [`peak_bytes`] count from now on.
///
/// # Errors
/// The system has no `/proc/self/clear_refs`.
pub fn forget_peak() -> io::Result<()> {
    fs::write("/proc/self/clear_refs", "5")
}

fn field(text: &str, name: &str) -> io::Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    value.ok_or_else(|| io::Error::other(format!("the system does not tell {name}")))
}

/// Bytes of all files below a folder.
///
/// # Errors
/// The folder cannot be listed.
pub fn disk_bytes(dir: &Path) -> io::Result<u64> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() { disk_bytes(&entry.path())? } else { meta.len() };
    }
    Ok(sum)
}
