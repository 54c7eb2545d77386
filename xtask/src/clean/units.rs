//! Cargo's records of each unit that it compiled, and which of them the newest build still needs.
//!
//! Cargo keeps a folder `.fingerprint/<package>-<hash>` for each unit. In it the file `<kind>-<target>.json` holds the compiler's
//! hash and the fingerprints of the units below, and `<kind>-<target>` the unit's own fingerprint in hex, least byte first.
//! This is no stable format: what cannot be read so is an error, and nothing is removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// One unit: a crate compiled one way, or a build script that ran.
#[derive(Debug, Clone)]
pub(super) struct Unit {
    /// The package and the hash by which cargo names the unit's files: `serde-0123456789abcdef`.
    pub(super) name: String,
    /// The part of the package that it is: `lib-serde`, `test-integration-test-it`.
    pub(super) kind: String,
    features: String,
    /// Which compiler it was.
    rustc: u64,
    fingerprint: u64,
    /// The fingerprints of the units that it was compiled with.
    below: Vec<u64>,
    made: SystemTime,
}

impl Unit {
    pub(super) fn package(&self) -> &str {
        self.name.rsplit_once('-').map_or(&self.name, |(package, _)| package)
    }

    pub(super) fn hash(&self) -> &str {
        self.name.rsplit_once('-').map_or("", |(_, hash)| hash)
    }
}

/// All units of a profile's folder.
///
/// # Errors
/// A file cannot be read, or is not what cargo writes today.
pub(super) fn read(profile: &Path) -> Result<Vec<Unit>> {
    let mut units = Vec::new();
    for folder in super::entries(&profile.join(".fingerprint"))? {
        for file in super::entries(&folder)? {
            if file.extension().is_some_and(|extension| extension == "json") {
                let unit = read_unit(&folder, &file);
                units.push(unit.with_context(|| format!("{} is not as cargo writes it", file.display()))?);
            }
        }
    }
    Ok(units)
}

fn read_unit(folder: &Path, file: &Path) -> Result<Unit> {
    let json: Value = serde_json::from_slice(&fs::read(file)?)?;
    let number = |value: &Value| value.as_u64().context("no number where one is expected");
    let below = json["deps"].as_array().context("no `deps`")?;
    let own = fs::read_to_string(file.with_extension(""))?;
    let text = |path: Option<&std::ffi::OsStr>| path.unwrap_or_default().to_string_lossy().into_owned();
    ensure!(own.len() == 16, "the fingerprint beside it has {} digits, not 16", own.len());
    Ok(Unit {
        name: text(folder.file_name()),
        kind: text(file.file_stem()),
        features: json["features"].as_str().context("no `features`")?.to_owned(),
        rustc: number(&json["rustc"])?,
        fingerprint: u64::from_str_radix(&own, 16)?.swap_bytes(),
        below: below.iter().map(|unit| number(&unit[3])).collect::<Result<_>>()?,
        made: fs::metadata(file)?.modified()?,
    })
}

/// Of the workspace's own units, the compiler of the newest: the one that compiled what runs now.
pub(super) fn newest_compiler(units: &[Unit], members: &BTreeSet<String>) -> Option<u64> {
    let own = units.iter().filter(|unit| members.contains(unit.package()));
    own.max_by_key(|unit| unit.made).map(|unit| unit.rustc)
}

/// The names of the units that are needed: for each target of the workspace with each choice of features, the newest that
/// `compiler` compiled, and all that it was compiled with.
pub(super) fn live(units: &[Unit], members: &BTreeSet<String>, compiler: u64) -> BTreeSet<String> {
    let mut roots: BTreeMap<_, &Unit> = BTreeMap::new();
    for unit in units.iter().filter(|unit| unit.rustc == compiler && members.contains(unit.package())) {
        let newest = roots.entry((unit.package(), &unit.kind, &unit.features)).or_insert(unit);
        if newest.made < unit.made {
            *newest = unit;
        }
    }
    let by_fingerprint: HashMap<u64, &Unit> = units.iter().map(|unit| (unit.fingerprint, unit)).collect();
    let mut open: Vec<&Unit> = roots.into_values().collect();
    let mut live = BTreeSet::new();
    while let Some(unit) = open.pop() {
        if live.insert(unit.name.clone()) {
            open.extend(unit.below.iter().filter_map(|below| by_fingerprint.get(below)));
        }
    }
    live
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::{Duration, SystemTime};

    use super::{Unit, live, newest_compiler};

    fn unit(name: &str, kind: &str, rustc: u64, fingerprint: u64, below: &[u64], second: u64) -> Unit {
        Unit {
            name: name.to_owned(),
            kind: kind.to_owned(),
            features: "[]".to_owned(),
            rustc,
            fingerprint,
            below: below.to_vec(),
            made: SystemTime::UNIX_EPOCH + Duration::from_secs(second),
        }
    }

    #[test]
    fn what_the_newest_build_was_compiled_with_lives() {
        let units = [
            unit("serde-01", "lib-serde", 7, 1, &[], 1),
            unit("serde-02", "lib-serde", 7, 2, &[], 1),
            unit("serde-03", "lib-serde", 6, 3, &[], 1),
            unit("cg-store-01", "lib-cg_store", 7, 11, &[1], 2),
            // Another profile.
            unit("cg-store-02", "lib-cg_store", 7, 12, &[2], 3),
            unit("cg-store-03", "test-lib-cg_store", 7, 13, &[12], 3),
            // An older compiler; no newer one compiled this.
            unit("cg-anvil-01", "lib-cg_anvil", 6, 14, &[3], 1),
        ];
        let members = BTreeSet::from(["cg-store".to_owned(), "cg-anvil".to_owned()]);
        assert_eq!(newest_compiler(&units, &members), Some(7));
        let names = live(&units, &members, 7);
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        assert_eq!(names, ["cg-store-02", "cg-store-03", "serde-02"]);
    }
}
