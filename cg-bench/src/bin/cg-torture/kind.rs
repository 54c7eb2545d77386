//! The kinds of files that a world is made of.

use std::ffi::OsStr;
use std::path::Path;

/// The kind of RocksDB's list of files.
pub(crate) const MANIFEST: &str = "MANIFEST";

/// The kind of a file; `None` for RocksDB's own lock, which is empty.
pub(crate) fn kind_of(file: &str) -> Option<&'static str> {
    let name = file.rsplit('/').next().unwrap_or(file);
    let by_prefix = [("MANIFEST-", MANIFEST), ("OPTIONS-", "OPTIONS")];
    let by_extension = [("sst", "SST"), ("blob", "blob"), ("log", "WAL")];
    let whole = ["CURRENT", "DURABLE", "IDENTITY", "OWNER", "world.cg"];
    let extension = Path::new(name).extension().and_then(OsStr::to_str);
    let extended = by_extension.into_iter().find(|(known, _)| Some(*known) == extension);
    let prefixed = by_prefix.into_iter().find(|(prefix, _)| name.starts_with(prefix));
    prefixed.or(extended).map(|(_, kind)| kind).or_else(|| whole.into_iter().find(|kind| *kind == name))
}
