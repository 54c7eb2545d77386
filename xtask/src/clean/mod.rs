//! `cargo xtask clean --stale`: removes from `target/` what older compilers, profiles and dependencies left.

mod units;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::context::Context;
use crate::metadata;
use units::Unit;

/// Profiles that cargo has without a manifest that names them, by the names of their folders.
const BUILT_IN: [&str; 2] = ["debug", "release"];

/// Removes what no newest build needs, and says how much that was.
///
/// # Errors
/// A folder cannot be read or removed, or cargo writes other files than this knows; then nothing is removed.
pub(crate) fn stale(context: &Context) -> Result<()> {
    let metadata = metadata::stated(context)?;
    let target = Path::new(metadata["target_directory"].as_str().context("cargo names no target directory")?);
    let members: BTreeSet<String> = metadata::packages(&metadata)
        .filter_map(|package| Some(package["name"].as_str()?.to_owned()))
        .collect();
    let manifest = fs::read_to_string(context.root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    let profiles = profiles_in(target)?;
    let read = |profile: &PathBuf| Ok((profile.clone(), units::read(profile)?));
    let units = profiles.iter().map(read).collect::<Result<BTreeMap<_, _>>>()?;
    // This very program was compiled by the compiler that cargo uses today.
    let all: Vec<Unit> = units.values().flatten().cloned().collect();
    let Some(compiler) = units::newest_compiler(&all, &members) else {
        println!("nothing was ever compiled into {}", target.display());
        return Ok(());
    };
    let mut bytes = 0;
    for (profile, units) in &units {
        let name = profile.file_name().unwrap_or_default().to_string_lossy();
        let live = if is_profile(&name, &manifest) {
            units::live(units, &members, compiler)
        } else {
            BTreeSet::new()
        };
        let freed = if live.is_empty() {
            remove(profile)?
        } else {
            remove_dead(profile, units, &live).context("a part is removed")?
        };
        println!(
            "{}: {} of {} units are in use, {} MB removed",
            profile.display(),
            live.len(),
            units.len(),
            freed / 1_000_000
        );
        bytes += freed;
    }
    println!("removed {} MB", bytes / 1_000_000);
    Ok(())
}

/// The folders below `target`, and below those of another target directory or processor in it, into which cargo compiled.
fn profiles_in(target: &Path) -> Result<Vec<PathBuf>> {
    let mut profiles = Vec::new();
    for folder in entries(target)? {
        let inner = if folder.join(".fingerprint").is_dir() { Vec::new() } else { entries(&folder)? };
        let both = std::iter::once(folder).chain(inner);
        profiles.extend(both.filter(|folder| folder.join(".fingerprint").is_dir()));
    }
    Ok(profiles)
}

/// Whether a profile of this name is in the manifest, or needs no mention there.
fn is_profile(name: &str, manifest: &str) -> bool {
    let header = format!("[profile.{name}]");
    BUILT_IN.contains(&name) || manifest.lines().any(|line| line.trim() == header)
}

/// Removes the units of a profile that are not in `live`, with the files that cargo named after them.
fn remove_dead(profile: &Path, units: &[Unit], live: &BTreeSet<String>) -> Result<u64> {
    let dead: Vec<_> = units.iter().filter(|unit| !live.contains(&unit.name)).collect();
    let mut bytes = 0;
    for unit in &dead {
        bytes += remove(&profile.join("build").join(&unit.name))?;
        bytes += remove(&profile.join(".fingerprint").join(&unit.name))?;
    }
    let hashes: BTreeSet<&str> = dead.iter().map(|unit| unit.hash()).collect();
    for folder in ["deps", "examples"] {
        for file in entries(&profile.join(folder))? {
            if hash_of(&file).is_some_and(|hash| hashes.contains(hash.as_str())) {
                bytes += remove(&file)?;
            }
        }
    }
    Ok(bytes + remove_old_sessions(profile, units, live)?)
}

/// The hash in a file's name: `libserde-0123456789abcdef.rlib`, `it-0123456789abcdef.d`.
fn hash_of(file: &Path) -> Option<String> {
    let name = file.file_name()?.to_str()?;
    let hash = name.split('.').next()?.rsplit_once('-')?.1;
    (hash.len() == 16).then(|| hash.to_owned())
}

/// Of the incremental sessions of a crate, whose names have a hash of the compiler's, keeps as many of the newest as the
/// crate has units in use.
fn remove_old_sessions(profile: &Path, units: &[Unit], live: &BTreeSet<String>) -> Result<u64> {
    let in_use = units.iter().filter(|unit| live.contains(&unit.name));
    let in_use: Vec<_> = in_use.map(|unit| unit.kind.replace('-', "_")).collect();
    let mut sessions: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for session in entries(&profile.join("incremental"))? {
        let name = session.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let crate_name = name.rsplit_once('-').map_or(name.as_str(), |(name, _)| name);
        let made = fs::metadata(&session).and_then(|data| data.modified());
        let made = made.with_context(|| format!("cannot read {}", session.display()))?;
        sessions.entry(crate_name.to_owned()).or_default().push((made, session));
    }
    let mut bytes = 0;
    for (crate_name, mut of_crate) in sessions {
        of_crate.sort();
        let kept = in_use.iter().filter(|kind| kind.ends_with(&format!("_{crate_name}"))).count();
        for (_, session) in &of_crate[..of_crate.len().saturating_sub(kept)] {
            bytes += remove(session)?;
        }
    }
    Ok(bytes)
}

/// The entries of a folder, in name order; nothing if it is none.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        entries => entries.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = paths.with_context(|| format!("cannot read {}", folder.display()))?;
    paths.sort();
    Ok(paths)
}

/// Removes a file or a folder, which need not be there; returns how many bytes its files had.
fn remove(path: &Path) -> Result<u64> {
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(0) };
    let bytes = size(path)?;
    let removed = if data.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    removed.map(|()| bytes).with_context(|| format!("cannot remove {}", path.display()))
}

fn size(path: &Path) -> Result<u64> {
    let data = fs::symlink_metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
    if !data.is_dir() {
        return Ok(data.len());
    }
    entries(path)?.iter().map(|entry| size(entry)).sum()
}
