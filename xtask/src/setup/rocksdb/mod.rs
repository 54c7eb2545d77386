//! RocksDB's C++, compiled once per machine and version and then linked by every build.
//!
//! The cache holds `rocksdb-<hash>/librocksdb.a` beside `key.txt`, which says what the hash stands for: version, cargo
//! features, target, flags, compiler, and the plan of the units that were compiled. `CG_ROCKSDB_ARCHIVE=<file>` fills
//! the entry with an archive that was built elsewhere (for CI images); `ROCKSDB_LIB_DIR`, if set by the caller, is used
//! as it is.
//!
//! How the C++ is compiled is recorded from the crate's own build (`record`); the sources are cut into units (`unit`),
//! which wait in a queue (`queue`) for a compiler (`compile`), whose end is judged (`verdict`). Where units were not
//! tried, the crate's own build compiles file by file (`crate_build`).

mod archive;
mod compile;
mod crate_build;
mod memory;
mod progress;
mod queue;
mod recipe;
mod record;
mod unit;
mod verdict;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use self::archive::{ARCHIVE, STAGED};
use self::progress::Progress;
use self::recipe::{Pieces, Recipe};
use super::compiler::Compiler;
use super::{Environment, Lock, remedy, say};
use crate::context::Context;

const PACKAGE: &str = "librocksdb-sys";

/// The suffix of a build's folder after the name of its entry; a process id follows, so that a compiler that a killed
/// build left running cannot write into the next one.
const BUILD: &str = ".build";

/// Finds the archive or builds it, and points the build script of `librocksdb-sys` to it.
pub(super) fn ensure(context: &Context, compiler: &Compiler, environment: &mut Environment) -> Result<()> {
    let dir = match env::var_os("ROCKSDB_LIB_DIR").map(PathBuf::from) {
        Some(dir) => {
            archive::check(&dir.join(ARCHIVE)).context("ROCKSDB_LIB_DIR is set; correct or unset it")?;
            dir
        }
        None => entry(context, compiler)?,
    };
    environment.set("ROCKSDB_LIB_DIR", dir.to_string_lossy());
    environment.set("ROCKSDB_STATIC", "1");
    Ok(())
}

/// The folder of the archive for this workspace, this machine and this compiler.
fn entry(context: &Context, compiler: &Compiler) -> Result<PathBuf> {
    let recipe = Recipe::new(context, compiler)?;
    let name = recipe.entry_name();
    let dir = context.cache.join(&name);
    remove_leftovers(&context.cache);
    if archive::is_complete(&dir, &recipe) {
        return Ok(dir);
    }
    let _lock = Lock::take(&context.cache.join(format!("{name}.lock")), "the RocksDB archive")?;
    if archive::is_complete(&dir, &recipe) {
        return Ok(dir);
    }
    if let Some(seed) = env::var_os("CG_ROCKSDB_ARCHIVE").map(PathBuf::from) {
        archive::check(&seed).context("CG_ROCKSDB_ARCHIVE")?;
        say(format!("taking RocksDB from {} (CG_ROCKSDB_ARCHIVE)", seed.display()));
        archive::install(&seed, &dir, &recipe)?;
        return Ok(dir);
    }
    let work = context.cache.join(format!("{name}{BUILD}-{}", std::process::id()));
    let built = build(context, &recipe, &work).and_then(|built| archive::install(&built, &dir, &recipe));
    let is_full = |error| remedy::is_disk_full(&format!("{error:#}"));
    // The folder of a build that failed is kept until the next run, for its log.
    if built.as_ref().err().is_none_or(is_full) {
        fs::remove_dir_all(&work).with_context(|| format!("cannot remove {}", work.display()))?;
    }
    built.map(|()| dir)
}

/// Makes an archive in `work`.
fn build(context: &Context, recipe: &Recipe, work: &Path) -> Result<PathBuf> {
    let time = match recipe.pieces {
        Pieces::Units => "about 4 minutes on two cores",
        Pieces::Files => "8 to 25 minutes on two cores",
    };
    say(format!("compiling RocksDB's C++, once for this machine and version ({time})"));
    say(format!("why: {} has no archive for\n{}", context.cache.display(), recipe.key.trim_end()));
    fs::create_dir_all(work).with_context(|| format!("cannot create {}", work.display()))?;
    let mut progress = Progress::new(context, recipe.file_count());
    let archive = match recipe.pieces {
        Pieces::Units => match record::record(context, recipe, work, &mut progress)? {
            Ok(recorded) => compile::archive(&recorded, work, &mut progress),
            Err(error) => {
                progress.pause();
                say(format!("the crate's build cannot be recorded ({error:#}), so it compiles file by file"));
                crate_build::archive(context, recipe, work, &mut progress)
            }
        },
        Pieces::Files => crate_build::archive(context, recipe, work, &mut progress),
    };
    if archive.is_ok() {
        progress.finish();
    }
    archive
}

/// Removes what killed and failed builds of any version left in the cache, unless their lock says that they still run.
fn remove_leftovers(cache: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(owner) = name.to_str().and_then(owner) else { continue };
        let Some(_lock) = Lock::try_take(&cache.join(format!("{owner}.lock"))) else { continue };
        if let Err(error) = fs::remove_dir_all(entry.path()) {
            say(format!("cannot remove {}, which a build left: {error}", entry.path().display()));
        }
    }
}

/// The entry for which a folder of the cache was made, if it is one that only a running build needs.
fn owner(name: &str) -> Option<&str> {
    let (owner, _) = name.split_once(BUILD).or_else(|| name.split_once(STAGED))?;
    owner.starts_with("rocksdb-").then_some(owner)
}

#[cfg(test)]
mod tests {
    use super::owner;

    #[test]
    fn folders_of_builds_have_an_owner() {
        assert_eq!(owner("rocksdb-0f.build"), Some("rocksdb-0f"));
        assert_eq!(owner("rocksdb-0f.build-17"), Some("rocksdb-0f"));
        assert_eq!(owner("rocksdb-0f.new-17"), Some("rocksdb-0f"));
        for kept in ["rocksdb-0f", "rocksdb-0f.lock", "python-0f", "python-0f.new-1", "probes", "x.build"] {
            assert_eq!(owner(kept), None, "{kept}");
        }
    }
}
