//! The cache folder: names that are hashes of what they stand for, and locks between processes.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context as _, Result};

/// Sixteen hexadecimal digits that name a cache entry (FNV-1a, 64 bits).
/// The entry keeps the whole text, so two texts of one name are noticed and do not mix.
pub(crate) fn fingerprint(text: &str) -> String {
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// A lock that other processes see, held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock on `path`, and says so when it has to wait.
    pub(crate) fn take(path: &Path, what: &str) -> Result<Self> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        }
        let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
        if file.try_lock().is_err() {
            super::say(format!("another run is making {what}; waiting for it"));
            file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
        }
        Ok(Self { _file: file })
    }

    /// The lock, if no other process has it.
    pub(crate) fn try_take(path: &Path) -> Option<Self> {
        let file = File::create(path).ok()?;
        file.try_lock().ok()?;
        Some(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn fingerprints_are_the_published_fnv_values() {
        assert_eq!(fingerprint(""), "cbf29ce484222325");
        assert_eq!(fingerprint("foobar"), "85944171f73967e8");
    }
}
