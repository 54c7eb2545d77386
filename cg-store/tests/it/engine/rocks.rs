//! The embedded engine: the shared promises, and what only a disk can break.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use cg_store::engine::{Resources, RocksEngine, RocksOptions, conformance};
use tempfile::TempDir;

/// One for all tests of the process, as in a host with several worlds.
static SHARED: LazyLock<Resources> = LazyLock::new(|| Resources::new(64 << 20, 2));

fn options() -> RocksOptions {
    RocksOptions::new(SHARED.clone()).with_max_batch_bytes(1 << 20)
}

/// A directory for an engine that goes when the value does.
struct Dir(TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory for the test"))
    }

    fn db(&self) -> PathBuf {
        self.0.path().join("db")
    }
}

#[track_caller]
fn create(dir: &Path) -> RocksEngine {
    RocksEngine::create(dir, &options()).expect("is made")
}

#[test]
fn the_disk_keeps_the_promises() {
    let dirs = Dir::new();
    let next = std::cell::Cell::new(0);
    conformance::run_all(|| {
        next.set(next.get() + 1);
        create(&dirs.0.path().join(next.get().to_string()))
    });
}
