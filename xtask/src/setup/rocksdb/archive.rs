//! `librocksdb.a` in its cache entry, beside the text that names the entry.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::recipe::Recipe;
use crate::setup::say;

pub(super) const ARCHIVE: &str = "librocksdb.a";

/// The suffix of an unfinished entry's folder after the entry's name; a process id follows.
pub(super) const STAGED: &str = ".new-";

/// Whether the entry holds what the recipe makes.
pub(super) fn is_complete(dir: &Path, recipe: &Recipe) -> bool {
    fs::read_to_string(dir.join("key.txt")).is_ok_and(|key| key == recipe.key)
        && check(&dir.join(ARCHIVE)).is_ok()
}

/// # Errors
/// The file is missing, or is no static library.
pub(super) fn check(path: &Path) -> Result<()> {
    let mut magic = [0; 8];
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.read_exact(&mut magic).with_context(|| format!("cannot read {}", path.display()))?;
    if magic != *b"!<arch>\n" {
        bail!("{} is not a static library: it begins with {magic:?}", path.display());
    }
    Ok(())
}

/// Puts the archive into the cache: whole or not at all, also when the process dies here.
pub(super) fn install(archive: &Path, dir: &Path, recipe: &Recipe) -> Result<()> {
    let staged = dir.with_extension(format!("{}{}", &STAGED[1..], std::process::id()));
    fs::create_dir_all(&staged)?;
    fs::copy(archive, staged.join(ARCHIVE)).with_context(|| format!("cannot copy {}", archive.display()))?;
    File::open(staged.join(ARCHIVE))?.sync_all()?;
    fs::write(staged.join("key.txt"), &recipe.key)?;
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    fs::rename(&staged, dir).with_context(|| format!("cannot rename {}", staged.display()))?;
    say(format!("RocksDB is ready in {}", dir.display()));
    Ok(())
}
