//! Inputs of an archive, as the text that names it.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{PACKAGE, unit};
use crate::context::Context;
use crate::metadata;
use crate::setup::compiler::{Compiler, Family};
use crate::setup::fingerprint;

/// -O2 compiles 15 % faster than the default -O3, and the time lies in RocksDB's headers, I/O and locks anyway.
const OPTIMISATION: &str = "-O2";

/// In how many pieces the C++ is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pieces {
    /// In units, by [`unit::plan`].
    Units,
    /// File by file, through the crate's own build.
    Files,
}

/// How an archive is made.
#[derive(Debug)]
pub(super) struct Recipe {
    /// All that the archive depends on, a line each.
    pub(super) key: String,
    /// The crate's folder, which lists its source files.
    source: PathBuf,
    pub(super) cxxflags: String,
    pub(super) pieces: Pieces,
}

impl Recipe {
    pub(super) fn new(context: &Context, compiler: &Compiler) -> Result<Self> {
        let metadata = metadata::resolved(context)?;
        let package = metadata::package(&metadata, PACKAGE)?;
        let id = package["id"].as_str().context("a package has an id")?;
        let node =
            metadata["resolve"]["nodes"].as_array().into_iter().flatten().find(|node| node["id"] == id);
        let node = node.with_context(|| format!("{PACKAGE} is not resolved"))?;
        let features = strings(&node["features"]);
        let cxxflags = match env::var("CXXFLAGS") {
            Ok(flags) => format!("{OPTIMISATION} {flags}"),
            Err(_) => OPTIMISATION.to_owned(),
        };
        let version = |name: &str| match metadata::package(&metadata, name) {
            Ok(package) => package["version"].as_str().unwrap_or_default().to_owned(),
            Err(_) => "none".to_owned(),
        };
        let mut key = vec![
            format!("{PACKAGE} {}", version(PACKAGE)),
            format!("lz4-sys {}", version("lz4-sys")),
            format!("zstd-sys {}", version("zstd-sys")),
            format!("features {}", features.join(" ")),
            format!("target {}", context.host),
            format!("rustflags {}", rustflags(context)?),
            format!("cxxflags {cxxflags}"),
            format!("standard {}", env::var("ROCKSDB_CXX_STD").unwrap_or_default()),
            format!("compiler {}", compiler.version),
        ];
        let pieces = pieces(&context.host, compiler.family, |name| env::var_os(name).is_some());
        if pieces == Pieces::Units {
            key.push(format!("units {}", unit::rules()));
        }
        let manifest = package["manifest_path"].as_str().map(Path::new).and_then(Path::parent);
        let source = manifest.context("a package has a manifest")?.to_owned();
        Ok(Self { key: key.join("\n") + "\n", source, cxxflags, pieces })
    }

    /// The name of the cache entry.
    pub(super) fn entry_name(&self) -> String {
        format!("rocksdb-{}", fingerprint(&self.key))
    }

    /// How many files the crate compiles, so that a build can say how far it is.
    pub(super) fn file_count(&self) -> usize {
        fs::read_to_string(self.source.join("rocksdb_lib_sources.txt")).map_or(0, |list| list.lines().count())
    }
}

/// Units only where they were tried: with g++ on 64-bit x86 under glibc. A compiler that is named for the target goes
/// before `CXX` in the crate's build, and could not be recorded.
fn pieces(host: &str, family: Family, is_set: impl Fn(&str) -> bool) -> Pieces {
    let names = [
        format!("CXX_{host}"),
        format!("CXX_{}", host.replace('-', "_")),
        "HOST_CXX".to_owned(),
        "TARGET_CXX".to_owned(),
    ];
    let is_tried = host == "x86_64-unknown-linux-gnu" && family == Family::Gcc;
    if is_tried && !names.iter().any(|name| is_set(name)) { Pieces::Units } else { Pieces::Files }
}

/// The Rust flags in force: they choose the processor features that the C++ is compiled for.
fn rustflags(context: &Context) -> Result<String> {
    let config = fs::read_to_string(context.root.join(".cargo/config.toml"))?;
    let stated = config.lines().filter(|line| line.trim_start().starts_with("rustflags"));
    let stated = stated.map(str::trim).collect::<Vec<_>>().join(" ");
    let given = |name| env::var(name).unwrap_or_default().replace('\x1f', " ");
    Ok(format!("{stated} {} {}", given("RUSTFLAGS"), given("CARGO_ENCODED_RUSTFLAGS")).trim().to_owned())
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use super::{Family, Pieces, pieces};

    #[test]
    fn units_are_for_what_was_tried() {
        let host = "x86_64-unknown-linux-gnu";
        assert_eq!(pieces(host, Family::Gcc, |_| false), Pieces::Units);
        assert_eq!(pieces(host, Family::Other, |_| false), Pieces::Files);
        assert_eq!(pieces("aarch64-unknown-linux-gnu", Family::Gcc, |_| false), Pieces::Files);
        assert_eq!(pieces("x86_64-unknown-linux-musl", Family::Gcc, |_| false), Pieces::Files);
        for name in ["CXX_x86_64-unknown-linux-gnu", "CXX_x86_64_unknown_linux_gnu", "HOST_CXX", "TARGET_CXX"]
        {
            assert_eq!(pieces(host, Family::Gcc, |set| set == name), Pieces::Files, "{name}");
        }
        assert_eq!(pieces(host, Family::Gcc, |set| set == "CXX"), Pieces::Units);
    }
}
