//! What the system says of this process, and of a folder.

use std::fs;
use std::io;
use std::path::Path;

/// Bytes that the process passed to the system, and asked of it, since it began.
///
/// All its threads count: logs, flushes and compactions. Bytes of mapped files do not.
#[derive(Debug, Clone, Copy, Default)]
pub struct Transfer {
    /// Bytes of all calls that write.
    pub written_bytes: u64,
    /// Bytes of all calls that read.
    pub read_bytes: u64,
}

impl Transfer {
    /// What has been transferred until now.
    ///
    /// # Errors
    /// The system has no `/proc/self/io`.
    pub fn so_far() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/self/io")?;
        Ok(Self { written_bytes: field(&text, "wchar:")?, read_bytes: field(&text, "rchar:")? })
    }

    /// What was transferred after `before`.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            written_bytes: self.written_bytes - before.written_bytes,
            read_bytes: self.read_bytes - before.read_bytes,
        }
    }
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
