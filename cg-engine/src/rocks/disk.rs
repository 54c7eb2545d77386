//! The size and the free space of a directory's disk. Known only on Unix.

use std::path::Path;

/// The bytes that are free for this process.
pub(super) fn free_bytes(dir: &Path) -> Option<u64> {
    blocks(dir).map(|disk| disk.free_bytes)
}

/// The size of the disk.
pub(super) fn all_bytes(dir: &Path) -> Option<u64> {
    blocks(dir).map(|disk| disk.all_bytes)
}

struct Disk {
    free_bytes: u64,
    all_bytes: u64,
}

#[cfg(unix)]
fn blocks(dir: &Path) -> Option<Disk> {
    let found = rustix::fs::statvfs(dir).ok()?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Some(Disk { free_bytes: bytes(found.f_bavail), all_bytes: bytes(found.f_blocks) })
}

#[cfg(not(unix))]
fn blocks(_dir: &Path) -> Option<Disk> {
    None
}
