//! The real saves that benchmarks read: the region files of `mca` in `CG_WORLDS`.

use std::fs;
use std::path::{Path, PathBuf};

use cg_anvil::region::ReadLimits;
use cg_anvil::{Decoder, Payload, Region};

/// The region files whose slots hold columns, sorted; `None`, loudly, when there is no such folder.
///
/// # Panics
/// Without the folder in CI, which always has it, and when what the folder holds cannot be read.
pub fn regions(measured: &str) -> Option<Vec<PathBuf>> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/worlds");
    let folder = std::env::var_os("CG_WORLDS").map_or_else(beside, PathBuf::from).join("mca");
    let Ok(entries) = fs::read_dir(&folder) else {
        let message = format!("no saves in {}: set CG_WORLDS to the folder of `mca`", folder.display());
        assert!(std::env::var_os("CI").is_none(), "{message}");
        eprintln!("\n*** NOT MEASURED, {measured}: {message} ***\n");
        return None;
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "mca") && holds_columns(file));
    files.sort();
    assert!(!files.is_empty(), "{} holds no region with columns", folder.display());
    Some(files)
}

fn holds_columns(file: &Path) -> bool {
    let mut region = Region::open(file).expect("a readable file");
    let Some(slot) = region.slots().next() else { return false };
    let mut bytes = Vec::new();
    region.read(slot, &ReadLimits::default(), &mut bytes).expect("a sound slot");
    matches!(Decoder::default().decode(&bytes), Ok(Payload::Column(_)))
}
