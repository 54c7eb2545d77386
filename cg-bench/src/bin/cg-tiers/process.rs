//! What the system says of this process, and of a folder.

use std::fs;
use std::path::Path;

use crate::failure::Failure;

/// Bytes that the process handed to the system, and asked of it, since it began: what all its threads wrote and read,
/// logs, flushes and compactions among it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Transfer {
    pub(crate) written_bytes: u64,
    pub(crate) read_bytes: u64,
}

impl Transfer {
    pub(crate) fn so_far() -> Result<Self, Failure> {
        let text = fs::read_to_string("/proc/self/io")?;
        Ok(Self { written_bytes: field(&text, "wchar:")?, read_bytes: field(&text, "rchar:")? })
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            written_bytes: self.written_bytes - before.written_bytes,
            read_bytes: self.read_bytes - before.read_bytes,
        }
    }
}

/// Memory that is resident now.
pub(crate) fn resident_bytes() -> Result<u64, Failure> {
    Ok(field(&fs::read_to_string("/proc/self/status")?, "VmRSS:")? * 1024)
}

fn field(text: &str, name: &str) -> Result<u64, Failure> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let value = line.and_then(|line| line.split_whitespace().next());
    Ok(value.ok_or_else(|| format!("the system does not tell {name}"))?.parse()?)
}

/// Bytes of all files below a folder.
pub(crate) fn disk_bytes(dir: &Path) -> Result<u64, Failure> {
    let mut sum = 0;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        sum += if meta.is_dir() { disk_bytes(&entry.path())? } else { meta.len() };
    }
    Ok(sum)
}
